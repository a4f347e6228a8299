"""What a schema says at one place: references followed, `allOf` joined, alternatives set apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from onspec.errors import SchemaError
from onspec.grammar.places import Places
from onspec.grammar.unevaluated import APPLICATORS, Evaluated

ANNOTATIONS = frozenset(
    {"$schema", "$id", "id", "$comment", "$defs", "definitions", "$anchor", "$dynamicAnchor", "$vocabulary"}
    | {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly"}
    | {"contentEncoding", "contentMediaType", "contentSchema", "nullable", "version"}
)
"""Keywords that say nothing about validity."""

TYPES = ("object", "array", "string", "number", "boolean", "null")

Conj = tuple[Any, ...]
"""Schemas that all hold at one place."""

_DRAFT = re.compile(r"draft-0([467])|draft/(2019)-09")
_NEWEST = 2020
_SINCE = {
    **dict.fromkeys(("const", "contains", "propertyNames"), 6),
    **dict.fromkeys(("if", "then", "else"), 7),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "minContains", "maxContains"), 2019),
    **dict.fromkeys(("unevaluatedProperties", "unevaluatedItems"), 2019),
    "prefixItems": 2020,
}
"""Keywords, each with the draft that brought it: an older one passes over them."""

_MOST_PAIRED = 64
"""Arms of a `oneOf` that are compared with one another."""

_DEEPEST = 12
"""Levels of `oneOf` inside `oneOf` that are looked into to tell arms apart."""


class Document:
    """One schema document, read place by place.

    Args:
        schema: The document.
        note: Told the name of each keyword that cannot be followed exactly.
    """

    def __init__(self, schema: Mapping[str, Any] | bool, note: Callable[[str], None]) -> None:
        self.schema = schema
        self._note = note
        self._keep: list[Any] = [schema]
        self._plain: dict[int, dict[str, Any]] = {}
        self._closed: dict[int, dict[str, Any]] = {}
        draft = schema.get("$schema", "") if isinstance(schema, Mapping) else ""
        found = _DRAFT.search(draft if isinstance(draft, str) else "")
        self.draft = int(found[1] or found[2]) if found else _NEWEST
        # Up to draft 7, a `$ref` hides its siblings.
        self._siblings = self.draft > 7
        self._places = Places(schema)
        self._told_apart: dict[tuple[int, ...], bool] = {}
        self._deep = 0

    def made(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Keep a schema that was made up alive, so that its identity stays its own."""
        self._keep.append(schema)
        return schema

    def flatten(self, conj: Conj) -> tuple[list[dict[str, Any]] | None, list[list[Any]]]:
        """The schemas of `conj` without `$ref` and `allOf`, and the lists of alternatives among them."""
        flat: list[dict[str, Any]] = []
        choices: list[list[Any]] = []
        seen: set[int] = set()
        todo = list(reversed(conj))
        while todo:
            part = todo.pop()
            if part is True or id(part) in seen:
                continue
            if part is False:
                return None, []
            if not isinstance(part, Mapping):
                raise SchemaError("a subschema is an object or a boolean")
            seen.add(id(part))
            reference = part.get("$ref", part.get("$dynamicRef", part.get("$recursiveRef")))
            if isinstance(reference, str):
                todo.append(self._places.find(reference, part))
                if not self._siblings:
                    continue
            plain = self._read(part)
            todo += self._unevaluated(part, plain)
            for combined in plain.pop("allOf", ()):
                todo.append(combined)
            for keyword in ("anyOf", "oneOf"):
                if keyword in plain:
                    alternatives = plain.pop(keyword)
                    if keyword == "oneOf" and not self._apart(alternatives):
                        self._note("oneOf")
                    choices.append(list(alternatives))
            for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
                plain.pop(keyword, None)
            if not self._negation(plain):
                return None, []
            if plain:
                flat.append(self._cached(part, plain))
        return flat, choices

    def _cached(self, part: Mapping[str, Any], plain: dict[str, Any]) -> dict[str, Any]:
        # A schema that lost nothing keeps its identity, so that rules made from it are found again.
        if isinstance(part, dict) and plain == part:
            return part
        known = self._plain.get(id(part))
        if known is None or known != plain:
            known = self._plain[id(part)] = self.made(plain)
        return known

    def _negation(self, plain: dict[str, Any]) -> bool:
        """Work a `not` into the schema where that is exact; False where it refuses everything."""
        if "not" not in plain:
            return True
        negated = plain["not"]
        if negated is False:
            del plain["not"]
            return True
        if negated is True or negated == {}:
            return False
        if "enum" in plain or "const" in plain:
            return True
        meaning = {key: value for key, value in negated.items() if key not in ANNOTATIONS}
        if set(meaning) == {"required"} and len(meaning["required"]) == 1 and _only_object(plain):
            key = meaning["required"][0]
            del plain["not"]
            plain["properties"] = {**plain.get("properties", {}), key: False}
            return True
        if set(meaning) == {"type"} and isinstance(meaning["type"], str | list):
            gone = {meaning["type"]} if isinstance(meaning["type"], str) else set(meaning["type"])
            if "integer" not in gone:
                gone |= {"integer"} if "number" in gone else set()
                del plain["not"]
                plain["type"] = [kind for kind in _types_of(plain) if kind not in gone]
                return True
        self._note("not")
        del plain["not"]
        return True

    def _read(self, part: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords of `part` that its draft knows."""
        if self.draft == _NEWEST:
            return dict(part)
        return {word: value for word, value in part.items() if _SINCE.get(word, 0) <= self.draft}

    def _unevaluated(self, part: Mapping[str, Any], plain: dict[str, Any]) -> list[dict[str, Any]]:
        """Say `unevaluatedProperties` and `unevaluatedItems` by other keywords; what that takes beside `plain`."""
        out = []
        if "unevaluatedProperties" in plain and ("additionalProperties" in plain or APPLICATORS & plain.keys()):
            rest = plain.pop("unevaluatedProperties")
            seen = Evaluated(self._places)
            seen.add(part, top=True)
            if not seen.sure:
                self._note("unevaluatedProperties")
            if not seen.everything and rest is not True:
                known = self._closed.get(id(part))
                if known is None:
                    known = self._closed[id(part)] = self.made(
                        {
                            "properties": dict.fromkeys(seen.names, True),
                            "patternProperties": dict.fromkeys(seen.patterns, True),
                            "additionalProperties": rest,
                        }
                    )
                out.append(known)
        if "unevaluatedItems" in plain and (
            APPLICATORS & plain.keys() or "contains" in plain or isinstance(plain.get("items"), dict | bool)
        ):
            if not isinstance(plain.get("items"), dict | bool) and plain["unevaluatedItems"] is not True:
                self._note("unevaluatedItems")
            del plain["unevaluatedItems"]
        return out

    def _apart(self, alternatives: Iterable[Any]) -> bool:
        """Whether no value can fit two of the alternatives, so that `oneOf` means `anyOf`."""
        alternatives = list(alternatives)
        key = tuple(map(id, alternatives))
        found = self._told_apart.get(key)
        if found is None and self._deep < _DEEPEST:
            self._told_apart[key] = False  # Where arms lead back to themselves, nothing is certain.
            self._deep += 1
            found = self._told_apart[key] = self._all_apart(alternatives)
            self._deep -= 1
        return bool(found)

    def _all_apart(self, alternatives: list[Any]) -> bool:
        known = []
        for alternative in alternatives:
            flat, choices = self.flatten((alternative,))
            if flat is None:
                continue
            if choices:
                return False
            known.append(flat)
        if len(known) <= _MOST_PAIRED:
            return all(self._differ(one, other) for i, one in enumerate(known) for other in known[:i])
        if _sets_apart([constants_of(flat) for flat in known]):
            return True
        if any(kinds_of(flat) != {"object"} for flat in known):
            return False
        required = [{key for part in flat for key in part.get("required", ())} for flat in known]
        return any(
            _sets_apart(
                [constants_of(part["properties"][key] for part in flat if _declares(part, key)) for flat in known]
            )
            for key in set.intersection(*required)
        )

    def _differ(self, one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
        common = _common(one, other)
        if not common or _constants_apart(one, other):
            return True
        if common != {"object"}:
            return False
        required = {key for part in one for key in part.get("required", ())}
        required_other = {key for part in other for key in part.get("required", ())}
        for key in required & required_other:
            mine = [part["properties"][key] for part in one if key in part.get("properties", {})]
            yours = [part["properties"][key] for part in other if key in part.get("properties", {})]
            if all(isinstance(part, dict) for part in mine + yours) and mine and yours:
                flat_mine, any_mine = self.flatten(tuple(mine))
                flat_yours, any_yours = self.flatten(tuple(yours))
                if flat_mine is None or flat_yours is None:
                    return True
                if any_mine or any_yours:
                    continue
                if not _common(flat_mine, flat_yours) or _constants_apart(flat_mine, flat_yours):
                    return True
        return _closed_against(one, required_other) or _closed_against(other, required)


def _common(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> set[str]:
    """Types that both allow."""
    kinds, others = kinds_of(one), kinds_of(other)
    for own in (kinds, others):
        if "number" in own:
            own.add("integer")
    return kinds & others


def _declares(part: Mapping[str, Any], key: str) -> bool:
    return isinstance(part.get("properties", {}).get(key), dict)


def _sets_apart(lists: list[list[Any] | None]) -> bool:
    """Whether all are lists of constants, and no constant stands in two of them."""
    seen: set[Any] = set()
    for values in lists:
        own = None if values is None else {same(value) for value in values}
        if own is None or own & seen:
            return False
        seen |= own
    return True


def _only_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") in ("object", ["object"])


def _types_of(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type")
    if kind is None:
        return list(TYPES)
    return [kind] if isinstance(kind, str) else list(kind)


def kinds_of(flat: Iterable[Mapping[str, Any]]) -> set[str]:
    """Types that every schema allows; `integer` stands only where `number` does not."""
    kinds = set(TYPES)
    for part in flat:
        if "type" not in part:
            continue
        allowed = set(_types_of(part))
        if "number" in allowed:
            allowed.discard("integer")
        both = kinds & allowed
        if ("integer" in allowed and "number" in kinds) or ("integer" in kinds and "number" in allowed):
            both.add("integer")
        kinds = both
    return kinds


def kind_of(value: Any) -> set[str]:
    if value is None:
        return {"null"}
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return {"integer", "number"}
    if isinstance(value, float):
        return {"number"}
    return {"string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"}


def constants_of(flat: Iterable[Mapping[str, Any]]) -> list[Any] | None:
    """The values that `enum` and `const` leave, or None where neither stands."""
    values: list[Any] | None = None
    for part in flat:
        for own in ([part["const"]] if "const" in part else None, part.get("enum")):
            if own is None:
                continue
            if values is None:
                values = list(own)
            else:
                allowed = {same(value) for value in own}
                values = [value for value in values if same(value) in allowed]
    return values


def same(value: Any) -> Any:
    """What two values have in common exactly if JSON Schema takes them for one: 1 is 1.0, and neither is true."""
    if isinstance(value, dict):
        return "object", frozenset((key, same(part)) for key, part in value.items())
    if isinstance(value, list):
        return "array", tuple(map(same, value))
    return isinstance(value, bool), value


def _constants_apart(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
    values, more = constants_of(one), constants_of(other)
    if values is None or more is None:
        return False
    return not {same(value) for value in values} & {same(value) for value in more}


def _closed_against(flat: list[dict[str, Any]], keys: set[str]) -> bool:
    """Whether some closed schema of `flat` leaves no room for one of `keys`."""
    return any(
        part.get("additionalProperties") is False
        and not part.get("patternProperties")
        and bool(keys - set(part.get("properties", {})))
        for part in flat
    )
