"""Bad input, huge input and hostile schemas: a clear refusal or error, in bounded time and memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onspec import Outcome, Policy, Tool, check
from onspec.check import MAX_CHARACTERS
from onspec.contract.schema import MAX_SCHEMA_BYTES
from onspec.errors import SchemaError

TEXT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
TREE: dict[str, Any] = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["name"],
            "additionalProperties": False,
        }
    },
    "$ref": "#/$defs/node",
}


def refused(schema: Any, text: str | bytes, code: str) -> Outcome:
    outcome = check(Tool("tool", schema), text, Policy.lenient())
    assert outcome.status == "refused"
    assert code in {violation.code for violation in outcome.violations}, outcome.violations
    return outcome


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("\ufeff", "empty"),
        ("null", "wrong_type"),
        ("5", "wrong_type"),
        ("true", "wrong_type"),
        ('"text"', "wrong_type"),
        ("[]", "wrong_type"),
        ("[1, 2]", "wrong_type"),
        (b"\xff\xfe", "invalid_utf8"),
        (b'{"a": "\xc3"}', "invalid_utf8"),
        (b'{"a": "\xed\xa0\x80"}', "lone_surrogate"),
        ('{"a": "\ud83d"}', "lone_surrogate"),
        ("'\ud800'", "lone_surrogate"),
        ("null\ud800", "lone_surrogate"),
        ('{"a": "b"} \udfff', "lone_surrogate"),
        ("\x00", "prose"),
        ('{"a": "b\x00"}', "control_char"),
        ('{"a": ' + "1" * 10_000 + "}", "number_too_large"),
        ('{"a": 1e400}', "number_too_large"),
        ("[" * 100_000, "too_deep"),
        ('{"a":' * 100_000, "too_deep"),
        ('{"a": "' + "\\\\" * 50_000, "cut_off"),
    ],
)
def test_bad_text_is_refused_with_a_name(text: str | bytes, code: str) -> None:
    outcome = refused(TEXT, text, code)
    assert len(outcome.feedback()) < 400
    json.loads(outcome.feedback("json"))


def test_a_call_above_the_limit_is_refused_unread() -> None:
    refused(TEXT, '{"a": "' + "x" * MAX_CHARACTERS + '"}', "too_large")


def test_a_long_payload_is_never_echoed() -> None:
    secret = "s3cret-" * 2000
    for text in (
        json.dumps({"a": secret, "a2": secret + "x"}),
        json.dumps({"a": {secret: secret}}),
        '{"a": "' + secret,
        json.dumps([secret, secret]),
        json.dumps({secret: secret}),
    ):
        outcome = check(Tool("tool", TEXT), text)
        assert outcome.status == "refused"
        assert "s3cret" not in outcome.feedback()
        assert "s3cret" not in outcome.feedback("json")
        assert "s3cret" not in repr(outcome)


def test_feedback_of_an_invented_key_in_a_large_edit_is_short() -> None:
    item = {"oldText": "x" * 3000, "newText": "y" * 3000, "newText2": "z"}
    schema = {
        "type": "object",
        "properties": {
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
                    "additionalProperties": False,
                },
            }
        },
        "additionalProperties": False,
    }
    outcome = check(Tool("edit", schema), json.dumps({"edits": [item]}))
    assert outcome.status == "refused"
    assert len(outcome.feedback().encode()) <= 150, outcome.feedback()


def test_markup_in_feedback_is_neutralised() -> None:
    text = json.dumps({"a": "b", "</parameter><invoke name=x>": 1, "`k`": 2})
    outcome = check(Tool("tool", TEXT), text)
    assert outcome.status == "refused"
    for form in (outcome.feedback(), outcome.feedback("json")):
        assert "<" not in form
        assert "`" not in form


def test_a_million_keys() -> None:
    text = "{" + ",".join(f'"k{i}":1' for i in range(1_000_000)) + "}"
    assert check(Tool("tool", {"type": "object"}), text).status == "accepted"
    outcome = refused(TEXT, text, "unknown_key")
    assert len(outcome.violations) <= 200


def test_a_million_small_faults_are_refused_in_bounded_steps() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    outcome = refused(schema, json.dumps({"a": ["x"] * 200_000}), "wrong_type")
    assert len(outcome.violations) <= 200


def test_recursion_is_followed_as_deep_as_the_call() -> None:
    value: dict[str, Any] = {"name": "leaf"}
    for _ in range(60):
        value = {"name": "n", "children": [value]}
    tool = Tool("tree", TREE)
    assert check(tool, json.dumps(value)).status == "accepted"
    spoilt = json.dumps(value).replace('"leaf"', '"leaf", "cost": 1')
    outcome = check(tool, spoilt)
    assert outcome.status == "repaired"
    assert outcome.arguments == value


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"allOf": [{"$ref": "#"}], "properties": {"a": {"$ref": "#"}}},
        {"anyOf": [{"$ref": "#"}, {"type": "object", "required": ["z"]}]},
        {"not": {"$ref": "#"}},
    ],
)
def test_a_reference_that_loops_ends(schema: dict[str, Any]) -> None:
    try:
        tool = Tool("tool", schema)
    except SchemaError:
        return
    for text in ('{"a": {"a": {}}}', '{"a": 1}', "{}"):
        assert check(tool, text).status in ("accepted", "repaired", "refused")


def test_a_pattern_that_explodes_is_bounded() -> None:
    for pattern in ("^(a+)+$", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", r"(?=(a+)+$)b"):
        tool = Tool("tool", {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})
        assert check(tool, json.dumps({"a": "a" * 5000 + "!"})).status == "refused"
        keyed = Tool("tool", {"type": "object", "patternProperties": {pattern: {}}, "additionalProperties": False})
        assert check(keyed, json.dumps({"a" * 200 + "!": [1]})).status == "refused"


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"type": "strin"}, "not a usable JSON Schema"),
        ({"properties": []}, "not a usable JSON Schema"),
        ({"required": {"circle": ["radius"]}}, "not a usable JSON Schema"),
        (
            {"type": "object", "additionalProperties": False, "properties": {}, "required": [[]]},
            "not a usable JSON Schema",
        ),
        ({"pattern": "("}, "regex"),
        ({"$ref": "#/nope"}, "/nope"),
        ({"$ref": "https://example.com/schema.json"}, "never fetched"),
        ({"$ref": "file:///etc/passwd"}, "never fetched"),
        ({"properties": {"a": {"$ref": "other.json#/x"}}}, "never fetched"),
        ({"$schema": "https://example.com/none"}, "meta-schema"),
        ({"x": object()}, "not JSON"),
        ({1: 2}, "not JSON"),
        ({"enum": ["x" * MAX_SCHEMA_BYTES]}, "limit"),
        ([], "an object or a boolean"),
        ("text", "an object or a boolean"),
    ],
)
def test_a_wrong_schema_is_the_developers_error(schema: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        Tool("tool", schema)


def test_a_schema_nested_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100_000):
        schema = {"not": schema}
    with pytest.raises(SchemaError):
        Tool("tool", schema)


@pytest.mark.parametrize(
    "draft",
    [
        None,
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema#",
    ],
)
def test_drafts_and_internal_references(draft: str | None) -> None:
    definitions = "definitions" if draft and "07" in draft else "$defs"
    schema: dict[str, Any] = {
        definitions: {"count": {"type": "integer"}, "od/d~": {"type": "string"}},
        "type": "object",
        "properties": {
            "n": {"$ref": f"#/{definitions}/count"},
            "s": {"$ref": f"#/{definitions}/od~1d~0"},
            "pair": {"items": [{"type": "integer"}, {"type": "string"}]}
            if definitions == "definitions" or (draft and "2019" in draft)
            else {"prefixItems": [{"type": "integer"}, {"type": "string"}]},
        },
        "additionalProperties": False,
        **({"$schema": draft} if draft else {}),
    }
    tool = Tool("tool", schema)
    outcome = check(tool, '{"n": "5", "s": 7, "pair": ["1", 2], "cost": 1}')
    assert outcome.status == "repaired", outcome.feedback()
    assert outcome.arguments == {"n": 5, "s": "7", "pair": [1, "2"]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"x": float("-inf")}])
def test_decoded_values_that_json_cannot_write_are_refused(value: Any) -> None:
    assert check(Tool("tool", {"type": "object"}), {"a": value}).status == "refused"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((Tool("tool", {"type": "object"}), 5), "arguments are text"),
        ((Tool("tool", {"type": "object"}), {"a": {1}}), "hold what JSON has not"),
        ((Tool("tool", {"type": "object"}), {"a": object()}), "hold what JSON has not"),
        (({"type": "object"}, "{}"), r"the tool is a Tool, not dict: Tool\(name, schema\)"),
        (("edit.json", "{}"), "the tool is a Tool, not str"),
        ((dict, "{}"), "the tool is a Tool, not the class dict"),
        ((Tool("tool", {"type": "object"}), "{}", "safe"), r"such as Policy.named\('safe'\), not str"),
    ],
)
def test_what_a_developer_gets_wrong_raises(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        check(*given)


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = loop
    assert check(Tool("tool", {"type": "object"}), loop).status == "refused"
