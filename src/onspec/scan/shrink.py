"""Delta debugging: the smallest list, value or text that still shows the same fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from onspec.audit import Json

Item = TypeVar("Item")

MAX_TESTS = 2000
"""Times that a reduction may ask whether the fault still shows."""


class Budget:
    """Counts questions, so that a reduction ends."""

    def __init__(self, tests: int = MAX_TESTS) -> None:
        self.left = tests

    def ask(self, test: Callable[[], bool]) -> bool:
        """The answer, or no once the budget is spent."""
        if self.left <= 0:
            return False
        self.left -= 1
        return test()


def ddmin(items: list[Item], shows: Callable[[list[Item]], bool], budget: Budget) -> list[Item]:
    """A sublist, in the same order, from which no single item can be left out (Zeller and Hildebrandt, 2002).

    Args:
        items: A list that shows the fault.
        shows: Whether a sublist shows it too.
        budget: How often `shows` may be asked; the best list so far is returned once it is spent.
    """
    if items and budget.ask(lambda: shows([])):
        return []
    parts = 2
    while len(items) >= 2:
        size = max(len(items) // parts, 1)
        for start in range(0, len(items), size):
            rest = items[:start] + items[start + size :]
            if rest and budget.ask(lambda rest=rest: shows(rest)):  # type: ignore[misc]  # binds this round's list
                items, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1 or budget.left <= 0:
                break
            parts = min(parts * 2, len(items))
    return items


LONG_KEY = 64
"""Length in characters from which a key is no name but text, and is shortened like one."""


def shrink(value: Json, shows: Callable[[Json], bool], budget: Budget) -> Json:
    """The smallest JSON value with the same fault: members, items and characters that do not matter are gone.

    Args:
        value: A value that shows the fault.
        shows: Whether a value shows it too.
        budget: How often it may be asked.
    """
    return _shrink(value, shows, budget)


def _shrink(value: Json, shows: Callable[[Json], bool], budget: Budget) -> Json:
    if isinstance(value, dict):
        kept = ddmin(list(value), lambda keys: shows({key: value[key] for key in value if key in keys}), budget)
        value = {key: value[key] for key in value if key in kept}
        for key in [key for key in value if len(key) > LONG_KEY]:
            others = value

            def renamed(name: str, key: str = key, others: dict[str, Json] = others) -> dict[str, Json]:
                return {name if one == key else one: inner for one, inner in others.items()}

            def fits(name: str, others: dict[str, Json] = others, put: Callable[[str], Json] = renamed) -> bool:
                return name not in others and shows(put(name))

            short = shorten(key, fits, budget)
            value = renamed(short)
        for key in list(value):
            rest = value

            def with_inner(inner: Json, key: str = key, rest: dict[str, Json] = rest) -> Json:
                return {**rest, key: inner}

            value = with_inner(_shrink(value[key], lambda inner, put=with_inner: shows(put(inner)), budget))  # type: ignore[misc]  # binds this round's key
        return value
    if isinstance(value, list):
        indexes = ddmin(list(range(len(value))), lambda kept: shows([value[i] for i in kept]), budget)
        value = [value[index] for index in indexes]
        for index in range(len(value)):
            held = value

            def with_item(inner: Json, index: int = index, held: list[Json] = held) -> Json:
                return [*held[:index], inner, *held[index + 1 :]]

            value = with_item(_shrink(value[index], lambda inner, put=with_item: shows(put(inner)), budget))  # type: ignore[misc]  # binds this round's index
        return value
    if isinstance(value, str) and len(value) > 1:
        return shorten(value, shows, budget)
    return value


def shorten(text: str, shows: Callable[[str], bool], budget: Budget) -> str:
    """The shortest text with the same fault: lines first, then runs of characters."""
    lines = ddmin(text.splitlines(keepends=True), lambda kept: shows("".join(kept)), budget)
    pieces = ["".join(lines)]
    size = len(pieces[0])
    while size > 16:
        size = max(size // 4, 8)
        whole = "".join(pieces)
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
        pieces = ddmin(pieces, lambda kept: shows("".join(kept)), budget)
    return "".join(pieces)
