"""The table of dialects: one row each."""

from __future__ import annotations

from typing import Any

from onspec.dialects.dialect import Dialect, Family
from onspec.dialects.elements import NS, MarkedElements, ToolTags
from onspec.dialects.harmony import CALL, END, RETURN, THINKING_END, Harmony
from onspec.dialects.json_calls import NO_MARKER, JsonCalls
from onspec.dialects.pythonic import Pythonic
from onspec.dialects.several import Several
from onspec.dialects.tag_families import (
    ANTHROPIC,
    DSML,
    FUNCTION_JSON,
    GLIMMER,
    GLM,
    HY,
    KIMI_K3,
    MINICPM,
    MINIMAX,
    QWEN_CODER,
    SEED,
    STEP3,
)
from onspec.dialects.token_families import (
    APERTUS,
    COHERE,
    FUNCTIONARY,
    FUNCTIONGEMMA,
    GEMMA4,
    GEMMA4_JSON,
    GRANITE,
    GRANITE_20B,
    HERMES,
    INTERNLM,
    KIMI,
    LFM,
    LFM_JSON,
    LINES,
    LISTS,
    LLAMA,
    LLAMA4_JSON,
    LONGCAT,
    MINIMAX_M1,
    MISTRAL_ARGS,
    MISTRAL_JSON,
    NEMOTRON,
    OLMO,
    PHI,
    PHI_AUTO,
    PYTHON_TAG,
    PYTHONIC,
    XLAM_LIST,
    deepseek,
)
from onspec.dialects.write import PROMPT
from onspec.errors import InputError

_CHATML = ("<|im_end|>", "<|im_start|>", "<|endoftext|>")
_LLAMA_ENDS = ("<|eot_id|>", "<|eom_id|>", "<|begin_of_text|>", "<|end_of_text|>")
_MISTRAL_ENDS = ("</s>", "[/TOOL_CALLS]")
_DEEPSEEK_ENDS = ("<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>")
_GEMMA_ENDS = ("<end_of_turn>", "<start_function_response>", "<turn|>", "<|tool_response>", "<eos>")
_GLM_ENDS = ("<|observation|>", "<|user|>", "<|assistant|>", "<|endoftext|>")
_THINK = (("<think>", "</think>"), ("<thinking>", "</thinking>"))

_HERMES_FIRST = Several((HERMES, QWEN_CODER, GLM))
_QWEN_FIRST = Several((QWEN_CODER, HERMES, GLM))
_GLM_FIRST = Several((GLM, HERMES, QWEN_CODER))
_SEED_FIRST = Several((SEED, FUNCTION_JSON))
_MISTRAL_A = Several((MISTRAL_ARGS, MISTRAL_JSON))
_MISTRAL_J = Several((MISTRAL_JSON, MISTRAL_ARGS))
_AUTO = Several(
    (
        GRANITE_20B, HERMES, QWEN_CODER, GLM, ANTHROPIC, OLMO, DSML, MINIMAX, STEP3, SEED, GLIMMER, MINICPM,
        deepseek(False), KIMI, KIMI_K3, MISTRAL_ARGS, MISTRAL_JSON, GRANITE, PHI_AUTO, COHERE, LFM, LFM_JSON,
        Pythonic(("<|python_start|>",), ("<|python_end|>",)), LLAMA, PYTHON_TAG, LLAMA4_JSON, GEMMA4, GEMMA4_JSON,
        FUNCTIONGEMMA,
        MarkedElements(), NEMOTRON, LISTS, HY, INTERNLM, LONGCAT, APERTUS, Harmony(),
        ToolTags(declared_only=True),
    ),
)  # fmt: skip

_XML_RECOVERS = (
    "lost envelope or opener", "garbled tag name", "wrong or damaged closer", "missing closer", "doubled closer",
    "damaged argument header", "arguments as one JSON object",
)  # fmt: skip
_JSON_RECOVERS = (
    "missing closer",
    "doubled braces",
    "missing last brace",
    "nested list",
    "lost markers",
    "broken inner JSON",
)


def _row(name: str, models: str, family: Family, example: str, **more: Any) -> Dialect:
    return Dialect(name=name, models=models, family=family, example=example, **more)


_INVOKE = '<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n</invoke>'
_FUNCTION = "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>"
_OBJECT = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'

_TABLE: tuple[Dialect, ...] = (
    _row(
        "anthropic_xml",
        "Claude, leaked",
        ANTHROPIC,
        f"<function_calls>\n{_INVOKE}\n</function_calls>",
        stray=True,
        shape="function_calls > invoke name= > parameter name=",
        recovers=(*_XML_RECOVERS, "stray lead word"),
    ),
    _row(
        "hermes_json",
        "Hermes 2 and 3, Qwen2.5, Qwen3, QwQ, Granite 4.0",
        _HERMES_FIRST,
        f"<tool_call>\n{_OBJECT}\n</tool_call>",
        controls=_CHATML,
        prefilled=True,
        shape="<tool_call> JSON object </tool_call>",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "qwen3_coder_xml",
        "Qwen3-Coder, Qwen3.5 and later",
        _QWEN_FIRST,
        f"<tool_call>\n{_FUNCTION}\n</tool_call>",
        controls=_CHATML,
        prefilled=True,
        shape="<tool_call> <function=N> <parameter=K>",
        recovers=_XML_RECOVERS,
    ),
    _row(
        "nemotron3_xml",
        "Nemotron 3",
        _QWEN_FIRST,
        f"<tool_call>\n{_FUNCTION}\n</tool_call>",
        controls=_CHATML,
        prefilled=True,
        shape="as qwen3_coder_xml",
        recovers=_XML_RECOVERS,
    ),
    _row(
        "step3p5",
        "Step-3.5 and later",
        _QWEN_FIRST,
        f"<tool_call>\n{_FUNCTION}\n</tool_call>",
        controls=_CHATML,
        prefilled=True,
        shape="as qwen3_coder_xml",
        recovers=_XML_RECOVERS,
    ),
    _row(
        "mistral_json",
        "Mistral, tokenizer up to v7",
        _MISTRAL_J,
        f"[TOOL_CALLS][{_OBJECT}]",
        controls=_MISTRAL_ENDS,
        think=(("[THINK]", "[/THINK]"), *_THINK),
        shape="[TOOL_CALLS] JSON list",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "mistral_args",
        "Mistral v11 and later, Devstral, Ministral, Magistral",
        _MISTRAL_A,
        '[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}',
        controls=_MISTRAL_ENDS,
        think=(("[THINK]", "[/THINK]"), *_THINK),
        shape="[TOOL_CALLS] N [ARGS] JSON",
        recovers=("lost separator",),
    ),
    _row(
        "deepseek_v3",
        "DeepSeek V3, R1",
        deepseek(True),
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n"
        '{"city":"Oslo"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        controls=_DEEPSEEK_ENDS,
        prefilled=True,
        shape="calls begin, call begin, type, sep, N, fenced JSON",
        recovers=("other spellings of the tokens", "lost section"),
    ),
    _row(
        "deepseek_v31",
        "DeepSeek V3.1",
        deepseek(False),
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city":"Oslo"}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>",
        controls=_DEEPSEEK_ENDS,
        prefilled=True,
        shape="calls begin, call begin, N, sep, JSON",
        recovers=("other spellings of the tokens", "lost separator"),
    ),
    _row(
        "deepseek_dsml",
        "DeepSeek V3.2, V4",
        DSML,
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Oslo'
        "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        controls=_DEEPSEEK_ENDS,
        prefilled=True,
        shape="DSML tool_calls > invoke name= > parameter name= string=",
        recovers=(*_XML_RECOVERS, "lost namespace", "wrapped arguments"),
    ),
    _row(
        "kimi_k2",
        "Kimi K2, K2.5",
        KIMI,
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"city":"Oslo"}<|tool_call_end|><|tool_calls_section_end|>',
        controls=("<|im_end|>",),
        prefilled=True,
        shape="section begin, call begin, functions.N:i, argument begin, JSON",
        recovers=("lost section or call marker",),
    ),
    _row(
        "kimi_k3",
        "Kimi K3",
        KIMI_K3,
        '<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"'
        "<|sep|>Oslo<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
        controls=(
            "<|im_end|>",
            "<|open|>response<|sep|>",
            "<|close|>response<|sep|>",
            "<|open|>message<|sep|>",
            "<|close|>message<|sep|>",
        ),
        think=(("<|open|>think<|sep|>", "<|close|>think<|sep|>"), *_THINK),
        shape="open tools, open call tool=, open argument key= type=",
        recovers=_XML_RECOVERS,
    ),
    _row(
        "glm45",
        "GLM-4.5 and later, Laguna",
        _GLM_FIRST,
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n</tool_call>",
        controls=_GLM_ENDS,
        prefilled=True,
        shape="<tool_call> N, arg_key, arg_value",
        recovers=("keys before values", "written-out newlines", "missing closer", "wrong closer"),
    ),
    _row(
        "llama3_json",
        "Llama 3.1 to 3.3",
        Several((LLAMA, PYTHON_TAG, FUNCTION_JSON)),
        '{"name": "get_weather", "parameters": {"city": "Oslo"}}',
        controls=_LLAMA_ENDS,
        bare_native=("json",),
        shape="the whole reply is the JSON object; <|python_tag|>; <function=N>JSON</function>",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "llama_python_tag",
        "Llama 3.1 built-in tools",
        Several((PYTHON_TAG, LLAMA, FUNCTION_JSON), native=2),
        '<|python_tag|>get_weather.call(city="Oslo")',
        controls=_LLAMA_ENDS,
        bare_native=("json",),
        shape="<|python_tag|> N.call(K=V)",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "pythonic",
        "Llama 3.2 and 4, ToolACE",
        Several((PYTHONIC, LLAMA4_JSON)),
        '[get_weather(city="Oslo")]',
        controls=_LLAMA_ENDS,
        shape="[N(K=V), ...]",
        recovers=("prose before the list", "JSON in its place"),
    ),
    _row(
        "lfm2",
        "LFM2",
        Several((LFM, LFM_JSON)),
        '<|tool_call_start|>[get_weather(city="Oslo")]<|tool_call_end|>',
        controls=_CHATML,
        shape="<|tool_call_start|> [N(K=V)] <|tool_call_end|>",
        recovers=("missing closer",),
    ),
    _row(
        "olmo3",
        "OLMo 3",
        OLMO,
        '<function_calls>get_weather(city="Oslo")</function_calls>',
        controls=_CHATML,
        shape="<function_calls> N(K=V), one a line",
        recovers=("missing closer",),
    ),
    _row(
        "granite_pythonic",
        "Granite 3.3, 4.0-H",
        LINES,
        'get_weather(city="Oslo")',
        bare=("lines",),
        bare_native=("lines",),
        shape="the whole reply is N(K=V), one a line",
        recovers=(),
    ),
    _row(
        "harmony",
        "gpt-oss",
        Harmony(),
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo"}<|call|>',
        controls=(END, CALL, RETURN, "<|endoftext|>"),
        think=(),
        thinking_end=THINKING_END,
        bare=("header",),
        shape="start, role, channel, recipient, constrain, message, body, call",
        recovers=(
            "recipient in another place",
            "glued or misspelt header parts",
            "missing message token",
            "wrong last bracket",
            "prose after the body",
            "wrapped arguments",
        ),
    ),
    _row(
        "minimax_m2",
        "MiniMax M2",
        MINIMAX,
        f"<minimax:tool_call>\n{_INVOKE}\n</minimax:tool_call>",
        prefilled=True,
        controls=("[e~[",),
        shape="minimax:tool_call > invoke name= > parameter name=",
        recovers=_XML_RECOVERS,
    ),
    _row(
        "minimax_m1",
        "MiniMax M1",
        MINIMAX_M1,
        f"<tool_calls>\n{_OBJECT}\n</tool_calls>",
        prefilled=True,
        shape="<tool_calls> JSON lines",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "minimax_m3",
        "MiniMax M3",
        MarkedElements(prompt=PROMPT + "]<]minimax[>[<tool_call>"),
        f'{NS}<tool_call>\n{NS}<invoke name="get_weather">\n{NS}<city>Oslo{NS}</city>\n{NS}</invoke>\n{NS}</tool_call>',
        shape="a mark before every tag; one element an argument",
        recovers=("missing envelope",),
    ),
    _row(
        "functiongemma",
        "FunctionGemma",
        FUNCTIONGEMMA,
        "<start_function_call>call:get_weather{city:<escape>Oslo<escape>}<end_function_call>",
        controls=_GEMMA_ENDS,
        shape="call:N{k:<escape>v<escape>}",
        recovers=("brackets", "quotes", "missing comma", "missing closer"),
    ),
    _row(
        "gemma4",
        "Gemma 4",
        Several((GEMMA4, GEMMA4_JSON)),
        '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>',
        controls=_GEMMA_ENDS,
        think=(("<|channel>thought\n", "<channel|>"), ("<|channel>", "<channel|>"), *_THINK),
        shape='call:N{k:<|"|>v<|"|>}',
        recovers=("brackets", "quotes", "missing comma", "missing closer"),
    ),
    _row(
        "gemma3",
        "Gemma 3 (prompt-defined)",
        PYTHONIC,
        '[get_weather(city="Oslo")]',
        controls=_GEMMA_ENDS,
        fence_is_call=True,
        bare=("json", "pythonic"),
        shape="[N(K=V)], or a fence named tool_code",
        recovers=(),
    ),
    _row(
        "granite",
        "Granite 3.0 to 3.2",
        GRANITE,
        f"<|tool_call|>[{_OBJECT}]",
        controls=("<|end_of_text|>",),
        shape="<|tool_call|> JSON list",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "granite_20b",
        "Granite 20b-fc",
        GRANITE_20B,
        f"<function_call> {_OBJECT}",
        controls=("<|end_of_text|>",),
        shape="<function_call> JSON object, repeated",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "phi4_mini",
        "Phi-4-mini, FireFunction v2",
        PHI,
        f"functools[{_OBJECT}]",
        controls=("<|/tool_call|>", "<|/tool_calls|>", "<|end|>", "<|im_end|>"),
        shape="functools JSON list",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "cohere_cmd3",
        "Command R7B, Command A",
        COHERE,
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Oslo"}}]'
        "<|END_ACTION|>",
        controls=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "<|END_OF_TURN_TOKEN|>"),
        think=(("<|START_THINKING|>", "<|END_THINKING|>"), *_THINK),
        shape="<|START_ACTION|> JSON list <|END_ACTION|>",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "xlam",
        "xLAM",
        XLAM_LIST,
        f"[{_OBJECT}]",
        fence_is_call=True,
        bare_native=("json",),
        controls=("</tool_call>", "<|im_end|>"),
        shape="the whole reply is the JSON list",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "hunyuan_a13b",
        "Hunyuan A13B",
        LISTS,
        f"<tool_calls>[{_OBJECT}]</tool_calls>",
        controls=("<answer>", "</answer>"),
        shape="<tool_calls> JSON list",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "jamba",
        "Jamba",
        LISTS,
        f"<tool_calls>[{_OBJECT}]</tool_calls>",
        shape="<tool_calls> JSON list",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "nemotron_nano_v2",
        "Nemotron Nano v2",
        NEMOTRON,
        f"<TOOLCALL>[{_OBJECT}]</TOOLCALL>",
        prefilled=True,
        shape="<TOOLCALL> JSON list",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "hy_v3",
        "Hunyuan v3",
        HY,
        "<tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>"
        "</tool_calls>",
        shape="as glm45, in an envelope, with <tool_sep>",
        recovers=("missing closer", "keys before values"),
    ),
    _row(
        "seed_oss",
        "Seed-OSS",
        _SEED_FIRST,
        "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Oslo</parameter>\n</function>\n</seed:tool_call>",
        think=(("<seed:think>", "</seed:think>"), *_THINK),
        controls=("<seed:eos>",),
        prefilled=True,
        shape="as qwen3_coder_xml, in <seed:tool_call>",
        recovers=_XML_RECOVERS,
    ),
    _row(
        "step3",
        "Step-3",
        STEP3,
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">'
        '<steptml:parameter name="city">Oslo</steptml:parameter></steptml:invoke>'
        "<｜tool_call_end｜><｜tool_calls_end｜>",
        shape="steptml:invoke in tokens",
        recovers=_XML_RECOVERS,
    ),
    _row(
        "minicpm5_xml",
        "MiniCPM 5",
        MINICPM,
        '<function name="read_file"><param name="path"><![CDATA[a<b.md]]></param></function>',
        controls=("<|im_end|>",),
        shape="<function name=> <param name=>",
        recovers=("wrong or damaged closer", "missing closer"),
    ),
    _row(
        "cline_xml",
        "prompt-defined: Cline, Roo, Kilo",
        ToolTags(prompt=PROMPT + "<tool><argument>...</argument></tool>"),
        "<get_weather>\n<city>Oslo</city>\n</get_weather>",
        shape="names are the tags",
        recovers=(),
    ),
    _row(
        "internlm2",
        "InternLM 2",
        INTERNLM,
        '<|action_start|><|plugin|>{"name": "get_weather", "parameters": {"city": "Oslo"}}<|action_end|>',
        shape="<|action_start|><|plugin|> JSON object",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "longcat",
        "LongCat",
        LONGCAT,
        f"<longcat_tool_call>\n{_OBJECT}\n</longcat_tool_call>",
        think=(("<longcat_think>", "</longcat_think>"), *_THINK),
        shape="<longcat_tool_call> JSON object",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "ernie45",
        "ERNIE 4.5",
        _HERMES_FIRST,
        f"<tool_call>\n{_OBJECT}\n</tool_call>",
        prefilled=True,
        controls=("<response>", "</response>", "</s>"),
        shape="as hermes_json, text in <response>",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "apertus",
        "Apertus",
        APERTUS,
        '<|tools_prefix|>[{"get_weather": {"city": "Oslo"}}]<|tools_suffix|>',
        think=(("<|inner_prefix|>", "<|inner_suffix|>"), *_THINK),
        controls=("<|assistant_end|>",),
        shape="<|tools_prefix|> list of {N: arguments}",
        recovers=_JSON_RECOVERS,
    ),
    _row(
        "functionary",
        "Functionary v3.2",
        FUNCTIONARY,
        '>>>get_weather\n{"city": "Oslo"}',
        controls=(">>>all\n", *_LLAMA_ENDS),
        shape=">>>N, newline, JSON",
        recovers=(),
    ),
    _row(
        "glimmer",
        "Glimmer",
        GLIMMER,
        '<atem:function_calls>\n<atem:invoke name="get_weather">\n<atem:parameter name="city">Oslo</atem:parameter>\n'
        "</atem:invoke>\n</atem:function_calls>",
        controls=("<|eom|>",),
        shape="as anthropic_xml, prefix atem:",
        recovers=_XML_RECOVERS,
    ),
    _row(
        "json_args",
        "arguments of a structured call",
        JsonCalls(opens=(NO_MARKER,), prompt="{tools}"),
        '{"city": "Oslo"}',
        bare=(),
        think=(),
        shape="the arguments of a call to the one tool given",
        recovers=("closing markup at a value's end",),
    ),
    _row(
        "auto",
        "any: decided by the markers seen",
        _AUTO,
        f"<tool_call>\n{_OBJECT}\n</tool_call>",
        prefilled=True,
        controls=(
            *_CHATML,
            *_LLAMA_ENDS,
            *_MISTRAL_ENDS,
            *_DEEPSEEK_ENDS,
            *_GEMMA_ENDS,
            END,
            CALL,
            RETURN,
            "<|START_RESPONSE|>",
            "<|END_RESPONSE|>",
            "<|eom|>",
            "<|/tool_call|>",
            "<|/tool_calls|>",
        ),
        think=(
            *_THINK,
            ("[THINK]", "[/THINK]"),
            ("<seed:think>", "</seed:think>"),
            ("<|START_THINKING|>", "<|END_THINKING|>"),
            ("<|channel>", "<channel|>"),
            ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        ),
        thinking_end=THINKING_END,
        bare=("json", "pythonic"),
        stray=True,
        shape="the markers of all the others",
        recovers=(),
    ),
)

DIALECTS: dict[str, Dialect] = {row.name: row for row in _TABLE}


def named(name: str) -> Dialect:
    """The dialect of that name.

    Raises:
        InputError: There is none; the message lists the names.
    """
    found = DIALECTS.get(name)
    if found is None:
        raise InputError(f"there is no dialect {name!r}; there are: {', '.join(DIALECTS)}")
    return found
