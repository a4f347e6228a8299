"""Schemas of every keyword: whatever the model writes, the outcome is whole and nothing is raised."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onspec import Tool, check
from onspec.audit import equal
from onspec.errors import SchemaError
from onspec.repair.replay import replay

KEYS = ("a", "b", "kind", "path", "a~b", "x/y", "", "é", "$ref", "items")
DRAFTS = (
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
TYPES = ("string", "integer", "number", "boolean", "null", "object", "array")

keys = st.sampled_from(KEYS)
values = st.recursive(
    st.sampled_from(
        (None, True, 0, 1, 2.5, 10**25, "", "a", "A", "1", "true", '{"a":1}', "[1]", "[", "x\ny", "</path>")
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)
references = st.sampled_from(("#", "#/$defs/X", "#/definitions/X", "#anchor", "#/properties/a", "#/$defs/%C3%A9"))


def _keywords(schema: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(schema, min_size=1, max_size=3)
    named = st.dictionaries(keys, schema, min_size=1, max_size=3)
    size = st.integers(0, 3)
    optional: dict[str, st.SearchStrategy[Any]] = {
        "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=2, unique=True),
        "enum": st.lists(values, min_size=1, max_size=3),
        "const": values,
        "default": values,
        "minimum": size,
        "exclusiveMinimum": size,
        "maximum": size,
        "multipleOf": st.sampled_from((1, 2, 0.5)),
        "minLength": size,
        "maxLength": size,
        "pattern": st.sampled_from(("^a", "\\d+", "(a+)+$", "^(?!x)")),
        "format": st.sampled_from(("date", "uri", "other")),
        "minItems": size,
        "maxItems": size,
        "uniqueItems": st.booleans(),
        "contains": schema,
        "minContains": size,
        "prefixItems": several,
        "items": schema,
        "additionalItems": schema,
        "unevaluatedItems": schema,
        "properties": named,
        "required": st.lists(keys, max_size=2, unique=True),
        "additionalProperties": schema,
        "unevaluatedProperties": schema,
        "patternProperties": st.dictionaries(st.sampled_from(("^a", "x", ".", "[")), schema, max_size=2),
        "propertyNames": schema,
        "minProperties": size,
        "dependentRequired": st.dictionaries(keys, st.lists(keys, max_size=1), max_size=1),
        "dependentSchemas": st.dictionaries(keys, schema, max_size=1),
        "if": schema,
        "then": schema,
        "else": schema,
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": schema,
        "$ref": references,
        "$dynamicRef": st.just("#node"),
    }
    chosen = st.lists(st.sampled_from(sorted(optional)), max_size=4, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: optional[name] for name in names}))


schemas = st.recursive(st.booleans() | st.just({}), _keywords, max_leaves=6)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A tool's schema: an object of any keyword, in any draft, with places that references point to."""
    document = dict(draw(_keywords(schemas)))
    if draw(st.booleans()):
        document["type"] = "object"
    if draw(st.booleans()):
        document["$schema"] = draw(st.sampled_from(DRAFTS))
    document["$defs"] = {"X": draw(schemas), "é": draw(schemas), "N": {"$dynamicAnchor": "node", "$anchor": "anchor"}}
    document["definitions"] = {"X": draw(schemas)}
    return document


def _whole(tool: Tool, written: str) -> None:
    outcome = check(tool, written)
    outcome.to_dict()
    outcome.undeclared()
    assert outcome.feedback("json") if not outcome.ok else outcome.feedback() == ""
    if outcome.status == "refused":
        assert outcome.violations
        assert outcome.feedback()
        return
    assert isinstance(outcome.arguments, dict)
    assert tool.is_valid(outcome.arguments)
    assert equal(replay(outcome.raw, outcome.repairs), outcome.arguments)
    assert check(tool, outcome.json).status == "accepted"
    assert (outcome.json == outcome.raw) == (outcome.status == "accepted")


@given(documents(), st.lists(values, min_size=1, max_size=4))
def test_any_schema_and_any_value(document: dict[str, Any], written: list[Any]) -> None:
    try:
        tool = Tool("tool", document)
    except SchemaError:
        return
    for value in written:
        _whole(tool, json.dumps(value))
        _whole(tool, repr(value))


@pytest.mark.parametrize("document", [True, {}, {"properties": {"a": {"type": "string"}}}, {"required": []}])
@pytest.mark.parametrize("written", ["1", '"x"', "[1, 2]", "null", "", '"{}"', '"{\\"a\\": \\"b\\"}"', "[{}]"])
def test_arguments_are_an_object_though_the_schema_does_not_say_so(document: Any, written: str) -> None:
    _whole(Tool("tool", document), written)


def test_a_place_that_the_draft_does_not_read_raises_nothing() -> None:
    bad = {"patternProperties": {"[": {}}}
    document = {"$schema": DRAFTS[0], "type": "object", "unevaluatedProperties": {"$ref": "#/$defs/X"}}
    document |= {"$defs": {"X": bad}, "properties": {"a": {"type": "integer"}}}
    _whole(Tool("tool", document), '{"a": "x", "b": {"c": 1}}')
