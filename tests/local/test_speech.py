"""A model is spoken to by its own chat template, and its dialect is the one whose markers stand in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from onspec.contract.tool import Tool
from onspec.errors import InputError
from onspec.local.arms import cut_at
from onspec.local.chat import Chat
from onspec.local.pressure import Meter
from onspec.local.runtime import Runtime
from onspec.local.speech import dialect_in, measured, speech_of
from onspec.message import Call, Message, Result, Text

# What stands in chat templates of each family, as far as it tells the dialect.
MARKERS = {
    "hermes_json": '<tools>{{ tools }}</tools> write <tool_call>\n{"name": <name>, "arguments": <args>}\n</tool_call>',
    "qwen3_coder_xml": "<tool_call>\n<function=f>\n<parameter=p>\nv\n</parameter>\n</function>\n</tool_call>",
    "glm45": "<tool_call>{{ name }}\n<arg_key>k</arg_key>\n<arg_value>v</arg_value>\n</tool_call>",
    "mistral_json": "[AVAILABLE_TOOLS]{{ tools }}[/AVAILABLE_TOOLS][TOOL_CALLS][",
    "mistral_args": "[AVAILABLE_TOOLS]{{ tools }}[/AVAILABLE_TOOLS][TOOL_CALLS]{{ name }}[ARGS]",
    "llama3_json": 'in the format {"name": name, "parameters": object}{{ "<|python_tag|>" }}',
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>{{ id }}<|tool_call_argument_begin|>{{ a }}"
    "<|tool_call_end|><|tool_calls_section_end|>",
    "deepseek_v31": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{{ n }}<｜tool▁sep｜>{{ a }}<｜tool▁call▁end｜>"
    "<｜tool▁calls▁end｜>",
    "deepseek_v3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{{ t }}<｜tool▁sep｜>{{ n }}\n```json\n{{ a }}\n```"
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "deepseek_dsml": '<｜DSML｜tool_calls><｜DSML｜invoke name="n"><｜DSML｜parameter name="k" string="true">v'
    "</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>",
    "harmony": "<|start|>assistant to=functions.{{ n }}<|channel|>commentary json<|message|>{{ a }}<|call|>",
    "lfm2": "<|tool_call_start|>[f()]<|tool_call_end|>",
    "minimax_m2": '<minimax:tool_call><invoke name="n"><parameter name="k">v</parameter></invoke></minimax:tool_call>',
    "seed_oss": "<seed:tool_call><function={{ n }}><parameter={{ k }}>v</parameter></function></seed:tool_call>",
    "granite": "<|tool_call|>[",
    "cohere_cmd3": '<|START_ACTION|>[{"tool_name": "n", "parameters": {}}]<|END_ACTION|>',
    "gemma4": '<|tool_call>call:{{ n }}{k:<|"|>v<|"|>}<tool_call|>',
    "functiongemma": "<start_function_call>call:{{ n }}{k:<escape>v<escape>}<end_function_call>",
}
TOOLS = (Tool("read", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),)
MESSAGES = (
    Message("system", (Text("Be brief."),)),
    Message("user", (Text("Read a.py"),)),
    Message("assistant", (Text("Yes."), Call("read", '{"path": "a.py"}', "c1"))),
    Message("tool", (Result("x = 1", "c1", "read"),)),
)
NATIVE = (
    "{%- if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}"
    "{%- for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{%- for c in m.tool_calls or [] %}[TOOL_CALLS]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}"
    "{%- endfor %}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
STRICT = (
    "{% for m in messages %}"
    "{% if m.role not in ('system', 'user', 'assistant') %}{{ raise_exception('no') }}{% endif %}"
    "{% if not loop.first and m.role == messages[loop.index0 - 1].role %}{{ raise_exception('twice') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
)


class _With:
    """A runtime whose file carries another template."""

    def __init__(self, runtime: Runtime, template: str | None) -> None:
        self._runtime = runtime
        self.card = replace(runtime.card, template=template)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)


def _runtime(runtime: Runtime, template: str | None) -> Any:
    return _With(runtime, template)


@pytest.mark.parametrize("dialect", MARKERS)
def test_the_dialect_is_told_by_the_template(dialect: str) -> None:
    assert dialect_in(MARKERS[dialect]) == dialect


def test_a_template_that_takes_tools_renders_them_and_the_calls(fast: Runtime) -> None:
    speech = speech_of(_runtime(fast, NATIVE))
    assert (speech.dialect, speech.native) == ("mistral_args", True)
    prompt = speech.prompt(MESSAGES, TOOLS)
    assert '[TOOL_CALLS]read[ARGS]{"path": "a.py"}' in prompt
    assert "[AVAILABLE_TOOLS]" in prompt
    assert prompt.endswith("<tool>x = 1<assistant>")


def test_a_template_without_tools_is_told_them_in_words(fast: Runtime) -> None:
    """Roles alternate, and there are no others than the template knows."""
    speech = speech_of(_runtime(fast, STRICT))
    prompt = speech.prompt((*MESSAGES, Message("user", (Text("And now?"),))), TOOLS)
    assert prompt.count("<system>") == 1
    assert "You can call these tools" in prompt
    assert '{"name": "read", "arguments": {"path": "a.py"}}' in prompt
    assert "x = 1" in prompt
    assert prompt.endswith("<assistant>")


def test_an_open_turn_is_gone_on_with(fast: Runtime) -> None:
    for template in (NATIVE, STRICT, None):
        prompt = speech_of(_runtime(fast, template)).prompt((*MESSAGES, Message("assistant", (Text("Well, "),))), TOOLS)
        assert prompt.endswith("Well, ")


def test_a_dialect_whose_calls_are_no_objects_is_measured_in_another_one(fast: Runtime) -> None:
    speech = measured(_runtime(fast, NATIVE))
    assert (speech.dialect, speech.native) == ("hermes_json", False)
    assert "mistral_args, cannot be measured" in speech.how
    granite = measured(_runtime(fast, NATIVE.replace("[TOOL_CALLS]", "<|tool_call|>[").replace("[ARGS]", "")))
    assert (granite.dialect, granite.native) == ("granite", True)
    cut = cut_at(MESSAGES, 0, "granite")
    assert cut.call == '[{"name": "read", "arguments": {"path": "a.py"}}]'
    prompt = granite.prompt(cut.messages, TOOLS)
    assert prompt.endswith("Yes.\n<|tool_call|>")
    found = Meter(fast, TOOLS, "granite").measure(fast.prompt("x<|tool_call|>"), cut.call, keys=False)
    assert b"".join(position.text for position in found.positions).decode() == cut.call


def test_another_dialect_can_be_named(fast: Runtime) -> None:
    assert speech_of(_runtime(fast, STRICT), "glm45").dialect == "glm45"
    chat = Chat(_runtime(fast, STRICT), "glm45")
    reply = chat.reply(MESSAGES[1:2], TOOLS, "required", budget=120, seed=1)
    assert [call.name for call in reply.calls] == ["read"]
    with pytest.raises(InputError, match="no dialect"):
        Chat(fast, "klingon")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{% for %}", "cannot be read"),
        ("{{ tools }} in my own way", "none of the known"),
        ("{" * 300_000, "more than"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused_with_a_reason(fast: Runtime, template: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        speech_of(_runtime(fast, template))


@pytest.mark.parametrize(
    "template", ["{{ raise_exception('only users') }}", "{{ ''.__class__.__mro__ }}", "{{ 1 / 0 }}"]
)
def test_a_template_that_refuses_or_fails_is_one_clear_error(fast: Runtime, template: str) -> None:
    with pytest.raises(InputError, match="refuses this conversation"):
        speech_of(_runtime(fast, template)).prompt(MESSAGES, TOOLS)


def test_a_required_call_keeps_its_contract_in_every_kind_of_dialect(fast: Runtime) -> None:
    for dialect in ("hermes_json", "llama3_json", "qwen3_coder_xml", "cline_xml"):
        reply = Chat(_runtime(fast, None), dialect).reply(MESSAGES[1:2], TOOLS, "required", budget=150, seed=2)
        assert reply.calls
        assert all(outcome.ok or reply.finish_reason == "length" for outcome in reply.outcomes)
