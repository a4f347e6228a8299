"""The commands: what they print, and how they end when used wrongly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from onspec.cli.generate import generate
from onspec.cli.history import last_messages, read_history
from onspec.cli.model import model
from onspec.cli.pressure import pressure
from onspec.errors import InputError, OnspecError

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


@pytest.mark.parametrize("size", ["1", "5", "10"])
def test_generate_refuses_a_budget_that_holds_no_call(tmp_path: Path, tiny_path: Path, size: str) -> None:
    tools = _file(tmp_path, "tools.json", TOOLS)
    line = ["hi", "--tools", tools, "--choice", "required", "--model", str(tiny_path), "--context", "512"]
    done = CliRunner().invoke(generate, [*line, "--max-tokens", size, "--seed", "1"])
    assert isinstance(done.exception, OnspecError)
    least = str(done.exception).rsplit("give it ", 1)[1].removesuffix(" or more")
    done = CliRunner().invoke(generate, [*line, "--max-tokens", least, "--seed", "1", "--json"])
    found = json.loads(done.stdout)
    assert found["tokens"] <= int(least)
    assert len(found["calls"]) == 1


def test_generate_says_when_a_call_that_must_come_does_not(tmp_path: Path, tiny_path: Path) -> None:
    tools = _file(tmp_path, "tools.json", TOOLS)
    line = ["hi", "--tools", tools, "--choice", "required", "--free", "--model", str(tiny_path), "--context", "512"]
    done = CliRunner().invoke(generate, [*line, "--max-tokens", "2", "--seed", "1"])
    assert done.exit_code == 1
    assert "a call was required, and the model made none" in done.output


def test_generate_wants_a_conversation(tmp_path: Path, tiny_path: Path) -> None:
    empty = _file(tmp_path, "messages.json", [])
    done = CliRunner().invoke(generate, ["--messages", empty, "--model", str(tiny_path)])
    assert isinstance(done.exception, InputError)
    assert "no message" in str(done.exception)


def test_pressure_looks_for_the_folder_of_its_page_first(tmp_path: Path) -> None:
    line = [_file(tmp_path, "request.json", HISTORY), "--model", "no such model"]
    done = CliRunner().invoke(pressure, [*line, "--html", str(tmp_path / "nowhere" / "page.html")])
    assert isinstance(done.exception, InputError)
    assert str(done.exception).endswith("nowhere: no such folder")


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


SESSIONS = Path(__file__).parent.parent / "transcripts" / "sessions"


@pytest.mark.parametrize(
    ("name", "number", "tool", "tools", "messages"),
    [
        ("claude-code.jsonl", 0, "Read", {"Read"}, 2),
        ("codex.jsonl", 0, "exec_command", {"exec_command"}, 2),
        ("pi-v3.jsonl", 0, "read", {"read", "bash", "edit"}, 3),
        ("qwen.jsonl", -1, "read_file", {"read_file"}, 4),
        ("opencode-run.jsonl", 0, "read", {"read"}, 1),
        ("opencode.db", 0, "read", {"read", "edit", "bash"}, 2),
        ("openhands-sdk.jsonl", -1, "execute_bash", {"str_replace_editor", "execute_bash"}, 4),
        ("nemo-gym.jsonl", -1, "view", {"view"}, 6),
        ("openai-request.json", -1, "add", {"add"}, 5),
    ],
)
def test_a_call_of_a_session_is_cut_out_with_the_tools_of_its_agent(
    name: str, number: int, tool: str, tools: set[str], messages: int
) -> None:
    """Recorded tools are taken where the file has them, else those that the session calls of the known agent."""
    cut, found = read_history(SESSIONS / name, None, number)
    assert f'"name": "{tool}"' in cut.call
    assert tools <= {one.name for one in found}
    assert len(cut.messages) == messages
    shorter = last_messages(cut, 1)
    assert len(shorter.messages) <= 2 or shorter.messages[0].role == "system"
    assert shorter.messages[-1] == cut.messages[-1]


@pytest.mark.parametrize(
    ("name", "number", "message"),
    [
        ("claude-code.jsonl", 9999, "there is no number 9999"),
        ("copilot.jsonl", 0, "are not known"),
        ("pi-v3.jsonl", -1, "no tool search_web that is known"),
        ("swe-agent.traj", 0, "no JSON arguments"),
    ],
)
def test_a_session_that_cannot_be_measured_is_told_why(name: str, number: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_history(SESSIONS / name, None, number)


def test_pressure_reads_the_session_of_an_agent(tiny_path: Path) -> None:
    line = [str(SESSIONS / "claude-code.jsonl"), "--call", "0", "--turns", "1", "--model", str(tiny_path), "--json"]
    done = CliRunner().invoke(pressure, [*line, "--context", "16000"], catch_exceptions=False)
    (arm,) = json.loads(done.stdout)
    assert "".join(position["text"] for position in arm["positions"]).endswith("</tool_call>")


def test_models_are_listed() -> None:
    rows = json.loads(CliRunner().invoke(model, ["list", "--json"]).output)
    assert {row["name"] for row in rows} == {"smollm2", "gemma3-270m"}
    assert all(row["licence"] for row in rows)
    assert CliRunner().invoke(model, ["add", "nope"]).exit_code == 2


@pytest.mark.parametrize("command", [pressure, generate])
def test_a_seed_below_zero_is_a_wrong_use(command: Any, tiny_path: Path) -> None:
    """Random number generators take none."""
    first = [str(tiny_path)] if command is pressure else ["hi"]
    result = CliRunner().invoke(command, [*first, "--model", str(tiny_path), "--seed", "-1"])
    assert result.exit_code == 2
    assert "seed" in result.output
