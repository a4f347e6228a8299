"""Installs the agents of `test_agents.py` from npm, at the versions tested: install.py FOLDER."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PACKAGES = {
    # Node first: with an older one npm silently takes older agents, which say that they run on it.
    "node24": ("node@24.21.0",),
    "pi": ("@earendil-works/pi-coding-agent@1.6.0",),
    # This release floats its own libraries, and does not start with newer ones: all four are pinned.
    "pi0803": tuple(
        f"@earendil-works/{name}@0.80.3" for name in ("pi-coding-agent", "pi-ai", "pi-agent-core", "pi-tui")
    ),
    "codex": ("@openai/codex@0.171.0",),
    "cn": ("@continuedev/cli@1.5.47",),
    "aisdk": (
        *("ai@7.0.173", "@ai-sdk/anthropic@4.0.105", "@ai-sdk/openai@4.0.118"),
        *("@ai-sdk/openai-compatible@3.0.92", "zod@4.6.7"),
    ),
    "claude": ("@anthropic-ai/claude-code@2.1.332",),
    "qwen": ("@qwen-code/qwen-code@0.24.4",),
    "opencode": ("opencode-ai@1.18.33",),
    "cline": ("cline@3.0.65",),
}


def install(root: Path) -> None:
    """Install what is not there yet."""
    env = {**os.environ, "PATH": f"{root}/node24/node_modules/.bin:{os.environ['PATH']}"}
    for name, packages in PACKAGES.items():
        folder = root / name
        done = folder / ".installed"
        if done.is_file() and done.read_text() == " ".join(packages):
            continue
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "package.json").is_file():
            (folder / "package.json").write_text('{"private": true}\n')
        print(f"installing {name} ...", flush=True)
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--silent", *packages], cwd=folder, env=env, check=True
        )
        done.write_text(" ".join(packages))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: install.py FOLDER")
    install(Path(sys.argv[1]).expanduser().absolute())
