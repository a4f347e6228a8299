"""What the shell does to every command: a file that is not there, a reader that goes away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "words",
    [
        ["parse", "--tools", "nowhere.json"],
        ["unpack", "nowhere.json"],
        ["serve", "--config", "nowhere.json"],
        ["serve", "--script", "nowhere.json"],
    ],
    ids=" ".join,
)
def test_a_missing_file(words: list[str], tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "onspec", *words], cwd=tmp_path, input="x", capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "onspec: nowhere.json: no such file or directory\n"


@pytest.mark.parametrize("words", [["parse", "--list"], ["demo", "--no-model"]], ids=" ".join)
def test_a_reader_that_goes_away_is_no_refusal(words: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "onspec", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as ran:
        assert ran.stdout is not None
        assert ran.stderr is not None
        ran.stdout.close()
        assert ran.stderr.read() == b""
    assert ran.returncode == 141
