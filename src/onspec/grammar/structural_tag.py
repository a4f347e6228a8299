"""Structural tags: what vLLM, SGLang and XGrammar take to constrain calls inside free text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from onspec.contract.tool import Tool
from onspec.dialects.form import Form
from onspec.errors import InputError
from onspec.grammar.forms import form_of
from onspec.grammar.free import FREE_TEXT

_XML = {"qwen3_coder_xml": "qwen_xml", "glm45": "glm_xml", "minimax_m2": "minimax_xml", "deepseek_dsml": "deepseek_xml"}
"""Dialects with raw parameters that XGrammar knows, and its name of their style."""


def structural_tag(
    tools: Sequence[Tool], dialect: str, choice: str = "auto", *, parallel: bool = True
) -> dict[str, Any]:
    """The tag in the form of XGrammar 0.1.25 and newer: `{"type": "structural_tag", "format": ...}`.

    These engines hold declared keys in the schema's order and close open objects, so the tag admits less than
    `onspec.grammar.build` does; `check` judges all the same.

    Args:
        tools: The tools that may be called.
        dialect: A dialect whose call body is a JSON object, or one of the XML-like ones that XGrammar knows.
        choice: `auto`, `required`, or the name of one tool.
        parallel: Whether several calls may be made.

    Raises:
        InputError: The dialect has no trigger, or a body that structural tags cannot express; or no tool is called so.
    """
    form = _form(dialect)
    chosen = _chosen(tools, choice)
    tags = [_tag(form, tool, parallel) for tool in chosen]
    inner: dict[str, Any] = {
        "type": "triggered_tags",
        "triggers": [form.trigger],
        "tags": tags,
        "at_least_one": choice != "auto",
        "stop_after_first": not parallel,
    }
    return {"type": "structural_tag", "format": inner}


def structural_tag_flat(tools: Sequence[Tool], dialect: str, choice: str = "auto") -> dict[str, Any]:
    """The older form, which vLLM and SGLang still take, with `structures` and `triggers`.

    It cannot say that a call is required.

    Raises:
        InputError: As `structural_tag`; also for XML-like dialects.
    """
    form = _form(dialect)
    if form.style == "tags":
        raise InputError(f"the older form holds JSON bodies only; {dialect} writes parameters as text")
    structures = []
    for tool in _chosen(tools, choice):
        begin, end = _frame(form, tool.name)
        structures.append({"begin": begin, "schema": _schema(form, tool), "end": end})
    return {"type": "structural_tag", "structures": structures, "triggers": [form.trigger]}


def _form(dialect: str) -> Form:
    form = form_of(dialect)
    if not form.word:
        raise InputError(f"{dialect} has no trigger, and structural tags begin at one")
    if form.style in ("keywords", "bare", "elements") or (form.style == "tags" and dialect not in _XML):
        raise InputError(f"structural tags cannot express the call body of {dialect}")
    return form


def _chosen(tools: Sequence[Tool], choice: str) -> list[Tool]:
    found = [tool for tool in tools if choice in ("auto", "required", tool.name)]
    if not found:
        raise InputError(f"no tool is called {choice!r}" if tools else "there is no tool")
    return found


def _tag(form: Form, tool: Tool, parallel: bool) -> dict[str, Any]:
    begin, end = _frame(form, tool.name)
    content: dict[str, Any] = {"type": "json_schema", "json_schema": _schema(form, tool)}
    if form.style == "tags":
        content["style"] = _XML[form.name]
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def _frame(form: Form, name: str) -> tuple[str, str]:
    """What stands before and after the body of a call of `name`, trigger and close included."""
    if form.style in ("envelope", "keyed"):
        opened, closed = ("[", "]") if form.listed else ("", "")
        return form.trigger + form.lead + opened, closed + form.close
    head = form.call.replace("{name}", name).replace("{index}", "0").replace("{call_id}", "")
    header = " <|constrain|>json<|message|>" if form.style == "harmony" else ""
    return form.trigger + form.lead + head + header, form.end + form.close


def _schema(form: Form, tool: Tool) -> Any:
    schema: Any = tool.schema.document if tool.schema is not None else FREE_TEXT
    if form.style not in ("envelope", "keyed"):
        return schema
    definitions: dict[str, Any] = {}
    if isinstance(schema, dict):
        # References are from the root: definitions move there.
        definitions = {word: schema[word] for word in ("$defs", "definitions") if word in schema}
        schema = {key: value for key, value in schema.items() if key not in definitions}
    if form.style == "keyed":
        own: dict[str, Any] = {tool.name: schema}
    else:
        fixed = {key: orjson.loads(text) for key, text in form.fixed}
        own = {**fixed, form.keys[0]: {"const": tool.name}, form.keys[1]: schema}
    return {
        **definitions, "type": "object", "properties": own, "required": list(own), "additionalProperties": False,
    }  # fmt: skip
