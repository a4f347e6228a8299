"""Where a workspace keeps its files: on disk under a root, or in memory."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Protocol

from onspec.audit import Violation
from onspec.edits.confine import FOLDER, RESERVED, Root, Spot, read_bytes, refused
from onspec.edits.plan import FileChange, Find, Found
from onspec.edits.transaction import NEW_MODE, CommitError, Step, commit, recover

LIMIT = 256 * 1024 * 1024
"""Largest file, in bytes, that is read."""

Commit = Callable[[Sequence[FileChange]], None]


class Store(Protocol):
    """A place for files."""

    def look(self, path: str) -> Found | Violation:
        """What is at a path, without holding it."""

    def names(self, path: str) -> list[str] | Violation:
        """What is in a folder, sorted; folders end in `/`."""

    def hold(self, paths: Sequence[str]) -> AbstractContextManager[tuple[Find, Commit] | Violation]:
        """Keep all other writers away from these paths: how to look at them, and how to commit changes to them."""

    def prune(self, path: str, count: int) -> None:
        """Remove the `count` folders above a path, where they are empty."""

    def close(self) -> None: ...


class DiskStore:
    """Files under a root on disk.

    Args:
        root: The root.
        durable: Whether a commit waits until the disk has it.
        patience: Seconds to wait for another process that holds the files.
        limit: Largest file, in bytes, that is read.

    Raises:
        InputError: The root cannot be used.
    """

    def __init__(self, root: str | os.PathLike[str], durable: bool, patience: float, limit: int) -> None:
        self.root = Root(root)
        self.durable, self.patience, self.limit = durable, patience, limit
        self.problems: list[str] = []
        if self._leftovers():
            with contextlib.suppress(TimeoutError, OSError), ExitStack() as locks:
                self._lock([self.root.fd], locks)
                self.problems = recover(self.root.fd, durable=durable)

    def close(self) -> None:
        self.root.close()

    def look(self, path: str) -> Found | Violation:
        with self.root.walk(path) as spot:
            return spot if isinstance(spot, Violation) else self._found(spot)

    def names(self, path: str) -> list[str] | Violation:
        inner = self.root.inside(path) if path.startswith("/") else path
        if inner is not None and not set(inner.split("/")) - {"", "."}:
            return self._names(os.dup(self.root.fd))
        with self.root.walk(path) as spot:
            if isinstance(spot, Violation):
                return spot
            if spot.info is None:
                return Violation("no_such_file", "", "there is no such file or folder")
            try:
                return self._names(os.open(spot.name, FOLDER, dir_fd=spot.folder))
            except OSError as error:
                return refused(error)

    def _names(self, folder: int) -> list[str]:
        try:
            with os.scandir(folder) as found:
                return sorted(
                    entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
                    for entry in found
                    if not entry.name.startswith(RESERVED)
                )
        finally:
            os.close(folder)

    def prune(self, path: str, count: int) -> None:
        for _ in range(count):
            path = path.rpartition("/")[0]
            with self.root.walk(path) as spot, contextlib.suppress(OSError):
                if isinstance(spot, Spot) and spot.info is not None:
                    os.rmdir(spot.name, dir_fd=spot.folder)

    @contextmanager
    def hold(self, paths: Sequence[str]) -> Iterator[tuple[Find, Commit] | Violation]:
        with ExitStack() as walks, ExitStack() as locks:
            try:
                self._lock_all(paths, locks)
                if self._leftovers():
                    self.problems += recover(self.root.fd, durable=self.durable)
            except TimeoutError:
                yield Violation("busy", "", "another process is editing here", hint="try again")
                return
            except OSError as error:
                yield refused(error)
                return

            def find(path: str) -> Found | Violation:
                spot = walks.enter_context(self.root.walk(path))
                return spot if isinstance(spot, Violation) else self._found(spot)

            yield find, self._commit

    def _lock_all(self, paths: Sequence[str], locks: ExitStack) -> None:
        """Hold the root and the folders of the paths. A folder that was put in another's place meanwhile is not held
        for long: what is done there is still checked file by file."""
        with ExitStack() as walks:
            folders = [self.root.fd]
            for path in paths:
                spot = walks.enter_context(self.root.walk(path))
                if isinstance(spot, Spot):
                    folders.append(spot.folder)
            self._lock(folders, locks)

    def _lock(self, folders: Sequence[int], locks: ExitStack) -> None:
        """Lock folders, always in the order of their numbers, so that no two processes wait for each other."""
        distinct = {}
        for folder in folders:
            info = os.fstat(folder)
            distinct[info.st_dev, info.st_ino] = folder
        until = time.monotonic() + self.patience
        for _, folder in sorted(distinct.items()):
            own = os.open(".", FOLDER, dir_fd=folder)
            locks.callback(os.close, own)
            pause = 0.001
            while True:
                try:
                    fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError as error:
                    if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EINTR):
                        raise
                if time.monotonic() > until:
                    raise TimeoutError
                time.sleep(pause)
                pause = min(pause * 2, 0.05)

    def _leftovers(self) -> bool:
        with os.scandir(self.root.fd) as found:
            return any(entry.name.startswith(RESERVED) for entry in found)

    def _found(self, spot: Spot) -> Found | Violation:
        folder = os.fstat(spot.folder)
        if spot.info is None:
            return Found(
                spot.path,
                (folder.st_ino, folder.st_dev, spot.parts[-1 - spot.missing :]),
                None,
                where=spot,
                missing=spot.missing,
            )
        if stat.S_ISDIR(spot.info.st_mode):
            return Violation("not_a_file", "", "it is a folder")
        got = read_bytes(spot, self.limit)
        if isinstance(got, Violation):
            return got
        data, info = got
        fresh = Spot(spot.folder, spot.parts, 0, info)
        return Found(
            spot.path, (info.st_dev, info.st_ino), data, stat.S_IMODE(info.st_mode), fresh, names=info.st_nlink
        )

    def _commit(self, changes: Sequence[FileChange]) -> None:
        steps = []
        for number, change in enumerate(changes):
            step = self._step(change)
            if isinstance(step, Violation):
                raise CommitError(step, number)
            steps.append(step)
        commit(self.root.fd, steps, durable=self.durable)

    def _step(self, change: FileChange) -> Step | Violation:
        spot: Spot = change.found.where
        info = spot.info
        if os.fstat(spot.folder).st_dev != os.fstat(self.root.fd).st_dev:
            return refused(OSError(errno.EXDEV, ""))
        if info is None:
            return Step("make", spot.parts, change.after, None, None, change.mode, spot.missing)
        writable = info.st_mode & 0o222 and os.access(spot.name, os.W_OK, dir_fd=spot.folder, effective_ids=True)
        if not writable:
            return Violation("read_only", "", "the file is read-only")
        if change.after is None:
            return Step("drop", spot.parts, None, change.before, info)
        own = os.access(".", os.W_OK | os.X_OK, dir_fd=spot.folder, effective_ids=True)
        kind = "swap" if info.st_nlink == 1 and own else "fill"
        return Step("swap" if kind == "swap" else "fill", spot.parts, change.after, change.before, info)


class MemoryStore:
    """Files in memory, by path.

    Args:
        files: The files at the start.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files: dict[str, bytes] = {}
        self.modes: dict[str, int] = {}
        self._lock = threading.RLock()
        for path, data in files.items():
            self.files["/".join(_parts(path) or [path])] = bytes(data)

    def close(self) -> None:
        """Nothing to let go."""

    def prune(self, path: str, count: int) -> None:
        """A folder is there while it has files."""

    def look(self, path: str) -> Found | Violation:
        parts = _parts(path)
        if parts is None:
            return Violation("outside_root", "", "the path leads out of the root", hint="give a path inside the root")
        name = "/".join(parts)
        if not name or any(other.startswith(name + "/") for other in self.files):
            return Violation("not_a_file", "", "it is a folder")
        if any("/".join(parts[:depth]) in self.files for depth in range(1, len(parts))):
            return Violation("not_a_folder", "", "a part of the path is a file, not a folder")
        return Found(name, name, self.files.get(name), self.modes.get(name, NEW_MODE))

    def names(self, path: str) -> list[str] | Violation:
        parts = _parts(path)
        if parts is None:
            return Violation("outside_root", "", "the path leads out of the root")
        below = [name.split("/") for name in self.files if name.split("/")[: len(parts)] == parts]
        found = {
            rest[len(parts)] + ("/" if len(rest) > len(parts) + 1 else "") for rest in below if len(rest) > len(parts)
        }
        return sorted(found) if found or not parts else Violation("no_such_file", "", "there is no such file or folder")

    @contextmanager
    def hold(self, paths: Sequence[str]) -> Iterator[tuple[Find, Commit] | Violation]:
        with self._lock:
            yield self.look, self._commit

    def _commit(self, changes: Sequence[FileChange]) -> None:
        for change in changes:
            if change.after is None:
                del self.files[change.path]
            else:
                self.files[change.path] = change.after
                if change.before is None:
                    self.modes[change.path] = change.mode


def _parts(path: str) -> list[str] | None:
    """A path's names, or None where it leads out."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return parts
