"""Hypothesis strategies: schemas, values that fit them, ways to write them, and defects with known truth."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import strategies as st

from onspec import Tool

WORDS = ("alpha", "bravoCount", "delta_name", "echoText", "foxtrot_list", "golfFlag", "hotel_size", "indiaMode")
"""Names of declared keys: none is a synonym, a twin or a near miss of another."""

JUNK = ("zzz", "requireUnique", "cost", "quux_", "wibble")
"""Names of invented keys: unlike every declared one."""

texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        (
            "",
            "x = {'a': \"b\"}\n",
            "C:\\temp\\new",
            "</parameter>",
            "a }{ b",
            '{"k": [1, 2]}',
            "null",
            "true",
            "12",
            "1.10",
            "```json\n{}\n```",
            "é“q”😀",
            "// no comment",
            "line\r\n\ttab",
            "<|call|>",
            "'",
            '"',
            "\\",
            "\\\\",
            "\u2028",
        )
    ),
).filter(lambda text: not text.rstrip().endswith(">"))


@cache
def scalar_schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of scalars; enums have members that no rule can take for one another."""
    return st.sampled_from(
        (
            {"type": "string"},
            {"type": "integer"},
            {"type": "number"},
            {"type": "boolean"},
            {"enum": ["red", "green", "blue"]},
            {"type": ["string", "null"]},
            {"type": "integer", "minimum": 0},
        )
    )


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


@cache
def schemas(depth: int = 2) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of values, to a depth."""
    if depth == 0:
        return scalar_schemas()
    return st.one_of(
        scalar_schemas(),
        schemas(depth - 1).map(_array),
        object_schemas(depth - 1),
    )


@st.composite
def object_schemas(draw: st.DrawFn, depth: int = 2, closed: bool | None = None) -> dict[str, Any]:
    """Schemas of objects, some of whose keys are required; closed, open, or either."""
    names = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: draw(schemas(depth)) for name in names},
        "required": draw(st.lists(st.sampled_from(names), unique=True)),
    }
    if closed if closed is not None else draw(st.booleans()):
        schema["additionalProperties"] = False
    return schema


_BIG = st.integers(-(10**20), 10**20)
_NATURAL = st.integers(0, 10**20)
_NUMBERS = st.one_of(st.integers(-1000, 1000), st.floats(allow_nan=False, allow_infinity=False, width=32))
_BOOLEANS = st.booleans()
_NULLABLE = st.one_of(texts, st.none())


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit a schema of these strategies."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema["type"]
    if kind == "string":
        return texts
    if kind == "integer":
        return _NATURAL if schema.get("minimum") == 0 else _BIG
    if kind == "number":
        return _NUMBERS
    if kind == "boolean":
        return _BOOLEANS
    if isinstance(kind, list):
        return _NULLABLE
    if kind == "array":
        return st.lists(values(schema["items"]), max_size=3)
    required = schema["required"]
    return st.fixed_dictionaries(
        {name: values(sub) for name, sub in schema["properties"].items() if name in required},
        optional={name: values(sub) for name, sub in schema["properties"].items() if name not in required},
    )


@st.composite
def calls(draw: st.DrawFn, closed: bool | None = None) -> tuple[Tool, dict[str, Any]]:
    """A tool and arguments that fit it."""
    schema = draw(object_schemas(closed=closed))
    return Tool("tool", schema), draw(values(schema))


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """A value as JSON in one of the ways in which JSON may be written."""
    style = draw(st.sampled_from((None, 2, (",", ":"), (" ,\n", " :\t"))))
    ascii_only = draw(st.booleans())
    if isinstance(style, tuple):
        text = json.dumps(value, ensure_ascii=ascii_only, separators=style)
    else:
        text = json.dumps(value, ensure_ascii=ascii_only, indent=style)
    return draw(st.sampled_from(("", " ", "\n\t"))) + text + draw(st.sampled_from(("", "\r\n", "  ")))


@dataclass(frozen=True, slots=True)
class Broken:
    """A call with defects that leave no doubt what was meant.

    Attributes:
        text: What was written.
        truth: What was meant.
        added: Strings that the defects brought in.
    """

    text: str
    truth: dict[str, Any]
    added: tuple[str, ...] = ()


def _no_apostrophe(value: Any) -> bool:
    if isinstance(value, str):
        return "'" not in value and "\\" not in value and '"' not in value and value.isprintable()
    if isinstance(value, dict):
        return all(_no_apostrophe(item) for item in value.values())
    return all(_no_apostrophe(item) for item in value) if isinstance(value, list) else True


def _raw_newlines(text: str) -> str:
    """The text with every escaped newline inside strings written raw, where that changes nothing else."""
    return text.replace("\\\\", "\0").replace("\\n", "\n").replace("\0", "\\\\")


@st.composite
def broken(draw: st.DrawFn, truth: dict[str, Any], closed: bool) -> Broken:
    """Composed defects of one sound call; each alone, and all together, leave one reading."""
    value: Any = truth
    added: tuple[str, ...] = ()
    if closed and truth and draw(st.booleans()):
        junk = draw(
            st.dictionaries(st.sampled_from(JUNK), st.one_of(st.none(), st.booleans(), st.integers(0, 9), texts))
        )
        value = {**truth, **junk}
        added = tuple(item for item in junk.values() if isinstance(item, str))
    if closed and truth and draw(st.booleans()):
        value = {draw(st.sampled_from(("arguments", "input", "params"))): value}
    text = json.dumps(value, ensure_ascii=draw(st.booleans()))
    if _no_apostrophe(value) and draw(st.booleans()):
        text = repr(value)
    elif draw(st.booleans()):
        text = _raw_newlines(text)
    if truth and draw(st.booleans()):
        text = text[:-1] + ",}"
    if draw(st.booleans()):
        text = draw(st.sampled_from(("json\n", "Here is the call:\n", "\ufeff", "<|message|>"))) + text
    if draw(st.booleans()):
        text += draw(st.sampled_from(("}", "]", "</invoke>", "\n</parameter></invoke>", "<|call|>", " done.", ";")))
    elif draw(st.booleans()):
        text = f"```json\n{text}\n```"
    elif not draw(st.booleans()):
        text = json.dumps(text) if text.startswith("{") else text
    return Broken(text, truth, added)
