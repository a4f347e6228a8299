"""Spans: where the values of a JSON text stand in it, and in the text it was mended from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in the stubs

from onspec.audit import Path
from onspec.repair.tolerant import Edit

_TOKEN = re.compile(r'[ \t\n\r]*(?:([{}\[\],:])|(")|([^\s{}\[\],:"]+))')


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands: start of its key (its own start where it has none), start and end of the value."""

    key: int
    start: int
    end: int


def locate(text: str, wanted: Iterable[Path]) -> dict[Path, Place]:
    """Find values in strict JSON text, in one pass that ends with the last one found.

    Args:
        text: Strict JSON.
        wanted: Paths to look for. A key that stands twice is found at its last place.
    """
    missing = set(wanted)
    found: dict[Path, Place] = {}
    if not missing:
        return found
    path: list[str | int] = []
    opens: list[tuple[int, int, bool]] = []
    at, key_at, expect_key = 0, -1, False
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            return found
        start, at = match.start(match.lastindex or 0), match.end()
        char = match[1]
        if match[2] and expect_key:
            key, at = scanstring(text, at, False)
            path[-1] = key
            key_at, expect_key = start, False
            continue
        if char == ":":
            continue
        if char in ("{", "["):
            opens.append((key_at, start, char == "{"))
            path.append("" if char == "{" else 0)
            key_at, expect_key = -1, char == "{"
            continue
        if char == ",":
            if isinstance(path[-1], int):
                path[-1] += 1
            expect_key = opens[-1][2]
            continue
        if char:
            path.pop()
            key_at, start, _ = opens.pop()
        elif match[2]:
            at = scanstring(text, at, False)[1]
        here = tuple(path)
        if here in missing:
            found[here] = Place(key_at if key_at >= 0 else start, start, at)
        key_at, expect_key = -1, False
        if not opens:
            return found


def numbers(text: str) -> dict[Path, str]:
    """The source text of every number in strict JSON text, by path, in one pass."""
    found: dict[Path, str] = {}
    path: list[str | int] = []
    opens: list[bool] = []
    at, expect_key = 0, False
    while (match := _TOKEN.match(text, at)) is not None:
        at = match.end()
        char = match[1]
        if match[2]:
            decoded, at = scanstring(text, at, False)
            if expect_key:
                path[-1], expect_key = decoded, False
        elif char in ("{", "["):
            opens.append(char == "{")
            path.append("" if char == "{" else 0)
            expect_key = char == "{"
        elif char == ",":
            if isinstance(path[-1], int):
                path[-1] += 1
            expect_key = opens[-1]
        elif char in ("}", "]"):
            path.pop()
            opens.pop()
            expect_key = False
        elif match[3] and match[3][0] in "-0123456789":
            found[tuple(path)] = match[3]
    return found


class Origins:
    """Offsets of a mended text taken back to the bytes of what the model wrote.

    Args:
        text: What the model wrote.
        edits: The changes that were made to it, in order.
    """

    __slots__ = ("_after", "_ascii", "_shift", "_text")

    def __init__(self, text: str, edits: Sequence[Edit]) -> None:
        self._text = text
        self._ascii = text.isascii()
        self._after: list[int] = []
        self._shift: list[tuple[int, int]] = []
        moved = 0
        for edit in edits:
            self._after.append(edit.start + moved)
            moved += len(edit.after) - (edit.end - edit.start)
            self._shift.append((moved, edit.end))

    def byte(self, offset: int) -> int:
        """Offset in bytes of the original for an offset in characters of the mended text."""
        index = bisect_right(self._after, offset) - 1
        chars = offset
        if index >= 0:
            moved, end = self._shift[index]
            chars = (
                max(offset - moved, end)
                if offset > self._after[index]
                else offset - (self._shift[index - 1][0] if index else 0)
            )
        chars = min(chars, len(self._text))
        return chars if self._ascii else len(self._text[:chars].encode("utf-8", "surrogatepass"))
