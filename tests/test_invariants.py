"""The invariants of onspec, each as a property over generated schemas, values and composed defects."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import jsonschema_rs
from hypothesis import assume, given
from hypothesis import strategies as st

from onspec import Outcome, Policy, Tool, check
from onspec.repair.replay import replay
from onspec.repair.rules import RULES
from tests.strategies import JUNK, broken, calls, object_schemas, texts, values, written

READ_ONLY = Tool("read", True, effect="read")


@st.composite
def sound(draw: st.DrawFn) -> tuple[Tool, dict[str, Any], str]:
    tool, value = draw(calls())
    return tool, value, draw(written(value))


@st.composite
def faulty(draw: st.DrawFn) -> tuple[Tool, Any]:
    closed = draw(st.booleans())
    tool, value = draw(calls(closed=closed))
    return tool, draw(broken(value, closed))


def leaves(value: Any) -> list[str]:
    """The string leaves of a value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, list) else []


def same(one: Any, two: Any) -> bool:
    """Equal as JSON, with true and 1 apart, 1 and 1.0 one."""
    if isinstance(one, bool) or isinstance(two, bool):
        return one is two
    if isinstance(one, dict):
        return isinstance(two, dict) and one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return isinstance(two, list) and len(one) == len(two) and all(map(same, one, two))
    return (type(one) is type(two) and one == two) or (isinstance(one, int | float) and one == two)


@given(sound())
def test_accepted_means_untouched(case: tuple[Tool, dict[str, Any], str]) -> None:
    tool, value, text = case
    outcome = check(tool, text)
    assert outcome.status == "accepted", outcome.violations
    assert outcome.json == text.encode()
    assert same(outcome.arguments, value)
    assert outcome.repairs == ()
    assert outcome.violations == ()


@given(sound())
def test_text_bytes_and_objects_are_judged_alike(case: tuple[Tool, dict[str, Any], str]) -> None:
    tool, value, text = case
    for given_as in (text.encode(), value):
        outcome = check(tool, given_as)
        assert outcome.status == "accepted"
        assert same(outcome.arguments, value)


@given(faulty())
def test_repaired_means_valid_and_what_was_meant(case: tuple[Tool, Any]) -> None:
    tool, spoilt = case
    outcome = check(tool, spoilt.text)
    if outcome.ok:
        assert tool.schema is not None
        jsonschema_rs.validate(tool.schema.document, outcome.arguments)
        extra = outcome.arguments.keys() - spoilt.truth.keys()
        assert not extra & tool.views.names
        assert same({k: v for k, v in outcome.arguments.items() if k not in extra}, spoilt.truth), outcome.repairs


@given(faulty())
def test_payload_is_sacred(case: tuple[Tool, Any]) -> None:
    tool, spoilt = case
    outcome = check(tool, spoilt.text)
    if outcome.ok:
        coerced = [r.after for r in outcome.repairs if RULES[r.rule].cls == "scalars"]
        known = {*leaves(spoilt.truth), *spoilt.added, *(item for item in coerced if isinstance(item, str))}
        assert set(leaves(outcome.arguments)) <= known


@given(faulty())
def test_the_audit_is_complete(case: tuple[Tool, Any]) -> None:
    tool, spoilt = case
    outcome = check(tool, spoilt.text)
    if outcome.ok:
        assert same(replay(outcome.raw, outcome.repairs), outcome.arguments)
        size = len(outcome.raw)
        assert all(0 <= repair.span[0] <= repair.span[1] <= size for repair in outcome.repairs)


@given(faulty())
def test_a_repaired_call_is_accepted(case: tuple[Tool, Any]) -> None:
    tool, spoilt = case
    outcome = check(tool, spoilt.text)
    if outcome.ok:
        again = check(tool, outcome.json)
        assert again.status == "accepted"
        assert same(again.arguments, outcome.arguments)


@given(faulty(), st.sets(st.sampled_from(sorted(RULES))), st.sets(st.sampled_from(sorted(RULES))))
def test_policies_nest(case: tuple[Tool, Any], some: set[str], more: set[str]) -> None:
    tool, spoilt = case
    narrow, wide = Policy.of(*some), Policy.of(*some, *more)
    ladder = [Policy.strict(), narrow, wide, Policy.of(*RULES)]
    outcomes = [check(tool, spoilt.text, policy) for policy in ladder]
    assert outcomes[0].status != "repaired"
    for less, greater in pairwise(outcomes):
        if less.ok:
            assert greater.status == less.status
            assert same(greater.arguments, less.arguments)
            assert greater.repairs == less.repairs
    for policy, outcome in zip(ladder, outcomes, strict=True):
        assert {repair.rule for repair in outcome.repairs} <= policy.rules


@given(calls(closed=True), st.sampled_from(JUNK), texts)
def test_two_values_for_one_key_are_refused(case: tuple[Tool, dict[str, Any]], key: str, text: str) -> None:
    tool, value = case
    assume(value)
    name = next(iter(value))
    other = json.dumps([value[name], key + text])
    body = json.dumps(value)
    outcome = check(tool, body[:-1] + f", {json.dumps(name)}: {other}}}")
    assert outcome.status == "refused"


@given(calls(), calls())
def test_two_calls_in_one_are_refused(one: tuple[Tool, dict[str, Any]], two: tuple[Tool, dict[str, Any]]) -> None:
    tool, value = one
    assume(value and two[1] and not same(value, two[1]))
    assert check(tool, json.dumps(value) + json.dumps(two[1])).status == "refused"


@given(calls(), st.data())
def test_a_cut_call_never_loses_its_tail(case: tuple[Tool, dict[str, Any]], data: st.DataObject) -> None:
    """However a call is cut, what runs holds every value that was begun, whole."""
    tool, value = case
    text = json.dumps(value, ensure_ascii=False)
    cut = data.draw(st.integers(1, len(text) - 1))
    outcome = check(tool, text[:cut])
    if outcome.ok:
        for name, item in outcome.arguments.items():
            assert same(item, value[name]) or (isinstance(item, list | dict) and item_of(item, value[name]))
    assert check(tool, text[:cut], finish_reason="length").status == "refused"


def item_of(part: Any, whole: Any) -> bool:
    """Whether a value is the start of another, with every leaf whole."""
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(same(a, b) or item_of(a, b) for a, b in zip(part, whole, strict=False))
    if isinstance(part, dict) and isinstance(whole, dict):
        return part.keys() <= whole.keys() and all(same(i, whole[k]) or item_of(i, whole[k]) for k, i in part.items())
    return False


MARKS = (
    "{",
    "}",
    "[",
    "]",
    '"',
    ":",
    ",",
    "\\",
    "\n",
    "'",
    "“",
    "null",
    "NaN",
    "1e999",
    "-",
    "0",
    "</a>",
    "```",
    "\ud800",
)


@given(object_schemas(), st.lists(st.one_of(st.sampled_from(MARKS), st.text(max_size=4)), max_size=20).map("".join))
def test_what_a_model_writes_never_raises(schema: dict[str, Any], text: str) -> None:
    tool = Tool("tool", schema)
    for policy in (Policy.strict(), Policy.safe(), Policy.lenient()):
        outcome = check(tool, text, policy)
        judged(outcome)


@given(object_schemas(), st.binary(max_size=40))
def test_no_bytes_raise(schema: dict[str, Any], raw: bytes) -> None:
    judged(check(Tool("tool", schema), raw))


@given(object_schemas(), st.data())
def test_no_value_raises(schema: dict[str, Any], data: st.DataObject) -> None:
    """Arguments made for another schema are refused or repaired, never raise, and never lose a string in silence."""
    other = data.draw(object_schemas())
    value = data.draw(values(other))
    outcome = check(Tool("tool", schema), json.dumps(value))
    judged(outcome)


def judged(outcome: Outcome) -> None:
    """Every outcome is whole: arguments or violations, feedback or none, a document that can be printed."""
    assert outcome.ok == (outcome.arguments is not None)
    assert outcome.ok != bool(outcome.violations)
    assert bool(outcome.feedback()) != outcome.ok
    json.dumps(outcome.to_dict())
    if outcome.ok:
        assert same(replay(outcome.raw, outcome.repairs), outcome.arguments)
    else:
        assert json.loads(outcome.feedback("json"))["violations"]
