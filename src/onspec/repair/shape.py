"""What a schema says at one place, as far as it can be used before the value there is complete."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["object", "array", "string", "scalar", "any", "whole"]

NOTES = frozenset(
    [
        "title",
        "description",
        "default",
        "examples",
        "example",
        "$schema",
        "$id",
        "$comment",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$defs",
        "definitions",
    ]
)
"""Keywords that say nothing about which values are valid."""

STARTS = {'"': "string", "{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}
"""JSON type by the first character of a value; everything else begins a number or is not JSON."""

MAX_REFS = 32


@dataclass(frozen=True, slots=True)
class Place:
    """A subschema and its JSON Pointer in the tool's schema."""

    node: Any
    pointer: str


@dataclass(frozen=True, slots=True)
class Shape:
    """How a value that begins in a given way may be judged while it arrives.

    Attributes:
        kind: `object`, `array` and `string` may be judged part by part, `any` is always valid, `scalar` and `whole`
            only when complete, by the validator at `place`.
        place: Where in the schema this is decided.
        members: The places of an object's declared members.
        extra: The place of undeclared members; None where there may be none.
        required: Members that must be there when the object closes.
        item: The place of an array's items.
        counted: Whether the closed container must be shown to the validator.
    """

    kind: Kind
    place: Place
    members: dict[str, Place] = field(default_factory=dict)
    extra: Place | None = None
    required: frozenset[str] = frozenset()
    item: Place | None = None
    counted: bool = False


def shape(document: Any, place: Place, start: str) -> Shape | None:
    """The shape of a value that begins with `start`; None where none begins so."""
    node, pointer = place.node, place.pointer
    for _ in range(MAX_REFS):
        if not isinstance(node, dict) or "$ref" not in node:
            break
        target = node["$ref"]
        if set(node) - NOTES - {"$ref"} or not isinstance(target, str) or not target.startswith("#/"):
            return Shape("whole", Place(node, pointer))
        pointer = target[1:]
        node = _resolve(document, pointer)
        if node is None:
            return Shape("whole", place)
    here = Place(node, pointer)
    if node is True or (isinstance(node, dict) and not set(node) - NOTES):
        return Shape("any", here)
    if not isinstance(node, dict):
        return None
    found = STARTS.get(start, "number")
    if "anyOf" in node:
        return _of_arms(document, here, start)
    types = node.get("type", [])
    types = [types] if isinstance(types, str) else types
    if not isinstance(types, list) or not types:
        return Shape("whole", here)
    allowed = {"number" if name == "integer" else name for name in types}
    if found not in allowed:
        return None
    used = set(node) - NOTES - {"type"}
    if found == "object":
        return _of_object(here, used)
    if found == "array":
        return _of_array(here, used)
    if found == "string":
        return Shape("string" if not used & _STRING_RULES and not used & _ANY_RULES else "whole", here)
    return Shape("scalar", here)


_ANY_RULES = frozenset(
    ["enum", "const", "allOf", "oneOf", "anyOf", "not", "if", "then", "else", "$dynamicRef", "$recursiveRef"]
)
_STRING_RULES = frozenset(
    ["pattern", "format", "minLength", "maxLength", "contentEncoding", "contentMediaType", "contentSchema"]
)
_OBJECT_RULES = frozenset({"properties", "required", "additionalProperties"})
_ARRAY_RULES = frozenset({"items", "minItems", "maxItems", "uniqueItems"})
_OTHER_TYPES = (
    _STRING_RULES
    | _OBJECT_RULES
    | _ARRAY_RULES
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
)


def _of_object(here: Place, used: set[str]) -> Shape:
    if used - (_OTHER_TYPES | _OBJECT_RULES):
        return Shape("whole", here)
    node, pointer = here.node, here.pointer
    declared = node.get("properties", {})
    required = node.get("required", [])
    more = node.get("additionalProperties", True)
    if not isinstance(declared, dict) or not isinstance(required, list):
        return Shape("whole", here)
    members = {
        name: Place(sub, f"{pointer}/properties/{name.replace('~', '~0').replace('/', '~1')}")
        for name, sub in declared.items()
    }
    extra = (
        Place(more, f"{pointer}/additionalProperties" if isinstance(more, dict) else "") if more is not False else None
    )
    return Shape("object", here, members, extra, frozenset(map(str, required)))


def _of_array(here: Place, used: set[str]) -> Shape:
    if used - (_OTHER_TYPES | _ARRAY_RULES):
        return Shape("whole", here)
    node, pointer = here.node, here.pointer
    items = node.get("items", True)
    if isinstance(items, list):
        return Shape("whole", here)
    item = Place(items, f"{pointer}/items" if isinstance(items, dict) else "")
    return Shape("array", here, item=item, counted=bool(used & {"minItems", "maxItems", "uniqueItems"}))


def _of_arms(document: Any, here: Place, start: str) -> Shape | None:
    if set(here.node) - NOTES - {"anyOf"} or not isinstance(here.node["anyOf"], list):
        return Shape("whole", here)
    arms = [
        found
        for index, arm in enumerate(here.node["anyOf"])
        if (found := shape(document, Place(arm, f"{here.pointer}/anyOf/{index}"), start)) is not None
    ]
    if not arms:
        return None
    return arms[0] if len(arms) == 1 else Shape("whole", here)


def _resolve(document: Any, pointer: str) -> Any:
    node = document
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and part in node:
            node = node[part]
        elif isinstance(node, list) and part.isdigit() and int(part) < len(node):
            node = node[int(part)]
        else:
            return None
    return node
