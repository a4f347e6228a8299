"""Tools of known harnesses, by name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from onspec.contract.builtin import BUILTIN
from onspec.contract.definition import Definition, Grammar
from onspec.contract.tool import Tool
from onspec.errors import InputError


def names() -> tuple[str, ...]:
    """All names that `known` takes, sorted: `harness/tool`, such as `pi/edit` or `claude-code/Edit`."""
    return tuple(sorted(_table()))


def known(name: str, **options: Any) -> Tool:
    """The tool that a harness declares under this name.

    Args:
        name: `harness/tool`; a bare tool name where only one harness has such a tool.
        options: Keyword arguments of `Tool` that override what is known.

    Raises:
        InputError: No tool or several have this name; the message lists the nearest.
    """
    table = _table()
    full = name if name in table else _only(name, table)
    facts = table[full]
    if "type" in facts:
        bare, effect, schema, description = BUILTIN[facts["type"]]
        return Tool.from_definition(Definition(bare, schema, description, effect), **options)
    grammar = Grammar(**facts["grammar"]) if "grammar" in facts else None
    bare = full.split("/", 1)[1]
    definition = Definition(bare, facts.get("schema"), facts["description"], facts["effect"], grammar)
    return Tool.from_definition(definition, **options)


def _only(name: str, table: dict[str, Any]) -> str:
    same = [full for full in table if full.split("/", 1)[1] == name]
    if len(same) == 1:
        return same[0]
    if same:
        raise InputError(f"several known tools are called {name!r}: {', '.join(sorted(same))}; write one of these")
    folded = {full.casefold(): full for full in table} | {full.split("/", 1)[1].casefold(): full for full in table}
    near = [folded[one] for one in get_close_matches(name.casefold()[:80], folded, n=3, cutoff=0.5)]
    raise InputError(f"no known tool is called {name[:80]!r}; {_nearest(name, dict.fromkeys(near), table)}")


def _nearest(name: str, near: Iterable[str], table: dict[str, Any]) -> str:
    """What a name may have meant, in one line."""
    listed = ", ".join(near)
    if listed:
        return f"nearest: {listed}"
    harnesses = dict.fromkeys(full.split("/", 1)[0] for full in sorted(table))
    harness = name.split("/", 1)[0].casefold()
    if harness in harnesses:
        return f"{harness} has {', '.join(sorted(full for full in table if full.startswith(harness + '/')))}"
    return f"names are HARNESS/TOOL, such as pi/edit; harnesses: {', '.join(harnesses)}"


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(files("onspec").joinpath("data", "tools.json").read_bytes())
    return table
