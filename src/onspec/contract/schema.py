"""A tool's JSON Schema, compiled: the judge of the whole value, and of the value at any place in it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jsonschema_rs
import orjson

from onspec.audit import Json
from onspec.errors import SchemaError

BACKTRACK_LIMIT = 100_000
"""Steps a `pattern` may backtrack before the value counts as not matching."""

MAX_SCHEMA_BYTES = 4 * 1024 * 1024
"""Largest schema, in bytes of JSON, that is compiled."""

ROOT = "urn:onspec:schema"
"""Address under which a tool's schema refers to itself."""

Validator = Any
"""A compiled `jsonschema_rs` validator."""


class Schema:
    """A compiled JSON Schema (2020-12, 2019-09, draft-07 and older, by `$schema`; 2020-12 where it names none).

    Attributes:
        document: The schema as given.
        judge: The compiled validator of the whole value.
        rigid: Whether all that fits holds every declared key, no other one, and no number.

    Raises:
        SchemaError: It is not JSON Schema, a `$ref` points outside the document (nothing is ever fetched), it is
            larger than `MAX_SCHEMA_BYTES`, or nested too deeply to be read.
    """

    __slots__ = ("_registry", "_subs", "document", "judge", "rigid")

    def __init__(self, document: dict[str, Any] | bool) -> None:
        if not isinstance(document, dict | bool):
            raise SchemaError(f"a schema is an object or a boolean, not {type(document).__name__}{_of_model(document)}")
        try:
            size = len(orjson.dumps(document))
        except (TypeError, ValueError, RecursionError) as error:
            raise SchemaError(f"the schema is not JSON: {error}") from None
        if size > MAX_SCHEMA_BYTES:
            raise SchemaError(f"the schema has {size} bytes; the limit is {MAX_SCHEMA_BYTES}")
        self.document = document
        self.judge = _compile(document)
        self.rigid = _rigid(document)
        self._registry: Any = None
        self._subs: dict[str, Validator] = {}

    def judge_at(self, place: str) -> Validator:
        """The compiled validator of the subschema at `place`, a JSON Pointer into the document ("" is the root).

        A place that the schema's draft does not read, and that is no schema, takes any value: the judge of the whole
        does not look there either.
        """
        if not place:
            return self.judge
        found = self._subs.get(place)
        if found is None:
            if self._registry is None:
                self._registry = jsonschema_rs.Registry([(ROOT, self._registrable())])
            try:
                found = _compile({"$ref": f"{ROOT}#{_fragment(place)}", **_draft(self.document)}, self._registry)
            except SchemaError:
                found = _compile(True)
            self._subs[place] = found
        return found

    def _registrable(self) -> Json:
        if isinstance(self.document, dict) and "$id" in self.document:
            return {key: value for key, value in self.document.items() if key != "$id"}
        return self.document


def _compile(document: dict[str, Any] | bool, registry: Any = None) -> Validator:
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)
    try:
        return jsonschema_rs.validator_for(document, registry=registry, offline=True, pattern_options=options)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise SchemaError(_first_line(error)) from None
    except RecursionError:
        raise SchemaError("the schema is nested too deeply") from None


def _first_line(error: Exception) -> str:
    text = str(error).strip().split("\n", 1)[0]
    if "is not present in a registry" in text:
        return f"{text.split(' is not present', 1)[0]} is outside the schema; a remote $ref is never fetched"
    where = [str(step) for step in getattr(error, "instance_path", ())]
    return f"not a usable JSON Schema: {text}" + (f" (at /{'/'.join(where)})" if where else "")


def _of_model(given: object) -> str:
    """A way on, where the class of a pydantic model stands in place of its schema."""
    if isinstance(given, type) and hasattr(given, "model_json_schema"):
        return f"; that of a pydantic model is {given.__name__}.model_json_schema()"
    return ""


def _draft(document: dict[str, Any] | bool) -> dict[str, Any]:
    if isinstance(document, dict) and isinstance(document.get("$schema"), str):
        return {"$schema": document["$schema"]}
    return {}


def _rigid(document: Any) -> bool:
    """Whether the schema is made of closed objects whose keys are all required, lists, strings and flags only."""
    if not isinstance(document, dict):
        return False
    kind = document.get("type")
    if kind in ("string", "boolean"):
        return True
    if kind == "array":
        return _rigid(document.get("items")) and not document.keys() & {"prefixItems", "additionalItems"}
    properties = document.get("properties")
    if kind != "object" or not isinstance(properties, dict) or document.get("additionalProperties") is not False:
        return False
    if document.keys() & {"patternProperties", "$ref", "anyOf", "oneOf", "allOf"}:
        return False
    return set(properties) <= set(document.get("required") or ()) and all(map(_rigid, properties.values()))


@lru_cache(maxsize=4096)
def _fragment(place: str) -> str:
    safe = "/-._~!$&'()*+,;=:@?"
    return "".join(
        char if char.isascii() and (char.isalnum() or char in safe) else "".join(f"%{b:02X}" for b in char.encode())
        for char in place
    )


@lru_cache(maxsize=4096)
def _pattern(pattern: str) -> Validator | None:
    try:
        return _compile({"pattern": pattern})
    except SchemaError:
        return None


def matches(pattern: str, text: str) -> bool:
    """Whether a text matches an ECMA 262 pattern, in bounded time; a pattern that cannot be compiled matches all."""
    judge = _pattern(pattern)
    return judge is None or bool(judge.is_valid(text))
