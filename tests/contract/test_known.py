"""Known tools are found by name, and each is a contract that can be used."""

from __future__ import annotations

from typing import Any

import pytest

from onspec.contract.known import known, names
from onspec.errors import InputError


@pytest.mark.parametrize("name", names())
def test_every_known_tool_is_usable(name: str) -> None:
    tool = known(name)
    assert tool.effect in ("read", "write", "exec")
    assert tool.description
    assert (tool.schema is None) == (tool.grammar is not None)


EDIT = {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}


@pytest.mark.parametrize(
    ("name", "call", "valid"),
    [
        ("pi/edit", EDIT, True),
        ("pi/edit", {"path": "a", "edits": [{"oldText": "x", "newText": "y", "requireUnique": True}]}, True),
        ("nested/edit", EDIT, True),
        ("nested/edit", {"path": "a", "edits": [{"oldText": "x", "newText": "y", "requireUnique": True}]}, False),
        ("claude-code/Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}, True),
        ("claude-code/Edit", {"file_path": "a", "old_string": "x", "new_string": "y", "requireUnique": True}, False),
        ("claude-code/Bash", {"command": "ls", "description": "list"}, True),
        ("codex/exec_command", {"cmd": "ls"}, True),
        ("codex/exec_command", {"command": "ls"}, False),
        ("codex/apply_patch", "*** Begin Patch\n*** End Patch\n", True),
        ("opencode/todowrite", {"todos": [{"content": "a", "status": "pending"}]}, False),
        ("cline/editor", {"path": "a", "new_text": "x", "old_text": None}, True),
        ("anthropic/text_editor_20250728", {"command": "view", "path": "a"}, True),
    ],
)
def test_known_tools_accept_what_their_harness_accepts(name: str, call: Any, valid: bool) -> None:
    assert known(name).is_valid(call) is valid


def test_a_bare_name_is_enough_where_it_is_the_only_one() -> None:
    assert known("exec_command").name == "exec_command"
    assert known("editor", effect="exec").effect == "exec"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("edit", "several.*pi/edit"),
        ("pi/edti", "nearest: .*pi/edit"),
        ("claude-code/edit", "nearest: .*claude-code/Edit"),
        ("zzzzzzzzzzzzzzzz", "names are HARNESS/TOOL"),
        ("pi/zzzzzzzzzzzzzz", "pi has pi/bash"),
        ("", "no known tool"),
    ],
)
def test_other_names_are_answered_with_names(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        known(name)
