"""`onspec serve` from a shell: one clear line where it cannot listen."""

from __future__ import annotations

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
