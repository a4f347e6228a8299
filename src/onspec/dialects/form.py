"""What a dialect writes, for a decoder: markers and their order, taken from the family's own templates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Style = Literal["json", "envelope", "keyed", "tags", "elements", "keywords", "bare", "harmony"]
Repeat = Literal["block", "call", "both", "one"]


@dataclass(frozen=True, slots=True)
class Form:
    """One way of writing calls. `{name}` in a text stands for the tool's name, `{index}` for a running number,
    `{call_id}` for an id with its marker, `{key}` for a parameter's name.

    Attributes:
        style: What the body of a call is. `json`: the arguments as one JSON object. `envelope`: a JSON object that
            holds name and arguments. `keyed`: a JSON object with the name as its only key. `tags`: one marked-up
            parameter each, strings raw. `elements`: the same, and values may hold elements in elements. `keywords`:
            Python keyword arguments. `bare`: Gemma's notation. `harmony`: JSON behind a header of channel and
            recipient.
        trigger: What a model writes to start a block of calls; "" where nothing is common to all calls.
        optional: Whether a block may stand without trigger and close, as the whole message.
        lead: White space between the trigger and the first call, as written.
        call: What stands before a call's body.
        end: What closes one call.
        close: What closes the block.
        between: What separates two calls of one block.
        repeat: Whether another call needs a new `block`, or follows inside the same one (`call`), or either (`both`),
            or there is only ever `one`.
        listed: Whether calls stand in a list in square brackets.
        keys: The envelope's keys of name and arguments.
        fixed: Further members that an envelope has, key and JSON Schema of the value.
        may: Further members that it may have.
        tag: What opens a parameter; `{string}` is `true` or `false`, `{type}` the value's JSON type.
        tag_end: What closes a parameter.
        mark: What stands on either side of a string in the `bare` style.
        framed: Whether one newline on each side of a raw value is framing that is stripped.
        cdata: Whether a raw value may stand in a CDATA section.
        loose: Whether white space may stand around bodies and between tags.
        free: Whether a custom tool's text stands as the body itself, in place of JSON.
        name: The dialect's name, "" while the form belongs to a family only.
        think: What opens and closes reasoning, or None.
        others: Further forms that models of the dialect write, with the same trigger.
    """

    style: Style
    trigger: str = ""
    optional: bool = False
    lead: str = ""
    call: str = ""
    end: str = ""
    close: str = ""
    between: str = ""
    repeat: Repeat = "call"
    listed: bool = False
    keys: tuple[str, str] = ("name", "arguments")
    fixed: tuple[tuple[str, str], ...] = ()
    may: tuple[tuple[str, str], ...] = ()
    tag: str = ""
    tag_end: str = ""
    mark: str = ""
    framed: bool = False
    cdata: bool = False
    loose: bool = True
    free: bool = False
    name: str = ""
    think: tuple[str, str] | None = None
    others: tuple[Form, ...] = ()

    @property
    def word(self) -> str:
        """The trigger of a gate: what switches a decoder on; "" where calls may stand without it."""
        return "" if self.optional or any(other.optional for other in self.others) else self.trigger
