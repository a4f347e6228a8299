"""The llguidance engine as the judge of free text: how far a text follows a grammar, and what could have come instead.

It is the engine behind OpenAI's custom tools, so Lark and regular expressions mean here what they mean there: terminals
are greedy, and a regular expression holds for the whole text.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any

from onspec.contract.definition import Grammar
from onspec.errors import MissingExtra

try:
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer
except ImportError as error:
    raise MissingExtra("llguidance", "gateway") from error

SECONDS, SECONDS_A_BYTE = 0.25, 5e-6
"""Processor time that one text may cost; an ordinary grammar needs a fifth of the second figure, an ambiguous one
can need time that grows with the cube of the text."""
FIRST_PIECE, LARGEST_PIECE = 16, 8192
"""Bytes given to the engine at once; between pieces the clock is looked at."""
MOST_OPTIONS, LONGEST_OPTION = 10, 40
MANY, FORKS, DEPTH = 40, 6, 4
"""More different next bytes than the first are not listed one by one, than the second not followed into a keyword."""

_LIMITS = LLParserLimits(
    initial_lexer_fuel=2_000_000,
    step_lexer_fuel=200_000,
    max_items_in_row=2_000,
    step_max_items=50_000,
    max_grammar_size=500_000,
)
_COUNTS_TOKENS = re.compile(r"\bmax_tokens\s*=")
_DIGITS, _LOWER = frozenset(b"0123456789"), frozenset(range(97, 123))
_LETTERS = _LOWER | frozenset(range(65, 91))


class Unusable(Exception):
    """The grammar cannot be compiled, or costs too much for this text."""


@dataclass(frozen=True, slots=True)
class Left:
    """Where a text left its grammar.

    Attributes:
        offset: Bytes that the grammar still allowed.
        ended: Whether the text stopped there, and more should have come.
        options: What could have come instead, in words.
    """

    offset: int
    ended: bool
    options: tuple[str, ...]


class TextGrammar:
    """A compiled grammar.

    Raises:
        Unusable: It is not one that the engine takes, or is too large.
    """

    def __init__(self, grammar: Grammar) -> None:
        if _COUNTS_TOKENS.search(grammar.definition):
            raise Unusable("it counts tokens")
        self._vocabulary = LLTokenizer("byte")
        read = LLMatcher.grammar_from_lark if grammar.syntax == "lark" else LLMatcher.grammar_from_regex
        self._start = LLMatcher(self._vocabulary, read(grammar.definition), log_level=0, limits=_LIMITS)
        if self._start.is_error():
            raise Unusable(_first_line(self._start.get_error()))

    def left(self, text: bytes) -> Left | None:
        """Where the text leaves the grammar; None where it is in the language as a whole. Linear for most grammars.

        Raises:
            Unusable: The engine gave up, or the text would cost more than its share of time.
        """
        matcher = self._start.deep_copy()
        budget = SECONDS + SECONDS_A_BYTE * len(text)
        start = before = time.thread_time()
        at, size = 0, FIRST_PIECE
        while at < len(text):
            piece = list(text[at : at + size])
            taken = matcher.try_consume_tokens(piece)
            at += taken
            if matcher.is_error():
                raise Unusable(_first_line(matcher.get_error()))
            if taken < len(piece):
                return Left(at, False, self._options(text[:at]))
            now = time.thread_time()
            if now - start > budget:
                raise Unusable(f"it is too ambiguous: {at} bytes took {now - start:.1f} s")
            # The next piece may cost an eighth of what is left, were each byte as dear as the last ones.
            a_byte = max((now - before) / len(piece), 1e-9)
            size = max(1, min(LARGEST_PIECE, 2 * size, int((budget - (now - start)) / a_byte / 8)))
            before = now
        return None if matcher.is_accepting() else Left(at, True, self._options(text))

    def _options(self, before: bytes) -> tuple[str, ...]:
        matcher = self._start.deep_copy()
        matcher.try_consume_tokens(list(before))
        words = list(dict.fromkeys(_next_words(matcher, b"", DEPTH)))
        return tuple(words[:MOST_OPTIONS]) + (("...",) if len(words) > MOST_OPTIONS else ())


def _next_words(matcher: Any, written: bytes, depth: int) -> list[str]:
    """What may come next, each keyword as far as the grammar forces it; `written` are the bytes of it so far."""
    allowed = frozenset(byte for byte in range(256) if matcher.validate_tokens([byte]) == 1)
    words: list[str] = []
    if written and (len(allowed) > FORKS or not depth or matcher.is_accepting()):
        return [_shown(written)]
    if len(allowed) > MANY:
        words.append("any text" if 10 in allowed else "any text on this line")
    else:
        for name, some in (("a digit", _DIGITS), ("a letter", _LETTERS), ("a lower-case letter", _LOWER)):
            if some <= allowed:
                words.append(name)
                allowed -= some
        plain = frozenset(byte for byte in allowed if byte < 128)
        if allowed > plain and not words and not plain:
            words.append("another character")
        for byte in sorted(plain):
            ahead = matcher.deep_copy()
            ahead.try_consume_tokens([byte])
            forced: bytes = ahead.compute_ff_bytes()
            ahead.try_consume_tokens(list(forced))
            words += _next_words(ahead, written + bytes([byte]) + forced, depth - 1)
    if matcher.is_accepting():
        words.append("the end of the text")
    return words or ([_shown(written)] if written else [])


def _shown(text: bytes) -> str:
    if text[:1] in b"\r\n":
        return "a line end (LF)" if text[:1] == b"\n" else "a line end (CR)"
    line = text.decode("utf-8", "ignore").splitlines()[0]
    if not line.strip():
        return {" ": "a space", "\t": "a tab"}.get(line, "white space")
    return f'"{line[:LONGEST_OPTION]}"'


def _first_line(message: str) -> str:
    lines = [line.strip() for line in message.strip().splitlines()]
    return (lines[0] if lines else "no reason given")[:200]
