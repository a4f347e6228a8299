"""A tool's schema inferred from the calls that its harness accepted."""

from __future__ import annotations

from typing import Any

from onspec.audit import Json
from onspec.contract import Tool

ENOUGH = 3
"""Accepted calls before a key that all of them have counts as required, and before anything is inferred at all."""

MAX_KEYS = 200
"""Keys of one tool that are remembered; a tool with more has free keys."""

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


class Inferred:
    """What the accepted calls of one tool have in common, at the top level of their arguments."""

    __slots__ = ("calls", "keys", "types")

    def __init__(self) -> None:
        self.calls = 0
        self.keys: dict[str, int] = {}
        self.types: dict[str, set[str]] = {}

    def add(self, arguments: Json) -> None:
        """Takes in one accepted call."""
        if not isinstance(arguments, dict):
            return
        self.calls += 1
        for key, value in arguments.items():
            if key in self.keys:
                self.keys[key] += 1
            elif len(self.keys) < MAX_KEYS:
                self.keys[key] = 1
                self.types[key] = set()
            else:
                continue
            self.types[key].add(_TYPES.get(type(value), "null"))

    def schema(self) -> dict[str, Any] | None:
        """The schema, or None where there were too few calls. Types are unions of those seen."""
        if self.calls < ENOUGH:
            return None
        properties = {key: {"type": _union(self.types[key])} for key in self.keys}
        required = [key for key, number in self.keys.items() if number == self.calls]
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": len(self.keys) >= MAX_KEYS,
        }

    def tool(self, name: str) -> Tool | None:
        """The tool with the inferred schema, or None where there were too few calls."""
        schema = self.schema()
        return None if schema is None else Tool(name, schema)


def _union(types: set[str]) -> str | list[str]:
    if types >= {"integer", "number"}:
        types = types - {"integer"}
    return next(iter(types)) if len(types) == 1 else sorted(types)
