"""The foreign APIs that the gateway reads, each for the wire of the same name that a provider speaks."""

from __future__ import annotations

from onspec.gateway import anthropic, chat, responses
from onspec.gateway.wire import Api
from onspec.providers import spoken_at

_ALL: tuple[Api, ...] = (anthropic, chat, responses)
APIS = {one.name: one for one in _ALL}
"""By name."""


def api_of(method: str, path: str) -> Api | None:
    """The API that a request to this path speaks; None for a request that is passed on unread."""
    provider = spoken_at(method, path)
    return APIS[provider.name] if provider is not None else None
