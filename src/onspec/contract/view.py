"""What a schema says of the value at a place: references followed, allOf merged, unions laid side by side."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from onspec.audit import Json, pointer
from onspec.contract.schema import Schema, matches

Places = tuple[str, ...]
"""JSON Pointers into the schema that all judge one value."""

MAX_ARMS = 64
"""How many arms of unions are looked at for one value; the judge still knows them all."""

MAX_STEPS = 200
"""How many references, allOf parts and arms are followed for one value."""


@dataclass(slots=True)
class View:
    """One way to fit a place.

    Attributes:
        types: JSON types it takes, or None for any.
        properties: Declared keys, each with the places that judge its value.
        required: Keys that must stand, in the order of the schema.
        closed: Whether keys that are not declared are refused.
        free: Places that judge the value of an undeclared key.
        patterns: Regular expressions of further keys, each with its place.
        items: Places that judge every item behind the prefix.
        prefix: Places of the first items.
        enum: The values it takes, or None for any.
        defaults: Declared defaults by key.
    """

    types: frozenset[str] | None = None
    properties: dict[str, Places] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    closed: bool = False
    free: Places = ()
    patterns: list[tuple[str, str]] = field(default_factory=list)
    items: Places = ()
    prefix: list[Places] = field(default_factory=list)
    enum: list[Json] | None = None
    defaults: dict[str, Json] = field(default_factory=dict)

    def takes(self, kind: str) -> bool:
        """Whether a value of this JSON type can fit (`integer` is also a `number`)."""
        if self.types is None:
            return True
        return kind in self.types or (kind == "integer" and "number" in self.types)

    def places_of(self, key: str) -> Places | None:
        """Where the value of a key is judged; None where the key is not declared."""
        found = self.properties.get(key)
        matched = tuple(place for pattern, place in self.patterns if matches(pattern, key))
        if found is None and not matched:
            return None
        return (found or ()) + matched

    def item_places(self, index: int) -> Places:
        """Where the item at an index is judged."""
        return self.prefix[index] if index < len(self.prefix) else self.items


class Views:
    """The views of a schema, each made once."""

    __slots__ = ("_known", "_names", "schema")

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._known: dict[Places, list[View]] = {}
        self._names: frozenset[str] | None = None

    def of(self, places: Places) -> list[View]:
        """The ways to fit a value that all these places judge; at most `MAX_ARMS`."""
        found = self._known.get(places)
        if found is None:
            budget = [MAX_STEPS]
            found = [View()]
            for place in places:
                found = _product(found, self._expand(place, frozenset(), budget))
            self._known[places] = found
        return found

    def valid(self, value: Json, places: Places) -> bool:
        """Whether every place accepts the value."""
        return all(self.schema.judge_at(place).is_valid(value) for place in places)

    @property
    def names(self) -> frozenset[str]:
        """Every key that is declared anywhere in the schema."""
        if self._names is None:
            names: set[str] = set()
            stack: list[Any] = [self.schema.document]
            while stack:
                node = stack.pop()
                if isinstance(node, dict):
                    declared = node.get("properties")
                    if isinstance(declared, dict):
                        names.update(declared)
                    stack.extend(node.values())
                elif isinstance(node, list):
                    stack.extend(node)
            self._names = frozenset(names)
        return self._names

    def at(self, place: str) -> Json:
        """The subschema at a JSON Pointer; True where there is none."""
        node: Any = self.schema.document
        for part in place.split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and part in node:
                node = node[part]
            elif isinstance(node, list) and part.isdigit() and int(part) < len(node):
                node = node[int(part)]
            else:
                return True
        return node

    def _expand(self, place: str, seen: frozenset[str], budget: list[int]) -> list[View]:
        budget[0] -= 1
        node = self.at(place)
        if not isinstance(node, dict) or place in seen or budget[0] < 0:
            return [View()]
        seen = seen | {place}
        own = _own(node, place)
        if not place and own.types is None:
            own.types = frozenset({"object"})  # arguments are an object, whether or not the schema says so
        views = [own]
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            target = self._resolve(node.get(keyword))
            if target is not None:
                views = _product(views, self._expand(target, seen, budget))
        for index in range(len(_listed(node, "allOf"))):
            views = _product(views, self._expand(f"{place}/allOf/{index}", seen, budget))
        for keyword in ("anyOf", "oneOf"):
            arms: list[View] = []
            for index in range(min(len(_listed(node, keyword)), MAX_ARMS)):
                arms.extend(self._expand(f"{place}/{keyword}/{index}", seen, budget))
            if arms:
                views = _product(views, arms)
        return views

    def _resolve(self, target: Any) -> str | None:
        if not isinstance(target, str) or not target.startswith("#"):
            return None
        if target == "#" or target.startswith("#/"):
            return re.sub(r"%([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), target[1:])
        return self._anchor(target[1:])

    def _anchor(self, name: str) -> str | None:
        stack: list[tuple[tuple[str | int, ...], Any]] = [((), self.schema.document)]
        while stack:
            path, node = stack.pop()
            if isinstance(node, dict):
                if node.get("$anchor") == name or node.get("$dynamicAnchor") == name:
                    return pointer(path)
                stack.extend(((*path, key), item) for key, item in node.items())
            elif isinstance(node, list):
                stack.extend(((*path, index), item) for index, item in enumerate(node))
        return None


def _own(node: dict[str, Any], place: str) -> View:
    """What one schema object says by itself."""
    view = View(types=_types(node))
    declared = node.get("properties")
    if isinstance(declared, dict):
        for key, sub in declared.items():
            view.properties[key] = (f"{place}/properties{pointer((key,))}",)
            if isinstance(sub, dict) and "default" in sub:
                view.defaults[key] = sub["default"]
    required = node.get("required")
    if isinstance(required, list):
        view.required = [key for key in required if isinstance(key, str)]
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if node.get(keyword) is False:
            view.closed = True
        elif isinstance(node.get(keyword), dict):
            view.free = (*view.free, f"{place}/{keyword}")
    patterns = node.get("patternProperties")
    if isinstance(patterns, dict):
        view.patterns = [(pattern, f"{place}/patternProperties{pointer((pattern,))}") for pattern in patterns]
    for keyword in ("prefixItems", "items"):
        if isinstance(node.get(keyword), list):
            view.prefix = [(f"{place}/{keyword}/{index}",) for index in range(len(node[keyword]))]
    if isinstance(node.get("items"), dict):
        view.items = (f"{place}/items",)
    elif isinstance(node.get("additionalItems"), dict):
        view.items = (f"{place}/additionalItems",)
    if isinstance(node.get("enum"), list):
        view.enum = list(node["enum"])
    elif "const" in node:
        view.enum = [node["const"]]
    return view


def _types(node: dict[str, Any]) -> frozenset[str] | None:
    declared = node.get("type")
    if isinstance(declared, str):
        return frozenset({declared})
    if isinstance(declared, list):
        return frozenset(item for item in declared if isinstance(item, str))
    if isinstance(node.get("enum"), list):
        return frozenset(kind(value) for value in node["enum"])
    if "const" in node:
        return frozenset({kind(node["const"])})
    return None


def kind(value: Json) -> str:
    """The JSON type of a decoded value: a float with no fraction is an `integer` too and is called so."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return "object" if isinstance(value, dict) else "array"


def _listed(node: dict[str, Any], keyword: str) -> list[Any]:
    value = node.get(keyword)
    return value if isinstance(value, list) else []


def _product(left: list[View], right: list[View]) -> list[View]:
    return [_merge(one, two) for one in left for two in right][:MAX_ARMS]


def _merge(one: View, two: View) -> View:
    if one.types is None or two.types is None:
        types = one.types if two.types is None else two.types
    else:
        types = frozenset(k for k in one.types | two.types if one.takes(k) and two.takes(k))
    enum = one.enum if two.enum is None else two.enum if one.enum is None else [v for v in one.enum if v in two.enum]
    properties = dict(one.properties)
    for key, places in two.properties.items():
        properties[key] = properties.get(key, ()) + places
    prefix = [
        (one.prefix[i] if i < len(one.prefix) else ()) + (two.prefix[i] if i < len(two.prefix) else ())
        for i in range(max(len(one.prefix), len(two.prefix)))
    ]
    return View(
        types=types,
        properties=properties,
        required=one.required + [key for key in two.required if key not in one.required],
        closed=one.closed or two.closed,
        free=one.free + two.free,
        patterns=one.patterns + two.patterns,
        items=one.items + two.items,
        prefix=prefix,
        enum=enum,
        defaults={**one.defaults, **two.defaults},
    )
