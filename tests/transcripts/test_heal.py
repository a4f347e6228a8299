"""Healing: what providers refuse is gone, the rest keeps its bytes, and a second run changes nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onspec.errors import InputError
from onspec.message import Thinking
from onspec.transcripts import Source, ToolCall, ToolResult, Turn, detect, load
from onspec.transcripts.heal import RULES, heal
from onspec.transcripts.layout import NOT_RECORDED
from onspec.transcripts.replay import faults

SESSIONS = Path(__file__).parent / "sessions"
CASES = [
    "pi-v3.jsonl",
    "claude-code.jsonl",
    "claude-code-progress.jsonl",
    "codex.jsonl",
    "cline-messages.json",
    "openai-messages.json",
    "openai-lines.jsonl",
    "anthropic-lines.jsonl",
    "anthropic-request.json",
    "responses-request.json",
]


def left(path: Path) -> list[str]:
    """The rules that the conversation of a file still breaks."""
    source = Source(str(path))
    found = detect(source)
    assert found is not None
    turns = [entry for entry in found.entries(source) if isinstance(entry, Turn) and not entry.side]
    items = found.name == "codex" or b'"function_call"' in path.read_bytes()
    return sorted({fault.rule for fault in faults(turns, items)})


@pytest.mark.parametrize("name", CASES)
def test_a_healed_session_is_accepted_and_stays_as_it_is(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(heal(str(SESSIONS / name)).data)
    assert left(path) == []
    assert heal(str(path)).changes == []
    assert heal(str(path)).data == path.read_bytes()


@pytest.mark.parametrize("name", ["pi-v3.jsonl", "claude-code.jsonl", "codex.jsonl"])
def test_records_without_a_fault_keep_their_bytes(name: str) -> None:
    before = (SESSIONS / name).read_bytes().split(b"\n")
    healed = heal(str(SESSIONS / name))
    touched = {change.line for change in healed.changes}
    after = set(healed.data.split(b"\n"))
    spoiled = [number for number, line in enumerate(before, 1) if line and line not in after and number not in touched]
    assert touched
    assert len(spoiled) <= sum(change.rule in ("bad_id", "orphan_call") for change in healed.changes)


def chat(*messages: Any) -> bytes:
    """A plain conversation."""
    return json.dumps(list(messages)).encode()


def use(identity: Any, given: Any, name: str = "edit") -> dict[str, Any]:
    """A call as a block."""
    return {"type": "tool_use", "id": identity, "name": name, "input": given}


def answer(identity: Any) -> dict[str, Any]:
    """An answer as a block."""
    return {"type": "tool_result", "tool_use_id": identity, "content": "ok"}


def said(*blocks: Any) -> dict[str, Any]:
    """A message of the assistant."""
    return {"role": "assistant", "content": list(blocks)}


def asked(*blocks: Any) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": list(blocks)}


def function(identity: str, arguments: str, name: str = "edit") -> dict[str, Any]:
    """A call as Chat Completions writes it."""
    call = {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def tool(identity: str) -> dict[str, Any]:
    """An answer as Chat Completions writes it."""
    return {"role": "tool", "tool_call_id": identity, "content": "x"}


def item(identity: str, arguments: str) -> dict[str, Any]:
    """A call as an item of Responses."""
    return {"type": "function_call", "name": "edit", "call_id": identity, "arguments": arguments}


def output(identity: str) -> dict[str, Any]:
    """An answer as an item of Responses."""
    return {"type": "function_call_output", "call_id": identity, "output": "x"}


GO = {"role": "user", "content": "Go"}
TEXT = {"type": "text", "text": "x"}
LONG = "x" * 60
MARKUP = 'Task" >\n<parameter name="description'

FAULTS: list[tuple[str, bytes]] = [
    ("unreadable_arguments", chat(GO, said(use("a", "text")), asked(answer("a")))),
    ("unreadable_arguments", chat(GO, said(use("a", [1])), asked(answer("a")))),
    ("unreadable_arguments", chat(GO, said(use("a", None)), asked(answer("a")))),
    (
        "unreadable_arguments",
        chat(GO, said(use("a", {"__unparsedToolInput": {"raw": "{", "len": 1}})), asked(answer("a"))),
    ),
    ("unreadable_arguments", chat(GO, said(use("a", {"INVALID_JSON": "{"})), asked(answer("a")))),
    ("unreadable_arguments", chat(GO, function("a", '{"path": "'), tool("a"))),
    ("unreadable_arguments", chat(GO, function("a", "[1]"), tool("a"))),
    ("unreadable_arguments", chat(GO, function("a", ""), tool("a"))),
    ("unreadable_arguments", chat(GO, item("a", "{,}"), output("a"))),
    ("orphan_call", chat(GO, said(use("a", {}), use("b", {})), asked(answer("b")))),
    ("orphan_call", chat(GO, said(use("a", {})))),
    ("orphan_call", chat(GO, said(use("a", {})), GO)),
    ("orphan_call", chat(GO, function("a", "{}"), GO)),
    ("orphan_call", chat(GO, item("a", "{}"), item("b", "{}"), output("b"))),
    ("orphan_result", chat(GO, asked(answer("z")), said(TEXT))),
    ("orphan_result", chat(GO, said(use("a", {})), asked(answer("a"), answer("a")))),
    ("orphan_result", chat(GO, tool("z"))),
    ("orphan_result", chat(GO, output("z"))),
    ("bad_id", chat(GO, said(use("functions.bash:0", {})), asked(answer("functions.bash:0")))),
    ("bad_id", chat(GO, function(LONG, "{}"), tool(LONG))),
    ("bad_id", chat(GO, said(use("", {})), asked(answer("")))),
    ("duplicate_id", chat(GO, said(use("a", {})), asked(answer("a")), said(use("a", {})), asked(answer("a")))),
    ("duplicate_id", chat(GO, function("a", "{}"), tool("a"), function("a", "{}"), tool("a"))),
    ("duplicate_id", chat(GO, item("a", "{}"), output("a"), item("a", "{}"), output("a"))),
    ("bad_name", chat(GO, said(use("a", {}, MARKUP)), asked(answer("a")))),
    ("bad_name", chat(GO, function("a", "{}", "functions.edit"), tool("a"))),
    ("lone_surrogate", chat(GO, said(use("a", {"x": "\ud83d"})), asked(answer("a")))),
    ("lone_surrogate", chat({"role": "user", "content": "half \ud83d"}, said(use("a", {})), asked(answer("a")))),
    ("unsigned_thinking", chat(GO, said({"type": "thinking", "thinking": "hm"}, use("a", {})), asked(answer("a")))),
    ("misplaced_result", chat(GO, said(use("a", {})), asked(TEXT), said(TEXT), asked(answer("a")))),
    ("misplaced_result", chat(GO, function("a", "{}"), GO, tool("a"))),
    ("misplaced_result", chat(GO, item("a", "{}"), GO, output("a"))),
]


@pytest.mark.parametrize(("rule", "data"), FAULTS)
def test_each_fault_is_mended_by_its_rule(rule: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(data)
    healed = heal(str(path))
    assert rule in RULES
    assert rule in {change.rule for change in healed.changes}
    path.write_bytes(healed.data)
    assert left(path) == []
    assert heal(str(path)).changes == []


def test_a_surrogate_escape_inside_argument_text_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(chat(GO, function("a", '{"x": "\\ud83d"}'), tool("a")))
    path.write_bytes(heal(str(path)).data)
    assert left(path) == []


def test_answers_are_in_the_next_message_and_first(tmp_path: Path) -> None:
    """Anthropic: all answers of a turn stand at the start of the message that follows it."""
    path = tmp_path / "s.json"
    path.write_bytes(chat(GO, said(use("a", {}), use("b", {})), asked({"type": "text", "text": "and"}, answer("b"))))
    healed = json.loads(heal(str(path)).data)
    assert [block["type"] for block in healed[2]["content"]] == ["tool_result", "tool_result", "text"]
    assert [message["role"] for message in healed] == ["user", "assistant", "user"]


def test_two_halves_side_by_side_become_their_character(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(b'[{"role":"user","content":"\\ud83d\\ude00 and \\ud83d"}]')
    assert json.loads(heal(str(path)).data)[0]["content"] == "\U0001f600 and \ufffd"


def test_signed_thinking_is_byte_exact_or_gone(tmp_path: Path) -> None:
    thought = {"type": "thinking", "thinking": "hm é", "signature": "RXE="}
    path = tmp_path / "s.json"
    path.write_bytes(chat(GO, said(thought, use("a", "text")), asked(answer("a"))))
    kept = json.loads(heal(str(path)).data)
    gone = json.loads(heal(str(path), strip_thinking=True).data)
    assert kept[1]["content"][0] == thought
    assert [block["type"] for block in gone[1]["content"]] == ["tool_use"]


def test_reasoning_that_nothing_follows_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    path.write_bytes(chat(GO, thought, item("a", "{}"), output("a"), thought, GO))
    kinds = [one.get("type", "message") for one in json.loads(heal(str(path)).data)]
    assert kinds == ["message", "reasoning", "function_call", "function_call_output", "message"]


def test_what_was_there_is_kept_aside() -> None:
    healed = heal(str(SESSIONS / "claude-code.jsonl"))
    lost = [change.before for change in healed.changes if change.rule == "unreadable_arguments"]
    assert lost[0]["input"]["__unparsedToolInput"]["raw"] == '{"file_path": "/w/a", "offset": 180, 260}'


def test_a_missing_answer_gets_its_place_in_the_tree(tmp_path: Path) -> None:
    """The answer that is made up hangs on its call, and what came after hangs on the answer."""
    lines = (SESSIONS / "pi-v3.jsonl").read_bytes().split(b"\n")
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n".join(line for line in lines if b'"toolCallId": "t3"' not in line))
    path.write_bytes(heal(str(path)).data)
    assert left(path) == []
    by_id = {turn.id: turn for turn in load(str(path)).turns}
    made = [
        turn
        for turn in by_id.values()
        for part in turn.parts
        if isinstance(part, ToolResult) and part.content == NOT_RECORDED
    ]
    assert len(made) == 1
    parent = by_id[made[0].parent]
    assert any(isinstance(part, ToolCall) and part.id == "t3" for part in parent.parts)


@pytest.mark.parametrize(
    "name", ["opencode-export.json", "gemini.json", "openai-finetune.jsonl", "tau-bench.json", "inspect.eval"]
)
def test_formats_that_cannot_be_healed_are_said(name: str) -> None:
    with pytest.raises(InputError):
        heal(str(SESSIONS / name))


KEYS = ("id", "tool_use_id", "call_id", "tool_call_id", "toolCallId", "arguments", "input", "name", "signature", "text")


def spoil(rng: random.Random, records: list[Any]) -> None:
    """Takes a record out, doubles it, exchanges it for another, or puts nonsense into it."""
    at, kind = rng.randrange(1, len(records)), rng.randrange(5)
    if kind == 0 and len(records) > 3:
        del records[at]
    elif kind == 1:
        records.insert(at, json.loads(json.dumps(records[at])))
    elif kind == 2:
        other = rng.randrange(1, len(records))
        records[at], records[other] = records[other], records[at]
    else:
        found: list[tuple[Any, str]] = []
        stack: list[Any] = [records[at]]
        while stack:
            node = stack.pop()
            if isinstance(node, dict):
                found.extend((node, key) for key in node if key in KEYS)
                stack.extend(node.values())
            elif isinstance(node, list):
                stack.extend(node)
        if found:
            holder, key = rng.choice(found)
            holder[key] = rng.choice(["", "a:b", "x" * 70, "{", "\ud800", "same"])


def damaged(rng: random.Random, name: str) -> bytes:
    """A session of which a few records are spoiled."""
    raw = (SESSIONS / name).read_bytes()
    document = name.endswith(".json")
    whole = json.loads(raw) if document else [json.loads(line) for line in raw.splitlines() if line.strip()]
    records = whole if isinstance(whole, list) else next(whole[key] for key in ("messages", "input") if key in whole)
    for _ in range(rng.randrange(1, 5)):
        spoil(rng, records)
    return json.dumps(whole).encode() if document else b"\n".join(json.dumps(record).encode() for record in records)


@settings(max_examples=250, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([name for name in CASES if "progress" not in name]))
def test_whatever_is_spoiled_is_healed(tmp_path_factory: pytest.TempPathFactory, rng: random.Random, name: str) -> None:
    """After healing nothing is left that a provider refuses, and healing again changes nothing."""
    path = tmp_path_factory.mktemp("d") / name
    path.write_bytes(damaged(rng, name))
    try:
        healed = heal(str(path))
    except InputError:
        return
    path.write_bytes(healed.data)
    if detect(Source(str(path))) is None:
        return
    assert left(path) == []
    assert heal(str(path)).changes == []


def test_the_judge_of_healing_finds_faults_by_itself() -> None:
    call = ToolCall("edit", {}, None, "a")
    assert [fault.rule for fault in faults([Turn("assistant", (call,))])] == ["orphan_call"]
    assert [fault.rule for fault in faults([Turn("assistant", (Thinking("x"),))])] == ["unsigned_thinking"]
    assert [fault.rule for fault in faults([Turn("tool", (ToolResult("x", "q"),))])] == ["orphan_result"]
    assert faults([Turn("assistant", (call,)), Turn("tool", (ToolResult("x", "a"),))]) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "x", "user", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "type", "role"]), inner),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(CASES))
def test_no_shape_raises(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str) -> None:
    """Any value of a session replaced by any other: it is healed, or refused with a clear error."""
    raw = (SESSIONS / name).read_bytes()
    document = name.endswith(".json")
    values = [json.loads(raw)] if document else [json.loads(line) for line in raw.splitlines() if line.strip()]
    places: list[tuple[Any, Any]] = []
    stack: list[Any] = [values]
    while stack:
        node = stack.pop()
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                stack.append(node[key])
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(JSON)
    path = tmp_path_factory.mktemp("d") / name
    path.write_bytes(b"\n".join(json.dumps(value).encode() for value in values))
    try:
        healed = heal(str(path))
    except InputError:
        return
    path.write_bytes(healed.data)
    if healed.data.strip() and detect(Source(str(path))) is not None:
        assert heal(str(path)).changes == []
