"""What a machine looks for in a dialect: openers, closers, tokens, and what may still become one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from onspec import possessive
from onspec.dialects.dialect import Dialect

REACH = 100
"""Longest unfinished marker, in characters, that is held back."""

MIN_HALF = 5
"""Shortest half-written marker at the end of a reply that is hidden."""


@dataclass(frozen=True, slots=True)
class Patterns:
    """What a machine looks for, compiled for one dialect and one set of names."""

    skip: re.Pattern[str]
    at: re.Pattern[str]
    hold: re.Pattern[str]
    thinking: re.Pattern[str]
    literals: tuple[str, ...]


def _nested(literal: str) -> str:
    """A pattern of every proper prefix of `literal`."""
    out = ""
    for char in reversed(literal[:-1]):
        out = re.escape(char) + (f"(?:{out})?" if out else "")
    return out


@lru_cache(maxsize=256)
def patterns(dialect: Dialect, names: tuple[str, ...]) -> Patterns:
    """The compiled patterns of a dialect for a set of tool names."""
    family = dialect.family
    opens = tuple(pair[0] for pair in dialect.think)
    closes = tuple(pair[1] for pair in dialect.think)
    drop = [re.escape(token) for token in dialect.controls]
    if family.orphans():
        drop.append(family.orphans())
    parts = [f"(?P<open>{family.opener(names)})"]
    for group, words in (("think", opens), ("unthink", closes)):
        if words:
            parts.append(f"(?P<{group}>{'|'.join(re.escape(word) for word in words)})")
    if drop:
        parts.append(f"(?P<drop>{'|'.join(drop)})")
    parts.append("(?P<tick>`+|~~~+)")
    at = "|".join(parts)
    firsts = {"`", "~", *family.firsts, *(word[0] for word in (*opens, *closes, *dialect.controls))}
    charset = "".join(re.escape(char) for char in sorted(firsts))
    literals = tuple(sorted({*family.literals, *opens, *closes, *dialect.controls}, key=len, reverse=True))
    holds = [rf"<[^<>\n]{{0,{REACH - 8}}}", r"(?<!`)`+", "~~?"]
    if "[" in firsts:
        holds.append(r"\[[^\[\]\n]{0,60}")
    if family.hold:
        holds.append(family.hold)
    holds += [_nested(literal) for literal in literals if literal[0] not in "<[" or ">" in literal[:-1]]
    return Patterns(
        skip=possessive.compile(f"(?:[^{charset}]++|(?!{re.sub('[?]P<[a-z]+>', '?:', at)})[{charset}])*+"),
        at=possessive.compile(at),
        hold=re.compile(f"(?:{'|'.join(holds)})\\Z"),
        thinking=re.compile(
            "|".join((*(re.escape(word) for word in closes), *filter(None, (dialect.thinking_end,)))) or r"(?!)"
        ),
        literals=literals,
    )


def half(text: str, literal: str) -> int:
    """Length of the proper beginning of `literal` with which `text` ends; 0 where it is too short to tell."""
    for length in range(min(len(literal) - 1, len(text)), MIN_HALF - 1, -1):
        if text.endswith(literal[:length]):
            return length
    return 0


_STRAY = re.compile(
    r"(?:cou[a-z]{0,8}|cour[a-z]{0,8}|calls?|invoke|functions?|function_calls?|tools?|tool_calls?|antml)"
)


def is_stray(text: str) -> bool:
    """Whether a line is one of the words that replace an opener."""
    return _STRAY.fullmatch(text.strip()) is not None


def stray_from(text: str, whole_line: bool) -> int:
    """Where a last line begins that is one word of the kind that replaces an opener; -1 where there is none."""
    start = text.rfind("\n") + 1
    if (start == 0 and not whole_line) or len(text) - start > 24:
        return -1
    word = text[start:].strip()
    if word and (_STRAY.fullmatch(word) or any(option.startswith(word) for option in _STRAY_STARTS)):
        return start
    return -1


_STRAY_STARTS = ("cou", "call", "invoke", "function", "tool", "antml")


@lru_cache(maxsize=64)
def fence_closer(run: str, final: bool) -> re.Pattern[str]:
    """The line that closes a fence opened by `run`."""
    end = r"(?=\n|\Z)" if final else r"(?=\n)"
    return re.compile(rf"\n[ \t>]*{re.escape(run[0])}{{{len(run)},}}[ \t]*{end}")
