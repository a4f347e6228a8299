"""Where many byte strings stand in a large one, in one pass."""

from __future__ import annotations

import struct
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

SAMPLE, SAMPLES = 512, 8
"""Bytes of a sample of the haystack, and number of samples, from which the common blocks are learnt."""


def occurrences(hay: bytes, needles: Sequence[bytes], most: int) -> list[list[int]]:
    """Offsets, ascending, of every needle; overlapping ones count, and no more than `most` are listed for each.

    Many needles of 9 bytes and more cost a few passes over `hay` together. The others, and those all of whose parts
    stand in `hay` again and again, cost a pass each.
    """
    left = list(dict.fromkeys(needles))
    found: dict[bytes, list[int]] = {}
    samples = _samples(hay) if len(left) > FEW else []
    for gram, stride in GRIDS:
        fit = [needle for needle in left if len(needle) >= gram + stride - 1]
        if (
            len(fit) <= FEW
            or len(fit) * stride * stride * BUILD > len(hay)
            or (stride > 16 and len(fit) * 2 < len(left))
        ):
            continue
        last = min(map(len, fit)) < gram + stride or (gram, stride) == GRIDS[-1]
        budget = len(hay) // 32 + (len(fit) * len(hay) // 2000 if last else 0)
        found |= _by_blocks(hay, fit, gram, stride, samples, most, budget)
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
    hay: bytes, needles: list[bytes], gram: int, stride: int, samples: list[bytes], most: int, budget: int
) -> dict[bytes, list[int]]:
    """The needles found, or nothing where so many blocks hit that the next grid, or a search for each, is better.

    Blocks of the haystack are looked up among all blocks of one window of each needle.
    """
    common = {part[at : at + gram] for part in samples for at in range(len(part) - gram + 1)}
    blocks: dict[bytes, list[tuple[int, bytes]]] = {}
    for needle in needles:
        first = max(0, _window(needle, gram, stride, common))
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


def _samples(hay: bytes) -> list[bytes]:
    """A few parts of the haystack: blocks that stand everywhere are likely in them."""
    size = min(SAMPLE, len(hay) // SAMPLES)
    return [hay[start : start + size] for start in range(0, len(hay) - size + 1, max(1, (len(hay) - size) // SAMPLES))]


def _window(needle: bytes, gram: int, stride: int, common: set[bytes]) -> int:
    """Start of a run of `stride` blocks of the needle without common ones, or -1."""
    for start in range(0, min(len(needle) - gram - stride + 1, 128) + 1, 2 if stride == gram else 4):
        if common.isdisjoint([needle[at : at + gram] for at in range(start, start + stride)]):
            return start
    return -1
