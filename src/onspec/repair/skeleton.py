"""Fast and exact parsing of large calls: a fast parser that forgets doubled keys, and a walk that rules them out."""

from __future__ import annotations

import math
import re
from typing import Any

import jiter
import orjson

_KEY = re.compile(r'[ \t\n\r]*[{,][ \t\n\r]*"([^"\\]*)"[ \t\n\r]*:[ \t\n\r]*')
_ITEM = re.compile(r"[ \t\n\r]*[\[,][ \t\n\r]*")
_OPEN = re.compile(r"[ \t\n\r]*")
_CLOSE = re.compile(r"[ \t\n\r]*[}\]]")
_CLOSERS = ("}", "]")
_EMPTY = re.compile(r"[{\[][ \t\n\r]*[}\]]")
_SCALAR = re.compile(r"[-+.0-9eE]+|true|false|null")
_SAMPLE = 512
_DENSE = 6
"""Keys in the first `_SAMPLE` characters above which a text counts as many small values; the walk does not pay then."""

_SHORT = 256
"""Length in characters from which the end of a string is looked for behind it, not from quote to quote."""
_MAX_WALK = 150
"""How deep the walk goes; deeper texts are parsed by jiter."""


class _Unsure(Exception):
    """The walk cannot rule out a doubled key."""


def sound(text: str) -> Any:
    """Decode strict JSON: no key twice, no NaN, no lone surrogate, integers of any size exact.

    orjson is the fastest parser of long strings, and keeps the last of two equal keys in silence. Its value tells how
    long each string is at least, so that a walk over the text can jump from key to key without reading the strings;
    where the walk is not sure, jiter parses again and refuses doubled keys.

    Raises:
        ValueError: It is not strict JSON.
    """
    keys = text.count('":', 0, _SAMPLE)
    if keys > _DENSE and keys - text.count('\\":', 0, _SAMPLE) > _DENSE:
        return exact(text)
    value = orjson.loads(text)
    try:
        match = _OPEN.match(text)
        _walk(text, match.end() if match else 0, value, None, 0)
    except _Unsure:
        return exact(text)
    return value


def exact(text: str) -> Any:
    """The same by jiter, which is the faster for many small values; it reads 1e999 as infinity (`endless`)."""
    return jiter.from_json(text.encode(), catch_duplicate_keys=True, allow_inf_nan=False, cache_mode="keys")


def endless(value: Any) -> bool:
    """Whether a value holds infinity or NaN, which JSON cannot write; jiter reads 1e999 as infinity."""
    stack = [[value]]
    while stack:
        item: Any = stack.pop()
        for inner in item.values() if item.__class__ is dict else item:
            kind = inner.__class__
            if kind is float:
                if not math.isfinite(inner):
                    return True
            elif kind is dict or kind is list:
                stack.append(inner)
    return False


def ends_in_member(text: str) -> bool:
    """Whether the last quote of a string could be that of a JSON member it swallowed: `x", "limit": "5`."""
    quote = text.rfind('"')
    if quote <= 0 or ":" not in text[max(0, quote - 2) : quote + 2]:
        return False
    before = text[max(0, quote - 80) : quote]
    return '", "' in before or '","' in before


def markless(value: dict[str, Any]) -> bool:
    """Whether no string of a value holds a `<`, for a value of objects, lists, strings and flags."""
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        for inner in item.values() if item.__class__ is dict else item:
            kind = inner.__class__
            if kind is str:
                if "<" in inner:
                    return False
            elif kind is not bool:
                stack.append(inner)
    return True


def plain(value: dict[str, Any]) -> bool:
    """Whether no string of a value can hold leaked markup or a swallowed member, and no number is without end."""
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        for inner in item.values() if item.__class__ is dict else item:
            kind = inner.__class__
            if kind is str:
                if "<" in inner or ('"' in inner and ends_in_member(inner)):
                    return False
            elif kind is float:
                if not math.isfinite(inner):
                    return False
            elif kind is dict or kind is list:
                stack.append(inner)
    return True


def _walk(text: str, at: int, value: Any, follows: str | None, depth: int) -> int:
    """The end of the value that begins at `at`.

    Args:
        text: The text, known to be JSON but for doubled keys.
        at: Where the value begins.
        value: What orjson made of it.
        follows: The next key in the text; None where no quote follows, "" where that is not known.
        depth: How deep the value stands.
    """
    kind = value.__class__
    if kind is str:
        return _string_end(text, at, len(value), follows)
    if kind is dict or kind is list:
        if depth > _MAX_WALK:
            raise _Unsure
        if not value:
            return _end(_EMPTY.match(text, at))
        if kind is dict:
            keys = [*value, None]
            for index, item in enumerate(value.values()):
                key = keys[index]
                usual = f', "{key}": ' if index else f'{{"{key}": '
                if text.startswith(usual, at) and text[at + len(usual)] not in " \t\n\r":
                    at += len(usual)
                else:
                    match = _KEY.match(text, at)
                    if match is None or match[1] != key:
                        raise _Unsure
                    at = match.end()
                after = keys[index + 1]
                after = follows if after is None else after
                if item.__class__ is str:
                    at = _string_end(text, at, len(item), after)
                else:
                    at = _walk(text, at, item, after, depth + 1)
        else:
            last = len(value) - 1
            for index, item in enumerate(value):
                after = follows if index == last else _first_key(value[index + 1])
                at = _walk(text, _end(_ITEM.match(text, at)), item, after, depth + 1)
        return at + 1 if text[at : at + 1] in _CLOSERS else _end(_CLOSE.match(text, at))
    match = _SCALAR.match(text, at)
    if match is None or (kind is float and not any(char in match[0] for char in ".eE")):
        raise _Unsure  # an integer of more than 64 bits, which orjson rounds
    return match.end()


def _end(match: re.Match[str] | None) -> int:
    if match is None:
        raise _Unsure
    return match.end()


def _first_key(value: Any) -> str:
    return next(iter(value)) if value.__class__ is dict and value else ""


def _string_end(text: str, at: int, length: int, follows: str | None) -> int:
    """The end of a string that decodes to so many characters: the first bare quote at or behind that many.

    Every character of the value takes at least one of the text, and no bare quote stands inside a string, so the first
    bare quote from there on ends it. Behind a long string it is looked for just before the next key, and the stretch
    that was jumped into is decoded to show that no bare quote stands in it.
    """
    least = at + 1 + length
    if length > _SHORT and follows != "":
        stop = len(text) if follows is None else text.find(f'"{follows}"', least)
        quote = text.rfind('"', least, stop) if stop > least else -1
        if quote >= least and text[quote - 1] != "\\":
            start = least
            while text[start - 1] == "\\":
                start -= 1
            try:
                orjson.loads(f'"{text[start:quote]}"')
            except ValueError:
                pass
            else:
                return quote + 1
    quote = text.find('"', least)
    while text[quote - 1] == "\\" and _escaped(text, quote):
        quote = text.find('"', quote + 1)
    if quote < 0:
        raise _Unsure
    return quote + 1


def _escaped(text: str, at: int) -> bool:
    """Whether the quote at `at` stands behind an odd number of backslashes."""
    start = at
    while text[start - 1] == "\\":
        start -= 1
    return (at - start) % 2 == 1
