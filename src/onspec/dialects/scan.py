"""Finding where a JSON value ends, in one pass, however it is cut into pieces."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from onspec import possessive

_OUT = possessive.compile(r'[^"{}\[\]<]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]<]*+)*+', re.DOTALL)
_OUT_BOTH = possessive.compile(
    r"""[^"'{}\[\]<]*+(?:(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+')[^"'{}\[\]<]*+)*+""", re.DOTALL
)
_IN = {
    '"': possessive.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL),
    "'": possessive.compile(r"[^'\\]*+(?:\\.[^'\\]*+)*+", re.DOTALL),
}
_SINGLE = re.compile(r"[\[{\s]*+'")
_KEY = possessive.compile(
    r"""[\s,]*+(?:"((?:[^"\\]++|\\.)*+)"|'((?:[^'\\]++|\\.)*+)'|([A-Za-z_$][\w$.-]*+))\s*+:\s*+""", re.DOTALL
)
_STRING = possessive.compile(r"""(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+')""", re.DOTALL)
_WORD = re.compile(r"[^,}\]]*+")
_BRACES = possessive.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|\{++|\}++', re.DOTALL)
SPACE = re.compile(r"\s*+")


class JsonScan:
    """Follows one JSON value through pieces of text.

    After `feed`, `end` is the offset in that piece just behind the value, or -1 while it is open. A `<` outside of
    every string can't be JSON: the scan stops there, with `stray` its offset.
    """

    __slots__ = ("_both", "_depth", "_escape", "_string", "end", "stray")

    def __init__(self, both: bool = False) -> None:
        self._both = both
        self._depth = 0
        self._string = ""
        self._escape = False
        self.end = -1
        self.stray = -1

    @property
    def in_string(self) -> bool:
        return bool(self._string)

    def feed(self, text: str, pos: int = 0) -> bool:
        """Whether the value has ended, well or not."""
        if self.end >= 0 or self.stray >= 0:
            return True
        size = len(text)
        out = _OUT_BOTH if self._both else _OUT
        while pos < size:
            if self._string:
                if self._escape:
                    self._escape = False
                    pos += 1
                    continue
                pos = _IN[self._string].match(text, pos).end()  # type: ignore[union-attr]
                if pos >= size:
                    return False
                if text[pos] == "\\":
                    self._escape = True
                else:
                    self._string = ""
                pos += 1
                continue
            pos = out.match(text, pos).end()  # type: ignore[union-attr]
            if pos >= size:
                return False
            char = text[pos]
            if char == "<":
                self.stray = pos
                return True
            pos += 1
            if char in "{[":
                self._depth += 1
            elif char in "}]":
                self._depth -= 1
                if self._depth <= 0:
                    self.end = pos
                    return True
            else:
                self._string = char
        return False


def scan_json(text: str, pos: int) -> JsonScan:
    """The scan of the value that begins at `pos` (an opening bracket), as far as the text goes."""
    scan = JsonScan(both=_SINGLE.match(text, pos) is not None)
    scan.feed(text, pos)
    return scan


def members(text: str, pos: int = 0) -> Iterator[tuple[str, int, int]]:
    """Keys of the object that begins at `pos`, each with the place of its value; it ends where it can't go on."""
    pos += 1
    while True:
        key = _KEY.match(text, pos)
        if key is None:
            return
        start = key.end()
        end = value_end(text, start)
        written = key[1] if key[1] is not None else key[2] if key[2] is not None else key[3]
        yield written, start, end
        if end >= len(text) or end == start:
            return
        pos = end


def value_end(text: str, start: int) -> int:
    """Where the value at `start` ends; the end of the text where it never does."""
    if start >= len(text):
        return start
    char = text[start]
    if char in "{[":
        scan = scan_json(text, start)
        return scan.end if scan.end >= 0 else len(text)
    if char in "\"'":
        string = _STRING.match(text, start)
        return string.end() if string else len(text)
    word = _WORD.match(text, start)
    assert word is not None
    return start + len(word[0].rstrip())


def elements(text: str, pos: int, end: int) -> Iterator[tuple[int, int]]:
    """Places of the elements of the list that begins at `pos` and ends before `end`."""
    pos += 1
    while True:
        pos = SPACE.match(text, pos).end()  # type: ignore[union-attr]
        while pos < end and text[pos] == ",":
            pos = SPACE.match(text, pos + 1).end()  # type: ignore[union-attr]
        if pos >= end - 1:
            return
        stop = min(value_end(text, pos), end)
        if stop <= pos:
            return
        yield pos, stop
        pos = stop


def undouble(text: str) -> str | None:
    """The text with every doubled brace single, or None where the braces outside of strings are not all doubled."""
    parts: list[str] = []
    pos = 0
    for run in _BRACES.finditer(text):
        if run[0][0] == '"':
            continue
        if len(run[0]) % 2:
            return None
        parts.append(text[pos : run.start()])
        parts.append(run[0][: len(run[0]) // 2])
        pos = run.end()
    return "".join(parts) + text[pos:]


def waker(pattern: re.Pattern[str], text: str, reach: int = 48) -> Callable[[str], bool]:
    """A wake function that answers True when `pattern` occurs in new text or the last `reach` characters before."""
    edge = text[-reach:]

    def wake(piece: str) -> bool:
        nonlocal edge
        window = edge + piece
        edge = window[-reach:]
        return pattern.search(window) is not None

    return wake


def json_waker(scan: JsonScan) -> Callable[[str], bool]:
    """A wake function that carries `scan` on and answers True once the value has ended."""

    def wake(piece: str) -> bool:
        return scan.feed(piece)

    return wake
