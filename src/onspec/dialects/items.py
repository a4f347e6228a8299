"""What a reader gives out: pieces of text and thinking, drafts of calls, remarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onspec.dialects.draft import Draft, Note


@dataclass(frozen=True, slots=True)
class Found:
    """A draft with its place in bytes, and the markup it was read from."""

    draft: Draft
    span: tuple[int, int]
    notes: tuple[tuple[Note, tuple[int, int]], ...]
    raw: str


@dataclass(frozen=True, slots=True)
class Remark:
    """A leniency that belongs to no call."""

    note: Note
    span: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Shown:
    """A piece of visible text, and about where it begins, in bytes."""

    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Thought:
    """A piece of reasoning, and where it begins, in bytes."""

    text: str
    at: int


Item = Found | Remark | Shown | Thought
Opening = Literal["closed", "open", "unknown"]


def size(text: str) -> int:
    """Length in bytes of UTF-8; a byte that was no UTF-8 counts as the one byte it was."""
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        escaped = sum(1 for char in text if "\udc80" <= char <= "\udcff")
        return len(text.encode("utf-8", "surrogatepass")) - 2 * escaped
