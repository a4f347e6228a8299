"""What tools with well-known names do to the world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onspec.contract.definition import Effect

_PATH = frozenset({"path", "file_path", "filePath", "filepath", "files", "dirpath"})
_PATTERN = frozenset({"pattern", "query", "queries"})
_URL = frozenset({"url", "requests"})
_ANY: frozenset[str] = frozenset()

NAMED: dict[str, tuple[Effect, frozenset[str]]] = {
    # name: (effect, keys of which at least one is declared; none asked where empty)
    **dict.fromkeys(("read", "Read", "read_file", "read_files", "view_image", "List", "list_dir"), ("read", _PATH)),
    **dict.fromkeys(("grep", "Grep", "grep_search", "search_codebase", "glob", "Glob"), ("read", _PATTERN)),
    **dict.fromkeys(("web_search", "WebSearch", "tool_search", "ToolSearch"), ("read", _PATTERN)),
    **dict.fromkeys(("webfetch", "WebFetch", "Fetch", "fetch_web_content"), ("read", _URL)),
    **dict.fromkeys(("edit", "Edit", "MultiEdit", "editor", "apply_patch", "replace", "memory"), ("write", _ANY)),
    **dict.fromkeys(("str_replace_editor", "str_replace_based_edit_tool"), ("write", _ANY)),
    **dict.fromkeys(("notebook_edit", "NotebookEdit"), ("write", _ANY)),
    **dict.fromkeys(("write", "Write", "write_file", "create_file"), ("write", _ANY)),
    **dict.fromkeys(("todowrite", "TodoWrite", "todo_write", "update_goal", "create_goal"), ("write", _ANY)),
    **dict.fromkeys(("bash", "Bash", "shell", "exec", "exec_command"), ("exec", _ANY)),
    **dict.fromkeys(("run_shell_command", "run_commands", "execute_command", "write_stdin"), ("exec", _ANY)),
    **dict.fromkeys(("powershell", "Monitor"), ("exec", _ANY)),
    **dict.fromkeys(("task", "Task", "Agent", "agent", "spawn_agent", "Workflow"), ("exec", _ANY)),
}
"""Tools of known harnesses. `read` lets a policy do more, so it also asks for a key that such a tool declares."""


def effect_of(name: str, schema: Mapping[str, Any] | bool | None) -> Effect | None:
    """The effect of a tool known by its name, or None."""
    known = NAMED.get(name)
    if known is None:
        return None
    effect, keys = known
    if not keys:
        return effect
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return effect if isinstance(properties, Mapping) and not keys.isdisjoint(properties) else None
