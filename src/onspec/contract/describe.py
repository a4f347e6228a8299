"""The judge's errors as violations: every one, with what was found and what the schema allows there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from onspec.audit import Json, Path, Violation, pointer
from onspec.contract.schema import Schema
from onspec.contract.view import Places, Views

MAX_VIOLATIONS = 50
"""How many violations of one call are listed."""

_PARTS = 2000
"""Parts of a value above which not every error is looked for."""

_ITEMS = 50
"""Items of an array that are looked at then."""

MAX_WORDS = 120
"""Longest list of allowed values or keys, in characters."""


def violations(schema: Schema, value: Json) -> list[Violation]:
    """Every way in which a value breaks a schema, at most `MAX_VIOLATIONS`. No payload is echoed.

    Of a value of many parts, only the first items of its arrays are looked at, or where these are sound, the first
    error alone: the judge makes every error of a union at once, and there may be millions.
    """
    if not _many(value):
        return _all(schema, value, schema.judge.iter_errors(value))
    cut: set[Path] = set()
    first = _first_items(value, (), cut)
    errors = [e for e in schema.judge.iter_errors(first) if tuple(e.instance_path) not in cut]
    found = _all(schema, value, iter(errors))
    if found:
        return found
    try:
        schema.judge.validate(value)
    except jsonschema_rs.ValidationError as error:
        return _all(schema, value, iter([error]))
    return []


def _all(schema: Schema, value: Json, errors: Iterator[Any]) -> list[Violation]:
    found: list[Violation] = []
    for error in errors:
        found.extend(_of(error, schema, value))
        if len(found) >= MAX_VIOLATIONS:
            break
    return found[:MAX_VIOLATIONS]


def _many(value: Json) -> bool:
    """Whether a value has more than `_PARTS` parts."""
    stack, left = [value], _PARTS
    while stack:
        item = stack.pop()
        if isinstance(item, dict | list):
            left -= len(item)
            if left < 0:
                return True
            stack.extend(item.values() if isinstance(item, dict) else item)
    return False


def _first_items(value: Json, path: Path, cut: set[Path]) -> Json:
    """A copy of a value in which arrays end behind their first `_ITEMS` items; `cut` takes the paths of those."""
    if isinstance(value, dict):
        return {key: _first_items(item, (*path, key), cut) for key, item in value.items()}
    if isinstance(value, list):
        if len(value) > _ITEMS:
            cut.add(path)
        return [_first_items(item, (*path, index), cut) for index, item in enumerate(value[:_ITEMS])]
    return value


def undeclared(views: Views, value: Json) -> tuple[str, ...]:
    """JSON Pointers of the keys that the schema names nowhere at their place, where it names any."""
    found: list[str] = []
    stack: list[tuple[Path, Json, Places]] = [((), value, ("",))]
    while stack:
        path, item, places = stack.pop()
        here = views.of(places) if places else []
        if isinstance(item, dict) and any(view.properties for view in here):
            for key, inner in item.items():
                sub = next((s for view in here if (s := view.places_of(key)) is not None), None)
                if sub is not None:
                    stack.append(((*path, key), inner, sub))
                elif not any(view.free for view in here):
                    found.append(pointer((*path, key)))
        elif isinstance(item, list) and here:
            stack.extend(((*path, index), inner, here[0].item_places(index)) for index, inner in enumerate(item))
    return tuple(sorted(found))


def found_word(value: Json) -> str:
    """What a value is, in a word that shows no payload."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        text = str(value)
        return text if len(text) <= 24 else "a number"
    if isinstance(value, str) and len(value) > 1 and value[0] + value[-1] in ("[]", "{}"):
        return f"a string that holds an {'array' if value[0] == '[' else 'object'}"
    if isinstance(value, str):
        return "an empty string" if not value else f"a string of {len(value)} character{'s' * (len(value) > 1)}"
    if isinstance(value, list):
        return "an empty array" if not value else f"an array of {len(value)}"
    return "an empty object" if not value else "an object"


def listed(items: list[Any]) -> str:
    """Allowed values or keys in a line."""
    text = ", ".join(item if isinstance(item, str) else str(item) for item in items)
    return text if len(text) <= MAX_WORDS else text[:MAX_WORDS].rsplit(", ", 1)[0] + " ..."


def _of(error: Any, schema: Schema, root: Json) -> Iterator[Violation]:
    path: Path = tuple(error.instance_path)
    kind_of = error.kind
    name = kind_of.name
    value = error.instance if hasattr(error, "instance") else _value(root, path)
    place = pointer(path)
    if name in ("anyOf", "oneOf") and getattr(kind_of, "context", None):
        yield from _union(kind_of.context, schema, root, path, value)
    elif name in ("additionalProperties", "unevaluatedProperties", "false schema") and getattr(
        kind_of, "unexpected", None
    ):
        declared = _declared(schema, error)
        for key in kind_of.unexpected[:MAX_VIOLATIONS]:
            where = pointer((*path, key)) if len(key) <= 64 else place
            yield Violation("unknown_key", where, "a key that is not declared", declared, "a key that is not declared")
    elif name == "required":
        key = kind_of.property
        message = "a required key is missing"
        yield Violation("missing_required", pointer((*path, key)), message, _wanted(schema, error, key), "nothing")
    elif name == "type":
        types = kind_of.types if isinstance(kind_of.types, list) else [kind_of.types]
        yield Violation("wrong_type", place, "the wrong type", listed(types), found_word(value))
    elif name in ("enum", "const"):
        options = kind_of.options if name == "enum" else [kind_of.expected_value]
        yield Violation("not_in_enum", place, "not one of the allowed values", listed(options), found_word(value))
    elif name in ("anyOf", "oneOf"):
        yield Violation("invalid_value", place, "fits more than one arm of the union", found=found_word(value))
    else:
        message, wanted = _SAID.get(name, (f"breaks {name}", None))
        limit = next((v for v in (getattr(kind_of, key, None) for key in _LIMITS) if v is not None), None)
        expected = wanted.format(limit) if wanted and limit is not None else None
        yield Violation(_code(name), place, message, listed([expected]) if expected else None, found_word(value))


_LIMITS = ("limit", "pattern", "format", "multiple_of")
_SAID: dict[str, tuple[str, str | None]] = {
    # what a keyword says of a value that breaks it, and what it wants
    "minimum": ("too small", "at least {}"),
    "maximum": ("too large", "at most {}"),
    "exclusiveMinimum": ("too small", "more than {}"),
    "exclusiveMaximum": ("too large", "less than {}"),
    "multipleOf": ("not a multiple", "a multiple of {}"),
    "minLength": ("too short", "at least {} characters"),
    "maxLength": ("too long", "at most {} characters"),
    "minItems": ("too few items", "at least {}"),
    "maxItems": ("too many items", "at most {}"),
    "minProperties": ("too few keys", "at least {}"),
    "maxProperties": ("too many keys", "at most {}"),
    "uniqueItems": ("an item stands twice", None),
    "contains": ("lacks an item that the schema asks for", None),
    "pattern": ("does not match the pattern", "{}"),
    "format": ("not in the format", "{}"),
    "propertyNames": ("a key is not spelled as the schema asks", None),
    "not": ("a value that the schema rules out", None),
    "falseSchema": ("no value is allowed here", None),
    "false schema": ("no value is allowed here", None),
}


def _code(name: str) -> str:
    if name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
        return "out_of_range"
    if name in ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"):
        return "wrong_size"
    return "invalid_value"


def _union(context: list[list[Any]], schema: Schema, root: Json, path: Path, value: Json) -> Iterator[Violation]:
    """The errors of the nearest arm: a matching type, then the constants it names, then the fewest errors."""
    arms = [arm for arm in context if arm]
    if not arms:
        yield Violation("invalid_value", pointer(path), "fits more than one arm of the union", found=found_word(value))
        return

    def distance(arm: list[Any]) -> tuple[bool, int, int]:
        here = [e for e in arm if tuple(e.instance_path) == path and e.kind.name in ("type", "const", "enum")]
        other = [e for e in arm if len(e.instance_path) > len(path) and e.kind.name in ("const", "enum")]
        return bool(here), len(other), len(arm)

    best = min(arms, key=distance)
    if all(distance(arm)[0] for arm in arms):
        types = []
        for arm in arms:
            for error in arm:
                if error.kind.name == "type":
                    types.extend(error.kind.types if isinstance(error.kind.types, list) else [error.kind.types])
                elif error.kind.name == "enum":
                    types.extend(error.kind.options)
        words = list(dict.fromkeys(str(word) for word in types))
        yield Violation("wrong_type", pointer(path), "fits no arm of the union", listed(words), found_word(value))
        return
    for error in best:
        yield from _of(error, schema, root)


def _value(root: Json, path: Path) -> Json:
    for part in path:
        try:
            root = root[part]
        except (KeyError, IndexError, TypeError):
            return None
    return root


def _schema_at(schema: Schema, error: Any) -> Any:
    node: Any = schema.document
    for part in list(error.schema_path)[:-1]:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            return {}
    return node


def _declared(schema: Schema, error: Any) -> str:
    node = _schema_at(schema, error)
    properties = node.get("properties") if isinstance(node, dict) else None
    return listed(list(properties)) if isinstance(properties, dict) and properties else "no keys"


def _wanted(schema: Schema, error: Any, key: str) -> str | None:
    node = _schema_at(schema, error)
    properties = node.get("properties") if isinstance(node, dict) else None
    sub = properties.get(key) if isinstance(properties, dict) else None
    if not isinstance(sub, dict):
        return None
    declared = sub.get("type")
    if isinstance(sub.get("enum"), list):
        return f"one of {listed(sub['enum'])}"
    if isinstance(declared, list):
        return listed(declared)
    return declared if isinstance(declared, str) else None
