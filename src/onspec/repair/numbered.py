"""Numbered twins in an array's item (`oldText2`, `newText2`) that are a whole item of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onspec.audit import Json, Path, pointer
from onspec.contract.view import View
from onspec.repair.names import fold, numbered, synonyms
from onspec.repair.step import Origin, Step

MAX_SETS = 20
"""Numbered sets of one item above which none is promoted."""


@dataclass(slots=True)
class Promoted:
    """The items after promotion, the index where each stood before (None for a new one), and the changes."""

    items: list[Json]
    origins: list[int | None]
    steps: list[Step]


def promote(value: list[Json], view_of: Callable[[int], View | None], path: Path, origin: Origin) -> Promoted:
    """Make each numbered set that is a whole item the next item; what is not whole stays where it is."""
    items: list[Json] = []
    origins: list[int | None] = []
    steps: list[Step] = []
    for index, item in enumerate(value):
        host = len(items)
        items.append(item)
        origins.append(index)
        if not isinstance(item, dict):
            continue
        view = view_of(index)
        if view is None or not any(numbered(key) for key in item if key not in view.properties):
            continue
        for keys in _sets(item, view):
            new = {target: items[host][key] for target, key in keys.items()}
            items[host] = {key: inner for key, inner in items[host].items() if key not in keys.values()}
            before = {pointer((*path, host, key)): new[target] for target, key in keys.items()}
            steps.append(Step("promote_numbered_item", pointer((*path, len(items))), before, new, origin.at(index)))
            items.append(new)
            origins.append(None)
    return Promoted(items, origins, steps)


def _sets(item: dict[str, Json], view: View) -> list[dict[str, str]]:
    """The numbered sets of an item that hold every required key, by number: declared key to written key."""
    groups: dict[int, dict[str, str]] = {}
    for key, value in item.items():
        twin = numbered(key) if key not in view.properties else None
        if twin is None:
            continue
        targets = [name for name in view.properties if fold(name) == fold(twin[0])]
        targets = targets or [name for name in view.properties if synonyms(name, twin[0])]
        if len(targets) == 1 and value is not None:
            groups.setdefault(twin[1], {}).setdefault(targets[0], key)
    if len(groups) > MAX_SETS:
        return []
    return [
        keys
        for _, keys in sorted(groups.items())
        if view.required
        and all(name in keys for name in view.required)
        and any(item[key] not in ("", [], {}) for key in keys.values())
    ]
