"""Faults that four real agents turned into damage or dead ends, each sent to the tools as a model would send it.

Every row ends in the right file or in an untouched one with a reason that helps; none in silent damage.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onspec.edits.tools import FileTools
from onspec.edits.workspace import Workspace

CALC = b"def add(a, b):\n    return a - b\n"
PLUS = b"def add(a, b):\n    return a + b\n"


@pytest.fixture
def tools(tmp_path: Path) -> FileTools:
    (tmp_path / "root").mkdir()
    return FileTools(Workspace(tmp_path / "root", state=tmp_path / "state"))


def put(tools: FileTools, data: bytes, name: str = "f.py") -> Path:
    path = Path(tools.workspace.root, name)
    path.write_bytes(data)
    return path


def nested(old: str, new: str, **more: Any) -> str:
    return json.dumps({"path": "f.py", "edits": [{"oldText": old, "newText": new, **more}]})


GOOD = nested("a - b", "a + b")

MENDED = {
    "invented key in an item": ("edit", nested("a - b", "a + b", requireUnique=True)),
    "invented key at the top": ("edit", '{"path":"f.py","edits":[{"oldText":"a - b","newText":"a + b"}],"type":""}'),
    "array as a string": ("edit", json.dumps({"path": "f.py", "edits": '[{"oldText":"a - b","newText":"a + b"}]'})),
    "object for an array": ("edit", '{"path":"f.py","edits":{"oldText":"a - b","newText":"a + b"}}'),
    "string for a boolean": (
        "Edit",
        '{"file_path":"f.py","old_string":"a - b","new_string":"a + b","replace_all":"false"}',
    ),
    "null for an optional": (
        "Edit",
        '{"file_path":"f.py","old_string":"a - b","new_string":"a + b","replace_all":null}',
    ),
    "other names, nested": ("edit", '{"file_path":"f.py","edits":[{"old_string":"a - b","new_string":"a + b"}]}'),
    "other names, flat": ("Edit", '{"path":"f.py","oldText":"a - b","newText":"a + b"}'),
    "encoded twice": ("edit", json.dumps(GOOD)),
    "wrapped": ("edit", json.dumps({"input": json.loads(GOOD)})),
    "trailing comma": ("edit", GOOD[:-1] + ",}"),
    "fenced": ("edit", f"```json\n{GOOD}\n```"),
    "markup after it": ("edit", GOOD + "</invoke>"),
    "closers missing": ("edit", GOOD[:-2]),
    "name in other case": (
        "EDIT_".rstrip("_").title(),
        '{"file_path":"f.py","old_string":"a - b","new_string":"a + b"}',
    ),
    "name with a prefix": ("functions.edit", GOOD),
    "patch as a function": (
        "apply_patch",
        json.dumps(
            {"input": "*** Begin Patch\n*** Update File: f.py\n@@\n-    return a - b\n+    return a + b\n*** End Patch"}
        ),
    ),
    "patch in a heredoc": (
        "apply_patch",
        json.dumps(
            {
                "input": "<<'EOF'\n*** Begin Patch\n*** Update File: f.py\n@@ def add(a, b):\n"
                "-    return a - b\n+    return a + b\n*** End Patch\nEOF"
            }
        ),
    ),
}


@pytest.mark.parametrize(("name", "arguments"), MENDED.values(), ids=MENDED)
def test_the_call_is_mended_and_done(tools: FileTools, name: str, arguments: str) -> None:
    file = put(tools, CALC)
    answer = tools.call(name, arguments)
    assert not answer.is_error, answer.text
    assert file.read_bytes() == PLUS


NEVER_RUN = {
    "cut in a string": ("edit", '{"path":"f.py","edits":[{"oldText":"a - b","newText":"a +', None),
    "cut by the length limit": ("edit", GOOD, "max_tokens"),
    "half a surrogate pair": ("edit", '{"path":"f.py","edits":[{"oldText":"a - b","newText":"\\ud83d"}]}', None),
    "leaked markup": ("edit", nested("a - b", "a + b</newText></invoke>"), None),
    "swallowed parameter": ("edit", nested("a - b", 'a + b</parameter>\n<parameter name="path">x'), None),
    "two values for a key": (
        "edit",
        '{"path":"f.py","path":"g.py","edits":[{"oldText":"a - b","newText":"a + b"}]}',
        None,
    ),
    "nothing": ("edit", "", None),
    "no such tool": ("replace", GOOD, None),
    "second edit in invented keys": (
        "edit",
        nested("a - b", "a + b", newText2="x"),
        None,
    ),
    "patch without its end": ("apply_patch", json.dumps({"input": "*** Begin Patch\n*** Delete File: f.py"}), None),
}


@pytest.mark.parametrize(("name", "arguments", "reason"), NEVER_RUN.values(), ids=NEVER_RUN)
def test_the_call_is_never_run(tools: FileTools, name: str, arguments: str, reason: str | None) -> None:
    file = put(tools, CALC)
    answer = tools.call(name, arguments, reason)
    assert answer.is_error
    assert answer.text
    assert file.read_bytes() == CALC
    assert len(answer.text.encode()) < 600


def patch(*lines: str) -> str:
    return json.dumps({"input": "\n".join(["*** Begin Patch", *lines, "*** End Patch"])})


MATCHING = {
    # row of the battery: file, tool, call, file after (None: untouched), what the answer says
    "old text twice": (b"x = 1\ny\nx = 1\n", "edit", nested("x = 1", "x = 2"), None, "lines 1, 3"),
    "old text twice, as a patch": (
        b"x = 1\ny\nx = 1\n",
        "apply_patch",
        patch("*** Update File: f.py", "@@", "-x = 1", "+x = 2"),
        None,
        "lines 1, 3",
    ),
    "old is new": (CALC, "edit", nested("a - b", "a - b"), None, "nothing would change"),
    "old is new, as a patch": (
        CALC,
        "apply_patch",
        patch("*** Update File: f.py", "@@", "-    return a - b", "+    return a - b"),
        None,
        "nothing would change",
    ),
    "not found": (CALC, "edit", nested("return a * b", "x"), None, "line 2"),
    "smart quotes in the file": (
        "print(“hi”, ‘x’ – ½)  # “keep”\n".encode(),
        "edit",
        nested('print("hi"', 'print("ho"'),
        "print(“ho”, ‘x’ – ½)  # “keep”\n".encode(),
        "unicode_lookalikes",
    ),
    "a loose and an exact edit on one line": (
        "a = “x” # ½ “q”\nb = “y”\n".encode(),
        "edit",
        json.dumps(
            {
                "path": "f.py",
                "edits": [{"oldText": 'a = "x"', "newText": 'a = "z"'}, {"oldText": "# ½", "newText": "# ¼"}],
            }
        ),
        "a = “z” # ¼ “q”\nb = “y”\n".encode(),
        "unicode_lookalikes",
    ),
    "trailing whitespace": (
        b"a \nb\t\nc\n",
        "edit",
        nested("a\nb\n", "a\nB\n"),
        b"a \nB\t\nc\n",
        "trailing_whitespace",
    ),
    "less indented": (
        b"def f():\n    if a:\n        b()\n",
        "edit",
        nested("if a:\n    b()", "if a:\n    c()\n    b()"),
        b"def f():\n    if a:\n        c()\n        b()\n",
        "indentation",
    ),
    "less indented, as a patch": (
        b"def f():\n    if a:\n        b()\n",
        "apply_patch",
        patch("*** Update File: f.py", "@@", " if a:", "-    b()", "+    c()"),
        b"def f():\n    if a:\n        c()\n",
        "indentation",
    ),
    "spaces for tabs": (
        b"\tif a:\n\t\tb()\n",
        "edit",
        nested("    if a:\n        b()", "    if a:\n        c()"),
        b"\tif a:\n\t\tc()\n",
        "indentation",
    ),
    "crlf": (b"a\r\nb\r\nc\r\n", "edit", nested("a\nb", "a\nx\nb"), b"a\r\nx\r\nb\r\nc\r\n", "line_endings"),
    "crlf, as a patch": (
        b"a\r\nb\r\n",
        "apply_patch",
        patch("*** Update File: f.py", "@@", " a", "-b", "+x"),
        b"a\r\nx\r\n",
        "",
    ),
    "byte order mark": (b"\xef\xbb\xbfa\nb\n", "edit", nested("a\nb", "x\nb"), b"\xef\xbb\xbfx\nb\n", ""),
    "byte order mark, as a patch": (
        b"\xef\xbb\xbfa\nb\n",
        "apply_patch",
        patch("*** Update File: f.py", "@@", "-a", "+x"),
        b"\xef\xbb\xbfx\nb\n",
        "",
    ),
    "line numbers": (
        CALC,
        "edit",
        nested("     2\t    return a - b", "     2\t    return a + b"),
        PLUS,
        "line_numbers",
    ),
    "written line break": (
        CALC,
        "edit",
        nested("def add(a, b):\\n    return a - b", "def add(a, b):\\n    return a + b"),
        PLUS,
        "escapes",
    ),
    "written line break in what is new": (
        CALC,
        "edit",
        nested("b):\\n    return a - b", "b):\\n    x\\n    y"),
        None,
        "escapes",
    ),
    "written letter": (
        "n = 'café'\n".encode(),
        "edit",
        nested("'caf\\u00e9'", "'caf\\u00e9s'"),
        "n = 'cafés'\n".encode(),
        "escapes",
    ),
    "letter with its mark apart": (
        "café = 1\n".encode(),
        "edit",
        nested("cafe\u0301 = 1", "cafe\u0301 = 2"),
        "café = 2\n".encode(),
        "",
    ),
    "unique beside a loose twin": (
        'a = "x"\nb = “x”\n'.encode(),
        "edit",
        nested('"x"', '"y"'),
        'a = "y"\nb = “x”\n'.encode(),
        "",
    ),
    "latin-1 elsewhere": (b"# caf\xe9\nx = 1\n", "edit", nested("x = 1", "x = 2"), b"# caf\xe9\nx = 2\n", "latin-1"),
    "empty old text": (CALC, "edit", nested("", "x"), None, "empty"),
    "delete a line's text": (b"a\nb\nc\n", "edit", nested("b", ""), b"a\n\nc\n", ""),
    "no final newline": (b"a\nb", "edit", nested("b", "c"), b"a\nc", ""),
    "no final newline, as a patch": (
        b"a\nb",
        "apply_patch",
        patch("*** Update File: f.py", "@@", "-b", "+c"),
        b"a\nc",
        "",
    ),
    "blank old text": (b"a b c\n", "edit", nested(" ", "x"), None, "blank"),
    "not read before": (CALC, "Edit", '{"file_path":"f.py","old_string":"a - b","new_string":"a + b"}', PLUS, ""),
    "chunks in the wrong order": (
        b"a\nb\nc\n",
        "apply_patch",
        patch("*** Update File: f.py", "@@", "-c", "+C", "@@", "-a", "+A"),
        b"A\nb\nC\n",
        "",
    ),
    "two edits, one not found": (
        CALC,
        "edit",
        json.dumps(
            {"path": "f.py", "edits": [{"oldText": "a - b", "newText": "x"}, {"oldText": "zzz", "newText": "y"}]}
        ),
        None,
        "/edits/1",
    ),
    "added without a place": (CALC, "apply_patch", patch("*** Update File: f.py", "@@", "+x"), None, "where"),
    "added below a line": (
        CALC,
        "apply_patch",
        patch("*** Update File: f.py", "@@ def add(a, b):", "+    # x"),
        b"def add(a, b):\n    # x\n    return a - b\n",
        "",
    ),
}


@pytest.mark.parametrize(("data", "name", "arguments", "after", "says"), MATCHING.values(), ids=MATCHING)
def test_matching(tools: FileTools, data: bytes, name: str, arguments: str, after: bytes | None, says: str) -> None:
    file = put(tools, data)
    answer = tools.call(name, arguments)
    assert file.read_bytes() == (data if after is None else after)
    assert answer.is_error == (after is None)
    assert says in answer.text


def test_a_patch_of_two_files_with_one_wrong_changes_neither(tools: FileTools) -> None:
    one, two = put(tools, CALC, "one.py"), put(tools, CALC, "two.py")
    chunk = ["@@", "-    return a - b", "+    return a + b"]
    wrong = ["@@", "-    return a * b", "+    return a + b"]
    answer = tools.call("apply_patch", patch("*** Update File: one.py", *chunk, "*** Update File: two.py", *wrong))
    assert answer.is_error
    assert "two.py" in answer.text
    assert (one.read_bytes(), two.read_bytes()) == (CALC, CALC)
    missing = tools.call("apply_patch", patch("*** Update File: one.py", *chunk, "*** Delete File: nowhere.py"))
    assert missing.is_error
    assert one.read_bytes() == CALC


def test_a_file_changed_since_it_was_read_is_not_edited(tools: FileTools) -> None:
    file = put(tools, CALC)
    assert not tools.call("read", '{"path":"f.py"}').is_error
    file.write_bytes(b"# new\n" + CALC)
    answer = tools.call("edit", GOOD)
    assert "changed since" in answer.text
    assert file.read_bytes() == b"# new\n" + CALC
    tools.call("read", '{"path":"f.py"}')
    assert not tools.call("edit", GOOD).is_error
    assert not tools.call("edit", nested("a + b", "a * b")).is_error


def test_reading_first_can_be_required(tmp_path: Path) -> None:
    (tmp_path / "f.py").write_bytes(CALC)
    with Workspace(tmp_path, state=tmp_path.parent / "state") as workspace:
        tools = FileTools(workspace, require_read=True)
        assert "read it first" in tools.call("edit", GOOD).text
        assert "read it first" in tools.call("write", '{"path":"f.py","content":"x"}').text
        assert not tools.call("write", '{"path":"new.py","content":"x\\n"}').is_error
        tools.call("read", '{"path":"f.py"}')
        assert not tools.call("edit", GOOD).is_error


def test_no_answer_holds_a_whole_large_file(tools: FileTools) -> None:
    put(tools, b"".join(b"line number %d of the file\n" % n for n in range(5000)))
    for arguments in (
        nested("line number 17 of the file\n", "x\n"),
        nested("of the file", "x"),
        nested("line numero 9", "x"),
    ):
        assert len(tools.call("edit", arguments).text) < 4000
    everywhere = '{"file_path":"f.py","old_string":"number","new_string":"no","replace_all":true}'
    answer = tools.call("Edit", everywhere)
    assert not answer.is_error
    assert len(answer.text) < 8000
