"""Random JSON Schemas, each with a maker of values that fit it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Make = Callable[[random.Random], Any]

NAMES = ["path", "oldText", "newText", "edits", "mode", "a", "b", "n-1", "ключ", 'q"t', "x/y", "type", "items", "é"]
PATTERNS: list[tuple[str, Make]] = [
    (r"^[a-z]{2,5}$", lambda r: "".join(r.choice("abz") for _ in range(r.randint(2, 5)))),
    (r"^\d{4}-\d{2}$", lambda r: f"{r.randint(1000, 9999)}-{r.randint(10, 99)}"),
    (r"foo|bar$", lambda r: r.choice(["a foo b", "a bar", "foo"])),
    (r"^(GET|POST) /\S*$", lambda r: r.choice(["GET /", "POST /a/b"])),
    (r"[^\x00-\x1f]", lambda r: r.choice(["é", "x\n", "\U0001f642"])),
]


def _text(rng: random.Random, low: int = 0, high: int = 8) -> str:
    alphabet = 'ab Z09"\\/\n\té☃\U0001f642{}[]:,\x7f\x01'
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(low, high)))


def _anything(rng: random.Random, depth: int = 2) -> Any:
    kind = rng.randint(0, 6 if depth else 4)
    if kind == 5:
        return [_anything(rng, depth - 1) for _ in range(rng.randint(0, 2))]
    if kind == 6:
        return {_text(rng, 1, 3): _anything(rng, depth - 1) for _ in range(rng.randint(0, 2))}
    return [None, True, rng.randint(-9, 99), rng.choice([0.5, -2.25, 1e-7, 3e30]), _text(rng)][kind]


def schema_and_maker(rng: random.Random, depth: int = 3) -> tuple[Any, Make]:
    """One random schema and a function that makes values that fit it."""
    kinds = [_string, _patterned, _integer, _number, _enum, _const, _word, _any]
    if depth:
        kinds += [_object, _object, _object, _array, _tuple, _any_of, _all_of, _map, _patterned_keys, _types]
    return rng.choice(kinds)(rng, depth)


def _string(rng: random.Random, depth: int) -> tuple[Any, Make]:
    low, high = rng.choice([(0, None), (0, 5), (3, None), (2, 4), (0, None)])
    schema: dict[str, Any] = {"type": "string", "description": "text"}
    if low:
        schema["minLength"] = low
    if high is not None:
        schema["maxLength"] = high
    return schema, lambda r: _text(r, low, 8 if high is None else high)


def _patterned(rng: random.Random, depth: int) -> tuple[Any, Make]:
    pattern, make = rng.choice(PATTERNS)
    return {"type": "string", "pattern": pattern}, make


def _integer(rng: random.Random, depth: int) -> tuple[Any, Make]:
    low = rng.choice([None, 0, -17, 5, 998])
    high = rng.choice([None, 1203, 100000]) if low is None or low < 900 else rng.choice([None, 1203])
    schema: dict[str, Any] = {"type": "integer"}
    if low is not None:
        schema["minimum"] = low
    if high is not None:
        schema[rng.choice(["maximum", "exclusiveMaximum"])] = high
    first = -50 if low is None else low
    return schema, lambda r: r.randint(first, (first + 3000 if high is None else high - 1))


def _number(rng: random.Random, depth: int) -> tuple[Any, Make]:
    if rng.random() < 0.5:
        return {"type": "number"}, lambda r: r.choice([0, -1.5, 12345.678, 1e-9, 2.5e21, r.randint(-5, 5)])
    return {"type": "number", "minimum": -2.5, "maximum": 40}, lambda r: round(r.uniform(-2.5, 40), 3)


def _enum(rng: random.Random, depth: int) -> tuple[Any, Make]:
    values = rng.sample(["a", "b c", 'd"e', "é", 1, 2.5, None, True, ["x", 1], {"k": "v", "l": 2}], rng.randint(1, 5))
    return {"enum": values}, lambda r: r.choice(values)


def _const(rng: random.Random, depth: int) -> tuple[Any, Make]:
    value = _anything(rng, 1)
    return {"const": value}, lambda r: value


def _word(rng: random.Random, depth: int) -> tuple[Any, Make]:
    return rng.choice([({"type": "boolean"}, lambda r: r.random() < 0.5), ({"type": "null"}, lambda r: None)])


def _any(rng: random.Random, depth: int) -> tuple[Any, Make]:
    return rng.choice([{}, True, {"title": "anything"}]), lambda r: _anything(r)


def _object(rng: random.Random, depth: int) -> tuple[Any, Make]:
    names = rng.sample(NAMES, rng.randint(0, 5))
    made = {name: schema_and_maker(rng, depth - 1) for name in names}
    required = [name for name in names if rng.random() < 0.6]
    extra = rng.choice(["closed", "closed", "open", "typed"])
    schema: dict[str, Any] = {"type": "object", "properties": {name: made[name][0] for name in names}}
    if required:
        schema["required"] = required
    other: Make | None = None
    if extra == "closed":
        schema["additionalProperties"] = False
        optional = [name for name in names if name not in required]
        if optional and rng.random() < 0.3:
            schema["maxProperties"] = len(required) + 1
        if len(optional) >= 2 and rng.random() < 0.3 and "maxProperties" not in schema:
            schema["dependentRequired"] = {optional[0]: [optional[1]]}
    elif extra == "typed":
        schema["additionalProperties"], other = schema_and_maker(rng, depth - 1)
    else:
        other = _anything

    def make(r: random.Random) -> Any:
        chosen = list(required)
        for name in names:
            if name not in required and r.random() < 0.5 and len(chosen) < schema.get("maxProperties", 99):
                chosen.append(name)
        for first, needed in schema.get("dependentRequired", {}).items():
            chosen += [name for name in needed if first in chosen and name not in chosen]
        value = {name: made[name][1](r) for name in chosen}
        if other is not None and r.random() < 0.5:
            key = _text(r, 1, 4)
            if key not in made:
                value[key] = other(r)
        items = list(value.items())
        r.shuffle(items)
        return dict(items)

    return schema, make


def _map(rng: random.Random, depth: int) -> tuple[Any, Make]:
    schema, make = schema_and_maker(rng, depth - 1)
    whole = {"type": "object", "additionalProperties": schema, "minProperties": 1, "maxProperties": 3}
    return whole, lambda r: {f"k{i}": make(r) for i in range(r.randint(1, 3))}


def _patterned_keys(rng: random.Random, depth: int) -> tuple[Any, Make]:
    schema, make = schema_and_maker(rng, depth - 1)
    whole = {"type": "object", "patternProperties": {"^x-": schema}, "additionalProperties": False}
    return whole, lambda r: {f"x-{i}": make(r) for i in range(r.randint(0, 3))}


def _array(rng: random.Random, depth: int) -> tuple[Any, Make]:
    schema, make = schema_and_maker(rng, depth - 1)
    low, high = rng.choice([(0, None), (1, None), (0, 2), (2, 3), (0, 0)])
    whole: dict[str, Any] = {"type": "array", "items": schema}
    if low:
        whole["minItems"] = low
    if high is not None:
        whole["maxItems"] = high
    return whole, lambda r: [make(r) for _ in range(r.randint(low, 3 if high is None else high))]


def _tuple(rng: random.Random, depth: int) -> tuple[Any, Make]:
    parts = [schema_and_maker(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    whole = {"type": "array", "prefixItems": [schema for schema, _ in parts], "items": False}
    return whole, lambda r: [make(r) for _, make in parts[: r.randint(0, len(parts))]]


def _any_of(rng: random.Random, depth: int) -> tuple[Any, Make]:
    parts = [schema_and_maker(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    return {"anyOf": [schema for schema, _ in parts]}, lambda r: r.choice(parts)[1](r)


def _types(rng: random.Random, depth: int) -> tuple[Any, Make]:
    return {"type": ["string", "null", "integer"]}, lambda r: r.choice([None, 3, _text(r)])


def _all_of(rng: random.Random, depth: int) -> tuple[Any, Make]:
    one, make = _object(rng, depth)
    return {"allOf": [one, {"type": "object"}], "description": "both"}, make


def shuffled(value: Any, rng: random.Random) -> Any:
    """The same value with the keys of all its objects in another order."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: shuffled(value[key], rng) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, rng) for item in value]
    return value
