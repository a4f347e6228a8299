"""Mutants are what they claim to be, and none is executed wrongly."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice

import pytest
from benchmarks.defects import TEXT_KINDS, VALUE_KINDS
from benchmarks.mutants import KINDS, mutants

from onspec import check
from onspec.cli.cases import Case, same

SMALL = list(mutants(seed=7, count=len(KINDS) * 12, smallest=100, largest=4_000))


def test_there_are_many_kinds_and_each_is_drawn() -> None:
    assert len(KINDS) == len(VALUE_KINDS) + len(TEXT_KINDS) + 1 >= 60
    assert Counter(case.failure for case in SMALL) == dict.fromkeys(KINDS, 12)
    assert len({case.tool for case in SMALL}) >= 6


def test_the_same_seed_gives_the_same_mutants() -> None:
    assert list(mutants(7, 130, 100, 4_000)) == SMALL[:130]
    assert list(islice(mutants(8, 130, 100, 4_000), 130)) != SMALL[:130]


def test_sizes_reach_a_megabyte() -> None:
    sizes = [len(case.emitted.encode()) for case in mutants(3, 40)]
    assert min(sizes) < 2_000
    assert max(sizes) > 400_000


@pytest.mark.parametrize("kind", KINDS)
def test_the_truth_is_valid_and_the_spoilt_call_is_not(kind: str) -> None:
    for case in SMALL:
        if case.failure != kind:
            continue
        tool = case.contract()
        truths = [one["arguments"] for one in case.acceptable if "arguments" in one]
        for truth in truths + ([] if case.outcome == "refuse" else [case.arguments]):
            assert tool.is_valid(truth)
        if case.outcome == "accept":
            assert same(json.loads(case.emitted), case.arguments)
        if case.outcome == "repair":
            try:
                value = json.loads(case.emitted)
            except ValueError:
                continue
            # Only a repeated key of equal values is invisible to a plain parser.
            assert kind in ("repeated_key", "composed") or not tool.is_valid(value)


def _verdicts(cases: list[Case]) -> Counter[str]:
    found: Counter[str] = Counter()
    for case in cases:
        outcome = check(case.contract(), case.emitted, finish_reason=case.finish_reason)
        found[case.judge(outcome.ok, outcome.arguments)] += 1
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_no_mutant_is_executed_wrongly(kind: str) -> None:
    found = _verdicts([case for case in SMALL if case.failure == kind])
    assert found["wrong"] == 0, found


def test_nearly_all_mutants_are_right() -> None:
    found = _verdicts(SMALL)
    assert found["right"] >= 0.98 * len(SMALL), found
