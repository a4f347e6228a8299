"""A process that kills itself at a chosen system call: before it, or halfway through where it writes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onspec.edits import store, transaction
from onspec.edits.edit import Create, Delete, Modify, Replace, Write
from onspec.edits.workspace import Workspace

CHANGING = {
    "mkdir",
    "open",
    "write",
    "rename",
    "link",
    "unlink",
    "rmdir",
    "fsync",
    "fchmod",
    "ftruncate",
    "posix_fallocate",
}

SCENARIOS = {
    "one": (Modify("a.txt", (Replace("alpha", "ALPHA" * 3000),)),),
    "many": (
        Modify("a.txt", (Replace("alpha", "ALPHA"),)),
        Modify("sub/b.txt", (Replace("beta", "BETA"),)),
        Create("new/deep/c.txt", "gamma\n"),
        Delete("d.txt"),
        Modify("e.txt", (Replace("epsilon", "EPSILON"),), to="sub/moved.txt"),
    ),
    "linked": (Modify("hard.txt", (Replace("hard", "H" * 20000),)), Write("a.txt", "whole\n")),
    "linked alone": (Modify("hard.txt", (Replace("hard", "soft"),)),),
}


class Killing:
    """`os`, with a count of the calls that change something."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        if name not in CHANGING:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            if name == "open" and not args[1] & os.O_CREAT:
                return found(*args, **kwargs)
            self._left -= 1
            if self._left == 0:
                if name == "write" and len(args[1]) > 1:
                    os.write(args[0], args[1][: len(args[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return found(*args, **kwargs)

        return call


def in_child(work: Callable[[], None], at: int) -> bool:
    """Do `work` in a child that kills itself at its changing system call number `at`; whether it was killed."""
    child = os.fork()
    if not child:
        code = 1
        try:
            killing = Killing(at)
            transaction.os = killing  # type: ignore[attr-defined]
            store.os = killing  # type: ignore[attr-defined]
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def commit(root: Path, state: Path, scenario: str) -> None:
    """Commit a scenario."""
    with Workspace(root, state=state) as workspace:
        done = workspace.apply(SCENARIOS[scenario])
        assert done.ok, done.violations
