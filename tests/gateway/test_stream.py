"""Arguments as they arrive: any cut gives what the whole gives, and nothing is passed on that must be taken back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onspec import Policy, Tool, check
from onspec.repair.stream import ArgumentStream

EDIT = Tool(
    "edit",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer", "minimum": 1},
            "mode": {"type": "string", "enum": ["fast", "slow"]},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "tags": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {},
            "edits": {
                "type": "array",
                "minItems": 1,
                "items": {"$ref": "#/$defs/item"},
            },
        },
        "required": ["path", "edits"],
        "additionalProperties": False,
        "$defs": {
            "item": {
                "type": "object",
                "properties": {
                    "oldText": {"type": "string"},
                    "newText": {"type": "string"},
                    "all": {"type": "boolean"},
                },
                "required": ["oldText", "newText"],
                "additionalProperties": False,
            }
        },
    },
)
OPEN = Tool(
    "run",
    {
        "type": "object",
        "properties": {"command": {"type": "string"}, "timeout": {"type": "number"}},
        "required": ["command"],
    },
)
FREE = Tool("note", {"type": "object"})
TOOLS = (EDIT, OPEN, FREE)

WORDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "a.py",
            "x = 1\n",
            'say "hi"',
            "\\d+",
            "</div>",
            "</newText>",
            "</newText></invoke>",
            "</NEW_TEXT>",
            "</x:newText>\n",
            '<parameter name="newText">',
            "é😀",
            "a < b",
            "\u2028",
            "1",
            "true",
            "[]",
            "{}",
        ]
    ),
)
SCALARS = st.one_of(
    WORDS, st.integers(-5, 10**18), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
)
KEYS = st.sampled_from(
    [
        "path",
        "file_path",
        "limit",
        "mode",
        "note",
        "tags",
        "any",
        "edits",
        "oldText",
        "newText",
        "old_text",
        "oldText2",
        "newText2",
        "all",
        "requireUnique",
        "command",
        "cmd",
        "timeout",
        "arguments",
        "Path",
        "x",
    ]
)
ITEMS = st.dictionaries(
    st.sampled_from(["oldText", "newText", "all", "oldText2", "newText2", "requireUnique", "old_string", "new_string"]),
    SCALARS,
    max_size=5,
)
GOOD_ITEM = st.fixed_dictionaries({"oldText": WORDS, "newText": WORDS}, optional={"all": st.booleans()})
VALUES = st.one_of(
    SCALARS,
    st.lists(st.one_of(ITEMS, GOOD_ITEM, SCALARS), max_size=3),
    st.lists(GOOD_ITEM, min_size=1, max_size=3),
    st.lists(GOOD_ITEM, min_size=1, max_size=2).map(json.dumps),
    ITEMS,
    st.dictionaries(WORDS, SCALARS, max_size=3),
)
NEARLY = st.fixed_dictionaries(
    {"path": WORDS, "edits": st.lists(st.one_of(GOOD_ITEM, ITEMS), min_size=1, max_size=3)},
    optional={
        "limit": st.one_of(st.integers(0, 9), st.just("5"), st.none()),
        "mode": st.sampled_from(["fast", "SLOW", "other"]),
        "note": st.one_of(st.none(), WORDS),
        "requireUnique": SCALARS,
        "tags": st.dictionaries(WORDS, WORDS, max_size=2),
        "any": VALUES,
    },
)
CALLS = st.one_of(
    NEARLY,
    st.dictionaries(KEYS, VALUES, max_size=6),
    st.fixed_dictionaries({"command": WORDS}, optional={"timeout": SCALARS, "x": SCALARS}),
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A call's text: valid, nearly valid, or damaged at a random place."""
    value = draw(CALLS)
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    damage = draw(st.sampled_from(["none"] * 6 + ["cut", "insert", "delete", "wrap", "twice", "open", "fence"]))
    place = draw(st.integers(0, len(text)))
    if damage == "cut":
        return text[:place]
    if damage == "insert":
        return (
            text[:place]
            + draw(st.sampled_from(['"', "\\", ",", "}", "\n", "'", "{", "\\u12", "\\ud83d", "//x\n", "NaN"]))
            + text[place:]
        )
    if damage == "delete":
        return text[:place] + text[place + 1 :]
    if damage == "wrap":
        return json.dumps({"arguments": value})
    if damage == "twice":
        return text + text
    if damage == "open":
        return text.rstrip("]} \n")
    return f"```json\n{text}\n```" if damage == "fence" else text


def cuts(text: str, sizes: list[int]) -> list[str]:
    """The text in pieces of these sizes, over and over."""
    pieces, at, index = [], 0, 0
    while at < len(text):
        size = sizes[index % len(sizes)]
        pieces.append(text[at : at + size])
        at, index = at + size, index + 1
    return pieces


def run(tool: Tool, text: str, pieces: list[str]) -> tuple[str, int, ArgumentStream]:
    """What is passed on before the end, piece by whole piece, as the gateway does it."""
    stream = ArgumentStream(tool)
    sent = fed = 0
    waiting: list[int] = []
    for piece in pieces:
        certain = stream.feed(piece)
        fed += len(piece)
        waiting.append(fed)
        assert certain <= fed
        while waiting and waiting[0] <= certain:
            sent = waiting.pop(0)
    return text[:sent], sent, stream


@settings(max_examples=800, deadline=None)
@given(texts(), st.lists(st.integers(1, 20), min_size=1, max_size=6), st.sampled_from(TOOLS))
def test_any_cut_gives_what_the_whole_gives(text: str, sizes: list[int], tool: Tool) -> None:
    """What was passed on, and what follows it, is the whole call's outcome; nothing has to be taken back."""
    outcome = check(tool, text)
    before, sent, stream = run(tool, text, cuts(text, sizes))
    assert stream.text == text
    if outcome.status != "repaired":
        return
    tail = stream.tail(outcome.arguments, sent, outcome.json.decode())
    assert tail is not None, f"{before!r} cannot become {outcome.arguments!r}"
    assert json.loads(before + tail) == outcome.arguments


@settings(max_examples=300, deadline=None)
@given(texts(), st.lists(st.integers(1, 20), min_size=1, max_size=6), st.sampled_from(TOOLS))
def test_doubt_does_not_depend_on_the_cut(text: str, sizes: list[int], tool: Tool) -> None:
    """One piece or many: doubt begins or it does not, and the same call closes."""
    whole = ArgumentStream(tool)
    whole.feed(text)
    _, _, stream = run(tool, text, cuts(text, sizes))
    assert (stream.doubt, stream.closed) == (whole.doubt, whole.closed)
    if "<" not in text:  # what may be leaked markup is certain a few characters sooner or later
        assert stream.certain == whole.certain


@settings(max_examples=300, deadline=None)
@given(texts(), st.sampled_from(TOOLS))
def test_a_call_that_is_certain_throughout_is_accepted(text: str, tool: Tool) -> None:
    """All of a text is certain only where the judge accepts it as it is."""
    stream = ArgumentStream(tool)
    if stream.feed(text) == len(text) and stream.closed and not stream.doubt:
        assert check(tool, text).status == "accepted"


CONFORMING: list[tuple[Tool, dict[str, Any]]] = [
    (EDIT, {"path": "a.py", "edits": [{"oldText": 'a\n"b"', "newText": "é😀 \\d"}]}),
    (
        EDIT,
        {
            "path": "a.py",
            "limit": 3,
            "mode": "fast",
            "note": None,
            "edits": [{"oldText": "1", "newText": "2", "all": True}] * 3,
        },
    ),
    (
        EDIT,
        {
            "edits": [{"newText": "<div>x</div>", "oldText": "</div>"}],
            "path": "i.html",
            "tags": {"a": "b"},
            "any": [1, {"b": None}],
        },
    ),
    (OPEN, {"command": "ls", "timeout": 1.5}),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(("tool", "value"), CONFORMING)
def test_a_conforming_call_is_certain_to_its_last_character(tool: Tool, value: dict[str, Any], size: int) -> None:
    """No character of a call that conforms waits for the end of the call."""
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=2)):
        stream = ArgumentStream(tool)
        for index in range(0, len(text), size):
            stream.feed(text[index : index + size])
        assert stream.certain == len(text)
        assert not stream.doubt


def test_a_long_string_waits_for_nothing() -> None:
    """Inside a free string every character is certain as it comes."""
    stream = ArgumentStream(EDIT)
    stream.feed('{"path": "')
    for count in range(1, 500):
        assert stream.feed("x") == 10 + count


def test_nothing_after_the_first_fault_is_certain() -> None:
    """From an invented key on, everything waits; what stood before stays certain."""
    text = '{"path": "a", "edits": [{"oldText": "b", "newText": "c", "requireUnique": true}]}'
    stream = ArgumentStream(EDIT)
    stream.feed(text)
    assert text[: stream.certain] == '{"path": "a", "edits": [{"oldText": "b", "newText": "c"'
    outcome = check(EDIT, text, Policy.safe())
    assert stream.tail(outcome.arguments, stream.certain, outcome.json.decode()) == "}]}"


def test_time_grows_with_the_text() -> None:
    """A megabyte in small pieces is scanned once: the work is counted in steps of the scanner, not in seconds."""
    steps = []
    for size in (10_000, 100_000):
        stream, count = ArgumentStream(EDIT), 0
        text = json.dumps({"path": "a", "edits": [{"oldText": "x", "newText": "word \\n <b> " * (size // 12)}]})
        original = stream._string

        def counted(piece: str, index: int, original: Any = original) -> int:
            nonlocal count
            count += 1
            return int(original(piece, index))

        stream._string = counted  # type: ignore[method-assign]
        for index in range(0, len(text), 50):
            stream.feed(text[index : index + 50])
        assert stream.certain == len(text)
        steps.append(count)
    assert steps[1] < 11 * steps[0]
