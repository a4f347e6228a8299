"""Packing: small, redacted, and still the same fault; unpacking; the parts it is made of."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onspec.check import check
from onspec.contract import Tool
from onspec.errors import InputError
from onspec.scan.file import scan_file
from onspec.scan.pack import find, pack, pick, signature, unpack
from onspec.scan.shrink import Budget, ddmin, shorten, shrink
from onspec.transcripts import Session, ToolCall, ToolResult, Turn, load, load_all
from onspec.transcripts.redact import Redactor, bare_schema

SESSIONS = Path(__file__).parent.parent / "transcripts" / "sessions"
PRIVATE = [
    "jdoe",
    "acme-internal",
    "sk-ant-api03-Zk3jQ9x8Lw2mV7bN4cR1",
    "jane@corp.example.org",
    "10.1.2.3",
    "hunter2secret",
    "db.prod.acme.com",
]
STORY = (
    "/home/jdoe/acme-internal/app.py mail jane@corp.example.org at 10.1.2.3 or db.prod.acme.com "
    "password=hunter2secret key sk-ant-api03-Zk3jQ9x8Lw2mV7bN4cR1 by jdoe\n"
)


def session(name: str, arguments: Any = None, text: str | None = None, answer: str = "", tools: Any = ()) -> Session:
    """A session with one call and its answer."""
    call = ToolCall(name, arguments, text, "c1")
    result = ToolResult(answer, "c1", name, True)
    turns = [Turn("user", (), line=1), Turn("assistant", (call,), model="m", line=2), Turn("tool", (result,), line=3)]
    return Session("pi", "pi", "v3", "s", turns, list(tools))


def through_json(data: Any) -> Any:
    """What is left of data in a file."""
    return json.loads(json.dumps(data))


FAULTS: list[tuple[str, Any, str | None]] = [
    ("edit", {"path": "/home/jdoe/a", "edits": [{"oldText": STORY * 9, "newText": STORY, "newText_dummy": ""}]}, None),
    ("edit", {"path": STORY, "edits": [{"newText": STORY}]}, None),
    ("edit", {"path": STORY, "edits": json.dumps([{"oldText": STORY, "newText": STORY}])}, None),
    ("edit", {"path": STORY, "edits": [{"oldText": "x", "newText": STORY + "</newText></invoke>"}]}, None),
    ("bash", {STORY * 40: ","}, None),
    ("bash", None, '{"command": "' + STORY.replace("\n", "") + '"'),
    ("bash", None, '{"command": "' + STORY.replace("\n", "")),
    ("bash", None, '```json\n{"command": "cat ' + STORY.replace("\n", "") + '"}\n```'),
    ("bash", None, '{"command": "a\\d ' + STORY.replace("\n", "") + '"}'),
    ("read", {"path": STORY, "offset": "[626, 635]"}, None),
    ("read", {"path": STORY, "offset": "12"}, None),
    ("edit", {"path": "a", "edits": [{"oldText": "\ud83d" + STORY, "newText": ""}]}, None),
]


@pytest.mark.parametrize(("name", "arguments", "text"), FAULTS)
def test_a_pack_is_small_and_private_and_shows_the_fault(name: str, arguments: Any, text: str | None) -> None:
    """The fault is the one of the original, nothing private is left, and the pack survives a file."""
    whole = session(name, arguments, text, 'Validation failed for tool "x":\n' + STORY)
    made = through_json(pack(whole, "c1"))
    ran = unpack(made)
    assert ran.same
    told = json.dumps(made)
    assert not [word for word in PRIVATE if word.lower() in told.lower()]
    assert len(made["arguments"]) <= 400
    raw = text if text is not None else json.dumps(arguments)
    original = check(Tool(made["tool"]["name"], made["tool"]["schema"], effect=made["tool"]["effect"]), raw)
    assert signature(original)[0] == made["expected"]["signature"][0]


def test_the_same_thing_gets_the_same_stand_in() -> None:
    """A path in the call and in the answer stays one path."""
    redactor = Redactor(["path"])
    one, two = redactor.text("open /srv/ledger/main.py"), redactor.text("no such file: /srv/ledger/main.py")
    assert re.findall(r"/\S+", one) == re.findall(r"/\S+", two)
    assert "ledger" not in one


SECRETS = [
    "sk-proj-abcdefghijklmnop1234",
    "ghp_abcdefghijklmnopqrst1234",
    "AKIAIOSFODNN7EXAMPLE",
    "xoxb-123456789012-abcdefghij",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc123",
    "Bearer abcdef0123456789",
    "https://user:pa55word@host.tld/x",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----",
    "API_KEY=s3cr3tvalue",
    'password: "correcthorse"',
    "d41d8cd98f00b204e9800998ecf8427e",
    "glpat-abcdefghij1234567890",
    "hf_abcdefghijklmnopqrst",
    "AIzaSyA1234567890abcdefghijklmnop",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("words", [True, False])
def test_secrets_are_found(secret: str, words: bool) -> None:
    """Also where the other words may stay."""
    core = re.split(r"[=: @/]+", secret.strip('"'))[-1 if "@" not in secret else 2].strip('"')
    assert core not in Redactor(words=words).text(f"before {secret} after")


@pytest.mark.parametrize(
    "private",
    [
        "/home/jdoe/x",
        "/Users/jdoe/x",
        "C:\\Users\\jdoe\\x",
        "jdoe@example.net",
        "192.168.7.9",
        "ssh://build7.corp/x",
        "fe80:1:2:3:4:5:6:7",
    ],
)
def test_addresses_and_homes_are_found(private: str) -> None:
    text = Redactor(words=False).text(f"see {private} now")
    assert not re.search(r"jdoe|192\.168|build7|fe80", text)


def test_names_met_in_a_home_are_found_elsewhere() -> None:
    redactor = Redactor(words=False)
    redactor.learn(["/home/jdoe/x"])
    assert "jdoe" not in redactor.text("Author: JDoe <nobody>").lower()


@given(st.text(max_size=200))
def test_redaction_keeps_the_structure(text: str) -> None:
    """Quotes, brackets and newlines are where they were, unless a secret swallowed them."""
    plain = re.sub(r"[^\s\"'{}\[\],\\]", "", text)
    kept = Redactor().text("".join(char for char in text if char in " \n\t\"'{}[],\\"))
    assert kept == "".join(char for char in text if char in " \n\t\"'{}[],\\")
    assert len(plain) <= len(text)


def test_a_schema_loses_its_prose_and_nothing_else() -> None:
    schema = {
        "type": "object",
        "description": "d",
        "properties": {"description": {"type": "string", "title": "t", "enum": ["a"]}},
    }
    assert bare_schema(schema) == {"type": "object", "properties": {"description": {"type": "string", "enum": ["a"]}}}


def test_what_cannot_be_packed_is_said() -> None:
    good = session("read", {"path": "a"}, None, "")
    good.turns[2] = Turn("tool", (ToolResult("x", "c1", "read", False),))
    with pytest.raises(InputError, match="nothing is wrong"):
        pack(good, "c1")
    with pytest.raises(InputError, match="schema"):
        pack(session("nobody_knows", {"a": 1}, None, 'Validation failed for tool "x"'), "c1")
    with pytest.raises(InputError, match="no call"):
        pack(good, "c2")
    lost = session("read", None, None, "")
    lost.turns[1] = Turn("assistant", (ToolCall("read", {"__unparsedToolInput": {}}, None, "c1", "x", stand_in=True),))
    with pytest.raises(InputError, match="part"):
        pack(lost, "c1")


def test_an_id_that_two_calls_have_asks_for_a_number() -> None:
    twice = load(str(SESSIONS / "tau-bench.json"))
    with pytest.raises(InputError, match="#1, #2"):
        find(twice, "same")
    assert find(twice, "#2").ordinal == 2


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"format": "onspec-pack"},
        {"format": "onspec-pack", "version": 99},
        {
            "format": "onspec-pack",
            "version": 1,
            "tool": {"name": "", "schema": 5},
            "arguments": "{}",
            "expected": {"policy": "safe"},
        },
    ],
)
def test_what_is_no_pack_is_said(data: Any) -> None:
    with pytest.raises(InputError):
        unpack(data)


def test_the_history_is_reduced_to_what_a_test_needs() -> None:
    """Of ten turns before the call only the one with the word that the test looks for is left."""
    from_file = session(
        "edit",
        {"path": "a", "edits": [{"oldText": "x", "newText": "y", "z": 1}]},
        None,
        'Validation failed for tool "edit":',
    )
    talk = [Turn("assistant", (ToolCall("bash", {"command": str(n)}, None, f"b{n}"),), line=n) for n in range(10)]
    from_file.turns[1:1] = talk
    made = pack(
        from_file,
        "c1",
        turns=20,
        still=lambda made: '"7\\"' in json.dumps(made["history"]) or "b7" in json.dumps(made["history"]),
    )
    assert [turn["parts"][0]["id"] for turn in made["history"]] == ["b7"]


@settings(max_examples=60)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.sets(st.integers(0, 30), min_size=1, max_size=3))
def test_ddmin_leaves_nothing_that_can_go(items: list[int], wanted: set[int]) -> None:
    """The result shows the fault, is a sublist, and is minimal: one of each that is wanted."""
    if not wanted <= set(items):
        items = [*items, *wanted]

    def shows(kept: list[int]) -> bool:
        return wanted <= set(kept)

    small = ddmin(items, shows, Budget(10_000))
    assert sorted(small) == sorted(wanted)
    rest = iter(items)
    assert all(one in rest for one in small)


def test_shrinking_keeps_the_fault_and_ends() -> None:
    value = {"a": [1, {"b": "x" * 5000 + "KEY" + "y" * 5000}, 3], "c": {"d": None}}
    small = shrink(value, lambda v: "KEY" in json.dumps(v), Budget())
    assert "KEY" in json.dumps(small)
    assert len(json.dumps(small)) < 80
    budget = Budget(5)
    assert "KEY" in shorten("x" * 500 + "KEY", lambda text: "KEY" in text, budget)
    assert budget.left == 0


def test_each_conversation_of_a_file_has_its_own_tools() -> None:
    """The first line's tool is not the last line's, though the file is one."""
    sessions = load_all(str(SESSIONS / "vendor-verifier.jsonl"))
    assert [len(one.tools) for one in sessions] == [1, 2, 1, 1, 1]
    made = pack(*pick(sessions, "#1"))
    assert (made["tool"]["name"], made["arguments"]) == ("fact", "")
    with pytest.raises(InputError, match="#1, #2, #3"):
        pick(sessions, "v")


def test_a_finding_can_be_packed_by_its_number() -> None:
    for name in ("claude-code.jsonl", "vendor-verifier.jsonl", "nemo-gym.jsonl", "pi-v3.jsonl"):
        for found in scan_file(str(SESSIONS / name)).findings:
            session, local = pick(load_all(str(SESSIONS / name)), f"#{found.number}")
            assert find(session, local).call.id in (found.call, None)


@pytest.mark.parametrize("turns", range(1, 6))
def test_a_history_may_begin_between_a_call_and_its_answer(turns: int) -> None:
    """The answer whose call lies before it is left out, and with it what came between."""
    broken = {"path": "a", "edits": [{"oldText": "x", "newText": "y", "z": 1}]}
    from_file = session("edit", broken, None, 'Validation failed for tool "edit":')
    from_file.turns[1:1] = [
        turn
        for n in range(3)
        for turn in (
            Turn("assistant", (ToolCall("bash", {"command": str(n)}, None, f"b{n}"),), line=n),
            Turn("tool", (ToolResult("done", f"b{n}", "bash"),), line=n),
        )
    ]
    made = pack(from_file, "c1", turns=turns)
    parts = [part for turn in made["history"] for part in turn["parts"]]
    called = {part["id"] for part in parts if part["type"] == "call"}
    assert {part["id"] for part in parts if part["type"] == "result"} == called
    assert len(called) == turns // 2
