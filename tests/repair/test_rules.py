"""Every rule of the table, on a call that needs it and no other; and under a policy without it, a refusal."""

from __future__ import annotations

from typing import Any

import pytest

from onspec import Policy, Repair, Tool, check
from onspec.errors import InputError
from onspec.local.history import EDIT_SCHEMA as EDIT
from onspec.repair.replay import replay
from onspec.repair.rules import RULES

A = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
TEXT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def of(**properties: Any) -> dict[str, Any]:
    """A closed object whose keys are all optional."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


ROWS: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("strip_fence", A, '```json\n{"a": 1}\n```', {"a": 1}),
    ("strip_fence", A, '~~~\n{"a": "``` ~~"}\n~~~', {"a": "``` ~~"}),
    ("strip_leading_garbage", A, 'The call: {"a": 1}', {"a": 1}),
    ("strip_leading_garbage", A, '\ufeff{"a": 1}', {"a": 1}),
    ("strip_leading_garbage", A, '[TOOL_CALLS]{"a": 1}', {"a": 1}),
    ("strip_trailing_garbage", A, '{"a": 1}}]</invoke>', {"a": 1}),
    ("strip_trailing_garbage", A, '{"a": 1} // done', {"a": 1}),
    ("drop_leading_empty_object", A, '{}{"a": 1}', {"a": 1}),
    ("collapse_identical_objects", A, '{"a": 1}\n{"a":1}', {"a": 1}),
    ("trailing_comma", A, '{"a": [1, 2,],}', {"a": [1, 2]}),
    ("trailing_comma", A, '{"a": 1, ,}', {"a": 1}),
    ("json_comment", A, '{"a": /* one */ 1, // two\n}'.replace(", //", " //"), {"a": 1}),
    ("single_quotes", A, "{'a': 'b \"c\"'}", {"a": 'b "c"'}),
    ("smart_quotes", A, "{“a”: „b“}", {"a": "b"}),
    ("python_literals", A, '{"a": [True, False, None]}', {"a": [True, False, None]}),
    ("quote_keys", A, "{a: 1}", {"a": 1}),
    ("escape_control_char", TEXT, '{"a": "x\n\ty\r\n\x01"}', {"a": "x\n\ty\r\n\x01"}),
    ("fix_invalid_escape", TEXT, '{"a": "\\d+\\.\\s \\\\ \\" \\u0041"}', {"a": '\\d+\\.\\s \\ " A'}),
    ("close_containers", A, '{"a": [{"b": ["c"', {"a": [{"b": ["c"]}]}),
    ("close_containers", A, '{"a": [{"b": ["c"}]}', {"a": [{"b": ["c"]}]}),
    ("collapse_identical_duplicate_key", A, '{"a": [1], "a": [ 1 ]}', {"a": [1]}),
    ("decode_stringified", of(a={"type": "array"}), '{"a": "[1, \\"b\\"]"}', {"a": [1, "b"]}),
    ("decode_double_encoded", TEXT, '"{\\"a\\": \\"x\\\\ny\\"}"', {"a": "x\ny"}),
    ("decode_double_encoded", TEXT, '{\\"a\\": \\"b\\"}', {"a": "b"}),
    ("wrap_single_to_array", of(a={"type": "array", "items": {"type": "string"}}), '{"a": "b"}', {"a": ["b"]}),
    ("unwrap_single_array", TEXT, '[{"a": "b"}]', {"a": "b"}),
    ("unwrap_single_array", of(a={"type": "integer"}), '{"a": [5]}', {"a": 5}),
    (
        "lift_flat_item",
        EDIT,
        '{"path": "p", "oldText": "a", "newText": "b"}',
        {"path": "p", "edits": [{"oldText": "a", "newText": "b"}]},
    ),
    (
        "promote_numbered_item",
        EDIT,
        '{"path": "p", "edits": [{"oldText": "a", "newText": "b", "oldText2": "c", "newText2": "d", '
        '"newText_3": "f", "oldText_3": "e"}, {"oldText": "g", "newText": "h"}]}',
        {
            "path": "p",
            "edits": [{"oldText": o, "newText": n} for o, n in (("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"))],
        },
    ),
    ("unwrap_envelope", TEXT, '{"arguments": {"a": "b"}}', {"a": "b"}),
    ("unwrap_envelope", TEXT, '{"name": "tool", "id": "c1", "input": {"a": "b"}}', {"a": "b"}),
    ("empty_to_object", of(a={}), "null", {}),
    ("empty_to_object", of(a={}), "", {}),
    ("empty_to_object", of(a={}), '""', {}),
    ("drop_null_optional", of(a={"type": "string"}), '{"a": null}', {}),
    ("drop_empty_optional", of(a={"type": "integer"}), '{"a": ""}', {}),
    ("alias_key", of(path={"type": "string"}), '{"file_path": "p"}', {"path": "p"}),
    ("key_case", of(oldText={"type": "string"}), '{"old_text": "p"}', {"oldText": "p"}),
    ("key_trim", of(offset={"type": "integer"}), '{"offset \\"": 5}', {"offset": 5}),
    ("drop_unknown_key", TEXT, '{"a": "b", "requireUnique": true}', {"a": "b"}),
    ("coerce_string_to_number", of(a={"type": "integer"}), '{"a": "-5"}', {"a": -5}),
    ("coerce_string_to_number", of(a={"type": "number"}), '{"a": "1.5e3"}', {"a": 1500.0}),
    ("coerce_string_to_bool", of(a={"type": "boolean"}), '{"a": "False"}', {"a": False}),
    ("coerce_number_to_bool", of(a={"type": "boolean"}), '{"a": 1}', {"a": True}),
    ("coerce_number_to_string", TEXT, '{"a": 1.10}', {"a": "1.10"}),
    ("coerce_bool_to_string", TEXT, '{"a": true}', {"a": "true"}),
    ("enum_case", of(a={"enum": ["celsius", "kelvin"]}), '{"a": "Celsius"}', {"a": "celsius"}),
    ("replace_lone_surrogate", TEXT, '{"a": "x\\ud83dy"}', {"a": "x\ufffdy"}),
    ("decode_html_entities", TEXT, "{&quot;a&quot;: &quot;b &amp;amp; c&quot;}", {"a": "b &amp; c"}),
]


def test_every_rule_has_a_row() -> None:
    named = {rule for rule, rule_row in RULES.items() if rule_row.cls == "name"}
    assert {rule for rule, *_ in ROWS} == set(RULES) - named


@pytest.mark.parametrize(("rule", "schema", "text", "arguments"), ROWS)
def test_a_rule_repairs_its_defect(rule: str, schema: dict[str, Any], text: str, arguments: dict[str, Any]) -> None:
    tool = Tool("tool", schema, effect="read")
    policy = Policy.lenient()
    outcome = check(tool, text, policy)
    assert outcome.status == "repaired", outcome.feedback()
    assert outcome.arguments == arguments
    assert {repair.rule for repair in outcome.repairs} == {rule}
    assert replay(outcome.raw, outcome.repairs) == arguments
    refused = check(tool, text, policy.without(rule))
    assert refused.status == "refused"
    assert refused.violations


@pytest.mark.parametrize("rule", [name for name, rule in RULES.items() if rule.cls == "content"])
def test_content_is_never_changed_for_a_tool_that_may_write(rule: str) -> None:
    text = next(text for name, _, text, _ in ROWS if name == rule)
    for effect in ("write", "exec", None):
        assert check(Tool("tool", TEXT, effect=effect), text, Policy.lenient()).status == "refused"


NO_ONE_READING: list[tuple[str, dict[str, Any], str]] = [
    ("cut_off", TEXT, '{"a": "b'),
    ("cut_off", A, '{"a": [1, 2'),
    ("cut_off", A, '{"a": 1,'),
    ("cut_off", A, '{"a":'),
    ("cut_off", A, '{"a": tr'),
    ("cut_off", A, '{"a": 1, b'),
    ("unescaped_quote", TEXT, '{"a": "say "hi""}'),
    ("unescaped_quote", TEXT, "{'a': 'it's'}"),
    ("bare_value", TEXT, '{"a": C:\\x}'),
    ("bare_value", A, '{"a": [1, , 2]}'),
    ("non_finite_number", A, '{"a": NaN}'),
    ("non_finite_number", A, '{"a": -Infinity}'),
    ("number_too_large", A, '{"a": 1e999}'),
    ("number_too_large", A, '{"a": ' + "9" * 10_000 + "}"),
    ("not_json", A, '{"a": 0x1F}'),
    ("bare_value", A, '{"a": +5}'),
    ("not_json", A, '{"a": 01}'),
    ("duplicate_key", A, '{"a": 1, "a": 2}'),
    ("duplicate_key", A, '{"a": 1, "\\u0061": 2}'),
    ("duplicate_key", A, '{"a": 10000000000000000000000001, "a": 10000000000000000000000002}'),
    ("two_values", A, '{"a": 1}{"a": 2}'),
    ("trailing_text", A, '{"a": 1}, "b": 2}'),
    ("trailing_text", A, '{"a": 1}</parameter>\n<parameter name="b">2</parameter>'),
    ("invalid_escape", TEXT, '{"a": "\\d\\n"}'),
    ("invalid_escape", TEXT, '{"a": "\\x41"}'),
    ("invalid_escape", TEXT, '{"a": "it\\\'s"}'),
    ("control_char", TEXT, '{"a": "x\x00y"}'),
    ("lone_surrogate", TEXT, '{"a": "\\ud83d"}'),
    ("too_deep", A, '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    ("prose", A, "I will now read the file."),
    (
        "swallowed_parameter",
        of(a={"type": "string"}, b={"type": "string"}),
        '{"a": "x</a>\\n<parameter name=\\"b\\">y"}',
    ),
    ("leaked_markup", TEXT, '{"a": "x</a>\\n</invoke>"}'),
    ("ambiguous", of(path={"type": "string"}), '{"file_path": "a", "filePath": "b"}'),
    ("ambiguous", of(a={"enum": ["mW", "MW"]}), '{"a": "mw"}'),
    ("ambiguous", of(a={"type": "object"}, b={"type": "integer"}), '{"a": {"c": 1, "b": 2}'),
    ("conflicting_key", of(path={"type": "string"}), '{"path": "a", "file_path": "b"}'),
    ("unknown_key", of(limit={"type": "integer"}), '{"limit": 1, "line_limit": 5}'),
    ("unknown_key", of(path={"type": "string"}), '{"path": "a", "command": "rm x"}'),
    ("unknown_key", of(path={"type": "string"}), '{"folders": "x"}'),
    ("misplaced_key", EDIT, '{"path": "p", "edits": [{"oldText": "a", "newText": "b", "edits": 1}]}'),
]


@pytest.mark.parametrize(("code", "schema", "text"), NO_ONE_READING)
def test_what_has_no_one_reading_is_refused(code: str, schema: dict[str, Any], text: str) -> None:
    outcome = check(Tool("tool", schema), text, Policy.lenient())
    assert outcome.status == "refused"
    assert code in {violation.code for violation in outcome.violations}, outcome.violations
    assert len(outcome.feedback()) < 600


KEPT: list[tuple[dict[str, Any], str]] = [
    ({"type": "object"}, '{"anything": {"goes": [1]}}'),
    (TEXT, '{"a": "</div></parameter> in the middle"}'),
    (TEXT, '{"a": "<x><parameter>1</parameter></x>"}'),
    (of(a={"type": ["string", "null"]}), '{"a": "[1]"}'),
    (of(a={"anyOf": [{"type": "string"}, {"type": "number"}]}), '{"a": 42}'),
    (of(a={"type": "integer"}), '{"a": 22.0}'),
    (TEXT, '{"a": "C:\\\\temp &amp; “x” \\u003c/invoke> ok"}'),
    (of(a={"type": "integer"}), '{"a": 123456789012345678901234567890}'),
]


@pytest.mark.parametrize(("schema", "text"), KEPT)
def test_what_is_valid_is_untouched(schema: dict[str, Any], text: str) -> None:
    outcome = check(Tool("tool", schema), text, Policy.lenient())
    assert outcome.status == "accepted", outcome.violations
    assert outcome.json == text.encode()


def test_spans_are_bytes_of_the_original() -> None:
    text = '{"path":"é.py","edits":[{"oldText":"é","newText":"y","zz":1}],}'
    outcome = check(Tool("edit", EDIT), text)
    marked = {repair.rule: outcome.raw[slice(*repair.span)].decode() for repair in outcome.repairs}
    assert marked == {"trailing_comma": ",", "drop_unknown_key": '"zz":1'}


@pytest.mark.parametrize("reason", ["length", "max_tokens", "MAX_TOKENS", "content_filter", "incomplete"])
def test_nothing_that_the_provider_cut_runs(reason: str) -> None:
    for text in ('{"a": "b"}', '{"a": "b"', ""):
        outcome = check(Tool("tool", TEXT), text, Policy.lenient(), finish_reason=reason)
        assert [violation.code for violation in outcome.violations] == ["cut_off"]
    assert check(Tool("tool", TEXT), '{"a": "b"}', finish_reason="tool_calls").status == "accepted"


@pytest.mark.parametrize(
    ("repair", "says"),
    [
        (Repair("wrapper_missing", "", "", ""), "markup around the arguments"),
        (Repair("drop_unknown_key", "/b", 1, None), "does not belong to this text"),
    ],
)
def test_an_audit_of_something_else_is_not_replayed(repair: Repair, says: str) -> None:
    with pytest.raises(InputError, match=says):
        replay(b'{"a": 1}', [repair])
