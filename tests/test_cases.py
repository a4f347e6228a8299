"""Every case that comes with onspec has its right outcome, and the case files hold what they claim."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from onspec import check
from onspec.cli.cases import Case, bundled, read, same
from onspec.errors import InputError

CASES = bundled("article") + bundled("cases")
STATUS = {"accept": "accepted", "repair": "repaired", "refuse": "refused"}


def _right(case: Case) -> None:
    outcome = check(case.contract(), case.emitted, finish_reason=case.finish_reason)
    verdict = case.judge(outcome.ok, outcome.arguments)
    assert verdict == "right", (verdict, outcome.status, outcome.arguments, outcome.repairs, outcome.violations)
    allowed = {STATUS[case.outcome]} | {STATUS[one["outcome"]] for one in case.acceptable}
    assert outcome.status in allowed
    assert bool(outcome.repairs) == (outcome.status == "repaired")
    assert bool(outcome.violations) == (outcome.status == "refused")


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_the_outcome_is_right(case: Case) -> None:
    _right(case)


def _strict(text: str) -> Any:
    """The value of strict JSON without repeated keys, non-finite numbers or lone surrogates; None where it is not."""

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in members}) < len(members):
            raise ValueError("repeated key")
        return dict(members)

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=refuse)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return None
    return value


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_the_row_is_consistent(case: Case) -> None:
    tool = case.contract()
    value = _strict(case.emitted)
    fits = isinstance(value, dict) and tool.is_valid(value)
    assert case.failure
    if case.outcome == "accept":
        assert fits
        assert same(value, case.arguments)
        assert not case.repairs
    elif case.outcome == "repair":
        assert not fits
        assert tool.is_valid(case.arguments)
        assert case.repairs
    else:
        assert case.arguments is None
    for one in case.acceptable:
        if one["outcome"] == "repair":
            assert tool.is_valid(one["arguments"])


def test_the_files_are_whole() -> None:
    assert len(bundled("article")) == 17
    assert len(bundled("cases")) >= 130
    assert len({case.id for case in CASES}) == len(CASES)
    assert len({case.failure for case in bundled("cases")}) >= 50
    assert {case.outcome for case in CASES} == {"accept", "repair", "refuse"}


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (22, 22.0, True),
        (9007199254740993, 9007199254740992.0, False),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1, 2], [2, 1], False),
        ("1", 1, False),
        ("e\u0301", "\u00e9", False),
        ([True], [1], False),
    ],
)
def test_values_are_compared_as_json(left: Any, right: Any, equal: bool) -> None:
    assert same(left, right) is equal
    assert same(right, left) is equal


def test_judgement() -> None:
    schema = {"type": "object"}
    repair = Case("x", "f", "t", schema, '{"a":1}', "repair", {"a": 1})
    assert repair.judge(True, {"a": 1}) == "right"
    assert repair.judge(True, {"a": 2}) == "wrong"
    assert repair.judge(False, None) == "refused"
    refuse = Case("x", "f", "t", schema, '{"a":1}', "refuse", acceptable=({"outcome": "accept"},))
    assert refuse.judge(False, None) == "right"
    assert refuse.judge(True, {"a": 1}) == "right"
    assert refuse.judge(True, {"a": 2}) == "wrong"
    open_end = Case("x", "f", "t", schema, '{"a":1}', "refuse", acceptable=({"outcome": "repair", "code": "rule"},))
    assert open_end.judge(True, {"a": 1}) == "wrong"


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"id": "x", "expected": 3}', "nul"])
def test_a_broken_case_file_names_the_line(line: str) -> None:
    with pytest.raises(InputError, match=r"mine\.jsonl, line 2"):
        list(read(["", line], "mine.jsonl"))


@pytest.mark.skipif("ONSPEC_CASES" not in os.environ, reason="ONSPEC_CASES is not set")
def test_case_files_from_elsewhere() -> None:
    path = Path(os.environ["ONSPEC_CASES"]) / "json_arguments.jsonl"
    wrong: dict[str, str] = {}
    for case in read(path.read_bytes().split(b"\n"), path.name):
        outcome = check(case.contract(), case.emitted, finish_reason=case.finish_reason)
        verdict = case.judge(outcome.ok, outcome.arguments)
        if verdict != "right":
            wrong[case.id] = f"{verdict}: {outcome.status} {outcome.arguments}"
    assert not wrong
