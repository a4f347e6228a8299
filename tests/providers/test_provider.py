"""The port of a provider: every implementation says a turn the same way streamed and whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onspec.gateway import sse
from onspec.gateway.apis import APIS, api_of
from onspec.gateway.wire import Delta, Prose, Start, Stopped
from onspec.providers import PROVIDERS, spoken_at
from onspec.providers.script import Block, Turn

TURNS = {
    "text": Turn((Block("text", "Just text ☀️."),)),
    "calls": Turn((Block("text", "Both."), Block("tool", '{"a": 1}', name="one"), Block("tool", "{}", name="two"))),
    "text cut": Turn((Block("text", "Now I "),), stop="max_tokens"),
    "cut": Turn((Block("tool", '{"a": 1}', name="one"),), stop="max_tokens"),
    "nothing": Turn(),
}


def streamed(name: str, turn: Turn) -> tuple[list[str], list[tuple[str, Any]], str]:
    """Texts, calls and the reason of the end, as the client's side reads the events."""
    wire = APIS[name].stream()
    wire.prose = True
    texts: dict[Any, str] = {}
    calls: dict[Any, list[str]] = {}
    reason = ""
    for kind, data in PROVIDERS[name].events(turn, {"model": "m"}, "1"):
        text = data if isinstance(data, str) else json.dumps(data)
        raw = (f"event: {kind}\n" if kind else "") + f"data: {text}\n\n"
        for frame in sse.Reader().feed(raw.encode()):
            for mark in wire.read(frame):
                if isinstance(mark, Prose):
                    texts[mark.key] = texts.get(mark.key, "") + mark.text
                elif isinstance(mark, Start):
                    calls[mark.key] = [mark.name, ""]
                elif isinstance(mark, Delta):
                    calls[mark.key][1] += mark.text
                elif isinstance(mark, Stopped):
                    reason = mark.reason
    return [text for text in texts.values() if text], [(one, json.loads(said)) for one, said in calls.values()], reason


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_streamed_and_whole_say_the_same(name: str, turn: Turn) -> None:
    """Text, calls and the reason of the end."""
    api, body = APIS[name], PROVIDERS[name].whole(turn, {"model": "m"}, "1")
    said = [one.arguments if isinstance(one.arguments, dict) else json.loads(one.arguments) for one in api.calls(body)]
    calls = [(one.name, value) for one, value in zip(api.calls(body), said, strict=True)]
    assert streamed(name, turn) == ([text for _, text in api.texts(body)], calls, api.finish(body))


@pytest.mark.parametrize("name", PROVIDERS)
def test_ids_are_as_unique_as_they_are_made(name: str) -> None:
    """Two replies share no id; the same one made twice is the same."""
    turn = TURNS["calls"]
    one, again, two = (list(PROVIDERS[name].events(turn, {}, made)) for made in ("a", "a", "b"))
    assert one == again
    assert one != two


@pytest.mark.parametrize(
    ("block", "status"),
    [
        (Block("tool", '{"a": ', name="one"), "incomplete"),
        (Block("tool", '{"a": 1}', name="one"), "completed"),
        (Block("custom_tool", "x = ", name="code"), "incomplete"),
        (Block("text", "Now I "), "incomplete"),
    ],
)
def test_what_the_token_limit_cut_says_so(block: Block, status: str) -> None:
    """Of Responses: the last item alone is incomplete, and its arguments are never said to be done."""
    turn = Turn((Block("text", "One."), block), stop="max_tokens")
    told = [data for _, data in PROVIDERS["responses"].events(turn, {}, "1") if isinstance(data, dict)]
    ended = [data["item"] for data in told if data["type"] == "response.output_item.done"]
    assert [item["status"] for item in ended] == ["completed", status]
    assert PROVIDERS["responses"].whole(turn, {}, "1")["output"] == ended
    if block.type != "text":
        assert any(data["type"].endswith(("arguments.done", "input.done")) for data in told) == (status == "completed")


PATHS = [
    ("/v1/messages", "anthropic"),
    ("/v1/messages/", "anthropic"),
    ("/proxy/anthropic/v1/messages", "anthropic"),
    ("/v1/chat/completions", "chat"),
    ("/openai/v1/responses", "responses"),
    ("/backend-api/codex/responses", "responses"),
    ("/v1/messages/count_tokens", None),
    ("/v1/completions", None),
    ("/v1/responses/resp_1", None),
    ("/", None),
]


@pytest.mark.parametrize(("path", "name"), PATHS)
def test_an_api_is_told_by_the_end_of_the_path(path: str, name: str | None) -> None:
    """The provider's side and the client's side agree; only POST asks for a reply."""
    provider, api = spoken_at("POST", path), api_of("POST", path)
    assert (provider.name if provider else None) == (api.name if api else None) == name
    assert spoken_at("GET", path) is api_of("GET", path) is None
