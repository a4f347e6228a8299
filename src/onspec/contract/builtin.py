"""Tools that a provider declares by a type alone: the schemas behind the types."""

from __future__ import annotations

from typing import Any

from onspec.contract.definition import Effect


def _string(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _when(command: str, *required: str) -> dict[str, Any]:
    """`required` keys must be there when `command` is this one."""
    condition = {"properties": {"command": {"const": command}}, "required": ["command"]}
    return {"if": condition, "then": {"required": list(required)}}


def _commands(*names: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(names), "description": "What to do."}


_VIEW_RANGE = {
    "type": "array",
    "items": {"type": "integer"},
    "minItems": 2,
    "maxItems": 2,
    "description": "First and last line, counted from 1; -1 is the end of the file.",
}
_TEXT = {
    "file_text": _string("The whole text of the new file."),
    "old_str": _string("The text to replace; it occurs once."),
    "new_str": _string("The text that takes its place."),
    "insert_line": {"type": "integer", "minimum": 0, "description": "Insert after this line; 0 is the top."},
    "insert_text": _string("The text to insert."),
}
_INSERTED = {
    "if": {"properties": {"command": {"const": "insert"}}, "required": ["command"]},
    # Editions differ in the name of the inserted text; both are in use.
    "then": {"anyOf": [{"required": ["insert_text"]}, {"required": ["new_str"]}]},
}


def _editor(*commands: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "command": _commands(*commands),
            "path": _string("Path of the file or folder."),
            "view_range": _VIEW_RANGE,
            **_TEXT,
        },
        "required": ["command", "path"],
        "additionalProperties": False,
        "allOf": [
            _when("create", "file_text"),
            _when("str_replace", "old_str", "new_str"),
            _when("insert", "insert_line"),
            _INSERTED,
        ],
    }


_EDITOR_UNDO = _editor("view", "create", "str_replace", "insert", "undo_edit")
_EDITOR = _editor("view", "create", "str_replace", "insert")
_BASH = {
    "type": "object",
    "properties": {
        "command": _string("The command to run."),
        "restart": {"type": "boolean", "description": "Start the shell anew."},
    },
    "additionalProperties": False,
    "anyOf": [{"required": ["command"]}, {"required": ["restart"], "properties": {"restart": {"const": True}}}],
}
_MEMORY = {
    "type": "object",
    "properties": {
        "command": _commands("view", "create", "str_replace", "insert", "delete", "rename"),
        "path": _string("Path of the file or folder."),
        "view_range": _VIEW_RANGE,
        **_TEXT,
        "old_path": _string("The path to rename."),
        "new_path": _string("Its new name."),
    },
    "required": ["command"],
    "additionalProperties": False,
    "allOf": [
        _when("view", "path"),
        _when("create", "path", "file_text"),
        _when("str_replace", "path", "old_str"),
        _when("insert", "path", "insert_line", "insert_text"),
        _when("delete", "path"),
        _when("rename", "old_path", "new_path"),
    ],
}
_APPLY_PATCH = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
        "path": _string("Path of the file."),
        "diff": _string("The change, in V4A form without an envelope."),
    },
    "required": ["type", "path"],
    "additionalProperties": False,
    "if": {"properties": {"type": {"const": "delete_file"}}, "required": ["type"]},
    "else": {"required": ["diff"]},
}

BUILTIN: dict[str, tuple[str, Effect, dict[str, Any], str]] = {
    # type: (name, effect, schema, description)
    "text_editor_20241022": ("str_replace_editor", "write", _EDITOR_UNDO, "View, create and edit text files."),
    "text_editor_20250124": ("str_replace_editor", "write", _EDITOR_UNDO, "View, create and edit text files."),
    "text_editor_20250429": ("str_replace_based_edit_tool", "write", _EDITOR, "View, create and edit text files."),
    "text_editor_20250728": ("str_replace_based_edit_tool", "write", _EDITOR, "View, create and edit text files."),
    "bash_20241022": ("bash", "exec", _BASH, "Run a command in a shell that stays open."),
    "bash_20250124": ("bash", "exec", _BASH, "Run a command in a shell that stays open."),
    "memory_20250818": ("memory", "write", _MEMORY, "Keep notes in files between conversations."),
    "apply_patch": ("apply_patch", "write", _APPLY_PATCH, "Create, update or delete one file."),
}
"""Client tools that a request declares by type; the provider knows the schema, so the request does not carry it."""
