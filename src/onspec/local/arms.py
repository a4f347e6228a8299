"""The same history in several forms: thinking kept or stripped, failures kept or taken out, and the call to measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from onspec.errors import InputError
from onspec.grammar.forms import form_of
from onspec.local.prompt import DIALECT, call_text
from onspec.message import Call, Message, Part, Result, Text, Thinking


@dataclass(frozen=True, slots=True)
class Cut:
    """A history that ends where a call begins.

    Attributes:
        messages: Up to the trigger of the call, with it.
        call: What follows the trigger.
    """

    messages: tuple[Message, ...]
    call: str


def cut_at(messages: Sequence[Message], number: int = -1, dialect: str = DIALECT) -> Cut:
    """Cut a history at one of its calls.

    Args:
        messages: The whole history.
        number: Which call, counted from 0; negative numbers count from the last.
        dialect: How the call is written; one whose calls are JSON objects behind a trigger.

    Raises:
        InputError: There is no such call.
    """
    places = [
        (index, place)
        for index, message in enumerate(messages)
        if message.role == "assistant"
        for place, part in enumerate(message.parts)
        if isinstance(part, Call)
    ]
    if not places:
        raise InputError("the history holds no call; there is nothing to measure along")
    try:
        index, place = places[number]
    except IndexError:
        raise InputError(f"the history holds {len(places)} calls; there is no number {number}") from None
    message = messages[index]
    call = message.parts[place]
    assert isinstance(call, Call)
    trigger = form_of(dialect).trigger
    last = replace(message, parts=(*message.parts[:place], Text(trigger)))
    return Cut((*messages[:index], last), call_text(call, dialect).removeprefix(trigger))


def as_is(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The history untouched."""
    return tuple(messages)


def without_thinking(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Without the assistant's thinking."""
    return tuple(_filtered(message, lambda part: not isinstance(part, Thinking)) for message in messages)


def without_failures(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Without calls that a tool answered with an error, and without those answers."""
    failed = {
        part.call_id for message in messages for part in message.parts if isinstance(part, Result) and part.is_error
    }
    out: list[Message] = []
    for index, message in enumerate(messages):
        following = messages[index + 1].parts if index + 1 < len(messages) else ()
        unnamed = any(isinstance(part, Result) and part.is_error and part.call_id is None for part in following)

        def keep(part: Part, unnamed: bool = unnamed) -> bool:
            if isinstance(part, Result):
                return not part.is_error
            if isinstance(part, Call):
                return not (part.id in failed if part.id is not None else unnamed)
            return True

        kept = _filtered(message, keep)
        if kept.parts:
            out.append(kept)
    return tuple(out)


def _filtered(message: Message, keep: Callable[[Part], bool]) -> Message:
    return replace(message, parts=tuple(part for part in message.parts if keep(part)))


ARMS: dict[str, Callable[[Sequence[Message]], tuple[Message, ...]]] = {
    "as it is": as_is,
    "without thinking": without_thinking,
    "without failed calls": without_failures,
}
"""Forms of a history, by name."""
