"""Several families at one marker: which of them a block is written in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from onspec.contract.toolset import Toolset
from onspec.dialects.dialect import Context, Family
from onspec.dialects.draft import NOT_CALL, Block, More, NotCall, Reading
from onspec.dialects.form import Form
from onspec.message import Call, Result


@dataclass(frozen=True)
class Several:
    """Families that are tried in turn at each marker; the first that reads a call there wins.

    Attributes:
        families: In the order in which they are tried; the first one writes.
        native: How many of them, from the first, are ways in which a model of the dialect writes of its own accord.
    """

    families: tuple[Family, ...]
    native: int = 1

    @cached_property
    def firsts(self) -> str:
        return "".join(sorted({char for family in self.families for char in family.firsts}))

    @cached_property
    def literals(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(word for family in self.families for word in family.literals))

    def opener(self, names: tuple[str, ...]) -> str:
        return "|".join(pattern for pattern in (family.opener(names) for family in self.families) if pattern)

    def orphans(self) -> str:
        parts = [family.orphans() for family in self.families]
        return "|".join(part for part in parts if part)

    @cached_property
    def hold(self) -> str:
        holds = dict.fromkeys(family.hold for family in self.families if family.hold)
        return "|".join(holds)

    @cached_property
    def _openers(self) -> dict[tuple[str, ...], list[tuple[Family, re.Pattern[str]]]]:
        """The families with their compiled openers, for the sets of names met last."""
        return {}

    def _by_opener(self, names: tuple[str, ...]) -> list[tuple[Family, re.Pattern[str]]]:
        found = self._openers.get(names)
        if found is None:
            if len(self._openers) > 64:
                self._openers.clear()
            found = [(family, re.compile(family.opener(names) or r"(?!)")) for family in self.families]
            self._openers[names] = found
        return found

    def read(self, text: str, pos: int, inside: object | None, context: Context, final: bool) -> Reading:
        if isinstance(inside, tuple):
            family, inner = inside
            return self._tag(family, family.read(text, pos, inner, context, final))
        refused: Block | None = None
        for family, pattern in self._by_opener(context.names):
            if not pattern.match(text, pos):
                continue
            reading = family.read(text, pos, None, context, final)
            if isinstance(reading, More):
                return reading
            if isinstance(reading, NotCall):
                continue
            if reading.drafts and all(draft.fault and draft.fault.code in _VAGUE for draft in reading.drafts):
                refused = refused or reading
                continue
            return self._tag(family, reading)
        return refused or NOT_CALL

    @staticmethod
    def _tag(family: Family, reading: Reading) -> Reading:
        if isinstance(reading, Block) and reading.inside is not None:
            reading.inside = (family, reading.inside)
        return reading

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        return tuple(form for family in self.families[: self.native] for form in family.forms)

    def write_calls(self, calls: tuple[Call, ...], tools: Toolset) -> str:
        return self.families[0].write_calls(calls, tools)

    def write_results(self, results: tuple[Result, ...]) -> str:
        return self.families[0].write_results(results)

    def write_tools(self, tools: Toolset) -> str:
        return self.families[0].write_tools(tools)


_VAGUE = frozenset({"no_body", "no_name"})
