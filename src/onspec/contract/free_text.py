"""The text of a custom tool, judged by the tool's grammar."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from onspec.audit import Violation
from onspec.contract.definition import Grammar
from onspec.errors import MissingExtra

KEPT = 256
"""Grammars kept compiled."""


class FreeText:
    """A grammar that judges whole texts. Compiled when the first text comes.

    A grammar that cannot be compiled, or costs too much time, never refuses a text.

    Attributes:
        unenforced: Why the grammar is not enforced; None as long as it is.
    """

    __slots__ = ("_engine", "_grammar", "unenforced")

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._engine: Any = None
        self.unenforced: str | None = None

    def violation(self, text: str) -> Violation | None:
        """Where the text leaves the grammar, with line and column from 1; None where it does not, or nobody can say."""
        if self.unenforced is not None:
            return None
        try:
            engine = import_module("onspec.contract.llguidance_text")
        except MissingExtra as error:
            self.unenforced = str(error)
            return None
        raw = text.encode("utf-8", "surrogatepass")
        try:
            if self._engine is None:
                self._engine = engine.TextGrammar(self._grammar)
            left = self._engine.left(raw)
        except engine.Unusable as error:
            self.unenforced = f"the grammar cannot be used: {error}"
            return None
        if left is None:
            return None
        before = raw[: left.offset].decode("utf-8", "ignore")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return Violation(
            "off_grammar",
            "",
            "the text ends before its grammar does" if left.ended else "the text leaves the tool's grammar",
            " or ".join(left.options) or None,
            f"at line {line}, column {column}",
        )


@lru_cache(maxsize=KEPT)
def judge_of(grammar: Grammar) -> FreeText | None:
    """The judge of a grammar, the same for equal ones; None where any text is allowed."""
    return None if grammar.syntax == "text" else FreeText(grammar)
