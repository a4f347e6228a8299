"""What a dialect's reader finds in text: drafts of calls, before any contract is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Kind = Literal["schema", "string", "json"]
"""How a pair's text becomes a value: by the declared type, always as a string, always as JSON."""


@dataclass(frozen=True, slots=True)
class Note:
    """One leniency a reader took: a row of `rules.RULES`, its place (in characters of the text), what stood there."""

    rule: str
    start: int
    end: int
    before: str = ""
    after: str | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a draft cannot be a call: a row of `rules.FAULTS`, and a few words on what was found."""

    code: str
    found: str | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """One named argument of a dialect that writes arguments as tags."""

    key: str
    value: str
    kind: Kind = "schema"


@dataclass(slots=True)
class Draft:
    """A call as it stands in the text.

    Attributes:
        name: The tool's name as written; "" where none was.
        body: Arguments: a JSON text, or pairs that the schema types.
        start, end: Place of the whole call, in characters of the text read.
        notes: Leniencies this call took.
        fault: Why it must not run, or None.
        at_end: Whether it ran into the end of the text before its own closer.
        id: The call's id where the dialect writes one.
        freeform: Whether `body` is text that is not meant as JSON.
        last_value: Where the text of its last value begins, in a dialect that writes values raw; -1: none.
    """

    name: str
    body: str | list[Pair]
    start: int
    end: int
    notes: list[Note] = field(default_factory=list)
    fault: Fault | None = None
    at_end: bool = False
    id: str | None = None
    freeform: bool = False
    last_value: int = -1


@dataclass(slots=True)
class Block:
    """What one read consumed.

    Attributes:
        end: First character after what was read.
        drafts: Calls found.
        notes: Leniencies that belong to no single call.
        inside: State of an envelope that is still open; the next read starts with it.
        mode: `text` or `thinking` where the block is a header that says what the following text is.
        whole_text: Whether the decision needed the end of the text.
        quiet: Whether it is markup without a call in it, which is hidden and means nothing.
        bare: Whether the calls stood without any marker.
        raw: The reader, where it writes values without escaping, so that a closer in a value may have ended it early.
    """

    end: int
    drafts: list[Draft] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    inside: object | None = None
    mode: Literal["text", "thinking"] | None = None
    whole_text: bool = False
    quiet: bool = False
    bare: bool = False
    raw: RawValues | None = None


@dataclass(frozen=True, slots=True)
class More:
    """The text ends before the reader can decide.

    Attributes:
        wake: Called with each further piece of text; True means that another read may succeed. None: always.
    """

    wake: Callable[[str], bool] | None = None


class RawValues(Protocol):
    """A reader whose values are not escaped."""

    def unmatched(self, text: str, pos: int, alone: bool = False) -> int:
        """Where, at or after `pos`, closers stand that nothing opened; -1: nowhere."""
        ...

    def goes_on(self, text: str, pos: int) -> bool:
        """Whether text follows the end of a call at `pos` on the same line."""
        ...

    def opens_call(self, text: str, start: int, end: int) -> bool:
        """Whether a call opens between two places."""
        ...

    def is_end(self, first: str, second: str) -> bool:
        """Whether two tags are the closers of a value and of its call."""
        ...

    def read(self, text: str, pos: int, inside: object | None, context: Any, final: bool) -> Block | More | NotCall:
        """As `Family.read`."""
        ...


class NotCall:
    """The marker opens nothing: it is prose."""

    __slots__ = ()


NOT_CALL = NotCall()
Reading = Block | More | NotCall
