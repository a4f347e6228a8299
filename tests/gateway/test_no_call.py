"""A reply that ends for a call and holds none is asked once for it; what it cost is told in full."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from onspec.gateway.config import Rules
from onspec.gateway.leak import recover_with
from onspec.providers.script import Block, Script, Turn
from tests.gateway.rig import PATHS, call, request, rig, says
from tests.gateway.samples import encoded
from tests.gateway.test_again import WRONG, arguments, ask, usage
from tests.gateway.test_promote import INVOKE, words
from tests.gateway.test_rewrite import GOOD, frames, numbers

STOP = {"anthropic": "tool_use", "chat": "tool_calls"}
HALF = INVOKE[: INVOKE.index("oldText") + 4]
BAD = INVOKE.replace("a.py", "").replace('"path"', '"limit"')
RETRY = Rules(retry=3, hold="call")


@pytest.mark.parametrize("api", STOP)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("promote", [False, True])
@pytest.mark.parametrize("text", ["I will edit it now.", "", HALF, "So. " + BAD])
def test_the_call_that_was_meant_is_asked_for(api: str, stream: bool, promote: bool, text: str) -> None:
    """Stopped for a tool with no call, or with markup that is none: one try, which takes its place behind the text."""
    turn = says(Block("text", text, chunk=0), stop="tool_use")
    rules = replace(RETRY, promote=promote)
    with rig([turn, says(call("edit", GOOD))], rules, recover=recover_with) as r:
        answer = ask(r, api, stream)
        assert [json.loads(one) for one in arguments(api, answer, stream)] == [json.loads(GOOD)]
        assert usage(api, answer, stream) == 84
        assert STOP[api] in answer.text
        assert [record.outcome for record in r.gateway.recent] == ["retried"]
        first, second = (seen.body for seen in r.provider.requests)
    assert ("invoke" in answer.text) == ("invoke" in text and not promote)
    assert second["tool_choice"] == (
        "required" if api == "chat" else {"type": "any", "disable_parallel_tool_use": True}
    )
    *_, told = second["messages"]
    assert told["role"] == "user"
    assert "no tool call" in told["content"]
    assert len(second["messages"]) == len(first["messages"]) + (2 if text else 1)


@pytest.mark.parametrize("stream", [True, False])
def test_responses_go_by_the_markup(stream: bool) -> None:
    """Responses has no such stop reason: there markup of a declared tool that is no whole call says what was meant."""
    rules = replace(RETRY, promote=True)
    for text, asked in ((HALF, 2), ("Plain.", 1), (INVOKE.replace("edit", "nope"), 1), (f"```\n{INVOKE}```", 1)):
        turn = says(Block("text", "So.\n\n" + text, chunk=5))
        with rig([turn, says(call("edit", GOOD))], rules, recover=recover_with) as r:
            answer = ask(r, "responses", stream)
            assert len(r.provider.requests) == asked
        found = [json.loads(one) for one in arguments("responses", answer, stream)]
        assert found == ([json.loads(GOOD)] if asked == 2 else [])
        assert not stream or numbers(answer.content) == sorted(set(numbers(answer.content)))
        assert usage("responses", answer, stream) == 42 * asked


@pytest.mark.parametrize("api", STOP)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "second",
    [
        says(Block("text", "No."), stop="tool_use"),
        says(call("edit", WRONG)),
        says(call("nothing", "{}")),
        says(call("edit", GOOD), cut_after_bytes=300, reset=True),
        Turn(status=529),
    ],
)
def test_it_is_asked_once(api: str, stream: bool, second: Turn) -> None:
    """The same again, a bad call, an unknown tool, a fault: the reply goes on as it came, with what it cost."""
    turn = says(Block("text", HALF), stop="tool_use")
    with rig([turn, *[second] * 4], replace(RETRY, promote=True), recover=recover_with) as r:
        answer = ask(r, api, stream)
        asked = len(r.provider.requests)
        assert asked == (3 if second.status == 529 else 2)  # one more without the forced choice
        cost = 84 if second.status == 200 and not second.reset else 42
        assert usage(api, answer, stream) == cost
    assert not arguments(api, answer, stream)
    said = (
        "".join(
            (event.get("delta") or event["choices"][0]["delta"] if event.get("choices") != [] else {}).get(
                "text" if api == "anthropic" else "content"
            )
            or ""
            for frame in frames(answer.content)
            if (event := frame.json()) and ("delta" in event or "choices" in event)
        )
        if stream
        else answer.text
    )
    assert (said == HALF) if stream else (json.dumps(HALF)[1:-1] in said)


@pytest.mark.parametrize("api", STOP)
def test_not_asked(api: str) -> None:
    """Without retry, without tools, with a call of any kind, or with another stop: as it came."""
    silent = says(Block("text", "x"), stop="tool_use")
    for rules, turn, more in (
        (Rules(), silent, {}),
        (replace(RETRY, shadow=True), silent, {}),
        (replace(RETRY, retry_tokens=0), silent, {}),
        (RETRY, silent, {"tools": []}),
        (RETRY, says(Block("text", "x")), {}),
        (RETRY, says(Block("text", "x"), call("now", "{}")), {}),
        (RETRY, says(Block("text", HALF), stop="max_tokens"), {}),
    ):
        with rig(Script((turn,), every=True, loop=True), rules) as r:
            through = httpx2.post(r.url + PATHS[api], json=request(api, **more), timeout=30).content
            assert len(r.provider.requests) == 1
            r.provider._made -= 1
            assert through == httpx2.post(r.provider.url + PATHS[api], json=request(api, **more)).content


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [True, False])
def test_official_clients(api: str, stream: bool) -> None:
    """Both SDKs read text, call and stop as of a reply that held the call from the start."""
    turn = says(Block("text", "So. " + HALF), stop="tool_use" if api in STOP else None)
    script = Script((turn, says(call("edit", GOOD))), every=True, loop=True)
    with rig(script, replace(RETRY, promote=True), recover=recover_with) as r:
        text, calls, stop = words(r.url, api, stream)
    assert (text.strip(), calls) == ("So.", [json.loads(GOOD)])
    assert stop == STOP.get(api, "completed")


def test_what_anthropic_counts_at_the_beginning() -> None:
    """Input and cached tokens stand in the first event, which has gone; the last one has the sum of both replies."""
    told: dict[str, Any] = {"input_tokens": 100, "output_tokens": 42, "cache_read_input_tokens": 0}
    with rig([says(call("edit", WRONG)), says(call("edit", GOOD))], Rules(retry=1)) as r:
        answer = ask(r, "anthropic")
    events = {frame.name: frame.json() for frame in frames(answer.content)}
    assert events["message_start"]["message"]["usage"]["input_tokens"] == told["input_tokens"]
    last = events["message_delta"]["usage"]
    assert {name: last[name] for name in told} == {name: 2 * count for name, count in told.items()}


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("first", [says(call("edit", WRONG)), says(Block("text", "x"), stop="tool_use")])
def test_a_reply_that_breaks_off_behind_its_stop(api: str, first: Turn) -> None:
    """With a call to ask for and the last event lost, the reply still comes to a well-formed end."""
    events = len(frames(encoded(api, first)))
    missing = 0 if api == "responses" else 1
    broken = replace(first, cut_after_events=events - missing, reset=True)
    with rig([broken, says(call("edit", GOOD))], RETRY) as r:
        answer = ask(r, api)
    last = frames(answer.content)[-1]
    assert last.raw.strip() == {
        "anthropic": b'event: message_stop\ndata: {"type":"message_stop"}',
        "chat": b"data: [DONE]",
    }.get(api, last.raw.strip())
    assert api != "responses" or last.name == "response.completed"
