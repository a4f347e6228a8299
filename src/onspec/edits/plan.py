"""Operations turned into new bytes for files, all or none, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any

from onspec.audit import Repair, Violation
from onspec.edits.edit import Create, Delete, Modify, Operation, Write
from onspec.edits.guard import unwritable
from onspec.edits.replace import Piece, Replaced, replace
from onspec.edits.text import Encoding, Text, read
from onspec.edits.transaction import NEW_MODE, version


@dataclass(frozen=True, slots=True)
class Found:
    """What is at a path.

    Attributes:
        path: The path from the root, symlinks resolved.
        key: What is the same for two paths to one file, and different for two files.
        data: The file's bytes, or None where there is no file.
        mode: Its permission bits.
        where: The store's own handle.
        missing: How many folders above it do not exist.
        names: How many names (hard links) it has.
    """

    path: str
    key: Any
    data: bytes | None
    mode: int = NEW_MODE
    where: Any = None
    missing: int = 0
    names: int = 1


Find = Callable[[str], Found | Violation]


@dataclass(frozen=True, slots=True)
class FileChange:
    """What happens to one file.

    Attributes:
        found: The file as it is.
        after: Its new bytes, or None where it goes.
        text: The file as text, where it was changed in parts.
        pieces: What was replaced, where it was changed in parts.
        mode: Permission bits, for a file that is made.
        moved_to: Where a file that goes has its text from now on, or None.
        at: JSON Pointer to the operation.
    """

    found: Found
    after: bytes | None
    text: Text | None = None
    pieces: tuple[Piece, ...] = ()
    mode: int = NEW_MODE
    moved_to: str | None = None
    at: str = ""

    @property
    def path(self) -> str:
        return self.found.path

    @property
    def before(self) -> bytes | None:
        return self.found.data


@dataclass(frozen=True, slots=True)
class Plan:
    """What operations come to: changes and the trail, or violations and no change."""

    changes: tuple[FileChange, ...] = ()
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()


def plan(
    operations: Sequence[Operation],
    find: Find,
    *,
    loose: bool = True,
    seen: Mapping[str, str] | None = None,
    unseen: bool = True,
) -> Plan:
    """New bytes for every file that the operations touch, or all violations found.

    Args:
        operations: What to do. Several `Modify` of one file count as one.
        find: What is at a path.
        loose: Whether looser matching may be tried.
        seen: Path -> version that the caller has seen; another version refuses, as `expect` does.
        unseen: Whether a file that is not in `seen` may be changed.
    """
    work = _Work(find, loose, named=len(operations) > 1, seen=seen or {}, unseen=unseen)
    if not operations:
        work.refuse(Violation("no_op", "", "there is nothing to do"), "")
    for operation in _joined(operations, work):
        work.add(operation)
    if work.violations:
        return Plan(violations=tuple(work.violations))
    notes = [*work.notes, *(_linked(change) for change in work.changes if change.found.names > 1)]
    return Plan(tuple(work.changes), tuple(work.repairs), notes=tuple(notes))


def _linked(change: FileChange) -> str:
    if change.after is None:
        return f"{_short(change.path)} is one of {change.found.names} names of a file; the others stay"
    return f"{_short(change.path)} is one of {change.found.names} names of a file; all of them show the change"


def _joined(operations: Sequence[Operation], work: _Work) -> list[Operation]:
    """Several `Modify` of one path, as one."""
    joined: dict[Any, Operation] = {}
    for number, operation in enumerate(operations):
        key: Any = number
        if isinstance(operation, Modify) and operation.to is None:
            found = work.find(operation.path)
            key = found.key if isinstance(found, Found) else number
        before = joined.get(key)
        if isinstance(before, Modify) and isinstance(operation, Modify):
            operation = with_(before, changes=before.changes + operation.changes)
        joined[key] = operation
    return list(joined.values())


class _Work:
    """One run of `plan`."""

    def __init__(self, find: Find, loose: bool, named: bool, seen: Mapping[str, str], unseen: bool) -> None:
        self._find, self.loose, self.named = find, loose, named
        self.seen, self.unseen = seen, unseen
        self._found: dict[str, Found | Violation] = {}
        self._touched: set[Any] = set()
        self.changes: list[FileChange] = []
        self.repairs: list[Repair] = []
        self.violations: list[Violation] = []
        self.notes: list[str] = []

    def find(self, path: str) -> Found | Violation:
        if path not in self._found:
            self._found[path] = self._find(path)
        return self._found[path]

    def refuse(self, violation: Violation, at: str, path: str = "") -> None:
        message = f"{_short(path)}: {violation.message}" if path and self.named else violation.message
        self.violations.append(with_(violation, path=violation.path or at, message=message))

    def add(self, operation: Operation) -> None:
        found = self.find(operation.path)
        if isinstance(found, Violation):
            self.refuse(found, operation.at, operation.path)
            return
        if found.key in self._touched:
            wrong = Violation("same_file_twice", "", "two operations of the call are about this file")
            self.refuse(wrong, operation.at, found.path)
            return
        self._touched.add(found.key)
        if isinstance(operation, Modify):
            self._modify(operation, found)
        elif isinstance(operation, Create):
            self._create(operation, found)
        elif isinstance(operation, Write):
            self._write(operation, found)
        else:
            self._delete(operation, found)

    def _present(self, operation: Modify | Delete, found: Found) -> bytes | None:
        if found.data is None:
            said = "there is no such file" if self.named else f"there is no such file: {_short(found.path)}"
            self.refuse(Violation("no_such_file", "", said), operation.at, found.path)
            return None
        return found.data if self._expected(operation.expect, found, operation.at) else None

    def _expected(self, expect: str | None, found: Found, at: str) -> bool:
        """Whether a file, if there is one, is as the caller has seen it."""
        if found.data is None:
            return True
        expect = expect or self.seen.get(found.path)
        if expect is None and not self.unseen:
            wrong = Violation("not_read", "", "the file was not read yet", hint="read it first")
            self.refuse(wrong, at, found.path)
        elif expect is not None and version(found.data) != expect:
            wrong = Violation("stale", "", "the file was changed since it was read", hint="read it again")
            self.refuse(wrong, at, found.path)
        else:
            return True
        return False

    def _read(self, data: bytes, encoding: str | None, at: str, path: str) -> Text | None:
        text = read(data, encoding)
        if isinstance(text, Violation):
            self.refuse(text, at, path)
            return None
        if text.encoding.source == "detected" and text.encoding.name != "utf-8":
            self.notes.append(f"{_short(path)} was read as {text.encoding.name}, by its bytes")
        return text

    def _modify(self, operation: Modify, found: Found) -> None:
        data = self._present(operation, found)
        text = None if data is None else self._read(data, operation.encoding, operation.at, found.path)
        if text is None or data is None:
            return
        done = replace(text, operation.changes, loose=self.loose) if operation.changes else Replaced(data)
        if not operation.changes and operation.to is None:
            done = Replaced(None, violations=(Violation("no_op", operation.at, "there are no edits"),))
        for violation in done.violations:
            self.refuse(violation, operation.at, found.path)
        self.repairs += done.repairs
        if done.data is None:
            return
        if operation.to is None:
            self.changes.append(FileChange(found, done.data, text, done.pieces, at=operation.at))
        else:
            self._move(operation, found, text, done)

    def _move(self, operation: Modify, found: Found, text: Text, done: Replaced) -> None:
        target = self.find(operation.to or "")
        if isinstance(target, Violation):
            self.refuse(target, operation.at, operation.to or "")
        elif target.key == found.key:
            self.refuse(Violation("no_op", "", "the new path is the old one"), operation.at, found.path)
        elif target.data is not None or target.key in self._touched:
            self.refuse(Violation("exists", "", "there is a file at the new path"), operation.at, target.path)
        elif not self._strange(target, operation.at):
            self._touched.add(target.key)
            self.changes.append(FileChange(found, None, text, done.pieces, moved_to=target.path, at=operation.at))
            self.changes.append(FileChange(target, done.data, mode=found.mode, at=operation.at))

    def _create(self, operation: Create, found: Found) -> None:
        if found.data is not None:
            hint = "edit it, or use a tool that writes whole files"
            self.refuse(Violation("exists", "", "there is a file already", hint=hint), operation.at, found.path)
            return
        data = None if self._strange(found, operation.at) else self._encoded(operation, found, None)
        if data is not None:
            self.changes.append(FileChange(found, data, at=operation.at))

    def _write(self, operation: Write, found: Found) -> None:
        if not self._expected(operation.expect, found, operation.at):
            return
        old = None if found.data is None else self._read(found.data, operation.encoding, operation.at, found.path)
        if old is None and found.data is not None:
            return
        if old is None and self._strange(found, operation.at):
            return
        data = self._encoded(operation, found, old)
        if data is None:
            return
        if data == found.data:
            self.refuse(Violation("no_op", "", "the file has exactly this text already"), operation.at, found.path)
            return
        self.changes.append(FileChange(found, data, at=operation.at))

    def _encoded(self, operation: Create | Write, found: Found, old: Text | None) -> bytes | None:
        """The text in the file's encoding, with its byte order mark and its line ends."""
        text = operation.text
        wrong = unwritable(text, "")
        if wrong:
            self.refuse(wrong, operation.at, found.path)
            return None
        if old is None:
            empty = read(b"", operation.encoding)
            old = empty if isinstance(empty, Text) else None
            if isinstance(empty, Violation):
                self.refuse(empty, operation.at, found.path)
        if old is None:
            return None
        if not old.encoding.name:
            old = Text(b"", b"", Encoding("utf-8"))  # nothing of the unknown encoding is left
            self.notes.append(f"{_short(found.path)} had an unknown encoding; it is UTF-8 now")
        view = old.view
        if "\r" not in text and view.count(b"\r\n") == view.count(b"\n") > 0:
            self.repairs.append(Repair("line_endings", operation.at, "\n", "\r\n"))
            text = text.replace("\n", "\r\n")
        body = old.encode(text.removeprefix("\ufeff") if old.encoding.bom else text)
        if body is None:
            char = next(c for c in text if old.encode(c) is None)
            message = f"the file's encoding ({old.encoding}) has no character U+{ord(char):04X}"
            self.refuse(Violation("not_encodable", "", message), operation.at, found.path)
            return None
        return old.encoding.bom + body

    def _strange(self, found: Found, at: str) -> bool:
        """Whether a new file would have a name that was hardly meant as one."""
        if "\\" not in found.path and found.path.isprintable():
            return False
        hint = "folders are separated by /" if "\\" in found.path else None
        message = "the name of the new file has a backslash or a control character"
        self.refuse(Violation("bad_path", "", message, hint=hint), at, found.path)
        return True

    def _delete(self, operation: Delete, found: Found) -> None:
        if self._present(operation, found) is not None:
            self.changes.append(FileChange(found, None, at=operation.at))


def _short(path: str) -> str:
    return path if len(path) <= 80 else "..." + path[-77:]
