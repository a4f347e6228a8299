"""The tools: every spelling of a call, what a look shows, and patches in all their forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onspec.edits.patch import parse, parse_operation
from onspec.edits.rules import LEVELS, RULES
from onspec.edits.tools import KINDS, FileTools
from onspec.edits.workspace import Workspace
from onspec.errors import InputError

START = b"one\ntwo\nthree\n"


@pytest.fixture
def tools() -> FileTools:
    return FileTools(Workspace.in_memory({"f": START, "sub/g": b"g\n"}))


def data(tools: FileTools, path: str = "f") -> bytes | None:
    found = tools.workspace._store.look(path)
    return getattr(found, "data", None)


EDITOR = "str_replace_based_edit_tool"

EDITOR_CALLS: list[tuple[dict[str, Any], bytes | None, str]] = [
    # call, file after (None: refused), what is said
    ({"command": "str_replace", "path": "f", "old_str": "two", "new_str": "2"}, b"one\n2\nthree\n", "     2\t2"),
    ({"command": "str_replace", "path": "f", "old_str": "two\n"}, b"one\nthree\n", "-two"),
    ({"command": "str_replace", "path": "f", "old_str": "e"}, None, "lines 1, 3"),
    ({"command": "str_replace", "path": "f", "new_str": "e"}, None, "old_str"),
    ({"command": "insert", "path": "f", "insert_line": 1, "insert_text": "x"}, b"one\nx\ntwo\nthree\n", "+x"),
    ({"command": "insert", "path": "f", "insert_line": 0, "new_str": "x\n"}, b"x\none\ntwo\nthree\n", "+x"),
    ({"command": "insert", "path": "f", "insert_line": "3", "insert_text": "x"}, b"one\ntwo\nthree\nx\n", "+x"),
    ({"command": "insert", "path": "f", "insert_line": 4, "insert_text": "x"}, None, "0 to 3"),
    ({"command": "insert", "path": "f", "insert_line": 1}, None, "insert_text"),
    ({"command": "insert", "path": "f", "insert_text": "x"}, None, "insert_line"),
    ({"command": "create", "path": "f", "file_text": "x"}, None, "already"),
    ({"command": "create", "path": "f"}, None, "file_text"),
    ({"command": "undo_edit", "path": "f"}, None, "no edit to take back"),
    ({"command": "rename", "path": "f"}, None, "view"),
]


@pytest.mark.parametrize(("call", "after", "says"), EDITOR_CALLS)
def test_text_editor(tools: FileTools, call: dict[str, Any], after: bytes | None, says: str) -> None:
    answer = tools.call(EDITOR, json.dumps(call))
    assert says in answer.text
    assert answer.is_error == (after is None)
    assert data(tools) == (START if after is None else after)


def test_text_editor_create_and_undo(tools: FileTools) -> None:
    made = tools.call(EDITOR, '{"command":"create","path":"new/h","file_text":"h\\n"}')
    assert "created new/h" in made.text
    assert data(tools, "new/h") == b"h\n"
    assert not tools.call(EDITOR, '{"command":"undo_edit","path":"new/h"}').is_error
    assert data(tools, "new/h") is None


VIEWS: list[tuple[dict[str, Any], list[str], list[str]]] = [
    # call, what is shown, what is not
    ({"path": "f"}, ["lines 1-3 of 3", "     1\tone", "     3\tthree", "utf-8", "LF"], []),
    ({"path": "f", "view_range": [2, 2]}, ["lines 2-2", "     2\ttwo"], ["one", "three"]),
    ({"path": "f", "view_range": [2, -1]}, ["lines 2-3", "three"], ["one"]),
    ({"path": "f", "view_range": [3, 99]}, ["lines 3-3"], []),
    ({"path": "f", "view_range": [9, 10]}, ["3 lines"], ["one"]),
    ({"path": "f", "view_range": [2, 1]}, ["range"], ["one"]),
    ({"path": "f", "view_range": [0, 1]}, ["range"], ["one"]),
    ({"path": "."}, ["f", "sub/"], ["one"]),
    ({"path": "sub"}, ["g"], []),
    ({"path": "nowhere"}, ["no such file"], []),
]


@pytest.mark.parametrize(("call", "shown", "hidden"), VIEWS)
def test_view(tools: FileTools, call: dict[str, Any], shown: list[str], hidden: list[str]) -> None:
    text = tools.call(EDITOR, json.dumps({"command": "view", **call})).text
    assert all(part in text for part in shown), text
    assert not any(part in text for part in hidden), text


def test_read_shows_a_part_of_a_large_file_and_no_binary() -> None:
    files = {
        "big": b"x" * 100 + b"\n" * 5000,
        "wide": b"y" * 100_000,
        "binary": b"a\0b",
        "empty": b"",
        "latin": b"caf\xe9\r\n",
    }
    tools = FileTools(Workspace.in_memory(files))
    assert "lines 1-2000 of 5000" in tools.call("read", '{"path":"big"}').text
    assert "lines 4000-4001 of 5000" in tools.call("read", '{"path":"big","offset":4000,"limit":2}').text
    assert len(tools.call("read", '{"path":"wide"}').text) < 1000
    assert "not text" in tools.call("read", '{"path":"binary"}').text
    assert "empty" in tools.call("read", '{"path":"empty"}').text
    latin = tools.call("read", '{"path":"latin"}').text
    assert "café" in latin
    assert "latin-1, CRLF" in latin


def test_all_kinds_have_a_contract_and_a_name() -> None:
    for key, kind in KINDS.items():
        assert kind.tool.name
        assert kind.tool.description
        assert kind.tool.effect == ("read" if key == "read" else "write")
        assert (kind.tool.schema is None) == (key == "patch_text")


def test_unknown_and_clashing_kinds_are_the_callers_mistake() -> None:
    workspace = Workspace.in_memory({})
    with pytest.raises(InputError):
        FileTools(workspace, ["nested", "nope"])
    with pytest.raises(InputError):
        FileTools(workspace, ["patch", "patch_text"])


def test_every_loose_rule_is_in_the_table() -> None:
    assert {rule for level in LEVELS for rule in level} <= set(RULES)
    assert all(rule.summary and rule.example for rule in RULES.values())


# patches

PATCHES = [
    # name, patch, files after (None: refused), rules
    ("plain", "*** Begin Patch\n*** Update File: f\n@@\n one\n-two\n+2\n*** End Patch", {"f": b"one\n2\nthree\n"}, []),
    ("no @@", "*** Begin Patch\n*** Update File: f\n one\n-two\n+2\n*** End Patch\n", {"f": b"one\n2\nthree\n"}, []),
    (
        "stars too many",
        "*** Begin Patch ***\n*** Update File: f\n-two\n+2\n*** End Patch ***",
        {"f": b"one\n2\nthree\n"},
        ["patch_marker", "patch_marker"],
    ),
    (
        "heredoc",
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: f\n-two\n+2\n*** End Patch\nEOF\n",
        {"f": b"one\n2\nthree\n"},
        ["patch_wrapper"],
    ),
    (
        "fence",
        "```diff\n*** Begin Patch\n*** Update File: f\n-two\n+2\n*** End Patch\n```",
        {"f": b"one\n2\nthree\n"},
        ["patch_wrapper"],
    ),
    (
        "crlf patch",
        "*** Begin Patch\r\n*** Update File: f\r\n-two\r\n+2\r\n*** End Patch\r\n",
        {"f": b"one\n2\nthree\n"},
        [],
    ),
    (
        "unified ranges",
        "*** Begin Patch\n*** Update File: f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n*** End Patch",
        {"f": b"one\n2\nthree\n"},
        ["patch_file_header", "patch_range"],
    ),
    (
        "anchor repeated",
        "*** Begin Patch\n*** Update File: f\n@@ one\n one\n-two\n+2\n*** End Patch",
        {"f": b"one\n2\nthree\n"},
        ["patch_anchor"],
    ),
    (
        "several chunks",
        "*** Begin Patch\n*** Update File: f\n@@\n-one\n+1\n@@\n-three\n+3\n*** End Patch",
        {"f": b"1\ntwo\n3\n"},
        [],
    ),
    (
        "end of file",
        "*** Begin Patch\n*** Update File: f\n@@\n+four\n*** End of File\n*** End Patch",
        {"f": START + b"four\n"},
        [],
    ),
    (
        "end note",
        "*** Begin Patch\n*** Update File: f\n-two\n+2\n\\ No newline at end of file\n*** End Patch",
        {"f": b"one\n2\nthree\n"},
        ["patch_end_note"],
    ),
    (
        "two sections of one file",
        "*** Begin Patch\n*** Update File: f\n-one\n+1\n*** Update File: f\n-two\n+2\n*** End Patch",
        {"f": b"1\n2\nthree\n"},
        [],
    ),
    (
        "add, delete, move",
        "*** Begin Patch\n*** Add File: a/b\n+x\n+\n+y\n*** Delete File: sub/g\n"
        "*** Update File: f\n*** Move to: sub/f\n@@\n-two\n+2\n*** End Patch",
        {"a/b": b"x\n\ny\n", "sub/g": None, "f": None, "sub/f": b"one\n2\nthree\n"},
        [],
    ),
    ("move only", "*** Begin Patch\n*** Update File: f\n*** Move to: h\n*** End Patch", {"f": None, "h": START}, []),
    ("empty new file", "*** Begin Patch\n*** Add File: e\n*** End Patch", {"e": b""}, []),
    ("no end", "*** Begin Patch\n*** Update File: f\n-two\n+2\n", None, "patch_cut"),
    ("no begin", "*** Update File: f\n-two\n+2\n*** End Patch", None, "bad_patch"),
    ("nothing in it", "*** Begin Patch\n*** End Patch", None, "empty_patch"),
    ("update of nothing", "*** Begin Patch\n*** Update File: f\n*** End Patch", None, "empty_patch"),
    ("no mark", "*** Begin Patch\n*** Update File: f\n@@\none\n-two\n+2\n*** End Patch", None, "bad_patch"),
    ("no plus", "*** Begin Patch\n*** Add File: n\nx\n*** End Patch", None, "bad_patch"),
    ("no header", "*** Begin Patch\nf\n-two\n*** End Patch", None, "bad_patch"),
    ("unknown header", "*** Begin Patch\n*** Replace File: f\n+two\n*** End Patch", None, "bad_patch"),
    ("add over a file", "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch", None, "exists"),
    ("delete nothing", "*** Begin Patch\n*** Delete File: n\n*** End Patch", None, "no_such_file"),
    ("move over a file", "*** Begin Patch\n*** Update File: f\n*** Move to: sub/g\n*** End Patch", None, "exists"),
    ("out of the root", "*** Begin Patch\n*** Add File: ../n\n+x\n*** End Patch", None, "outside_root"),
    (
        "move out of the root",
        "*** Begin Patch\n*** Update File: f\n*** Move to: ../f\n*** End Patch",
        None,
        "outside_root",
    ),
    (
        "delete and update",
        "*** Begin Patch\n*** Delete File: f\n*** Update File: f\n-two\n+2\n*** End Patch",
        None,
        "same_file_twice",
    ),
    (
        "move to one name twice",
        "*** Begin Patch\n*** Update File: f\n*** Move to: h\n*** Update File: sub/g\n*** Move to: h\n*** End Patch",
        None,
        "exists",
    ),
    ("words after it", "*** Begin Patch\n*** Delete File: f\n*** End Patch\nDone.", None, "patch_cut"),
]


@pytest.mark.parametrize("form", ["patch", "patch_text"])
@pytest.mark.parametrize(("text", "after", "rules"), [row[1:] for row in PATCHES], ids=[row[0] for row in PATCHES])
def test_patch(form: str, text: str, after: dict[str, bytes | None] | None, rules: list[str] | str) -> None:
    tools = FileTools(Workspace.in_memory({"f": START, "sub/g": b"g\n"}), [form])
    answer = tools.call("apply_patch", json.dumps({"input": text}) if form == "patch" else text)
    if after is None:
        assert answer.is_error
        assert answer.violations[0].code == rules
        assert (data(tools), data(tools, "sub/g")) == (START, b"g\n")
        return
    assert not answer.is_error, answer.text
    assert {path: data(tools, path) for path in after} == after
    assert [repair.rule for repair in answer.repairs] == rules


def test_free_form_patch_that_came_as_json() -> None:
    tools = FileTools(Workspace.in_memory({"f": START}), ["patch_text"])
    text = "*** Begin Patch\n*** Update File: f\n-two\n+2\n*** End Patch"
    answer = tools.call("apply_patch", json.dumps({"input": text}).encode())
    assert data(tools) == b"one\n2\nthree\n"
    assert [repair.rule for repair in answer.repairs] == ["patch_wrapper"]


OPERATIONS = [
    ("create_file", "n", "+x\n+y\n", {"n": b"x\ny\n"}),
    ("update_file", "f", "@@\n one\n-two\n+2\n", {"f": b"one\n2\nthree\n"}),
    ("delete_file", "f", "", {"f": None}),
    ("update_file", "f", "what is this", None),
    ("create_file", "f", "+x", None),
]


@pytest.mark.parametrize(("kind", "path", "diff", "after"), OPERATIONS)
def test_patch_operation(kind: str, path: str, diff: str, after: dict[str, bytes | None] | None) -> None:
    tools = FileTools(Workspace.in_memory({"f": START}), ["patch_operation"])
    operation = {"type": kind, "path": path, "diff": diff}
    answer = tools.call("apply_patch", json.dumps({"operation": operation}))
    assert answer.is_error == (after is None)
    assert {name: data(tools, name) for name in after or {"f": START}} == (after or {"f": START})


def test_an_operation_of_no_kind_is_a_violation() -> None:
    found = parse_operation("rename_file", "f", "")
    assert found.violation is not None
    assert not found.operations


def test_a_patch_names_the_line_that_is_wrong() -> None:
    found = parse("*** Begin Patch\n*** Update File: f\n@@\n-a\nwrong\n*** End Patch")
    assert found.violation is not None
    assert found.violation.found == "line 5 of the patch"


def test_the_documentation_lists_every_rule_and_tool() -> None:
    page = (Path(__file__).parents[2] / "docs" / "edits.md").read_text()
    for rule in RULES.values():
        assert f"| `{rule.name}` | {rule.summary} |" in page
    for key, kind in KINDS.items():
        assert f"| `{key}` | `{kind.tool.name}` |" in page
