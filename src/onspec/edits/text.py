"""A file's bytes as text, and back, without losing a byte."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from onspec.audit import Violation

Source = Literal["bom", "declared", "utf-8", "in the file", "detected", "unknown"]

BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks, the longer before those that begin them."""

UNITS = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
"""Bytes in one unit of the encodings that have several."""

STATEFUL = re.compile(r"iso2022|hz|utf_7|punycode|idna|unicode_escape|raw_unicode|undefined|mbcs|oem")
"""Encodings in which the meaning of a byte depends on those before it, and codecs that are no encodings."""

CHUNK = 1 << 20
"""Bytes decoded at a time where only validity is asked for."""

_DECLARATION = re.compile(
    rb"""(?:^[ \t\f]*(?:\#|//|/\*|"|;|--|<!--|%)[^\n]*?coding[:=][ \t]*([-\w.]+)"""  # editors' and Python's cookie
    rb"""|^<\?xml[^>]*?\bencoding=["']([-\w.]+)["']"""
    rb"""|^@charset[ \t]+"([-\w.]+)"
    |<meta[^>]{0,200}?\bcharset=["']?([-\w.]+))""",
    re.MULTILINE | re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file's bytes are read.

    Attributes:
        name: Python's name of the codec; "" where it is not known and only ASCII text can be matched and written.
        bom: The byte order mark at the start of the file, kept as it is.
        source: How it was found.
    """

    name: str
    bom: bytes = b""
    source: Source = "utf-8"

    @property
    def errors(self) -> str:
        """The error handler under which decoding and encoding lose nothing."""
        return "surrogatepass" if self.name in UNITS else "surrogateescape"

    def __str__(self) -> str:
        if not self.name:
            return "an unknown 8-bit encoding"
        return f"{self.name}{' with a byte order mark' if self.bom else ''}"


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text as a run of UTF-8 bytes that can be searched, and the way back to the file's own bytes.

    Attributes:
        data: The file's bytes.
        view: The text in UTF-8, without the byte order mark. Bytes that mean nothing in the file's encoding stand in it
            as they are, so that no valid text matches them.
        encoding: How `data` was read.
        tail: Bytes after the last whole unit of a wide encoding.
    """

    data: bytes
    view: bytes
    encoding: Encoding
    tail: bytes = b""
    _errors: str = field(default="surrogateescape", repr=False)

    def decode(self) -> str:
        """The view as a string, with stand-ins for bytes that are no text."""
        return self.view.decode("utf-8", self._errors)

    def to_view(self, text: str) -> bytes:
        """A part of `decode()` as bytes of the view."""
        return text.encode("utf-8", self._errors)

    def encode(self, text: str) -> bytes | None:
        """New text in the file's encoding, or None where it has no such character."""
        try:
            return text.encode(self.encoding.name or "ascii")
        except UnicodeEncodeError:
            return None

    def splice(self, cuts: Iterable[tuple[int, int, bytes]]) -> tuple[bytes, list[tuple[int, int]]]:
        """The file's bytes with parts replaced.

        Args:
            cuts: Start, end (offsets into the view) and new bytes in the file's encoding, sorted and apart.

        Returns:
            The new bytes, and for every cut the start and end in `data` of what it replaced.
        """
        offset, pieces, spans, at = len(self.encoding.bom), [], [], 0
        own = self.encoding.name in ("utf-8", "")
        seen = 0
        position = offset
        for start, end, new in cuts:
            if own:
                file_start, file_end = start + offset, end + offset
            else:
                file_start = position + self._width(seen, start)
                file_end = file_start + self._width(start, end)
                seen, position = end, file_end
            pieces += [self.data[at:file_start], new]
            spans.append((file_start, file_end))
            at = file_end
        pieces.append(self.data[at:])
        return b"".join(pieces), spans

    def _width(self, start: int, end: int) -> int:
        """Bytes in the file of the view from `start` to `end`."""
        part = self.view[start:end].decode("utf-8", self._errors)
        return len(part.encode(self.encoding.name, self.encoding.errors))

    def line_of(self, offset: int) -> int:
        """Number, from 1, of the line of an offset into the view."""
        return self.view.count(b"\n", 0, offset) + 1

    def newline_at(self, offset: int) -> str:
        """The line end used at an offset into a view that has a CR: of that line, else of the line before."""
        end = self.view.find(b"\n", offset)
        if end < 0:
            end = self.view.rfind(b"\n", 0, offset)
        if end < 0:
            return "\r"
        return "\r\n" if self.view[end - 1 : end] == b"\r" else "\n"


def read(data: bytes, declared: str | None = None) -> Text | Violation:
    """A file's bytes as text.

    Order: a byte order mark; the declared encoding; UTF-8 where the bytes are UTF-8 (and a declaration inside the file
    where they are ASCII); a declaration inside the file; UTF-8 with stray bytes; Western 8-bit text; else unknown,
    where only ASCII text can be matched and written.

    Returns:
        The text, or a violation where the declared encoding does not exist or would lose bytes.
    """
    encoding = _encoding(data, declared)
    if isinstance(encoding, Violation):
        return encoding
    if not encoding.name:
        return Text(data, data, encoding)
    body = data[len(encoding.bom) :] if encoding.bom else data
    if encoding.name == "utf-8":
        return Text(data, body, encoding)
    unit = UNITS.get(encoding.name, 1)
    whole = len(body) - len(body) % unit
    body, tail = body[:whole], body[whole:]
    errors = encoding.errors
    try:
        text = body.decode(encoding.name, errors)
        view = text.encode("utf-8", errors)
        lossless = text.encode(encoding.name, errors) == body and view.decode("utf-8", errors) == text
    except (UnicodeError, ValueError):
        lossless = False
    if not lossless:
        return Violation(
            "not_lossless", "", f"the file has bytes that {encoding.name} cannot give back", hint=HINT_ENCODING
        )
    return Text(data, view, encoding, tail, errors)


HINT_ENCODING = "give the file's encoding"


def _encoding(data: bytes, declared: str | None) -> Encoding | Violation:
    for bom, name in BOMS:
        if data.startswith(bom):
            return Encoding(name, bom, "bom")
    if declared:
        name = codec(declared)
        if not name:
            return Violation("unknown_encoding", "", "this encoding cannot be used for editing", found=declared[:40])
        return Encoding(name, b"", "declared")
    ascii_only = data.isascii()
    if ascii_only or _is_utf8(data):
        inside = _inside(data) if ascii_only else ""
        return Encoding(inside, b"", "in the file") if inside else Encoding("utf-8")
    inside = _inside(data)
    if inside and inside != "utf-8":
        return Encoding(inside, b"", "in the file")
    return _detect(data)


def codec(name: str) -> str:
    """Python's name of an encoding that can be edited, or ""."""
    try:
        info = codecs.lookup(name)
        "a".encode(name)
    except (LookupError, UnicodeError, ValueError, TypeError):
        return ""
    found = info.name
    if STATEFUL.search(found.replace("-", "_").replace("iso2022_", "iso2022")):
        return ""
    return {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(found, found)


def _inside(data: bytes) -> str:
    head = data[:1024]
    match = _DECLARATION.search(head)
    if not match:
        return ""
    if match[1] and head.count(b"\n", 0, match.start()) > 1:
        return ""
    name = codec(next(group for group in match.groups() if group).decode("ascii"))
    return "" if name in UNITS else name


def _is_utf8(data: bytes) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), CHUNK):
            decoder.decode(data[start : start + CHUNK])
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


def _detect(data: bytes) -> Encoding:
    """An encoding for bytes that are not UTF-8. A guess only where the text is Western 8-bit beyond much doubt."""
    text = data.decode("utf-8", "surrogateescape")
    stray = len(re.findall("[\udc80-\udcff]", text))
    valid = len(re.findall("[^\x00-\x7f\udc80-\udcff]", text))
    del text
    if valid > stray:
        return Encoding("utf-8", b"", "detected")
    runs = re.findall(rb"[\x80-\xff]+", data)
    high = b"".join(runs)
    letters = sum(byte >= 0xC0 for byte in high)
    words = sum(len(run) > 1 for run in runs) * 3 > len(runs)
    if b"\0" in data or words or letters * 2 < len(high) or re.search(rb"[\x81\x8d\x8f\x90\x9d]", high):
        return Encoding("", b"", "unknown")
    return Encoding("cp1252" if re.search(rb"[\x80-\x9f]", high) else "latin-1", b"", "detected")
