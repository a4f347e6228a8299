"""A call while it is being written: its name and its arguments as soon as they stand."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onspec.dialects.envelope import unquote
from onspec.dialects.form import Form
from onspec.grammar.place import Place


@dataclass(frozen=True, slots=True)
class CallBegun:
    """A call's name stands.

    Attributes:
        index: Which call of the reply, from 0.
        id: Its id.
        name: The tool.
    """

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ArgumentsPiece:
    """More of a call's arguments, as JSON text.

    Attributes:
        index: Which call.
        text: What comes next.
    """

    index: int
    text: str


Live = CallBegun | ArgumentsPiece


class LiveCall:
    """Follows one call of a dialect whose body is JSON, in a text that the grammar holds.

    Args:
        form: The dialect's form; `follows` says whether it can be followed.
        names: The tools that may be called.
        index: Which call of the reply this is.
        ident: Its id.

    Attributes:
        index: Which call of the reply this is.
        begun: Whether the name was reported.
        done: Whether the arguments are complete.
    """

    def __init__(self, form: Form, names: Sequence[str], index: int, ident: str) -> None:
        self._form = form
        self._names = names
        self.index = index
        self._ident = ident
        self._head = b""
        self._word = b""
        self._place: Place | None = Place() if form.style == "envelope" else None
        self._depth = 0 if form.style != "envelope" else 2 if form.listed else 1
        self._name = ""
        self._early: list[str] = []
        self._inside = form.style != "envelope"
        self._argued = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.begun = self.done = False

    @staticmethod
    def follows(form: Form) -> bool:
        """Whether the calls of a form can be followed: their arguments stand in them as JSON."""
        return form.style in ("envelope", "json", "harmony") and not form.others

    def feed(self, text: bytes) -> Iterator[Live]:
        """Take more of the call."""
        for at in range(len(text)):
            if not self.done:
                yield from self._byte(text[at : at + 1])

    def _byte(self, byte: bytes) -> Iterator[Live]:
        place = self._place
        if place is None:
            yield from self._headed(byte)
            return
        place.feed(byte)
        depth = len(place.stack)
        if self._inside:
            if depth > self._depth or (depth == self._depth and byte == b"}" and place.tail == 0x7D):
                yield from self._piece(byte)
            if depth == self._depth and byte == b"}" and place.tail == 0x7D:
                self._inside, self._argued = False, True
        elif self._form.style == "envelope" and depth == self._depth:
            yield from self._member(place, byte)
        self.done = self._argued and self.begun

    def _headed(self, byte: bytes) -> Iterator[Live]:
        """The header of a call, up to what ends it."""
        self._head += byte
        after = self._form.call.partition("{name}")[2].rpartition("}")[2]
        mark = "<|message|>" if self._form.style == "harmony" else after
        if self._head.endswith(mark.encode()):
            text = self._head.decode("utf-8", "replace")
            found = [name for name in self._names if name in text]
            if found:
                self._place = Place()
                yield from self._named(max(found, key=len))

    def _member(self, place: Place, byte: bytes) -> Iterator[Live]:
        """A byte between the braces of an envelope."""
        top = place.stack[-1]
        if top.keys is None or (place.in_key and place.word is not None):
            return
        if byte == b":" and top.key == f'"{self._form.keys[1]}"':
            self._inside = True
        elif top.key == f'"{self._form.keys[0]}"' and not self._name:
            if place.word is not None:
                self._word = bytes(place.word)
            elif self._word and byte == b'"':
                yield from self._named(unquote((self._word + b'"').decode("utf-8", "replace")))

    def _named(self, name: str) -> Iterator[Live]:
        self._name, self.begun = name, True
        yield CallBegun(self.index, self._ident, name)
        if self._early:
            yield ArgumentsPiece(self.index, "".join(self._early))
            self._early = []

    def _piece(self, byte: bytes) -> Iterator[Live]:
        text = self._decoder.decode(byte)
        if text and self._name:
            yield ArgumentsPiece(self.index, text)
        elif text:
            self._early.append(text)
