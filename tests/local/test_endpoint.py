"""The local endpoint speaks to the official client."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from onspec.local.chat import Chat
from onspec.local.endpoint import Endpoint
from onspec.local.runtime import Runtime

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
    ],
)
def test_a_wrong_request_is_answered_with_a_reason(fast: Runtime, body: Any, status: int) -> None:
    answer = _post(fast, body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_models_are_listed_and_other_paths_are_not_there(fast: Runtime) -> None:
    assert _post(fast, None, "/v1/models").json()["data"][0]["id"] == "tiny"
    assert _post(fast, {}, "/v1/embeddings").status_code == 404
