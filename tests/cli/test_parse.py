"""`onspec parse --tools` with known tools by name."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from onspec.cli.parse import parse

ARGUMENTS = '{"path": "a.py", "edits": [{"oldText": "a", "newText": "b"}]}'
CALL = f'<tool_call>{{"name": "edit", "arguments": {ARGUMENTS}}}</tool_call>'


@pytest.mark.parametrize("names", ["pi/edit", "pi/read,pi/edit", "pi/read, nested/edit"])
def test_known_tools(names: str) -> None:
    done = CliRunner().invoke(parse, ["--tools", names, "--json"], input=CALL)
    told = json.loads(done.stdout)
    assert done.exit_code == 0
    assert [(call["name"], call["status"]) for call in told["calls"]] == [("edit", "accepted")]


@pytest.mark.parametrize(
    ("names", "says"), [("pi/edti", "nearest: pi/edit"), ("pi/edit,pi/edit", "two tools"), ("a/b/c", "no such file")]
)
def test_mistakes(names: str, says: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "onspec", "parse", "--tools", names],
        input="x",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
