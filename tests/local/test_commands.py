"""The commands: what they print, and how they end when used wrongly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from onspec.cli.generate import generate
from onspec.cli.model import model
from onspec.cli.pressure import pressure
from onspec.errors import OnspecError

TOOLS = [
    {
        "name": "read",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    }
]
HISTORY = {
    "tools": TOOLS,
    "messages": [
        {"role": "user", "content": "see a"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "first", "signature": "s"},
                {"type": "tool_use", "id": "1", "name": "read", "input": {"path": "a", "in_file": True}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "is_error": True, "content": "no"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "2", "name": "read", "input": {"path": "a"}}]},
    ],
}


def _file(folder: Path, name: str, content: Any) -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_generate_prints_a_call_that_keeps_its_contract(tmp_path: Path, tiny_path: Path) -> None:
    tools = _file(tmp_path, "tools.json", TOOLS)
    line = ["hi", "--tools", tools, "--choice", "read", "--model", str(tiny_path), "--context", "512"]
    done = CliRunner().invoke(generate, [*line, "--max-tokens", "120", "--seed", "1", "--json"])
    found = json.loads(done.output)
    assert found["calls"][0]["name"] == "read"
    assert done.exit_code == (0 if found["calls"][0]["status"] == "accepted" else 1)


def test_pressure_measures_every_arm(tmp_path: Path, tiny_path: Path) -> None:
    page = tmp_path / "page.html"
    line = [_file(tmp_path, "request.json", HISTORY), "--model", str(tiny_path), "--context", "512", "--draws", "3"]
    line += ["--max-tokens", "60", "--without", "failures", "--without", "thinking", "--html", str(page), "--json"]
    done = CliRunner().invoke(pressure, line, catch_exceptions=False)
    arms = json.loads(done.stdout)
    assert [arm["arm"] for arm in arms] == ["as it is", "without failed calls", "without thinking"]
    assert "".join(position["text"] for position in arms[0]["positions"]).endswith("</tool_call>")
    assert arms[0]["valid"]["draws"] == 3
    assert page.read_text().count("<h2>") == 3


def test_pressure_draws_the_call_in_a_terminal(tmp_path: Path, tiny_path: Path) -> None:
    line = [_file(tmp_path, "request.json", HISTORY), "--model", str(tiny_path), "--context", "512"]
    done = CliRunner().invoke(pressure, line, catch_exceptions=False)
    assert done.exit_code == 0
    assert '"path"' in done.output
    assert "text_outside" in done.output


@pytest.mark.parametrize(
    ("history", "options"),
    [
        ("{", []),
        ({"messages": []}, []),
        ({"messages": "x", "tools": TOOLS}, []),
        ({"messages": [{"role": "user", "content": "x"}], "tools": TOOLS}, []),
        (HISTORY, ["--call", "7"]),
        (HISTORY, ["--call", "0"]),
        (HISTORY, ["--context", "64"]),
    ],
)
def test_a_wrong_use_is_told_in_one_line(tmp_path: Path, tiny_path: Path, history: Any, options: list[str]) -> None:
    """Through `main`, each of these is one line and exit status 2."""
    line = [_file(tmp_path, "request.json", history), "--model", str(tiny_path), "--context", "512", *options]
    done = CliRunner().invoke(pressure, line)
    assert done.exit_code == 2 or isinstance(done.exception, OnspecError)


def test_models_are_listed() -> None:
    rows = json.loads(CliRunner().invoke(model, ["list", "--json"]).output)
    assert {row["name"] for row in rows} == {"smollm2", "gemma3-270m"}
    assert all(row["licence"] for row in rows)
    assert CliRunner().invoke(model, ["add", "nope"]).exit_code == 2
