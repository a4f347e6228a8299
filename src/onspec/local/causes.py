"""Why a token would break a call: each token of a vocabulary, judged by its bytes at a place in the JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from onspec.grammar.place import Place

Cause = Literal[
    "invented_key", "unescaped_quote", "raw_control", "bad_escape", "wrong_tool_name", "missing_key", "wrong_bracket",
    "wrong_value", "text_outside", "control_token", "other",
]  # fmt: skip

CAUSES: tuple[Cause, ...] = (
    "invented_key", "unescaped_quote", "raw_control", "bad_escape", "wrong_tool_name", "missing_key", "wrong_bracket",
    "wrong_value", "text_outside", "control_token", "other",
)  # fmt: skip

MEANING: Mapping[str, str] = {
    "invented_key": "a key that the tool does not have, or the comma before it",
    "unescaped_quote": "a quote inside text that was not escaped: the string ends, the text goes on",
    "raw_control": "a raw newline or tab inside a string",
    "bad_escape": "a backslash before a character that JSON does not escape",
    "wrong_tool_name": "a tool that does not exist",
    "missing_key": "the object is closed before its required keys are there",
    "wrong_bracket": "a bracket that closes something else",
    "wrong_value": "a value of another type, or not one of those allowed",
    "text_outside": "no JSON where JSON must stand",
    "control_token": "a control token: the reply ends in the middle",
    "other": "anything else",
}

_LEGAL, _CONTROL, _ESCAPE, _COMMA, _CLOSE, _QUOTE, _BARE = range(7)
"""What a token does inside a string: stays legal; raw control character; bad escape; ends the string and goes on with a
comma, with a bracket, with something else, or with nothing."""


class Causes:
    """The tokens of one vocabulary, sorted by what they would do.

    Args:
        pieces: Bytes of each token.
        specials: Ids of control tokens.
    """

    def __init__(self, pieces: Sequence[bytes], specials: Sequence[int]) -> None:
        self._size = len(pieces)
        self._control = np.zeros(self._size, bool)
        self._control[list(specials)] = True
        self._inside = np.array([_inside(piece, False) for piece in pieces], np.int8)
        self._after_backslash = np.array([_inside(piece, True) for piece in pieces], np.int8)
        self._first = np.array([_first(piece) for piece in pieces], np.int16)
        self.closing = (self._inside >= _COMMA) & ~self._control
        """Tokens that hold the quote which ends a string."""

    def closes(self, place: Place) -> NDArray[np.bool_]:
        """Tokens that would end the string which is open at `place`."""
        kinds = self._after_backslash if place.escaped else self._inside
        return (kinds >= _COMMA) & ~self._control

    def split(self, place: Place, forbidden: NDArray[np.float64], name_key: str) -> dict[str, float]:
        """The forbidden probabilities at `place`, by cause; causes without mass are left out.

        Args:
            place: Where the text stands.
            forbidden: Probability of each token, 0 where the grammar allows it.
            name_key: The key under which a call's name stands.
        """
        labels = self._in_string(place, name_key) if place.word is not None else self._outside(place, name_key)
        labels = np.where(self._control, CAUSES.index("control_token"), labels)
        sums = np.bincount(labels, weights=forbidden, minlength=len(CAUSES))
        return {cause: float(sums[i]) for i, cause in enumerate(CAUSES) if sums[i] > 0.0}

    def _in_string(self, place: Place, name_key: str) -> NDArray[np.int64]:
        kinds = self._after_backslash if place.escaped else self._inside
        if place.in_key:
            return np.full(self._size, CAUSES.index("invented_key"), np.int64)
        if len(place.stack) == 1 and place.path == f'"{name_key}"':
            return np.full(self._size, CAUSES.index("wrong_tool_name"), np.int64)
        table = np.empty(7, np.int64)
        top = place.stack[-1] if place.stack else None
        in_object = top is not None and top.keys is not None
        table[_LEGAL] = CAUSES.index("wrong_value")
        table[_CONTROL] = CAUSES.index("raw_control")
        table[_ESCAPE] = CAUSES.index("bad_escape")
        table[_COMMA] = CAUSES.index("invented_key" if in_object else "other")
        table[_CLOSE] = CAUSES.index("missing_key" if in_object else "wrong_bracket")
        table[_QUOTE] = CAUSES.index("unescaped_quote")
        table[_BARE] = CAUSES.index("wrong_value")
        return table[kinds]

    def _outside(self, place: Place, name_key: str) -> NDArray[np.int64]:
        top = place.stack[-1] if place.stack else None
        out = np.full(self._size, CAUSES.index("text_outside"), np.int64)
        if top is None:
            return out
        brackets = np.isin(self._first, [0x7D, 0x5D])
        after_value = place.tail not in b"{[,:"
        if after_value:
            string_before = place.tail == 0x22
            out[:] = CAUSES.index("unescaped_quote" if string_before else "other")
            out[self._first == 0x2C] = CAUSES.index("invented_key" if top.keys is not None else "other")
            out[brackets] = CAUSES.index("wrong_bracket")
            own = 0x7D if top.keys is not None else 0x5D
            out[self._first == own] = CAUSES.index("missing_key" if top.keys is not None else "wrong_value")
        elif top.keys is not None and top.expects_key:
            out[self._first == 0x22] = CAUSES.index("invented_key")
            out[brackets] = CAUSES.index("missing_key")
        else:
            out[:] = CAUSES.index("wrong_value")
            if len(place.stack) == 1 and place.path == f'"{name_key}"':
                out[self._first == 0x22] = CAUSES.index("wrong_tool_name")
        return out


def _first(piece: bytes) -> int:
    """The first byte that is not white space, or -1."""
    stripped = piece.lstrip(b" \t\r\n")
    return stripped[0] if stripped else -1


def _inside(piece: bytes, escaped: bool) -> int:
    index = 0
    while index < len(piece):
        code = piece[index]
        if escaped:
            if code not in b'"\\/bfnrtu':
                return _ESCAPE
            escaped = False
        elif code == 0x5C:
            escaped = True
        elif code < 0x20:
            return _CONTROL
        elif code == 0x22:
            rest = piece[index + 1 :].lstrip(b" \t\r\n")
            if not rest:
                return _BARE
            return {0x2C: _COMMA, 0x7D: _CLOSE, 0x5D: _CLOSE}.get(rest[0], _QUOTE)
        index += 1
    return _LEGAL
