"""`onspec scan`, `pack`, `unpack` and `heal` as a user runs them: real processes, output, exit status."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from onspec.cli.scan import scan
from onspec.errors import InputError

SESSIONS = Path(__file__).parent.parent / "transcripts" / "sessions"


def onspec(*words: str, home: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in an empty home, and checks that no traceback is shown."""
    environment = {**os.environ, "HOME": str(home or "/nonexistent"), "COLUMNS": "120", **more}
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR"):
        environment.pop(name, None)
    ran = subprocess.run(
        [sys.executable, "-m", "onspec", *words],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=120,
    )
    assert "Traceback" not in ran.stderr + ran.stdout
    return ran


def test_json_has_the_numbers_and_nothing_else_on_stdout() -> None:
    ran = onspec("scan", str(SESSIONS / "claude-code.jsonl"), "--json", "--by", "model,tool")
    told = json.loads(ran.stdout)
    assert ran.returncode == 0
    wanted = ("calls", "error_results", "rejected_for_arguments", "static_violations", "unparsable", "off_schema")
    assert [told[name] for name in wanted] == [11, 9, 6, 3, 1, 6]
    assert told["per_file"][0]["calls"] == 11
    assert {row["tool"] for row in told["by"]} >= {"Read", "Edit", "Bash"}
    assert ran.stderr == ""


def test_the_table_is_for_people() -> None:
    ran = onspec("scan", str(SESSIONS), "--by", "harness")
    assert ran.returncode == 0
    assert re.search(r"claude-code\s+\d+", ran.stdout)
    assert "requireUnique" in ran.stdout
    assert "\x1b[" not in ran.stdout


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    """No script, no link, no address of any other machine; texts are escaped."""
    path = tmp_path / "report.html"
    ran = onspec("scan", str(SESSIONS), "--html", str(path))
    page = path.read_text()
    assert ran.returncode == 0
    assert page.startswith("<!doctype html>")
    assert not re.search(r"<script|<link|<img|https?://|@import|url\(", page)
    assert page.count("<svg") >= 3
    for opened in ("table", "svg", "section", "tr", "td", "div"):
        assert len(re.findall(rf"<{opened}[ >]", page)) == page.count(f"</{opened}>")


@pytest.mark.parametrize(("rate", "status"), [("0%", 1), ("0.5%", 1), ("100%", 0), ("1", 0)])
def test_fail_over(rate: str, status: int) -> None:
    assert onspec("scan", str(SESSIONS / "pi-v3.jsonl"), "--fail-over", rate, "--json").returncode == status


@pytest.mark.parametrize(
    "words",
    [
        ("scan", "/no/such/file"),
        ("scan", ".", "--by", "colour"),
        ("scan", ".", "--since", "soon"),
        ("scan", ".", "--fail-over", "many"),
        ("scan", ".", "--price", "cheap"),
        ("scan", ".", "--engine", "steam"),
        ("scan", ".", "--workers", "-1"),
        ("scan",),
        ("pack", "/no/such/file", "x"),
        ("pack", str(SESSIONS / "pi-v3.jsonl"), "nobody"),
        ("unpack", str(SESSIONS / "pi-v3.jsonl")),
        ("heal", "/no/such/file"),
        ("heal", str(SESSIONS / "gemini.json")),
        ("heal", str(SESSIONS / "pi-v3.jsonl"), "--in-place", "-o", "x"),
    ],
)
def test_used_wrongly(words: tuple[str, ...]) -> None:
    """One clear line, exit status 2."""
    ran = onspec(*words)
    assert ran.returncode == 2
    assert ran.stderr.strip()


def test_without_a_path_the_usual_places_are_looked_at(tmp_path: Path) -> None:
    for folder, name in (
        (".pi/agent/sessions/--w--", "pi-v3.jsonl"),
        (".claude/projects/-w", "claude-code.jsonl"),
        (".codex/sessions/2026/10/01", "codex.jsonl"),
        (".local/share/opencode", "opencode.db"),
        (".gemini/tmp/ab/chats", "gemini.json"),
        (".qwen/projects/w/chats", "qwen.jsonl"),
        (".copilot/session-state/s", "copilot.jsonl"),
    ):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(SESSIONS / name, tmp_path / folder / name)
    told = json.loads(onspec("scan", "--json", home=tmp_path).stdout)
    assert told["files"] == 7
    assert told["calls"] == 6 + 11 + 6 + 7 + 3 + 2 + 3


def test_prices_can_be_given() -> None:
    ran = onspec("scan", str(SESSIONS / "pi-v3.jsonl"), "--json", "--price", "claude-*=5,25,0.5,6.25")
    told = json.loads(ran.stdout)
    tokens = told["wasted_tokens"]
    cost = tokens["input"] * 5 + tokens["output"] * 25 + tokens["cache_read"] * 0.5 + tokens["cache_write"] * 6.25
    assert told["wasted_dollars"] == pytest.approx(cost / 1e6)
    assert told["wasted_dollars"] > 0


def _interrupted(folder: Path, workers: str) -> tuple[int, str]:
    """Exit status and output of a scan that is stopped by Ctrl-C once it runs."""
    for patience in (1.5, 5.0, 20.0):
        process = subprocess.Popen(
            [sys.executable, "-m", "onspec", "scan", str(folder), "--json", "--workers", workers],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(patience)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        if process.returncode != -signal.SIGINT:  # else the interpreter itself had not started yet
            break
    assert "Traceback" not in err
    return process.returncode, out


def test_an_interrupt_keeps_what_was_counted(tmp_path: Path) -> None:
    """Ctrl-C in the middle of many files: exit status 130, valid JSON, the counts until then."""
    data = (SESSIONS / "claude-code.jsonl").read_bytes()
    for number in range(3000):
        (tmp_path / f"{number:05}.jsonl").write_bytes(data.replace(b"toolu_", b"toolu%d_" % number))
    for workers in ("1", "2"):
        status, out = _interrupted(tmp_path, workers)
        if status == 0:
            continue  # the machine was quicker than the interrupt
        assert status == 130
        if out:
            told = json.loads(out)
            assert told["interrupted"]
            assert told["files"] < 3000


def test_pack_and_unpack(tmp_path: Path) -> None:
    path = tmp_path / "fault.json"
    assert onspec("pack", str(SESSIONS / "claude-code.jsonl"), "toolu_2", "-o", str(path)).returncode == 0
    ran = onspec("unpack", str(path))
    assert (ran.returncode, "as packed" in ran.stdout) == (0, True)
    assert onspec("pack", str(SESSIONS / "claude-code.jsonl"), "toolu_2", "-o", str(path)).returncode == 2
    made = json.loads(path.read_text())
    made["arguments"] = "{}"
    path.write_text(json.dumps(made))
    assert onspec("unpack", str(path)).returncode == 1
    told = json.loads(onspec("unpack", str(path), "--json", "--policy", "strict").stdout)
    assert told["status"] == "refused"


def test_heal_never_writes_over_a_session_without_a_backup(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    before = (SESSIONS / "claude-code.jsonl").read_bytes()
    path.write_bytes(before)
    path.chmod(0o640)
    assert onspec("heal", str(path), "--check").returncode == 1
    assert path.read_bytes() == before
    assert onspec("heal", str(path)).returncode == 0
    assert path.read_bytes() == before
    assert (tmp_path / "s.jsonl.healed").exists()
    assert onspec("heal", str(path), "-o", str(path), "--force").returncode == 2
    assert onspec("heal", str(path), "--in-place").returncode == 0
    assert (tmp_path / "s.jsonl.bak").read_bytes() == before
    assert path.read_bytes() != before
    assert path.stat().st_mode & 0o777 == 0o640
    assert b"__unparsedToolInput" in (tmp_path / "s.jsonl.raw.jsonl").read_bytes()
    assert onspec("heal", str(path), "--check").returncode == 0
    assert onspec("heal", str(path), "--in-place").stdout.startswith("nothing to heal")


@pytest.mark.parametrize("command", ["scan", "pack", "unpack", "heal"])
def test_help_is_complete(command: str) -> None:
    ran = onspec(command, "--help")
    assert ran.returncode == 0
    assert "Exit status" in ran.stdout


@pytest.mark.parametrize("columns", ["20", "80", "200"])
def test_no_number_of_the_table_is_cut(columns: str) -> None:
    ran = onspec("scan", str(SESSIONS / "claude-code.jsonl"), "--by", "model,tool,day", COLUMNS=columns)
    table = ran.stdout.split("errors:")[0]
    assert ran.returncode == 0
    header = table.splitlines()[0].split()
    assert header == [
        *("model", "tool", "day", "calls", "errors", "rejected", "off", "rate", "silent", "repairs", "wasted", "cost")
    ]
    rows = [line.split()[-9:] for line in table.splitlines()[1:] if line.strip()]
    assert rows
    for row in rows:
        assert len(row) == 9
        assert not [cell for cell in row if not re.fullmatch(r"[-$<\d.,%]+[kMG]?", cell)]


def test_the_folder_of_the_page_is_looked_for_first(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        scan, [str(tmp_path / "not looked for"), "--html", str(tmp_path / "nowhere" / "page.html")]
    )
    assert isinstance(done.exception, InputError)
    assert str(done.exception).endswith("nowhere: no such folder")
