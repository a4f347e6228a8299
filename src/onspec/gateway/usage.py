"""What a reply cost in tokens, as the provider counts it, and what several cost together."""

from __future__ import annotations

from typing import Any

Tokens = dict[str, Any]
"""A usage object in a provider's own form: counts, and objects of counts."""


def together(one: Tokens, two: Tokens) -> Tokens:
    """Both, every count of them added; what is no count stays as it is in the first."""
    made = dict(one)
    for name, value in two.items():
        here = made.get(name)
        if isinstance(value, dict):
            made[name] = together(here if isinstance(here, dict) else {}, value)
        elif _counts(value):
            made[name] = (here if _counts(here) else 0) + value
    return made


def counts(usage: Tokens) -> dict[str, int]:
    """The counts at the top of a usage object."""
    return {name: value for name, value in usage.items() if _counts(value)}


def spent(usage: Tokens) -> int:
    """Output tokens, whichever API it is from."""
    found = counts(usage)
    return found.get("output_tokens", 0) + found.get("completion_tokens", 0)


def _counts(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
