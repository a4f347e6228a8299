"""A budget of tokens that is enough: a call is ended while there is still room for its end."""

from __future__ import annotations

from dataclasses import dataclass

from onspec.grammar.closing import Ending, close
from onspec.grammar.llguidance import Matcher
from onspec.grammar.rules import Pieces

EVERY = 16
"""Tokens between two looks at how long the way out would be, while there is room to spare."""


@dataclass(slots=True)
class Closeout:
    """Watches one sample and says when it must be ended.

    The way out is searched anew every `EVERY` tokens while the budget is far, and at every token once the last known
    way out, doubled, would no longer fit. So a whole value always fits into the budget where its shortest form does.

    Attributes:
        budget: Tokens that the call may have in all, its end included.
        pieces: Words from which an end can be made.
        prefix: What stands before the value that `pieces` speak of: bytes inside the grammar that are not JSON.
    """

    budget: int
    pieces: Pieces
    _known: int = 0
    _checked: int = -1_000_000
    _ending: Ending | None = None

    def due(self, matcher: Matcher, written: bytes, tokens: int) -> Ending | None:
        """The ending to append now, or None while there is room for one more token.

        Args:
            matcher: Where the sample stands.
            written: Bytes written so far inside the grammar.
            tokens: Tokens written so far.
        """
        room = self.budget - tokens
        if room > 2 * self._known + 2 * EVERY and tokens - self._checked < EVERY:
            return None
        ending = close(matcher, written, self.pieces)
        self._checked = tokens
        if ending is None:
            return self._ending if room <= 0 else None
        self._known = len(ending.tokens)
        if room > self._known + 1:
            return None
        return ending
