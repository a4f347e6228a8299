"""Refused calls are asked for again: bounded, replayable, pinned, and paid for in the open."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from onspec.gateway.config import Rules
from onspec.providers.script import Block, Turn
from tests.gateway.rig import PATHS, Rig, call, request, rig, says
from tests.gateway.test_rewrite import GOOD, frames, numbers, read

CUT = '{"path": "a.py", "edits": [{"oldText": "return a - b", "newText": "    retu'
WRONG = '{"path": "a.py", "edits": [{"oldText": "x"}]}'
USED = {"anthropic": "output_tokens", "chat": "completion_tokens", "responses": "output_tokens"}


def ask(r: Rig, api: str, stream: bool = True, **more: Any) -> httpx2.Response:
    """One request through the gateway."""
    if api == "chat" and stream:
        more["stream_options"] = {"include_usage": True}
    return httpx2.post(r.url + PATHS[api], json=request(api, stream, **more), timeout=30)


def arguments(api: str, answer: httpx2.Response, stream: bool) -> list[str]:
    """The arguments of every call, as text."""
    if stream:
        return list(read(api, answer.content)[0].values())
    body = answer.json()
    if api == "anthropic":
        return [json.dumps(block["input"]) for block in body["content"] if block["type"] == "tool_use"]
    if api == "chat":
        return [one["function"]["arguments"] for one in body["choices"][0]["message"].get("tool_calls", [])]
    return [item["arguments"] for item in body["output"] if item["type"] == "function_call"]


def usage(api: str, answer: httpx2.Response, stream: bool) -> int:
    """The output tokens the client is told of."""
    bodies = [frame.json() for frame in frames(answer.content)] if stream else [answer.json()]
    found = [
        body["response"]["usage"] if "response" in body else body["usage"]
        for body in bodies
        if body and ((body.get("response") or {}).get("usage") or body.get("usage"))
    ]
    return int(found[-1][USED[api]])


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("bad", [WRONG, CUT])
def test_the_next_try_lands(api: str, stream: bool, bad: str) -> None:
    """A refused call is replaced by the model's next try, in place; neighbours stay; usage is the sum."""
    first = says(
        Block("thinking", "hm", signature="c2ln"),
        Block("text", "Now."),
        call("now", "{}"),
        call("edit", bad),
        call("now", "{}"),
    )
    with rig([first, says(call("edit", GOOD))], Rules(retry=2)) as r:
        answer = ask(r, api, stream)
        found = arguments(api, answer, stream)
        assert [json.loads(text) for text in found] == [{}, json.loads(GOOD), {}]
        assert usage(api, answer, stream) == 84
        assert len(r.provider.requests) == 2
        assert [record.outcome for record in r.gateway.recent] in (
            ["accepted", "retried", "accepted"],
            ["accepted", "accepted", "retried"],
        )
        if stream and api == "responses":
            assert numbers(answer.content) == sorted(set(numbers(answer.content)))


@pytest.mark.parametrize("api", PATHS)
def test_what_the_model_is_told(api: str) -> None:
    """The bad call replayable, our feedback as its error result, thinking before it, the tool pinned and strict."""
    first = says(Block("thinking", "hm", signature="c2ln"), Block("text", "Now."), call("edit", CUT, id="call_7"))
    with rig([first, says(call("edit", GOOD))], Rules(retry=1)) as r:
        ask(r, api)
        body = r.provider.requests[1].body
    text = json.dumps(body)
    assert "INVALID_JSON" in text
    if api == "anthropic":
        said, told = body["messages"][-2:]
        assert [block["type"] for block in said["content"]] == ["thinking", "text", "tool_use"]
        assert said["content"][0] == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
        assert said["content"][2]["input"] == {"INVALID_JSON": CUT}
        result = told["content"][0]
        assert (result["type"], result["tool_use_id"], result["is_error"]) == ("tool_result", "call_7", True)
        assert body["tool_choice"] == {"type": "tool", "name": "edit", "disable_parallel_tool_use": True}
        assert [tool["name"] for tool in body["tools"] if tool.get("strict")] == ["edit"]
    elif api == "chat":
        said, told = body["messages"][-2:]
        assert json.loads(said["tool_calls"][0]["function"]["arguments"]) == {"INVALID_JSON": CUT}
        assert (told["role"], told["tool_call_id"]) == ("tool", "call_7")
        assert body["tool_choice"] == {"type": "function", "function": {"name": "edit"}}
    else:
        *_, reasoning, message, said, told = body["input"]
        assert (reasoning["type"], message["type"]) == ("reasoning", "message")
        assert json.loads(said["arguments"]) == {"INVALID_JSON": CUT}
        assert (told["type"], told["call_id"]) == ("function_call_output", "call_7")
        assert body["tool_choice"] == {"type": "function", "name": "edit"}


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_reply_cut_by_length_ends_as_a_whole_one(api: str, stream: bool) -> None:
    """Once the next try has landed, nothing says any more that the reply was cut."""
    with rig([says(call("edit", CUT), stop="max_tokens"), says(call("edit", GOOD))], Rules(retry=1)) as r:
        answer = ask(r, api, stream)
    assert [json.loads(text) for text in arguments(api, answer, stream)] == [json.loads(GOOD)]
    for sign in (b"max_tokens", b'"length"', b'incomplete"', b"max_output_tokens"):
        assert sign not in answer.content
    assert {"anthropic": b"tool_use", "chat": b"tool_calls", "responses": b"completed"}[api] in answer.content
    if stream and api == "responses":
        assert frames(answer.content)[-1].name == "response.completed"


def test_the_same_call_again_breaks_the_loop() -> None:
    """The second identical try is told so, the third ends it, whatever the limit."""
    with rig([says(call("edit", WRONG))] * 9, Rules(retry=9)) as r:
        answer = ask(r, "anthropic")
        assert len(r.provider.requests) == 3
        assert "same call as before" in json.dumps(r.provider.requests[2].body["messages"][-1])
        assert arguments("anthropic", answer, True) == [WRONG]
        assert b": onspec refused edit" in answer.content


def test_tries_and_tokens_are_bounded() -> None:
    """At most N tries, and none beyond T output tokens."""
    wrong = [says(call("edit", json.dumps({"path": str(number), "edits": 5}))) for number in range(9)]
    with rig(wrong, Rules(retry=3)) as r:
        ask(r, "chat")
        assert len(r.provider.requests) == 4
    with rig(wrong, Rules(retry=9, retry_tokens=80)) as r:
        ask(r, "chat")
        assert len(r.provider.requests) == 3


def test_a_provider_that_takes_no_pin_is_asked_without() -> None:
    """A 400 on the pinned, strict request is followed by the same request without both."""
    refuses = Turn(status=400, error={"error": {"message": "no"}})
    with rig([says(call("edit", WRONG)), refuses, says(call("edit", GOOD))], Rules(retry=1)) as r:
        answer = ask(r, "anthropic")
        assert arguments("anthropic", answer, True) == [GOOD]
        assert "tool_choice" not in r.provider.requests[2].body
        assert not [tool for tool in r.provider.requests[2].body["tools"] if tool.get("strict")]


def test_manual_thinking_is_not_pinned() -> None:
    """With thinking switched on by hand a forced choice is a 400, so none is sent."""
    with rig([says(call("edit", WRONG)), says(call("edit", GOOD))], Rules(retry=1)) as r:
        ask(r, "anthropic", thinking={"type": "enabled", "budget_tokens": 1024})
        assert "tool_choice" not in r.provider.requests[1].body


@pytest.mark.parametrize(
    "fault",
    [
        Turn(status=529),
        says(Block("text", "No.")),
        says(call("edit", GOOD), cut_after_bytes=300, reset=True),
        says(call("now", "5")),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_try_that_fails_leaves_the_first_answer(fault: Turn, stream: bool) -> None:
    """An error, a text or a broken stream instead of a call: the client gets the refused call as it was."""
    with rig([says(call("edit", WRONG)), fault, fault], Rules(retry=1)) as r:
        answer = ask(r, "responses", stream)
        assert arguments("responses", answer, stream) == [WRONG]
        assert answer.status_code == 200


def test_a_name_that_does_not_exist_is_asked_again() -> None:
    """An unknown tool is refused with the list of tools, and another tool may take its place."""
    with rig([says(call("str_replace", "{}")), says(call("edit", GOOD))], Rules(retry=1)) as r:
        answer = ask(r, "anthropic")
        text, names, _ = read("anthropic", answer.content)
        assert (list(text.values()), list(names.values())) == ([GOOD], ["edit"])
        assert "get_weather" in json.dumps(r.provider.requests[1].body["messages"][-1])
        assert "tool_choice" not in r.provider.requests[1].body


@pytest.mark.parametrize("api", PATHS)
def test_whole_replies_are_mended(api: str) -> None:
    """Not streamed: only the call's own arguments change, and a header says so."""
    broken = '{"path": "a.py", "edits": [{"oldText": "x", "newText": "y", "requireUnique": true}]}'
    with rig([says(Block("text", "é ☀️"), call("edit", broken)), says(call("edit", WRONG))]) as r:
        answer = ask(r, api, stream=False)
        assert json.loads(arguments(api, answer, False)[0]) == {
            "path": "a.py",
            "edits": [{"oldText": "x", "newText": "y"}],
        }
        assert answer.headers["x-onspec-repaired"] == "1"
        refused = ask(r, api, stream=False)
        assert json.loads(arguments(api, refused, False)[0]) == json.loads(WRONG)
        assert "edit" in refused.headers["x-onspec-refused"]


def test_shadow_changes_nothing_and_counts() -> None:
    """Shadow: what would have been repaired or asked again is recorded, and nothing else happens."""
    broken = '{"path": "a.py", "edits": [{"oldText": "x", "newText": "y", "requireUnique": true}]}'
    with rig(
        [says(call("edit", broken)), says(call("edit", WRONG)), says(call("edit", broken))], Rules(shadow=True, retry=3)
    ) as r:
        assert arguments("chat", ask(r, "chat"), True) == [broken]
        assert arguments("chat", ask(r, "chat"), True) == [WRONG]
        assert arguments("chat", ask(r, "chat", stream=False), False) == [broken]
        assert [record.outcome for record in r.gateway.recent] == ["repaired", "refused", "repaired"]
        assert all(record.shadow for record in r.gateway.recent)
        assert len(r.provider.requests) == 3


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [True, False])
def test_the_tries_of_one_reply_share_its_tokens(api: str, stream: bool) -> None:
    """Many refused calls in a reply do not multiply what may be spent on it."""
    wrong = [f'{{"path": "{number}.py", "edits": [{{"oldText": "x"}}]}}' for number in range(6)]
    turns = [says(*(call("edit", text) for text in wrong)), *(says(call("edit", text)) for text in wrong)]
    with rig(turns, Rules(retry=1, retry_tokens=80)) as r:
        answer = ask(r, api, stream)
        assert len(r.provider.requests) == 1 + 2
        assert usage(api, answer, stream) == 3 * 42
        assert [json.loads(text) for text in arguments(api, answer, stream)] == [json.loads(text) for text in wrong]
