"""Where agents keep their session files on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

SUFFIXES = (".jsonl", ".ndjson", ".json", ".traj", ".eval", ".db", ".jsonl.zst", ".jsonl.gz", ".json.gz", ".json.zst")
"""Names that are looked into below a folder; a file that is named itself is always looked into."""

_PLACES: tuple[tuple[str, str, str], ...] = (
    # agent, environment variable that moves its home, folder below that or below the home folder
    ("pi", "PI_CODING_AGENT_DIR", "sessions"),
    ("pi", "", ".pi/agent/sessions"),
    ("claude-code", "CLAUDE_CONFIG_DIR", "projects"),
    ("claude-code", "", ".claude/projects"),
    ("codex", "CODEX_HOME", "sessions"),
    ("codex", "CODEX_HOME", "archived_sessions"),
    ("codex", "", ".codex/sessions"),
    ("codex", "", ".codex/archived_sessions"),
    ("opencode", "XDG_DATA_HOME", "opencode/opencode.db"),
    ("opencode", "XDG_DATA_HOME", "opencode/storage/part"),
    ("opencode", "", ".local/share/opencode/opencode.db"),
    ("opencode", "", ".local/share/opencode/storage/part"),
    ("gemini-cli", "", ".gemini/tmp"),
    ("qwen-code", "", ".qwen/projects"),
    ("qwen-code", "", ".qwen/tmp"),
    ("cline", "CLINE_DIR", "data/sessions"),
    ("cline", "", ".cline/data/sessions"),
    ("cline", "", ".cline/sessions"),
    ("openhands", "", ".openhands/conversations"),
    ("openhands", "", ".openhands/sessions"),
    ("copilot-cli", "", ".copilot/session-state"),
    ("copilot-cli", "", ".copilot/history-session-state"),
)


def places(environment: Mapping[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """Agents and the existing paths where their sessions are, each path once."""
    given = os.environ if environment is None else environment
    home = Path(given["HOME"]) if given.get("HOME") else Path.home()
    seen = set()
    for agent, variable, folder in _PLACES:
        if variable and not given.get(variable):
            continue
        path = str((Path(given[variable]) if variable else home) / folder)
        if path not in seen and os.path.exists(path):
            seen.add(path)
            yield agent, path


def is_candidate(name: str) -> bool:
    """Whether a file of this name below a folder may be a session; parts of split files (`full.jsonl.001`) too."""
    lower = name.lower()
    if lower.endswith(SUFFIXES):
        return True
    stem, dot, tail = lower.rpartition(".")
    return bool(dot) and tail.isdigit() and stem.endswith(".jsonl")
