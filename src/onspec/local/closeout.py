"""A budget of tokens that is enough: a call is ended while there is still room for its end."""

from __future__ import annotations

from collections.abc import Sequence

from onspec.grammar.closing import Ending, close
from onspec.grammar.llguidance import Matcher
from onspec.grammar.rules import Pieces

EVERY = 16
"""Tokens between two looks at how long the way out would be, while there is room to spare."""


class Closeout:
    """Watches one sample and says when it must be ended.

    While the budget is far, the way out is looked for every `EVERY` tokens. Near the budget, each token is tried
    first: where the way out after it would no longer fit, the way out before it is taken instead. So a whole call fits
    wherever the shortest call does; below that, the shortest call is written all the same, and the budget overdrawn.

    Args:
        budget: Tokens that the call may have in all, its end included.
        pieces: Words from which an end can be made.
    """

    def __init__(self, budget: int, pieces: Pieces) -> None:
        self._budget = budget
        self._pieces = pieces
        steps = [f"{key}:{value}" for kind in pieces.objects for key, value in kind.members]
        # Bytes are an upper bound of tokens; a few tokens may each open something that must be closed.
        self._reserve = max(4 * EVERY, 2 * max(map(len, steps), default=0))
        self._known = 0
        self._checked = -EVERY
        self._ending: Ending | None = None

    def shortest(self, matcher: Matcher) -> int | None:
        """Tokens of a shortest call from `matcher`, where nothing is written yet; None where none was found."""
        self._ending, self._checked = close(matcher, b"", self._pieces), 0
        if self._ending is None:
            return None
        self._known = len(self._ending.tokens)
        return self._known

    def due(self, matcher: Matcher, written: bytes, tokens: Sequence[int], taken: int, text: bytes) -> Ending | None:
        """The ending to append now instead of `tokens`, or None where they may be taken.

        Args:
            matcher: Where the sample stands.
            written: Bytes written so far inside the grammar.
            tokens: What is about to be taken.
            taken: Tokens taken so far.
            text: Bytes of `tokens`.
        """
        if self._budget - taken > self._known + self._reserve and taken - self._checked < EVERY:
            return None
        if self._ending is None or self._checked != taken:
            self._ending = close(matcher, written, self._pieces)
            self._checked = taken
        if self._ending is None:
            return None
        self._known = len(self._ending.tokens)
        if self._budget - taken > self._known + self._reserve:
            return None
        after = matcher.copy()
        after.consume_all(tokens)
        if after.accepting():
            return None
        following = close(after, written + text, self._pieces)
        if following is None or taken + len(tokens) + len(following.tokens) > self._budget:
            return self._ending
        self._ending, self._checked = following, taken + len(tokens)
        return None
