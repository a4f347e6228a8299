"""A bounded number is admitted where the judge takes it, in every decimal text that a double tells apart."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pytest

from onspec.contract.schema import Schema
from onspec.errors import SchemaError
from onspec.grammar.exact import compile_exact
from onspec.grammar.llguidance import Vocabulary, accepts

BYTES = Vocabulary.of_bytes()
BOUNDS = [0, 0, 1, -1, 5, 99, 0.1, 0.5, -0.5, 2.75, 99.99, -3.125, 1e-7, 0.30000000000000004, 10**9]
STEPS = ["0", "1", "-1", "0.1", "-0.1", "0.001", "-0.001", "1e-15", "-1e-15", "1e-18", "-1e-18", "10", "0.5"]


def _texts(bounds: dict[str, Any]) -> list[str]:
    near = [Decimal(repr(value)) + Decimal(step) for value in (*bounds.values(), 0) for step in STEPS]
    plain = [format(value, "f") for value in near]
    ended = [text + ("0" if "." in text else ".0") for text in plain]
    return [*dict.fromkeys(plain + ended), "-0", "-0.0", "1e-5", "-1e-5", "9.9999999999999999999e-1", "1E5", "-1e9"]


@pytest.mark.parametrize("seed", range(6))
def test_numbers_beside_their_bounds_are_judged_as_the_validator_judges(seed: int) -> None:
    """Nothing outside is admitted, however close; every decimal inside is, up to the digits of a double."""
    rng = random.Random(seed)
    for _ in range(30):
        words = [w for w in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum") if rng.random() < 0.45]
        bounds: dict[str, Any] = {word: rng.choice(BOUNDS) for word in words}
        if rng.random() < 0.2:
            bounds["multipleOf"] = rng.choice([1, 2, 7, 0.5, 0.01, 2.5, 1000])
        schema = {"type": rng.choice(["number", "integer"]), **bounds}
        judge = Schema(schema).judge
        texts = _texts(bounds)
        try:
            exact = compile_exact(schema)
        except SchemaError:
            assert not [text for text in texts if judge.is_valid(json.loads(text))], schema
            continue
        assert exact.shortest is not None
        assert judge.is_valid(json.loads(exact.shortest)), (schema, exact.shortest)
        for text in [*texts, exact.shortest]:
            valid, admitted = judge.is_valid(json.loads(text)), accepts(BYTES, exact.grammar(), text)
            assert valid or not admitted, (schema, text)
            exact_text = "e" not in text.lower() and len(text.partition(".")[2]) <= 8
            if "multipleOf" not in bounds and exact_text:
                assert admitted or not valid, (schema, text)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number", "minimum": 5, "exclusiveMaximum": 5},
        {"type": "number", "exclusiveMinimum": 5, "maximum": 5},
        {"type": "integer", "multipleOf": 7, "minimum": 22, "maximum": 27},
        {"type": "number", "multipleOf": 0.1, "exclusiveMinimum": 0, "exclusiveMaximum": 0.1},
        {"type": "number", "minimum": 2, "maximum": 1},
    ],
)
def test_bounds_that_leave_no_number_refuse_the_schema_or_leave_out_the_key(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="admits no value"):
        compile_exact(schema)
    whole = {"type": "object", "properties": {"n": schema}, "additionalProperties": False}
    assert accepts(BYTES, compile_exact(whole).grammar(), "{}")


@pytest.mark.parametrize(
    ("schema", "text", "note"),
    [
        ({"type": "number", "minimum": 1e300}, "1e301", "number (very large or small bounds)"),
        ({"type": "number", "minimum": -1.7e308, "maximum": 1.7e308}, "5", "number (very large or small bounds)"),
        ({"type": "number", "exclusiveMinimum": 5e-324}, "0.5", "number (very large or small bounds)"),
        ({"type": "number", "multipleOf": 1e300}, "0", "multipleOf (large)"),
        ({"type": "integer", "multipleOf": 9999991}, "19999982", "multipleOf (large)"),
    ],
)
def test_bounds_that_no_grammar_should_follow_are_named(schema: dict[str, Any], text: str, note: str) -> None:
    exact = compile_exact(schema)
    assert accepts(BYTES, exact.grammar(), text)
    assert note in {entry.keyword for entry in exact.inexact if entry.effect == "more"}
