"""Writing calls and tools back as text: JSON forms that every dialect shares."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset
from onspec.dialects.envelope import unquote
from onspec.dialects.scan import members
from onspec.errors import InputError

PROMPT = "# Tools\n\nYou may call these tools:\n<tools>\n{tools}\n</tools>\n\nWrite a call like this:\n"
"""The prompt of dialects that prescribe none; what a call looks like follows."""

BREAK = "\u200b"
"""Put into a marker that stands in text which is not markup: a model no longer reads it as one."""


def arguments_of(name: str, arguments: str) -> str:
    """The arguments' text, after making sure that it is the JSON text of an object.

    Raises:
        InputError: It is not. Heal the history first, or leave the call out.
    """
    text = arguments.strip()
    try:
        value = orjson.loads(text) if text else {}
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InputError(f"the arguments of the call to {name!r} are not the JSON text of an object; heal them first")
    return text or "{}"


def escape_markers(text: str, markers: Iterable[str]) -> str:
    """JSON text in which no marker stands literally: its first character is written as an escape."""
    for marker in markers:
        if marker in text:
            text = text.replace(marker, f"\\u{ord(marker[0]):04x}{marker[1:]}")
    return text


def defuse(text: str, markers: Iterable[str]) -> str:
    """Text in which every marker is broken by a zero-width space after its first character."""
    for marker in markers:
        if marker in text:
            text = text.replace(marker, marker[0] + BREAK + marker[1:])
    return text


def pairs_of(arguments: str) -> list[tuple[str, str, bool]]:
    """Key, text and whether it is a string, of each argument; other values as their JSON text."""
    pairs = []
    for key, start, end in members(arguments):
        raw = arguments[start:end]
        string = raw.startswith('"')
        pairs.append((unquote(f'"{key}"'), unquote(raw) if string else raw, string))
    return pairs


def definition(tool: Tool) -> dict[str, Any]:
    """A tool in the form that most prompts carry: `{"type": "function", "function": {...}}`."""
    parameters: Any = {"type": "object", "properties": {}}
    if tool.schema is not None and isinstance(tool.schema.document, Mapping):
        parameters = tool.schema.document
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def tool_list(tools: Toolset, markers: Iterable[str] = ()) -> str:
    """The tools, one JSON object a line."""
    lines = (json.dumps(definition(tool), ensure_ascii=False) for tool in tools.values())
    return escape_markers("\n".join(lines), markers)
