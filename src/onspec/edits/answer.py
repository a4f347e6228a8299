"""What is said after an edit: a unified diff and a numbered snippet, or what is wrong and where to look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from onspec.audit import Repair, Violation
from onspec.edits.plan import FileChange
from onspec.edits.text import Text, read
from onspec.edits.workspace import Done

CONTEXT = 3
"""Lines shown around a change."""

MOST_DIFF, MOST_SNIPPET, WIDTH = 60, 40, 240
"""Lines of diff and of snippet in an answer, and characters of a line."""


@dataclass(frozen=True, slots=True)
class Hunk:
    """A part of a diff: first line (from 1) before and after, and lines with their mark (space, - or +) in front."""

    before: int
    after: int
    lines: tuple[str, ...]

    @property
    def header(self) -> str:
        old = sum(line[0] in " -" for line in self.lines)
        new = sum(line[0] in " +" for line in self.lines)
        return f"@@ -{_range(self.before, old)} +{_range(self.after, new)} @@"


def _range(first: int, count: int) -> str:
    first = first if count else first - 1
    return str(first) if count == 1 else f"{first},{count}"


@dataclass(frozen=True, slots=True)
class _Span:
    """Lines that changed: from and to (exclusive, from 0) before and after."""

    old_first: int
    old_last: int
    new_first: int
    new_last: int


def diff(changes: Sequence[FileChange]) -> str:
    """The changes as one unified diff. A last line without an end is marked as `diff` marks it."""
    return "".join(line + "\n" for line in _diff_lines(changes))


def _diff_lines(changes: Sequence[FileChange]) -> Iterator[str]:
    for change in changes:
        old = "/dev/null" if change.before is None else f"a/{change.path}"
        new = "/dev/null" if change.after is None else f"b/{change.path}"
        if change.moved_to is not None:
            yield f"rename from {change.path}"
            yield f"rename to {change.moved_to}"
            continue
        yield f"--- {old}"
        yield f"+++ {new}"
        for hunk in hunks(change):
            yield hunk.header
            yield from hunk.lines


def hunks(change: FileChange) -> list[Hunk]:
    """The parts of a file's diff."""
    before, after = _lines(change.before, change.text), _lines(change.after, change.text)
    groups: list[list[_Span]] = []
    for span in _spans(change, before, after):
        if groups and span.old_first - groups[-1][-1].old_last <= 2 * CONTEXT:
            groups[-1].append(span)
        else:
            groups.append([span])
    return [_hunk(group, before, after) for group in groups]


def _hunk(group: list[_Span], before: list[str], after: list[str]) -> Hunk:
    first, last = group[0], group[-1]
    lead = min(CONTEXT, first.old_first)
    out = [" " + line for line in before[first.old_first - lead : first.old_first]]
    at = first.old_first
    for span in group:
        out += [" " + line for line in before[at : span.old_first]]
        out += ["-" + line for line in before[span.old_first : span.old_last]]
        out += ["+" + line for line in after[span.new_first : span.new_last]]
        at = span.old_last
    out += [" " + line for line in before[at : last.old_last + CONTEXT]]
    return Hunk(first.old_first - lead + 1, first.new_first - lead + 1, tuple(out))


NO_END = "\n\\ No newline at end of file"


def _lines(data: bytes | None, text: Text | None) -> list[str]:
    """Lines without their LF; the last is marked where it has none."""
    if data is None:
        return []
    found = read(data, text.encoding.name or None if text is not None else None)
    view = found.view if isinstance(found, Text) else data
    lines = view.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += NO_END
    return lines


def _spans(change: FileChange, before: list[str], after: list[str]) -> list[_Span]:
    """Runs of lines that changed, from the pieces where there are any."""
    if change.before is None or change.after is None:
        return [_Span(0, len(before), 0, len(after))] if before or after else []
    if not change.pieces or change.text is None or change.text.encoding.name not in ("utf-8", ""):
        return _compared(before, after, 0, 0)
    old, new = change.before, change.after
    spans: list[_Span] = []
    old_at = old_line = new_at = new_line = shift = 0
    for piece in change.pieces:
        old_line += old.count(b"\n", old_at, piece.start)
        start = piece.start + shift
        new_line += new.count(b"\n", new_at, start)
        old_at, new_at = piece.start, start
        shift += len(piece.new) - len(piece.old)
        span = _Span(
            old_line,
            old_line + _touched(old, piece.start, piece.end),
            new_line,
            new_line + _touched(new, start, start + len(piece.new)),
        )
        if spans and span.old_first < spans[-1].old_last:
            last = spans.pop()
            span = _Span(
                last.old_first, max(last.old_last, span.old_last), last.new_first, max(last.new_last, span.new_last)
            )
        spans.append(span)
    return [part for span in spans for part in _trimmed(span, before, after)]


def _touched(data: bytes, start: int, end: int) -> int:
    """How many lines a part of a file is in."""
    return data.count(b"\n", start, end) + 1


def _trimmed(span: _Span, before: list[str], after: list[str]) -> list[_Span]:
    old, new = before[span.old_first : span.old_last], after[span.new_first : span.new_last]
    return _compared(old, new, span.old_first, span.new_first)


def _compared(old: list[str], new: list[str], old_shift: int, new_shift: int) -> list[_Span]:
    front = 0
    while front < min(len(old), len(new)) and old[front] == new[front]:
        front += 1
    back = 0
    while back < min(len(old), len(new)) - front and old[-1 - back] == new[-1 - back]:
        back += 1
    old, new = old[front : len(old) - back], new[front : len(new) - back]
    old_shift, new_shift = old_shift + front, new_shift + front
    if not old and not new:
        return []
    if len(old) * len(new) > 250_000:
        return [_Span(old_shift, old_shift + len(old), new_shift, new_shift + len(new))]
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [
        _Span(old_shift + a, old_shift + b, new_shift + c, new_shift + d) for tag, a, b, c, d in codes if tag != "equal"
    ]


def snippet(change: FileChange, most: int = MOST_SNIPPET) -> str:
    """The changed lines of a file as they are now, numbered, with the lines around them."""
    if change.after is None:
        return ""
    after = _lines(change.after, change.text)
    rows: list[str] = []
    reached = 0
    for span in _spans(change, _lines(change.before, change.text), after):
        first = max(reached, span.new_first - CONTEXT)
        if len(rows) >= most:
            rows.append("   ...")
            break
        if reached and first > reached:
            rows.append("   ...")
        last = min(len(after), span.new_last + CONTEXT)
        rows += numbered(after, first, min(last, first + most - len(rows)))
        if last - first > most:
            rows.append("   ...")
        reached = max(reached, last)
    return "\n".join(rows)


def numbered(lines: Sequence[str], first: int, last: int) -> list[str]:
    """Lines from `first` (from 0) up to `last`, each with its number, a tab and its text."""
    return [f"{n + 1:>6}\t{_cut(lines[n].removesuffix(NO_END).removesuffix(chr(13)))}" for n in range(first, last)]


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[:WIDTH]}... ({len(line)} characters)"


def told(done: Done, dry_run: bool = False, mended: Sequence[Repair] = ()) -> str:
    """What a model is told after an edit.

    Args:
        done: What became of it.
        dry_run: Whether nothing was written.
        mended: What was mended in the call itself.
    """
    if not done.ok:
        return refusal(done.violations)
    head = ["Nothing was written; this is what would be done." if dry_run else "Done."]
    for change in done.changes:
        if change.moved_to is not None:
            head.append(f"moved {change.path} to {change.moved_to}")
        else:
            word = "deleted" if change.after is None else "created" if change.before is None else "edited"
            head.append(f"{word} {change.path}")
    for repair in mended:
        head.append(f"the call was mended: {repair.rule} {repair.path}".rstrip())
    for repair in done.repairs:
        head.append(f"matched loosely: {repair.rule} ({repair.path or 'call'})")
    head += done.notes
    rows = diff(done.changes).splitlines()
    if all(change.before is None for change in done.changes):
        rows = []  # the model has just written it
    shown = [_cut(row) for row in rows[:MOST_DIFF]]
    if len(rows) > MOST_DIFF:
        shown.append(f"... {len(rows) - MOST_DIFF} more lines of diff")
    parts = ["\n".join(head), "\n".join(shown)]
    room = MOST_SNIPPET
    for change in done.changes:
        if change.before is not None and change.after is not None and room > 0:
            text = snippet(change, room)
            room -= text.count("\n") + 1
            parts.append(f"{change.path} now:\n{text}")
    return "\n\n".join(part for part in parts if part)


def refusal(violations: Sequence[Violation]) -> str:
    """What a model is told when nothing was done: for each reason where, what, and what would do."""
    rows = ["Nothing was changed."]
    for violation in violations[:8]:
        where = f"{violation.path}: " if violation.path else ""
        row = f"{where}{violation.message}"
        if violation.found:
            row += f" ({violation.found})"
        if violation.expected:
            row += f"; expected {violation.expected}"
        rows.append(row)
        if violation.hint:
            rows.append(f"  {violation.hint}")
    if len(violations) > 8:
        rows.append(f"... and {len(violations) - 8} more")
    return "\n".join(rows)
