"""All changes of one file, matched against the file as it was: new bytes and a trail, or violations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from onspec.audit import Repair, Violation
from onspec.edits.carry import Refusal, carry
from onspec.edits.edit import Change, Insert, Lines, Replace
from onspec.edits.guard import unwritable
from onspec.edits.index import occurrences
from onspec.edits.locate import (
    MOST,
    MOST_EVERY,
    Located,
    Place,
    Scope,
    Wanted,
    line_at,
    line_starts,
    locate,
    plain_newlines,
)
from onspec.edits.mapped import loosen
from onspec.edits.nearest import difference, nearest
from onspec.edits.text import Text

MOST_LISTED = 12
"""Matching lines that a message lists."""

MOST_ANCHORS = 200
"""Lines that may be the one after @@."""

MOST_HINTS = 3
"""Old texts of a call for which the nearest passage is looked for."""

TRAIL_WIDTH = 2_000
"""Characters of matched text that the trail keeps."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One replaced part of a file: start and end in the old bytes, the bytes that were there, and the new ones."""

    start: int
    end: int
    old: bytes
    new: bytes


@dataclass(frozen=True, slots=True)
class Replaced:
    """What became of the changes of one file.

    Attributes:
        data: The new bytes, or None where there are violations.
        pieces: What was replaced, in order.
        matches: For every change, how many places it changed.
        repairs: The looser rules that were used.
        violations: Why nothing was changed.
    """

    data: bytes | None
    pieces: tuple[Piece, ...] = ()
    matches: tuple[int, ...] = ()
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True)
class _Cut:
    """A part of the view to be replaced, and the part that was matched for it."""

    start: int
    end: int
    new: str
    matched: tuple[int, int]
    number: int


def replace(text: Text, changes: Sequence[Change], *, loose: bool = True) -> Replaced:
    """Apply changes to a file's text, all or none.

    Every change is matched against the text as it is; their order has no meaning. A `Replace` matches once (or is
    for every match), a `Lines` once, at the strictest level at which it matches at all. Matched parts do not overlap.

    Args:
        text: The file.
        changes: What to do.
        loose: Whether looser rules may be tried where nothing matches exactly.

    Returns:
        New bytes and a trail, or all violations found.
    """
    work = _Work(text, loose)
    work.judge(changes)
    if not work.violations:
        work.find(changes)
    if not work.violations:
        work.overlaps(changes)
    if work.violations:
        return Replaced(None, violations=tuple(work.violations))
    return work.result(len(changes))


class _Work:
    """One run of `replace`."""

    def __init__(self, text: Text, loose: bool) -> None:
        self.text, self.loose = text, loose
        self.cuts: list[_Cut] = []
        self.repairs: list[Repair] = []
        self.violations: list[Violation] = []
        self.has_cr = b"\r" in text.view
        self.hints = 0
        self._starts: list[int] | None = None
        self._bare_lines: dict[str, list[int]] | None = None
        self._decoded: str | None = None

    @property
    def starts(self) -> list[int]:
        if self._starts is None:
            self._starts = line_starts(self.text.view)
        return self._starts

    @property
    def decoded(self) -> str:
        if self._decoded is None:
            self._decoded = self.text.decode()
        return self._decoded

    @property
    def bare_lines(self) -> dict[str, list[int]]:
        """The lines by what is left of them without blanks and look-alikes: their numbers, from 0."""
        if self._bare_lines is None:
            self._bare_lines = {}
            for number in range(len(self.starts)):
                self._bare_lines.setdefault(_bare(_line(self.starts, self.text.view, number)), []).append(number)
        return self._bare_lines

    def refuse(self, code: str, at: str, message: str, **more: str | None) -> None:
        self.violations.append(Violation(code, at, message, **more))

    # what is wrong before looking at the file

    def judge(self, changes: Sequence[Change]) -> None:
        seen: dict[tuple[str, bool], str] = {}
        chunks: set[tuple[tuple[str, ...], tuple[str, ...], bool]] = set()
        for change in changes:
            new = change.text if isinstance(change, Insert) else _joined(change.new)
            old = "" if isinstance(change, Insert) else _joined(change.old)
            key = {Insert: "/text", Replace: "/new", Lines: ""}[type(change)]
            wrong = unwritable(new, change.at, old) or (unwritable(old, change.at, old) if old else None)
            if wrong:
                self.violations.append(wrong)
            elif isinstance(change, Insert):
                if not new:
                    self.refuse("no_op", change.at, "the text to insert is empty")
            elif not old and isinstance(change, Replace):
                self.refuse(
                    "empty_old", change.at, "the old text is empty", hint="give the text to replace, or write the file"
                )
            elif (isinstance(change, Replace) and old == new) or (
                isinstance(change, Lines) and change.old == change.new
            ):
                self.refuse("no_op", change.at, "old and new text are the same: nothing would change")
            elif isinstance(change, Replace) and not old.strip() and not change.every and len(old) < 2:
                self.refuse("blank_old", change.at, "the old text is a single blank", hint="add the text around it")
            elif isinstance(change, Replace):
                first = seen.setdefault((old, change.every), change.at)
                if first != change.at or (old, not change.every) in seen:
                    self.refuse(
                        "duplicate", change.at, f"the old text is the same as that of {first or 'another edit'}"
                    )
            if isinstance(change, Lines):
                if (change.old, change.after, change.at_end) in chunks:
                    self.refuse("duplicate", change.at, f"{_name(change)}it looks for the same lines as another chunk")
                chunks.add((change.old, change.after, change.at_end))
            for part, where in ((new, key), (old, "/old")):
                if not wrong and part and self.text.encode(part) is None:
                    self._unencodable(part, change.at, where)
                    break

    def _unencodable(self, part: str, at: str, where: str) -> None:
        name = self.text.encoding.name
        if where == "/old" and name:
            return  # it may match by a looser rule
        char = next(c for c in part if self.text.encode(c) is None)
        if name:
            self.refuse("not_encodable", at, f"the file's encoding ({name}) has no character U+{ord(char):04X}")
        else:
            self.refuse(
                "unknown_encoding",
                at,
                "the file is in an 8-bit encoding that is not known; only ASCII text can be matched and written",
                hint="give the file's encoding",
            )

    # looking

    def find(self, changes: Sequence[Change]) -> None:
        numbers, wanted = [], []
        for number, change in enumerate(changes):
            if isinstance(change, Replace):
                old = self._without_bom(change.old, change.at)
                numbers.append(number)
                wanted.append(Wanted(old, change.every))
            elif isinstance(change, Lines) and change.old:
                numbers.append(number)
                wanted.append(Wanted("\n".join(change.old), whole_lines=True, scope=self._scope(change)))
            else:
                self._insert(change, number)
        for number, one, located in zip(numbers, wanted, locate(self.text, wanted, self.loose), strict=True):
            change = changes[number]
            assert not isinstance(change, Insert)
            places = self._chosen(change, one, located)
            new = change.new if isinstance(change, Replace) else "\n".join(change.new)
            new = new.removeprefix("\ufeff") if self.text.encoding.bom else new
            if isinstance(change, Lines) and not change.new:
                places = [self._with_newline(place) for place in places]
            for place in places:
                self._cut(place, one.old, new, number, change.at, located.level)

    def _without_bom(self, old: str, at: str) -> str:
        if self.text.encoding.bom and old.startswith("\ufeff") and len(old) > 1:
            self.repairs.append(Repair("byte_order_mark", at, "\ufeff", ""))
            return old[1:]
        return old

    def _chosen(self, change: Replace | Lines, one: Wanted, located: Located) -> list[Place]:
        places = list(located.places)
        if not places:
            self._not_found(change, one.old)
        elif len(places) >= MOST_EVERY:
            self.refuse("too_many", change.at, f"the old text matches {MOST_EVERY} times or more")
            return []
        elif isinstance(change, Replace) and change.every:
            for before, after in pairwise(places):
                if after.start < before.end:
                    self.refuse(
                        "not_unique",
                        change.at,
                        "matches of the old text overlap one another",
                        hint="add the text around it",
                    )
                    return []
        elif len(places) > 1:
            self._not_unique(change, places)
            return []
        return places

    def _scope(self, change: Lines) -> Scope | None:
        ranges = _anchored(self, change)
        if ranges is None and not change.at_end:
            return None
        size = len(self.text.view.rstrip(b"\r\n"))

        def scope(start: int, end: int) -> bool:
            inside = ranges is None or any(first <= start and end <= last for first, last in ranges)
            return inside and (not change.at_end or end >= size)

        return scope

    def _insert(self, change: Change, number: int) -> None:
        view = self.text.view
        if isinstance(change, Insert):
            last = len(self.starts) if view else 0
            if not 0 <= change.line <= last:
                self.refuse(
                    "out_of_range", change.at, f"line {change.line} is not in the file", expected=f"0 to {last}"
                )
                return
            at = self.starts[change.line] if change.line < last else len(view)
            text = change.text
        else:
            assert isinstance(change, Lines)
            place = self._added_at(change)
            if place is None:
                return
            at, text = place, "\n".join(change.new)
        newline = "\n" if b"\n" in view or b"\r" not in view else "\r"
        unfinished = at == len(view) and view and not view.endswith(newline.encode())
        text = text.removesuffix("\n") if unfinished else text if text.endswith("\n") else text + "\n"
        self._add(_Cut(at, at, ("\n" if unfinished else "") + text, (at, at), number), change.at, True)

    def _added_at(self, change: Lines) -> int | None:
        view = self.text.view
        ranges = _anchored(self, change)
        if self.violations:
            return None
        if ranges:
            if len(ranges) > 1:
                lines = ", ".join(str(self.text.line_of(first) - 1) for first, _ in ranges[:MOST_LISTED])
                self.refuse(
                    "not_unique",
                    change.at,
                    f"{_name(change)}the line after @@ stands more than once",
                    found=f"lines {lines}",
                )
                return None
            return ranges[0][0]
        if change.at_end or not view:
            return len(view)
        self.refuse(
            "no_place",
            change.at,
            f"{_name(change)}it only adds lines and does not say where",
            hint="add lines of context, an @@ line, or *** End of File",
        )
        return None

    def _with_newline(self, place: Place) -> Place:
        """Whole lines that go, go with their end."""
        view = self.text.view
        end = place.end
        while end < len(view) and view[end] in b" \t" and place.alignment:
            end += 1
        for newline in (b"\r\n", b"\n", b"\r"):
            if view.startswith(newline, end):
                return Place(place.start, end + len(newline))
        return Place(place.start, place.end)

    # cutting

    def _cut(self, place: Place, old: str, new: str, number: int, at: str, level: tuple[str, ...]) -> None:
        matched = (place.start, place.end)
        lay = place.alignment
        if lay is None:
            rewritten = bool(level)
            if rewritten:
                self._trail(level, at, old, self.text.view[place.start : place.end])
            self._add(_Cut(place.start, place.end, new, matched, number), at, rewritten)
            return
        cuts = carry(self.decoded, lay, old, new)
        if isinstance(cuts, Refusal):
            self.refuse(cuts.code, at, cuts.message, hint=self._like(old))
            return
        if not cuts:
            self.refuse(
                "no_op", at, "what the new text changes in the old text is not in the file: nothing would change"
            )
            return
        self._trail(_used(lay.rules, old, self.text, matched), at, old, self.text.view[place.start : place.end])
        for start, end, part in cuts:
            first, last = lay.offset(start), lay.offset(end)
            whole = (min(matched[0], first), max(matched[1], last))
            self._add(_Cut(first, last, part, whole, number), at, True)

    def _add(self, cut: _Cut, at: str, loose: bool) -> None:
        """Keep a cut, its line ends those of the lines around it."""
        new = plain_newlines(cut.new) if loose else cut.new
        if "\n" in new and "\r" not in new:
            newline = self.text.newline_at(cut.start) if self.has_cr else "\n"
            if newline != "\n":
                new = new.replace("\n", newline)
                if not loose:
                    self.repairs.append(Repair("line_endings", at, "\n", newline))
        self.cuts.append(_Cut(cut.start, cut.end, new, cut.matched, cut.number))

    def _trail(self, rules: tuple[str, ...], at: str, old: str, matched: bytes) -> None:
        found = matched.decode("utf-8", "replace")[:TRAIL_WIDTH]
        self.repairs += [Repair(rule, at, old[:TRAIL_WIDTH], found) for rule in rules]

    # refusing

    def _not_found(self, change: Replace | Lines, old: str) -> None:
        what = (
            f"{_name(change)}these lines are not in the file"
            if isinstance(change, Lines)
            else "the old text is not in the file"
        )
        if isinstance(change, Lines) and (change.after or change.at_end) and self.hints < MOST_HINTS:
            self.hints += 1
            anywhere = locate(self.text, [Wanted(old, whole_lines=True)], self.loose)[0].places
            if anywhere:
                lines = ", ".join(str(self.text.line_of(place.start)) for place in anywhere[:MOST_LISTED])
                where = "at the end of the file" if change.at_end else "after the @@ line"
                self.refuse("not_found", change.at, f"{what} {where}", found=f"they stand at line {lines}")
                return
        self.refuse("not_found", change.at, what, hint=self._like(old) or self._reread())

    def _reread(self) -> str:
        return "nothing in the file is like it; read the file again" if self.text.view else "the file is empty"

    def _like(self, old: str) -> str | None:
        self.hints += 1
        if self.hints > MOST_HINTS:
            return None
        passage = nearest(plain_newlines(self.decoded), plain_newlines(old))
        if passage is None:
            return None
        lines = f"line {passage.first}" if passage.first == passage.last else f"lines {passage.first}-{passage.last}"
        return "\n".join([f"nearest: {lines} ({passage.likeness:.0f}% alike)", *difference(old, passage)])

    def _not_unique(self, change: Replace | Lines, places: list[Place]) -> None:
        numbers = dict.fromkeys(line_at(self.starts, place.start) + 1 for place in places)
        listed = [str(number) for number in numbers][:MOST_LISTED]
        count = f"{len(places)}" if len(places) < MOST else f"{MOST} or more"
        more = " ..." if len(numbers) > MOST_LISTED else ""
        every = " or ask for every match" if isinstance(change, Replace) else " or an @@ line"
        self.refuse(
            "not_unique",
            change.at,
            f"{_name(change)}the old text matches {count} times",
            expected="one match",
            found=f"line{'s' if len(numbers) > 1 else ''} {', '.join(listed)}{more}",
            hint=f"add lines around it{every}",
        )

    def overlaps(self, changes: Sequence[Change]) -> None:
        order = sorted(self.cuts, key=lambda cut: (cut.matched, cut.start, cut.end))
        reach = -1
        last: _Cut | None = None
        for cut in order:
            start, end = cut.matched
            same_point = last is not None and start == end == last.matched[0] == last.matched[1]
            if last is not None and cut.number != last.number and (start < reach or same_point):
                first, second = sorted((last.number, cut.number))
                one, other = (changes[n].at or f"change {n + 1}" for n in (first, second))
                line = self.text.line_of(start)
                self.refuse("overlap", other, f"it overlaps {one} at line {line}", hint="make one edit of the two")
            if end >= reach:
                reach, last = max(reach, end), cut
        self.cuts = sorted(self.cuts, key=lambda cut: (cut.start, cut.end))

    def result(self, count: int) -> Replaced:
        encoded = [(cut.start, cut.end, self.text.encode(cut.new)) for cut in self.cuts]
        cuts = [(start, end, new) for start, end, new in encoded if new is not None]
        assert len(cuts) == len(encoded), "judge() lets no other text through"
        data, spans = self.text.splice(cuts)
        if data == self.text.data:
            wrong = Violation("no_op", "", "nothing would change")
            return Replaced(None, violations=(wrong,))
        old = self.text.data
        pieces = tuple(
            Piece(start, end, old[start:end], new) for (start, end), (_, _, new) in zip(spans, cuts, strict=True)
        )
        matches = [0] * count
        for number, _ in {(cut.number, cut.matched) for cut in self.cuts}:
            matches[number] += 1
        return Replaced(data, pieces, tuple(matches), tuple(self.repairs))


def _joined(text: str | tuple[str, ...]) -> str:
    return text if isinstance(text, str) else "\n".join(text)


def _name(change: Change) -> str:
    return f"{change.where}: " if isinstance(change, Lines) and change.where else ""


def _used(rules: tuple[str, ...], old: str, text: Text, matched: tuple[int, int]) -> tuple[str, ...]:
    """The rules of a level that made a difference."""
    start, end = matched
    view = text.view
    while start and view[start - 1] in b" \t":
        start -= 1
    found = view[start:end].decode("utf-8", "replace")
    used = tuple(
        rule
        for rule in rules
        if loosen(old, (rule,), in_file=False).text != old
        or (rule != "line_numbers" and loosen(found, (rule,), in_file=True).text != found)
    )
    return used or rules[-1:]


def _anchored(work: _Work, change: Lines) -> list[tuple[int, int]] | None:
    """The parts of the view in which a chunk is looked for: below its @@ lines. None is everywhere."""
    if not change.after:
        return None
    view = work.text.view
    ranges = [(0, len(view))]
    for anchor in change.after:
        found = [part for first, last in ranges for part in _below(work, anchor, first, last)]
        if not found:
            hint = work._like(anchor)
            work.refuse(
                "context_not_found", change.at, f"{_name(change)}the line after @@ is not in the file", hint=hint
            )
            return []
        ranges = list(dict.fromkeys(found))
        if len(ranges) > MOST_ANCHORS:
            found_at = f"more than {MOST_ANCHORS} times"
            work.refuse("not_unique", change.at, f"{_name(change)}the line after @@ stands {found_at}")
            return []
    return ranges


def _below(work: _Work, anchor: str, first: int, last: int) -> list[tuple[int, int]]:
    """For each line that is the anchor, the block under it, by indentation, and to the end where that is not one."""
    starts, view = work.starts, work.text.view
    exact = occurrences(view[:last], [anchor.strip().encode()], MOST_ANCHORS)[0]
    if len(exact) < MOST_ANCHORS:
        numbers = list(dict.fromkeys(line_at(starts, at) for at in exact if at >= first))
        found = _blocks_under(starts, view, [n for n in numbers if _line(starts, view, n).strip() == anchor.strip()])
        if found or not work.loose:
            return found
    numbers = [n for n in work.bare_lines.get(_bare(anchor), ()) if first <= starts[n] < last]
    return _blocks_under(starts, view, numbers)


def _line(starts: list[int], view: bytes, number: int) -> str:
    end = starts[number + 1] if number + 1 < len(starts) else len(view)
    return view[starts[number] : end].decode("utf-8", "replace")


def _blocks_under(starts: list[int], view: bytes, numbers: list[int]) -> list[tuple[int, int]]:
    blocks = []
    for number in numbers:
        line = _line(starts, view, number)
        end = starts[number + 1] if number + 1 < len(starts) else len(view)
        blocks.append((end, _block_end(starts, view, number, len(line) - len(line.lstrip()))))
    return blocks


def _bare(line: str) -> str:
    return re.sub(r"\s+", " ", loosen(line.strip(), ("unicode_lookalikes",), in_file=True).text).strip()


def _block_end(starts: list[int], view: bytes, number: int, indent: int) -> int:
    for later in range(number + 1, len(starts)):
        end = starts[later + 1] if later + 1 < len(starts) else len(view)
        line = view[starts[later] : end]
        if line.strip() and len(line) - len(line.lstrip()) <= indent and line.strip()[:1] not in b"})]":
            return starts[later]
    return len(view)
