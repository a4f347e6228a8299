"""What is decided before a call's end is what the whole call's check decides, however the text is cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from benchmarks.mutants import KINDS, mutants
from hypothesis import given, settings
from hypothesis import strategies as st

from onspec import Policy, Tool, check
from onspec.cli.cases import bundled
from onspec.gateway.cut import hopeless, spoiled
from onspec.repair.stream import ArgumentStream
from tests.gateway.test_stream import EDIT, OPEN, TOOLS, cuts, texts
from tests.strategies import broken, calls

SAFE = Policy.safe()
SIZES = st.lists(st.integers(1, 20), min_size=1, max_size=6)


def arrive(tool: Tool, pieces: list[str], policy: Policy | None = SAFE) -> tuple[ArgumentStream, int, str, list[int]]:
    """The stream, what was passed on piece by whole piece, and how much had been after each piece."""
    stream = ArgumentStream(tool, policy=policy)
    sent = fed = 0
    out, grown, waiting = "", [], []
    for piece in pieces:
        certain = stream.feed(piece)
        fed += len(piece)
        waiting.append(fed)
        assert certain <= fed
        while waiting and waiting[0] <= certain:
            out += stream.piece(sent, waiting[0])
            sent = waiting.pop(0)
        grown.append(len(out))
    assert out == stream.passed(sent)
    return stream, sent, out, grown


def agrees(tool: Tool, text: str, sizes: list[int], policy: Policy = SAFE) -> bool:
    """Hold a text cut into pieces to what `check` makes of the whole; returns whether anything was decided early."""
    outcome = check(tool, text, policy)
    stream, sent, out, _ = arrive(tool, cuts(text, sizes), policy)
    changed = stream.changed(0, sent)
    if outcome.status == "refused":
        assert changed or out == text[:sent]
        if changed:
            rest = spoiled(tool, stream, sent)
            assert rest is None or hopeless(tool, json.loads(out + rest))
    elif outcome.status == "accepted":
        assert not stream.changed(0, stream.certain)
        assert out == text[:sent]
    else:
        tail = stream.tail(outcome.arguments, sent, outcome.json.decode())
        assert tail is not None, f"{out!r} cannot become {outcome.arguments!r}"
        assert json.loads(out + tail) == outcome.arguments
    return changed


@settings(max_examples=800, deadline=None)
@given(texts(), SIZES, st.sampled_from(TOOLS))
def test_any_text(text: str, sizes: list[int], tool: Tool) -> None:
    """Valid, nearly valid or damaged: what is passed on is the beginning of the whole call's outcome."""
    agrees(tool, text, sizes)


@st.composite
def defects(draw: st.DrawFn) -> tuple[Tool, str]:
    """A call of a drawn schema with composed defects."""
    closed = draw(st.booleans())
    tool, truth = draw(calls(closed=closed))
    return tool, draw(broken(truth, closed)).text


@settings(max_examples=300, deadline=None)
@given(defects(), SIZES, st.sampled_from([SAFE, Policy.strict(), Policy.lenient()]))
def test_any_schema(made: tuple[Tool, str], sizes: list[int], policy: Policy) -> None:
    """The same over drawn schemas and under every policy."""
    agrees(*made, sizes, policy)


@pytest.mark.parametrize("sizes", [[1], [3], [7, 2], [10**6]])
def test_the_case_file(sizes: list[int]) -> None:
    """The same over every case, in pieces of one character, of a few, and as one."""
    early = sum(agrees(case.contract(), case.emitted, sizes) for case in bundled("cases"))
    assert early > 40


def test_every_kind_of_mutant() -> None:
    """The same over every kind of mutant; the kinds below are decided as they stream."""
    early = {
        case.failure
        for case in mutants(seed=11, count=len(KINDS) * 4, smallest=100, largest=3_000)
        if agrees(case.contract(), case.emitted, [5, 3])
    }
    assert early >= {"stringified", "number_for_text", "enum_letter_case", "extra_key_option", "null_for_optional"}


ITEM = {"oldText": "x", "newText": "y"}
LIVE: list[tuple[Tool, Any, str]] = [
    (EDIT, {"path": "a", "requireUnique": True, "edits": [ITEM]}, "an unknown key"),
    (EDIT, {"requireUnique": "first", "path": "a", "edits": [ITEM]}, "an unknown key before every other"),
    (EDIT, {"path": "a", "zzz": {"deep": [1, 2]}, "edits": [ITEM]}, "an unknown object"),
    (EDIT, {"path": "a", "edits": [{**ITEM, "cost": 0.5, "matchCase": None}, ITEM]}, "unknown keys in an item"),
    (EDIT, {"path": "a", "edits": [{"cost": "", "quux": [], **ITEM}, ITEM]}, "empty unknown keys first"),
    (EDIT, {"path": "a", "edits": [{"oldText": "x", "new_text": "y"}, ITEM]}, "a renamed key in an item"),
    (EDIT, {"path": "a", "edits": [{**ITEM, "oldText2": "p", "newText2": "q"}, ITEM]}, "numbered twins"),
    (EDIT, {"path": "a", "edits": [{**ITEM, "in_file": "a"}, ITEM]}, "a copy from further out"),
    (EDIT, {"path": "a", "edits": json.dumps([ITEM]), "note": "end"}, "a list in a string"),
    (EDIT, {"path": "a", "edits": ITEM, "note": "end"}, "one item for a list"),
    (EDIT, {"path": "a", "limit": "5", "edits": [ITEM]}, "a number in a string"),
    (EDIT, {"path": 1.10, "edits": [{"oldText": True, "newText": 3}]}, "scalars for text"),
    (EDIT, {"limit": None, "mode": "FAST", "path": "a", "edits": [ITEM]}, "null, and an enum's case"),
    (EDIT, {"path": "a", "edits": [{**ITEM, "all": "true"}, {**ITEM, "all": 0}]}, "flags"),
    (OPEN, {"command": "ls", "zzz": [1], "timeout": 1}, "data of an open object"),
]


@pytest.mark.parametrize(("tool", "value", "what"), LIVE)
def test_what_is_certain_goes_on_at_once(tool: Tool, value: Any, what: str) -> None:
    """Nothing of these calls waits for their end: with the last character every character has been passed on."""
    for text in (json.dumps(value), json.dumps(value, indent=1)):
        outcome = check(tool, text)
        stream, sent, out, _ = arrive(tool, list(text))
        assert outcome.ok
        assert sent == stream.certain == len(text), what
        assert json.loads(out) == outcome.arguments


HELD = [
    {"file_path": "a", "edits": [ITEM]},
    {"path": "a", "edits": [{**ITEM, "newText2": "q"}]},
    {"path": "a", "edits": [{**ITEM, "replaceAll": True}]},
    {"path": "a", "dry_run": True, "edits": [ITEM]},
    {"path": "a", "tests": {"edits": [ITEM]}, "edits": []},
    {"path": "a", "in_file": "b", "edits": [ITEM]},
    {"path": "a", "oldText": "x", "newText": "y"},
    {"arguments": {"path": "a", "edits": [ITEM]}},
]


@pytest.mark.parametrize("value", HELD)
def test_what_is_not_certain_waits(value: Any) -> None:
    """A key that may stand for another, or be a reason to refuse, is not left out, whatever becomes of the call."""
    text = json.dumps(value)
    stream, sent, out, _ = arrive(EDIT, list(text))
    assert stream.doubt
    assert out == text[:sent]


WORDS = "some words of a text \\n" * 4500
"""A JSON string's content, about 100 kB."""


def longest_wait(tool: Tool, text: str, value: str) -> int:
    """Of the characters of `value`, a part of a call that comes in pieces of 10, the most that waited at any time."""
    start = text.index(value)
    _, _, _, grown = arrive(tool, [text[at : at + 10] for at in range(0, len(text), 10)])
    before = grown[start // 10 - 1] if start >= 10 else 0
    return max((at + 1) * 10 - start - (grown[at] - before) for at in range(start // 10, (start + len(value)) // 10))


def places() -> Iterator[tuple[str, str]]:
    """Unknown keys around 100 kB of text: what comes, and what it is called."""
    text = f'"{WORDS}"'
    yield "behind", f'{{"path": "a", "requireUnique": true, "edits": [{{"oldText": {text}, "newText": ""}}]}}'
    yield "before", f'{{"reason": "because", "path": "a", "edits": [{{"oldText": {text}, "newText": ""}}]}}'
    yield "between", f'{{"path": "a", "edits": [{{"oldText": "x", "cost": 12, "newText": {text}}}]}}'
    yield "object", f'{{"path": "a", "zzz": {{"a": [1]}}, "edits": [{{"oldText": {text}, "newText": ""}}]}}'
    yield "list", f'{{"path": "a", "limit": "7", "edits": [{{"oldText": {text}, "newText": ""}}]}}'


@pytest.mark.parametrize(("place", "text"), list(places()))
def test_a_long_value_behind_an_unknown_key_is_not_held(place: str, text: str) -> None:
    """Of 100 kB behind an unknown key no more waits than a piece, a key and its quotes."""
    assert longest_wait(EDIT, text, WORDS) < 80, place


def test_a_long_unknown_value_is_left_out_as_it_comes() -> None:
    """An unknown megabyte is decided with every piece, so that none of its events is kept."""
    text = json.dumps({"path": "a", "reason": WORDS * 10, "edits": [ITEM]})
    stream = ArgumentStream(EDIT, policy=SAFE)
    fed = 0
    for at in range(0, len(text), 1000):
        certain = stream.feed(text[at : at + 1000])
        fed += len(text[at : at + 1000])
        assert fed - certain < 40
    assert json.loads(stream.passed(fed)) == {"path": "a", "edits": [ITEM]}


def test_a_refusal_behind_what_was_left_out() -> None:
    """Too many unknown keys refuse the call though the first were left out: what was passed on becomes no call."""
    for count in (1, 50, 51, 5000):
        value = {"path": "a", **{f"zzz{chr(97 + n % 26)}{n}q": n for n in range(count)}, "edits": [ITEM]}
        text = json.dumps(value)
        stream, sent, out, _ = arrive(EDIT, [text[at : at + 9] for at in range(0, len(text), 9)])
        outcome = check(EDIT, text)
        assert outcome.ok == (count <= 50)
        if outcome.ok:
            assert json.loads(out) == outcome.arguments
        else:
            rest = spoiled(EDIT, stream, sent)
            assert rest is not None
            assert hopeless(EDIT, json.loads(out + rest))


@pytest.mark.parametrize("depth", [50, 200, 5000])
def test_deep_nesting(depth: int) -> None:
    """A value nested deeply, unknown or in a place that takes none, ends in doubt and never raises."""
    deep = "[" * depth + "]" * depth
    for text in (
        f'{{"path": "a", "zzz": {deep}, "edits": []}}',
        f'{{"path": {deep}, "edits": []}}',
        f'{{"path": "a", "edits": [{{"oldText": "x", "old_text": {deep}}}]}}',
        json.dumps({"path": "a", "edits": deep}),
    ):
        assert agrees(EDIT, text, [100]) in (True, False)
