"""Text of a tagged argument to a JSON value: the schema says what it is, never the look of the text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from onspec.contract.tool import Tool
from onspec.dialects.dialect import properties
from onspec.dialects.draft import Draft, Fault, Note, Pair
from onspec.dialects.envelope import ARGUMENTS

MAX_DEPTH = 16
"""References and combinators that are followed to learn a declared type."""

_HINTS = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "minimum": "number",
    "maximum": "number",
    "multipleOf": "number",
    "exclusiveMinimum": "number",
}


def wants_text(schema: Any, root: Any, depth: int = 0) -> bool:
    """Whether a string is among the values that `schema` allows, as far as its types say."""
    if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
        return True
    ref = schema.get("$ref")
    if isinstance(ref, str) and ref.startswith("#"):
        return wants_text(_resolve(root, ref), root, depth + 1)
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind == "string"
    if isinstance(kind, list):
        return "string" in kind
    if "const" in schema:
        return isinstance(schema["const"], str)
    if isinstance(schema.get("enum"), list):
        return any(isinstance(value, str) for value in schema["enum"])
    for word in ("anyOf", "oneOf"):
        if isinstance(schema.get(word), list):
            return any(wants_text(arm, root, depth + 1) for arm in schema[word])
    if isinstance(schema.get("allOf"), list):
        return all(wants_text(arm, root, depth + 1) for arm in schema["allOf"])
    return not any(word in schema for word in _HINTS)


def _resolve(root: Any, ref: str) -> Any:
    node = root
    for part in ref.lstrip("#").split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or part not in node:
            return None
        node = node[part]
    return node


def declared(tool: Tool | None, key: str) -> Any:
    """The schema of a parameter by its name or alias; None where nothing declares it."""
    if tool is None or tool.schema is None:
        return None
    found = properties(tool)
    if key in found:
        return found[key]
    if tool.aliases.get(key) in found:
        return found[tool.aliases[key]]
    document = tool.schema.document
    if not isinstance(document, Mapping):
        return None
    if isinstance(document.get("$ref"), str) or not found:
        document = _resolve(document, document.get("$ref", "#")) if "$ref" in document else document
        inner = document.get("properties") if isinstance(document, Mapping) else None
        if isinstance(inner, Mapping) and key in inner:
            return inner[key]
    extra = document.get("additionalProperties") if isinstance(document, Mapping) else None
    return extra if isinstance(extra, Mapping) else None


def is_text(tool: Tool | None, key: str) -> bool:
    """Whether the argument `key` of `tool` is text as it stands. What is not declared is text."""
    schema = declared(tool, key)
    return True if schema is None or tool is None or tool.schema is None else wants_text(schema, tool.schema.document)


def quote(text: str) -> str:
    """The JSON string of `text`. Lone surrogates are written as escapes, so that the result is always UTF-8."""
    try:
        return orjson.dumps(text).decode()
    except (TypeError, ValueError):
        return json.dumps(text)


_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")


def is_json(text: str) -> bool:
    """Whether `text` is one complete JSON value."""
    if _PLAIN.fullmatch(text):
        return True
    if text[:1] not in '{["':
        return False
    try:
        orjson.loads(text)
    except ValueError:
        return False
    return True


def join(draft: Draft, tool: Tool | None) -> str:
    """The arguments of a draft as JSON text. Marks the draft at fault where its pairs contradict one another."""
    if isinstance(draft.body, str):
        return draft.body
    pairs = draft.body
    if len(pairs) == 1 and pairs[0].key in ARGUMENTS and pairs[0].key not in properties(tool):
        inner = pairs[0].value.strip()
        if inner.startswith("{") and pairs[0].kind != "string" and is_json(inner):
            draft.notes.append(Note("envelope_unwrapped", draft.start, draft.end, pairs[0].key))
            return inner
    written: dict[str, str] = {}
    for pair in pairs:
        value = _value(pair, tool)
        before = written.get(pair.key)
        if before is None:
            written[pair.key] = value
        elif before == value:
            draft.notes.append(Note("duplicate_collapsed", draft.start, draft.end, pair.key))
        elif draft.fault is None:
            draft.fault = Fault("ambiguous_call", "two values for one parameter")
    return "{" + ", ".join(f"{quote(key)}: {value}" for key, value in written.items()) + "}"


def _value(pair: Pair, tool: Tool | None) -> str:
    if pair.kind == "string" or (pair.kind == "schema" and is_text(tool, pair.key)):
        return quote(pair.value)
    inner = pair.value.strip()
    return inner if is_json(inner) else quote(pair.value if pair.kind == "json" else inner)


_LEAKED = re.compile(r"(?:\s*</[A-Za-z_][\w:.-]{0,60}>)+\s*\Z")


def drop_markup(arguments: str, tool: Tool) -> str | None:
    """The arguments without closing markup at the end of values that are declared as no text; None if there is none."""
    try:
        value = orjson.loads(arguments)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    changed = False
    for key, item in value.items():
        if not isinstance(item, str) or is_text(tool, key):
            continue
        leaked = _LEAKED.search(item[-400:])
        if leaked:
            value[key] = item[: len(item) - len(leaked[0])]
            changed = True
    return orjson.dumps(value).decode() if changed else None
