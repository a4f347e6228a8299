"""A set of 64-bit numbers that takes sixteen bytes for each."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator

CAPACITY = 8_000_000
"""Numbers that are remembered; more are not, so that memory stays bounded, and copies among them count again."""


class Identities(Collection[int]):
    """Open addressing in one array; the numbers are hashes already, so their low bits spread by themselves."""

    __slots__ = ("_mask", "_size", "_slots")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._mask = 1023
        self._slots = array("Q", bytes(8 * 1024))
        self._size = 0
        for number in numbers:
            self.add(number)

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        wanted = number or 1
        slots, mask = self._slots, self._mask
        at = wanted & mask
        while True:
            found = slots[at]
            if found == wanted:
                return True
            if not found:
                return False
            at = (at + 1) & mask

    def __iter__(self) -> Iterator[int]:
        return (number for number in self._slots if number)

    def __len__(self) -> int:
        return self._size

    def add(self, number: int) -> bool:
        """Adds a number; whether it was new."""
        wanted = number or 1
        slots, mask = self._slots, self._mask
        at = wanted & mask
        while slots[at]:
            if slots[at] == wanted:
                return False
            at = (at + 1) & mask
        if self._size >= CAPACITY:
            return True
        slots[at] = wanted
        self._size += 1
        if self._size * 2 > mask:
            self._grow()
        return True

    def _grow(self) -> None:
        old = self._slots
        self._mask = self._mask * 2 + 1
        self._slots = array("Q", bytes(8 * (self._mask + 1)))
        self._size = 0
        for number in old:
            if number:
                self.add(number)
