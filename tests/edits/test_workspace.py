"""Files on disk: no way out of the root, nothing lost between processes, nothing changed but what was edited."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from onspec.audit import Violation
from onspec.edits import transaction
from onspec.edits.edit import Create, Delete, Modify, Operation, Replace, Write
from onspec.edits.workspace import Content, Workspace
from onspec.errors import InputError

FIX = (Replace("old", "new"),)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def workspace(root: Path) -> Workspace:
    return Workspace(root, state=root.parent / "state")


def code(workspace: Workspace, *operations: Operation) -> str:
    done = workspace.apply(operations)
    return done.violations[0].code if done.violations else "done"


# no way out


@pytest.fixture
def secret(root: Path) -> Path:
    path = root.parent / "secret.txt"
    path.write_bytes(b"old secret")
    (root / "sub").mkdir()
    (root / "in.txt").write_bytes(b"old")
    (root / "link.txt").symlink_to("../secret.txt")
    (root / "absolute.txt").symlink_to(path)
    (root / "up").symlink_to("..")
    (root / "sub" / "deep").symlink_to("../../")
    (root / "chain").symlink_to("up")
    (root / "dangling").symlink_to("../made.txt")
    (root / "loop").symlink_to("loop")
    (root / "inside").symlink_to("sub/../in.txt")
    return path


OUT = [
    "../secret.txt",
    "sub/../../secret.txt",
    "./sub/./../../secret.txt",
    "sub//..//..//secret.txt",
    "link.txt",
    "absolute.txt",
    "up/secret.txt",
    "chain/secret.txt",
    "sub/deep/secret.txt",
    "dangling",
    "/etc/passwd",
    "../root2/x",
    "in.txt/../../secret.txt",
    "nowhere/../../secret.txt",
    "nowhere/../in.txt",
    "loop",
    "",
    " ",
    ".",
    "..",
    "/",
    "sub",
    "sub/",
    "a\0b",
    "x" * 300,
    "d/" * 300 + "x",
    "\ud800",
    "in.txt/",
    "in.txt/x",
    "new/",
    ".onspec-0123456789abcdef/journal",
    ".ONSPEC-0123456789abcdef/x",
    "sub/.onspec-x",
]


@pytest.mark.parametrize("path", OUT)
def test_no_path_leads_out(workspace: Workspace, secret: Path, path: str) -> None:
    before = sorted(str(found) for found in secret.parent.rglob("*") if "state" not in str(found))
    for operation in (Modify(path, FIX), Write(path, "x"), Create(path, "x"), Delete(path)):
        assert code(workspace, operation) != "done"
    assert isinstance(workspace.read(path), Violation)
    assert code(workspace, Modify("in.txt", FIX, to=path)) != "done"
    assert secret.read_bytes() == b"old secret"
    assert sorted(str(found) for found in secret.parent.rglob("*") if "state" not in str(found)) == before


def test_a_root_beside_a_longer_name_is_not_inside(root: Path, workspace: Workspace) -> None:
    beside = root.parent / "root2"
    beside.mkdir()
    (beside / "x").write_bytes(b"old")
    assert code(workspace, Modify(str(beside / "x"), FIX)) == "outside_root"


def test_links_inside_the_root_are_followed_and_stay(workspace: Workspace, secret: Path, root: Path) -> None:
    assert code(workspace, Modify("inside", FIX)) == "done"
    assert (root / "inside").is_symlink()
    assert (root / "in.txt").read_bytes() == b"new"
    assert code(workspace, Modify(str(root / "in.txt"), (Replace("new", "old"),))) == "done"
    (root / "full").symlink_to(root / "in.txt")
    assert code(workspace, Modify("full", FIX)) == "done"
    assert (root / "full").is_symlink()


@pytest.mark.parametrize(
    "operation", [Modify("dir/secret.txt", FIX), Create("dir/made.txt", "x"), Delete("dir/secret.txt")]
)
def test_a_folder_swapped_for_a_link_leads_nowhere(root: Path, secret: Path, operation: Operation) -> None:
    """Somebody replaces a folder by a link out of the root between the look and the commit."""
    (root / "dir").mkdir()
    (root / "dir" / "secret.txt").write_bytes(b"old")
    workspace = Workspace(root, state=root.parent / "state")
    real = transaction.commit

    def swapped(*args: object, **kwargs: object) -> None:
        (root / "dir").rename(root / "moved")
        (root / "dir").symlink_to("..")
        real(*args, **kwargs)  # type: ignore[arg-type]

    from onspec.edits import store

    store.commit, kept = swapped, store.commit  # type: ignore[assignment]
    try:
        assert code(workspace, operation) != "done"
    finally:
        store.commit = kept
    assert not (root.parent / "made.txt").exists()
    assert secret.read_bytes() == b"old secret"
    assert (root / "moved" / "secret.txt").read_bytes() == b"old"
    assert not list(root.glob(".onspec-*"))


def test_what_is_no_file_is_not_opened(workspace: Workspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "socket"))
        for name in ("pipe", "socket"):
            assert code(workspace, Modify(name, FIX)) == ("not_a_file" if name == "pipe" else "system_error")
            assert isinstance(workspace.read(name), Violation)
            assert code(workspace, Write(name, "x")) != "done"
            assert code(workspace, Delete(name)) != "done"


def test_a_root_has_to_be_a_folder(root: Path) -> None:
    (root / "file").write_bytes(b"")
    for path in (root / "file", root / "nowhere"):
        with pytest.raises(InputError):
            Workspace(path)


# what stays


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o664, 0o4755])
def test_mode_stays(workspace: Workspace, root: Path, mode: int) -> None:
    file = root / "f"
    file.write_bytes(b"old")
    file.chmod(mode)
    assert code(workspace, Modify("f", FIX)) == "done"
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert code(workspace, Modify("f", (), to="g")) == "done"
    assert stat.S_IMODE((root / "g").stat().st_mode) == mode
    assert code(workspace, Delete("g")) == "done"
    workspace.undo()
    assert stat.S_IMODE((root / "g").stat().st_mode) == mode


def test_a_new_file_obeys_the_umask(workspace: Workspace, root: Path) -> None:
    kept = os.umask(0o027)
    try:
        assert code(workspace, Create("a/b/f", "x")) == "done"
    finally:
        os.umask(kept)
    assert stat.S_IMODE((root / "a/b/f").stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes here")
def test_extended_attributes_stay(workspace: Workspace, root: Path) -> None:
    file = root / "f"
    file.write_bytes(b"old")
    try:
        os.setxattr(file, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has none")
    assert code(workspace, Modify("f", FIX)) == "done"
    assert os.getxattr(file, "user.note") == b"kept"


@pytest.mark.parametrize("new", ["new", "a much longer text than before " * 500, ""])
def test_hard_links_stay_together(workspace: Workspace, root: Path, new: str) -> None:
    (root / "a").write_bytes(b"some old text\n" + b"x" * 5000)
    os.link(root / "a", root / "b")
    assert code(workspace, Modify("a", (Replace("old", new),))) == "done"
    assert (root / "a").samefile(root / "b")
    assert (root / "b").read_bytes() == f"some {new} text\n".encode() + b"x" * 5000
    assert workspace.undo().ok
    assert (root / "b").read_bytes() == b"some old text\n" + b"x" * 5000


def test_two_names_of_one_file_in_one_call(workspace: Workspace, root: Path) -> None:
    (root / "a").write_bytes(b"old")
    os.link(root / "a", root / "b")
    (root / "c").symlink_to("a")
    assert code(workspace, Modify("a", FIX), Delete("b")) == "same_file_twice"
    assert code(workspace, Modify("a", FIX), Write("./c", "x")) == "same_file_twice"
    assert code(workspace, Create("new", "x"), Create("./new", "y")) == "same_file_twice"
    assert code(workspace, Modify("a", FIX), Modify("./a", (Replace("l", "L"),))) == "overlap"
    assert (root / "a").read_bytes() == b"old"


def test_read_only_files_stay(workspace: Workspace, root: Path) -> None:
    file = root / "f"
    file.write_bytes(b"old")
    file.chmod(0o444)
    for operation in (Modify("f", FIX), Write("f", "x"), Delete("f")):
        assert code(workspace, operation) == "read_only"
    assert file.read_bytes() == b"old"
    assert os.listdir(root) == ["f"]


def test_full_disk_changes_nothing(root: Path) -> None:
    """The second file does not fit: the first is as it was, and nothing is left behind."""
    (root / "a").write_bytes(b"old")
    (root / "b").write_bytes(b"old")
    child = os.fork()
    if not child:
        failed = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
            with Workspace(root, state=root.parent / "state") as workspace:
                found = code(workspace, Modify("a", FIX), Modify("b", (Replace("old", "n" * 200_000),)))
                failed = 0 if found == "disk_full" else 2
        finally:
            os._exit(failed)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert ((root / "a").read_bytes(), (root / "b").read_bytes()) == (b"old", b"old")
    assert sorted(os.listdir(root)) == ["a", "b"]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("call", ["write", "rename", "link", "fsync", "mkdir", "open"])
def test_any_failing_call_changes_nothing(root: Path, call: str, error: int) -> None:
    """A call that fails anywhere in a commit of several files takes all of it back."""

    def lay() -> None:
        for name in ("a", "b", "d"):
            (root / name).write_bytes(b"old")
            (root / name).chmod(0o644)

    operations = (Modify("a", FIX), Create("new/c", "x"), Modify("b", FIX, to="moved"), Delete("d"))
    seen_done = False
    for at in range(1, 60):
        lay()
        before = _tree(root)
        with Workspace(root, state=root.parent / "state") as workspace:
            failing = Failing(call, at, OSError(error, os.strerror(error)))
            transaction.os, kept = failing, transaction.os  # type: ignore[attr-defined,assignment]
            try:
                done = workspace.apply(operations)
            finally:
                transaction.os = kept  # type: ignore[attr-defined]
            if done.ok:
                seen_done = True
                assert workspace.undo().ok
            assert _tree(root) == before, f"{call} number {at}"
        if failing.left > 0:
            break
    assert seen_done


@pytest.mark.parametrize("call", ["write", "rename", "link", "fsync", "mkdir", "open", "unlink", "rmdir"])
def test_a_stop_by_the_user_changes_nothing_or_all(root: Path, call: str) -> None:
    """Ctrl-C at any call leaves all old or all new, at the latest when the root is opened again."""
    operations = (Modify("a", FIX), Create("new/c", "x"), Modify("b", FIX, to="moved"), Delete("d"))
    new = {"a": b"new", "moved": b"new", "new": None, "new/c": b"x"}
    for at in range(1, 60):
        for name in ("a", "b", "d"):
            (root / name).write_bytes(b"old")
        before = _tree(root)
        with Workspace(root, state=root.parent / "state") as workspace:
            failing = Failing(call, at, KeyboardInterrupt())
            transaction.os, kept = failing, transaction.os  # type: ignore[attr-defined,assignment]
            try:
                with contextlib.suppress(KeyboardInterrupt):
                    workspace.apply(operations)
            finally:
                transaction.os = kept  # type: ignore[attr-defined]
        with Workspace(root, state=root.parent / "state") as workspace:
            assert _tree(root) in (before, new), f"{call} number {at}"
            if _tree(root) == new:
                assert workspace.undo().ok
        if failing.left > 0:
            break


def test_two_stops_by_the_user(root: Path) -> None:
    """A second Ctrl-C, while the first takes a commit back, leaves all old or all new once the root is opened."""
    operations = (Modify("a", FIX), Create("new/c", "x"), Modify("b", FIX, to="moved"), Delete("d"))
    new = {"a": b"new", "moved": b"new", "new": None, "new/c": b"x"}
    for at in range(1, 30):
        for name in ("a", "b", "d"):
            (root / name).write_bytes(b"old")
        before = _tree(root)
        with Workspace(root, state=root.parent / "state") as workspace:
            failing = Failing("rename", at, KeyboardInterrupt(), times=2)
            transaction.os, kept = failing, transaction.os  # type: ignore[attr-defined,assignment]
            try:
                with contextlib.suppress(KeyboardInterrupt):
                    workspace.apply(operations)
            finally:
                transaction.os = kept  # type: ignore[attr-defined]
        with Workspace(root, state=root.parent / "state") as workspace:
            assert _tree(root) in (before, new), f"call {at}"
            if _tree(root) == new:
                assert workspace.undo().ok
        if failing.left > 0:
            break


def _tree(root: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


class Failing:
    """`os`, where a call of one name fails, and the next ones where it is to fail several times."""

    def __init__(self, name: str, at: int, error: BaseException, times: int = 1) -> None:
        self.name, self.left, self.error, self.times = name, at, error, times

    def __getattr__(self, name: str) -> object:
        found: Callable[..., object] = getattr(os, name)
        if name != self.name:
            return found

        def call(*args: object, **kwargs: object) -> object:
            self.left -= 1
            if -self.times < self.left <= 0:
                raise self.error
            return found(*args, **kwargs)

        return call


# between processes


def test_two_processes_lose_nothing(root: Path) -> None:
    """Two processes each make their own 40 edits in one file, at once; all 80 are there in the end."""
    (root / "f").write_bytes(b"".join(b"%s %d\n" % (who, n) for n in range(40) for who in (b"alpha", b"omega")))
    children = [_child(root, who) for who in ("alpha", "omega")]
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    expected = b"".join(b"%s was %d\n" % (who, n) for n in range(40) for who in (b"alpha", b"omega"))
    assert (root / "f").read_bytes() == expected


def _child(root: Path, who: str) -> int:
    child = os.fork()
    if child:
        return child
    failed = 1
    try:
        with Workspace(root, state=root.parent / "state", durable=False, patience=60) as workspace:
            for number in range(40):
                done = workspace.apply([Modify("f", (Replace(f"{who} {number}\n", f"{who} was {number}\n"),))])
                assert done.ok, done.violations
        failed = 0
    except BaseException as error:
        print(error, file=sys.stderr)
    finally:
        os._exit(failed)


def test_a_root_inside_a_root_waits_too(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "f").write_bytes(b"old")
    outer = Workspace(root, state=root.parent / "state", patience=0.05)
    inner = Workspace(root / "sub", state=root.parent / "state2", patience=0.05)
    with inner._store.hold(["f"]):
        assert code(outer, Modify("sub/f", FIX)) == "busy"
    assert code(outer, Modify("sub/f", FIX)) == "done"


def test_a_file_changed_between_look_and_commit_is_kept(workspace: Workspace, root: Path) -> None:
    """An editor that does not wait for us writes the file after we read it: its text is kept, ours is refused."""
    file = root / "f"
    file.write_bytes(b"old")
    (root / "g").write_bytes(b"old")
    real = transaction._Work.settle

    def meddled(self: transaction._Work, *args: object) -> None:
        real(self, *args)  # type: ignore[arg-type]
        file.write_bytes(b"somebody else's old text")

    transaction._Work.settle = meddled  # type: ignore[assignment,method-assign]
    try:
        found = code(workspace, Modify("g", FIX), Modify("f", FIX))
    finally:
        transaction._Work.settle = real  # type: ignore[method-assign]
    assert found == "changed_meanwhile"
    assert file.read_bytes() == b"somebody else's old text"
    assert (root / "g").read_bytes() == b"old"


def test_expect_refuses_another_version(workspace: Workspace, root: Path) -> None:
    (root / "f").write_bytes(b"old")
    content = workspace.read("f")
    assert isinstance(content, Content)
    assert code(workspace, Modify("f", FIX, expect=content.version)) == "done"
    assert code(workspace, Modify("f", (Replace("new", "x"),), expect=content.version)) == "stale"
    assert code(workspace, Write("f", "x", expect=content.version)) == "stale"
    assert code(workspace, Delete("f", expect=content.version)) == "stale"


# taking back

BATCH: tuple[Operation, ...] = (
    Modify("a", (Replace("old", "new", True),)),
    Write("b", "whole"),
    Create("x/y/c", "made"),
    Delete("d"),
    Modify("e", (Replace("old", "new"),), to="x/e"),
)


def test_undo_takes_back_all_of_a_call(workspace: Workspace, root: Path) -> None:
    for name in "abde":
        (root / name).write_bytes(b"old \xff old" if name == "a" else b"old")
    before = _tree(root)
    assert code(workspace, *BATCH) == "done"
    assert _tree(root) == {"a": b"new \xff new", "b": b"whole", "x": None, "x/y": None, "x/y/c": b"made", "x/e": b"new"}
    assert len(workspace.history()) == 1
    assert workspace.undo().ok
    assert _tree(root) == before
    assert workspace.undo().violations[0].code == "nothing_to_undo"


def test_undo_in_order_and_of_one_file(workspace: Workspace, root: Path) -> None:
    (root / "a").write_bytes(b"1")
    (root / "b").write_bytes(b"1")
    for old, new in (("1", "2"), ("2", "3")):
        for name in "ab":
            assert code(workspace, Modify(name, (Replace(old, new),))) == "done"
    assert workspace.undo("a").ok
    assert ((root / "a").read_bytes(), (root / "b").read_bytes()) == (b"2", b"3")
    for _ in range(3):
        assert workspace.undo().ok
    assert ((root / "a").read_bytes(), (root / "b").read_bytes()) == (b"1", b"1")


def test_undo_never_takes_back_somebody_elses_change(workspace: Workspace, root: Path) -> None:
    (root / "a").write_bytes(b"old")
    (root / "b").write_bytes(b"old")
    assert code(workspace, Modify("a", FIX), Modify("b", FIX)) == "done"
    (root / "b").write_bytes(b"new, and mine")
    assert workspace.undo().violations[0].code == "changed_since"
    assert ((root / "a").read_bytes(), (root / "b").read_bytes()) == (b"new", b"new, and mine")


def test_the_history_of_another_process_is_the_same(workspace: Workspace, root: Path) -> None:
    (root / "a").write_bytes(b"old")
    assert code(workspace, Modify("a", FIX)) == "done"
    with Workspace(root, state=root.parent / "state") as other:
        assert other.undo().ok
    assert (root / "a").read_bytes() == b"old"
    assert stat.S_IMODE((root.parent / "state").stat().st_mode) == 0o700


def test_a_history_that_cannot_be_written_or_read_is_no_obstacle(root: Path) -> None:
    (root / "a").write_bytes(b"old")
    state = root.parent / "state"
    state.write_bytes(b"a file where a folder should be")
    with Workspace(root, state=state) as workspace:
        assert code(workspace, Modify("a", FIX)) == "done"
        assert workspace.undo().violations[0].code == "nothing_to_undo"
    state.unlink()
    with Workspace(root, state=state) as workspace:
        assert code(workspace, Modify("a", (Replace("new", "old"),))) == "done"
        (state / "99999999999999999999-x.json").write_text("{ torn")
        assert workspace.undo().ok


# on disk and in memory alike

ROUND: tuple[tuple[tuple[Operation, ...], str], ...] = (
    ((Modify("a", FIX),), "done"),
    ((Modify("a", FIX),), "not_found"),
    ((Modify("nowhere", FIX),), "no_such_file"),
    ((Create("a", "x"),), "exists"),
    ((Create("n/m", "x"), Delete("b")), "done"),
    ((Create("a/x", "x"),), "not_a_folder"),
    ((Write("n", "x"),), "not_a_file"),
    ((Write("a", "new"),), "no_op"),
    ((Modify("a", (), to="c"),), "done"),
    ((Modify("c", (), to="n/m"),), "exists"),
    ((Modify("c", (), to="c"),), "no_op"),
    ((Modify("c", ()),), "no_op"),
    ((), "no_op"),
    ((Write("../x", "x"),), "outside_root"),
    ((Write("w", "one\n\ud800"),), "lone_surrogate"),
    ((Modify("c", (Replace("new", "é"),), encoding="no such"),), "unknown_encoding"),
    ((Modify("c", (Replace("new", "é"),), encoding="utf-7"),), "unknown_encoding"),
    ((Modify("c", (Replace("new", "é"),), encoding="latin-1"),), "done"),
)


def test_memory_does_what_disk_does(workspace: Workspace, root: Path) -> None:
    (root / "a").write_bytes(b"old")
    (root / "b").write_bytes(b"old")
    memory = Workspace.in_memory({"a": b"old", "b": b"old"})
    for operations, expected in ROUND:
        assert (code(workspace, *operations), code(memory, *operations)) == (expected, expected), operations
    for path in ("c", "n/m", "b", "a"):
        one, other = workspace.read(path), memory.read(path)
        assert type(one) is type(other)
        if isinstance(one, Content) and isinstance(other, Content):
            assert one.text.data == other.text.data
    assert (workspace.names("n"), workspace.names("."), memory.names(".")) == (["m"], ["c", "n/"], ["c", "n/"])
    for _ in range(4):
        assert workspace.undo().ok
        assert memory.undo().ok
    assert _tree(root) == {"a": b"old", "b": b"old"}
    assert memory._store.files == {"a": b"old", "b": b"old"}  # type: ignore[attr-defined]


def test_a_dry_run_writes_nothing(workspace: Workspace, root: Path) -> None:
    for name in "abde":
        (root / name).write_bytes(b"old")
    before = _tree(root)
    done = workspace.apply(BATCH, dry_run=True)
    assert done.ok
    assert len(done.changes) == 6
    assert _tree(root) == before
    assert workspace.history() == []


def test_a_whole_write_keeps_mark_encoding_and_line_ends(workspace: Workspace, root: Path) -> None:
    (root / "a").write_bytes(b"\xff\xfe" + "x\r\ny\r\n".encode("utf-16-le"))
    assert code(workspace, Write("a", "é\nz\n")) == "done"
    assert (root / "a").read_bytes() == b"\xff\xfe" + "é\r\nz\r\n".encode("utf-16-le")


def test_a_near_name_is_named(workspace: Workspace, root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "Readme.md").write_bytes(b"old")
    done = workspace.apply([Modify("sub/README.md", FIX)])
    assert done.violations[0].hint == "did you mean sub/Readme.md"
