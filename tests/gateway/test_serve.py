"""`onspec serve` from a shell: one clear line where it cannot listen."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest


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
