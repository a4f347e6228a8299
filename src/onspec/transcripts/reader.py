"""The formats, and which of them a file is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from onspec.errors import InputError
from onspec.transcripts import (
    atif,
    claude_code,
    cline,
    codex,
    copilot,
    gemini,
    inspect_log,
    nemo_gym,
    opencode,
    openhands,
    pi,
    plain,
    qwen,
    swe_agent,
    vendor_verifier,
)
from onspec.transcripts.session import Entry, Session
from onspec.transcripts.source import Source, require


@dataclass(frozen=True, slots=True)
class Format:
    """One format of session files.

    Attributes:
        name: Its name, as reports print it.
        sniff: Whether a file that begins with these bytes (up to 64 KiB) is in it.
        entries: A stream of a file's entries. It raises nothing for what the file holds.
    """

    name: str
    sniff: Callable[[bytes], bool]
    entries: Callable[[Source], Iterator[Entry]]


FORMATS: tuple[Format, ...] = tuple(
    Format(module.NAME, module.sniff, module.entries)
    for module in (
        pi,
        nemo_gym,
        vendor_verifier,
        codex,
        qwen,
        gemini,
        claude_code,
        opencode,
        copilot,
        atif,
        inspect_log,
        cline,
        openhands,
        swe_agent,
        plain,
    )
)
"""All formats; the first whose `sniff` says yes is taken, so that the least particular one stands last."""


def detect(source: Source) -> Format | None:
    """The format of a file, by its content, or None where it is no session file.

    Raises:
        OSError: The file cannot be opened.
    """
    head = source.head()
    return next((one for one in FORMATS if one.sniff(head)), None) if head.strip() else None


def load(path: str) -> Session:
    """A whole file in memory as one session, however many conversations it holds.

    Raises:
        InputError: There is no such file, or it is in none of the formats.
        OSError: It cannot be opened.
    """
    source, found = _known(path)
    return Session.gather(found.name, found.entries(source))


def load_all(path: str) -> list[Session]:
    """The conversations of a file, each as a session of its own with its own tools; errors as in `load`."""
    source, found = _known(path)
    return Session.split(found.name, found.entries(source))


def _known(path: str) -> tuple[Source, Format]:
    source = require(path)
    found = detect(source)
    if found is None:
        raise InputError(f"{path} is in none of the known session formats: {', '.join(one.name for one in FORMATS)}")
    return source, found
