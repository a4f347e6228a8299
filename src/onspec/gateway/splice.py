"""Puts another value at one place of a JSON text and leaves every other byte as it was."""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()

Ends = dict[int, int]
"""Where values end, by where they start."""
Edit = tuple[tuple[str | int, ...], Any]
"""A place (keys and indexes from the root) and the value to stand there."""


def splice(data: bytes, edits: list[Edit]) -> bytes:
    """`data` with each edit's value at its place. A place that is not there is left out, not made.

    Raises:
        ValueError: `data` is not JSON as far as it had to be read.
    """
    text = data.decode("utf-8", "surrogateescape")
    spans = []
    ends: Ends = {}
    for path, value in edits:
        span = locate(text, path, ends)
        if span is not None:
            spans.append((span, _written(value)))
    for (start, end), written in sorted(spans, reverse=True):
        text = text[:start] + written + text[end:]
    return text.encode("utf-8", "surrogateescape")


def locate(text: str, path: tuple[str | int, ...], ends: Ends | None = None) -> tuple[int, int] | None:
    """Start and end of the value at `path` in the JSON `text`, or None. The last of equal keys counts.

    `ends` keeps what is found of the text, for the next place in it.
    """
    ends = {} if ends is None else ends
    start = _skip(text, 0)
    for part in path:
        found = _member(text, start, part, ends) if isinstance(part, str) else _item(text, start, part, ends)
        if found is None:
            return None
        start = found
    return start, _end(text, start, ends)


def _end(text: str, start: int, ends: Ends) -> int:
    if start not in ends:
        ends[start] = _DECODER.raw_decode(text, start)[1]
    return ends[start]


def _member(text: str, start: int, key: str, ends: Ends) -> int | None:
    if text[start : start + 1] != "{":
        return None
    at, found = _skip(text, start + 1), None
    while text[at : at + 1] == '"':
        name, at = scanstring(text, at + 1, False)
        at = _skip(text, _skip(text, at) + 1)
        if name == key:
            found = at
        at = _skip(text, _end(text, at, ends))
        if text[at : at + 1] != ",":
            break
        at = _skip(text, at + 1)
    return found


def _item(text: str, start: int, index: int, ends: Ends) -> int | None:
    if text[start : start + 1] != "[":
        return None
    at = _skip(text, start + 1)
    for _ in range(index):
        at = _skip(text, _end(text, at, ends))
        if text[at : at + 1] != ",":
            return None
        at = _skip(text, at + 1)
    return None if text[at : at + 1] in ("]", "") else at


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _written(value: Any) -> str:
    """A value as JSON; a lone surrogate is written as an escape."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text
