"""Where many byte strings stand in a large one, in one pass."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress

FEW = 12
"""Needles for which looking for each in turn is faster than one pass over blocks."""

GRIDS: tuple[tuple[int, int], ...] = ((32, 128), (32, 64), (32, 32), (24, 16), (16, 16), (8, 8), (8, 4), (8, 2))
"""Bytes of a block, and distance between blocks, that are looked up. A needle that is at least as long as both together
less one covers a whole block wherever it stands."""

ROW = 128
"""Blocks that are looked up at a time."""

BUILD = 8
"""Weight of the time to take a needle apart against the time to pass over the haystack."""

SAMPLE, SHARE = 2048, 32
"""Bytes of a part of the haystack that is looked at to learn which blocks are common; one part in `SHARE` is."""

ROUNDS, FARTHEST = 4, 128
"""Times that windows are chosen anew, and bytes of a needle in which its window may begin."""


def occurrences(hay: bytes, needles: Sequence[bytes], most: int) -> list[list[int]]:
    """Offsets, ascending, of every needle; overlapping ones count, and no more than `most` are listed for each.

    Many needles of 9 bytes and more cost a few passes over `hay` together. The others, and those all of whose parts
    stand in `hay` again and again, cost a pass each.
    """
    left = list(dict.fromkeys(needles))
    found: dict[bytes, list[int]] = {}
    sample = b"".join(hay[at : at + SAMPLE] for at in range(0, len(hay), SAMPLE * SHARE)) if len(left) > FEW else b""
    for gram, stride in GRIDS:
        fit = [needle for needle in left if len(needle) >= gram + stride - 1]
        finer = sum(len(needle) >= gram + stride // 2 - 1 for needle in left)
        if len(fit) <= FEW or len(fit) * stride * stride * BUILD > len(hay) or finer > 2 * len(fit):
            continue
        last = min(map(len, fit)) < gram + stride or (gram, stride) == GRIDS[-1]
        budget = len(hay) // 32 + (len(fit) * len(hay) // 2000 if last else 0)
        found |= _by_blocks(hay, fit, gram, stride, sample, most, budget)
        left = [needle for needle in left if needle not in found]
    for needle in left:
        found[needle] = list(_each(hay, needle, most))
    return [found[needle] for needle in needles]


def _each(hay: bytes, needle: bytes, most: int) -> Iterator[int]:
    at = hay.find(needle)
    while at >= 0 and most > 0:
        yield at
        most -= 1
        at = hay.find(needle, at + 1)


def _by_blocks(
    hay: bytes, needles: list[bytes], gram: int, stride: int, sample: bytes, most: int, budget: int
) -> dict[bytes, list[int]]:
    """The needles found, or nothing where so many blocks hit that the next grid, or a search for each, is better.

    Blocks of the haystack are looked up among all blocks of one window of each needle.
    """
    windows = _windows(needles, gram, stride, sample)
    blocks: dict[bytes, list[tuple[int, bytes]]] = {}
    for needle, first in zip(needles, windows, strict=True):
        for offset in range(first, first + stride):
            blocks.setdefault(needle[offset : offset + gram], []).append((offset, needle))
    found: dict[bytes, list[int]] = {needle: [] for needle in needles}
    for at, block in _hits(hay, set(blocks), gram, stride):
        for offset, needle in blocks[block]:
            budget -= 1
            if at >= offset and hay.startswith(needle, at - offset):
                found[needle].append(at - offset)
        if budget < 0:
            return {}
    return {needle: sorted(set(starts))[:most] for needle, starts in found.items()}


def _windows(needles: list[bytes], gram: int, stride: int, sample: bytes) -> list[int]:
    """For each needle where its window begins: one whose blocks are rare, as far as a few rounds on the sample tell."""
    windows = [0] * len(needles)
    common: set[bytes] = set()
    for _ in range(ROUNDS):
        wanted: set[bytes] = set()
        for number, needle in enumerate(needles):
            if common:
                windows[number] = _window(needle, gram, stride, common, windows[number])
            first = windows[number]
            wanted.update([needle[at : at + gram] for at in range(first, first + stride)])
        counts = Counter(block for _, block in _hits(sample, wanted, gram, stride))
        often = {block for block, count in counts.items() if count > 1}
        common |= often
        if len(often) * 100 < len(wanted):
            break
    return windows


def _hits(hay: bytes, wanted: set[bytes], gram: int, stride: int) -> Iterator[tuple[int, bytes]]:
    step = max(gram, stride)
    row = struct.Struct((f"{gram}s" if step == gram else f"{gram}s{step - gram}x") * ROW)
    disjoint, contains, unpack, places = wanted.isdisjoint, wanted.__contains__, row.unpack_from, range(ROW)
    for phase in range(0, step, stride):
        rows = max(0, (len(hay) - phase) // row.size)
        for at in range(phase, phase + rows * row.size, row.size):
            blocks = unpack(hay, at)
            if not disjoint(blocks):
                for place in compress(places, map(contains, blocks)):
                    yield at + place * step, blocks[place]
        for at in range(phase + rows * row.size, len(hay) - gram + 1, step):
            block = hay[at : at + gram]
            if block in wanted:
                yield at, block


def _window(needle: bytes, gram: int, stride: int, common: set[bytes], now: int) -> int:
    """Start of a run of `stride` blocks of the needle with few common ones."""
    best, fewest = now, stride + 1
    last = min(len(needle) - gram - stride + 1, FARTHEST)
    for start in (now, *range(0, last + 1, 2 if stride > 4 else 1)):
        count = len(common.intersection([needle[at : at + gram] for at in range(start, start + stride)]))
        if count < fewest:
            best, fewest = start, count
            if not count:
                break
    return best
