"""Text that may be leaked call markup, while it streams: what is certain to be text, and what waits for the end."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from onspec.gateway.contracts import Contracts
from onspec.gateway.verdict import Verdict
from onspec.gateway.wire import Finish, Key
from onspec.repair.policy import Policy

MARKER = re.compile(
    r"<(?:antml:)?(?:invoke|function_calls|tool_calls?|tool_use|function=|parameter)|<\||<｜|\[TOOL_CALLS\]"
)
"""Where call markup may begin."""
BEGUN = re.compile(r"(?:<[^\s<>]{0,24}|\[[A-Z_]{0,11})\Z")
"""The end of a text that may be the beginning of a marker."""
LOOK_BACK = 24
"""Characters before a piece in which a marker may have begun."""


@dataclass(frozen=True, slots=True)
class Leaked:
    """A call that stood in the text: its tool, its arguments as JSON, a fresh id, and the verdict on it."""

    name: str
    arguments: str
    made: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Recovered:
    """A text without its markup, and the calls that stood in it; none where a call was begun and cannot be used."""

    text: str
    calls: tuple[Leaked, ...]


Recover = Callable[[str, Contracts, Finish | None], Recovered | None]
"""Finds the calls in a text; None where nothing in it is meant as a call of these tools."""


RecoverUnder = Callable[[Policy], Recover]
"""Makes one that keeps to a policy."""


@dataclass(slots=True)
class Block:
    """One block of visible text: how much has come, how much is certain, how much has gone out.

    Attributes:
        suspect: Whether markup has begun in it, so that the rest waits.
        released: Whether all of it may go on, whatever it holds.
    """

    length: int = 0
    certain: int = 0
    sent: int = 0
    suspect: bool = False
    released: bool = False
    _pieces: list[str] = field(default_factory=list)
    _tail: str = ""

    @property
    def text(self) -> str:
        """Everything that has come."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def feed(self, piece: str) -> int:
        """Take the next piece; returns the length so far."""
        window = self._tail + piece
        start = self.length - len(self._tail)
        self._pieces.append(piece)
        self.length += len(piece)
        self._tail = window[-LOOK_BACK:]
        if self.released:
            self.certain = self.length
        elif not self.suspect:
            if MARKER.search(window):
                self.suspect = True
            else:
                begun = BEGUN.search(window)
                self.certain = start + begun.start() if begun is not None else self.length
        return self.length

    def release(self) -> None:
        """All of it may go on, what is still to come too."""
        self.released = True
        self.certain = self.length


@dataclass(slots=True)
class Leaks:
    """The blocks of visible text of one reply, and what was found in them at its end."""

    recover: Recover
    contracts: Contracts
    blocks: dict[Key, Block] = field(default_factory=dict)
    found: dict[Key, Recovered] = field(default_factory=dict)
    meant: bool = False
    """Whether a call was begun in the text and cannot be used."""
    released: bool = False
    """Whether no call is looked for any more."""

    def block(self, key: Key) -> Block:
        """The block of a key."""
        found = self.blocks.get(key)
        if found is None:
            found = self.blocks[key] = Block(released=self.released)
        return found

    def resolve(self, finish: Finish | None) -> tuple[Leaked, ...]:
        """The reply has ended: recover what leaked. Returns the calls."""
        for key, block in self.blocks.items():
            if block.suspect and block.certain < block.length:
                recovered = self.recover(block.text, self.contracts, finish)
                if recovered is not None and recovered.calls:
                    self.found[key] = recovered
                self.meant = self.meant or (recovered is not None and not recovered.calls)
        return tuple(call for recovered in self.found.values() for call in recovered.calls)

    def release(self, without: bool = False) -> None:
        """All text may go on; `without` leaves out what begins with markup, as its call came in another way."""
        for key, block in self.blocks.items():
            if without and block.suspect and block.certain < block.length:
                self.found[key] = Recovered(block.text[: block.certain], ())
            block.release()
        self.released = True

    def rest(self, key: Key) -> str | None:
        """What of a block is still to go out in place of its held pieces; None where they go out as they came."""
        recovered = self.found.get(key)
        if recovered is None:
            return None
        sent = self.blocks[key].text[: self.blocks[key].sent]
        return recovered.text[len(sent) :] if recovered.text.startswith(sent) else ""

    def whole(self, key: Key) -> str | None:
        """The block's whole text as the client reads it; None where nothing leaked."""
        rest = self.rest(key)
        return None if rest is None else self.blocks[key].text[: self.blocks[key].sent] + rest
