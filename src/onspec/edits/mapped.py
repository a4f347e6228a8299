"""A text made looser by a rule, with a map of every place in it back to the text it was made from."""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache

Change = tuple[int, int, str]
"""Start and end in the source, and what stands there in the looser text."""


class Layer:
    """The map of one rule's changes: from places in what it made to places in what it was given."""

    __slots__ = ("_from", "_length", "_to", "_width")

    def __init__(self) -> None:
        self._to, self._from, self._width = array("q"), array("q"), array("q")
        self._length = 0

    def add(self, origin: int, length: int, width: int) -> None:
        """The next `length` characters came from `origin`: verbatim (width -1), or together from `width` characters."""
        self._to.append(self._length)
        self._from.append(origin)
        self._width.append(width)
        self._length += length

    def start(self, place: int) -> int | None:
        part = bisect_right(self._to, place) - 1
        offset = place - self._to[part]
        if self._width[part] >= 0 and offset:
            return None
        return self._from[part] + offset

    def end(self, place: int) -> int | None:
        part = bisect_right(self._to, place - 1) - 1
        if self._width[part] < 0:
            return self._from[part] + place - self._to[part]
        whole = self._to[part + 1] if part + 1 < len(self._to) else self._length
        return self._from[part] + self._width[part] if place == whole else None


class Mapped:
    """A looser text and the way back.

    Attributes:
        text: The looser text.
    """

    __slots__ = ("_layers", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._layers: tuple[Layer, ...] = ()

    def change(self, changes: Iterable[Change]) -> Mapped:
        """This text with changes made, sorted and apart."""
        layer, pieces, at, plain = Layer(), [], 0, self.text
        for start, end, new in changes:
            if start > at:
                layer.add(at, start - at, -1)
                pieces.append(plain[at:start])
            if new:
                layer.add(start, len(new), end - start)
                pieces.append(new)
            at = end
        if not at:
            return self
        layer.add(at, len(plain) - at, -1)
        pieces.append(plain[at:])
        changed = Mapped("".join(pieces))
        changed._layers = (layer, *self._layers)
        return changed

    def start(self, place: int) -> int | None:
        """Where in the source the character at `place` begins, or None inside one that was replaced."""
        found: int | None = place
        for layer in self._layers:
            if found is None:
                return None
            found = layer.start(found)
        return found

    def end(self, place: int) -> int | None:
        """Where in the source the character before `place` (at least 1) ends, or None as for `start`."""
        found: int | None = place
        for layer in self._layers:
            if found is None:
                return None
            found = layer.end(found)
        return found


def line_endings(text: str) -> Iterator[Change]:
    """CRLF, and CR where the text has no LF, to LF."""
    if "\r" in text:
        for match in re.finditer("\r\n" if "\n" in text else "\r", text):
            yield match.start(), match.end(), "\n"


def trailing_whitespace(text: str) -> Iterator[Change]:
    """Spaces and tabs before a line end, or at the end, to nothing."""
    for match in re.finditer(r"(?<![ \t])[ \t]++(?=\n|\Z)", text):
        yield match.start(), match.end(), ""


def indentation(text: str) -> Iterator[Change]:
    """Spaces and tabs at the start of a line to nothing."""
    for match in re.finditer(r"^[ \t]+", text, re.MULTILINE):
        yield match.start(), match.end(), ""


LOOKALIKES = {
    **dict.fromkeys("‘’‚‛", "'"),
    **dict.fromkeys("“”„‟", '"'),
    **dict.fromkeys("‐‑‒–—―−﹘﹣－", "-"),
    **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000\u1680", " "),
    "…": "...",
}
"""Typographic characters and the ASCII ones that models write for them."""


def unicode_lookalikes(text: str) -> Iterator[Change]:
    """Look-alikes to ASCII, and every letter with its marks to its composed form."""
    for match in () if text.isascii() else _lookalike_pattern().finditer(text):
        found = match.group()
        looser = LOOKALIKES.get(found) or unicodedata.normalize("NFC", found)
        if looser != found:
            yield match.start(), match.end(), looser


@lru_cache(maxsize=1)
def _lookalike_pattern() -> re.Pattern[str]:
    marks, single = [], []
    for code in range(0x300, 0x1E950):
        char = chr(code)
        if unicodedata.combining(char):
            marks.append(code)
        elif 0x1160 <= code <= 0x11FF:
            marks.append(code)  # Hangul vowels and final consonants join the consonant before them
        elif unicodedata.normalize("NFC", char) != char:
            single.append(code)
    table = "".join(re.escape(char) for char in LOOKALIKES)
    return re.compile(f".[{_ranges(marks)}]+|[{table}{_ranges(single)}]", re.DOTALL)


def _ranges(codes: list[int]) -> str:
    parts: list[tuple[int, int]] = []
    for code in codes:
        if parts and parts[-1][1] == code - 1:
            parts[-1] = parts[-1][0], code
        else:
            parts.append((code, code))
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in parts)


ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\", "/": "/"}
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([ntr\"'\\/]))")
ESCAPED_LETTER = re.compile(r"\\u([0-9a-fA-F]{4})")
ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&apos;": "'", "&amp;": "&"}
ENTITY = re.compile("|".join(ENTITIES))


def escapes(text: str) -> Iterator[Change]:
    """Written escapes to what they mean."""
    for match in ESCAPE.finditer(text):
        char = chr(int(match[1], 16)) if match[1] else ESCAPES[match[2]]
        if not "\ud800" <= char <= "\udfff":
            yield match.start(), match.end(), char


def escaped_letters(text: str) -> Iterator[Change]:
    """Written \\uXXXX escapes to the letter they mean."""
    for match in ESCAPED_LETTER.finditer(text):
        char = chr(int(match[1], 16))
        if char > "\x7f" and not "\ud800" <= char <= "\udfff":
            yield match.start(), match.end(), char


def html_entities(text: str) -> Iterator[Change]:
    """The five entities of markup to what they mean."""
    for match in ENTITY.finditer(text):
        yield match.start(), match.end(), ENTITIES[match.group()]


NUMBERED = re.compile(r"^[ \t]*(\d{1,7})(?:\t|→|: ?|\|\t?| \| ?|\)[ \t])", re.MULTILINE)


def line_numbers(text: str) -> Iterator[Change]:
    """Line numbers in front of every line, counting up by one, to nothing."""
    if numbered(text) is not None:
        for match in NUMBERED.finditer(text):
            yield match.start(), match.end(), ""


def numbered(text: str) -> int | None:
    """The number in front of the first line, where every line has one and they count up by one; else None."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    found = [NUMBERED.match(line) for line in lines]
    numbers = [int(match[1]) for match in found if match]
    if not numbers or len(numbers) != len(lines):
        return None
    return numbers[0] if numbers == list(range(numbers[0], numbers[0] + len(numbers))) else None


def loosen(text: str, rules: Iterable[str], *, in_file: bool) -> Mapped:
    """A text under rules, in the order of `STAGES`. Some rules work on what the model wrote only."""
    asked = set(rules)
    mapped = Mapped(text)
    for name, on_file, on_old in STAGES:
        stage = on_file if in_file else on_old
        if name in asked and stage is not None:
            mapped = mapped.change(stage(mapped.text))
    return mapped


STAGES = (
    # rule, on the file, on what the model wrote
    ("line_numbers", None, line_numbers),
    ("html_entities", None, html_entities),
    ("escapes", escaped_letters, escapes),
    ("line_endings", line_endings, line_endings),
    ("trailing_whitespace", trailing_whitespace, trailing_whitespace),
    ("unicode_lookalikes", unicode_lookalikes, unicode_lookalikes),
    ("indentation", indentation, indentation),
)
"""The rules in the order in which they are applied."""
