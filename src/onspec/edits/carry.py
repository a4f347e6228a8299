"""From a loose match and the new text to the smallest cuts: what old and new text share stays as the file has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from onspec.edits.locate import Alignment, plain_newlines
from onspec.edits.mapped import ESCAPED_LETTER, Mapped, loosen

MOST_LINES = 200
"""Lines of old or new text up to which they are compared line by line; beyond, only the ends they share are kept."""

Cut = tuple[int, int, str]
"""Start and end in the decoded file, and the new text."""

Region = tuple[int, int, str]
"""Start and end in the old text, and what the new text has there."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the new text cannot be carried over: a violation's code and message."""

    code: str
    message: str


def carry(decoded: str, alignment: Alignment, old: str, new: str) -> list[Cut] | Refusal:
    """The cuts that turn the matched part of a file into the new text.

    Args:
        decoded: The file.
        alignment: How the match lies on it.
        old: What the model wrote as old text.
        new: What it wrote as new text.

    Returns:
        Cuts, sorted and apart, or why there are none: the new text has escapes, entities or line numbers of its own
        where the old text's had to be left out, or its indentation cannot be shifted as the old text's was.
    """
    old, new = plain_newlines(old), plain_newlines(new)
    if "indentation" in alignment.rules:
        return _carry_lines(decoded, alignment, old, new)
    units = _units(alignment.old, len(old))
    cuts = []
    for region in _regions(old, new):
        cut = _cut(alignment, units, region, old)
        if "escapes" in alignment.rules and ESCAPED_LETTER.search(old) and ESCAPED_LETTER.search(cut[2]):
            return _ARTEFACT["escapes"]
        cuts.append(cut)
    start, end = alignment.file.start(alignment.place), alignment.file.end(alignment.place + len(alignment.old.text))
    assert start is not None
    assert end is not None
    result = _apply(decoded, start, end, cuts)
    if loosen(result, alignment.rules, in_file=True).text != loosen(new, alignment.rules, in_file=False).text:
        return next((refusal for rule, refusal in _ARTEFACT.items() if rule in alignment.rules), _UNCLEAR)
    return cuts


_UNCLEAR = Refusal(
    "loose_match_unclear", "the old text matches only loosely, and the new text cannot be laid on the file"
)
_ARTEFACT = {
    "escapes": Refusal(
        "escaped_text",
        "the old text matches only if its written escapes (such as \\n) are decoded; the new text has escapes too, and "
        "they are never decoded. Send both with real characters",
    ),
    "html_entities": Refusal(
        "escaped_text",
        "the old text matches only if its HTML entities (such as &lt;) are decoded; the new text has entities too, and "
        "they are never decoded. Send both with real characters",
    ),
    "line_numbers": Refusal(
        "numbered_text",
        "the old text matches only without its line numbers, and the new text has line numbers too. Send both without",
    ),
}


def _apply(decoded: str, start: int, end: int, cuts: list[Cut]) -> str:
    pieces, at = [], start
    for first, last, new in cuts:
        pieces += [decoded[at:first], new]
        at = last
    return "".join([*pieces, decoded[at:end]])


def _lines(text: str) -> list[str]:
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _blocks(old: list[str], new: list[str]) -> list[tuple[int, int, int, int]]:
    """Runs of lines that differ: from, to in old; from, to in new."""
    if old == new:
        return []
    if max(len(old), len(new)) <= MOST_LINES:
        codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        return [(a, b, c, d) for tag, a, b, c, d in codes if tag != "equal"]
    first = _shared(old, new)
    last = _shared(old[first:][::-1], new[first:][::-1])
    return [(first, len(old) - last, first, len(new) - last)]


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _regions(old: str, new: str) -> list[Region]:
    """The parts in which new differs from old, in old's offsets."""
    old_lines, new_lines = _lines(old), _lines(new)
    starts = [0]
    for line in old_lines:
        starts.append(starts[-1] + len(line))
    regions = []
    for a, b, c, d in _blocks(old_lines, new_lines):
        before, after = "".join(old_lines[a:b]), "".join(new_lines[c:d])
        front = _shared(before, after)
        back = _shared(before[front:][::-1], after[front:][::-1])
        regions.append((starts[a] + front, starts[b] - back, after[front : len(after) - back]))
    return regions


@dataclass(frozen=True, slots=True)
class _Unit:
    """A part of the old text that stands or falls together: from, to under the rules; from, to as written."""

    loose_start: int
    loose_end: int
    start: int
    end: int


def _units(old: Mapped, length: int) -> list[_Unit]:
    units, at, place = [], 0, 0
    while place < len(old.text):
        start = old.start(place)
        assert start is not None
        if start > at:
            units.append(_Unit(place, place, at, start))
        stop = place + 1
        end = old.end(stop)
        while end is None:
            stop += 1
            end = old.end(stop)
        units.append(_Unit(place, stop, start, end))
        at, place = end, stop
    if at < length:
        units.append(_Unit(place, place, at, length))
    return units


def _cut(alignment: Alignment, units: list[_Unit], region: Region, old: str) -> Cut:
    start, end, new = region
    first = next((n for n, unit in enumerate(units) if unit.end > start), len(units))
    last = next((n for n, unit in enumerate(units) if unit.start >= end), len(units))
    if start == end and first < len(units) and units[first].start == start:
        last = first
    last = max(last, first)
    file, place = alignment.file, alignment.place
    while True:
        front = units[first].start if first < len(units) and first < last else start
        back = units[last - 1].end if first < last else end
        text = old[min(front, start) : start] + new + old[end : max(back, end)]
        loose_start = units[first].loose_start if first < len(units) else len(alignment.old.text)
        loose_end = units[last - 1].loose_end if last > first else loose_start
        if loose_start == loose_end:
            at = file.end(place + loose_start) if loose_start else file.start(place)
            if at is not None:
                return at, at, text
            first, last = first - 1, min(last + 1, len(units))
            continue
        file_start, file_end = file.start(place + loose_start), file.end(place + loose_end)
        if file_start is not None and file_end is not None:
            return file_start, file_end, text
        first = first - 1 if file_start is None else first
        last = last + 1 if file_end is None else last


def _carry_lines(decoded: str, alignment: Alignment, old: str, new: str) -> list[Cut] | Refusal:
    start, end = alignment.file.start(alignment.place), alignment.file.end(alignment.place + len(alignment.old.text))
    assert start is not None
    assert end is not None
    start = decoded.rfind("\n", 0, start) + 1 if "\n" in decoded else decoded.rfind("\r", 0, start) + 1
    old_lines, new_lines = _lines(old), _lines(new)
    newline = "\n" if "\n" in decoded else "\r"
    file_lines = [line.replace("\n", newline) for line in _lines(decoded[start:end].replace(newline, "\n"))]
    if len(file_lines) != len(old_lines):
        return _UNCLEAR
    pairs = [(_indent(o), _indent(f)) for o, f in zip(old_lines, file_lines, strict=True) if o.strip()]
    blocks = _blocks(old_lines, new_lines)
    results = []
    for shift in _shifts(pairs):
        shifted = [[shift(line) for line in new_lines[c:d]] for _, _, c, d in blocks]
        if all(line is not None for block in shifted for line in block):
            text = [["" if line is None else line for line in block] for block in shifted]
            if text not in results:
                results.append(text)
    if len(results) != 1:
        return Refusal(
            "indentation_differs",
            "the old text matches only with other indentation, and the new text's cannot be shifted in the same way",
        )
    starts = [start]
    for line in file_lines:
        starts.append(starts[-1] + len(line))
    return [(starts[a], starts[b], "".join(text)) for (a, b, _, _), text in zip(blocks, results[0], strict=True)]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


Shift = Callable[[str], str | None]
"""From a line of the new text to the line as the file would have it, or None where it has no such line."""


def _shifts(pairs: list[tuple[str, str]]) -> list[Shift]:
    """The shifts that turn every old indentation into the file's."""
    old, file = pairs[0]
    shifts: list[Shift] = []
    if file.endswith(old) and file != old:
        more = file[: len(file) - len(old)]
        if all(f == more + o for o, f in pairs):
            shifts.append(lambda line: more + line if line.strip() else line)
    if old.endswith(file) and file != old:
        less = old[: len(old) - len(file)]
        if all(o == less + f for o, f in pairs):
            shifts.append(lambda line: line.removeprefix(less) if line.startswith(less) or not line.strip() else None)
    shifts += _retabs(pairs)
    return shifts


def _retabs(pairs: list[tuple[str, str]]) -> list[Shift]:
    found: list[Shift] = []
    for from_, to in ((" ", "\t"), ("\t", " ")):
        if not all(set(o) <= {from_} and set(f) <= {to} for o, f in pairs):
            continue
        wide = [(len(o), len(f)) if from_ == " " else (len(f), len(o)) for o, f in pairs]
        sizes = {spaces / tabs if tabs else (None if not spaces else 0.0) for spaces, tabs in wide} - {None}
        if len(sizes) == 1 and (size := sizes.pop()) and size == int(size):
            found.append(_retab(from_, to, int(size)))
    return found


def _retab(from_: str, to: str, size: int) -> Shift:
    def shift(line: str) -> str | None:
        indent = _indent(line)
        if not line.strip():
            return line
        if set(indent) - {from_} or (from_ == " " and len(indent) % size):
            return None
        count = len(indent) // size if from_ == " " else len(indent) * size
        return to * count + line[len(indent) :]

    return shift
