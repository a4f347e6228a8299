"""Counts on disk: one SQLite file in WAL mode, written by one thread that no stream ever waits for."""

from __future__ import annotations

import json
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from onspec.errors import InputError
from onspec.gateway.record import Record

VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    model TEXT NOT NULL,
    api TEXT NOT NULL,
    tool TEXT NOT NULL,
    outcome TEXT NOT NULL,
    tries INTEGER NOT NULL,
    saved INTEGER NOT NULL,
    shadow INTEGER NOT NULL,
    rules TEXT NOT NULL,
    codes TEXT NOT NULL,
    invented TEXT NOT NULL,
    audit TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS calls_at ON calls (at);
"""
INSERT = (
    "INSERT INTO calls (at, model, api, tool, outcome, tries, saved, shadow, rules, codes, invented, audit)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
MAX_WAITING = 100_000
BATCH = 500
WAIT_SECONDS = 2.0
"""How long one write waits for a locked database."""
RETRY_SECONDS = 1.0
CLOSE_SECONDS = 5.0


class Store:
    """Writes records to a file. A database that is locked, full, broken or deleted costs records, never a reply.

    Args:
        path: The file; it and its folder are made where they are not.
        lost: Told how many records were given up.

    Raises:
        InputError: The file cannot be opened as such a database at the start.
    """

    def __init__(self, path: Path, lost: Callable[[int], None] = lambda count: None) -> None:
        self.path = path
        self._lost = lost
        self._waiting: queue.Queue[Record | None] = queue.Queue(MAX_WAITING)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database: sqlite3.Connection | None = _open(path)
        except (sqlite3.Error, OSError) as error:
            raise InputError(f"{path}: {error}") from None
        self._opened = self._identity()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._write, name="onspec-store", daemon=True)
        self._thread.start()

    def add(self, record: Record) -> None:
        """Take a record to be written soon; it is given up where too many wait."""
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            self._lost(1)

    def close(self) -> None:
        """Write what waits, for at most a few seconds, and close the file."""
        self._closing.set()
        self._waiting.put(None)
        self._thread.join(CLOSE_SECONDS)

    def _write(self) -> None:
        batch: list[Record] = []
        while True:
            first = self._waiting.get()
            ending = first is None
            if first is not None:
                batch.append(first)
            while len(batch) < BATCH:
                try:
                    more = self._waiting.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    ending = True
                else:
                    batch.append(more)
            self._keep(batch)
            batch = []
            if ending:
                break
        if self._database is not None:
            self._database.close()

    def _keep(self, batch: list[Record]) -> None:
        """Write a batch, trying again while the database is only locked or gone."""
        if not batch:
            return
        rows = [_row(record) for record in batch]
        for attempt in range(3):
            try:
                if self._database is None or self._identity() != self._opened:
                    self._reopen()
                assert self._database is not None
                with self._database:
                    self._database.executemany(INSERT, rows)
                return
            except (sqlite3.Error, OSError, ValueError, OverflowError):  # the last two: a row that cannot be written
                self._drop()
                if attempt < 2 and not self._closing.is_set():
                    time.sleep(RETRY_SECONDS * attempt)
        self._lost(len(rows))

    def _identity(self) -> tuple[int, int] | None:
        """Which file stands at the path; a deleted one takes writes and keeps none of them."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _reopen(self) -> None:
        self._drop()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._database = _open(self.path)
        self._opened = self._identity()

    def _drop(self) -> None:
        if self._database is not None:
            with suppress(sqlite3.Error):
                self._database.close()
            self._database = None


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=WAIT_SECONDS, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        found = database.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, VERSION):
            raise sqlite3.DatabaseError(f"it was written by another version ({found}) of onspec")
        database.executescript(SCHEMA + f"PRAGMA user_version={VERSION};")
    except BaseException:
        database.close()
        raise
    return database


def _row(record: Record) -> tuple[Any, ...]:
    return (
        record.at,
        record.model,
        record.api,
        record.tool,
        record.outcome,
        record.tries,
        record.saved,
        int(record.shadow),
        json.dumps(record.rules),
        json.dumps(record.codes),
        json.dumps(record.invented),
        json.dumps(record.audit, default=str),
    )


def read(path: Path, since: float = 0.0) -> list[Record]:
    """The records of a file from `since` (seconds since 1970) on, oldest first. The file is only read.

    Raises:
        InputError: There is no such file, or it is not a gateway's database.
    """
    if not path.is_file():
        raise InputError(f"{path}: " + ("is a folder" if path.is_dir() else "there is no such file"))
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=WAIT_SECONDS)
        try:
            rows = database.execute(
                "SELECT at, model, api, tool, outcome, rules, codes, invented, audit, tries, saved, shadow"
                " FROM calls WHERE at >= ? ORDER BY at",
                (since,),
            ).fetchall()
        finally:
            database.close()
    except sqlite3.Error as error:
        raise InputError(f"{path}: not a gateway's database: {error}") from None
    return [_record(row) for row in rows]


def _record(row: tuple[Any, ...]) -> Record:
    at, model, api, tool, outcome, rules, codes, invented, audit, tries, saved, shadow = row
    lists = (_tuple(rules), _tuple(codes), _tuple(invented), _tuple(audit))
    return Record(at, model, api, tool, outcome, *lists, tries, saved, bool(shadow))


def _tuple(text: str) -> Any:
    return tuple(json.loads(text))
