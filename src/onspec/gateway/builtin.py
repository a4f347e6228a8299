"""Schemas of the tools that a provider defines itself, by type; a request names them and carries no schema.

Source: Anthropic's tool reference (text editor, bash and memory tools), read in August 2026.
"""

from __future__ import annotations

from typing import Any

_STRING: dict[str, Any] = {"type": "string"}
_LINE: dict[str, Any] = {"type": "integer"}
_RANGE: dict[str, Any] = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}


def _closed(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _editor(*commands: str) -> dict[str, Any]:
    properties = {
        "command": {"type": "string", "enum": list(commands)},
        "path": _STRING,
        "view_range": _RANGE,
        "old_str": _STRING,
        "new_str": _STRING,
        "file_text": _STRING,
        "insert_line": _LINE,
        "insert_text": _STRING,
    }
    return _closed(properties, ["command", "path"])


_OLD_EDITOR = _editor("view", "create", "str_replace", "insert", "undo_edit")
_EDITOR = _editor("view", "create", "str_replace", "insert")

SCHEMAS: dict[str, dict[str, Any]] = {
    "text_editor_20241022": _OLD_EDITOR,
    "text_editor_20250124": _OLD_EDITOR,
    "text_editor_20250429": _EDITOR,
    "text_editor_20250728": _EDITOR,
    "bash_20241022": _closed({"command": _STRING, "restart": {"type": "boolean"}}, []),
    "bash_20250124": _closed({"command": _STRING, "restart": {"type": "boolean"}}, []),
    "memory_20250818": _closed(
        {
            "command": {"type": "string", "enum": ["view", "create", "str_replace", "insert", "delete", "rename"]},
            "path": _STRING,
            "view_range": _RANGE,
            "old_str": _STRING,
            "new_str": _STRING,
            "file_text": _STRING,
            "insert_line": _LINE,
            "insert_text": _STRING,
            "old_path": _STRING,
            "new_path": _STRING,
        },
        ["command"],
    ),
}
EFFECTS = {"text_editor": "write", "bash": "exec", "memory": "write"}
