"""The tools of known agents, for session files that do not hold their schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import orjson

from onspec.contract import Tool

Version = tuple[int, ...]

ALIASES = {
    "claude": "claude-code",
    "claude_code": "claude-code",
    "codex-cli": "codex",
    "open-code": "opencode",
    "qwen": "qwen-code",
    "qwen-coder": "qwen-code",
    "pi-coding-agent": "pi",
}
"""Other names under which a trajectory names an agent."""


@dataclass(frozen=True, slots=True)
class Agent:
    """What is known of one agent's tools.

    Attributes:
        rejects_unknown_keys: Whether it refuses an undeclared key at the top level of a closed tool. Where it took such
            a call, the table is behind the agent, not the model off its schema.
        measured: The versions whose tools the table was made from.
    """

    rejects_unknown_keys: bool
    measured: tuple[str, ...]
    _rows: Mapping[str, tuple[Mapping[str, Any], ...]]

    def tool(self, name: str, version: str | None) -> Tool | None:
        """The tool of that name in that version of the agent, or None where it is not in the table.

        A version outside all ranges, or none at all, gets the newest row.
        """
        rows = self._rows.get(name)
        if not rows:
            return None
        number = version_of(version)
        chosen = next((row for row in rows if _covers(row, number)), rows[-1]) if number else rows[-1]
        return _tool(chosen["name"], orjson.dumps(chosen["schema"]), chosen.get("description", ""), chosen["effect"])

    def names(self) -> tuple[str, ...]:
        """The names of all its tools."""
        return tuple(self._rows)


@lru_cache(maxsize=1)
def agents() -> Mapping[str, Agent]:
    """The table, by the agent's name."""
    raw = orjson.loads(files("onspec.transcripts").joinpath("agents.json").read_bytes())
    table = {}
    for harness, held in raw.items():
        rows: dict[str, list[Mapping[str, Any]]] = {}
        for row in held["tools"]:
            rows.setdefault(row["name"], []).append(row)
        table[harness] = Agent(
            held["rejects_unknown_keys"], tuple(held["measured"]), {name: tuple(found) for name, found in rows.items()}
        )
    return table


def agent(harness: str) -> Agent | None:
    """What is known of the agent that a file names, or None."""
    name = harness.rpartition("/")[2].lower()
    return agents().get(ALIASES.get(name, name))


def version_of(text: str | None) -> Version:
    """The numbers of a version text, for comparing; () where it has none."""
    return tuple(int(number[:9]) for number in re.findall(r"\d+", text or "")[:3])


def _covers(row: Mapping[str, Any], number: Version) -> bool:
    since, until = version_of(row.get("since")), version_of(row.get("until"))
    return (not since or number >= since) and (not until or number <= until)


@lru_cache(maxsize=512)
def _tool(name: str, schema: bytes, description: str, effect: Any) -> Tool:
    return Tool(name, orjson.loads(schema), description=description, effect=effect)
