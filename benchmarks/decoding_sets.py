"""The texts by which engines are judged: valid and invalid calls for many schemas, and prefixes that may trap one."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.grammar.generated import _object, shuffled

from onspec.contract.schema import Schema
from onspec.contract.toolset import Toolset
from onspec.errors import OnspecError
from onspec.grammar.closing import close
from onspec.grammar.exact import compile_exact
from onspec.grammar.llguidance import Vocabulary

Row = dict[str, Any]
"""`schema`, `text`, `valid`, and `kind`: what the text is; `formats`, where formats count."""

SCHEMAS = 100
DRAWS = 6
"""Values drawn for one real tool."""


def rows(tools: Path | None = None, cases: Path | None = None) -> list[Row]:
    """All texts, each judged by jsonschema-rs.

    Args:
        tools: A folder of tool definitions, files as agents send them.
        cases: A folder of JSON files with `schema` and `tests`, each with `data` and `valid`.
    """
    found = [row for schema, values in generated() for row in _judged(schema, values)]
    if tools is not None:
        found += [row for schema in real(tools) for row in _judged(schema, _drawn(schema))]
    if cases is not None:
        found += list(_given(cases))
    return found


def generated() -> Iterator[tuple[Row, list[Any]]]:
    """Schemas of objects, made at random, with values that fit."""
    number = count = 0
    while count < SCHEMAS:
        rng = random.Random(number)
        number += 1
        schema, make = _object(rng, 2)
        if not schema["properties"]:
            continue
        count += 1
        yield schema, [make(rng) for _ in range(3)]


def real(folder: Path) -> list[Row]:
    """The different schemas of all tools in a folder."""
    found: dict[str, Row] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name.endswith(".meta.json"):
            continue
        try:
            tools = Toolset.from_json(json.loads(path.read_bytes()))
        except (OnspecError, ValueError):
            continue
        for tool in tools.values():
            if tool.schema is not None and isinstance(tool.schema.document, dict):
                found.setdefault(json.dumps(tool.schema.document, sort_keys=True), dict(tool.schema.document))
    return list(found.values())


def _drawn(schema: Row) -> list[Any]:
    """Values drawn from the exact grammar; the judge decides whether they fit."""
    words, values = Vocabulary.of_bytes(), []
    try:
        exact = compile_exact(schema, root="object")
    except OnspecError:
        return []
    for number in range(DRAWS):
        rng, matcher, text = random.Random(number), words.matcher(exact.grammar(False)), b""
        for _ in range(rng.randint(0, 120)):
            mask = matcher.mask()
            allowed = [token for token in range(32, 127) if mask[token]]
            if not allowed or matcher.accepting():
                break
            marks = [token for token in allowed if token in b'"{}[],:']
            token = rng.choice(marks if marks and rng.random() < 0.5 else allowed)
            matcher.consume(token)
            text += bytes([token])
        ending = close(matcher, text, exact.pieces)
        if ending is not None:
            values.append(json.loads(text + ending.text))
    return values


def _judged(schema: Row, values: list[Any]) -> Iterator[Row]:
    judge = Schema(schema).judge
    rng = random.Random(len(json.dumps(schema)))

    def row(kind: str, text: str) -> Row:
        return {"schema": schema, "kind": kind, "text": text, "valid": kind in ("plain", "shuffled")}

    for value in values:
        if not isinstance(value, dict) or not judge.is_valid(value):
            continue
        yield row("plain", json.dumps(value))
        other = shuffled(value, rng)
        if json.dumps(other) != json.dumps(value):
            yield row("shuffled", json.dumps(other))
        for kind, made in _damaged(value, schema):
            if not judge.is_valid(made):
                yield row(kind, json.dumps(made))
        declared = [key for key in value if key in schema.get("properties", {})]
        if declared:
            again = json.dumps(value)[:-1] + f", {json.dumps(declared[0])}: {json.dumps(value[declared[0]])}}}"
            yield row("duplicate key", again)


def _damaged(value: Row, schema: Row) -> Iterator[tuple[str, Row]]:
    yield "invented key", {**value, "requireUnique": True}
    for key in schema.get("required", [])[:2]:
        if key in value:
            yield "missing key", {name: item for name, item in value.items() if name != key}
    for key in list(value)[:3]:
        for wrong in ([[["x"]]], "\x00no", -1e9, None):
            yield "wrong value", {**value, key: wrong}


def _given(folder: Path) -> Iterator[Row]:
    for path in sorted(folder.glob("**/*.json")):
        found = json.loads(path.read_bytes())
        for test in found.get("tests", []):
            kind = "given as valid" if test["valid"] else "given as invalid"
            text = json.dumps(test["data"])
            yield {"schema": found["schema"], "kind": kind, "text": text, "valid": test["valid"], "formats": True}


def traps() -> list[tuple[Row, str]]:
    """Open schemas with a prefix that ends in a declared key, out of order and not yet closed: its closing quote must
    be allowed, or the decoder is driven into an invented key."""
    out: list[tuple[Row, str]] = [
        (
            {"type": "object", "properties": {"path": {"type": "string"}, "mode": {"type": "string"}}},
            '{"mode":"w","path',
        )
    ]
    makers: list[tuple[Row, Callable[[random.Random], Any]]] = []
    for number in range(400):
        schema, make = _object(random.Random(number), 1)
        if "additionalProperties" not in schema and len(schema["properties"]) >= 2:
            makers.append((schema, make))
    for schema, make in makers:
        for number in range(8):
            value = make(random.Random(number))
            keys = [key for key in schema["properties"] if key in value and key.isascii() and '"' not in key]
            if len(keys) >= 2:
                first, last = keys[0], keys[-1]
                out.append((schema, f"{{{json.dumps(last)}:{json.dumps(value[last])},{json.dumps(first)[:-1]}"))
                break
    return out
