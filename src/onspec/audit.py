"""The trail: what was changed in a call, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Json = Any
"""A decoded JSON value: dict with str keys, list, str, int, float, bool or None."""

Path = tuple[str | int, ...]
"""A place in a decoded value: object keys and array indexes from the root."""


@dataclass(frozen=True, slots=True)
class Repair:
    """One change that was made to what the model wrote.

    Attributes:
        rule: Name of a row of `onspec.repair.rules.RULES`.
        path: JSON Pointer (RFC 6901) to the place, in the value as it stood when the rule was applied.
        before: What stood there: source text for reading rules, a JSON value for the others.
        after: What stands there now; None where something was removed.
        span: Start and end offset, in bytes, of the place in the original text.
    """

    rule: str
    path: str
    before: Json
    after: Json
    span: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which a call breaks its contract.

    Attributes:
        code: Stable machine name, such as `missing_required` or `cut_off`.
        path: JSON Pointer to the place in the value as read ("" is the whole call).
        message: One short sentence. It never echoes a payload.
        expected: What the contract allows there, in short words, or None.
        found: What stood there, as a type or a short word, or None.
        hint: The nearest valid form, or None.
    """

    code: str
    path: str
    message: str
    expected: str | None = None
    found: str | None = None
    hint: str | None = None


def pointer(path: Iterable[str | int]) -> str:
    """The JSON Pointer (RFC 6901) of a path."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def equal(one: Json, two: Json) -> bool:
    """Whether two decoded values are the same JSON: true and 1 are not, 1 and 1.0 are, whatever the order of keys."""
    if one is two:
        return True
    if isinstance(one, bool) or isinstance(two, bool):
        return False
    if isinstance(one, dict):
        return isinstance(two, dict) and one.keys() == two.keys() and all(equal(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return isinstance(two, list) and len(one) == len(two) and all(map(equal, one, two))
    return bool(one == two)
