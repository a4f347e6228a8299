"""Patterns with possessive groups, read alike by every Python: those before 3.11.5 misread them."""

import re
from functools import lru_cache
from typing import AnyStr

_QUANTIFIED = re.compile(r"([*+?]|\{\d*,?\d*\})\+")
_CLASS = re.compile(r"\[\^?\]?(?:[^\\\]]|\\.)*\]", re.DOTALL)

# An older `re` goes on from where the last, failed round of a possessive group had come to (it matches 3 here).
SOUND = re.match(r"(?:(?!b)a)*+", "aab").end() == 2  # type: ignore[union-attr]


def compile(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, for a pattern in which a group may be repeated possessively, as in `(?:...)*+`."""
    if SOUND:
        return re.compile(pattern, flags)
    return re.compile(atomic(pattern), flags)


def atomic(pattern: AnyStr) -> AnyStr:
    """`pattern` with `(?>(...)*)` for each `(...)*+`, which says the same and needs memory for each round."""
    if isinstance(pattern, bytes):
        return _atomic(pattern.decode("latin-1")).encode("latin-1")
    return _atomic(pattern)


@lru_cache(maxsize=1024)
def _atomic(pattern: str) -> str:
    out: list[str] = []
    opened: list[int] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        step = 1
        if char == "\\":
            step = 2
        elif char == "[":
            found = _CLASS.match(pattern, at)
            step = found.end() - at if found else 1
        elif char == "(":
            opened.append(len(out))
        out.append(pattern[at : at + step])
        at += step
        if char == ")" and opened:
            start = opened.pop()
            quantified = _QUANTIFIED.match(pattern, at)
            if quantified:
                out[start] = "(?>" + out[start]
                out.append(quantified[1] + ")")
                at = quantified.end()
    return "".join(out)
