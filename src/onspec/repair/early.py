"""What of a call can be decided before its end: members that will go whatever follows, values that will be mended."""

from __future__ import annotations

import json
from typing import Final

from onspec.audit import Json, Path, Repair
from onspec.contract.tool import Tool
from onspec.contract.view import Places, View, Views
from onspec.repair.conform import Fit, Search
from onspec.repair.keys import Level, held, holds_work, inert, scalars
from onspec.repair.names import (
    ENVELOPES,
    META,
    fold,
    garbled,
    is_payload,
    near,
    numbered,
    related,
    restrains,
    speaks_of_file,
    synonyms,
    trim,
)
from onspec.repair.policy import Policy
from onspec.repair.spans import numbers
from onspec.repair.step import Origin, Step

_NO_VALUE: Final = "\0"
"""Stands for a value that is not known yet, and is none that a key's rule would let pass."""


class Early:
    """Decides over parts of one tool's calls as `onspec.check` will decide over them in the whole call.

    It answers only where what is still to come cannot change the answer, but for a call that will be refused as a
    whole. The objects around the part must each be of one kind, and hold a declared key already.

    Args:
        tool: The contract; it has a schema.
        policy: Which repairs may be made; one without rules for single paths.
    """

    def __init__(self, tool: Tool, policy: Policy) -> None:
        self.views: Views = tool.views
        self._tool = tool
        self._policy = policy
        self._writes = tool.effect != "read"
        self._known: dict[tuple[int, str], bool] = {}

    @classmethod
    def of(cls, tool: Tool, policy: Policy | None) -> Early | None:
        """One for a tool under a policy; None where nothing may be decided early."""
        if policy is None or not policy.rules or policy.paths or policy.tools or tool.schema is None:
            return None
        return cls(tool, policy)

    def root(self) -> View | None:
        """The one way to see the arguments, or None."""
        return self._only(("",), "object")

    def inner(self, view: View | None, at: str | int, kind: str) -> View | None:
        """The one way to see a container at a member or item of another, or None."""
        if view is None:
            return None
        return self._only(places_at(view, at), kind)

    def _only(self, places: Places, kind: str) -> View | None:
        views = self.views.of(places) if places else []
        fitting = [view for view in views if view.takes(kind)]
        others = [view for view in views if not view.takes(kind)]
        if len(fitting) != 1 or any(view.takes("object") or view.takes("array") for view in others):
            return None
        return fitting[0] if fitting[0].types is not None else None

    # Keys

    def junk(self, key: str, view: View) -> bool:
        """Whether a closed object will lose this key whatever scalar it holds and whatever follows."""
        if not view.closed or view.free or not self._allows("drop_unknown_key"):
            return False
        at = id(view), key
        if at not in self._known:
            self._known[at] = self._means_nothing(key, view)
        return self._known[at]

    def _means_nothing(self, key: str, view: View) -> bool:
        names = self.views.names
        if garbled(key) or trim(key) != key or key in self._tool.aliases or view.places_of(key) is not None:
            return False
        if speaks_of_file(key) or is_payload(key) or fold(key) in ("source", "location"):
            return False
        if self._writes and restrains(key, _NO_VALUE, names):
            return False
        if any(near(key, name) or related(key, name) for name in view.properties):
            return False
        return not self._speaks_of(key, names)

    def _speaks_of(self, key: str, names: frozenset[str] | list[str]) -> bool:
        """Whether a key, or the key whose numbered twin it is, is another spelling of one of these."""
        twin = numbered(key)
        own = (key, twin[0]) if twin else (key,)
        return any(fold(one) == fold(name) or synonyms(one, name) for name in names for one in own)

    def drops(self, key: str, value: Json, view: View, own: str | int, seen: object) -> bool:
        """Whether a key that is `junk` goes with this very value.

        Args:
            own: The key of the object, or the index of the item, that holds it; "" for the arguments.
            seen: A container of the keys that stand before it.
        """
        if inert(value):
            return True
        inside = held(value)
        if not isinstance(inside, dict | list):
            return True
        if key in ENVELOPES or fold(key) == fold(self._name(own)) or holds_work(inside, self.views.names):
            return False
        empty: Json = [] if isinstance(value, dict) else {}
        return not isinstance(value, dict | list) or not any(
            (name in view.required or not scalars(value))
            and self.views.valid(value, places)
            and not self.views.valid(empty, places)
            for name, places in view.properties.items()
            if name not in seen  # type: ignore[operator]
        )

    def is_data(self, key: str, view: View, own: str | int, seen: object) -> bool:
        """Whether an open object keeps a key that it does not declare, whatever follows."""
        if view.closed or garbled(key) or trim(key) != key:
            return False
        missing = [name for name in view.required if name not in seen]  # type: ignore[operator]
        if self._tool.aliases.get(key) in missing or self._speaks_of(key, missing):
            return False
        if numbered(key) and self._speaks_of(key, list(view.properties)):
            return False
        wrapper = key in ENVELOPES or key in META or fold(key) == fold(self._name(own))
        return not wrapper or any(name in seen for name in view.properties)  # type: ignore[operator]

    def _name(self, own: str | int) -> str:
        return own if isinstance(own, str) and own else self._tool.name

    # Values

    def member(self, value: Json, raw: str, path: Path, view: View, levels: list[Level]) -> Json:
        """The value that a member will have: mended, `GONE`, or None where that is not certain.

        Args:
            value: The value as written, which its place does not take.
            raw: Its text.
            path: Where it stands.
            view: The object that holds it.
            levels: That object and those around it, outermost first.
        """
        key = str(path[-1])
        places = places_at(view, key)
        if not places or (inert(value) and any(v.takes("array") for v in self.views.of(places))):
            return None  # an empty list may be filled from keys that follow
        search = self._search(raw, path, levels)
        fit = search.member(value, key, key in view.required, places, path[:-1], _origin(path))
        return self._taken(fit)

    def items(self, value: Json, raw: str, path: Path, view: View, levels: list[Level]) -> list[Json] | None:
        """The items that an item of an array will be, or None where that is not certain."""
        search = self._search(raw, path, levels)
        place = view.item_places(0)
        made = self._taken(search.array([value], view, path[:-1], _origin(path[:-1])))
        if not isinstance(made, list) or not all(self.views.valid(item, place) for item in made):
            return None
        return made

    def _search(self, raw: str, path: Path, levels: list[Level]) -> Search:
        found: dict[Path, str] = {}

        def lexeme(at: Path) -> str | None:
            if not found:
                found.update(numbers(raw))
            return found.get(at[len(path) :])

        search = Search(self.views, self._tool.name, self._tool.aliases, lexeme, False, self._writes)
        search.levels = list(levels)
        return search

    def _taken(self, fit: object) -> Json:
        if not isinstance(fit, Fit) or not all(self._allows(step.rule, step) for step in fit.steps):
            return None
        return fit.value

    def _allows(self, rule: str, step: Step | None = None) -> bool:
        repair = Repair(rule, step.path if step is not None else "", None, None)
        return self._policy.allows(repair, self._tool.name, not self._writes)


def places_at(view: View, at: str | int) -> Places:
    """Where the value of a member or item is judged."""
    if isinstance(at, int):
        return view.item_places(at)
    found = view.places_of(at)
    return view.free if found is None else found


def _origin(path: Path) -> Origin:
    return Origin(path)


def text_of(value: Json) -> str:
    """A value as JSON."""
    return json.dumps(value, ensure_ascii=False)
