"""`onspec serve` from a shell: one clear line where it cannot listen."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from onspec.cli.serve import serve
from onspec.errors import InputError, MissingExtra
from onspec.gateway import telemetry
from onspec.gateway.app import Gateway
from onspec.gateway.config import Config, Upstream, load


@pytest.mark.parametrize("script", [False, True])
def test_a_taken_port_is_told_in_one_line(tmp_path: Path, script: bool) -> None:
    """Exit status 2, and nothing of the server's own."""
    (tmp_path / "script.json").write_text('{"turns": []}')
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        what = ["--script", "script.json"] if script else ["--upstream", "http://127.0.0.1:9"]
        found = subprocess.run(
            [sys.executable, "-m", "onspec", "serve", *what, "--port", str(port)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert found.returncode == 2
    assert (found.stdout, found.stderr) == ("", f"onspec: cannot listen on 127.0.0.1:{port}: address already in use\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--script", "s", "--upstream", "u"], "--script is a provider, not a gateway: give --upstream to another one"),
        (["--script", "s", "--retry", "2"], "--script is a provider, not a gateway: give --retry to another one"),
        (["--local", "m", "--config", "f"], "--local is a provider, not a gateway: give --config to another one"),
        (["--local", "m", "--script", "s"], "--script and --local are two providers: choose one"),
        (["--script", "s", "--host", "::1"], "--host goes with a gateway or --local"),
        (["--upstream", "u", "--log", "f"], "--log goes with --script"),
        (["--upstream", "u", "--context", "100"], "--context goes with --local"),
    ],
)
def test_an_option_that_means_nothing_is_refused(words: list[str], told: str) -> None:
    found = CliRunner().invoke(serve, words)
    assert found.exit_code == 2
    assert found.output.endswith(f"Error: {told}\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[gateway]\nport = "x"', "[gateway] port is a whole number, not 'x'"),
        ("[gateway]\nport = true", "[gateway] port is a whole number, not True"),
        ("[gateway]\nport = 99999", "[gateway] port cannot be 99999"),
        ("[gateway]\nread_seconds = -1", "[gateway] read_seconds cannot be -1"),
        ("[gateway]\nhost = 4", "[gateway] host is a text, not 4"),
        ("[gateway]\notel = 1", "[gateway] otel is true or false, not 1"),
        ("[gateway]\ndatabase = 5", "[gateway] database is the path of a file, not 5"),
        ('[gateway]\ntokens = "abc"', "[gateway] tokens is a list of texts"),
        ('[upstream]\nurl = "http://x"', "an upstream is written [[upstream]], in two pairs of brackets"),
    ],
)
def test_a_setting_of_the_wrong_kind(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "onspec.toml"
    file.write_text(text)
    with pytest.raises(InputError) as found:
        load(file)
    assert str(found.value) == f"{file}: {told}"


def test_settings_of_the_right_kind(tmp_path: Path) -> None:
    file = tmp_path / "onspec.toml"
    file.write_text(
        '[gateway]\nport = 0\nread_seconds = 5\ndatabase = "a"\ntokens = ["t"]\n[[upstream]]\nurl = "http://x"'
    )
    assert load(file).checked().read_seconds == 5


def test_a_second_signal_shows_no_traceback() -> None:
    """The server then takes the task away from the application, which still writes what it has counted."""
    gateway = Gateway(Config(upstreams=(Upstream("http://127.0.0.1:9"),)))

    async def never() -> Any:
        await asyncio.sleep(60)

    async def end() -> None:
        task = asyncio.ensure_future(gateway({"type": "lifespan"}, never, never))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    asyncio.run(end())


def test_spans_without_the_package_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "trace", None)
    with pytest.raises(MissingExtra, match=r"onspec\[otel\]"):
        telemetry.Spans(True)
    assert telemetry.Spans(False).start(None) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_being_stopped_is_no_fault(tmp_path: Path, script: bool, number: int) -> None:
    """Exit status 0, and one line on standard output: where it listens."""
    (tmp_path / "script.json").write_text('{"turns": []}')
    what = ["--script", "script.json"] if script else ["--upstream", "http://127.0.0.1:9"]
    command = [sys.executable, "-m", "onspec", "serve", *what, "--port", "0"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert "http://127.0.0.1:" in running.stdout.readline()
    running.send_signal(number)
    assert running.communicate(timeout=30) == ("", "")
    assert running.returncode == 0
