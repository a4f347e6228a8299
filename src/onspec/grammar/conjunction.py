"""What a schema says at one place: references followed, `allOf` joined, alternatives set apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

import orjson

from onspec.errors import SchemaError

ANNOTATIONS = frozenset(
    {"$schema", "$id", "id", "$comment", "$defs", "definitions", "$anchor", "$dynamicAnchor", "$vocabulary"}
    | {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly"}
    | {"contentEncoding", "contentMediaType", "contentSchema", "nullable", "version"}
)
"""Keywords that say nothing about validity."""

TYPES = ("object", "array", "string", "number", "boolean", "null")

Conj = tuple[Any, ...]
"""Schemas that all hold at one place."""

_REMOTE = "is outside the schema; a remote $ref is never fetched"
_OLD_DRAFT = re.compile(r"draft-0[3467]")


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
        self._anchors: dict[str, Any] | None = None
        self._plain: dict[int, dict[str, Any]] = {}
        draft = schema.get("$schema", "") if isinstance(schema, Mapping) else ""
        # Up to draft 7, a `$ref` hides its siblings.
        self._siblings = not _OLD_DRAFT.search(draft if isinstance(draft, str) else "")

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
                todo.append(self._resolve(reference))
                if not self._siblings:
                    continue
            plain = dict(part)
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
                del plain["not"]
                plain["type"] = [kind for kind in _types_of(plain) if kind not in gone]
                return True
        self._note("not")
        del plain["not"]
        return True

    def _resolve(self, reference: str) -> Any:
        base = ""
        if isinstance(self.schema, Mapping):
            base = str(self.schema.get("$id", self.schema.get("id", "")))
        if base and reference.startswith(base.rstrip("#")):
            reference = reference[len(base.rstrip("#")) :] or "#"
        if reference in ("#", ""):
            return self.schema
        if not reference.startswith("#"):
            found = self._anchored().get(reference)
            if found is None:
                raise SchemaError(f"$ref {reference!r} {_REMOTE}")
            return found
        if not reference.startswith("#/"):
            found = self._anchored().get(reference)
            if found is None:
                raise SchemaError(f"$ref {reference!r} names no anchor of the schema")
            return found
        here: Any = self.schema
        for raw in reference[2:].split("/"):
            step = unquote(raw).replace("~1", "/").replace("~0", "~")
            try:
                here = here[int(step)] if isinstance(here, list) else here[step]
            except (KeyError, IndexError, ValueError, TypeError):
                raise SchemaError(f"$ref {reference!r} points at nothing in the schema") from None
        return here

    def _anchored(self) -> dict[str, Any]:
        if self._anchors is None:
            self._anchors = {}
            todo: list[Any] = [self.schema]
            while todo:
                here = todo.pop()
                if isinstance(here, Mapping):
                    for word in ("$anchor", "$dynamicAnchor"):
                        if isinstance(here.get(word), str):
                            self._anchors.setdefault(f"#{here[word]}", here)
                    for word in ("$id", "id"):
                        if isinstance(here.get(word), str):
                            self._anchors.setdefault(here[word], here)
                    todo += here.values()
                elif isinstance(here, list):
                    todo += here
        return self._anchors

    def _apart(self, alternatives: Iterable[Any]) -> bool:
        """Whether no value can fit two of the alternatives, so that `oneOf` means `anyOf`."""
        known = []
        for alternative in alternatives:
            flat, choices = self.flatten((alternative,))
            if flat is None:
                continue
            if choices:
                return False
            known.append(flat)
        return all(self._differ(one, other) for i, one in enumerate(known) for other in known[:i])

    def _differ(self, one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
        kinds, others = kinds_of(one), kinds_of(other)
        common = kinds & others
        if not common:
            return True
        values, more = constants_of(one), constants_of(other)
        if values is not None and more is not None:
            return not {orjson.dumps(v) for v in values} & {orjson.dumps(v) for v in more}
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
                scalars = kinds_of(flat_mine) & kinds_of(flat_yours)
                if not any_mine and not any_yours and (not scalars or _constants_apart(flat_mine, flat_yours)):
                    return True
        return _closed_against(one, required_other) or _closed_against(other, required)


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
                allowed = {orjson.dumps(value, option=orjson.OPT_SORT_KEYS) for value in own}
                values = [v for v in values if orjson.dumps(v, option=orjson.OPT_SORT_KEYS) in allowed]
    return values


def _constants_apart(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
    values, more = constants_of(one), constants_of(other)
    if values is None or more is None:
        return False
    return not {orjson.dumps(v) for v in values} & {orjson.dumps(v) for v in more}


def _closed_against(flat: list[dict[str, Any]], keys: set[str]) -> bool:
    """Whether some closed schema of `flat` leaves no room for one of `keys`."""
    return any(
        part.get("additionalProperties") is False
        and not part.get("patternProperties")
        and bool(keys - set(part.get("properties", {})))
        for part in flat
    )
