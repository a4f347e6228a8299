"""A grammar made from a schema admits what the schema admits, in any spelling, and nothing else."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from onspec.contract.schema import Schema
from onspec.errors import LimitError, SchemaError
from onspec.grammar.closing import close
from onspec.grammar.exact import Exact, Options, compile_exact
from onspec.grammar.llguidance import Matcher, Vocabulary, accepts
from onspec.grammar.rules import COMPACT_SPACING, PYTHON_SPACING
from onspec.local.history import EDIT_SCHEMA as EDIT
from tests.grammar.generated import schema_and_maker, shuffled

BYTES = Vocabulary.of_bytes()

OPEN = json.loads(json.dumps(EDIT).replace(', "additionalProperties": false', ""))
ONE = [{"oldText": "a", "newText": "b"}]

SPELLINGS = [
    ("as json.dumps writes", EDIT, json.dumps({"path": "x", "edits": ONE}), True),
    ("without blanks", EDIT, json.dumps({"path": "x", "edits": ONE}, separators=(",", ":")), True),
    ("indented", EDIT, json.dumps({"path": "x", "edits": ONE}, indent=2), True),
    ("indented by tabs", EDIT, json.dumps({"path": "x", "edits": ONE}, indent="\t"), True),
    ("other key order", EDIT, json.dumps({"edits": ONE, "path": "x"}), True),
    ("other key order inside", EDIT, '{"path":"x","edits":[{"newText":"b","oldText":"a"}]}', True),
    ("invented key", EDIT, '{"path":"x","edits":[{"oldText":"a","newText":"b","requireUnique":true}]}', False),
    ("invented key at the top", EDIT, '{"path":"x","edits":[],"in_file":"y"}', False),
    ("missing key", EDIT, '{"path":"x","edits":[{"oldText":"a"}]}', False),
    ("key twice", EDIT, '{"path":"x","path":"y","edits":[]}', False),
    ("key twice, once spelt with an escape", EDIT, '{"path":"x","p\\u0061th":"y","edits":[]}', False),
    ("key spelt with an escape", EDIT, '{"p\\u0061th":"x","edits":[]}', True),
    ("escaped letter", EDIT, '{"path":"caf\\u00e9","edits":[]}', True),
    ("surrogate pair", EDIT, '{"path":"\\ud83d\\ude42","edits":[]}', True),
    ("lone surrogate", EDIT, '{"path":"\\ud83d","edits":[]}', False),
    ("reversed surrogates", EDIT, '{"path":"\\ude42\\ud83d","edits":[]}', False),
    ("escaped control", EDIT, '{"path":"\\u001b[0m","edits":[]}', True),
    ("escaped slash", EDIT, '{"path":"a\\/b","edits":[]}', True),
    ("raw newline in a string", EDIT, '{"path":"x\ny","edits":[]}', False),
    ("raw tab in a string", EDIT, '{"path":"x\ty","edits":[]}', False),
    ("raw DEL", EDIT, '{"path":"x\x7fy","edits":[]}', True),
    ("bad escape", EDIT, '{"path":"\\d","edits":[]}', False),
    ("trailing comma", EDIT, '{"path":"x","edits":[],}', False),
    ("blank before", EDIT, ' {"path":"x","edits":[]}', True),
    ("newline after", EDIT, '{"path":"x","edits":[]}\n', True),
    ("much white space", EDIT, "{" + "\n" * 40 + '"path":"x","edits":[]}', True),
    ("endless white space", EDIT, "{" + "\n" * 1000 + '"path":"x","edits":[]}', False),
    ("open: undeclared key", OPEN, '{"path":"x","edits":[],"note":"n"}', True),
    ("open: other order", OPEN, '{"edits":[],"path":"x"}', True),
    ("open: undeclared first", OPEN, '{"note":1,"edits":[],"path":"x"}', True),
    ("open: declared key with a wrong value", OPEN, '{"path":"x","edits":[],"path":1}', False),
    ("open: declared key in disguise", OPEN, '{"path":"x","edits":[],"\\u0070ath":1}', False),
]


@pytest.mark.parametrize(
    ("schema", "text", "wanted"), [row[1:] for row in SPELLINGS], ids=[row[0] for row in SPELLINGS]
)
def test_every_spelling_of_json_is_judged_as_json_means_it(schema: Any, text: str, wanted: bool) -> None:
    assert accepts(BYTES, compile_exact(schema).grammar(), text) is wanted


def test_an_undeclared_key_twice_is_admitted_and_named() -> None:
    """Unknown names cannot be counted by a context-free grammar; the result says so, and `check` judges."""
    exact = compile_exact(OPEN)
    assert accepts(BYTES, exact.grammar(), '{"path":"x","edits":[],"n":1,"n":2}')
    assert "a repeated undeclared key" in {note.keyword for note in exact.inexact}
    assert compile_exact(EDIT).inexact == ()


def _judge(schema: Any) -> Any:
    return Schema(schema).judge


def _walk(exact: Exact, rng: random.Random, steps: int) -> bytes:
    """A text drawn from the grammar: random bytes, then a close."""
    matcher = BYTES.matcher(exact.grammar(edges=False))
    text = b""
    for _ in range(rng.randint(0, steps)):
        if matcher.ended():
            break
        text += _draw(matcher, rng)
    ending = close(matcher, text, exact.pieces)
    assert ending is not None, text
    return text + ending.text


def _draw(matcher: Matcher, rng: random.Random) -> bytes:
    mask = matcher.mask()
    allowed = [token for token in range(256) if mask[token]]
    if not allowed:
        return b""
    structure = [token for token in allowed if token in b'"{}[],:']
    token = rng.choice(structure if structure and rng.random() < 0.5 else allowed)
    assert matcher.consume(token)
    return bytes([token])


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(pairs)


@pytest.mark.parametrize("seed", range(25))
def test_valid_values_in_any_key_order_are_admitted(seed: int) -> None:
    """40 schemas a row: 1,000 in all, each with values that fit it, in four forms."""
    for number in range(40):
        rng = random.Random(seed * 1000 + number)
        schema, make = schema_and_maker(rng)
        try:
            exact = compile_exact(schema)
        except SchemaError:
            continue
        grammar, judge = exact.grammar(), _judge(schema)
        for _ in range(3):
            value = make(rng)
            assert judge.is_valid(value), (schema, value)
            for text in (
                json.dumps(value),
                json.dumps(value, ensure_ascii=False, separators=(",", ":")),
                json.dumps(shuffled(value, rng), indent=2),
                json.dumps(shuffled(value, rng), ensure_ascii=False).replace("/", "\\/"),
            ):
                assert accepts(BYTES, grammar, text), (schema, text)


@pytest.mark.parametrize("seed", range(25))
def test_what_the_grammar_admits_is_valid(seed: int) -> None:
    """Texts drawn from the grammar of 1,000 schemas are valid JSON and valid under an independent judge."""
    for number in range(40):
        rng = random.Random(seed * 1000 + number)
        schema, _ = schema_and_maker(rng)
        try:
            exact = compile_exact(schema)
        except SchemaError:
            continue
        if any(note.effect == "more" and note.keyword != "a repeated undeclared key" for note in exact.inexact):
            continue
        text = _walk(exact, rng, 120)
        value = json.loads(text)
        assert _judge(schema).is_valid(value), (schema, text)


@pytest.mark.parametrize(
    "options", [Options(order="schema"), Options(spacing=PYTHON_SPACING), Options(spellings=False)]
)
def test_a_narrower_form_admits_part_of_the_whole(options: Options) -> None:
    """Every text of a grammar with fixed order, fixed spacing or plain spellings is one of the exact grammar."""
    for number in range(60):
        rng = random.Random(number)
        schema, _ = schema_and_maker(rng)
        try:
            whole = compile_exact(schema)
        except SchemaError:
            continue
        text = _walk(compile_exact(schema, options), rng, 60)
        assert accepts(BYTES, whole.grammar(), text), (schema, text)


def test_schema_order_takes_keys_in_their_order_only() -> None:
    grammar = compile_exact(EDIT, Options(order="schema")).grammar()
    assert accepts(BYTES, grammar, '{"path":"x","edits":[]}')
    assert not accepts(BYTES, grammar, '{"edits":[],"path":"x"}')


def test_fixed_spacing_leaves_one_choice() -> None:
    matcher = BYTES.matcher(
        compile_exact(EDIT, Options("schema", COMPACT_SPACING, spellings=False)).grammar(edges=False)
    )
    assert matcher.forced() == b'{"path":"'


def test_a_declared_key_can_be_closed_in_an_open_object() -> None:
    """The trap: with one key written, the name of another declared key must not be driven on into an invented one."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "mode": {"type": "string"}}}
    matcher = BYTES.matcher(compile_exact(schema).grammar())
    assert matcher.consume_bytes(b'{"mode":"w","path')
    assert matcher.mask()[ord('"')]


UNSATISFIABLE = [
    False,
    {"type": "object", "properties": {"a": False}, "required": ["a"]},
    {"type": "string", "minLength": 3, "maxLength": 2},
    {"type": "integer", "minimum": 3, "maximum": 2},
    {"enum": []},
    {"type": "string", "enum": [1, 2]},
    {"allOf": [{"type": "string"}, {"type": "number"}]},
    {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]},
    {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
    {"type": "object", "required": ["a", "b"], "maxProperties": 1},
    {"type": "object", "additionalProperties": False, "minProperties": 1},
    {"type": "array", "prefixItems": [{}], "items": False, "minItems": 2},
    {"not": {}},
]


@pytest.mark.parametrize("schema", UNSATISFIABLE, ids=[json.dumps(schema)[:60] for schema in UNSATISFIABLE])
def test_a_schema_that_admits_nothing_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaError, match="admits no value"):
        compile_exact(schema)


def test_a_part_that_admits_nothing_is_left_out() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"enum": []}}, "required": ["a"]}
    grammar = compile_exact(schema).grammar()
    assert accepts(BYTES, grammar, '{"a":""}')
    assert not accepts(BYTES, grammar, '{"a":"","b":1}')
    assert not accepts(BYTES, grammar, '{"b":1,"a":""}')


def test_recursion_is_followed() -> None:
    tree = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {
                    "value": {"type": "integer"},
                    "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                },
                "required": ["value"],
                "additionalProperties": False,
            }
        },
    }
    exact = compile_exact(tree)
    assert accepts(BYTES, exact.grammar(), '{"kids":[{"value":1,"kids":[{"kids":[],"value":2}]}],"value":0}')
    assert not accepts(BYTES, exact.grammar(), '{"kids":[{"kids":[]}],"value":0}')
    assert exact.shortest == '{"value":0}'


def test_ten_thousand_constants_compile() -> None:
    words = [f"value-{number * 7919 % 10007:05d}" for number in range(10_000)]
    exact = compile_exact({"type": "object", "properties": {"v": {"enum": words}}, "required": ["v"]})
    assert accepts(BYTES, exact.grammar(), json.dumps({"v": words[77]}))
    assert not accepts(BYTES, exact.grammar(), '{"v":"value-x"}')
    assert any(note.effect == "less" for note in exact.inexact)


def test_too_deep_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(400):
        schema = {"type": "array", "items": schema}
    with pytest.raises((LimitError, SchemaError)):
        compile_exact(schema)


def test_more_keys_than_bits_lose_only_the_count() -> None:
    schema = {
        "type": "object",
        "properties": {f"k{number}": {"type": "integer"} for number in range(90)},
        "required": ["k3", "k80"],
        "additionalProperties": False,
    }
    exact = compile_exact(schema)
    whole = {f"k{number}": number for number in range(90)}
    assert accepts(BYTES, exact.grammar(), json.dumps(shuffled(whole, random.Random(1))))
    assert not accepts(BYTES, exact.grammar(), '{"k3":1}')
    assert any("first 62" in note.keyword for note in exact.inexact)


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}}, "if"),
        ({"type": "string", "pattern": "^(?!x)"}, "pattern"),
        ({"type": "string", "pattern": r"(a)\1"}, "pattern"),
        ({"type": "string", "format": "a-format-of-our-own"}, "format"),
        ({"oneOf": [{"minimum": 1}, {"maximum": 3}]}, "oneOf"),
        ({"type": "array", "contains": {"type": "string"}}, "contains"),
        ({"type": "object", "not": {"required": ["a", "b"]}}, "not"),
    ],
)
def test_what_cannot_be_followed_is_named(schema: Any, word: str) -> None:
    exact = compile_exact(schema)
    assert word in {note.keyword for note in exact.inexact if note.effect == "more"}
    json.loads(_walk(exact, random.Random(1), 20))


def test_one_of_is_exact_where_the_arms_exclude_each_other() -> None:
    arms = [
        {
            "type": "object",
            "properties": {"kind": {"const": kind}, kind: {"type": "string"}},
            "required": ["kind", kind],
        }
        for kind in ("file", "url")
    ]
    exact = compile_exact({"oneOf": arms})
    assert "oneOf" not in {note.keyword for note in exact.inexact}
    assert accepts(BYTES, exact.grammar(), '{"file":"a","kind":"file"}')
    assert not accepts(BYTES, exact.grammar(), '{"file":"a","kind":"url"}')


def test_references_outside_are_refused() -> None:
    with pytest.raises(SchemaError):
        compile_exact({"$ref": "https://example.com/schema.json"})


def test_a_half_written_value_can_always_be_ended() -> None:
    """From every byte of a call on, a close is found, and the whole is valid."""
    text = json.dumps({"edits": [{"newText": 'a "b" \\ \n é', "oldText": "x"}], "path": "p"}).encode()
    exact = compile_exact(EDIT)
    for length in range(len(text) + 1):
        matcher = BYTES.matcher(exact.grammar())
        assert matcher.consume_bytes(text[:length])
        ending = close(matcher, text[:length], exact.pieces)
        assert ending is not None
        assert _judge(EDIT).is_valid(json.loads(text[:length] + ending.text))
        assert ending.invented == (length < len(text) - 1), text[:length] + b"|" + ending.text


@pytest.mark.skipif("ONSPEC_CASES" not in os.environ, reason="set ONSPEC_CASES to the folder of shared cases")
def test_the_tools_of_real_agents_compile_exactly() -> None:
    folder = Path(os.environ["ONSPEC_CASES"]).parent / "client_tools"
    count = 0
    for file in sorted(folder.glob("*.json")):
        if file.name.endswith(".meta.json"):
            continue
        for tool in json.loads(file.read_text()):
            inner = tool.get("function", tool)
            schema = inner.get("input_schema") or inner.get("parameters") or inner.get("inputSchema")
            if not isinstance(schema, dict):
                continue
            exact = compile_exact(schema, root="object")
            text = _walk(exact, random.Random(count), 150)
            more = {note.keyword for note in exact.inexact if note.effect == "more"} - {"a repeated undeclared key"}
            if not more:
                assert _judge(schema).is_valid(json.loads(text)), (file.name, tool.get("name"), text)
            count += 1
    assert count > 100


FORMATS = [
    ("date", "2026-11-30", "2026-13-01"),
    ("time", "23:59:59Z", "24:00:00Z"),
    ("date-time", "2026-11-30T10:20:30.5+01:00", "2026-11-30 10:20"),
    ("duration", "P1DT12H", "P1H"),
    ("email", "a.b+c@example.org", "a@@b"),
    ("hostname", "a-b.example", "-a.example"),
    ("ipv4", "127.0.0.1", "256.0.0.1"),
    ("ipv6", "2001:db8::1", "2001:db8:::1"),
    ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
    ("uri", "https://example.org/a?b=c#d", "no uri"),
    ("uri-reference", "../a/b?c", "a b"),
    ("json-pointer", "/a~0b/0", "a"),
]


@pytest.mark.parametrize(("name", "good", "bad"), FORMATS)
def test_a_known_format_is_followed_on_request(name: str, good: str, bad: str) -> None:
    """JSON Schema has `format` as a remark, so the exact grammar admits any text unless it is told to follow it."""
    schema = {"type": "string", "format": name}
    followed = compile_exact(schema, Options(formats=True))
    assert followed.inexact == ()
    assert accepts(BYTES, followed.grammar(), json.dumps(good))
    assert not accepts(BYTES, followed.grammar(), json.dumps(bad))
    plain = compile_exact(schema)
    assert accepts(BYTES, plain.grammar(), json.dumps(bad))
    unknown = compile_exact({"type": "string", "format": "ISBN"}, Options(formats=True))
    assert accepts(BYTES, unknown.grammar(), '"x"')
    assert [note.keyword for note in unknown.inexact] == ["format"]
