"""Several files changed together: all or none, also when the process or the machine stops in between.

The new bytes are written in a folder of their own inside the root. Then a journal says what is to be done: this is the
moment of decision. Then it is done, and the journal and the folder go. Whoever opens the root next and finds such a
folder that nobody holds either clears it away (no journal: nothing was done) or finishes what the journal says. A
single file needs no journal: one rename is the whole commit.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from onspec.audit import Violation
from onspec.edits.confine import FOLDER, RESERVED, Stamp, refused

Kind = Literal["swap", "make", "drop", "fill"]
NAME = re.compile(rf"{re.escape(RESERVED)}[0-9a-f]{{16}}\Z")
OURS = re.compile(r"(?:\d+\.(?:new|old|gone)|journal|journal\.new|back)\Z")
BLOCK = 4096
"""Bytes that a file system writes together, for telling a file that was half written."""

NEW_MODE = 0o666
"""Permission bits of a new file, from which the process's umask takes some."""


@dataclass(frozen=True, slots=True)
class Step:
    """One file's part of a commit.

    Attributes:
        kind: `swap` puts a new file in the place of an old one, `make` makes one where none is, `drop` removes one,
            `fill` writes into the file itself, for one that has several names (hard links) or an owner we cannot give.
        parts: Path from the root, free of symlinks.
        data: The new bytes, or None for `drop`.
        old: The old bytes, or None for `make`.
        info: What the file was when it was read, or None for `make`.
        mode: Permission bits of a file that is made.
        folders: How many folders at the end of the path, before the name, have to be made.
    """

    kind: Kind
    parts: tuple[str, ...]
    data: bytes | None
    old: bytes | None
    info: os.stat_result | None
    mode: int = NEW_MODE
    folders: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    """A step as the journal has it."""

    kind: Kind
    parts: list[str]
    stamp: list[int] | None
    made: int
    folders: int


class CommitError(Exception):
    """A commit that did not happen; nothing is changed. Carries the violation and the number of the step."""

    def __init__(self, violation: Violation, step: int) -> None:
        super().__init__(violation.message)
        self.violation = violation
        self.step = step


def commit(root: int, steps: Sequence[Step], *, durable: bool = True) -> None:
    """Do all steps, or none.

    Args:
        root: Descriptor of the root.
        steps: What to do; no two about one file. The caller holds the locks of the folders.
        durable: Whether to wait until the disk has it.

    Raises:
        CommitError: Nothing was changed: a file is not what it was, the disk is full, or the system refused.
    """
    alone = len(steps) == 1 and steps[0].kind != "fill" and not steps[0].folders
    with _Work(root, durable) as work:
        number = 0
        try:
            for number, step in enumerate(steps):
                work.stage(number, step, keep=not alone)
            work.settle(alone)
            for number, entry in enumerate(work.entries):
                work.do(number, entry)
        except OSError as error:
            work.go_back()
            raise CommitError(refused(error), number) from None
        except _ConflictError:
            work.go_back()
            raise CommitError(CHANGED, number) from None
        except BaseException:  # the user stopped it: all or nothing holds for that too
            work.go_back()
            raise
        work.settled = True
        work.sync_folders(steps)


CHANGED = Violation("changed_meanwhile", "", "the file was changed by somebody else meanwhile", hint="read it again")


def recover(root: int, *, durable: bool = True) -> list[str]:
    """Finish or clear away what stopped halfway in this root.

    Returns:
        One line for each file that could not be brought to its new state because somebody changed it since.
    """
    problems: list[str] = []
    for name in sorted(name for name in os.listdir(root) if NAME.match(name)):
        with contextlib.suppress(OSError):
            folder = os.open(name, FOLDER, dir_fd=root)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_ours(folder, root, name):
                    work = _Work(root, durable, name, folder)
                    problems += work.finish()
            finally:
                os.close(folder)
    return problems


def _is_ours(folder: int, root: int, name: str) -> bool:
    """Whether a folder is one that a commit left, and not one that came with the files."""
    info = os.fstat(folder)
    now = os.stat(name, dir_fd=root, follow_symlinks=False)
    private = stat.S_IMODE(info.st_mode) == 0o700 and info.st_uid == os.geteuid()
    return private and now.st_ino == info.st_ino and all(OURS.match(name) for name in os.listdir(folder))


class _ConflictError(Exception):
    """A file is not what it was when it was read."""


class _Work:
    """The folder of one commit."""

    def __init__(self, root: int, durable: bool, name: str = "", folder: int = -1) -> None:
        self.root, self.durable = root, durable
        self.name, self.folder = name, folder
        self.entries: list[_Entry] = []
        self.settled = True

    def __enter__(self) -> _Work:
        try:
            while True:
                self.name = RESERVED + secrets.token_hex(8)
                os.mkdir(self.name, 0o700, dir_fd=self.root)
                self.folder = os.open(self.name, FOLDER, dir_fd=self.root)
                os.fchmod(self.folder, 0o700)
                fcntl.flock(self.folder, fcntl.LOCK_EX)
                with contextlib.suppress(FileNotFoundError):
                    if os.stat(self.name, dir_fd=self.root).st_ino == os.fstat(self.folder).st_ino:
                        return self
                os.close(self.folder)  # another process took it for a leftover before it was locked
                self.folder = -1
        except OSError as error:
            if self.folder >= 0:
                os.close(self.folder)
            with contextlib.suppress(OSError):
                os.rmdir(self.name, dir_fd=self.root)
            raise CommitError(refused(error), 0) from None

    def __exit__(self, *_: object) -> None:
        """Clear away, unless something is half done: then the next to open the root finishes it."""
        try:
            with contextlib.suppress(OSError):
                if self.settled:
                    self.clear()
        finally:
            os.close(self.folder)

    # before the decision

    def stage(self, number: int, step: Step, *, keep: bool) -> None:
        """Write the new bytes and, where they may be needed to go back, keep the old."""
        made = 0
        kind = step.kind
        if step.data is not None:
            fd = self._new_file(f"{number}.new", step.mode if kind == "make" else 0o600)
            try:
                _write(fd, step.data)
                if kind == "swap" and step.info is not None:
                    with self._parent(step.parts) as parent:
                        if not _dress(fd, parent, step.parts[-1], step.info):
                            kind = "fill"
                elif kind == "make":
                    self._dress_new(fd, step)
                made = os.fstat(fd).st_ino
                if self.durable:
                    os.fsync(fd)
            finally:
                os.close(fd)
        if kind == "fill" or (keep and kind == "swap"):
            self._keep(number, step, copy=kind == "fill")
        stamp = None if step.info is None else list(asdict(Stamp.of(step.info)).values())
        self.entries.append(_Entry(kind, list(step.parts), stamp, made, step.folders))

    def _dress_new(self, fd: int, step: Step) -> None:
        """Give a file that is made the group that its folder gives, and the mode that was asked for."""
        if not step.folders:
            with self._parent(step.parts) as parent, contextlib.suppress(OSError):
                folder = os.fstat(parent)
                if folder.st_mode & stat.S_ISGID:
                    os.fchown(fd, -1, folder.st_gid)
        if step.mode != NEW_MODE:
            os.fchmod(fd, step.mode)

    def _keep(self, number: int, step: Step, copy: bool) -> None:
        name = f"{number}.old"
        if not copy:
            with self._parent(step.parts) as parent, contextlib.suppress(OSError):
                os.link(step.parts[-1], name, src_dir_fd=parent, dst_dir_fd=self.folder, follow_symlinks=False)
                return
        fd = self._new_file(name)
        try:
            _write(fd, step.old or b"")
            if step.info is not None and not copy:
                with self._parent(step.parts) as parent:
                    _dress(fd, parent, step.parts[-1], step.info)
            if self.durable:
                os.fsync(fd)
        finally:
            os.close(fd)

    def settle(self, alone: bool) -> None:
        """Decide: from here on the commit is finished, even by another process."""
        if alone and self.entries[0].kind != "fill":
            return
        own = os.fstat(self.folder)
        journal = {
            "version": 1,
            "folder": own.st_ino,
            "entries": [asdict(entry) for entry in self.entries],
        }
        fd = self._new_file("journal.new")
        try:
            _write(fd, json.dumps(journal).encode())
            if self.durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        if self.durable:
            os.fsync(self.root)
        self.settled = False
        os.rename("journal.new", "journal", src_dir_fd=self.folder, dst_dir_fd=self.folder)
        if self.durable:
            os.fsync(self.folder)

    # after the decision

    def do(self, number: int, entry: _Entry) -> None:
        """Bring one file to its new state, or find it there."""
        for depth in range(len(entry.parts) - 1 - entry.folders, len(entry.parts) - 1):
            with self._parent(entry.parts[: depth + 1]) as parent, contextlib.suppress(FileExistsError):
                os.mkdir(entry.parts[depth], dir_fd=parent)
                if self.durable:
                    os.fsync(parent)
        with self._parent(entry.parts) as parent:
            getattr(self, f"_{entry.kind}")(number, entry, parent)

    def _swap(self, number: int, entry: _Entry, parent: int) -> None:
        name = entry.parts[-1]
        if not self._has(f"{number}.new"):
            return
        self._expect(parent, name, entry)
        os.rename(f"{number}.new", name, src_dir_fd=self.folder, dst_dir_fd=parent)

    def _make(self, number: int, entry: _Entry, parent: int) -> None:
        name, new = entry.parts[-1], f"{number}.new"
        found = _look(parent, name)
        if found is not None:
            if found.st_ino == entry.made:
                return
            raise _ConflictError
        if not self._has(new):
            return
        try:
            os.link(new, name, src_dir_fd=self.folder, dst_dir_fd=parent, follow_symlinks=False)
        except FileExistsError:
            raise _ConflictError from None
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                raise
            os.rename(new, name, src_dir_fd=self.folder, dst_dir_fd=parent)  # a file system without hard links

    def _drop(self, number: int, entry: _Entry, parent: int) -> None:
        if self._has(f"{number}.gone"):
            return
        if _look(parent, entry.parts[-1]) is None:
            return
        self._expect(parent, entry.parts[-1], entry)
        os.rename(entry.parts[-1], f"{number}.gone", src_dir_fd=parent, dst_dir_fd=self.folder)

    def _fill(self, number: int, entry: _Entry, parent: int) -> None:
        """Write into the file itself. Until it is whole again it is a mixture of old and new, which `recover` knows."""
        new, old = self._bytes(f"{number}.new"), self._bytes(f"{number}.old")
        fd = os.open(entry.parts[-1], os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        try:
            info = os.fstat(fd)
            assert entry.stamp is not None
            if info.st_ino != entry.stamp[0] or not _is_mixture(_read(fd), old, new):
                raise _ConflictError
            if len(new) > info.st_size:
                _reserve(fd, len(new))  # a full disk shows before the first byte is lost
            os.lseek(fd, 0, os.SEEK_SET)
            _write(fd, new)
            os.ftruncate(fd, len(new))
            if self.durable:
                os.fsync(fd)
        finally:
            os.close(fd)

    def _expect(self, parent: int, name: str, entry: _Entry) -> None:
        found = _look(parent, name)
        if found is None or list(asdict(Stamp.of(found)).values()) != entry.stamp:
            raise _ConflictError

    def sync_folders(self, steps: Sequence[Step]) -> None:
        if not self.durable:
            return
        for parts in dict.fromkeys(step.parts[:-1] for step in steps):
            with contextlib.suppress(OSError), self._parent((*parts, "")) as parent:
                os.fsync(parent)

    # going back, and forward after a stop

    def go_back(self) -> None:
        """Bring every file back to what it was, where it is still what we made it; from here on others do so too."""
        if self._has("journal"):
            os.rename("journal", "back", src_dir_fd=self.folder, dst_dir_fd=self.folder)
            if self.durable:
                os.fsync(self.folder)
        for number, entry in reversed(list(enumerate(self.entries))):
            with contextlib.suppress(OSError), self._parent(entry.parts) as parent:
                self._back(number, entry, parent)
        for entry in self.entries:
            for depth in range(len(entry.parts) - 1, len(entry.parts) - 1 - entry.folders, -1):
                with contextlib.suppress(OSError), self._parent(entry.parts[:depth]) as parent:
                    os.rmdir(entry.parts[depth - 1], dir_fd=parent)
        self.settled = True

    def _back(self, number: int, entry: _Entry, parent: int) -> None:
        name = entry.parts[-1]
        found = _look(parent, name)
        if entry.kind == "swap" and found is not None and found.st_ino == entry.made and self._has(f"{number}.old"):
            os.rename(f"{number}.old", name, src_dir_fd=self.folder, dst_dir_fd=parent)
        elif entry.kind == "make" and found is not None and found.st_ino == entry.made:
            os.unlink(name, dir_fd=parent)
        elif entry.kind == "drop" and found is None and self._has(f"{number}.gone"):
            os.rename(f"{number}.gone", name, src_dir_fd=self.folder, dst_dir_fd=parent)
        elif entry.kind == "fill" and found is not None and entry.stamp and found.st_ino == entry.stamp[0]:
            new, old = self._bytes(f"{number}.new"), self._bytes(f"{number}.old")
            fd = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            try:
                if _is_mixture(_read(fd), old, new):
                    os.lseek(fd, 0, os.SEEK_SET)
                    _write(fd, old)
                    os.ftruncate(fd, len(old))
            finally:
                os.close(fd)

    def finish(self) -> list[str]:
        """After a stop: do what the journal says, or go back where somebody changed a file since; then clear away."""
        problems: list[str] = []
        name = "back" if self._has("back") else "journal"
        if self._has(name):
            if not self._load(name):
                return problems
            number = 0
            try:
                for number, entry in enumerate(self.entries if name == "journal" else ()):
                    self.do(number, entry)
            except (OSError, _ConflictError):
                path = "/".join(self.entries[number].parts)
                problems.append(f"{path} was changed after a commit stopped halfway; the commit was taken back")
                name = "back"
            if name == "back":
                self.go_back()
        self.clear()
        return problems

    def _load(self, name: str) -> bool:
        own = os.fstat(self.folder)
        try:
            journal: dict[str, Any] = json.loads(self._bytes(name))
            entries = [_Entry(**entry) for entry in journal["entries"]]
            right = journal["folder"] == own.st_ino and all(_is_entry(entry) for entry in entries)
        except (ValueError, TypeError, KeyError):
            return False
        self.entries = entries
        return right

    def clear(self) -> None:
        """Remove the folder; the journal first, so that a stop in between does nothing again."""
        for name in ("journal", "back"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self.folder)
        for name in os.listdir(self.folder):
            os.unlink(name, dir_fd=self.folder)
        os.rmdir(self.name, dir_fd=self.root)

    @contextlib.contextmanager
    def _parent(self, parts: Sequence[str]) -> Iterator[int]:
        """Descriptor of the folder of a path, each step without following links."""
        folder = os.open(".", FOLDER, dir_fd=self.root)
        try:
            for part in parts[:-1]:
                deeper = os.open(part, FOLDER, dir_fd=folder)
                os.close(folder)
                folder = deeper
            yield folder
        finally:
            os.close(folder)

    def _new_file(self, name: str, mode: int = 0o600) -> int:
        return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=self.folder)

    def _has(self, name: str) -> bool:
        return _look(self.folder, name) is not None

    def _bytes(self, name: str) -> bytes:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder)
        try:
            return _read(fd)
        finally:
            os.close(fd)


def _is_entry(entry: _Entry) -> bool:
    names = bool(entry.parts) and all(
        isinstance(part, str) and part not in ("", ".", "..") and "/" not in part for part in entry.parts
    )
    return names and entry.kind in ("swap", "make", "drop", "fill") and 0 <= entry.folders < len(entry.parts)


def _look(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _read(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    parts = []
    while part := os.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


def _dress(fd: int, parent: int, name: str, info: os.stat_result) -> bool:
    """Give a new file the owner, mode and extended attributes of the old one; whether that could be done."""
    try:
        own = os.fstat(fd)
        if (own.st_uid, own.st_gid) != (info.st_uid, info.st_gid):
            os.fchown(fd, info.st_uid, info.st_gid)
        if hasattr(os, "listxattr"):
            old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
            try:
                kept = os.listxattr(old)
                for key in set(os.listxattr(fd)) - set(kept):
                    os.removexattr(fd, key)
                for key in kept:
                    os.setxattr(fd, key, os.getxattr(old, key))
            finally:
                os.close(old)
        os.fchmod(fd, stat.S_IMODE(info.st_mode))
    except OSError as error:
        return error.errno in (errno.EOPNOTSUPP, errno.ENOSYS)
    return True


def _is_mixture(found: bytes, old: bytes, new: bytes) -> bool:
    """Whether bytes are those that a write of `new` over `old` can leave when it stops: old and new, block by block."""
    if found in (old, new):
        return True
    if len(found) not in (len(old), len(new)):
        return False
    size = _shared_start(found, new)
    grown = old + bytes(max(0, len(found) - len(old)))
    if found[size:] == grown[size : len(found)]:
        return True
    return all(
        found[at : at + BLOCK] in (grown[at : at + BLOCK][: len(found) - at], new[at : at + BLOCK][: len(found) - at])
        for at in range(0, len(found), BLOCK)
    )


def _shared_start(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _reserve(fd: int, size: int) -> None:
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise


def version(data: bytes) -> str:
    """Name of a file's content: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:16]
