"""What the shell does to every command: a file that is not there, a reader that goes away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# The command with some packages missing, as after an install without extras.
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({missing!r}))
sys.argv = ["onspec", *{words!r}]
from onspec.cli.main import main
main()
"""
EVERY = ("numpy", "llguidance", "gguf", "xllamacpp", "jinja2", "threadpoolctl", "fsspec", "genai_prices", "zstandard")
EVERY += ("starlette", "uvicorn", "httptools", "httpx2", "brotli", "mcp", "ray", "pydantic", "anthropic", "openai")


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


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["pressure", "--demo"], "local"),
        (["pressure", "--help"], "local"),
        (["generate", "hi"], "local"),
        (["model", "list"], "local"),
        (["demo", "--only", "model"], "local"),
        (["serve", "--upstream", "http://127.0.0.1:9"], "gateway"),
        (["serve", "--local"], "gateway"),
        (["wrap", "--", "true"], "gateway"),
        (["mcp", "--root", "."], "mcp"),
        (["scan", "s3://bucket/runs"], "scan"),
        (["scan", ".", "--engine", "ray"], "ray"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_missing_extra_is_named(words: list[str], extra: str, tmp_path: Path) -> None:
    """In one line, with exit status 2."""
    ran = _python(WITHOUT.format(missing=EVERY, words=words), tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("onspec: ")
    assert ran.stderr.endswith(f"is not installed; run: pip install 'onspec[{extra}]'\n")
    assert ran.stderr.count("\n") == 1


def test_a_missing_price_list_is_named(tmp_path: Path) -> None:
    said = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}
    said |= {"model": "m", "usage": {"input_tokens": 5, "output_tokens": 5}}
    (tmp_path / "session.json").write_text(json.dumps({"messages": [{"role": "user", "content": "x"}, said]}))
    ran = _python(WITHOUT.format(missing=EVERY, words=["scan", "session.json"]), tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "pip install 'onspec[scan]'" in ran.stdout


@pytest.mark.parametrize("name", ["anthropic", "openai", "langchain", "pydantic_ai"])
def test_a_missing_integration_is_named(name: str, tmp_path: Path) -> None:
    missing = (*EVERY, "langchain_core", "pydantic_ai")
    code = f"import sys; sys.modules.update(dict.fromkeys({missing!r}))\nimport onspec.integrations.{name}"
    ran = _python(code, tmp_path)
    assert ran.stderr.endswith("is not installed; run: pip install 'onspec[integrations]'\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_lacks_a_character(encoding: str) -> None:
    """It is shown as an escape, and what is JSON stays JSON."""
    written = {"path": "é \u65e5 \U0001f600", "edits": [{"oldText": "a", "newText": "b"}]}
    for options in (["--json"], [], ["--explain"]):
        ran = _run(
            ["check", "--tool", "nested/edit", *options], json.dumps(written).encode(), PYTHONIOENCODING=encoding
        )
        assert (ran.returncode, ran.stderr.decode(encoding).count("Traceback")) == (0, 0)
        if options == ["--json"]:
            assert json.loads(ran.stdout.decode(encoding))["arguments"] == written


def test_a_closed_standard_input_is_empty() -> None:
    ran = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m onspec check --tool nested/edit <&-"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout.splitlines()[:1], ran.stderr.count("Traceback")) == (
        1,
        ["edit was not run. The call: the arguments are empty; required: path, edits."],
        0,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("words", [["parse", "--list"], ["demo", "--no-model"], ["--help"]], ids=" ".join)
def test_a_full_disk_is_told_in_one_line(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "onspec", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (ran.returncode, ran.stderr) == (2, "onspec: no space left on device\n")


def _python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)


def _run(words: list[str], given: bytes, **environment: str) -> subprocess.CompletedProcess[Any]:
    return subprocess.run(
        [sys.executable, "-m", "onspec", *words],
        input=given,
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )
