"""The passage of a file that is most like a text that was not found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from rapidfuzz import fuzz, process

MOST_CLUES = 4
"""Lines of the wanted text by which candidates are found: the longest ones."""

CANDIDATES = 6
"""Lines of the file that are taken as candidates for each clue."""

LEAST = 55.0
"""Likeness, in percent, below which a passage is not worth showing."""

LONG = 400
"""Characters beyond which a line of the file is cut into pieces, so that one line of a megabyte can be searched."""

BATCH = 20_000
"""Pieces of long lines that are compared at a time."""

MOST_OLD = 4_000
"""Characters of the wanted text that are compared."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a file.

    Attributes:
        first: Number, from 1, of its first line.
        last: Number of its last line.
        likeness: How like it is to what was wanted, in percent.
        text: Its text; a part of a line where the line is long.
    """

    first: int
    last: int
    likeness: float
    text: str


def nearest(text: str, old: str) -> Passage | None:
    """The passage most like `old`, or None where nothing is alike. Time grows linearly with the text."""
    lines = text.split("\n")
    wanted = old[:MOST_OLD].strip("\n").split("\n")
    if not text or not any(line.strip() for line in wanted):
        return None
    if any(len(line) > LONG for line in lines):
        return _in_pieces(lines, wanted)
    clues = sorted((n for n, line in enumerate(wanted) if line.strip()), key=lambda n: -len(wanted[n]))[:MOST_CLUES]
    starts: set[int] = set()
    for clue in clues:
        hits = process.extract(wanted[clue], lines, scorer=fuzz.ratio, limit=CANDIDATES, score_cutoff=40)
        starts |= {max(0, min(number - clue, len(lines) - 1)) for _, _, number in hits}
    goal = "\n".join(wanted)
    best: Passage | None = None
    for start in starts:
        for first in (start, max(0, start - 1), start + 1):
            part = "\n".join(lines[first : first + len(wanted)])
            likeness = fuzz.ratio(goal, part)
            if part.strip() and (best is None or likeness > best.likeness):
                best = Passage(first + 1, min(len(lines), first + len(wanted)), likeness, part)
    return best if best and best.likeness >= LEAST else None


def _in_pieces(lines: list[str], wanted: list[str]) -> Passage | None:
    goal = "\n".join(wanted)[:LONG]
    size = max(32, len(goal))
    step = max(8, size // 3)
    best: tuple[float, int, int] | None = None
    for places in _batches(lines, size, step):
        pieces = [lines[number][start : start + size] for number, start in places]
        hit = process.extractOne(goal, pieces, scorer=fuzz.ratio, score_cutoff=LEAST - 15)
        if hit is not None and (best is None or hit[1] > best[0]):
            best = (hit[1], *places[hit[2]])
    if best is None:
        return None
    _, number, start = best
    line = lines[number]
    ranges = [max(0, start + shift) for shift in range(-step, step + 1, max(1, step // 12))]
    part = max((line[first : first + size] for first in ranges), key=lambda piece: fuzz.ratio(goal, piece))
    likeness = fuzz.ratio(goal, part)
    return Passage(number + 1, number + 1, likeness, part) if likeness >= LEAST else None


def _batches(lines: list[str], size: int, step: int) -> Iterator[list[tuple[int, int]]]:
    """Where the pieces of long lines begin: line and character, some at a time."""
    batch: list[tuple[int, int]] = []
    for number, line in enumerate(lines):
        for start in range(0, max(1, len(line) - size + step), step):
            batch.append((number, start))
            if len(batch) == BATCH:
                yield batch
                batch = []
    yield batch


def difference(old: str, passage: Passage, most: int = 12, width: int = 160) -> list[str]:
    """Lines that say how the passage differs: `-` as the model wrote, `+` as the file has it, numbered."""
    yours, theirs = old.strip("\n").split("\n"), passage.text.split("\n")
    if len(yours) == len(theirs) == 1:
        return _one_line(yours[0], theirs[0], passage.first, width)
    out: list[str] = []
    matcher = SequenceMatcher(None, yours[:200], theirs[:200], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            continue
        out += [f"  yours    {_shown(line, width)}" for line in yours[a:b]]
        out += [f"  line {passage.first + c + n:<4}{_shown(line, width)}" for n, line in enumerate(theirs[c:d])]
    return out[:most] + (["  ..."] if len(out) > most else [])


def _one_line(old: str, new: str, number: int, width: int) -> list[str]:
    return [f"  yours    {_shown(old, width)}", f"  line {number:<4}{_shown(new, width)}"]


def _shown(line: str, width: int) -> str:
    """A line with its invisible parts made visible, cut to a width."""
    body = line.rstrip(" \t\r")
    tail = line[len(body) :].replace(" ", "·").replace("\t", "⇥").replace("\r", "␍")
    indent = body[: len(body) - len(body.lstrip("\t "))].replace("\t", "⇥")
    shown = "".join(
        char if char.isprintable() else f"\\u{ord(char):04x}" for char in indent + body[len(indent) :] + tail
    )
    return shown if len(shown) <= width else shown[: width - 3] + "..."
