"""Several tools, found by the names that models write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from onspec.audit import Repair, Violation
from onspec.contract.formats import read_all
from onspec.contract.tool import Tool
from onspec.errors import ToolFormatError

PREFIXES = ("functions.", "functions:", "function.", "default_api:", "default_api.", "tools.", "tool:", "tool.")
"""Namespaces that models put before a declared name."""

_MCP = re.compile(r"mcp__[A-Za-z0-9_.-]+?__(.+)\Z", re.DOTALL)
MAX_NAMES_LISTED = 40


@dataclass(frozen=True, slots=True)
class Match:
    """The answer to a look-up by name: a tool with the repairs it took, or None with a violation."""

    tool: Tool | None
    repairs: tuple[Repair, ...] = ()
    violation: Violation | None = None


class Toolset(Mapping[str, Tool]):
    """Tools by name, in the order given.

    Raises:
        ToolFormatError: Two tools have one name.
    """

    __slots__ = ("_folded", "_tools")

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._folded: dict[str, list[Tool]] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ToolFormatError(f"two tools have the name {tool.name!r}")
            self._tools[tool.name] = tool
            self._folded.setdefault(tool.name.casefold(), []).append(tool)

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"Toolset({list(self._tools)!r})"

    @classmethod
    def from_json(cls, definitions: Any, **options: Any) -> Toolset:
        """The tools of a decoded list, of one definition, or of a whole request, in any of the five forms.

        Tools that the provider runs itself (web search, code execution) carry no schema and are left out. A tool of a
        namespace keeps its bare name unless another has it too; then it is called `namespace.name`.

        Args:
            definitions: A decoded list of definitions, a request that has `tools`, or MCP's answer to `tools/list`.
            options: Keyword arguments of `Tool` for every tool, such as `aliases`.

        Raises:
            ToolFormatError: An entry is in none of the forms, or two tools have one name.
            SchemaError: A schema cannot be used.
        """
        return cls(Tool.from_definition(one, **options) for one in read_all(definitions))

    def find(self, name: str) -> Match:
        """The tool that a written name means.

        Exact, else exact after a known prefix (`functions.`, `default_api:`, `mcp__server__` ...), else the one name
        that differs only in letter case. Anything else is a violation that lists the names. Never raises.
        """
        exact = self._tools.get(name)
        if exact is not None:
            return Match(exact)
        bare, rule = name, ""
        for prefix in PREFIXES:
            if name.startswith(prefix):
                bare, rule = name[len(prefix) :], "tool_name_prefix"
                break
        else:
            mcp = _MCP.match(name)
            if mcp:
                bare, rule = mcp[1], "tool_name_prefix"
        repairs: tuple[Repair, ...] = ()
        if rule:
            repairs = (Repair(rule, "", name, bare),)
            found = self._tools.get(bare)
            if found is not None:
                return Match(found, repairs)
        folded = self._folded.get(bare.strip().casefold(), [])
        if len(folded) == 1:
            return Match(folded[0], (*repairs, Repair("tool_name_case", "", bare, folded[0].name)))
        return Match(None, (), self._unknown(name))

    def _unknown(self, name: str) -> Violation:
        names = list(self._tools)
        listed = ", ".join(names[:MAX_NAMES_LISTED]) + (" ..." if len(names) > MAX_NAMES_LISTED else "")
        near = get_close_matches(name[:200], names, n=1, cutoff=0.75)
        return Violation(
            code="unknown_tool",
            path="",
            message="no tool has this name" if name.strip() else "the tool's name is empty",
            expected=listed or "no tools were declared",
            found=f"a name of {len(name)} characters" if len(name) > 80 or not name.isprintable() else repr(name),
            hint=near[0] if near else None,
        )
