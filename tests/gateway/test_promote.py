"""Call markup that leaked into text becomes a call where it is complete and valid, and is text otherwise."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from onspec.gateway.config import Rules
from onspec.gateway.leak import recover_with
from onspec.providers.script import Block, Script
from tests.gateway.rig import PATHS, Rig, call, request, rig, says, tools
from tests.gateway.test_rewrite import frames, numbers, read

RIGHT = {"path": "a.py", "edits": [{"oldText": "x < 1", "newText": "y"}]}
INVOKE = (
    '<invoke name="edit">\n<parameter name="path">a.py</parameter>\n'
    f'<parameter name="edits">{json.dumps(RIGHT["edits"])}</parameter>\n</invoke>\n'
)
HERMES = f"<tool_call>{json.dumps({'name': 'edit', 'arguments': RIGHT})}</tool_call>"
PROMOTE = Rules(promote=True)


def ask(r: Rig, api: str, stream: bool = True) -> httpx2.Response:
    """One request through the gateway."""
    return httpx2.post(r.url + PATHS[api], json=request(api, stream), timeout=30)


def words(url: str, api: str, stream: bool) -> tuple[str, list[Any], str]:
    """Text, calls and stop reason as the official SDKs read them."""
    if api == "anthropic":
        client = anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)
        asked: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        asked["tools"] = tools(api)
        if stream:
            with client.messages.stream(**asked) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**asked)
        text = "".join(block.text for block in message.content if block.type == "text")
        return text, [block.input for block in message.content if block.type == "tool_use"], str(message.stop_reason)
    client_two = openai.OpenAI(api_key="k", base_url=url + "/v1", max_retries=0)
    if api == "chat":
        chat: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": tools(api)[:-1]}
        if stream:
            with client_two.chat.completions.stream(**chat) as chunks:
                choice: Any = chunks.get_final_completion().choices[0]
        else:
            choice = client_two.chat.completions.create(**chat).choices[0]
        calls = [json.loads(one.function.arguments) for one in choice.message.tool_calls or []]
        return choice.message.content or "", calls, choice.finish_reason
    given: dict[str, Any] = {"model": "m", "input": "x", "tools": tools(api)}
    if stream:
        with client_two.responses.stream(**given) as steps:
            response: Any = steps.get_final_response()
    else:
        response = client_two.responses.create(**given)
    calls = [json.loads(item.arguments) for item in response.output if item.type == "function_call"]
    return response.output_text, calls, response.status


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("markup", [INVOKE, HERMES])
@pytest.mark.parametrize("chunk", [0, 1, 11])
def test_a_leaked_call_becomes_a_call(api: str, stream: bool, markup: str, chunk: int) -> None:
    """The official SDKs read the call, the text without its markup, and a stop that goes with calls."""
    turn = says(Block("text", "I fix a < b now.\n\n" + markup, chunk=chunk))
    with rig(Script((turn,), every=True, loop=True), PROMOTE, recover=recover_with) as r:
        text, calls, stop = words(r.url, api, stream)
        assert text.strip() == "I fix a < b now."
        assert calls == [RIGHT]
        assert stop == {"anthropic": "tool_use", "chat": "tool_calls", "responses": "completed"}[api]
        assert [record.outcome for record in r.gateway.recent] == ["promoted"]
        if stream:
            data = ask(r, api).content
            assert b"invoke" not in data
            assert b"tool_call>" not in data
            assert numbers(data) == sorted(set(numbers(data)))


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "Use <b>bold</b> and a < b, [TODO], <|x|>.",
        'Write `<invoke name="edit">` yourself.',
        f"```\n{INVOKE}```",
        INVOKE.replace("</invoke>", "")[:-30],
        INVOKE.replace('name="edit"', 'name="nothing"'),
        INVOKE.replace("a.py", 'a.py</parameter><parameter name="path">b.py'),
        "<invoke",
    ],
)
def test_everything_else_is_text(api: str, stream: bool, text: str) -> None:
    """Quoted, fenced, cut, unknown or invalid markup passes byte for byte."""
    turn = says(Block("text", text, chunk=3))
    with rig(Script((turn,), every=True, loop=True), PROMOTE, recover=recover_with) as r:
        through = ask(r, api, stream).content
        r.provider._made -= 1
        assert through == httpx2.post(r.provider.url + PATHS[api], json=request(api, stream)).content
        assert not r.gateway.recent


@pytest.mark.parametrize("api", PATHS)
def test_a_leak_beside_real_calls(api: str) -> None:
    """Calls that came as calls stay in their place; the leaked one comes last."""
    turn = says(Block("text", "So. " + INVOKE), call("now", "{}"))
    with rig([turn], PROMOTE, recover=recover_with) as r:
        text, names, _ = read(api, ask(r, api).content)
    assert [json.loads(one) for one in text.values()] == [{}, RIGHT]
    assert list(names.values()) == ["now", "edit"]


@pytest.mark.parametrize("api", PATHS)
def test_a_leak_cut_by_length_is_text(api: str) -> None:
    """Out of tokens after a leak: nothing is made of it."""
    turn = says(Block("text", INVOKE), stop="max_tokens")
    with rig([turn], PROMOTE, recover=recover_with) as r:
        data = ask(r, api).content
    assert not read(api, data)[0]
    assert b"invoke" in data
    assert frames(data)


def test_off_unless_asked_for() -> None:
    """Without the option a leak is text."""
    with rig([says(Block("text", INVOKE))]) as r:
        assert not read("anthropic", ask(r, "anthropic").content)[0]
