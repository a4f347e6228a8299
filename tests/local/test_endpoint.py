"""The local endpoint speaks to the official client."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from onspec.local.chat import Chat, Reply
from onspec.local.endpoint import Endpoint
from onspec.local.request import until_stopped
from onspec.local.runtime import Runtime
from onspec.message import Text

TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
REQUEST: dict[str, Any] = {
    "model": "tiny", "messages": [{"role": "user", "content": "hi"}], "tools": [TOOL], "max_tokens": 90, "seed": 3,
    "tool_choice": {"type": "function", "function": {"name": "read"}},
}  # fmt: skip


def _post(runtime: Runtime, body: Any, path: str = "/v1/chat/completions") -> httpx.Response:
    async def go() -> httpx.Response:
        app: Any = Endpoint(Chat(runtime), "tiny")
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://local") as client:
            if body is None:
                return await client.get(path)
            return await client.post(path, content=body if isinstance(body, bytes) else json.dumps(body))

    return asyncio.run(go())


def test_a_call_comes_back_as_openai_writes_it(fast: Runtime) -> None:
    document = _post(fast, REQUEST).json()
    call = document["choices"][0]["message"]["tool_calls"][0]
    assert call["function"]["name"] == "read"
    assert "path" in json.loads(call["function"]["arguments"])
    assert (
        document["usage"]["total_tokens"] == document["usage"]["prompt_tokens"] + document["usage"]["completion_tokens"]
    )


def test_a_stream_carries_the_same(fast: Runtime) -> None:
    text = _post(fast, {**REQUEST, "stream": True, "stream_options": {"include_usage": True}}).text
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    arguments = "".join(
        call["function"].get("arguments", "")
        for event in events
        for choice in event["choices"]
        for call in choice["delta"].get("tool_calls", [])
    )
    assert "path" in json.loads(arguments)
    assert text.rstrip().endswith("data: [DONE]")
    assert events[-1]["usage"]["total_tokens"] > 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        ({"messages": "no"}, 400),
        ({**REQUEST, "tool_choice": {"type": "function", "function": {"name": "nope"}}}, 400),
        ({**REQUEST, "max_tokens": 100000}, 400),
        ({**REQUEST, "max_tokens": "many"}, 400),
        ({**REQUEST, "max_tokens": 5, "tool_choice": "required"}, 400),
        ({**REQUEST, "max_tokens": 0}, 400),
        ({**REQUEST, "messages": []}, 400),
        ({**REQUEST, "messages": [{"role": "user", "content": 5}]}, 400),
        ({**REQUEST, "messages": [{"role": "tool", "content": 5}]}, 400),
        ({**REQUEST, "messages": [{"role": "assistant", "tool_calls": 5}]}, 400),
        ({**REQUEST, "messages": [{"role": "assistant", "tool_calls": [5]}]}, 400),
        ({**REQUEST, "messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]}, 400),
        ({**REQUEST, "messages": [{"role": "assistant", "tool_calls": [{"function": "read"}]}]}, 400),
        (
            {**REQUEST, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            400,
        ),
        ({**REQUEST, "tool_choice": {"function": "read"}}, 400),
        ({**REQUEST, "tool_choice": {}}, 400),
        ({**REQUEST, "tool_choice": 5}, 400),
        ({**REQUEST, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [1]}}}, 400),
        ({**REQUEST, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}}, 400),
        ({**REQUEST, "n": 2}, 400),
        ({**REQUEST, "n": "x"}, 400),
        ({**REQUEST, "seed": "x"}, 400),
        ({**REQUEST, "seed": 1.5}, 400),
        ({**REQUEST, "seed": []}, 400),
        ({**REQUEST, "temperature": -1}, 400),
        ({**REQUEST, "temperature": True}, 400),
        ({**REQUEST, "stop": 5}, 400),
        ({**REQUEST, "stop": [5]}, 400),
        ({**REQUEST, "stream": True, "stream_options": "x"}, 400),
        ({**REQUEST, "seed": -1}, 200),
        ({**REQUEST, "seed": 2**63}, 200),
        ({**REQUEST, "temperature": 0, "n": 1, "stop": None}, 200),
    ],
)
def test_a_wrong_request_is_answered_with_a_reason(fast: Runtime, body: Any, status: int) -> None:
    answer = _post(fast, body)
    assert answer.status_code == status
    assert status == 200 or answer.json()["error"]["message"]


@pytest.mark.parametrize("choice", ["allowed_tools", "required"])
def test_only_allowed_tools_are_called(fast: Runtime, choice: str) -> None:
    other = {"type": "function", "function": {"name": "other", "parameters": {"type": "object"}}}
    named = {"type": "function", "function": {"name": "read"}}
    body = {**REQUEST, "tools": [other, TOOL]}
    for mode in ("required", "none"):
        asked = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [named]}}
        message = _post(fast, {**body, "tool_choice": asked}).json()["choices"][0]["message"]
        assert [call["function"]["name"] for call in message.get("tool_calls", ())] == ["read"] * (mode == "required")


def test_text_ends_before_a_stop_however_it_is_cut_into_pieces() -> None:
    """What may begin a stop is held; what did not become one is told; what comes behind one is not."""
    whole, stops = "one two STOP three", ("STOP", "stone")
    for cut in range(1, 6):
        pieces = [whole[at : at + cut] for at in range(0, len(whole), cut)]
        reply = Reply(whole, (), (), "length", 1, 9, 0, 0.1)
        called: list[bool] = []
        *told, last = until_stopped(iter([*map(Text, pieces), reply]), stops, lambda c=called: c.append(True))
        assert "".join(part.text for part in told if isinstance(part, Text)) == "one two "
        assert isinstance(last, Reply)
        assert (last.text, last.finish_reason) == ("one two", "stop")
        assert called == [True]
        *told, last = until_stopped(iter([*map(Text, pieces), reply]), ("thread", "e!"), lambda: None)
        assert "".join(part.text for part in told if isinstance(part, Text)) == whole
        assert last == reply


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_ends_the_generation(fast: Runtime, stream: bool) -> None:
    plain = {"messages": REQUEST["messages"], "seed": 5, "max_tokens": 60, "model": "tiny"}
    text = _post(fast, plain).json()["choices"][0]["message"]["content"]
    mark = text[len(text) // 2 : len(text) // 2 + 2]
    answer = _post(fast, {**plain, "stop": [mark], "stream": stream})
    if not stream:
        choice = answer.json()["choices"][0]
        assert choice["finish_reason"] == "stop"
        assert (choice["message"]["content"] or "") == text[: text.index(mark)].strip()
        assert answer.json()["usage"]["completion_tokens"] < 60
    else:
        assert '"finish_reason":"stop"' in answer.text


def test_models_are_listed_and_other_paths_are_not_there(fast: Runtime) -> None:
    assert _post(fast, None, "/v1/models").json()["data"][0]["id"] == "tiny"
    assert _post(fast, {}, "/v1/embeddings").status_code == 404
