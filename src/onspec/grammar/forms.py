"""How each model family writes a call, as far as a decoder must know it: one row a dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Style = Literal["json", "envelope", "tags", "keywords", "bare"]

THINK = ("<think>", "</think>")


@dataclass(frozen=True, slots=True)
class Form:
    """One dialect. `{name}` in a text stands for the tool's name, `{index}` for a running number.

    Attributes:
        name: As in `onspec.dialects`.
        trigger: What a model writes to start a block of calls; "" where the whole message is the call.
        call: What stands between the trigger, or the call before, and the call's body.
        style: `json`: the arguments as one JSON object. `envelope`: a JSON object that holds name and arguments.
            `tags`: one marked-up parameter each, strings raw. `keywords`: Python keyword arguments. `bare`: Gemma's
            notation, keys without quotes and strings between marks.
        end: What closes one call.
        close: What closes the block.
        between: What separates two calls of one block.
        repeat: Whether another call needs a new `block`, or follows inside the same one (`call`), or there is only
            ever `one`.
        listed: Whether envelopes stand in a JSON list.
        keys: The envelope's keys of name and arguments.
        fixed: Further members of an envelope, key and JSON Schema of the value.
        tag: What opens a parameter; `{key}` is its name, `{string}` is `true` or `false`.
        tag_end: What closes a parameter.
        marks: What stands around a string in the `bare` style.
        think: What opens and closes thinking.
        loose: Whether white space may stand around the body.
    """

    name: str
    trigger: str
    style: Style
    call: str = ""
    end: str = ""
    close: str = ""
    between: str = ""
    repeat: Literal["block", "call", "one"] = "call"
    listed: bool = False
    keys: tuple[str, str] = ("name", "arguments")
    fixed: tuple[tuple[str, str], ...] = ()
    tag: str = ""
    tag_end: str = ""
    marks: str = ""
    think: tuple[str, str] = THINK
    loose: bool = True


_SEP = "<｜tool▁sep｜>"
_DEEPSEEK = {"trigger": "<｜tool▁calls▁begin｜>", "close": "<｜tool▁calls▁end｜>"}

ROWS: tuple[Form, ...] = (
    Form(
        "anthropic_xml", "<function_calls>", "tags", '\n<invoke name="{name}">\n', "</invoke>", "\n</function_calls>",
        tag='<parameter name="{key}">', tag_end="</parameter>\n",
    ),
    Form("hermes_json", "<tool_call>", "envelope", close="</tool_call>", repeat="block"),
    Form(
        "qwen3_coder_xml", "<tool_call>", "tags", "\n<function={name}>\n", "</function>", "\n</tool_call>",
        repeat="block", tag="<parameter={key}>\n", tag_end="\n</parameter>\n",
    ),
    Form("mistral_json", "[TOOL_CALLS]", "envelope", listed=True, think=("[THINK]", "[/THINK]")),
    Form("mistral_args", "[TOOL_CALLS]", "json", "{name}[ARGS]", repeat="block", think=("[THINK]", "[/THINK]")),
    Form(
        "deepseek_v3", _DEEPSEEK["trigger"], "json", f"<｜tool▁call▁begin｜>function{_SEP}{{name}}\n```json\n",
        "\n```<｜tool▁call▁end｜>", _DEEPSEEK["close"], "\n", loose=False,
    ),
    Form(
        "deepseek_v31", _DEEPSEEK["trigger"], "json", f"<｜tool▁call▁begin｜>{{name}}{_SEP}", "<｜tool▁call▁end｜>",
        _DEEPSEEK["close"],
    ),
    Form(
        "deepseek_dsml", "<｜DSML｜tool_calls>", "tags", '\n<｜DSML｜invoke name="{name}">\n', "</｜DSML｜invoke>",
        "\n</｜DSML｜tool_calls>", tag='<｜DSML｜parameter name="{key}" string="{string}">',
        tag_end="</｜DSML｜parameter>\n",
    ),
    Form(
        "kimi_k2", "<|tool_calls_section_begin|>", "json",
        "<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>", "<|tool_call_end|>",
        "<|tool_calls_section_end|>",
    ),
    Form(
        "kimi_k3", "<|open|>tools<|sep|>", "tags", '<|open|>call tool="{name}" index="{index}"<|sep|>',
        "<|close|>call<|sep|>", "<|close|>tools<|sep|>", tag='<|open|>argument key="{key}" type="{type}"<|sep|>',
        tag_end="<|close|>argument<|sep|>",
    ),
    Form(
        "glm45", "<tool_call>", "tags", "{name}\n", "", "</tool_call>", repeat="block",
        tag="<arg_key>{key}</arg_key>\n<arg_value>", tag_end="</arg_value>\n",
    ),
    Form("llama3_json", "", "envelope", between="; ", keys=("name", "parameters")),
    Form("llama_python_tag", "<|python_tag|>", "envelope", between="; ", keys=("name", "parameters")),
    Form("pythonic", "", "keywords", "{name}", listed=True),
    Form("llama4_pythonic", "<|python_start|>", "keywords", "{name}", close="<|python_end|>", listed=True),
    Form("lfm2", "<|tool_call_start|>", "keywords", "{name}", close="<|tool_call_end|>", listed=True),
    Form("olmo3", "<function_calls>", "keywords", "{name}", close="</function_calls>", between="\n"),
    Form(
        "harmony", "<|channel|>commentary to=functions.", "json", "{name}{constrain}<|message|>", "<|call|>",
        repeat="one", think=("<|channel|>analysis<|message|>", "<|end|>"),
    ),
    Form(
        "minimax_m2", "<minimax:tool_call>", "tags", '\n<invoke name="{name}">\n', "</invoke>",
        "\n</minimax:tool_call>", tag='<parameter name="{key}">', tag_end="</parameter>\n",
    ),
    Form(
        "gemma4", "<|tool_call>", "bare", "call:{name}", close="<tool_call|>", marks='<|"|>',
        think=("<|channel>", "<channel|>"), loose=False,
    ),
    Form(
        "functiongemma", "<start_function_call>", "bare", "call:{name}", close="<end_function_call>", repeat="block",
        marks="<escape>", loose=False,
    ),
    Form("granite", "<|tool_call|>", "envelope", listed=True),
    Form("granite_function_call", "<function_call>", "envelope", repeat="block"),
    Form("phi4_mini", "functools", "envelope", listed=True),
    Form(
        "cohere_cmd3", "<|START_ACTION|>", "envelope", close="<|END_ACTION|>", listed=True,
        keys=("tool_name", "parameters"), fixed=(("tool_call_id", '{"type":"string","pattern":"^[0-9]{1,3}$"}'),),
        think=("<|START_THINKING|>", "<|END_THINKING|>"),
    ),
    Form("xlam", "", "envelope", listed=True),
    Form("hunyuan_a13b", "<tool_calls>", "envelope", close="</tool_calls>", listed=True),
    Form("nemotron_nano_v2", "<TOOLCALL>", "envelope", close="</TOOLCALL>", listed=True),
    Form("jamba", "<tool_calls>", "envelope", close="</tool_calls>", listed=True),
    Form("longcat", "<longcat_tool_call>", "envelope", close="</longcat_tool_call>", repeat="block"),
    Form("ernie45", "<tool_call>", "envelope", close="</tool_call>", repeat="block"),
    Form(
        "internlm2", "<|action_start|><|plugin|>", "envelope", close="<|action_end|>", repeat="block",
        keys=("name", "parameters"),
    ),
    Form("functionary_v32", ">>>", "json", "{name}\n", repeat="block"),
    Form(
        "seed_oss", "<seed:tool_call>", "tags", "\n<function={name}>\n", "</function>", "\n</seed:tool_call>",
        repeat="block", tag="<parameter={key}>", tag_end="</parameter>\n", think=("<seed:think>", "</seed:think>"),
    ),
    Form(
        "step3", "<｜tool_calls_begin｜>", "tags",
        '<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{name}">',
        "</steptml:invoke><｜tool_call_end｜>", "<｜tool_calls_end｜>", "\n", tag='<steptml:parameter name="{key}">',
        tag_end="</steptml:parameter>",
    ),
    Form(
        "minicpm5_xml", "<function name=", "tags", '"{name}">', "</function>", repeat="block",
        tag='<param name="{key}">', tag_end="</param>",
    ),
    Form("json_args", "", "json", repeat="one"),
)  # fmt: skip

FORMS: dict[str, Form] = {row.name: row for row in ROWS}
"""Dialects by name."""
