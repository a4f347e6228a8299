"""The public face: a whole reply and a stream, thinking, policies, and what a developer gets wrong."""

# ruff: noqa: E501 -- a row is a text as a model writes it, on one line where it can be

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from onspec import Policy, Receiver, Tool, Toolset, receive
from onspec.cli.parse import parse
from onspec.dialects import DIALECTS, dialect_of
from onspec.dialects.render import render_assistant, render_calls, render_tools
from onspec.errors import InputError
from onspec.message import Call, Message, Text, Thinking
from onspec.receive import ReceivedCall
from tests.dialects.texts import IN_BAND, TOOLS, WEATHER

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
DEFINITION = {"name": "get_weather", "input_schema": WEATHER.schema.document if WEATHER.schema else {}}


@pytest.mark.parametrize("tools", [TOOLS, [WEATHER], [DEFINITION], {"model": "m", "tools": [DEFINITION]}])
def test_tools_come_in_any_form(tools: Any) -> None:
    assert [call.outcome.arguments for call in receive(CALL, tools).calls] == [{"city": "Oslo"}]


def test_a_span_is_in_bytes_of_the_reply() -> None:
    """The call's place, cut from the reply's bytes, is its markup."""
    text = f"Für Größe: ja.\n{CALL}\nÜbrigens."
    for raw in (text, text.encode()):
        start, end = receive(raw, TOOLS, "hermes_json").calls[0].span
        assert text.encode()[start:end].decode() == CALL


def test_arguments_are_the_raw_text() -> None:
    """JSON is handed on as it was written, space and all."""
    text = '<tool_call>{"name": "get_weather", "arguments": { "city":"Os\\u006co" }}</tool_call>'
    assert receive(text, TOOLS).calls[0].arguments == '{ "city":"Os\\u006co" }'


def test_text_arrives_at_once_where_the_start_is_known() -> None:
    """With `closed` every piece of text is given out as it comes, and the call when it is complete."""
    receiver = Receiver(TOOLS, "hermes_json", thinking="closed")
    assert receiver.feed("Let me ") == (Text("Let me"),)
    assert receiver.feed("look.") == (Text(" look."),)
    assert receiver.feed("\n" + CALL[:-5]) == ()
    (call,) = receiver.feed(CALL[-5:] + "\n")
    assert isinstance(call, ReceivedCall)
    assert receiver.close() == ()
    assert receiver.reply.text == "Let me look."


def test_thinking_arrives_as_it_comes() -> None:
    receiver = Receiver(TOOLS, "hermes_json", thinking="open")
    assert receiver.feed("I won") == (Thinking("I won"),)
    assert receiver.feed("der</th") == (Thinking("der"),)
    assert receiver.feed("ink>\nYes") == (Text("Yes"),)


@pytest.mark.parametrize("name", [row.name for row in IN_BAND if row.prefilled])
def test_a_closer_without_an_opener_ends_reasoning_that_the_prompt_opened(name: str) -> None:
    """Everything before it was thought, calls too."""
    row = DIALECTS[name]
    closer = row.think[0][1]
    reply = receive(f"Maybe {row.example}\nNo.\n{closer}\n\nHello.", TOOLS, row)
    assert (reply.text, reply.calls) == ("Hello.", ())
    assert "Maybe" in reply.thinking
    ran = receive(f"Yes.\n{closer}\n\n{row.example}", TOOLS, row)
    assert ([call.ok for call in ran.calls], ran.text, ran.thinking.strip()) == ([True], "", "Yes.")


def test_strict_repairs_no_markup() -> None:
    """Under the strict policy a call whose markup needed mending is refused, and one that needed none runs."""
    assert receive(CALL, TOOLS, policy=Policy.strict()).calls[0].ok
    broken = receive(CALL.removesuffix("</tool_call>"), TOOLS, policy=Policy.strict()).calls[0]
    assert [v.code for v in broken.outcome.violations] == ["not_permitted"]


def test_lenient_drops_an_undeclared_argument() -> None:
    text = "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=colour>\nred\n</parameter>\n</function>\n</tool_call>"
    lenient = receive(text, TOOLS, "qwen3_coder_xml", Policy.lenient()).calls[0].outcome
    assert lenient.arguments == {"city": "Oslo"}
    assert [repair.rule for repair in lenient.repairs] == ["drop_unknown_key"]


def test_the_providers_word_that_it_cut_refuses_the_last_call_only() -> None:
    """A call that ran into the end is refused; one before it that was closed is not."""
    text = CALL + "\n" + CALL.removesuffix("\n</tool_call>")
    assert [call.ok for call in receive(text, TOOLS, "hermes_json", finish_reason="stop").calls] == [True, True]
    assert [call.ok for call in receive(text, TOOLS, "hermes_json", finish_reason="length").calls] == [True, False]


TYPES = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "maybe": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "count": {"type": "integer"},
        "none": {"type": ["integer", "null"]},
        "ref": {"$ref": "#/$defs/n"},
        "list": {"type": "array", "items": {"type": "string"}},
        "free": {},
        "choice": {"enum": ["1", "2"]},
        "level": {"enum": [1, 2]},
    },
    "$defs": {"n": {"type": "number"}},
}
TYPED = {
    ("text", "00712"): "00712",
    ("text", "true"): "true",
    ("text", "null"): "null",
    ("text", "[1]"): "[1]",
    ("text", "  x "): "  x ",
    ("maybe", "null"): "null",
    ("either", "12"): "12",
    ("count", "12"): 12,
    ("none", "null"): None,
    ("ref", "1.50"): 1.5,
    ("list", '["a", "b"]'): ["a", "b"],
    ("free", "7"): "7",
    ("choice", "1"): "1",
    ("level", "1"): 1,
}


@pytest.mark.parametrize(("key", "written"), TYPED)
@pytest.mark.parametrize("name", ["anthropic_xml", "glm45", "qwen3_coder_xml", "minimax_m3", "cline_xml"])
def test_types_come_from_the_schema(name: str, key: str, written: str) -> None:
    """A declared string is the text, whatever it looks like; every other type is decoded."""
    shapes = {
        "anthropic_xml": '<function_calls>\n<invoke name="f">\n<parameter name="{k}">{v}</parameter>\n</invoke>\n</function_calls>',
        "glm45": "<tool_call>f\n<arg_key>{k}</arg_key>\n<arg_value>{v}</arg_value>\n</tool_call>",
        "qwen3_coder_xml": "<tool_call>\n<function=f>\n<parameter={k}>\n{v}\n</parameter>\n</function>\n</tool_call>",
        "minimax_m3": ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="f">\n]<]minimax[>[<{k}>{v}]<]minimax[>[</{k}>\n'
        "]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
        "cline_xml": "<f>\n<{k}>{v}</{k}>\n</f>",
    }
    text = shapes[name].replace("{k}", key).replace("{v}", written)
    call = receive(text, [Tool("f", TYPES)], name).calls[0]
    assert call.outcome.arguments == {key: TYPED[key, written]}
    assert type(call.outcome.arguments[key]) is type(TYPED[key, written])


MODELS = {
    "gpt-oss-120b": "harmony",
    "Qwen/Qwen3-Coder-30B-A3B-Instruct": "qwen3_coder_xml",
    "Qwen2.5-7B-Instruct": "hermes_json",
    "deepseek-ai/DeepSeek-V3.1": "deepseek_v31",
    "DeepSeek-V3.2-Exp": "deepseek_dsml",
    "moonshotai/Kimi-K2-Instruct": "kimi_k2",
    "zai-org/GLM-4.6": "glm45",
    "MiniMaxAI/MiniMax-M2": "minimax_m2",
    "google/functiongemma-270m-it": "functiongemma",
    "meta-llama/Llama-3.1-8B-Instruct": "llama3_json",
    "meta-llama/Llama-4-Scout": "pythonic",
    "something-else": "auto",
}


@pytest.mark.parametrize("model", MODELS)
def test_a_models_name_tells_its_dialect(model: str) -> None:
    assert dialect_of(model) == MODELS[model]
    assert Receiver(TOOLS, model=model).dialect.name == MODELS[model]


def test_every_named_dialect_of_a_model_exists() -> None:
    assert set(MODELS.values()) <= set(DIALECTS)


def test_misuse_raises() -> None:
    """A name that is none, a word that is none, a reply that is over or not over."""
    with pytest.raises(InputError, match="no dialect 'nope'"):
        receive("", TOOLS, "nope")
    with pytest.raises(InputError, match="thinking is"):
        Receiver(TOOLS, thinking="perhaps")  # type: ignore[arg-type]
    receiver = Receiver(TOOLS)
    with pytest.raises(InputError, match="not closed"):
        _ = receiver.reply
    receiver.close()
    assert receiver.close() == ()
    with pytest.raises(InputError, match="closed"):
        receiver.feed("x")


def test_what_cannot_be_written_is_said() -> None:
    """A raw value that ends in its own closer, broken arguments, a name that is no name."""
    row = DIALECTS["anthropic_xml"]
    with pytest.raises(InputError, match="read"):
        render_calls(row, (Call("read_file", json.dumps({"path": "a</parameter>"})),), TOOLS)
    with pytest.raises(InputError, match="heal"):
        render_calls(row, (Call("read_file", "{oops"),), TOOLS)
    with pytest.raises(InputError, match="Python name"):
        render_calls(DIALECTS["pythonic"], (Call("a b", "{}"),), Toolset([Tool("a b", True)]))


def test_a_turn_is_written_in_its_order() -> None:
    message = Message("assistant", (Thinking("Hm."), Text("Look."), Call("get_weather", '{"city": "Oslo"}')))
    text = render_assistant(DIALECTS["hermes_json"], message, TOOLS)
    reply = receive(text, TOOLS, "hermes_json")
    assert (reply.thinking, reply.text, reply.calls[0].arguments) == ("Hm.", "Look.", '{"city": "Oslo"}')


@pytest.mark.parametrize("name", [row.name for row in IN_BAND])
def test_the_prompt_names_every_tool(name: str) -> None:
    text = render_tools(DIALECTS[name], TOOLS)
    assert all(tool in text for tool in TOOLS)


# -- command line ------------------------------------------------------------------------------------------------------


@pytest.fixture
def tools_file(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([DEFINITION]))
    return str(path)


def test_parse_prints_json(tools_file: str) -> None:
    done = CliRunner().invoke(parse, ["--tools", tools_file, "--json"], input="Hm.\n" + CALL)
    document = json.loads(done.stdout)
    assert (done.exit_code, document["status"], document["text"]) == (0, "accepted", "Hm.")
    assert document["calls"][0]["arguments"] == {"city": "Oslo"}


def test_parse_streams_events(tools_file: str) -> None:
    arguments = ["--tools", tools_file, "--json", "--stream", "--thinking", "closed", "--dialect", "hermes_json"]
    done = CliRunner().invoke(parse, arguments, input="Hm.\n" + CALL)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == ["text", "call", "end"]


def test_parse_says_refused_with_its_exit_status(tools_file: str) -> None:
    done = CliRunner().invoke(parse, ["--tools", tools_file], input=CALL.replace("city", "town"))
    assert done.exit_code == 1
    assert "refused" in done.stdout


@pytest.mark.parametrize("arguments", [[], ["--tools", "{file}", "--dialect", "nope"], ["--tools", "missing.json"]])
def test_parse_used_wrongly_is_one_line_and_two(arguments: list[str], tools_file: str) -> None:
    filled = [argument.replace("{file}", tools_file) for argument in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "onspec", "parse", *filled], input=b"x", capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_parse_lists_the_dialects() -> None:
    done = CliRunner().invoke(parse, ["--list"])
    assert done.exit_code == 0
    assert all(name in done.stdout for name in DIALECTS)


def test_the_page_of_dialects_is_up_to_date() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "docs/dialects.py", "--check"], cwd=root, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
