"""The words of a conversation: messages and the parts they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["system", "developer", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Text:
    """Text that a person or a model sees."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A model's reasoning, with the provider's opaque signature where there is one."""

    text: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call of an assistant.

    Attributes:
        name: The tool's name as the model wrote it.
        arguments: The arguments' text exactly as the model wrote it: JSON, or free text for a custom tool.
        id: The call's id, or None where the wire has none.
    """

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered to one call.

    Attributes:
        content: The answer as text.
        call_id: Id of the call it answers, or None.
        name: Name of the tool, for dialects that write it.
        is_error: Whether the tool reported a failure.
    """

    content: str
    call_id: str | None = None
    name: str | None = None
    is_error: bool = False


Part = Text | Thinking | Call | Result


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation: who spoke, and the parts in their order."""

    role: Role
    parts: tuple[Part, ...]
