"""A file that is not there is named in one line, whichever command was to read or write it."""

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
