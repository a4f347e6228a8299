"""One grammar a dialect: prose is free, a call is exact, and it is switched on by the dialect's own trigger."""

from __future__ import annotations

import pytest

from onspec.contract.tool import Tool
from onspec.errors import InputError, SchemaError
from onspec.grammar.build import build
from onspec.grammar.closing import close
from onspec.grammar.forms import FORMS
from onspec.grammar.llguidance import Vocabulary, accepts

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

# name: (a call, the same call with its keys in another order, that call with an invented key)
CALLS = {
    "anthropic_xml": (
        '<function_calls>\n<invoke name="get_weather">\n<parameter name="city">Oslo <x> & "y"</parameter>\n'
        '<parameter name="days">2</parameter>\n</invoke>\n</function_calls>',
        '<function_calls>\n<invoke name="get_weather">\n<parameter name="days">2</parameter>\n'
        '<parameter name="city">Oslo</parameter>\n</invoke>\n</function_calls>',
        '<function_calls>\n<invoke name="get_weather">\n<parameter name="in_file">2</parameter>\n',
    ),
    "hermes_json": (
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>',
        '<tool_call>\n{"arguments": {"days": 2, "city": "Oslo"}, "name": "get_weather"}\n</tool_call>',
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "in_file": 2',
    ),
    "qwen3_coder_xml": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
        "</function>\n</tool_call>",
        "<tool_call>\n<function=get_weather>\n<parameter=days>\n2\n</parameter>\n"
        "<parameter=city>\na\nb < c\n</parameter>\n"
        "</function>\n</tool_call>",
        "<tool_call>\n<function=get_weather>\n<parameter=in_file>\n2",
    ),
    "mistral_json": (
        '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]',
        '[TOOL_CALLS] [{"arguments": {"days": 2, "city": "Oslo"}, "name": "get_weather"}]',
        '[TOOL_CALLS][{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "mistral_args": (
        '[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo", "days": 2}',
        '[TOOL_CALLS]get_weather[ARGS]{"days": 2, "city": "Oslo"}',
        '[TOOL_CALLS]get_weather[ARGS]{"in_file": 2',
    ),
    "deepseek_v3": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
        '{"city":"Oslo","days":2}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
        '{"days":2,"city":"Oslo"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"in_file":2',
    ),
    "deepseek_v31": (
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city":"Oslo","days":2}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"days":2,"city":"Oslo"}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"in_file":2',
    ),
    "deepseek_dsml": (
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n'
        '<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜tool_calls>",
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="days" string="true">',
    ),
    "kimi_k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"city":"Oslo","days":2}<|tool_call_end|><|tool_calls_section_end|>',
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:7<|tool_call_argument_begin|>"
        '{"days":2,"city":"Oslo"}<|tool_call_end|><|tool_calls_section_end|>',
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"in_file":2',
    ),
    "kimi_k3": (
        '<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>'
        '<|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|>'
        '<|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|><|close|>call<|sep|>'
        "<|close|>tools<|sep|>",
        '<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>'
        '<|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|>'
        '<|open|>argument key="city" type="string"<|sep|>a<b<|close|>argument<|sep|><|close|>call'
        "<|sep|><|close|>tools<|sep|>",
        '<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="in_file"',
    ),
    "glm45": (
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>2</arg_value>\n</tool_call>",
        "<tool_call>get_weather\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n<arg_key>city</arg_key>\n"
        "<arg_value>Oslo</arg_value>\n</tool_call>",
        "<tool_call>get_weather\n<arg_key>in_file</arg_key>",
    ),
    "llama3_json": (
        '{"name": "get_weather", "parameters": {"city": "Oslo", "days": 2}}',
        '{"parameters": {"days": 2, "city": "Oslo"}, "name": "get_weather"}',
        '{"name": "get_weather", "parameters": {"in_file": 2',
    ),
    "llama_python_tag": (
        '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Oslo", "days": 2}}',
        '<|python_tag|>{"parameters": {"days": 2, "city": "Oslo"}, "name": "get_weather"}',
        '<|python_tag|>{"name": "get_weather", "parameters": {"in_file": 2',
    ),
    "pythonic": (
        '[get_weather(city="Oslo", days=2)]',
        "[get_weather(days=2, city='Os\\'lo')]",
        "[get_weather(in_file=2",
    ),
    "llama4_pythonic": (
        '<|python_start|>[get_weather(city="Oslo", days=2)]<|python_end|>',
        '<|python_start|>[get_weather(days=2,city="Oslo")]<|python_end|>',
        "<|python_start|>[get_weather(in_file=2",
    ),
    "lfm2": (
        '<|tool_call_start|>[get_weather(city="Oslo", days=2)]<|tool_call_end|>',
        '<|tool_call_start|>[get_weather(days=2, city="Oslo")]<|tool_call_end|>',
        "<|tool_call_start|>[get_weather(in_file=2",
    ),
    "olmo3": (
        '<function_calls>get_weather(city="Oslo", days=2)</function_calls>',
        '<function_calls>get_weather(days=2, city="Oslo")</function_calls>',
        "<function_calls>get_weather(in_file=2",
    ),
    "harmony": (
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo","days":2}<|call|>',
        "<|channel|>analysis<|message|>Need it.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather"
        '<|constrain|>json<|message|>{"days":2,"city":"Oslo"}<|call|>',
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"in_file":2',
    ),
    "minimax_m2": (
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n'
        '<parameter name="days">2</parameter>\n</invoke>\n</minimax:tool_call>',
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="days">2</parameter>\n'
        '<parameter name="city">Oslo</parameter>\n</invoke>\n</minimax:tool_call>',
        '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="in_file">',
    ),
    "gemma4": (
        '<|tool_call>call:get_weather{city:<|"|>Os"lo<|"|>,days:2}<tool_call|>',
        '<|tool_call>call:get_weather{days:2,city:<|"|>Oslo<|"|>,units:<|"|>metric<|"|>}<tool_call|>',
        "<|tool_call>call:get_weather{in_file:2",
    ),
    "functiongemma": (
        "<start_function_call>call:get_weather{city:<escape>Oslo<escape>,days:2}<end_function_call>",
        "<start_function_call>call:get_weather{days:2,city:<escape>Oslo<escape>}<end_function_call>",
        "<start_function_call>call:get_weather{in_file:2",
    ),
    "granite": (
        '<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]',
        '<|tool_call|>[{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}]',
        '<|tool_call|>[{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "granite_function_call": (
        '<function_call> {"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}',
        '<function_call>{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}',
        '<function_call> {"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "phi4_mini": (
        'functools[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]',
        'functools[{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}]',
        'functools[{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "cohere_cmd3": (
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Oslo", "days": 2}}]'
        "<|END_ACTION|>",
        '<|START_ACTION|>[{"tool_name": "get_weather", "parameters": {"days": 2, "city": "Oslo"}, "tool_call_id": "1"}]'
        "<|END_ACTION|>",
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"in_file": 2',
    ),
    "xlam": (
        '[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]',
        '[{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}]',
        '[{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "hunyuan_a13b": (
        '<tool_calls>[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]</tool_calls>',
        '<tool_calls>[{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}]</tool_calls>',
        '<tool_calls>[{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "nemotron_nano_v2": (
        '<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]</TOOLCALL>',
        '<TOOLCALL>[{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}]</TOOLCALL>',
        '<TOOLCALL>[{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "jamba": (
        '<tool_calls>[{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]</tool_calls>',
        '<tool_calls>[{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}]</tool_calls>',
        '<tool_calls>[{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "longcat": (
        '<longcat_tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}</longcat_tool_call>',
        '<longcat_tool_call>{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}</longcat_tool_call>',
        '<longcat_tool_call>{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "ernie45": (
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}</tool_call>',
        '<tool_call>{"name": "get_weather", "arguments": {"days": 2, "city": "Oslo"}}</tool_call>',
        '<tool_call>{"name": "get_weather", "arguments": {"in_file": 2',
    ),
    "internlm2": (
        '<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"city": "Oslo", "days": 2}}<|action_end|>',
        '<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"days": 2, "city": "Oslo"}}<|action_end|>',
        '<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"in_file": 2',
    ),
    "functionary_v32": (
        '>>>get_weather\n{"city": "Oslo", "days": 2}',
        '>>>get_weather\n{"days": 2, "city": "Oslo"}',
        '>>>get_weather\n{"in_file": 2',
    ),
    "seed_oss": (
        "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n<parameter=days>2</parameter>\n"
        "</function>\n</seed:tool_call>",
        "<seed:tool_call>\n<function=get_weather>\n<parameter=days>2</parameter>\n<parameter=city>Oslo</parameter>\n"
        "</function>\n</seed:tool_call>",
        "<seed:tool_call>\n<function=get_weather>\n<parameter=in_file>",
    ),
    "step3": (
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">'
        '<steptml:parameter name="city">Oslo</steptml:parameter><steptml:parameter name="days">2</steptml:parameter>'
        "</steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">'
        '<steptml:parameter name="days">2</steptml:parameter><steptml:parameter name="city">Oslo</steptml:parameter>'
        "</steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">'
        '<steptml:parameter name="in_file">',
    ),
    "minicpm5_xml": (
        '<function name="get_weather"><param name="city">Oslo</param><param name="days">2</param></function>',
        '<function name="get_weather"><param name="days">2</param><param name="city">Oslo</param></function>',
        '<function name="get_weather"><param name="in_file">',
    ),
    "json_args": ("{}", "{ }", '{"in_file"'),
}


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
        assert not _admits(build(TOOLS, dialect, "none").lark, plain) or not FORMS[dialect].trigger
    trigger = FORMS[dialect].trigger
    if trigger and dialect != "harmony":
        opened, closed = FORMS[dialect].think
        assert _admits(auto.lark, f"I will look.\n{plain}")
        assert _admits(required.lark, f"{opened}hm {trigger} hm{closed}{plain}")
        assert not _may_begin(auto.lark, f"I will look.\n{invented}")


@pytest.mark.parametrize("dialect", [name for name in FORMS if name != "json_args"])
def test_one_named_tool_excludes_the_others(dialect: str) -> None:
    plain, _, _ = CALLS[dialect]
    grammar = build(TOOLS, dialect, "list_jobs")
    assert not _admits(grammar.lark, plain)
    assert _admits(build(TOOLS, dialect, "get_weather").lark, plain)


@pytest.mark.parametrize("dialect", [name for name, form in FORMS.items() if form.trigger and name != "harmony"])
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
    with pytest.raises(InputError, match="no dialect"):
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
    for length in range(len(FORMS[dialect].trigger.encode()), len(plain), 3):
        matcher = BYTES.matcher(grammar.lark)
        assert matcher.consume_bytes(plain[:length])
        ending = close(matcher, plain[:length], grammar.pieces)
        assert ending is not None, plain[:length]
        assert accepts(BYTES, grammar.lark, plain[:length] + ending.text)
