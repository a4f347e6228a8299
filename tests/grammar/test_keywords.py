"""Keywords in odd company: what a schema admits is admitted, what it refuses is refused or named."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest

from onspec.contract.schema import Schema
from onspec.contract.tool import Tool
from onspec.errors import LimitError, SchemaError
from onspec.grammar.build import build
from onspec.grammar.closing import close
from onspec.grammar.exact import Options, compile_exact
from onspec.grammar.llguidance import Vocabulary, accepts

BYTES = Vocabulary.of_bytes()
STRING, WHOLE = {"type": "string"}, {"type": "integer"}
A_STRING = {"properties": {"a": STRING}}
DRAFT = "http://json-schema.org/draft-{}/schema#"

EXACT: list[tuple[Any, list[str]]] = [
    ({"allOf": [A_STRING], "unevaluatedProperties": False}, ['{"a":"x"}', "{}", '{"b":1}', '{"a":1}']),
    ({"$ref": "#/$defs/b", "$defs": {"b": A_STRING}, "unevaluatedProperties": False}, ['{"a":"x"}', '{"b":1}']),
    ({"allOf": [{"additionalProperties": WHOLE}], "unevaluatedProperties": False}, ['{"a":1}', '{"a":"x"}']),
    ({**A_STRING, "additionalProperties": True, "unevaluatedProperties": False}, ['{"a":"x"}', '{"b":1}']),
    ({"allOf": [A_STRING], "unevaluatedProperties": WHOLE}, ['{"a":"x","b":1}', '{"b":"x"}']),
    ({"prefixItems": [STRING], "unevaluatedItems": False}, ['["a"]', '["a",1]', "[]"]),
    ({"items": STRING, "unevaluatedItems": False}, ['["a","b"]', "[1]"]),
    ({"$schema": DRAFT.format("07"), **A_STRING, "unevaluatedProperties": False}, ['{"b":1}']),
    ({"$schema": DRAFT.format("07"), "prefixItems": [STRING]}, ["[1]"]),
    ({"$schema": DRAFT.format("07"), "dependentRequired": {"a": ["b"]}}, ['{"a":1}']),
    ({"$schema": DRAFT.format("04"), "const": 1, "propertyNames": False}, ["2", '{"a":1}']),
    ({"allOf": [{"enum": [1.0, 2]}, {"const": 1}]}, ["1", "1.0", "2"]),
    ({"allOf": [{"enum": [True, 2]}, {"enum": [1, 2]}]}, ["1", "true", "2"]),
    ({"allOf": [{"enum": [{"a": 1, "b": 2.0}]}, {"enum": [{"b": 2, "a": 1.0}]}]}, ['{"a":1,"b":2}', '{"a":1}']),
    ({"type": ["integer", "string"], "not": {"type": "number"}}, ["1", '"a"']),
    ({"propertyNames": WHOLE}, ['{"a":1}', "{}"]),
    (
        {"$id": "http://e.x/r.json", "$ref": "http://e.x/o.json", "$defs": {"x": {"$id": "o.json", **STRING}}},
        ['"x"', "1"],
    ),
    (
        {
            "$defs": {"x": {"$id": "http://e.x/o", "$defs": {"y": STRING}, "$ref": "#/$defs/y"}, "y": WHOLE},
            "$ref": "#/$defs/x",
        },
        ['"x"', "1"],
    ),
    (
        {
            "properties": {"a": {"$ref": "#/$defs/n"}, "n": {"$id": "urn:x:y", "$anchor": "k", **WHOLE}},
            "$defs": {"n": {"$ref": "urn:x:y#k"}},
        },
        ['{"a":1}', '{"a":"x"}'],
    ),
    ({"oneOf": [{"const": f"v{n}"} for n in range(300)]}, ['"v7"', '"v300"']),
    (
        {"oneOf": [{"properties": {"k": {"const": n}}, "required": ["k"], "type": "object"} for n in range(100)]},
        ['{"k":7}', '{"k":100}', "{}"],
    ),
    ({"type": "string", "pattern": "|".join(f"^word{n}$" for n in range(3000))}, ['"word77"', '"word"']),
    ({"type": "number"}, ["1e250", "-1.5E+307"]),
    ({"type": "number", "multipleOf": 1}, ["2.0", "2", "2.5"]),
    ({"type": "integer", "multipleOf": 0.5, "minimum": 2}, ["2.0", "2", "1"]),
]


@pytest.mark.parametrize(("schema", "texts"), EXACT)
def test_what_the_judge_takes_is_admitted_and_nothing_else(schema: Any, texts: list[str]) -> None:
    judge, grammar = Schema(schema).judge, compile_exact(schema).grammar()
    for text in texts:
        assert accepts(BYTES, grammar, text) is judge.is_valid(json.loads(text)), text


NAMED: list[tuple[Any, str, str, str]] = [
    ({"oneOf": [{"const": 1}, {"const": 1.0}]}, "1", "oneOf", "more"),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "1", "oneOf", "more"),
    ({"const": 100}, "1e2", "number in enum or const (spellings with an exponent)", "less"),
    ({"anyOf": [A_STRING, True], "unevaluatedProperties": False}, '{"a":1}', "unevaluatedProperties", "more"),
    ({"contains": {"const": 1}, "unevaluatedItems": False}, "[1,2]", "unevaluatedItems", "more"),
    ({"propertyNames": {"if": {"const": "a"}, "then": False}}, '{"a":1}', "propertyNames", "more"),
    ({"$schema": DRAFT.format("04"), "type": "integer"}, "1.0", "integer written as 1.0", "more"),
    ({"type": "string", "pattern": "(^a|b)" * 25}, '"c"', "pattern", "more"),
]


@pytest.mark.parametrize(("schema", "text", "keyword", "effect"), NAMED)
def test_what_cannot_be_followed_is_named(schema: Any, text: str, keyword: str, effect: str) -> None:
    exact = compile_exact(schema)
    assert accepts(BYTES, exact.grammar(), text) is (effect == "more")
    assert (keyword, effect) in {(note.keyword, note.effect) for note in exact.inexact}


def test_the_most_keys_hold_in_the_schemas_order_too() -> None:
    schema = {"properties": {"a": True, "b": True, "c": True}, "additionalProperties": False, "required": ["b"]}
    grammar = compile_exact({"type": "object", **schema, "maxProperties": 2}, Options(order="schema")).grammar()
    assert accepts(BYTES, grammar, '{"a":1,"b":2}')
    assert accepts(BYTES, grammar, '{"b":1,"c":2}')
    assert not accepts(BYTES, grammar, '{"a":1,"b":2,"c":3}')


def _twice(word: str, depth: int) -> dict[str, Any]:
    links = {f"d{n}": {word: [{"$ref": f"#/$defs/d{n + 1}"}] * 2, "minItems": 2} for n in range(depth)}
    return {"$defs": {**links, f"d{depth}": STRING}, "$ref": "#/$defs/d0"}


_KEYS = [f"k{n}" for n in range(60)]
_ARM = {"type": "object", "required": ["k"]}


@pytest.mark.parametrize("written", ['{"', '{"xx', '{"a', '{"k\\u00e9'])
def test_a_key_that_must_fit_a_pattern_can_be_ended(written: str) -> None:
    schema = {"patternProperties": {"é": WHOLE}, "additionalProperties": False, "type": "object"}
    exact = compile_exact(schema)
    matcher = BYTES.matcher(exact.grammar(edges=False))
    assert matcher.consume_bytes(written.encode())
    ending = close(matcher, written.encode(), exact.pieces)
    assert ending is not None
    assert Schema(schema).judge.is_valid(json.loads(written.encode() + ending.text))


def test_a_pattern_longer_than_the_most_letters_admits_nothing() -> None:
    with pytest.raises(SchemaError, match="admits no value"):
        compile_exact({"type": "string", "pattern": "a{3}|[0-9]{4}", "maxLength": 2})


GROWING = {
    "needs of all by all": {"properties": dict.fromkeys(_KEYS, True), "dependentRequired": dict.fromkeys(_KEYS, _KEYS)},
    "lists of two, 40 deep": _twice("prefixItems", 40),
    "anchors in 25 groups": {"type": "string", "pattern": "(^a|b)" * 25},
    "arms that lead back": {"oneOf": [{"$ref": "#"}, {"type": "string"}]},
    "arms that lead to one another": {
        "$defs": {"a": {"oneOf": [{"$ref": "#/$defs/b"}, STRING]}, "b": {"oneOf": [{"$ref": "#/$defs/a"}, WHOLE]}},
        "$ref": "#/$defs/a",
    },
    "arms in arms, 40 deep": {
        "$defs": {
            **{
                f"d{n}": {
                    "oneOf": [
                        {**_ARM, "properties": {"k": {"$ref": f"#/$defs/d{n + 1}"}, **more}}
                        for more in ({}, {"z": True})
                    ]
                }
                for n in range(40)
            },
            "d40": STRING,
        },
        "$ref": "#/$defs/d0",
    },
    "a tree of overlapping arms": {
        "$defs": {
            "t": {
                "oneOf": [
                    STRING,
                    {**_ARM, "properties": {"k": {"$ref": "#/$defs/t"}}},
                    {**_ARM, "properties": {"k": {"$ref": "#/$defs/t"}, "z": True}},
                ]
            }
        },
        "$ref": "#/$defs/t",
    },
}


@pytest.mark.parametrize("name", GROWING)
@pytest.mark.parametrize("dialect", ["hermes_json", "qwen3_coder_xml"])
def test_schemas_that_grow_when_written_out_take_bounded_time(name: str, dialect: str) -> None:
    started = time.process_time()
    schema = GROWING[name]
    exact = compile_exact(schema)
    BYTES.matcher(exact.grammar()).mask()
    defs = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    if "#" not in json.dumps(inner).replace("#/", ""):  # A reference to the whole means another whole here.
        tool = Tool("f", {"type": "object", "properties": {"p": inner}, **defs})
        with contextlib.suppress(LimitError):  # A loop of references alone has no value of its own.
            BYTES.matcher(build([tool], dialect, "required").lark).mask()
    assert time.process_time() - started < 5


@pytest.mark.parametrize("dialect", ["hermes_json", "qwen3_coder_xml", "pythonic"])
def test_a_loop_of_references_is_a_grammar_or_is_refused(dialect: str) -> None:
    """Whatever a schema does to the builder, an error of this package comes out."""
    loop = GROWING["arms that lead to one another"]
    tool = Tool("f", {"type": "object", "properties": {"p": {"$ref": loop["$ref"]}}, "$defs": loop["$defs"]})
    with contextlib.suppress(LimitError):
        assert build([tool], dialect, "required").lark
