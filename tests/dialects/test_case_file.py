"""The rows of a case file outside the project, where `ONSPEC_CASES` names the folder that holds it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.dialect_cases import score

FOLDER = os.environ.get("ONSPEC_CASES")
needs_cases = pytest.mark.skipif(not FOLDER, reason="ONSPEC_CASES is not set")


@needs_cases
def test_the_case_file_comes_out_exactly() -> None:
    """Every row is exact where the dialect is named, and no wrong call runs."""
    scores = score(Path(str(FOLDER)) / "dialects.jsonl")
    assert {name: one.missed for name, one in scores.items() if one.missed} == {}
    assert sum(one.wrong for one in scores.values()) == 0


@needs_cases
def test_no_wrong_call_runs_without_the_dialects_name() -> None:
    scores = score(Path(str(FOLDER)) / "dialects.jsonl", auto=True)
    assert sum(one.wrong for one in scores.values()) == 0
    assert sum(one.exact for one in scores.values()) >= 0.96 * sum(one.rows for one in scores.values())
