"""`--explain` marks the very characters that were changed, whatever the width of the terminal."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from rich.cells import cell_len

from onspec import Tool, check
from onspec.cli.explain import explain

TEXT: dict[str, Any] = {"type": "string"}
TOOL = Tool(
    "save",
    {
        "type": "object",
        "properties": {"path": TEXT, "content": TEXT},
        "required": ["path", "content"],
        "additionalProperties": False,
    },
)
LONG = "日本語 text, " * 200
CALLS = (
    ('{"path": "a", "content": "日本\n語", "odd": true}', ["\\n", '"odd": true']),
    (json.dumps({"file_path": "a", "content": LONG}, ensure_ascii=False) + "</invoke>", ['"file_path"', "</invoke>"]),
    (json.dumps({"content": LONG, "path": "a", "odd": "q" * 3000}, ensure_ascii=False), []),
    ("```json\n" + json.dumps({"path": "é" * 50, "content": ""}) + "\n```", []),
)


@pytest.mark.parametrize("columns", [10, 40, 80, 300])
@pytest.mark.parametrize(("written", "marked"), CALLS)
def test_the_marks_stand_below_what_changed(
    written: str, marked: list[str], columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    outcome = check(TOOL, written)
    assert outcome.status == "repaired"
    explain(outcome)
    lines = capsys.readouterr().out.splitlines()
    found = []
    for line, marks in pairwise(lines):
        if set(marks) == {" ", "^"}:
            assert cell_len(line) <= max(columns, 40)
            cells = [char for char in line for _ in range(cell_len(char))]
            found.append("".join(cells[marks.index("^") : len(marks)]))
    assert len(found) == len(outcome.repairs)
    for text in marked:
        assert any(text in one for one in found), found


def test_a_rule_is_explained_once(capsys: pytest.CaptureFixture[str]) -> None:
    explain(check(TOOL, '{"path": "a", "content": "x\ny\nz"}'))
    assert capsys.readouterr().out.count("A raw newline, tab") == 1
