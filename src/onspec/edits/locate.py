"""Where in a file the old text of an edit stands: exactly, else by named looser rules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from onspec.edits.index import occurrences
from onspec.edits.mapped import Mapped, loosen, numbered
from onspec.edits.rules import LEVELS
from onspec.edits.text import Text

MOST = 1_000
"""Matches that are looked for where one is wanted; so many and more are reported as that many."""

MOST_EVERY = 1_000_000
"""Matches that are looked for where every one is to be replaced."""

Scope = Callable[[int, int], bool]
"""Whether a match, by its start and end in the view, is where it is wanted."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look for.

    Attributes:
        old: The text, not empty.
        every: Whether every match is wanted, rather than the only one.
        whole_lines: A match begins at the start of a line and ends at the end of one.
        scope: A further condition, or None.
    """

    old: str
    every: bool = False
    whole_lines: bool = False
    scope: Scope | None = None

    @property
    def needs_all(self) -> bool:
        """Whether all matches have to be looked at, rather than enough to know that there are several."""
        return self.every or self.whole_lines or self.scope is not None


@dataclass(frozen=True, slots=True)
class Alignment:
    """How a loose match lies on the file.

    Attributes:
        rules: The rules of the level that matched.
        old: The old text under the rules.
        file: The file under the rules.
        place: Where in `file.text` the match begins.
        offset: From a place in the decoded file to one in the view.
    """

    rules: tuple[str, ...]
    old: Mapped
    file: Mapped
    place: int
    offset: Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Place:
    """One match: start and end in the view, and for a loose one how it lies."""

    start: int
    end: int
    alignment: Alignment | None = None


@dataclass(frozen=True, slots=True)
class Located:
    """What was found for one `Wanted`: all matches at the strictest level that has any.

    Attributes:
        places: The matches, in their order; they may overlap.
        level: The rules of the level; () is exact.
    """

    places: tuple[Place, ...]
    level: tuple[str, ...] = ()


def locate(text: Text, wanted: Sequence[Wanted], loose: bool = True) -> list[Located]:
    """The matches of each wanted text, at the strictest level at which it has any.

    Args:
        text: The file.
        wanted: What to look for. Strings without lone surrogates.
        loose: Whether looser rules may be tried.
    """
    newline = _only_newline(text.view)
    first = LEVELS[0]
    needles, levels = [], []
    for one in wanted:
        converts = loose and newline == "\r\n" and "\n" in one.old and "\r" not in one.old
        needles.append((one.old.replace("\n", newline) if converts else one.old).encode())
        levels.append(first if converts else ())
    found = _exact(text, wanted, needles, levels)
    for level in LEVELS if loose else ():
        left = [number for number, one in enumerate(found) if one is None]
        if not left or (not text.encoding.name and level != first):
            break
        some = [wanted[number] for number in left]
        again = _other_newline(text, some, newline) if newline and level == first else _level(text, some, level)
        for number, located in zip(left, again, strict=True):
            found[number] = located
    return [located or Located(()) for located in found]


def _exact(
    text: Text, wanted: Sequence[Wanted], needles: Sequence[bytes], levels: Sequence[tuple[str, ...]]
) -> list[Located | None]:
    starts: list[list[int]] = [[] for _ in wanted]
    single = [n for n, one in enumerate(wanted) if not one.needs_all]
    every = [n for n, one in enumerate(wanted) if one.needs_all and not one.whole_lines]
    lines = [n for n, one in enumerate(wanted) if one.whole_lines]
    for numbers, most in ((single, MOST), (every, MOST_EVERY)):
        for number, some in zip(numbers, occurrences(text.view, [needles[n] for n in numbers], most), strict=True):
            starts[number] = some
    newline = b"\n" if b"\n" in text.view else b"\r"
    framed = occurrences(text.view, [newline + needles[n] for n in lines], MOST_EVERY)
    for number, some in zip(lines, framed, strict=True):
        top = [0] if text.view.startswith(needles[number]) else []
        starts[number] = top + [start + 1 for start in some]
    located: list[Located | None] = []
    for number, one in enumerate(wanted):
        length = len(needles[number])
        places = tuple(Place(s, s + length) for s in starts[number] if _fits(text, one, s, s + length))
        located.append(Located(places, levels[number]) if places else None)
    return located


def _fits(text: Text, one: Wanted, start: int, end: int) -> bool:
    if not text.encoding.name and start and text.view[start - 1] >= 0x80:
        return False  # it may be the second half of a character
    if one.whole_lines and not _whole_lines(text.view, start, end):
        return False
    if _splits_crlf(text.view, start) or _splits_crlf(text.view, end):
        return False
    return one.scope is None or one.scope(start, end)


def _splits_crlf(view: bytes, place: int) -> bool:
    return view.startswith(b"\n", place) and view[place - 1 : place] == b"\r"


def _whole_lines(view: bytes, start: int, end: int) -> bool:
    ends = (b"\r\n", b"\n") if b"\n" in view else (b"\r",)
    return (not start or view.startswith(ends[-1], start - 1)) and (end == len(view) or view.startswith(ends, end))


def _other_newline(text: Text, wanted: Sequence[Wanted], newline: str) -> list[Located | None]:
    """The matches in a file that has one kind of line end, for those written with another kind."""
    needles = [plain_newlines(one.old).replace("\n", newline) for one in wanted]
    other = [number for number, one in enumerate(wanted) if needles[number] != one.old]
    found: list[Located | None] = [None] * len(wanted)
    encoded = [needles[number].encode() for number in other]
    for number, one in zip(
        other, _exact(text, [wanted[n] for n in other], encoded, [LEVELS[0]] * len(other)), strict=True
    ):
        found[number] = one
    return found


def _level(text: Text, wanted: Sequence[Wanted], level: tuple[str, ...]) -> list[Located | None]:
    olds = [loosen(plain_newlines(one.old), level, in_file=False) for one in wanted]
    if "line_numbers" in level and all(numbered(one.old) is None for one in wanted):
        return [None] * len(wanted)
    if "html_entities" in level and not any("&" in one.old for one in wanted):
        return [None] * len(wanted)
    if "escapes" in level and "\\" not in "".join(one.old for one in wanted) and b"\\u" not in text.view:
        return [None] * len(wanted)
    file = loosen(text.decode(), level, in_file=True)
    offset = _same if text.view.isascii() else _Offsets(text).of
    return [_loose(text, one, old, file, level, offset) for one, old in zip(wanted, olds, strict=True)]


def plain_newlines(text: str) -> str:
    """A model's text with LF for every line end."""
    return loosen(text, ("line_endings",), in_file=False).text


def _only_newline(view: bytes) -> str:
    """The line end of a file that has one kind, else ""."""
    returns = view.count(b"\r")
    if not returns:
        return "\n"
    feeds = view.count(b"\n")
    if not feeds:
        return "\r"
    return "\r\n" if returns == feeds == view.count(b"\r\n") else ""


def _same(place: int) -> int:
    return place


class _Offsets:
    """From places in the decoded file to places in the view."""

    STEP = 1 << 15

    def __init__(self, text: Text) -> None:
        self._text, self._decoded = text, text.decode()
        self._known = [0]
        for start in range(0, len(self._decoded), self.STEP):
            part = self._decoded[start : start + self.STEP]
            self._known.append(self._known[-1] + len(text.to_view(part)))

    def of(self, place: int) -> int:
        row, rest = divmod(place, self.STEP)
        return self._known[row] + len(self._text.to_view(self._decoded[place - rest : place]))


def _loose(
    text: Text, one: Wanted, old: Mapped, file: Mapped, level: tuple[str, ...], offset: Callable[[int], int]
) -> Located | None:
    pattern = old.text
    if not pattern.strip():
        return None
    most = MOST_EVERY if one.needs_all else MOST
    whole = one.whole_lines or "indentation" in level or "line_numbers" in level
    ends_line = not pattern.endswith("\n") and one.old[-1:] in " \t"
    places: list[Place] = []
    at = file.text.find(pattern)
    while at >= 0 and len(places) < most:
        end = at + len(pattern)
        place = _place(file, at, end, offset)
        if place and (not (whole or ends_line) or _line_bounds(file.text, at, end, whole)):
            start_of, end_of = place
            if one.scope is None or one.scope(start_of, end_of):
                places.append(Place(start_of, end_of, Alignment(level, old, file, at, offset)))
        at = file.text.find(pattern, at + 1)
    if "line_numbers" in level:
        first = numbered(one.old)
        places = [place for place in places if first is not None and text.line_of(place.start) == first]
    return Located(tuple(places), level) if places else None


def _place(file: Mapped, at: int, end: int, offset: Callable[[int], int]) -> tuple[int, int] | None:
    start_of, end_of = file.start(at), file.end(end)
    return None if start_of is None or end_of is None else (offset(start_of), offset(end_of))


def _line_bounds(text: str, at: int, end: int, whole: bool) -> bool:
    ends = end == len(text) or text[end] == "\n" or text[end - 1] == "\n"
    return ends and (not whole or not at or text[at - 1] == "\n")


def line_starts(view: bytes) -> list[int]:
    """Where each line of a view begins."""
    newline = b"\n" if b"\n" in view else b"\r"
    lengths = map(len, view.split(newline))
    starts = [0, *accumulate(map((1).__add__, lengths))]
    starts.pop()
    if starts[-1] == len(view) and len(starts) > 1:
        starts.pop()
    return starts


def line_at(starts: Sequence[int], offset: int) -> int:
    """Index of the line an offset is in."""
    return bisect_right(starts, offset) - 1
