"""The port of a provider: what it takes to speak one wire API from the provider's side.

Each wire API is a file beside this one. The client's side of the same APIs, reading and asking again, is
`onspec.gateway.wire.Api`; both call an API by the same `name`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from onspec.providers.script import Turn

Event = tuple[str | None, Any]
"""An event's name, or None where the API names none, and its data: decoded JSON, or text that goes out as it is."""

INPUT_TOKENS, OUTPUT_TOKENS = 100, 42
"""Tokens that a provider without a model says it has used."""


class Provider(Protocol):
    """One wire API as a provider writes it. A module is one: stateless, and never raising for what a turn says.

    Attributes:
        name: What the API is called everywhere in onspec: `anthropic`, `chat`, `responses`.
        path: Where requests are posted, from the root. Servers put their own parts before it (`/api/v1/messages`), so
            an API is told by how a path ends.
    """

    name: str
    path: str

    def events(self, turn: Turn, request: dict[str, Any], made: str) -> Iterator[Event]:
        """A turn as streamed events, from the first to the last.

        Args:
            turn: What is said. Argument text goes out as it is, broken or not, in pieces of the block's size.
            request: The decoded request, for what is echoed from it (the model, whether usage is wanted).
            made: Makes the ids of this reply unique.
        """

    def whole(self, turn: Turn, request: dict[str, Any], made: str) -> dict[str, Any]:
        """The same turn as one body, for requests that do not stream.

        An API whose bodies carry decoded arguments (Anthropic) cannot carry text that is no JSON; it says
        `{"unparsed": text}` instead.
        """
