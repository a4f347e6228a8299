"""Paths that cannot leave a root: every step is taken by descriptor, and every symlink is resolved by hand."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from onspec.audit import Violation
from onspec.errors import InputError

RESERVED = ".onspec-"
"""Start of the names of the folders in which a commit is prepared; no edit may touch them."""

MOST_LINKS = 40
"""Symlinks that are followed in one path, as the kernel does."""

MOST_FOLDERS = 256
"""Slashes in a path that is looked at."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells that a file is still the one that was read: inode, size and time of the last change."""

    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, info: os.stat_result) -> Stamp:
        return cls(info.st_ino, info.st_size, info.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class Spot:
    """A place inside a root where a file is or may be.

    Attributes:
        folder: Descriptor of the folder it is in, or of the deepest one that exists. Owned by the `walk` that gave it.
        parts: Its path from the root, symlinks resolved.
        missing: How many folders at the end of the path, before the name, do not exist.
        info: What is there, or None.
    """

    folder: int
    parts: tuple[str, ...]
    missing: int
    info: os.stat_result | None

    @property
    def name(self) -> str:
        return self.parts[-1]

    @property
    def path(self) -> str:
        return "/".join(self.parts)


class Root:
    """A folder that no path leads out of.

    Args:
        path: The folder.

    Raises:
        InputError: It is not a folder that can be read, or this system has no calls by descriptor.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if os.open not in os.supports_dir_fd or os.rename not in os.supports_dir_fd:
            raise InputError("a workspace on disk needs a POSIX system")
        self.given = os.path.abspath(os.fspath(path))
        try:
            self.real = str(Path(self.given).resolve(strict=True))
            self.fd = os.open(self.real, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(f"{path} cannot be a root: {error.strerror}") from None

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    @contextmanager
    def walk(self, path: str) -> Iterator[Spot | Violation]:
        """Where a path leads, or why it leads nowhere. The spot's descriptor is closed at the end of the block."""
        steps: list[tuple[int, str]] = []
        try:
            try:
                found = self._walk(path, steps)
            except OSError as error:
                found = refused(error)
            yield found
        finally:
            for folder, _ in steps:
                os.close(folder)

    def inside(self, path: str) -> str | None:
        """An absolute path as one from the root, by its letters; None where it is not under the root."""
        for root in (self.given, self.real):
            base = root.rstrip("/") + "/"
            if path == root or path + "/" == base:
                return ""
            if path.startswith(base):
                return path[len(base) :]
        return None

    def _walk(self, path: str, steps: list[tuple[int, str]]) -> Spot | Violation:
        wrong = _unusable(path)
        if wrong:
            return wrong
        inner = self.inside(path) if path.startswith("/") else path
        if inner is None:
            return _outside()
        left = inner.split("/")[::-1]
        links = 0
        while left:
            part = left.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if not steps:
                    return _outside()
                os.close(steps.pop()[0])
                continue
            if part.casefold().startswith(RESERVED):
                return Violation(
                    "reserved_path", "", f"names that begin with {RESERVED} are kept for commits in progress"
                )
            folder = steps[-1][0] if steps else self.fd
            here = tuple(name for _, name in steps)
            try:
                info = os.stat(part, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISLNK(info.st_mode):
                    links += 1
                    target = os.readlink(part, dir_fd=folder)
                    if links > MOST_LINKS:
                        return Violation("link_loop", "", "the path goes through too many symlinks")
                    if target.startswith("/"):
                        inner = self.inside(os.path.normpath(target)) if ".." not in target.split("/") else None
                        if inner is None:
                            return _outside("a symlink in the path leads out of the root")
                        while steps:
                            os.close(steps.pop()[0])
                        target = inner
                    left += target.split("/")[::-1]
                    continue
                rest = [name for name in left if name not in ("", ".")]
                if not stat.S_ISDIR(info.st_mode):
                    if rest or left:
                        return Violation("not_a_folder", "", "a part of the path is a file, not a folder")
                    return Spot(folder, (*here, part), 0, info)
                if not rest:
                    return Spot(folder, (*here, part), 0, info)
                steps.append((os.open(part, FOLDER, dir_fd=folder), part))
            except FileNotFoundError:
                rest = [name for name in left[::-1] if name not in ("", ".")]
                if ".." in rest or any(name.casefold().startswith(RESERVED) for name in rest):
                    return Violation("not_found", "", "a folder in the path does not exist")
                if left and not left[0]:
                    return Violation("not_a_file", "", "the path ends in / and so names a folder")
                return Spot(folder, (*here, part, *rest), len(rest), None)
            except OSError as error:
                return refused(error)
        here = tuple(name for _, name in steps)
        if not here:
            return Violation("not_a_file", "", "the path is the root itself, a folder")
        last, _ = steps.pop()
        os.close(last)
        folder = steps[-1][0] if steps else self.fd
        return Spot(folder, here, 0, os.stat(here[-1], dir_fd=folder, follow_symlinks=False))


def _unusable(path: str) -> Violation | None:
    if not path.strip():
        return Violation("no_path", "", "the path is empty")
    if "\0" in path:
        return Violation("bad_path", "", "the path has a NUL character")
    if path.count("/") > MOST_FOLDERS:
        return Violation("bad_path", "", f"the path has more than {MOST_FOLDERS} folders")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return Violation("bad_path", "", "the path has characters that a file name cannot have")
    return None


def _outside(message: str = "the path leads out of the root") -> Violation:
    return Violation("outside_root", "", message, hint="give a path inside the root")


REASONS = {
    errno.EACCES: ("permission_denied", "the system does not allow it"),
    errno.EPERM: ("permission_denied", "the system does not allow it"),
    errno.EROFS: ("read_only", "the file system is read-only"),
    errno.ENOSPC: ("disk_full", "the disk is full"),
    errno.EDQUOT: ("disk_full", "the disk quota is used up"),
    errno.EFBIG: ("disk_full", "the file would be larger than the system allows"),
    errno.ENAMETOOLONG: ("bad_path", "a name in the path is too long"),
    errno.ELOOP: ("changed_meanwhile", "a part of the path became a symlink"),
    errno.ENOTDIR: ("not_a_folder", "a part of the path is not a folder"),
    errno.EISDIR: ("not_a_file", "it is a folder"),
    errno.EXDEV: ("other_file_system", "it lies on another file system than the root; make its folder a root"),
    errno.ENOENT: ("changed_meanwhile", "it went away meanwhile"),
    errno.EEXIST: ("changed_meanwhile", "it appeared meanwhile"),
    errno.EIO: ("disk_error", "the disk reported an error"),
}


def refused(error: OSError, at: str = "") -> Violation:
    """A violation for what the system said."""
    code, message = REASONS.get(error.errno or 0, ("system_error", error.strerror or "the system refused"))
    return Violation(code, at, message)


def read_bytes(spot: Spot, limit: int) -> tuple[bytes, os.stat_result] | Violation:
    """A file's bytes and what it is, read while nobody changed it; or why not."""
    for _ in range(3):
        try:
            fd = os.open(
                spot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=spot.folder
            )
        except OSError as error:
            return refused(error)
        try:
            before = os.fstat(fd)
            if stat.S_ISDIR(before.st_mode):
                return Violation("not_a_file", "", "it is a folder")
            if not stat.S_ISREG(before.st_mode):
                return Violation("not_a_file", "", "it is not a regular file")
            if before.st_size > limit:
                return Violation("too_large", "", f"the file has {before.st_size} bytes; the limit is {limit}")
            data = _all(fd, before.st_size)
            after = os.fstat(fd)
        except OSError as error:
            return refused(error)
        finally:
            os.close(fd)
        if Stamp.of(before) == Stamp.of(after) and len(data) == after.st_size:
            return data, after
    return Violation("busy", "", "the file is being written by somebody else", hint="try again")


def _all(fd: int, size: int) -> bytes:
    data = os.read(fd, size + 1)
    if len(data) == size:
        return data
    parts = [data]
    while data and sum(map(len, parts)) <= size:
        data = os.read(fd, size + 1)
        parts.append(data)
    return b"".join(parts)
