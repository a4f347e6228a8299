"""Providers: one file a wire API, and a scripted one that says exactly what it is told."""

from __future__ import annotations

from onspec.providers import anthropic, chat, responses
from onspec.providers.provider import Provider

_ALL: tuple[Provider, ...] = (anthropic, chat, responses)
PROVIDERS = {one.name: one for one in _ALL}
"""Every wire API, by name."""

_ENDS = {one.path.removeprefix("/v1"): one for one in PROVIDERS.values()}


def spoken_at(method: str, path: str) -> Provider | None:
    """The wire API that a request to this path speaks; None for any other request."""
    if method != "POST":
        return None
    path = path.rstrip("/")
    return next((one for end, one in _ENDS.items() if path.endswith(end)), None)
