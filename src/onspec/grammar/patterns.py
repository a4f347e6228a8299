"""A schema's `pattern` as a regular expression over JSON source: the same strings, in every spelling."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from onspec.grammar import lexemes
from onspec.grammar.lexemes import Ranges

MAX_REPEAT = 4096
"""Largest bound of a repetition in a pattern that is compiled; larger ones would grow the automaton without limit."""

MOST_BRANCHES = 256
"""Alternatives that several groups with anchors inside may be written out to."""

MOST_LISTED = 10_000
"""Alternatives of one group with anchors inside."""

_DIGIT: Ranges = ((0x30, 0x39),)
_WORD: Ranges = lexemes.union([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
_SPACE: Ranges = (
    *((9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F)),
    *((0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
_LINE_ENDS: Ranges = ((10, 10), (13, 13), (0x2028, 0x2029))
_CLASSES: dict[Any, Ranges] = {
    ops.CATEGORY_DIGIT: _DIGIT,
    ops.CATEGORY_NOT_DIGIT: lexemes.without(lexemes.SCALARS, _DIGIT),
    ops.CATEGORY_WORD: _WORD,
    ops.CATEGORY_NOT_WORD: lexemes.without(lexemes.SCALARS, _WORD),
    ops.CATEGORY_SPACE: _SPACE,
    ops.CATEGORY_NOT_SPACE: lexemes.without(lexemes.SCALARS, _SPACE),
}
_ANY_TEXT = f"{lexemes.UNIT}*"
_Encoder = Callable[[Ranges], str]
_NAMED = re.compile(r"\(\?<(?![=!])")


class Unsupported(Exception):
    """The pattern uses what no automaton can follow: look-around, a back-reference, an anchor in its middle."""


@lru_cache(maxsize=1024)
def containing(pattern: str, escaped: bool = True) -> str:
    """The texts that hold a match of the ECMA-262 `pattern` somewhere.

    Args:
        pattern: As in a schema's `pattern`.
        escaped: Whether the text is written inside a JSON string, in any spelling, or raw.

    Raises:
        Unsupported: The pattern cannot be expressed.
    """
    one = lexemes.encoded if escaped else lexemes.char_class
    anything = _ANY_TEXT if escaped else "(?s:.*)"
    try:
        branches = [_anchored(branch, one, anything) for branch in _branches(_parsed(pattern))]
    except RecursionError:
        raise Unsupported("nested too deeply") from None
    return "(" + "|".join(branches) + ")"


@lru_cache(maxsize=1024)
def shortest(pattern: str) -> str:
    """A short text that holds a match of `pattern`.

    Raises:
        Unsupported: The pattern cannot be expressed.
    """
    return min((_example(branch) for branch in _branches(_parsed(pattern))), key=len)


def _parsed(pattern: str) -> list[Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parser.parse(_NAMED.sub("(?P<", pattern))
    except (re.error, RecursionError, OverflowError) as error:
        raise Unsupported(str(error)) from None
    if tree.state.flags & ~(re.UNICODE.value):
        raise Unsupported("flags")
    return list(tree)


def _example(items: list[Any]) -> str:
    out = []
    for op, value in items:
        if op is ops.BRANCH:
            out.append(min((_example(list(branch)) for branch in value[1]), key=len))
        elif op is ops.SUBPATTERN:
            out.append(_example(list(value[3])))
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            out.append(_example(list(value[2])) * min(value[0], MAX_REPEAT) if value[0] else "")
        elif op is not ops.AT:
            out.append(chr(_preferred(_ranges_of(op, value))))
    return "".join(out)


def _preferred(ranges: Ranges) -> int:
    for code in (0x61, 0x41, 0x30):
        if lexemes.contains(ranges, code):
            return code
    for low, high in ranges:
        if high > 0x20:
            return max(low, 0x21)
    return ranges[0][0] if ranges else 0x61


def _ranges_of(op: Any, value: Any) -> Ranges:
    if op is ops.LITERAL:
        return ((value, value),)
    if op is ops.NOT_LITERAL:
        return lexemes.without(lexemes.SCALARS, ((value, value),))
    if op is ops.ANY:
        return lexemes.without(lexemes.SCALARS, _LINE_ENDS)
    if op is ops.IN:
        return _class(value)
    raise Unsupported(str(op).lower())


def _branches(items: list[Any]) -> list[list[Any]]:
    """Top-level alternatives: `^a|b$` anchors each on its own side."""
    factors = _factors(items)
    if math.prod(factors) > (MOST_LISTED if len(factors) == 1 else MOST_BRANCHES):
        raise Unsupported("anchors in too many groups")
    return _written_out(items)


def _factors(items: list[Any]) -> list[int]:
    """How many alternatives each group with an anchor in it is, once it is written out, where it is several."""
    out = []
    for op, value in items:
        branches: list[list[Any]] = []
        if op is ops.SUBPATTERN and _has_anchor(list(value[3])):
            branches = [list(value[3])]
        elif op is ops.BRANCH and (len(items) == 1 or any(_has_anchor(list(branch)) for branch in value[1])):
            branches = [list(branch) for branch in value[1]]
        out.append(sum(math.prod(_factors(branch)) for branch in branches))
    return [count for count in out if count > 1]


def _written_out(items: list[Any]) -> list[list[Any]]:
    if len(items) == 1:
        op, value = items[0]
        if op is ops.BRANCH:
            return [found for branch in value[1] for found in _written_out(list(branch))]
        if op is ops.SUBPATTERN and not value[1] and not value[2]:
            return _written_out(list(value[3]))
    for index, (op, value) in enumerate(items):
        inner = None
        if op is ops.SUBPATTERN and not value[1] and not value[2] and _has_anchor(list(value[3])):
            inner = _written_out(list(value[3]))
        elif op is ops.BRANCH and any(_has_anchor(list(branch)) for branch in value[1]):
            inner = [list(branch) for branch in value[1]]
        if inner is not None:
            return [found for branch in inner for found in _written_out([*items[:index], *branch, *items[index + 1 :]])]
    return [items]


def _has_anchor(items: list[Any]) -> bool:
    for op, value in items:
        if op is ops.AT:
            return True
        if op is ops.SUBPATTERN and _has_anchor(list(value[3])):
            return True
        if op is ops.BRANCH and any(_has_anchor(list(branch)) for branch in value[1]):
            return True
    return False


def _anchored(items: list[Any], one: _Encoder, anything: str) -> str:
    start = end = False
    while items and items[0][0] is ops.AT and items[0][1] in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
        start, items = True, items[1:]
    while items and items[-1][0] is ops.AT and items[-1][1] in (ops.AT_END, ops.AT_END_STRING):
        end, items = True, items[:-1]
    if not start and items:  # Where any text may stand before, more than the least repeats says nothing.
        items = [_fewest(items[0]), *items[1:]]
    if not end and items:
        items = [*items[:-1], _fewest(items[-1])]
    return ("" if start else anything) + _sequence(items, one) + ("" if end else anything)


def _fewest(item: Any) -> Any:
    op, value = item
    return (op, (value[0], value[0], value[2])) if op in (ops.MAX_REPEAT, ops.MIN_REPEAT) else item


def _sequence(items: list[Any], one: _Encoder) -> str:
    return "".join(_item(op, value, one) for op, value in items)


def _item(op: Any, value: Any, one: _Encoder) -> str:
    if op is ops.BRANCH:
        return "(" + "|".join(_sequence(list(branch), one) for branch in value[1]) + ")"
    if op is ops.SUBPATTERN:
        if value[1] or value[2]:
            raise Unsupported("flags")
        return "(" + _sequence(list(value[3]), one) + ")"
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
        low, high, body = value
        if high == 0:
            return ""
        if low > MAX_REPEAT or (high is not ops.MAXREPEAT and high > MAX_REPEAT):
            raise Unsupported("a repetition bound")
        return f"({_sequence(list(body), one)}){{{low},{'' if high is ops.MAXREPEAT else high}}}"
    clean = lexemes.without(_ranges_of(op, value), ((0xD800, 0xDFFF),))
    if not clean:
        raise Unsupported("an empty class")
    return one(clean)


def _class(items: list[Any]) -> Ranges:
    parts: list[tuple[int, int]] = []
    negated = False
    for op, value in items:
        if op is ops.NEGATE:
            negated = True
        elif op is ops.LITERAL:
            parts.append((value, value))
        elif op is ops.RANGE:
            parts.append(value)
        elif op is ops.CATEGORY:
            parts += _CLASSES[value]
        else:
            raise Unsupported(str(op).lower())
    ranges = lexemes.union(parts)
    return lexemes.without(lexemes.SCALARS, ranges) if negated else ranges
