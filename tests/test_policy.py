"""Policies: named, custom, per tool, per path."""

from __future__ import annotations

import pytest

from onspec import Policy, Tool, check
from onspec.errors import PolicyError
from onspec.repair.rules import RULES

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "inner": {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False},
    },
    "additionalProperties": False,
}


def test_names() -> None:
    assert Policy.named("strict").rules == frozenset()
    assert Policy.named("safe").rules == {name for name, rule in RULES.items() if rule.cls != "content"}
    assert Policy.named("lenient").rules == set(RULES)
    with pytest.raises(PolicyError, match="strict, safe and lenient"):
        Policy.named("wild")


def test_a_rule_that_does_not_exist() -> None:
    for make in (
        lambda: Policy.of("no_such"),
        lambda: Policy.safe().without("no_such"),
        lambda: Policy.safe().with_("x"),
    ):
        with pytest.raises(PolicyError, match="no rule is named"):
            make()


@pytest.mark.parametrize("place", ["edits", "edits/*/newText", "newText"])
def test_a_place_that_nothing_can_match(place: str) -> None:
    with pytest.raises(PolicyError, match="a place begins with /"):
        Policy.safe().for_path(place, [])


@pytest.mark.parametrize("place", ["", "*", "/edits", "*/newText", "/edits/*/newText"])
def test_a_place_that_something_can_match(place: str) -> None:
    assert place in Policy.safe().for_path(place, []).paths


def test_rule_by_rule() -> None:
    tool = Tool("t", SCHEMA)
    assert check(tool, '{"n": "5"}', Policy.of("coerce_string_to_number")).ok
    assert not check(tool, '{"n": "5"}', Policy.safe().without("coerce_string_to_number")).ok
    assert check(tool, '{"n": "5"}', Policy.strict().with_("coerce_string_to_number")).ok


def test_per_tool() -> None:
    policy = Policy.safe().for_tool("t", ["trailing_comma"])
    assert not check(Tool("t", SCHEMA), '{"n": "5"}', policy).ok
    assert check(Tool("t", SCHEMA), '{"n": 5,}', policy).ok
    assert check(Tool("other", SCHEMA), '{"n": "5"}', policy).ok


def test_per_path() -> None:
    policy = Policy.safe().for_path("/inner", [])
    assert check(Tool("t", SCHEMA), '{"n": "5"}', policy).ok
    assert not check(Tool("t", SCHEMA), '{"inner": {"n": "5"}}', policy).ok
    assert not check(Tool("t", SCHEMA), '{"inner": "{}"}', policy).ok
    loose = Policy.strict().for_path("/inner/*", ["coerce_string_to_number"])
    assert check(Tool("t", SCHEMA), '{"inner": {"n": "5"}}', loose).ok
    assert not check(Tool("t", SCHEMA), '{"n": "5"}', loose).ok


def test_the_search_does_not_look_at_the_policy() -> None:
    """A forbidden cheapest repair is a refusal, never a detour over a dearer one."""
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}
    text = '{"a": "[\\"x\\"]"}'
    assert check(Tool("t", schema), text).arguments == {"a": ["x"]}
    assert not check(Tool("t", schema), text, Policy.safe().without("decode_stringified")).ok
