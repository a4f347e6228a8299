"""The contracts of one request: the tools that it declares, wherever it declares them."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from onspec.contract.tool import Tool
from onspec.contract.toolset import Match, Toolset
from onspec.errors import OnspecError

MAX_CACHED = 256
NOTHING = {"type": "object", "properties": {}}
"""The contract of a function whose parameters are null."""


@dataclass(frozen=True, slots=True)
class Contracts:
    """Tools by namespace ("" is none), and the names whose contract cannot be used (their calls are left alone)."""

    tools: dict[str, Toolset]
    unusable: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return any(self.tools.values())

    def find(self, name: str, namespace: str | None = None) -> Match | None:
        """The tool that a call means; None where the gateway has no say: no tools, or a contract it cannot use."""
        if name in self.unusable or not self:
            return None
        for place in (namespace or "", ""):
            if place in self.tools:
                found = self.tools[place].find(name)
                if found.tool is not None or place == "":
                    return found
        for tools in self.tools.values():
            if name in tools:
                return Match(tools[name])
        return next(iter(self.tools.values())).find(name)


class ContractCache:
    """Contracts by the text of their definitions; agents send the same tools with every request."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Contracts] = OrderedDict()

    def of(self, request: Any, aliases: dict[str, dict[str, str]] | None = None) -> Contracts:
        """The contracts of a decoded request."""
        places = _declared(request)
        if not places:
            return Contracts({})
        key = json.dumps([places, aliases], sort_keys=False)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _compile(places, aliases or {})
            if len(self._known) > MAX_CACHED:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return found


def _declared(request: Any) -> list[tuple[str, Any]]:
    if not isinstance(request, dict):
        return []
    found = _flatten(request.get("tools"), "")
    items = request.get("input")
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and item.get("type") == "additional_tools":
            found += _flatten(item.get("tools"), "")
    return found


def _flatten(tools: Any, namespace: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, dict):
            if tool.get("type") == "namespace":
                found += _flatten(tool.get("tools"), str(tool.get("name", "")))
            else:
                found.append((namespace, tool))
    return found


def _compile(places: list[tuple[str, Any]], aliases: dict[str, dict[str, str]]) -> Contracts:
    tools: dict[str, dict[str, Tool]] = {}
    unusable: set[str] = set()
    for namespace, definition in places:
        name = _name(definition)
        if name is None:
            continue
        try:
            tool = _tool(definition, aliases.get(name, {}))
        except (OnspecError, TypeError, ValueError, KeyError):
            tool = None
        if tool is None:
            unusable.add(name)
        else:
            tools.setdefault(namespace, {}).setdefault(tool.name, tool)
    return Contracts({place: Toolset(known.values()) for place, known in tools.items()}, frozenset(unusable))


def _name(definition: Any) -> str | None:
    for holder in (definition, definition.get("function"), definition.get("custom")):
        if isinstance(holder, dict) and isinstance(holder.get("name"), str) and holder["name"]:
            return str(holder["name"])
    return None


def _tool(definition: dict[str, Any], aliases: dict[str, str]) -> Tool | None:
    holder = definition.get("function")
    if isinstance(holder, dict) and holder.get("parameters", 0) is None:
        definition = {**definition, "function": {**holder, "parameters": dict(NOTHING)}}
    return Tool.from_json(definition, **({"aliases": aliases} if aliases else {}))
