"""The words of JSON as regular expressions over bytes as they stand on the wire, escapes included."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import orjson

Ranges = tuple[tuple[int, int], ...]
"""Code points as inclusive ranges, sorted and apart."""

MAX_CODE_POINT = 0x10FFFF
SCALARS: Ranges = ((0, 0xD7FF), (0xE000, MAX_CODE_POINT))
"""Every code point that is a Unicode scalar value: surrogates are not text."""

_SHORT = {0x22: '"', 0x5C: "\\", 0x2F: "/", 0x08: "b", 0x0C: "f", 0x0A: "n", 0x0D: "r", 0x09: "t"}
"""Code points that JSON can write as a backslash and one letter (RFC 8259, section 7)."""

_HEX = "0-9a-fA-F"
_ESCAPED_BMP = rf"u([0-9abcefABCEF][{_HEX}]{{3}}|[dD][0-7][{_HEX}]{{2}})"
_ESCAPED_PAIR = rf"u[dD][89abAB][{_HEX}]{{2}}\\u[dD][c-fC-F][{_HEX}]{{2}}"

UNIT = rf'([^"\\\x00-\x1f]|\\(["\\\/bfnrt]|{_ESCAPED_BMP}|{_ESCAPED_PAIR}))'
"""One character of a JSON string: raw, by a short escape, by `\\u`, or by a surrogate pair."""

STRING = rf'"{UNIT}*"'

INTEGER = r"-?(0|[1-9][0-9]*)(\.0+)?"
"""A whole number. JSON Schema counts 1.0 as one; forms with an exponent are left out: 1.5e1 is no regex."""

NUMBER = (
    r"-?(0|[1-9][0-9]*)|-?(0|[1-9][0-9]{0,299})\.[0-9]+"
    r"|-?(0|[1-9][0-9]{0,99})(\.[0-9]+)?[eE](\+?([0-9]{1,2}|1[0-9]{2})|-[0-9]{1,3})"
    r"|-?[1-9](\.[0-9]+)?[eE]\+?(2[0-9]{2}|30[0-7])"
)
"""A number that a double can hold: an exponent that would overflow to Infinity is left out."""


def escape(text: str) -> str:
    """`text` as a regular expression that matches exactly it, safe between the slashes of a Lark terminal."""
    return "".join(_char(ord(char)) for char in text)


def string_of_length(low: int, high: int | None) -> str:
    """A JSON string of `low` to `high` code points, however each is written."""
    if low == 0 and high is None:
        return STRING
    return f'"{UNIT}{{{low},{"" if high is None else high}}}"'


def spelled(text: str, every_spelling: bool) -> str:
    """The JSON string `text`, with its quotes: as serializers write it, or in every spelling that decodes to it."""
    if not every_spelling:
        plain = {orjson.dumps(text).decode(), _ascii(text)}
        return "|".join(sorted(escape(form) for form in plain))
    return '"' + "".join(encoded(((ord(char), ord(char)),)) for char in text) + '"'


def _ascii(text: str) -> str:
    out = ['"']
    for char in text:
        code = ord(char)
        if code in _SHORT and code != 0x2F:
            out.append("\\" + _SHORT[code])
        elif 0x20 <= code < 0x7F:
            out.append(char)
        elif code <= 0xFFFF:
            out.append(f"\\u{code:04x}")
        else:
            out.append(f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}")
    return "".join(out) + '"'


@lru_cache(maxsize=4096)
def encoded(ranges: Ranges) -> str:
    """One character of `ranges` in every spelling that JSON allows inside a string."""
    parts = []
    raw = without(ranges, ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)))
    if raw:
        parts.append(char_class(raw))
    short = "".join(sorted(letter for code, letter in _SHORT.items() if contains(ranges, code)))
    if short:
        parts.append(r"\\[" + "".join(_class_char(ord(c)) for c in short) + "]")
    parts += [rf"\\u{form}" for low, high in _clipped(ranges, 0, 0xFFFF) for form in hex_range(low, high)]
    parts += _pairs(_clipped(ranges, 0x10000, MAX_CODE_POINT))
    return "(" + "|".join(parts) + ")"


def _pairs(ranges: Ranges) -> list[str]:
    out = []
    for low, high in ranges:
        lead_low, lead_high = 0xD7C0 + (low >> 10), 0xD7C0 + (high >> 10)
        tail_low, tail_high = 0xDC00 + (low & 0x3FF), 0xDC00 + (high & 0x3FF)
        if lead_low == lead_high:
            blocks = [(lead_low, lead_low, tail_low, tail_high)]
        else:
            blocks = [(lead_low, lead_low, tail_low, 0xDFFF), (lead_high, lead_high, 0xDC00, tail_high)]
            if lead_high - lead_low > 1:
                blocks.append((lead_low + 1, lead_high - 1, 0xDC00, 0xDFFF))
        for first, last, start, end in blocks:
            leads, tails = "|".join(hex_range(first, last)), "|".join(hex_range(start, end))
            out.append(rf"\\u({leads})\\u({tails})")
    return out


def hex_range(low: int, high: int, digits: int = 4) -> list[str]:
    """Regular expressions that together match the hexadecimal numbers of `low` to `high` with `digits` digits."""
    if digits == 0:
        return [""]
    size = 16 ** (digits - 1)
    first, last = low // size, high // size
    if low % size == 0 and (high + 1) % size == 0:
        return [_hex_digits(first, last) + (f"[{_HEX}]{{{digits - 1}}}" if digits > 1 else "")]
    if first == last:
        return [_hex_digits(first, first) + rest for rest in hex_range(low % size, high % size, digits - 1)]
    out = [_hex_digits(first, first) + rest for rest in hex_range(low % size, size - 1, digits - 1)]
    if last - first > 1:
        out.append(_hex_digits(first + 1, last - 1) + (f"[{_HEX}]{{{digits - 1}}}" if digits > 1 else ""))
    return out + [_hex_digits(last, last) + rest for rest in hex_range(0, high % size, digits - 1)]


def _hex_digits(first: int, last: int) -> str:
    chars = "".join(dict.fromkeys(c for n in range(first, last + 1) for c in (f"{n:x}", f"{n:X}")))
    return chars if len(chars) == 1 else f"[{chars}]"


def integer_between(low: int | None, high: int | None) -> str | None:
    """A whole number from `low` to `high`, both inclusive, without leading zeros; None where there is none."""
    if low is not None and high is not None and low > high:
        return None
    parts: list[str] = []
    if low is None or low < 0:
        lowest = None if low is None else -low
        highest = 1 if high is None or high >= 0 else -high
        parts += [f"-{form}" for form in digits_between(highest, lowest)]
    if high is None or high >= 0:
        parts += digits_between(max(low or 0, 0), high)
    if (low is None or low <= 0) and (high is None or high >= 0):
        parts.append("-0")
    return "(" + "|".join(parts) + r")(\.0+)?"


def digits_between(low: int, high: int | None) -> list[str]:
    """Regular expressions of the whole numbers from `low` to `high`, neither below zero, without a sign."""
    out: list[str] = []
    length = len(str(low))
    if high is None:
        top = 10**length - 1
        return [*_same_length(str(low), str(top)), rf"[1-9][0-9]{{{length},}}"]
    while length <= len(str(high)):
        start = max(low, 10 ** (length - 1) if length > 1 else 0)
        out += _same_length(str(start), str(min(high, 10**length - 1)))
        length += 1
    return out


def _same_length(low: str, high: str) -> list[str]:
    if not low:
        return [""]
    if low == "0" * len(low) and high == "9" * len(high):
        return [f"[0-9]{{{len(low)}}}"]
    if low[0] == high[0]:
        return [low[0] + rest for rest in _same_length(low[1:], high[1:])]
    rest_length = len(low) - 1
    first, last = int(low[0]), int(high[0])
    out: list[str] = []
    if low[1:] != "0" * rest_length:
        out += [low[0] + rest for rest in _same_length(low[1:], "9" * rest_length)]
        first += 1
    tail: list[str] = []
    if high[1:] != "9" * rest_length:
        tail = [high[0] + rest for rest in _same_length("0" * rest_length, high[1:])]
        last -= 1
    if first <= last:
        head = str(first) if first == last else f"[{first}-{last}]"
        out.append(head + (f"[0-9]{{{rest_length}}}" if rest_length else ""))
    return out + tail


# --- sets of code points ---


def union(parts: Iterable[tuple[int, int]]) -> Ranges:
    """The ranges of `parts`, sorted and merged."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(parts):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return tuple(out)


def without(ranges: Ranges, removed: Ranges) -> Ranges:
    """The code points of `ranges` that are not in `removed`."""
    out = list(ranges)
    for low, high in removed:
        kept: list[tuple[int, int]] = []
        for start, end in out:
            if start < low:
                kept.append((start, min(end, low - 1)))
            if end > high:
                kept.append((max(start, high + 1), end))
        out = kept
    return tuple(part for part in out if part[0] <= part[1])


def contains(ranges: Ranges, code: int) -> bool:
    """Whether `code` is in `ranges`."""
    return any(low <= code <= high for low, high in ranges)


def _clipped(ranges: Ranges, low: int, high: int) -> Ranges:
    return tuple((max(start, low), min(end, high)) for start, end in ranges if start <= high and end >= low)


def char_class(ranges: Ranges) -> str:
    """A bracketed class of `ranges`."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _char(ranges[0][0])
    return "[" + "".join(_class_char(a) if a == b else f"{_class_char(a)}-{_class_char(b)}" for a, b in ranges) + "]"


_PLAIN = re.compile(r"[A-Za-z0-9_ ,:;=@%'\"<>!-]")


@lru_cache(4096)
def _char(code: int) -> str:
    char = chr(code)
    if _PLAIN.match(char) and char != "-":
        return char
    return _class_char(code) if char != "-" else r"\-"


def _class_char(code: int) -> str:
    char = chr(code)
    if char.isascii() and char.isalnum():
        return char
    if 0x20 < code < 0x7F:
        return "\\" + char if char not in "\"'<>,:;=@%!_`" else char
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{{{code:x}}}"
