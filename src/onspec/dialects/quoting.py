"""Whether a marker is meant or only mentioned: inline code, quotation marks, the middle of a sentence."""

from __future__ import annotations

import re

KEPT = 240
"""Characters of the current line that are remembered."""

_ENDS = ".!?…。！？"
_CLOSERS = "\"'”’»)]}*_"
_QUOTES = {"`": "`", '"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "(": ")"}
_CODE = re.compile(r"(?:<(?:code|pre|samp|kbd)>|<!--)\Z", re.IGNORECASE)
_QUOTE_LINE = re.compile(r"\s*>[\s>]*\Z")
_SPACE = re.compile(r"[ \t]*+")
_RUN = re.compile("`+")


class Line:
    """The line that is being written: what stands in it so far, and whether inline code is open."""

    __slots__ = ("_text", "_tick")

    def __init__(self) -> None:
        self._text = ""
        self._tick = 0

    def reset(self) -> None:
        """Markup was taken out: a fresh line, as far as quoting goes."""
        self._text = ""
        self._tick = 0

    def add(self, piece: str) -> None:
        """More of it was written."""
        cut = piece.rfind("\n")
        if cut >= 0:
            self._tick = 0
            self._text = piece[cut + 1 :][-KEPT:]
        else:
            self._text = (self._text + piece)[-KEPT:]

    def tick(self, length: int) -> None:
        """A run of that many backticks was written: it opens inline code, closes it, or stands inside."""
        if not self._tick:
            self._tick = length
        elif self._tick == length:
            self._tick = 0

    def at_start(self) -> bool:
        """Whether nothing but space stands in the line."""
        return not self._text.strip()

    def may_open_fence(self) -> bool:
        """Whether a fence may open here: only space, quote or list signs stand before."""
        return not self._text.strip(" \t>-*+0123456789.)")

    def mid_sentence(self) -> bool:
        """Whether text stands before that does not end a sentence."""
        before = self._text.rstrip().rstrip(_CLOSERS)
        return bool(before) and before[-1] not in _ENDS

    def in_quotes(self) -> bool:
        """Whether what follows is in quotation marks, a code element or a quoted line, as far as one sees here."""
        before = self._text.rstrip()
        return bool(before) and (
            before[-1] in _QUOTES or _CODE.search(before) is not None or _QUOTE_LINE.match(self._text) is not None
        )

    def in_sentence(self, text: str, end: int, final: bool, token: bool = False) -> bool | None:
        """Whether markup that ends at `end` is only quoted in this line. None: that depends on what follows.

        Args:
            token: It is a lone token, which may end a turn also where a call would be quoted.
        """
        before = self._text.rstrip()
        if not before:
            return False
        if not token and (_CODE.search(before) or _QUOTE_LINE.match(self._text)):
            return True
        opener = before[-1] if before[-1] in _QUOTES else ""
        if not opener and not self.mid_sentence():
            return False
        at = _SPACE.match(text, end).end()  # type: ignore[union-attr]
        if at >= len(text):
            return False if final else None
        char = text[at]
        if opener and char == _QUOTES[opener]:
            return True
        return self.mid_sentence() and ((char.isalpha() and not char.isupper()) or char in ",.;:)?!”’»\"'`")

    def has_prose(self, text: str, end: int, final: bool) -> bool | None:
        """Whether other text stands in the same line before this place or after `end`. None: not yet known."""
        if self._text.strip():
            return True
        at = _SPACE.match(text, end).end()  # type: ignore[union-attr]
        if at >= len(text):
            return False if final else None
        return text[at] not in "\r\n<"

    def code_end(self, text: str, start: int, end: int, final: bool, reach: int | None = None) -> int | None:
        """Where the inline code ends in which a marker stands; 0: it stands in none. None: not yet known.

        Inline code that opens directly before the marker may go on to the end of the paragraph, other only to the
        end of the line.

        Args:
            reach: Characters within which it must end; None: no limit. A lone token that ends a turn is only mentioned
                where the code ends soon.
        """
        if not self._tick:
            return 0
        if reach is not None and len(text) > end + reach:
            text, final = text[: end + reach], True
        near = (text[start - 1 : start] or self._text[-1:]) == "`"
        pos = end
        while True:
            run = _RUN.search(text, pos)
            stop = text.find("\n\n" if near else "\n", pos, run.start() if run else len(text))
            if stop >= 0 or (run is None and final):
                self._tick = 0
                return 0
            if run is None or (not final and run.end() == len(text)):
                return None
            if len(run[0]) == self._tick:
                self._tick = 0
                return run.end()
            pos = run.end()


def is_mention(text: str, start: int, end: int) -> bool:
    """Whether the marker at `start` to `end` stands directly between quotation marks or backticks."""
    return start > 0 and _QUOTES.get(text[start - 1]) == text[end : end + 1] != ""


def may_mention(text: str, start: int) -> bool:
    """Whether a quotation mark stands directly before."""
    return start > 0 and text[start - 1] in _QUOTES
