"""`onspec demo` runs every bundled case, says what became of each, and ends with the score."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import onspec.cli.demo
from onspec.cli.cases import Case, bundled
from onspec.cli.demo import demo


def _onspec(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "onspec", *arguments, "--no-model"]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)


def test_the_demo_ends_with_the_score_of_onspec_and_its_peers() -> None:
    run = _onspec("demo")
    assert run.returncode == 0, run.stderr
    rows = len(bundled("article")) + len(bundled("cases"))
    score = run.stdout[run.stdout.rindex(f"{rows} calls") :]
    assert score.splitlines()[1].split() == ["onspec", str(rows), "0", "0"]
    assert "json_repair with schema" in score
    assert "\x1b" not in run.stdout


def test_every_call_is_shown_with_its_outcome() -> None:
    text = _onspec("demo").stdout
    for case in bundled("article") + bundled("cases"):
        assert f"\n{case.id}  " in text
    assert "drop_unknown_key /edits/0/requireUnique: true removed" in text
    assert "edit was not run." in text


@pytest.mark.parametrize("width", ["20", "40", "200"])
def test_no_line_is_wider_than_the_terminal(width: str) -> None:
    lines = _onspec("demo", "--only", "article", COLUMNS=width).stdout.splitlines()
    indented = [line for line in lines if line.startswith("      ")]
    assert indented
    assert max(map(len, indented)) <= max(int(width), 26)


def test_output_that_cannot_be_encoded_is_escaped() -> None:
    run = _onspec("demo", PYTHONIOENCODING="ascii")
    assert run.returncode == 0, run.stderr


def test_nothing_that_a_terminal_obeys_is_printed() -> None:
    text = _onspec("demo").stdout
    assert all(char.isprintable() or char == "\n" for char in text)


def test_json_holds_rows_totals_and_peers() -> None:
    document = json.loads(_onspec("demo", "--json").stdout)
    assert len(document["rows"]) == len(bundled("article")) + len(bundled("cases"))
    assert {row["status"] for row in document["rows"]} == {"accepted", "repaired", "refused"}
    assert all(row["feedback"] for row in document["rows"] if row["status"] == "refused")
    assert all(row["repairs"] for row in document["rows"] if row["status"] == "repaired")
    assert document["totals"]["article"] == {"right": 17, "refused": 0, "wrong": 0}
    assert document["peers"]["systems"][0]["name"] == "onspec"


def test_only_one_file() -> None:
    document = json.loads(_onspec("demo", "--json", "--only", "article").stdout)
    assert {row["group"] for row in document["rows"]} == {"article"}


def test_a_call_executed_wrongly_is_exit_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("x1", "sound", "t", {"type": "object"}, "{}", "refuse")
    monkeypatch.setattr(onspec.cli.demo, "bundled", lambda name: [case])
    run = CliRunner().invoke(demo, ["--no-model"])
    assert run.exit_code == 1
    assert "EXECUTED WRONGLY" in run.output


def test_the_scores_shown_were_measured_on_these_files() -> None:
    path = Path(onspec.cli.demo.__file__).parent.parent / "data" / "peers.json"
    figures = json.loads(path.read_bytes())
    assert figures["rows"]["article"] == len(bundled("article"))
    assert figures["rows"]["cases"] == len(bundled("cases"))
    for system in figures["systems"]:
        for group, rows in figures["rows"].items():
            assert sum(system[group].values()) == rows
