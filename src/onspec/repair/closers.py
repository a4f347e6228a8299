"""Keys that may stand too deep because a closer was missing, so that where it belonged is a guess."""

from __future__ import annotations

from onspec.audit import Json, Path, Violation, pointer
from onspec.contract.view import Places, View, Views

_MESSAGE = "a closing bracket is missing, and this key may belong further out"


def misplaced(value: Json, views: Views) -> Violation | None:
    """The first key, behind another one of its object, that may belong further out.

    That is a key that an object further out declares, and lacks or alone declares; or one that its own object does
    not declare, where an object around it, with no array between, takes any key.

    Args:
        value: Arguments that fit, read with closers added.
        views: The tool's schema.
    """
    stack: list[tuple[Path, Json, Places, tuple[tuple[Json, list[View]], ...]]] = [((), value, ("",), ())]
    while stack:
        path, item, places, above = stack.pop()
        here = views.of(places) if places else []
        if isinstance(item, dict):
            nested = bool(path) and isinstance(path[-1], str)
            for index, (key, inner) in enumerate(item.items()):
                own = _declares(here, key)
                if index and any((key not in outer or not own) and _declares(known, key) for outer, known in above):
                    return Violation("ambiguous", pointer((*path, key)), _MESSAGE)
                if index and nested and not own and _open(above[-1][1]):
                    return Violation("ambiguous", pointer((*path, key)), _MESSAGE)
                if isinstance(inner, dict | list):
                    inside = next((found for view in here if (found := view.places_of(key))), ())
                    stack.append(((*path, key), inner, inside, (*above, (item, here))))
        elif isinstance(item, list):
            for number, inner in enumerate(item):
                if isinstance(inner, dict | list):
                    stack.append(((*path, number), inner, here[0].item_places(number) if here else (), above))
    return None


def _declares(views: list[View], key: str) -> bool:
    return any(key in view.properties for view in views)


def _open(views: list[View]) -> bool:
    return any(view.free or not view.closed for view in views)
