"""What one tool definition says, whichever form it was written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Effect = Literal["read", "write", "exec"]
EFFECTS: tuple[Effect, ...] = ("read", "write", "exec")


@dataclass(frozen=True, slots=True)
class Grammar:
    """The grammar of a custom tool, whose input is free text.

    Attributes:
        syntax: `lark`, `regex`, or `text` where any text is allowed.
        definition: The grammar's text.
    """

    syntax: Literal["lark", "regex", "text"]
    definition: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """The facts that become a `Tool`.

    Attributes:
        name: The name by which a model calls it.
        schema: JSON Schema of the arguments; None for a custom tool.
        description: What it does, for a model.
        effect: What a call does to the world, or None where the definition does not say.
        grammar: The grammar of a custom tool.
        namespace: The namespace that held it, or None.
    """

    name: str
    schema: Mapping[str, Any] | bool | None
    description: str = ""
    effect: Effect | None = None
    grammar: Grammar | None = None
    namespace: str | None = None
