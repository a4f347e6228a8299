"""A budget of tokens that is enough: a call is ended while there is still room for its end."""

from __future__ import annotations

from onspec.grammar.closing import Ending, close
from onspec.grammar.llguidance import Matcher
from onspec.grammar.rules import Pieces

EVERY = 16
"""Tokens between two looks at how long the way out would be, while there is room to spare."""


class Closeout:
    """Watches one sample and says when it must be ended.

    The way out is searched anew every `EVERY` tokens while the budget is far, and at every token near it. One token
    can make the way out longer (it may open an object with required keys), so room for the longest such step is kept.
    A whole call fits the budget wherever the shortest call does; below that, the shortest call is written all the
    same, and the budget is overdrawn.

    Args:
        budget: Tokens that the call may have in all, its end included.
        pieces: Words from which an end can be made.
        matcher: At the start of the call; it knows how texts become tokens.
    """

    def __init__(self, budget: int, pieces: Pieces, matcher: Matcher) -> None:
        self._budget = budget
        self._pieces = pieces
        steps = [f"{key}:{value}" for kind in pieces.objects for key, value in kind.members]
        longest = max(map(len, steps), default=0)
        self._slack = 2 + max(
            (len(matcher.vocabulary.tokens_of(step.encode())) for step in steps if len(step) == longest), default=0
        )
        self._known = 0
        self._checked = -EVERY

    def due(self, matcher: Matcher, written: bytes, tokens: int) -> Ending | None:
        """The ending to append now, or None while there is room for one more token.

        Args:
            matcher: Where the sample stands.
            written: Bytes written so far inside the grammar.
            tokens: Tokens written so far.
        """
        room = self._budget - tokens
        if room > self._known + EVERY * self._slack and tokens - self._checked < EVERY:
            return None
        if matcher.accepting():
            return None
        ending = close(matcher, written, self._pieces)
        self._checked = tokens
        if ending is None:
            return None
        self._known = len(ending.tokens)
        return ending if room <= self._known + self._slack else None
