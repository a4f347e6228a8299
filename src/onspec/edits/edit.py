"""The one vocabulary of edits: every edit tool's call becomes these values, and lenses between tools speak them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Replace:
    """Put `new` where `old` stands.

    Attributes:
        old: Text to find in the file as it was before the call. Never empty.
        new: Text to put there.
        every: Replace every match; otherwise `old` must match exactly once.
        at: JSON Pointer to the change in the call.
    """

    old: str
    new: str
    every: bool = False
    at: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """Put whole lines where other whole lines stand: one chunk of a patch.

    Attributes:
        old: Lines to find, without their ends. Empty for a chunk that only adds.
        new: Lines to put there.
        after: Lines that come before the chunk, outermost first (`@@ class A:`).
        at_end: The chunk ends at the end of the file.
        at: JSON Pointer to the change in the call.
        where: How a message names the chunk ("chunk 2 of a.py"); "" where the pointer is enough.
    """

    old: tuple[str, ...]
    new: tuple[str, ...]
    after: tuple[str, ...] = ()
    at_end: bool = False
    at: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class Insert:
    """Put lines after a line.

    Attributes:
        line: Number of the line after which the text goes; 0 is the top of the file.
        text: The lines. A last line without an end gets one, unless it becomes the last of a file that has none.
        at: JSON Pointer to the change in the call.
    """

    line: int
    text: str
    at: str = ""


Change = Replace | Lines | Insert


@dataclass(frozen=True, slots=True)
class Modify:
    """Change a file that exists.

    Attributes:
        path: The file, relative to the root or absolute inside it.
        changes: Changes, all matched against the file as it is before the call; their order has no meaning.
        to: New path of the file, or None where it stays.
        at: JSON Pointer to the operation in the call.
        encoding: Encoding of the file where the caller knows it, by any name Python knows.
        expect: Version (`Content.version`) that the caller has seen; another version refuses.
    """

    path: str
    changes: tuple[Change, ...]
    to: str | None = None
    at: str = ""
    encoding: str | None = None
    expect: str | None = None


@dataclass(frozen=True, slots=True)
class Create:
    """Make a file that does not exist. Missing folders are made; an existing file refuses."""

    path: str
    text: str
    at: str = ""
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """Make a file, or replace the whole text of one; its encoding, byte order mark and line ends stay."""

    path: str
    text: str
    at: str = ""
    encoding: str | None = None
    expect: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a file that exists."""

    path: str
    at: str = ""
    expect: str | None = None


Operation = Modify | Create | Write | Delete


@dataclass(frozen=True, slots=True)
class View:
    """Read a file, or some of its lines.

    Attributes:
        path: The file or folder.
        first: First line to show, counted from 1.
        last: Last line to show, or None for as many as fit.
        limit: Most lines to show, or None for the caller's own limit.
        at: JSON Pointer to the request in the call.
    """

    path: str
    first: int = 1
    last: int | None = None
    limit: int | None = None
    at: str = ""


@dataclass(frozen=True, slots=True)
class Undo:
    """Take back the last edit of a file, or the last of all where `path` is None."""

    path: str | None = None
    at: str = ""


Request = tuple[Operation, ...] | View | Undo
"""What one call asks for: operations done all or none, a look, or an undo."""
