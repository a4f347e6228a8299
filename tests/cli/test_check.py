"""`onspec check` as a user runs it: a real process, its output, its exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["path"],
    "additionalProperties": False,
}
FORMS: dict[str, Any] = {
    "anthropic": {"name": "read", "description": "d", "input_schema": SCHEMA},
    "chat": {"type": "function", "function": {"name": "read", "parameters": SCHEMA}},
    "responses": {"type": "function", "name": "read", "parameters": SCHEMA},
    "gemini": {
        "functionDeclarations": [
            {
                "name": "read",
                "parameters": {
                    "type": "OBJECT",
                    "properties": {"path": {"type": "STRING"}, "limit": {"type": "INTEGER"}},
                    "required": ["path"],
                },
            }
        ]
    },
    "mcp": {"name": "read", "inputSchema": SCHEMA},
    "list": [{"name": "read", "input_schema": SCHEMA}],
    "request": {"model": "m", "tools": [{"name": "read", "input_schema": SCHEMA}], "messages": []},
    "schema": SCHEMA,
}


def onspec(*words: str, given: str | bytes = "") -> subprocess.CompletedProcess[bytes]:
    raw = given.encode() if isinstance(given, str) else given
    return subprocess.run([sys.executable, "-m", "onspec", *words], input=raw, capture_output=True, check=False)


@pytest.fixture
def tool(tmp_path: Path) -> str:
    path = tmp_path / "read.json"
    path.write_text(json.dumps(FORMS["anthropic"]))
    return str(path)


@pytest.mark.parametrize("form", FORMS)
def test_a_tool_in_any_form(form: str, tmp_path: Path) -> None:
    path = tmp_path / "read.json"
    path.write_text(json.dumps(FORMS[form]))
    done = onspec("check", "--tool", str(path), "--json", given='{"file_path": "a", "limit": "5"}')
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["status"] == "repaired"
    assert document["arguments"] == {"path": "a", "limit": 5}
    assert [row["rule"] for row in document["repairs"]] == ["alias_key", "coerce_string_to_number"]
    assert set(document["repairs"][0]) == {"rule", "path", "before", "after", "span"}
    assert document["violations"] == []
    assert document["feedback"] is None


def test_statuses_and_exit_codes(tool: str, tmp_path: Path) -> None:
    call = tmp_path / "call.json"
    for text, status, code in (
        ('{"path": "a"}\n', "accepted", 0),
        ('{"path": "a",}\r\n', "repaired", 0),
        ('{"limit": 1}', "refused", 1),
        ("", "refused", 1),
    ):
        call.write_text(text, newline="")
        done = onspec("check", "--tool", tool, "--json", str(call))
        assert (json.loads(done.stdout)["status"], done.returncode) == (status, code)
    accepted = onspec("check", "--tool", tool, given='{ "path" : "é" }\n')
    assert accepted.stdout.decode() == '{ "path" : "é" }\n'


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name the tool"),
        (["--tool", "none.json"], "no such file"),
        (["--tool", "nobody/edit-it"], "no known tool"),
        (["--tool", "pi/edit", "missing-call.json"], "missing-call.json"),
        (["--tool", "pi/edit", "--policy", "wild"], "wild"),
        (["--tool", "pi/edit", "--alias", "x"], "OTHER=KEY"),
        (["--tool", "pi/edit", "--effect", "fly"], "fly"),
        (["--tool", "pi/edit", "--batch", "-"], "leave out --tool"),
        (["--batch", "none.jsonl"], "none.jsonl"),
    ],
)
def test_a_users_mistake_is_one_clear_line(words: list[str], says: str) -> None:
    done = onspec("check", *words)
    assert done.returncode == 2
    assert says in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


@pytest.mark.parametrize("content", ["", "{", "[]", "5", '{"name": "x", "input_schema": {"type": "strin"}}', "\udcff"])
def test_a_tool_file_that_cannot_be_used(content: str, tmp_path: Path) -> None:
    path = tmp_path / "tool.json"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    done = onspec("check", "--tool", str(path), given="{}")
    assert done.returncode == 2
    assert done.stderr
    assert b"Traceback" not in done.stderr


def test_policies_and_finish_reason(tool: str) -> None:
    assert onspec("check", "--tool", tool, "--policy", "strict", given='{"path": "a",}').returncode == 1
    assert onspec("check", "--tool", tool, "--finish-reason", "length", given='{"path": "a"}').returncode == 1
    assert onspec("check", "--tool", tool, "--alias", "where=path", given='{"where": "a"}').returncode == 0
    lone = '{"path": "\\ud83d"}'
    assert onspec("check", "--tool", tool, "--policy", "lenient", "--effect", "read", given=lone).returncode == 0
    assert onspec("check", "--tool", tool, "--policy", "lenient", "--effect", "write", given=lone).returncode == 1


def test_explain_marks_the_places(tool: str) -> None:
    done = onspec("check", "--tool", tool, "--explain", given='{"file_path": "a", "limit": "5"}')
    text = done.stdout.decode()
    assert "alias_key /file_path" in text
    assert "^^^" in text
    assert "\x1b[" not in text
    assert onspec("check", "--tool", tool, "--explain", given="{}").returncode == 1


def test_batch(tmp_path: Path) -> None:
    rows = [
        {"id": "one", "tool": "read", "schema": SCHEMA, "emitted": '{"path": "a"}'},
        {"tool": "read", "schema": SCHEMA, "emitted": {"path": "a", "limit": "5"}},
        {"tool": "read", "schema": SCHEMA, "emitted": '{"path": "a"}', "context": {"finish_reason": "length"}},
    ]
    path = tmp_path / "calls.jsonl"
    path.write_text("\n\n".join(json.dumps(row) for row in rows))
    done = onspec("check", "--batch", str(path), "--json")
    assert done.returncode == 1
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [document["status"] for document in documents] == ["accepted", "repaired", "refused"]
    assert documents[0]["id"] == "one"
    path.write_text(json.dumps(rows[0]) + "\nnot json\n[1]\n" + json.dumps({"tool": "x"}) + "\n")
    done = onspec("check", "--batch", str(path), "--json")
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 1
    assert [line.split(b":")[0] for line in done.stderr.splitlines()[:3]] == [b"line 2", b"line 3", b"line 4"]
    assert b"Traceback" not in done.stderr


def test_help_is_complete() -> None:
    text = onspec("check", "--help").stdout.decode()
    for option in ("--tool", "--name", "--batch", "--policy", "--effect", "--alias", "--finish-reason", "--json"):
        assert option in text
    assert "Exit status" in text
    assert "check" in onspec("--help").stdout.decode()
