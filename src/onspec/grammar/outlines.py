"""A grammar as an output type of Outlines."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from onspec.errors import MissingExtra
from onspec.grammar.build import Grammar
from onspec.grammar.exact import Exact

BACKEND = "llguidance"
"""The backend of Outlines that reads these grammars: `model(prompt, output_type(grammar), backend=BACKEND)`."""


def output_type(grammar: Grammar | Exact) -> Any:
    """What Outlines takes as an output type: a block of calls after its trigger, or a value of a schema.

    Raises:
        MissingExtra: Outlines is not installed.
    """
    try:
        types = import_module("outlines.types")
    except ImportError:
        raise MissingExtra("outlines", None) from None
    if isinstance(grammar, Exact):
        return types.CFG(grammar.grammar(edges=False))
    return types.CFG(grammar.calls or grammar.lark)
