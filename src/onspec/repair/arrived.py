"""Text that arrives in pieces, with what stands in place of some of its ranges."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field


@dataclass(slots=True)
class Arrived:
    """A text as it came, and the ranges of it in whose place another text stands.

    Ranges do not overlap and are told in order. What stands in place of a range belongs to its first character.
    """

    length: int = 0
    _pieces: list[str] = field(default_factory=list)
    _offsets: list[int] = field(default_factory=list)
    _starts: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)

    def append(self, piece: str) -> None:
        """The next piece."""
        if piece:
            self._offsets.append(self.length)
            self._pieces.append(piece)
            self.length += len(piece)

    @property
    def text(self) -> str:
        """Everything that has come, as it came."""
        if len(self._pieces) > 1:
            self._pieces, self._offsets = ["".join(self._pieces)], [0]
        return self._pieces[0] if self._pieces else ""

    def slice(self, start: int, end: int) -> str:
        """What came from one offset to another, in time that grows with its length only."""
        if start >= end:
            return ""
        first = bisect_right(self._offsets, start) - 1
        last = bisect_left(self._offsets, end)
        parts = self._pieces[first:last]
        offset = self._offsets[first]
        return "".join(parts)[start - offset : end - offset]

    def replace(self, start: int, end: int, text: str) -> None:
        """`text` stands in place of a range that lies behind all earlier ones."""
        if not text and self._ends and self._ends[-1] == start and not self._texts[-1]:
            self._ends[-1] = end
            return
        self._starts.append(start)
        self._ends.append(end)
        self._texts.append(text)

    def changed(self, start: int, end: int) -> bool:
        """Whether any of this range is replaced."""
        return bool(self._starts) and bisect_right(self._ends, start) < bisect_left(self._starts, end)

    def standing(self, start: int, end: int) -> str:
        """What stands for a range."""
        first, last = bisect_right(self._ends, start), bisect_left(self._starts, end)
        if first >= last:
            return self.slice(start, end)
        out = []
        for index in range(first, last):
            at = self._starts[index]
            if at >= start:
                out.append(self.slice(start, at))
                out.append(self._texts[index])
            start = self._ends[index]
        out.append(self.slice(start, end))
        return "".join(out)
