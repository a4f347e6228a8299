"""Schemas that are hard on purpose: each compiles in bounded time, or is refused with a reason."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest

from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset
from onspec.dialects import named
from onspec.dialects.render import render_calls
from onspec.errors import OnspecError, SchemaError
from onspec.grammar.build import build
from onspec.grammar.forms import FORMS
from onspec.grammar.llguidance import Vocabulary
from onspec.message import Call
from onspec.receive import receive

BYTES = Vocabulary.of_bytes()
STYLES = ("hermes_json", "qwen3_coder_xml", "minimax_m3", "gemma4", "pythonic", "cline_xml")
MOST_SECONDS = 4.0
"""CPU time that one grammar with all masks along a call may take here; measured ones take under 0.5."""

EXPONENTIAL = [
    (r"^(a+)+$", "a" * 200),
    (r"(x+x+)+y", "x" * 200 + "y"),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "ab." * 60 + "Zz"),
    (r"^(a?){50}a{50}$", "a" * 60),
    (r"(.*a){25}", "ba" * 80),
    (r"^((ab?){1,60}){1,60}$", "ab" * 80),
    (r"^(a|b)*a(a|b){12}$", "ab" * 80 + "a" + "b" * 12),
    (r"(a{1,400}){1,400}", "a" * 200),
]


def _tool(schema: Any, **more: Any) -> Tool:
    whole = {"type": "object", "properties": {"p": schema}, "required": ["p"], "additionalProperties": False}
    return Tool("f", {**whole, **more})


@pytest.mark.parametrize("dialect", STYLES)
@pytest.mark.parametrize(("pattern", "text"), EXPONENTIAL)
def test_patterns_that_are_exponential_elsewhere_are_followed_in_linear_time(
    dialect: str, pattern: str, text: str
) -> None:
    """An automaton has no backtracking: a mask at every byte of a call costs little, and the pattern still holds."""
    started = time.process_time()
    tool = _tool({"type": "string", "pattern": pattern})
    matcher = BYTES.matcher(build([tool], dialect, "required", thinking="none").lark)
    call = Call("f", json.dumps({"p": text}))
    for code in render_calls(named(dialect), (call,), Toolset([tool])).encode():
        assert matcher.mask()[code]
        matcher.consume(code)
    assert matcher.accepting()
    wrong = Call("f", json.dumps({"p": "-"}))
    other = BYTES.matcher(build([tool], dialect, "required", thinking="none").lark)
    assert not other.consume_bytes(render_calls(named(dialect), (wrong,), Toolset([tool])).encode())
    assert time.process_time() - started < MOST_SECONDS


@pytest.mark.parametrize("dialect", STYLES)
@pytest.mark.parametrize("values", [[f"value-{n}" for n in range(10_000)], list(range(10_000))])
def test_ten_thousand_constants_are_a_grammar_in_every_style(dialect: str, values: list[Any]) -> None:
    started = time.process_time()
    tool = _tool({"enum": values})
    lark = build([tool], dialect, "required", thinking="none").lark
    for value, wanted in ((values[7_777], True), (values[7_777] * 2, isinstance(values[0], int) and False)):
        text = render_calls(named(dialect), (Call("f", json.dumps({"p": value})),), Toolset([tool]))
        matcher = BYTES.matcher(lark)
        assert (matcher.consume_bytes(text.encode()) and matcher.accepting()) is wanted, value
    assert time.process_time() - started < MOST_SECONDS


def _many(kind: str, count: int) -> Tool:
    keys = {f"k{n}": {"type": "string"} for n in range(count)}
    if kind == "constants":
        return _tool({"enum": [{"a": n} for n in range(count)]})
    if kind == "alternatives":
        return _tool({"oneOf": [{"const": f"v{n}"} for n in range(count)]})
    return Tool("f", {"type": "object", "properties": keys, "required": list(keys) if kind == "required" else []})


@pytest.mark.parametrize("dialect", STYLES)
@pytest.mark.parametrize("kind", ["required", "optional", "constants", "alternatives"])
def test_a_grammar_takes_time_in_proportion_to_its_schema(dialect: str, kind: str) -> None:
    """Two thousand keys, objects or alternatives: what compared each with each took half a minute."""
    started = time.process_time()
    BYTES.matcher(build([_many(kind, 2000)], dialect, "required", thinking="none").lark)
    assert time.process_time() - started < MOST_SECONDS


RECURSIVE = {
    "$defs": {
        "tree": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
            "required": ["name"],
            "additionalProperties": False,
        },
        "endless": {"type": "object", "properties": {"next": {"$ref": "#/$defs/endless"}}, "required": ["next"]},
    }
}


@pytest.mark.parametrize("dialect", STYLES)
def test_recursion_is_followed_in_every_style_and_without_an_end_refused(dialect: str) -> None:
    tool = _tool({"$ref": "#/$defs/tree"}, **RECURSIVE)
    value: Any = {"name": "leaf"}
    for number in range(20):
        value = {"name": f"n{number}", "kids": [value, {"name": "twig"}]}
    text = render_calls(named(dialect), (Call("f", json.dumps({"p": value})),), Toolset([tool]))
    matcher = BYTES.matcher(build([tool], dialect, "required", thinking="none").lark)
    assert matcher.consume_bytes(text.encode())
    assert matcher.accepting()
    with pytest.raises(SchemaError, match="admit no value"):
        build([_tool({"$ref": "#/$defs/endless"}, **RECURSIVE)], dialect, "required")


@pytest.mark.parametrize("dialect", [name for name in FORMS if name != "json_args"])
def test_a_tool_that_admits_nothing_leaves_the_others(dialect: str) -> None:
    """Alone it is refused; among others it is left out."""
    never, good = _tool(False), Tool("g", {"type": "object", "properties": {}, "additionalProperties": False})
    with pytest.raises(SchemaError, match="admit no value"):
        build([never], dialect, "required")
    text = render_calls(named(dialect), (Call("g", "{}"),), Toolset([good])).removeprefix("<|start|>assistant")
    matcher = BYTES.matcher(build([never, good], dialect, "required").lark)
    assert matcher.consume_bytes(text.encode())


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 10**9},
        {"type": "array", "items": {"type": "integer"}, "minItems": 10**7},
        {
            "allOf": [
                {"anyOf": [{"type": "string", "minLength": n}, {"type": "integer", "minimum": n}]} for n in range(14)
            ]
        },
        {"type": "object", "properties": {f"k{n}": {"type": "string"} for n in range(2_000)}},
    ],
)
@pytest.mark.parametrize("dialect", ["hermes_json", "qwen3_coder_xml"])
def test_huge_demands_end_in_bounded_time(dialect: str, schema: Any) -> None:
    """A grammar, or one of this package's errors; never an endless one, and no other exception."""
    started = time.process_time()
    with contextlib.suppress(OnspecError):
        BYTES.matcher(build([_tool(schema)], dialect, "required").lark).mask()
    assert time.process_time() - started < 3 * MOST_SECONDS


def test_a_call_that_was_closed_because_tokens_ran_out_is_refused() -> None:
    tool = _tool({"type": "string"})
    text = '<tool_call>{"name": "f", "arguments": {"p": "rm -rf /tmp/x"}}'
    (call,) = receive(text, [tool], "hermes_json", finish_reason="length").calls
    assert not call.outcome.ok
