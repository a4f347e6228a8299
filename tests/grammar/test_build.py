"""One grammar a dialect: prose is free, a call is exact, and it is switched on by the dialect's own trigger."""

from __future__ import annotations

import json
import re

import pytest

from onspec.contract.tool import Grammar, Tool
from onspec.contract.toolset import Toolset
from onspec.dialects import named
from onspec.dialects.render import render_calls
from onspec.errors import InputError, SchemaError
from onspec.grammar.build import build
from onspec.grammar.closing import close
from onspec.grammar.forms import FORMS
from onspec.grammar.llguidance import Vocabulary, accepts
from onspec.grammar.openai_custom import APPLY_PATCH
from onspec.message import Call
from onspec.receive import receive
from tests.grammar.calls import CALLS

BYTES = Vocabulary.of_bytes()

WEATHER = Tool(
    "get_weather",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "minimum": 1},
            "units": {"enum": ["metric", "imperial"]},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    },
)
JOBS = Tool("list_jobs", {"type": "object", "properties": {}, "additionalProperties": False})
TOOLS = (WEATHER, JOBS)


def _admits(lark: str, text: str) -> bool:
    return accepts(BYTES, lark, text)


def _may_begin(lark: str, text: str) -> bool:
    return BYTES.matcher(lark).consume_bytes(text.encode())


def test_every_dialect_has_its_rows() -> None:
    assert set(CALLS) == set(FORMS)


@pytest.mark.parametrize("dialect", [name for name in FORMS if name != "json_args"])
def test_a_call_is_exact_and_prose_is_free(dialect: str) -> None:
    """For one dialect: a call in any key order, never with an invented key, alone, after prose, and after thinking."""
    plain, other_order, invented = CALLS[dialect]
    auto = build(TOOLS, dialect)
    required = build(TOOLS, dialect, "required")
    for text in (plain, other_order):
        assert _admits(auto.lark, text)
        assert _admits(required.lark, text)
    assert not _may_begin(required.lark, invented)
    assert not _may_begin(auto.lark, invented)
    if dialect != "harmony":
        assert _admits(auto.lark, "Nothing to call here.")
        assert not _admits(required.lark, "Nothing to call here.")
        assert not _admits(build(TOOLS, dialect, "none").lark, plain) or not FORMS[dialect].word
    trigger = FORMS[dialect].word
    if trigger and dialect != "harmony":
        opened, closed = FORMS[dialect].think or ("", "")
        assert _admits(auto.lark, f"I will look.\n{plain}")
        assert _admits(required.lark, f"{opened}hm {trigger} hm{closed}{plain}")
        assert not _may_begin(auto.lark, f"I will look.\n{invented}")


@pytest.mark.parametrize("dialect", [name for name in FORMS if name != "json_args"])
def test_one_named_tool_excludes_the_others(dialect: str) -> None:
    plain, _, _ = CALLS[dialect]
    grammar = build(TOOLS, dialect, "list_jobs")
    assert not _admits(grammar.lark, plain)
    assert _admits(build(TOOLS, dialect, "get_weather").lark, plain)


@pytest.mark.parametrize("dialect", [name for name, form in FORMS.items() if form.word and name != "harmony"])
def test_the_body_begins_where_the_trigger_ends(dialect: str) -> None:
    """What a decoder needs that leaves prose alone: the same calls, from just after the trigger."""
    plain, other_order, invented = CALLS[dialect]
    grammar = build(TOOLS, dialect)
    assert grammar.body is not None
    assert grammar.calls is not None
    cut = len(grammar.trigger)
    assert _admits(grammar.calls, plain[cut:])
    assert _admits(grammar.body, other_order[cut:])
    assert not _may_begin(grammar.body, invented[cut:])


def test_one_call_only_where_parallel_is_off() -> None:
    one = '<tool_call>\n{"name": "list_jobs", "arguments": {}}\n</tool_call>'
    assert _admits(build(TOOLS, "hermes_json").lark, f"{one}\n{one}")
    assert not _admits(build(TOOLS, "hermes_json", parallel=False).lark, f"{one}\n{one}")
    both = '[TOOL_CALLS][{"name": "list_jobs", "arguments": {}}, {"name": "list_jobs", "arguments": {}}]'
    assert _admits(build(TOOLS, "mistral_json").lark, both)
    assert not _admits(build(TOOLS, "mistral_json", parallel=False).lark, both)


def test_an_opened_thinking_block_must_be_closed_first() -> None:
    call = CALLS["hermes_json"][0]
    grammar = build(TOOLS, "hermes_json", "required", thinking="open")
    assert _admits(grammar.lark, f"so it is </think>\n{call}")
    assert not _admits(grammar.lark, call)


@pytest.mark.parametrize("spelling", [" <|constrain|>json", "<|constrain|>json", " json", ""])
def test_harmony_accepts_every_spelling_of_its_header(spelling: str) -> None:
    text = f"<|channel|>commentary to=functions.list_jobs{spelling}<|message|>{{}}<|call|>"
    assert _admits(build(TOOLS, "harmony").lark, text)


def test_a_free_tool_takes_any_text_in_harmony() -> None:
    patch = Tool("apply_patch", None)
    text = "<|channel|>commentary to=functions.apply_patch<|message|>*** Begin Patch\n{ not json<|call|>"
    assert _admits(build([patch], "harmony").lark, text)


def test_special_tokens_are_matched_as_tokens() -> None:
    """Where the vocabulary has a marker as one token, text that merely looks like it does not count."""
    grammar = build(TOOLS, "hermes_json", "required", specials={"<tool_call>": 256, "</tool_call>": 257})
    matcher = BYTES.matcher(grammar.lark)
    inner = b'{"name": "list_jobs", "arguments": {}}'
    assert not BYTES.matcher(grammar.lark).consume_bytes(b"<tool_call>" + inner + b"</tool_call>") or not (
        _admits(grammar.lark, "<tool_call>" + inner.decode() + "</tool_call>")
    )
    assert matcher.consume(256)
    assert matcher.consume_bytes(inner)
    assert matcher.consume(257)
    assert matcher.accepting()


@pytest.mark.parametrize("dialect", ["hermes_json", "harmony", "kimi_k2", "qwen3_coder_xml", "gemma4", "lfm2"])
def test_a_call_can_be_ended_where_markers_are_tokens(dialect: str) -> None:
    """The ending holds the tokens themselves, not their names spelt out."""
    plain = CALLS[dialect][0]
    names = sorted(set(re.findall(r"<\|[^<>|]+\|>|<[|/]?\w+\|?>", plain)), key=len, reverse=True)[:6]
    specials = {name: 256 + number for number, name in enumerate(names)}
    grammar = build(TOOLS, dialect, "required", specials=specials)
    tokens: list[int] = []
    for piece in re.split("(" + "|".join(map(re.escape, names)) + ")", plain):
        tokens += [specials[piece]] if piece in specials else list(piece.encode())
    for length in range(1, len(tokens), 4):
        matcher = BYTES.matcher(grammar.lark)
        assert matcher.consume_all(tokens[:length])
        spelt = b"".join(names[t - 256].encode() if t > 255 else bytes([t]) for t in tokens[:length])
        ending = close(matcher, spelt, grammar.pieces)
        assert ending is not None, spelt
        whole = BYTES.matcher(grammar.lark)
        assert whole.consume_all([*tokens[:length], *ending.tokens])
        assert whole.accepting()


def test_many_tools_make_one_grammar() -> None:
    tools = [Tool(f"tool_{n}", {"type": "object", "properties": {"a": {"type": "string"}}}) for n in range(120)]
    grammar = build(tools, "hermes_json", "required")
    assert _admits(grammar.lark, '<tool_call>{"name": "tool_77", "arguments": {"a": "x"}}</tool_call>')
    assert not _may_begin(grammar.lark, '<tool_call>{"name": "tool_120"')


def test_grammars_are_cached_by_content() -> None:
    twin = Tool("list_jobs", {"type": "object", "properties": {}, "additionalProperties": False})
    assert build([JOBS], "hermes_json") is build([twin], "hermes_json")
    assert build([JOBS], "hermes_json") is not build([JOBS], "hermes_json", "required")


@pytest.mark.parametrize(("dialect", "choice"), [(name, "x") for name in ("hermes_json", "harmony", "qwen3_coder_xml")])
def test_a_wrong_request_is_named(dialect: str, choice: str) -> None:
    with pytest.raises(InputError, match="no tool is called"):
        build(TOOLS, dialect, choice)
    with pytest.raises(InputError, match="no dialect to write"):
        build(TOOLS, "klingon")
    with pytest.raises(InputError, match="there is no tool"):
        build([], dialect, "required")
    with pytest.raises(SchemaError, match="admit no value"):
        build([Tool("never", {"type": "object", "required": ["a"], "properties": {"a": False}})], dialect)


@pytest.mark.parametrize("dialect", [name for name in FORMS if name != "json_args"])
def test_a_call_can_be_ended_from_any_byte(dialect: str) -> None:
    """In every dialect, from every byte of a call on, there is a way out that the grammar accepts."""
    plain = CALLS[dialect][0].encode()
    grammar = build(TOOLS, dialect, "required")
    for length in range(len(FORMS[dialect].word.encode()), len(plain), 3):
        matcher = BYTES.matcher(grammar.lark)
        assert matcher.consume_bytes(plain[:length])
        ending = close(matcher, plain[:length], grammar.pieces)
        assert ending is not None, plain[:length]
        assert accepts(BYTES, grammar.lark, plain[:length] + ending.text)


@pytest.mark.parametrize(
    "header",
    [
        " to=functions.list_jobs<|channel|>commentary <|constrain|>json",
        "<|channel|>analysis to=functions.list_jobs code",
        " to=functions.list_jobs<|channel|>analysis",
        "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant to=functions.list_jobs<|channel|>commentary",
    ],
)
def test_a_recipient_in_harmony_may_stand_before_the_channel_and_in_the_analysis(header: str) -> None:
    assert _admits(build(TOOLS, "harmony", "required").lark, f"{header}<|message|>{{}}<|call|>")


LIMITED = Tool(
    "limited",
    {
        "type": "object",
        "properties": {
            "short": {"type": "string", "minLength": 2, "maxLength": 4},
            "code": {"type": "string", "pattern": "^[a-z]+$"},
        },
        "additionalProperties": False,
    },
)


@pytest.mark.parametrize(
    "dialect", [name for name, form in FORMS.items() if form.style in ("tags", "elements") and name != "cline_xml"]
)
def test_raw_text_keeps_the_limits_of_its_schema(dialect: str) -> None:
    """Lengths and patterns hold for raw parameters as they do for JSON strings."""
    grammar, row = build([LIMITED], dialect, "required"), named(dialect)
    for short, code, wanted in (
        ("ab", "x", True),
        ("a\n<>", "xyz", True),
        ("a", "x", False),
        ("abcde", "x", False),
        ("ab", "x1", False),
    ):
        call = Call("limited", json.dumps({"short": short, "code": code}))
        assert _admits(grammar.lark, render_calls(row, (call,), Toolset([LIMITED]))) is wanted, (short, code)


PATCH_TOOL = Tool("apply_patch", None, grammar=Grammar("lark", APPLY_PATCH))
PATCH_TEXT = "*** Begin Patch\n*** Delete File: a.py\n*** End Patch\n"
FREE = {
    "harmony": "<|channel|>commentary to=functions.apply_patch code<|message|>{}<|call|>",
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.apply_patch:0<|tool_call_argument_begin|>{}"
    "<|tool_call_end|><|tool_calls_section_end|>",
    "deepseek_v31": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>apply_patch<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
    "<｜tool▁calls▁end｜>",
    "qwen3_coder_xml": "<tool_call>\n<function=apply_patch>\n<parameter=input>\n{}\n</parameter>\n</function>\n"
    "</tool_call>",
    "deepseek_dsml": '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="apply_patch">\n<｜DSML｜parameter name="input" '
    'string="true">{}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
}


@pytest.mark.parametrize("dialect", FREE)
def test_a_custom_tool_keeps_its_own_grammar_where_its_text_stands_raw(dialect: str) -> None:
    lark = build([PATCH_TOOL, JOBS], dialect, "required").lark
    assert _admits(lark, FREE[dialect].format(PATCH_TEXT))
    assert not _admits(lark, FREE[dialect].format("*** Begin Patch\nno file\n*** End Patch\n"))
    (call,) = receive(FREE[dialect].format(PATCH_TEXT), [PATCH_TOOL, JOBS], dialect).calls
    assert call.outcome.ok
    assert call.outcome.arguments is not None
    assert call.outcome.arguments["input"].strip() == PATCH_TEXT.strip()


def test_a_regex_of_a_custom_tool_holds_inside_a_json_string() -> None:
    tool = Tool("when", None, grammar=Grammar("regex", r"\d{4}-\d{2}"))
    lark = build([tool], "hermes_json", "required").lark
    call = '<tool_call>{{"name": "when", "arguments": {{"input": "{}"}}}}</tool_call>'
    assert _admits(lark, call.format("2026-11"))
    assert not _admits(lark, call.format("2026-1"))
