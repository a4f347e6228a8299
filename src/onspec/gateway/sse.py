"""Server-sent events, byte for byte: frames that join to exactly what came, whatever way it was cut."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
"""The end of one line followed by an empty one."""
MAX_FRAME = 64 * 1024 * 1024
"""Longest event, in bytes, that is read as one; a longer one is passed on unread."""


@dataclass(slots=True)
class Frame:
    """One event as it came.

    Attributes:
        raw: Its bytes, with the empty line that ends it.
        name: The `event` field, or "".
        data: The `data` fields joined by newlines, or None where there is none (a comment, an event that is not whole).
    """

    raw: bytes
    name: str = ""
    data: bytes | None = None

    def json(self) -> Any:
        """The data as JSON (lone surrogates survive), or None where it is not JSON."""
        if self.data is None:
            return None
        try:
            return json.loads(self.data.decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError):
            return None


class Reader:
    """Cuts a byte stream into frames.

    The bytes of all frames, `close` included, are the bytes that were fed.
    """

    def __init__(self, limit: int = MAX_FRAME) -> None:
        self._held = bytearray()
        self._searched = 0
        self._limit = limit

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes; returns the frames that they complete."""
        if not self._held and chunk.endswith(b"\n\n") and b"\r" not in chunk and chunk.count(b"\n\n") == 1:
            return [parse(chunk)]
        held = self._held
        held += chunk
        frames: list[Frame] = []
        start = 0
        while True:
            end = END.search(held, max(start, self._searched - 3))
            if end is None:
                break
            frames.append(parse(bytes(held[start : end.end()])))
            start = self._searched = end.end()
        if start:
            del held[:start]
        self._searched = len(held)
        if len(held) > self._limit:
            frames.append(Frame(bytes(held)))
            held.clear()
            self._searched = 0
        return frames

    def close(self) -> Frame | None:
        """What is left when the stream ends, or None. Its data is set only where the event seems whole."""
        if not self._held:
            return None
        raw = bytes(self._held)
        self._held.clear()
        self._searched = 0
        last = parse(raw)
        if last.data is None:
            return last if not raw.strip() or raw.lstrip().startswith(b":") else Frame(raw)
        if last.data.strip() == b"[DONE]" or last.json() is not None:
            return last
        return Frame(raw)


def parse(raw: bytes) -> Frame:
    """Read one frame's fields."""
    text = raw[3:] if raw.startswith(b"\xef\xbb\xbf") else raw
    name = b""
    data: bytes | None = None
    for line in text.splitlines() if b"\r" in text else text.split(b"\n"):
        if line.startswith(b"data"):
            value = _value(line, 4)
            if value is not None:
                data = value if data is None else data + b"\n" + value
        elif line.startswith(b"event"):
            value = _value(line, 5)
            name = value if value is not None else name
    return Frame(raw, name.decode("utf-8", "replace"), data)


def _value(line: bytes, length: int) -> bytes | None:
    if len(line) == length:
        return b""
    if line[length] != 0x3A:
        return None
    return line[length + 2 :] if line[length + 1 : length + 2] == b" " else line[length + 1 :]


def encode(event: dict[str, Any], name: str | None = None) -> bytes:
    """One event as bytes; lone surrogates are written as escapes."""
    data = json.dumps(event, separators=(",", ":"), ensure_ascii=True)
    return (f"event: {name}\n" if name else "").encode() + b"data: " + data.encode() + b"\n\n"


def comment(text: str) -> bytes:
    """A comment, which every reader skips. Line ends and control characters become spaces."""
    clean = "".join(char if char.isprintable() else " " for char in text)[:500]
    return f": {clean}\n\n".encode("utf-8", "replace")


def with_data(frame: Frame, data: bytes) -> bytes:
    """The frame with other data and every other byte as it was (several data lines become one)."""
    if frame.data is not None and frame.data and b"\n" not in frame.data and frame.raw.count(frame.data) == 1:
        return frame.raw.replace(frame.data, data, 1)
    head = f"event: {frame.name}\n".encode() if frame.name else b""
    return head + b"data: " + data + b"\n\n"
