"""Puts another value at one place of a JSON text and leaves every other byte as it was."""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()

Path = tuple[str | int, ...]
Edit = tuple[Path, Any]
"""A place (keys and indexes from the root) and the value to stand there."""


def splice(data: bytes, edits: list[Edit]) -> bytes:
    """`data` with each edit's value at its place. A place that is not there is left out, not made.

    Of two edits of one place, or of a place and one inside it, the first counts. Linear in the text and the edits.

    Raises:
        ValueError: `data` is not JSON as far as it had to be read.
    """
    text = data.decode("utf-8", "surrogateescape")
    places = Places(text)
    spans = []
    for path, value in edits:
        span = places.find(path)
        if span is not None:
            spans.append((*span, _written(value)))
    spans.sort(key=lambda span: span[0])
    out: list[str] = []
    at = 0
    for start, end, written in spans:
        if start >= at:
            out += text[at:start], written
            at = end
    return "".join([*out, text[at:]]).encode("utf-8", "surrogateescape")


class Places:
    """Where the values of a JSON text stand. Each object and array on the way to one is read once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._members: dict[int, dict[str, tuple[int, int]]] = {}
        self._items: dict[int, list[tuple[int, int]]] = {}

    def find(self, path: Path) -> tuple[int, int] | None:
        """Start and end of the value at a path, or None. The last of equal keys counts.

        Raises:
            ValueError: The text is not JSON as far as it had to be read.
        """
        start = self._skip(0)
        end = -1
        for part in path:
            found = self._member(start, part) if isinstance(part, str) else self._item(start, part)
            if found is None:
                return None
            start, end = found
        return start, end if path else self._end(start)

    def _member(self, start: int, key: str) -> tuple[int, int] | None:
        known = self._members.get(start)
        if known is None:
            known = self._members[start] = {}
            at = self._skip(start + 1) if self._text[start : start + 1] == "{" else len(self._text)
            while self._text[at : at + 1] == '"':
                name, at = scanstring(self._text, at + 1, False)
                at = self._skip(self._skip(at) + 1)
                known[name] = at, self._end(at)
                at = self._next(known[name][1])
        return known.get(key)

    def _item(self, start: int, index: int) -> tuple[int, int] | None:
        known = self._items.get(start)
        if known is None:
            known = self._items[start] = []
            at = self._skip(start + 1) if self._text[start : start + 1] == "[" else len(self._text)
            while self._text[at : at + 1] not in ("]", ""):
                known.append((at, self._end(at)))
                at = self._next(known[-1][1])
        return known[index] if index < len(known) else None

    def _next(self, at: int) -> int:
        """Where the next member or item begins; the end of the text where there is none."""
        at = self._skip(at)
        return self._skip(at + 1) if self._text[at : at + 1] == "," else len(self._text)

    def _end(self, start: int) -> int:
        return _DECODER.raw_decode(self._text, start)[1]

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at


def _written(value: Any) -> str:
    """A value as JSON; a lone surrogate is written as an escape."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text
