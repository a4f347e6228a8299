"""Which rules of the table may be applied."""

from __future__ import annotations


class Policy:
    """placeholder until the table stands"""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def strict(cls) -> Policy:
        return cls("strict")

    @classmethod
    def safe(cls) -> Policy:
        return cls("safe")

    @classmethod
    def lenient(cls) -> Policy:
        return cls("lenient")
