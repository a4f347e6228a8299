"""Custom tools through the gateway: free text is held to its grammar like JSON to its schema."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx2
import pytest

from onspec.edits.patch import GRAMMAR
from onspec.gateway.config import Rules
from onspec.providers.script import Block, Turn
from tests.gateway.rig import PATHS, Rig, request, rig, says
from tests.gateway.test_rewrite import read

GOOD = "*** Begin Patch\n*** Update File: a.py\n@@ def add\n-x\n+y\n*** End Patch\n"
BAD = GOOD.replace("*** End Patch\n", "")
PLACE = "line 6, column 1"
WIRES = [("chat", True), ("chat", False), ("responses", True), ("responses", False)]


def declared(api: str, definition: str = GRAMMAR, syntax: str = "lark") -> list[dict[str, Any]]:
    """apply_patch as a custom tool, beside a function."""
    form: dict[str, Any] = {"syntax": syntax, "definition": definition}
    form = {"type": "grammar", "grammar": form} if api == "chat" else {"type": "grammar", **form}
    tool = {"name": "apply_patch", "description": "Edit files.", "format": form}
    now: dict[str, Any] = {"name": "now", "parameters": {"type": "object", "properties": {}}}
    if api == "chat":
        return [{"type": "custom", "custom": tool}, {"type": "function", "function": now}]
    return [{"type": "custom", **tool}, {"type": "function", **now}]


def patch(text: str) -> Block:
    """A call of the custom tool."""
    return Block("custom_tool", text, name="apply_patch", chunk=7)


def ask(r: Rig, api: str, stream: bool, url: str = "", **more: Any) -> httpx2.Response:
    """One request."""
    more.setdefault("tools", declared(api))
    return httpx2.post((url or r.url) + PATHS[api], json=request(api, stream, **more), timeout=30)


def inputs(api: str, answer: httpx2.Response, stream: bool) -> list[str]:
    """The texts of all calls."""
    if stream:
        return list(read(api, answer.content)[0].values())
    body = answer.json()
    if api == "chat":
        return [one["custom"]["input"] for one in body["choices"][0]["message"]["tool_calls"]]
    return [item["input"] for item in body["output"] if item["type"] == "custom_tool_call"]


@pytest.mark.parametrize(("api", "stream"), WIRES)
@pytest.mark.parametrize("hold", ["value", "call"])
def test_a_text_of_the_grammar_passes_byte_for_byte(api: str, stream: bool, hold: Any) -> None:
    """Held or not, the very bytes."""
    with rig([says(Block("text", "Now."), patch(GOOD))] * 2, Rules(hold=hold)) as r:
        through, straight = ask(r, api, stream), ask(r, api, stream, r.provider.url)
        record = r.gateway.recent[-1]
    assert through.content.replace(b"000001", b"000002") == straight.content
    assert inputs(api, through, stream) == [GOOD]
    assert (record.outcome, record.tool, record.codes) == ("accepted", "apply_patch", ())
    assert b"onspec" not in through.content


@pytest.mark.parametrize(("api", "stream"), WIRES)
@pytest.mark.parametrize("hold", ["value", "call"])
def test_any_other_text_passes_with_a_word(api: str, stream: bool, hold: Any) -> None:
    """As a call that breaks its schema: the text as it came, a header or a comment, and a record."""
    with rig([says(patch(BAD))], Rules(hold=hold)) as r:
        answer = ask(r, api, stream)
        record = r.gateway.recent[-1]
    assert inputs(api, answer, stream) == [BAD]
    told = answer.text if stream else answer.headers["x-onspec-refused"]
    assert "apply_patch" in told
    assert "the text ends before its grammar does" in told
    assert (record.outcome, record.codes) == ("refused", ("off_grammar",))


@pytest.mark.parametrize(("api", "stream"), WIRES)
def test_the_next_try_lands(api: str, stream: bool) -> None:
    """The model is told the place and what was expected; its next text takes the place of the first everywhere."""
    with rig([says(patch(BAD)), says(patch(GOOD))], Rules(retry=1, hold="call")) as r:
        answer = ask(r, api, stream)
        second = r.provider.requests[1].body
        record = r.gateway.recent[-1]
    assert inputs(api, answer, stream) == [GOOD]
    assert BAD not in answer.text
    assert record.outcome == "retried"
    said = json.dumps(second)
    assert PLACE in said
    assert "*** End Patch" in said
    kind = {"type": "custom", "name": "apply_patch"} if api == "responses" else None
    assert second["tool_choice"] == (kind or {"type": "custom", "custom": {"name": "apply_patch"}})


def test_json_does_not_take_the_place_of_free_text() -> None:
    """A try that calls a function instead is not put into the custom call."""
    other = Turn((Block("tool", "{}", name="now"),))
    with rig([says(patch(BAD)), other], Rules(retry=1, hold="call")) as r:
        answer = ask(r, "responses", True)
    assert inputs("responses", answer, True) == [BAD]
    assert '"now"' not in answer.text


@pytest.mark.parametrize("definition", ["start: (", "start: s\ns: s s s | s s | /./\n"])
def test_a_grammar_that_cannot_be_used_is_told_of_once(definition: str, caplog: pytest.LogCaptureFixture) -> None:
    """Its calls pass untouched; the log and one record say why."""
    tools = declared("responses", definition)
    with caplog.at_level(logging.WARNING, "onspec.gateway"), rig([says(patch("x" * 4000))] * 3) as r:
        for _ in range(3):
            assert inputs("responses", ask(r, "responses", True, tools=tools), True) == ["x" * 4000]
        records = list(r.gateway.recent)
    assert [record.outcome for record in records] == ["accepted"] * 3
    told = [record.audit for record in records if record.audit]
    assert [[step["code"] for step in audit] for audit in told] == [["not_enforced"]]
    assert len([one for one in caplog.records if "not enforced" in one.message]) == 1


def test_a_regular_expression_holds_for_the_whole_text() -> None:
    """Not for a part of it."""
    tools = declared("responses", r"[0-9]{4}-[0-9]{2}", "regex")
    with rig([says(patch("2026-11")), says(patch("in 2026-11"))]) as r:
        for _ in range(2):
            ask(r, "responses", True, tools=tools)
        assert [record.outcome for record in r.gateway.recent] == ["accepted", "refused"]
