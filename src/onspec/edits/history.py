"""What was done to which files, so that it can be taken back."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from onspec.edits.plan import FileChange

SURE, PENDING = ".json", ".pending"
"""Endings of the files of entries: come into effect, and about to."""

MOST_ENTRIES = 200
"""Entries that are kept; older ones go."""

MOST_BYTES = 256 * 1024 * 1024
"""Bytes of entries on disk that are kept; older ones go."""


@dataclass(frozen=True, slots=True)
class Record:
    """One file's part of an entry.

    Attributes:
        path: The file, from the root.
        after: Version of its content after, or None where there is none.
        pieces: For a file changed in parts: start and length in the new bytes, and the old bytes.
        whole: For another: the old bytes, or None where there was no file.
        existed: Whether there was a file.
        mode: Its permission bits before.
        folders: How many folders above it were made.
    """

    path: str
    after: str | None
    pieces: tuple[tuple[int, int, bytes], ...] = ()
    whole: bytes | None = None
    existed: bool = True
    mode: int = 0
    folders: int = 0

    def undone(self, data: bytes) -> bytes:
        """The bytes before, from the bytes after."""
        parts, at = [], 0
        for start, length, old in self.pieces:
            parts += [data[at:start], old]
            at = start + length
        return b"".join([*parts, data[at:]])


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit that can be taken back.

    Attributes:
        id: Its name; they sort by time.
        when: When it was, in seconds since 1970.
        files: What it did.
        sure: Whether it came into effect; False for one whose process stopped before it could say so.
    """

    id: str
    when: float
    files: tuple[Record, ...]
    sure: bool = False


class History(Protocol):
    """Where entries are kept."""

    def save(self, entry: Entry) -> None:
        """Keep an entry that is about to come into effect."""

    def confirm(self, entry: Entry) -> None:
        """It came into effect."""

    def drop(self, entry: Entry) -> None: ...

    def entries(self) -> list[Entry]:
        """All entries, the newest first."""


def entry_of(changes: Sequence[FileChange], versions: Sequence[str | None]) -> Entry:
    """The entry for changes, whose new versions are given."""
    now = time.time_ns()
    records = tuple(_record(change, after) for change, after in zip(changes, versions, strict=True))
    return Entry(f"{now:020d}-{os.urandom(3).hex()}", now / 1e9, records)


def _record(change: FileChange, after: str | None) -> Record:
    if change.pieces and change.after is not None:
        pieces, shift = [], 0
        for piece in change.pieces:
            pieces.append((piece.start + shift, len(piece.new), piece.old))
            shift += len(piece.new) - len(piece.old)
        return Record(change.path, after, tuple(pieces), mode=change.found.mode)
    existed = change.before is not None
    return Record(change.path, after, (), change.before, existed, change.found.mode, change.found.missing)


class MemoryHistory:
    """Entries in this process."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def save(self, entry: Entry) -> None:
        self._entries = [entry, *self._entries][:MOST_ENTRIES]

    def confirm(self, entry: Entry) -> None:
        self._entries = [replace(kept, sure=True) if kept.id == entry.id else kept for kept in self._entries]

    def drop(self, entry: Entry) -> None:
        self._entries = [kept for kept in self._entries if kept.id != entry.id]

    def entries(self) -> list[Entry]:
        return list(self._entries)


class DiskHistory:
    """Entries as files in a folder that only this user can read.

    Args:
        folder: The folder; made when the first entry is saved.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, entry: Entry) -> None:
        """Keep an entry. A history that cannot be written is no reason not to edit: then there is nothing to undo."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = self.folder / f"{entry.id}{PENDING}"
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(json.dumps(_to_json(entry)).encode())

    def confirm(self, entry: Entry) -> None:
        with contextlib.suppress(OSError):
            (self.folder / f"{entry.id}{PENDING}").rename(self.folder / f"{entry.id}{SURE}")
            self._prune()

    def drop(self, entry: Entry) -> None:
        for ending in (SURE, PENDING):
            with contextlib.suppress(OSError):
                (self.folder / f"{entry.id}{ending}").unlink()

    def entries(self) -> list[Entry]:
        found = []
        for path in self._files():
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, zlib.error):
                found.append(_from_json(json.loads(path.read_bytes()), path.suffix == SURE))
        return found

    def _files(self) -> list[Path]:
        """The entries' files, the newest first."""
        try:
            return sorted((path for path in self.folder.iterdir() if path.suffix in (SURE, PENDING)), reverse=True)
        except OSError:
            return []

    def _prune(self) -> None:
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            size = 0
            for number, path in enumerate(self._files()):
                size += path.stat().st_size
                if number and (number >= MOST_ENTRIES or size > MOST_BYTES):
                    path.unlink()
        finally:
            os.close(fd)


def _to_json(entry: Entry) -> dict[str, Any]:
    return {
        "version": 1,
        "id": entry.id,
        "when": entry.when,
        "files": [
            {
                "path": os.fsencode(record.path).decode("latin-1"),
                "existed": record.existed,
                "after": record.after,
                "pieces": [[start, length, _packed(old)] for start, length, old in record.pieces],
                "whole": None if record.whole is None else _packed(zlib.compress(record.whole, 1)),
                "mode": record.mode,
                "folders": record.folders,
            }
            for record in entry.files
        ],
    }


def _from_json(value: dict[str, Any], sure: bool) -> Entry:
    return Entry(
        value["id"],
        value["when"],
        tuple(
            Record(
                os.fsdecode(file["path"].encode("latin-1")),
                file["after"],
                tuple((start, length, base64.b64decode(old)) for start, length, old in file["pieces"]),
                None if file["whole"] is None else zlib.decompress(base64.b64decode(file["whole"])),
                file["existed"],
                file["mode"],
                file["folders"],
            )
            for file in value["files"]
        ),
        sure,
    )


def _packed(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
