"""Tools as the TypeScript-like namespace that harmony's prompts carry, as `openai-harmony` 0.0.8 writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset

STEP = "    "
MAX_DEPTH = 50
"""Objects in objects that are written out; what is deeper is `any`."""


def namespace(name: str, tools: Toolset, description: str = "") -> str:
    """The namespace with every tool as a function type. Property order is kept.

    Unlike that library, every line of a description of several lines is a comment.
    """
    lines = [f"## {name}", "", *_comment(description, ""), f"namespace {name} {{", ""]
    for tool in tools.values():
        lines += _function(tool)
    lines.append(f"}} // namespace {name}")
    return "\n".join(lines)


def _function(tool: Tool) -> list[str]:
    lines = _comment(tool.description, "")
    document = tool.schema.document if tool.schema is not None else None
    found = document.get("properties") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or not isinstance(found, Mapping):
        return [*lines, f"type {tool.name} = () => any;", ""]
    required = document.get("required") or ()
    lines.append(f"type {tool.name} = (_: {{")
    for key, schema in found.items():
        lines += _parameter(key, schema if isinstance(schema, Mapping) else {}, key in required)
    return [*lines, "}) => any;", ""]


def _comment(text: Any, indent: str) -> list[str]:
    return [f"{indent}// {line}" for line in text.splitlines()] if isinstance(text, str) else []


def _parameter(key: str, schema: Mapping[str, Any], required: bool) -> list[str]:
    """One parameter of a function, with what is said about it."""
    lines: list[str] = []
    title = _comment(schema.get("title"), "")
    if title:
        lines += [*title, "//"]
    arms = schema.get("oneOf")
    lines += _comment(schema.get("description"), "")
    examples = schema.get("examples")
    if isinstance(examples, list) and examples:
        lines.append("// Examples:")
        lines += [f"// - {_dumps(example)}" for example in examples if isinstance(example, str)]
    default = _default(schema)
    mark = "" if required else "?"
    if isinstance(arms, list):
        lines += [default.strip()] if default else []
        return [*lines, f"{key}{mark}:", *_arms(arms), ","]
    return [*lines, f"{key}{mark}: {_nullable(type_of(schema, STEP), schema)},{default}"]


def _nullable(written: str, schema: Mapping[str, Any]) -> str:
    return f"{written} | null" if schema.get("nullable") is True and "null" not in written.split(" | ") else written


def _default(schema: Mapping[str, Any]) -> str:
    value = schema.get("default")
    if value is None:
        return ""
    bare = isinstance(value, str) and "enum" in schema
    return f" // default: {value if bare else _dumps(value)}"


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _arms(arms: list[Any], indent: str = "", depth: int = 0) -> list[str]:
    lines = []
    for arm in arms:
        arm = arm if isinstance(arm, Mapping) else {}
        said = arm.get("description")
        remark = f" // {' '.join(said.split())}" if isinstance(said, str) else ""
        lines.append(f"{indent} | {type_of(arm, indent + '   ', depth + 1)}{remark}")
    return lines


def type_of(schema: Mapping[str, Any], indent: str = "", depth: int = 0) -> str:
    """The type that a schema stands for; `any` where there is no plain one."""
    if depth > MAX_DEPTH:
        return "any"
    kind = schema.get("type")
    if isinstance(schema.get("oneOf"), list):
        return "\n" + "\n".join(_arms(schema["oneOf"], indent, depth))
    if isinstance(kind, list):
        return " | ".join(_plain(one) for one in kind)
    if kind == "object":
        return _object(schema, indent, depth)
    if kind == "array":
        items = schema.get("items")
        return f"{type_of(items, indent, depth + 1)}[]" if isinstance(items, Mapping) else "Array<any>"
    written = _plain(kind) if kind != "null" else "any"
    choices = schema.get("enum")
    if kind == "string" and isinstance(choices, list) and choices:
        written = " | ".join(f'"{choice}"' for choice in choices if isinstance(choice, str))
    return written


def _plain(kind: Any) -> str:
    if kind == "integer":
        return "number"
    return kind if kind in ("number", "string", "boolean", "null", "object", "array") else "any"


def _object(schema: Mapping[str, Any], indent: str, depth: int) -> str:
    found = schema.get("properties")
    required = schema.get("required") or ()
    head = "".join(f"{line}\n" for line in _comment(schema.get("description"), indent))
    lines = [f"{head}{{"]
    for key, value in found.items() if isinstance(found, Mapping) else ():
        value = value if isinstance(value, Mapping) else {}
        title = _comment(value.get("title"), indent)
        lines += [*title, f"{indent}//"] if title else []
        lines += _comment(value.get("description"), indent)
        mark = "" if key in required else "?"
        if isinstance(value.get("oneOf"), list):
            default = _default(value).strip()
            lines += [f"{indent}{default}"] if default else []
            lines += [f"{indent}{key}{mark}:", *_arms(value["oneOf"], indent, depth), f"{indent},"]
            continue
        written = _nullable(type_of(value, indent + STEP, depth + 1), value)
        lines.append(f"{indent}{key}{mark}: {written},{_default(value)}")
    return "\n".join((*lines, f"{indent}}}"))
