"""A call inside which the reply ended is never one that a client can run, however tolerant its parser is."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import anthropic
import httpx2
import jiter
import openai
import pytest

from onspec import Policy, Tool
from onspec.gateway.body import mend
from onspec.gateway.config import Rules
from onspec.gateway.contracts import ContractCache
from onspec.gateway.cut import hopeless
from onspec.gateway.upstream import UpstreamError
from onspec.gateway.verdict import judge_with, open_ended
from onspec.providers import PROVIDERS
from onspec.providers.script import Block, Script, Turn
from tests.gateway.rig import EDIT, PATHS, call, request, rig, says, tools
from tests.gateway.samples import SAMPLES, encoded
from tests.gateway.test_again import arguments
from tests.gateway.test_pass_through import CUT, READERS
from tests.gateway.test_rewrite import APIS, TOOL, frames, numbers, read, through

WHOLE = '{"path": "a.py", "edits": [{"oldText": "return a - \\"b\\"", "newText": "    return a + b"}]}'
LENGTH = {"anthropic": "max_tokens", "chat": "length", "responses": "incomplete"}
CHOICES = {"type": "object", "properties": {"depth": {"type": "integer"}, "all": {"type": "boolean"}}}
RUN: dict[str, Any] = {"type": "object", "properties": {"code": {}}}
MORE: dict[str, Any] = {"edit": EDIT, "list": CHOICES, "any": {"type": "object"}, "run": RUN}
ENDS = (b"message_stop", b"[DONE]", b"response.completed", b"response.incomplete")


def last(api: str, out: bytes) -> str:
    """The arguments of the last call as a client reads them."""
    return list(read(api, out)[0].values())[-1]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stop", ["max_tokens", None])
@pytest.mark.parametrize("chunk", [0, 1, 9])
def test_wherever_it_is_cut_no_parser_makes_a_call_of_it(api: str, stop: str | None, chunk: int) -> None:
    """Strict or tolerant, with unknown keys or without: every reader gets what the contract refuses."""
    for size in range(1, len(WHOLE) - (0 if stop else 3)):
        turn = says(Block("text", "Now."), call("now", "{}"), call("edit", WHOLE[:size], chunk), stop=stop)
        out, rewriter = through(api, encoded(api, turn))
        assert rewriter.failed is None
        text = last(api, out)
        assert hopeless(TOOL, json.loads(text)), text
        assert hopeless(TOOL, jiter.from_json(text.encode(), partial_mode=True))
        assert all(copy in (text, "{}") for copy in read(api, out)[2])
        assert b": onspec refused edit" in out
        sign = rb'"response.incomplete"' if api == "responses" else LENGTH[api].encode()
        assert (sign in out) == (stop is not None)
        assert numbers(out) == sorted(set(numbers(out)))


@pytest.mark.parametrize("api", APIS)
def test_what_has_gone_out_is_not_taken_back(api: str) -> None:
    """The text that streamed stays; its members stand once more behind it, with values of another type."""
    cut = WHOLE[: WHOLE.index("return a + b") + 4]
    out, _ = through(api, encoded(api, says(call("edit", cut, 1), stop="max_tokens")))
    text = last(api, out)
    assert text.startswith(cut)
    assert json.loads(text).keys() == {"path", "edits"}
    held, _ = through(api, encoded(api, says(call("edit", cut), stop="max_tokens")), "call")
    assert json.loads(last(api, held)) == {"INVALID_JSON": cut}


@pytest.mark.parametrize("name", ["list", "any", "run"])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("text", ['{"depth": 5, "all": fa', '{"code": "rm -rf /tmp/', "{", "x"])
def test_a_tool_that_takes_almost_anything(api: str, name: str, text: str) -> None:
    """Where every key is optional, one gets a wrong value; where nothing is refused the reply is an error."""
    out, rewriter = through(api, encoded(api, says(call(name, text, 1), stop="max_tokens")), names=MORE)
    if rewriter.failed is None:
        value = json.loads(last(api, out))
        assert hopeless(Tool(name, MORE[name]), value)
    else:
        assert name != "list"
        assert b"error" in out
        assert not [end for end in ENDS if end in out]


@pytest.mark.parametrize("api", APIS)
def test_a_call_of_which_nothing_came(api: str) -> None:
    """Cut before the first character: not a call without arguments."""
    turn = says(call("list", "" if api == "anthropic" else " ", 1), stop="max_tokens")
    data = encoded(api, turn)
    if api == "anthropic":
        data = b"".join(frame.raw for frame in frames(data) if frame.name != "content_block_stop")
    out, rewriter = through(api, data, names=MORE)
    assert rewriter.failed is None
    assert hopeless(Tool("list", CHOICES), json.loads(last(api, out)))


@pytest.mark.parametrize("api", APIS)
def test_a_call_that_is_complete_stays(api: str) -> None:
    """The reply is cut behind the call: the call passes byte for byte."""
    data = encoded(api, says(call("edit", WHOLE, 9), stop="max_tokens"))
    assert through(api, data)[0] == data


def test_free_text_that_was_cut_ends_in_an_error() -> None:
    """A custom tool takes any text, so nothing but an error keeps a cut one from running; a whole one passes."""
    turn = Turn((Block("custom_tool", "*** Begin Patch\n*** Upd", name="apply_patch", chunk=4),), stop="max_tokens")
    cut = encoded("responses", turn)
    whole = b"".join(
        frame.raw.replace(b"incomplete", b"completed") if b"output_item.done" in frame.raw else frame.raw
        for frame in frames(cut)
    )
    out, rewriter = through("responses", cut)
    assert rewriter.failed is not None
    assert frames(out)[-1].name == "response.failed"
    assert b"output_item.done" not in out
    assert through("responses", whole)[0] == whole


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_free_text_that_was_cut_not_streamed(api: str) -> None:
    """The same in a reply that is not streamed."""
    block = Block("custom_tool", "print('hi", name="code_exec" if api == "chat" else "apply_patch")
    body = PROVIDERS[api].whole(Turn((block,), stop="max_tokens"), {"model": "m-1"}, "sample")
    data = json.dumps(body).encode()
    contracts = ContractCache().of({"tools": tools(api)})
    with pytest.raises(UpstreamError, match="cut off"):
        asyncio.run(mend(data, APIS[api], contracts, judge_with(lambda tool: Policy.safe()), None))


@pytest.mark.parametrize("api", APIS)
def test_an_error_inside_a_call(api: str) -> None:
    """The provider's own error, or a stream that breaks off: first the call is made one that nobody can run."""
    parts = frames(encoded(api, says(call("edit", WHOLE, 4))))
    events = [b"".join(frame.raw for frame in parts[:count]) for count in range(len(parts))]
    started = [data for data in events if b"edit" in data and not any("a + b" in copy for copy in read(api, data)[2])]
    for data in [data for data in started if WHOLE not in read(api, data)[0].values()]:
        for failure in (b"", APIS[api].stream().failure("overloaded")):
            out, _ = through(api, data + failure)
            assert hopeless(TOOL, json.loads(last(api, out)))
            assert b"error" in frames(out)[-1].raw
            assert not failure or b"overloaded" in frames(out)[-1].raw


def final(url: str, api: str, stream: bool) -> tuple[Any, str]:
    """The last call's arguments and the stop, as the official SDKs read them."""
    if api == "anthropic":
        client = anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)
        asked: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        asked["tools"] = tools(api)
        if stream:
            with client.messages.stream(**asked) as events:
                message = events.get_final_message()
        else:
            message = client.messages.create(**asked)
        return message.content[-1].to_dict()["input"], str(message.stop_reason)
    other = openai.OpenAI(api_key="k", base_url=url + "/v1", max_retries=0)
    if api == "chat":
        chat: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": tools(api)[:-1]}
        if stream:
            chunks = list(other.chat.completions.create(**chat, stream=True))
            pieces = [
                one.function.arguments or ""
                for chunk in chunks
                for choice in chunk.choices
                for one in choice.delta.tool_calls or []
                if one.function
            ]
            reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
            return json.loads("".join(pieces)), str(reasons[-1])
        choice: Any = other.chat.completions.create(**chat).choices[0]
        return json.loads(choice.message.tool_calls[-1].function.arguments), choice.finish_reason
    given: dict[str, Any] = {"model": "m", "input": "x", "tools": tools(api)}
    if stream:
        terminal: Any = list(other.responses.create(**given, stream=True))[-1]
        response = terminal.response
    else:
        response = other.responses.create(**given)
    return json.loads(response.output[-1].arguments), response.status


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("stop", ["max_tokens", None])
def test_official_clients(api: str, stream: bool, stop: str | None) -> None:
    """Both SDKs read arguments that the tool refuses, and the stop that the provider gave."""
    for cut in (WHOLE[:20], WHOLE[:60], WHOLE[:-8]):
        turn = says(Block("text", "Now."), call("edit", cut, 5), stop=stop)
        with rig(Script((turn,), every=True, loop=True)) as r:
            value, reason = final(r.url, api, stream)
        assert hopeless(TOOL, value)
        assert not stop or reason == LENGTH[api]


def test_a_whole_object_in_a_reply_that_was_cut() -> None:
    """Not streamed, Anthropic's arguments are an object, closed by whoever made it: the last one may have been cut."""
    turn = says(call("edit", WHOLE), call("edit", WHOLE), stop="max_tokens")
    with rig([turn, says(call("edit", WHOLE), Block("text", "and"), stop="max_tokens")]) as r:
        answers = [httpx2.post(r.url + PATHS["anthropic"], json=request("anthropic", False), timeout=30) for _ in "12"]
    first, second = (json.loads(text) for text in arguments("anthropic", answers[0], False))
    assert first == json.loads(WHOLE)
    assert hopeless(TOOL, second)
    assert "refused" in str(answers[0].headers)
    assert [json.loads(text) for text in arguments("anthropic", answers[1], False)] == [json.loads(WHOLE)]


def test_shadow_leaves_a_cut_call_alone() -> None:
    """Shadow changes nothing, here too."""
    turns = [says(call("edit", WHOLE[:50], 5), stop="max_tokens")] * 2
    with rig(turns, Rules(shadow=True)) as r:
        answer = httpx2.post(r.url + PATHS["chat"], json=request("chat"), timeout=30)
        assert arguments("chat", answer, True) == [WHOLE[:50]]


@pytest.mark.parametrize("name", CUT)
def test_samples_that_end_inside_a_call(name: str) -> None:
    """Around the call everything is as it came, and every block that began has ended."""
    api, data = SAMPLES[name]
    out, _ = through(api, data)
    kept = [frame.raw for frame in frames(data) if b"partial_json" not in frame.raw and b"arguments" not in frame.raw]
    assert api == "responses" or [raw for raw in kept if raw not in out] == []
    assert api != "anthropic" or out.count(b"content_block_start\n") == out.count(b"content_block_stop\n")
    with rig(Script((Turn(raw=data),), every=True, loop=True)) as r:
        if api == "anthropic":
            READERS[api](r.url)  # its helper reads the reply to its end


def test_a_long_call_that_was_cut_is_read_once() -> None:
    """Whether a text ends inside a string is told in one pass, however many quotes the string holds."""
    cut = '{"path": "a.py", "edits": [{"oldText": "x", "newText": "' + 'a \\"b\\" \\\\ ' * 50_000
    started = time.process_time()
    assert open_ended(cut)
    assert open_ended(cut + "\\")
    assert not open_ended(cut + '"}]}x')
    assert open_ended(cut + '"}]')
    assert time.process_time() - started < 2  # the square of it takes minutes
