"""A commit that is killed at any system call leaves, once the root is opened again, all old or all new."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onspec.edits import transaction
from onspec.edits.workspace import Workspace
from tests.edits.killing import SCENARIOS, commit, in_child


def tree(root: Path) -> dict[str, tuple[bytes | None, int]]:
    """Everything in a folder: bytes and mode of every file, and every folder."""
    found: dict[str, tuple[bytes | None, int]] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        found[name] = (path.read_bytes() if path.is_file() else None, path.stat().st_mode)
    return found


def lay(root: Path) -> None:
    root.mkdir()
    (root / "sub").mkdir()
    (root / "a.txt").write_bytes(b"alpha\r\n")
    (root / "sub" / "b.txt").write_bytes(b"\xef\xbb\xbfbeta\n")
    (root / "d.txt").write_bytes(b"delta")
    (root / "e.txt").write_bytes(b"epsilon\n")
    (root / "e.txt").chmod(0o755)
    (root / "hard.txt").write_bytes(b"some hard text\n" * 1 + b"x" * 9000)
    os.link(root / "hard.txt", root / "other.txt")


def run(root: Path, state: Path, scenario: str, at: int = 0) -> bool:
    return in_child(lambda: commit(root, state, scenario), at)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_killed_at_every_step(tmp_path: Path, scenario: str) -> None:
    lay(tmp_path / "old")
    lay(tmp_path / "new")
    assert not run(tmp_path / "new", tmp_path / "state", scenario)
    old, new = tree(tmp_path / "old"), tree(tmp_path / "new")
    assert old != new
    seen = set()
    for at in range(1, 200):
        root = tmp_path / str(at)
        lay(root)
        killed = run(root, tmp_path / "state", scenario, at)
        with Workspace(root, state=tmp_path / "state") as workspace:
            assert list(workspace.problems) == []
        left = tree(root)
        assert left in (old, new), f"a mixture after call {at}: {sorted(left)}"
        assert (root / "hard.txt").samefile(root / "other.txt")
        seen.add(left == new)
        if not killed:
            break
    assert at > 6
    assert seen == {False, True}


def test_killed_while_recovering(tmp_path: Path) -> None:
    """A recovery that is killed in turn is finished by the next one."""
    lay(tmp_path / "old")
    lay(tmp_path / "new")
    assert not run(tmp_path / "new", tmp_path / "state", "many")
    good = (tree(tmp_path / "old"), tree(tmp_path / "new"))
    stopped_at = next(at for at in range(1, 200) if _journal_after(tmp_path / f"find{at}", tmp_path / "state", at))
    for at in range(1, 100):
        root = tmp_path / f"r{at}"
        lay(root)
        run(root, tmp_path / "state", "many", stopped_at)
        killed = in_child(lambda root=root: Workspace(root, state=tmp_path / "state").close(), at)
        Workspace(root, state=tmp_path / "state").close()
        assert tree(root) in good
        if not killed:
            break
    assert at > 5


def test_killed_while_taking_back(tmp_path: Path) -> None:
    """A commit that finds a changed file, and is killed while it takes back the others, is taken back all the same."""
    lay(tmp_path / "new")
    assert not run(tmp_path / "new", tmp_path / "state", "many")
    new = tree(tmp_path / "new")
    real = transaction._Work.settle

    def meddled(self: transaction._Work, alone: bool) -> None:
        real(self, alone)
        with open(f"/proc/self/fd/{self.root}/e.txt", "ab") as file:
            file.write(b"mine")

    transaction._Work.settle = meddled  # type: ignore[method-assign]
    try:
        for at in range(1, 100):
            root = tmp_path / f"r{at}"
            lay(root)
            before = tree(root)
            killed = in_child(lambda root=root: _refused(root, tmp_path / "state"), at)
            meddling = (root / "e.txt").read_bytes().endswith(b"mine")
            Workspace(root, state=tmp_path / "state").close()
            taken_back = {**before, "e.txt": (b"epsilon\nmine", before["e.txt"][1])}
            assert tree(root) in ([taken_back] if meddling else [before, new]), f"call {at}"
            if not killed:
                break
    finally:
        transaction._Work.settle = real  # type: ignore[method-assign]
    assert at > 20


def test_killed_while_taking_back_after_a_passing_error(tmp_path: Path) -> None:
    """An error that passes makes a commit go back; killed on the way, it still goes back and not forward."""
    lay(tmp_path / "new")
    assert not run(tmp_path / "new", tmp_path / "state", "many")
    new = tree(tmp_path / "new")
    began = False
    for at in range(1, 100):
        root = tmp_path / f"r{at}"
        lay(root)
        before = tree(root)
        killed = in_child(lambda root=root: _failing(root, tmp_path / "state"), at)
        began = began or any(root.glob(".onspec-*/back"))
        Workspace(root, state=tmp_path / "state").close()
        assert tree(root) in (before, new), f"call {at}"
        if not killed:
            break
    assert began


def _failing(root: Path, state: Path) -> None:
    def fails(*args: object) -> None:
        raise OSError(5, "once")

    transaction._Work._drop = fails  # type: ignore[method-assign,assignment]
    _refused(root, state)


def _refused(root: Path, state: Path) -> None:
    with Workspace(root, state=state) as workspace:
        assert not workspace.apply(SCENARIOS["many"]).ok


def _journal_after(root: Path, state: Path, at: int) -> bool:
    lay(root)
    run(root, state, "many", at)
    return any(root.glob(".onspec-*/journal"))


def test_a_file_changed_after_the_stop_takes_the_commit_back(tmp_path: Path) -> None:
    """Somebody's own change made after a crash is never overwritten, and the other files go back to what they were."""
    for at in range(1, 200):
        root = tmp_path / str(at)
        lay(root)
        run(root, tmp_path / "state", "many", at)
        if any(root.glob(".onspec-*/journal")):
            break
    (root / "d.txt").write_bytes(b"my own change")
    before = tree(root)
    with Workspace(root, state=tmp_path / "state") as workspace:
        assert "d.txt" in workspace.problems[0]
    after = tree(root)
    assert after == {name: kept for name, kept in before.items() if not name.startswith(".onspec-")}


def test_a_planted_journal_is_not_obeyed(tmp_path: Path) -> None:
    """A journal that came with the files, say in a repository, does nothing."""
    lay(tmp_path / "root")
    trap = tmp_path / "root" / ".onspec-0123456789abcdef"
    trap.mkdir(mode=0o700)
    (trap / "0.new").write_bytes(b"#!/bin/sh\n")
    entry = '{"kind":"make","parts":["evil.sh"],"stamp":null,"made":1,"folders":0}'
    (trap / "journal").write_text('{"version":1,"folder":1,"entries":[' + entry + "]}")
    Workspace(tmp_path / "root", state=tmp_path / "state").close()
    assert not (tmp_path / "root" / "evil.sh").exists()
