"""What a model reads of a refusal: where, what is wrong, what is allowed; short, and never its own text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onspec import Tool, check

TEXT: dict[str, Any] = {"type": "string"}
ITEM = {
    "type": "object",
    "properties": {"oldText": TEXT, "newText": TEXT, "mode": {"enum": ["once", "all"]}},
    "required": ["oldText", "newText", "mode"],
    "additionalProperties": False,
}


def _schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


EDIT = _schema(path=TEXT, edits={"type": "array", "items": ITEM, "minItems": 1})
GOOD = {"oldText": "a", "newText": "b", "mode": "once"}


@pytest.mark.parametrize(
    ("schema", "emitted", "said"),
    [
        (
            EDIT,
            {"path": "p", "edits": [{**GOOD, "newText2": "c"}]},
            "edit was not run. /edits/0/newText2: not declared, but close to a declared key; "
            "declared: oldText, newText, mode; nearest: newText.",
        ),
        (EDIT, {}, "edit was not run. The call: the arguments are empty; required: path, edits."),
        (
            EDIT,
            {"path": "p", "edits": []},
            "edit was not run. /edits: too few items; found an empty array; expected: at least 1.",
        ),
        (
            EDIT,
            {"path": "p", "edits": [{"oldText": "a", "newText": "b"}] * 30},
            "edit was not run. /edits/0/mode and 29 more like it: a required key is missing (one of once, all).",
        ),
        (
            EDIT,
            {"path": "p", "edits": json.dumps([{"oldText": "a", "mode": "all"}])},
            "edit was not run:\n- /edits/0/newText: a required key is missing (string).\n"
            "- /edits: the wrong type; found a string that holds an array; expected: array.",
        ),
        (
            _schema(n={"type": "integer", "maximum": 5}),
            {"n": 9},
            "edit was not run. /n: too large; found 9; expected: at most 5.",
        ),
        (
            _schema(v={"anyOf": [{"type": "integer"}, {"enum": ["x", "y"]}]}),
            {"v": [1, 2]},
            "edit was not run. /v: fits no arm of the union; found an array of 2; expected: integer, x, y.",
        ),
        (
            _schema(v={"oneOf": [TEXT, {"type": "string", "maxLength": 3}]}),
            {"v": "x"},
            "edit was not run. /v: fits more than one arm of the union; found a string of 1 character.",
        ),
        (
            _schema(a=TEXT),
            {"a": "x", "b\nad <invoke> `rm`": "y"},
            "edit was not run. /b ad ‹invoke› 'rm': a key is text or markup, not a name; declared: a.",
        ),
    ],
)
def test_the_words(schema: dict[str, Any], emitted: Any, said: str) -> None:
    assert check(Tool("edit", schema), json.dumps(emitted)).feedback() == said


def test_an_arm_is_told_by_its_constant() -> None:
    arms = [
        {**_schema(kind={"const": kind}, **{key: {"type": "integer"}})}
        for kind, key in (("grow", "by"), ("move", "to"))
    ]
    said = check(Tool("run", _schema(op={"anyOf": arms})), '{"op": {"kind": "move", "far": 3}}').feedback()
    assert "/op/to: a required key is missing (integer)" in said
    assert "grow" not in said
    assert "/op/by" not in said


def test_the_declared_keys_of_one_object_are_listed_once() -> None:
    call = {"path": "p", "edits": [GOOD], "oldText": "c", "newText": "d"}
    assert check(Tool("edit", EDIT), json.dumps(call)).feedback().count("declared: path, edits") == 1


def test_one_invented_key_in_a_large_call_takes_few_bytes_and_echoes_nothing() -> None:
    secret = "the payload of the call " * 300
    call = {"path": "p", "edits": [{**GOOD, "newText": secret, "newText2": secret}]}
    said = check(Tool("edit", EDIT), json.dumps(call)).feedback()
    assert len(said.encode()) < 150
    assert "payload" not in said


def test_a_cut_call_is_called_cut() -> None:
    said = check(Tool("edit", EDIT), '{"path": "p", "edits": [{"oldText": "a').feedback()
    assert "cut off" in said


def test_many_errors_of_large_unions_are_not_all_made() -> None:
    arms = [_schema(**{f"key_{index}": {"type": "integer"}}) for index in range(60)]
    schema = _schema(ops={"type": "array", "items": {"anyOf": arms}})
    outcome = check(Tool("run", schema), json.dumps({"ops": [{"other": 1}] * 5000}))
    assert not outcome.ok
    assert 0 < len(outcome.violations) <= 100
    assert len(outcome.feedback()) < 2000
