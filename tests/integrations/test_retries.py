"""Refused calls inside the official SDKs: asked for again on the client's own connections, with what was wrong."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import brotli
import httpx2
import openai
import pytest

from onspec.errors import InputError
from onspec.gateway.verdict import Verdict
from onspec.integrations import anthropic as for_anthropic
from onspec.integrations import openai as for_openai
from onspec.providers import PROVIDERS
from onspec.providers.script import Block, Turn
from tests.gateway.rig import Rig, call, rig, says, tools

WRONG = '{"path": "a.py", "edits": [{"oldText": "x"}]}'
RIGHT = '{"path": "a.py", "edits": [{"oldText": "x", "newText": "y"}]}'
FIRST = says(Block("text", "Now."), call("edit", WRONG), call("now", "{}"))
SAID: dict[str, Any] = {"messages": [{"role": "user", "content": "x"}]}


def asked(api: str, stream: bool) -> dict[str, Any]:
    """A request in the words of its SDK."""
    given = {"input": "x"} if api == "responses" else SAID
    own = {"max_tokens": 9} if api == "anthropic" else {}
    return {"model": "m", "stream": stream, "tools": tools(api)[:5], **given, **own}


def read(api: str, events: Any, stream: bool) -> list[str]:
    """The arguments of all calls, of a message or of the events of a stream."""
    if api == "anthropic":
        if not stream:
            return [json.dumps(block.input) for block in events.content if block.type == "tool_use"]
        found: dict[int, str] = {}
        for event in events:
            if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                found[event.index] = found.get(event.index, "") + event.delta.partial_json
        return [found[index] for index in sorted(found)]
    if api == "chat":
        if not stream:
            return [one.function.arguments for one in events.choices[0].message.tool_calls]
        found = {}
        for chunk in events:
            for one in chunk.choices[0].delta.tool_calls or [] if chunk.choices else []:
                found[one.index] = found.get(one.index, "") + (one.function.arguments or "")
        return [found[index] for index in sorted(found)]
    response = events if not stream else [event for event in events if event.type == "response.completed"][-1].response
    return [item.arguments for item in response.output if item.type == "function_call"]


def client_of(api: str, url: str, asynchronous: bool, **options: Any) -> Any:
    """A checked client of the SDK that speaks this API."""
    if api == "anthropic":
        plain = (anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic)(
            api_key="secret", base_url=url, max_retries=0
        )
        return for_anthropic.checked(plain, **options)
    made = (openai.AsyncOpenAI if asynchronous else openai.OpenAI)(
        api_key="secret", base_url=url + "/v1", max_retries=0
    )
    return for_openai.checked(made, **options)


def resource(client: Any, api: str) -> Any:
    """Where an API's `create` is."""
    if api == "chat":
        return client.chat.completions
    return client.messages if api == "anthropic" else client.responses


def ask(api: str, r: Rig, stream: bool, asynchronous: bool = False, **options: Any) -> list[str]:
    """One request through a checked client; the arguments of the calls that the program sees."""
    client = client_of(api, r.provider.url, asynchronous, **options)
    create = resource(client, api).create
    if not asynchronous:
        answer = create(**asked(api, stream))
        return read(api, list(answer) if stream else answer, stream)

    async def run() -> list[str]:
        answer = await create(**asked(api, stream))
        return read(api, [event async for event in answer] if stream else answer, stream)

    return asyncio.run(run())


@pytest.mark.parametrize("api", PROVIDERS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("asynchronous", [True, False])
def test_the_next_try_lands(api: str, stream: bool, asynchronous: bool) -> None:
    """The program sees the second call in the place of the first, and its neighbours as they were."""
    seen: list[Verdict] = []
    with rig([FIRST, says(call("edit", RIGHT))]) as r:
        found = ask(api, r, stream, asynchronous, retries=1, on_call=seen.append)
        first, second = r.provider.requests
    assert [json.loads(text) for text in found] == [json.loads(RIGHT), {}]
    assert [verdict.status for verdict in seen] == ["accepted", "accepted"]
    assert "newText is required" in json.dumps(second.body) or "/edits/0" in json.dumps(second.body)
    assert second.headers["authorization"] == first.headers["authorization"] == "Bearer secret"


@pytest.mark.parametrize("api", ["anthropic", "chat"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("second", [RIGHT, WRONG])
def test_a_reply_that_stops_for_a_call_and_holds_none(api: str, stream: bool, asynchronous: bool, second: str) -> None:
    """It is asked once for the call; where that brings none, the reply ends as it came."""
    with rig([says(Block("text", "Now."), stop="tool_use"), says(call("edit", second))]) as r:
        client = client_of(api, r.provider.url, asynchronous, retries=3)
        create = resource(client, api).create

        async def run() -> Any:
            answer = await create(**asked(api, stream))
            return [event async for event in answer] if stream else answer

        answer = asyncio.run(run()) if asynchronous else create(**asked(api, stream))
        answer = list(answer) if stream and not asynchronous else answer
        assert len(r.provider.requests) == 2
        ends = repr(answer)
        found = read(api, answer, stream) if second == RIGHT else []
    assert [json.loads(text) for text in found] == ([json.loads(RIGHT)] if second == RIGHT else [])
    assert "Now." in ends
    assert ("tool_use" if api == "anthropic" else "tool_calls") in ends


@pytest.mark.parametrize("api", PROVIDERS)
@pytest.mark.parametrize("stream", [True, False])
def test_without_retries_nobody_is_asked(api: str, stream: bool) -> None:
    """The call reaches the program as the model wrote it."""
    with rig([FIRST, says(call("edit", RIGHT))]) as r:
        found = ask(api, r, stream)
        assert len(r.provider.requests) == 1
    assert [json.loads(text) for text in found] == [json.loads(WRONG), {}]


@pytest.mark.parametrize("stream", [True, False])
def test_tries_and_tokens_are_bounded(stream: bool) -> None:
    """At most so many tries, and none once the tokens are spent; then the first call stands."""
    others = [json.dumps({"path": "a.py", "edits": [{"oldText": str(number)}]}) for number in range(5)]
    for options, requests in (({"retries": 2}, 3), ({"retries": 5, "tokens": 50}, 3), ({"retries": 5, "tokens": 0}, 1)):
        with rig([says(call("edit", WRONG)), *(says(call("edit", text)) for text in others)]) as r:
            found = ask("responses", r, stream, **options)
            assert len(r.provider.requests) == requests
        assert [json.loads(text) for text in found] == [json.loads(WRONG)]


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize(
    "fault",
    [
        Turn(status=500, error={"error": {"message": "no"}}),
        Turn((call("edit", RIGHT),), cut_after_events=0, reset=True),
        Turn((call("edit", RIGHT),), cut_after_events=4, reset=True),
        Turn(raw=b"not coded so", headers={"content-encoding": "br", "content-type": "text/event-stream"}),
    ],
    ids=["refused", "reset", "reset inside", "not as coded"],
)
def test_a_try_that_fails_leaves_the_first_call(asynchronous: bool, fault: Turn) -> None:
    """Whatever becomes of asking again, the reply that there is reaches the program whole."""
    with rig([FIRST, fault, fault]) as r:
        found = ask("responses", r, True, asynchronous, retries=1)
        assert len(r.provider.requests) >= 2
    assert [json.loads(text) for text in found] == [json.loads(WRONG), {}]


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_coded_unasked_is_mended(asynchronous: bool, stream: bool) -> None:
    """A provider that ignores `accept-encoding: identity` is read all the same."""
    turn = says(call("edit", RIGHT.replace('"y"', '"y", "requireUnique": true')))
    provider = PROVIDERS["responses"]
    if stream:
        events = provider.events(turn, {"model": "m"}, "x")
        data = b"".join(f"event: {name}\ndata: {json.dumps(event)}\n\n".encode() for name, event in events)
    else:
        data = json.dumps(provider.whole(turn, {"model": "m"}, "x")).encode()
    kind = "text/event-stream" if stream else "application/json"
    coded = Turn(raw=brotli.compress(data), headers={"content-encoding": "br", "content-type": kind}, chunk_bytes=9)
    with rig([coded]) as r:
        found = ask("responses", r, stream, asynchronous)
    assert [json.loads(text) for text in found] == [json.loads(RIGHT)]


def test_the_clients_own_transport_is_used() -> None:
    """Proxies, certificates and whatever else the program gave its client stay in force, and open."""
    sent: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append(request.url.path)
        turn = says(call("edit", WRONG if len(sent) == 1 else RIGHT))
        return httpx2.Response(200, json=PROVIDERS["anthropic"].whole(turn, {"model": "m"}, "x"))

    inner = anthropic.DefaultHttpxClient(transport=httpx2.MockTransport(answer))
    plain = anthropic.Anthropic(api_key="k", http_client=inner)
    with for_anthropic.checked(plain, retries=1) as client:
        message = client.messages.create(**asked("anthropic", False))
    assert [block.input for block in message.content if block.type == "tool_use"] == [json.loads(RIGHT)]
    assert sent == ["/v1/messages"] * 2
    assert plain.messages.create(**asked("anthropic", False)).content


@pytest.mark.parametrize("options", [{"retries": -1}, {"retries": 11}, {"retries": 1, "tokens": -1}])
def test_options_out_of_range_are_refused(options: dict[str, int]) -> None:
    """With what they may be."""
    with pytest.raises(InputError, match="from 0"):
        for_openai.checked(openai.OpenAI(api_key="k"), **options)
