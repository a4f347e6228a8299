"""`onspec edit` from a shell."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CALC = b"def add(a, b):\n    return a - b\n"
CALL = json.dumps({"path": "calc.py", "edits": [{"oldText": "a - b", "newText": "a + b"}]})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "calc.py").write_bytes(CALC)
    return folder


def run(root: Path, *arguments: str, written: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "onspec", "edit", *arguments, "--root", str(root)]
    return subprocess.run(
        [*command, "--state", str(root.parent / "state")], input=written, capture_output=True, text=True, check=False
    )


def test_a_file_that_is_not_there_is_named(root: Path) -> None:
    ran = run(root, "diff", written=CALL.replace("calc.py", "other/place.py"))
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "other/place.py" in ran.stderr


@pytest.mark.parametrize("command", ["diff", "apply"])
@pytest.mark.parametrize("written", ["", " \n"])
def test_an_empty_call_is_no_damaged_patch(root: Path, command: str, written: str) -> None:
    ran = run(root, command, written=written)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", "onspec: the call is empty\n")


def test_apply_diff_and_undo(root: Path) -> None:
    shown = run(root, "diff", written=CALL)
    assert shown.returncode == 0
    assert (
        shown.stdout
        == "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"
    )
    assert (root / "calc.py").read_bytes() == CALC
    done = run(root, "apply", written=CALL)
    assert (done.returncode, done.stdout) == (0, shown.stdout)
    assert (root / "calc.py").read_bytes() == CALC.replace(b"-", b"+")
    assert "calc.py" in run(root, "undo", "--list").stdout
    assert run(root, "undo", "calc.py").returncode == 0
    assert (root / "calc.py").read_bytes() == CALC
    assert run(root, "undo").returncode == 1


def test_the_diff_is_one_that_patch_understands(root: Path, tmp_path: Path) -> None:
    (root / "b.txt").write_bytes(b"".join(b"line %d\n" % n for n in range(60)) + b"last")
    call = {
        "path": "b.txt",
        "edits": [{"oldText": f"line {n}\n", "newText": f"LINE {n}\nmore\n"} for n in (10, 14, 40)],
    }
    call["edits"].append({"oldText": "last", "newText": "the end\n"})  # type: ignore[attr-defined]
    diff = run(root, "diff", written=json.dumps(call)).stdout
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "b.txt").write_bytes((root / "b.txt").read_bytes())
    applied = subprocess.run(["git", "apply", "-"], cwd=copy, input=diff, capture_output=True, text=True, check=False)
    assert applied.returncode == 0, applied.stderr
    assert run(root, "apply", written=json.dumps(call)).returncode == 0
    assert (copy / "b.txt").read_bytes() == (root / "b.txt").read_bytes()


def test_every_kind_of_call_is_told_by_its_keys(root: Path) -> None:
    for number, call in enumerate(
        (
            {"path": "calc.py", "edits": [{"oldText": "a - b", "newText": "0"}]},
            {"file_path": "calc.py", "old_string": "0", "new_string": "1"},
            {"command": "str_replace", "path": "calc.py", "old_str": "return 1", "new_str": "return 2"},
            {"input": "*** Begin Patch\n*** Update File: calc.py\n-    return 2\n+    return 3\n*** End Patch"},
            {"path": "calc.py", "content": "4\n"},
        )
    ):
        assert run(root, "apply", written=json.dumps(call)).returncode == 0, number
    patch = "*** Begin Patch\n*** Update File: calc.py\n-4\n+5\n*** End Patch\n"
    assert run(root, "apply", written=patch).returncode == 0
    assert (root / "calc.py").read_bytes() == b"5\n"


def test_json_and_exit_codes(root: Path) -> None:
    refused = run(root, "apply", "--json", written=CALL.replace("a - b", "a * b"))
    assert refused.returncode == 1
    document = json.loads(refused.stdout)
    assert (document["status"], document["violations"][0]["code"]) == ("refused", "not_found")
    done = json.loads(run(root, "apply", "--json", written=CALL).stdout)
    assert (done["status"], done["files"][0]["action"]) == ("done", "edit")
    assert done["undo"]
    for arguments, written in (
        (("apply",), '{"what": 1}'),
        (("apply",), "{ broken"),
        (("apply", "no such file"), ""),
        (("nope",), ""),
    ):
        wrong = run(root, *arguments, written=written)
        assert wrong.returncode == 2
        assert "Traceback" not in wrong.stderr


def test_broken_json_of_a_known_kind_is_mended(root: Path) -> None:
    assert run(root, "apply", "--tool", "nested", written=CALL[:-1] + ",}").returncode == 0


def test_declared_encoding(root: Path) -> None:
    (root / "j.txt").write_bytes("表示\n".encode("shift_jis"))
    call = json.dumps({"path": "j.txt", "edits": [{"oldText": "表示", "newText": "日本"}]})
    assert run(root, "apply", written=call).returncode == 1
    assert run(root, "apply", "--encoding", "shift_jis", written=call).returncode == 0
    assert (root / "j.txt").read_bytes() == "日本\n".encode("shift_jis")


@pytest.mark.parametrize("name", ["klingon", "utf-7", "base64"])
def test_an_encoding_that_cannot_be_used_is_the_callers_mistake(root: Path, name: str) -> None:
    ran = run(root, "apply", "--encoding", name, written=CALL)
    told = f"onspec: files cannot be edited in the encoding '{name}'\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", told)
    command = [sys.executable, "-m", "onspec", "mcp", "--root", str(root), "--encoding", name]
    ran = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", told)
