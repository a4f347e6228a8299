"""What a defect is: a sound call, what it becomes, and the two tables of kinds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks.shapes import Shape

from onspec.cli.cases import Right

ENDINGS = (None, "stop", "tool_calls", "tool_use")
"""Stop reasons that do not say that the text was cut."""


@dataclass(frozen=True, slots=True)
class Spoilt:
    """A call after a defect.

    Attributes:
        value: The arguments to write, for a defect of the value.
        text: The text, for a defect of the text.
        outcome: The right outcome.
        truth: The right arguments; those of the sound call where None.
        cautious: Whether a refusal is right too.
        also: Other right arguments.
        ending: The stop reason.
    """

    outcome: Right
    value: Any = None
    text: str | None = None
    truth: Any = None
    cautious: bool = False
    also: tuple[Any, ...] = ()
    ending: str | None = None


Kind = Callable[["Call", Random], Spoilt | None]
"""Spoils a call, or returns None where the defect does not apply to it."""

VALUE_KINDS: dict[str, Kind] = {}
TEXT_KINDS: dict[str, Kind] = {}


def of_value(kind: Kind) -> Kind:
    VALUE_KINDS[kind.__name__] = kind
    return kind


def of_text(kind: Kind) -> Kind:
    TEXT_KINDS[kind.__name__] = kind
    return kind


@dataclass(frozen=True, slots=True)
class Call:
    """A sound call: the tool, its arguments and their text."""

    shape: Shape
    arguments: dict[str, Any]
    text: str

    def copy(self) -> dict[str, Any]:
        """Arguments to spoil."""
        return deepcopy(self.arguments)

    def strings(self, longer_than: int = 0) -> list[tuple[Any, Any]]:
        """The places of texts: container and key, deepest included."""
        return list(strings_in(self.arguments, longer_than))


def strings_in(value: Any, longer_than: int) -> Iterator[tuple[Any, Any]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        if isinstance(inner, str) and len(inner) > longer_than:
            yield value, key
        yield from strings_in(inner, longer_than)


def write(value: Any, rng: Random) -> str:
    """JSON text of a value, compact or spaced, in ASCII or not."""
    spacing: Any = rng.choice(((",", ":"), (", ", ": "), None))
    return json.dumps(value, ensure_ascii=rng.random() < 0.3, separators=spacing, indent=None if spacing else 2)


def string_start(text: str, end: int) -> int:
    """Where the string that holds or ends at offset `end` began."""
    start, inside, at = 0, False, 0
    while at < len(text):
        char = text[at]
        if inside and char == "\\":
            at += 2
            continue
        if char == '"':
            if not inside:
                start = at
            elif at >= end:
                return start
            inside = not inside
        at += 1
    return start


def marks(text: str) -> Iterator[int]:
    """Offsets of the marks outside strings, and of the quotes."""
    inside, at = False, 0
    while at < len(text):
        char = text[at]
        if inside and char == "\\":
            at += 2
            continue
        if char == '"':
            inside = not inside
            yield at
        elif not inside and char in "{}[],:":
            yield at
        at += 1


def unescaped(text: str, escape: str, char: str, all_of_them: bool) -> str:
    """`escape` written as `char` inside strings, everywhere or once."""
    out: list[str] = []
    at = done = 0
    while at < len(text):
        if text[at] == "\\":
            hit = text.startswith(escape, at) and (all_of_them or not done)
            out.append(char if hit else text[at : at + 2])
            done += hit
            at += 2
        else:
            out.append(text[at])
            at += 1
    return "".join(out)


def bare_quote(text: str, rng: Random) -> str | None:
    """The text with one escaped quote inside a string left bare; None where it holds none or stays JSON."""
    places: list[int] = []
    at = text.find("\\")
    while at >= 0:
        if text[at + 1 : at + 2] == '"':
            places.append(at)
        at = text.find("\\", at + 2)
    if not places:
        return None
    at = rng.choice(places)
    bare = text[:at] + text[at + 1 :]
    return None if parses(bare) else bare


def parses(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
