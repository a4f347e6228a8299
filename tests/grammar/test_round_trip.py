"""Dialects and grammars agree: what is rendered is admitted, and what is admitted is read as the call it is."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset
from onspec.dialects import named
from onspec.dialects.render import markers_of, render_calls
from onspec.errors import InputError, SchemaError
from onspec.grammar import closing
from onspec.grammar.build import Grammar, build
from onspec.grammar.closing import close
from onspec.grammar.forms import FORMS
from onspec.grammar.llguidance import Matcher, Vocabulary, accepts
from onspec.message import Call
from onspec.receive import receive
from tests.grammar.generated import _object, _text

BYTES = Vocabulary.of_bytes()
DIALECTS = [name for name in FORMS if name != "json_args"]
TOOLS_EACH, VALUES_EACH, WALKS_EACH = 6, 3, 3
LESS = frozenset({"undeclared keys", "undeclared keys with unusual characters", "bounded number (some spellings)"})
"""Notes of what a grammar leaves out and a rendered call may need."""
TEXT = {"type": "string"}
FIXED: tuple[tuple[Any, Any], ...] = (
    (
        {
            "type": "object",
            "properties": {
                "path": TEXT,
                "text": {"type": "string", "minLength": 2, "maxLength": 9},
                "code": {"type": "string", "pattern": "^[a-z]+-[0-9]{2}$"},
                "mode": {"enum": ["r", "w", "a+b"]},
                "lines": {"type": "array", "items": {"type": "integer"}},
                "deep": {
                    "type": "object",
                    "properties": {"on": {"type": "boolean"}, "why": TEXT},
                    "required": ["on"],
                    "additionalProperties": False,
                },
                "rate": {"type": "number"},
                "flag": {"type": "boolean"},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
        lambda r: {
            "path": _text(r),
            **_some(r, {"text": _text(r, 2, 9), "code": "ab-12", "mode": r.choice(["r", "w", "a+b"])}),
            **_some(r, {"lines": [1, -2], "deep": {"on": True, "why": _text(r)}, "rate": 2.5, "flag": False}),
        },
    ),
    ({"type": "object", "properties": {}, "additionalProperties": False}, lambda r: {}),
    (
        {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
        lambda r: {"a": "<b> & </c> <|x|> [d] ```\n" + _text(r)},
    ),
)


def _some(rng: random.Random, whole: dict[str, Any]) -> dict[str, Any]:
    chosen = [key for key in whole if rng.random() < 0.6]
    rng.shuffle(chosen)
    return {key: whole[key] for key in chosen}


def _tools(rng: random.Random) -> list[tuple[Tool, Any]]:
    """Tools with makers of their arguments: the fixed ones and one of a generated schema."""
    schema, make = _object(rng, 2)
    rows = [*FIXED, (schema, make)]
    return [(Tool(f"{'abc'[i % 3]}_tool_{i}", document), maker) for i, (document, maker) in enumerate(rows)]


def _grammar(tools: list[Tool], dialect: str) -> Grammar | None:
    try:
        return build(tools, dialect, "required", thinking="none")
    except SchemaError:
        return None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_rendered_calls_are_admitted(dialect: str) -> None:
    """Calls that the dialect's own writer writes, for many tools and values, are in the language of its grammar. Left
    out are values in which a marker of the dialect stands; not every reader of raw text can tell those from markup."""
    row, seen = named(dialect), 0
    markers = [marker for marker in markers_of(row) if len(marker) > 1]
    for number in range(TOOLS_EACH):
        rng = random.Random(number)
        rows = _tools(rng)
        grammar = _grammar([tool for tool, _ in rows], dialect)
        if grammar is None:
            continue
        less = LESS & {note.keyword for note in grammar.inexact}
        for tool, make in rows:
            for _ in range(VALUES_EACH):
                value = make(rng)
                text = json.dumps(value, ensure_ascii=False)
                if any(marker in text for marker in markers):
                    continue
                calls = [Call(tool.name, text)]
                if rng.random() < 0.3:
                    calls.append(Call(rows[1][0].name, "{}"))
                if len(calls) > 1 and FORMS[dialect].repeat == "one" and dialect != "harmony":
                    continue
                try:
                    written = render_calls(row, tuple(calls), Toolset([tool for tool, _ in rows]))
                except InputError:
                    continue  # The writer refuses what its reader would not read back.
                seen += 1
                told = written.removeprefix("<|start|>assistant")
                if not accepts(BYTES, grammar.lark, told):
                    assert less, f"{tool.schema and tool.schema.document}\n{told}"  # Only what is said is left out.
    assert seen >= TOOLS_EACH * 6


def _walk(grammar: Grammar, rng: random.Random, tools: list[Tool]) -> str:
    """A text of the grammar: the trigger, random bytes, and an ending. Where no ending is found any more, one is made
    earlier, as a decoder's closeout does."""
    form = FORMS[grammar.dialect]
    lead = form.trigger
    if not lead or (form.optional and rng.random() < 0.5):
        leads = [f"<{tool.name}>" if grammar.dialect == "cline_xml" else f"{tool.name}(" for tool in tools]
        leads = ["["] if form.listed else ["{"] if form.style == "envelope" else leads
        lead = next(one for one in leads if BYTES.matcher(grammar.lark).consume_bytes(one.encode()))
    matcher = BYTES.matcher(grammar.lark)
    text = lead.encode()
    assert matcher.consume_bytes(text)
    for _ in range(rng.randint(0, 150)):
        token = None if matcher.accepting() else _drawn(matcher, rng)
        if token is None:
            break
        text += bytes([token])
    while True:
        ending = close(matcher, text, grammar.pieces)
        if ending is not None:
            return (text + ending.text).decode()
        assert len(text) > len(lead), text
        text = text[: max(len(lead), len(text) // 2)]
        matcher = BYTES.matcher(grammar.lark)
        assert matcher.consume_bytes(text)


def _drawn(matcher: Matcher, rng: random.Random) -> int | None:
    """A byte that may come next: ASCII, so that the text is whole at every place; markup more often than letters."""
    mask = matcher.mask()
    allowed = [token for token in (9, 10, *range(32, 127)) if mask[token]]
    if not allowed:
        return None
    markup = [token for token in allowed if token in b"<>{}[]\"':,|/=\n()"]
    token = rng.choice(markup if markup and rng.random() < 0.4 else allowed)
    assert matcher.consume(token)
    return token


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_admitted_is_read_as_calls_that_keep_their_contract(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random walks of the grammar, ended by the closer, are read by the dialect's reader as accepted calls."""
    monkeypatch.setattr(closing, "MOST_STEPS", 1000)
    seen = 0
    for number in range(TOOLS_EACH):
        rng = random.Random(number)
        tools = [tool for tool, _ in _tools(rng)]
        grammar = _grammar(tools, dialect)
        if grammar is None:
            continue
        more = {note.keyword for note in grammar.inexact if note.effect == "more"}
        for _ in range(WALKS_EACH):
            text = _walk(grammar, rng, tools)
            start = "<|start|>assistant" if dialect == "harmony" and text.startswith(" to=") else ""
            reply = receive(start + text, tools, dialect)
            assert reply.calls, text
            for call in reply.calls:
                seen += 1
                assert call.outcome.ok or more, (text, call.outcome.violations)
            assert not reply.text.strip(), text
    assert seen >= TOOLS_EACH * 2
