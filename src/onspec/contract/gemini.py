"""Gemini's schema dialect, an OpenAPI subset, as JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onspec.errors import SchemaError

_SPELLING = {
    "any_of": "anyOf",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "additional_properties": "additionalProperties",
    "prefix_items": "prefixItems",
    "defs": "$defs",
    "ref": "$ref",
}
"""Keywords as the Python SDK writes them, to the wire's."""

_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
"""64-bit counts: the wire writes them as strings."""

_NO_MEANING = frozenset({"nullable", "propertyOrdering", "property_ordering", "example"})
"""Keywords without a JSON Schema meaning of their own."""


def json_schema(schema: Any) -> Any:
    """The JSON Schema that says what a Gemini `Schema` says.

    Upper-case types become lower case, `nullable` becomes a null type, counts written as strings become numbers. What
    is JSON Schema already comes back equal.

    Raises:
        SchemaError: It is nested too deeply to be read.
    """
    try:
        return _convert(schema)
    except RecursionError:
        raise SchemaError("the schema is nested too deeply") from None


def _convert(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    out: dict[str, Any] = {}
    for spelling, value in schema.items():
        if spelling in _NO_MEANING:
            continue
        key = _SPELLING.get(str(spelling), str(spelling))
        reader = _READERS.get(key)
        out[key] = _count(value) if key in _COUNTS else reader(value) if reader else value
    if out.get("type") == "":
        del out["type"]
    return _nullable(out) if schema.get("nullable") is True else out


def _type(value: Any) -> Any:
    if isinstance(value, str):
        return "" if value == "TYPE_UNSPECIFIED" else value.lower()
    if isinstance(value, list):
        return [_type(one) for one in value]
    return value


def _count(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


def _each(value: Any) -> Any:
    return [_convert(one) for one in value] if isinstance(value, list) else value


def _named(value: Any) -> Any:
    return {name: _convert(one) for name, one in value.items()} if isinstance(value, Mapping) else value


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "null":
        schema["type"] = [kind, "null"]
    elif isinstance(kind, list) and "null" not in kind:
        schema["type"] = [*kind, "null"]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    if isinstance(schema.get("anyOf"), list) and {"type": "null"} not in schema["anyOf"]:
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return schema


_READERS: dict[str, Callable[[Any], Any]] = {
    "type": _type,
    "items": _convert,
    "additionalProperties": _convert,
    "not": _convert,
    "anyOf": _each,
    "oneOf": _each,
    "allOf": _each,
    "prefixItems": _each,
    "properties": _named,
    "$defs": _named,
    "definitions": _named,
    "patternProperties": _named,
}
"""How the value of a keyword is read; the others are data."""
