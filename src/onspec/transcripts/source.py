"""Bytes of a session file, streamed with bounded memory: lines, or one document."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any, cast

import orjson

from onspec.audit import Json
from onspec.errors import InputError
from onspec.transcripts.session import Damage

CHUNK = 1 << 20
"""Bytes read at once."""

MAX_LINE = 32 << 20
"""Longest line, in bytes, that is decoded; a longer one is counted and skipped without being held."""

MAX_DOCUMENT = 32 << 20
"""Largest file, in bytes, that is decoded as one document; a larger one is split at its first long array."""

MAX_RATIO = 300
"""A compressed file may expand by this factor ..."""

FREE_EXPANSION = 64 << 20
"""... once it has expanded beyond this many bytes."""

DENSE = 4 << 20
"""Bytes from which on a text is looked at before it is decoded: decoded it may take a hundred times the room ..."""

MAX_VALUES = 1_500_000
"""... and values, counted by their commas and brackets, that it may have at most."""

HEAD = 64 << 10
"""Bytes of a file by which its format is recognised."""

BOM = b"\xef\xbb\xbf"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ODD_NUMBER = re.compile(rb"\b(?:NaN|Infinity)\b|\d{16}")

OPENERS = {".zst": "onspec.transcripts.zstandard:stream"}
"""Suffix to `module:function` that decompresses a stream; loaded on use, because the package is optional."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file: its number from 1, and its decoded JSON."""

    number: int
    value: Json


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read: a local path, or a URL that fsspec knows.

    Attributes:
        path: Where it is.
    """

    path: str

    def head(self) -> bytes:
        """The first `HEAD` bytes, decompressed; fewer where the file is damaged.

        Raises:
            OSError: The file cannot be opened.
        """
        try:
            with self.open() as stream:
                return stream.read(HEAD)
        except (EOFError, zlib.error, gzip.BadGzipFile, Bomb, ValueError):
            return b""

    def open(self) -> IO[bytes]:
        """The file's bytes, decompressed by its suffix (`.zst`, `.gz`), never past the size it had when opened.

        Raises:
            OSError: It cannot be opened.
            MissingExtra: A package for its compression or its URL is not installed.
        """
        if "://" in self.path:
            module = import_module("onspec.transcripts.fsspec")
            raw: IO[bytes] = module.stream(self.path)
            size = None
        else:
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", self.path)
            raw = cast("IO[bytes]", open(self.path, "rb", buffering=0))  # noqa: SIM115 -- the caller closes it
            size = os.fstat(raw.fileno()).st_size
        suffix = os.path.splitext(self.path)[1].lower()
        if suffix in OPENERS:
            name, attribute = OPENERS[suffix].split(":")
            opener: Callable[[IO[bytes]], IO[bytes]] = getattr(import_module(name), attribute)
            return cast("IO[bytes]", _Bounded(opener(raw), raw, _limit(size)))
        if suffix == ".gz":
            return cast("IO[bytes]", _Bounded(cast("IO[bytes]", gzip.GzipFile(fileobj=raw)), raw, _limit(size)))
        return cast("IO[bytes]", _Bounded(raw, raw, size, bomb=False))

    def lines(self, skip: Callable[[bytes], bool] | None = None) -> Iterator[Line | Damage]:
        """The decoded lines of a JSON Lines file; what cannot be decoded is a Damage, never an error.

        A last line without a newline that does not decode is `cut`: the file is probably still being written.
        Blank lines are passed over; a carriage return before the newline is no part of the line.
        """
        number = 0
        for raw, ended in self.raw_lines():
            number += 1
            if raw is None:
                yield Damage(number, ended)
                continue
            if not raw or raw.isspace() or (skip is not None and skip(raw)):
                continue
            value, reason = decode(raw)
            if reason:
                yield Damage(number, ended or reason)
            else:
                yield Line(number, value)

    def raw_lines(self) -> Iterator[tuple[bytes | None, str]]:
        """Each line with "", or `cut` where no newline ended it; None with a reason where there is no line to give.

        A line longer than `MAX_LINE` is passed over without being held. Where the bytes themselves stop making sense
        (a damaged or endless compressed file, a read error), the reason comes last.
        """
        rest: list[bytes] = []
        held = 0
        dropping = False
        with self.open() as stream:
            while True:
                try:
                    chunk = stream.read(CHUNK)
                except Bomb:
                    yield None, "bomb"
                    return
                except (EOFError, zlib.error, OSError, ValueError):
                    yield None, "unreadable"
                    return
                if not chunk:
                    break
                parts = chunk.split(b"\n")
                if len(parts) == 1:
                    if not dropping:
                        rest.append(chunk)
                        held += len(chunk)
                        if held > MAX_LINE:
                            rest, held, dropping = [], 0, True
                    continue
                if dropping:
                    yield None, "too_long"
                    dropping = False
                elif rest:
                    rest.append(parts[0])
                    yield b"".join(rest), ""
                else:
                    yield parts[0], ""
                for part in parts[1:-1]:
                    yield part, ""
                rest, held = ([parts[-1]], len(parts[-1])) if parts[-1] else ([], 0)
        if dropping:
            yield None, "too_long"
        elif rest:
            yield b"".join(rest), "cut"

    def document(self) -> tuple[Json, Damage | None]:
        """The whole file as one JSON value, or None with the reason why not."""
        pieces: list[bytes] = []
        held = 0
        try:
            with self.open() as stream:
                while chunk := stream.read(CHUNK):
                    pieces.append(chunk)
                    held += len(chunk)
                    if held > MAX_DOCUMENT:
                        return None, Damage(0, "too_large")
        except Bomb:
            return None, Damage(0, "bomb")
        except (EOFError, zlib.error, ValueError):
            return None, Damage(0, "unreadable")
        value, reason = decode(b"".join(pieces))
        return value, Damage(0, reason) if reason else None


class Bomb(Exception):
    """A compressed file expands beyond all reason."""


class _Bounded(io.RawIOBase):
    """A stream that ends at a number of bytes, or fails there when it is decompressing."""

    def __init__(self, stream: IO[bytes], owner: IO[bytes], limit: int | None, bomb: bool = True) -> None:
        self._stream, self._owner, self._left, self._bomb = stream, owner, limit, bomb

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._left is not None and not self._bomb:
            size = self._left if size < 0 else min(size, self._left)
        data = self._stream.read(size)
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise Bomb
        return data

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._owner.close()
        super().close()


def _limit(size: int | None) -> int | None:
    return None if size is None else max(FREE_EXPANSION, size * MAX_RATIO)


def decode(raw: bytes) -> tuple[Json, str]:
    """A decoded JSON text and "", or None and the reason why it could not be decoded.

    Lone surrogates, as escapes or as bytes, survive; so do integers of any size and NaN, which orjson refuses.
    """
    if len(raw) > DENSE and raw.count(b",") + raw.count(b"{") + raw.count(b"[") > MAX_VALUES:
        return None, "too_dense"
    try:
        return orjson.loads(raw), ""
    except orjson.JSONDecodeError:
        pass
    except RecursionError:
        return None, "too_deep"
    try:
        text = raw.decode("utf-8-sig", "surrogatepass")
    except UnicodeDecodeError:
        return None, "not_text"
    if not (_SURROGATE.search(raw) or _ODD_NUMBER.search(raw) or raw[:3] == BOM or not _is_utf8(raw)):
        return None, "not_json"
    try:
        return json.loads(text), ""
    except (ValueError, RecursionError):
        return None, "not_json"


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def require(path: str) -> Source:
    """A source that exists.

    Raises:
        InputError: There is no such file, or it is a directory.
    """
    if "://" not in path:
        if not os.path.exists(path):
            raise InputError(f"{path}: no such file")
        if os.path.isdir(path):
            raise InputError(f"{path} is a directory; name one session file")
    return Source(path)


def get(value: Any, *keys: str) -> Any:
    """The value at nested object keys, or None where any step is missing or is no object."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
