"""The library way, with the real packages against a scripted provider."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import openai
import pytest
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from onspec import Receiver, Tool, receive
from onspec.errors import InputError
from onspec.gateway.verdict import Verdict
from onspec.integrations import anthropic as for_anthropic
from onspec.integrations import openai as for_openai
from onspec.integrations.httpx2_transport import Mending
from onspec.integrations.langchain import Checked as LangChainChecked
from onspec.integrations.pydantic_ai import Checked
from onspec.providers.script import Block, Script, Turn
from tests.gateway.rig import EDIT, Rig, call, rig, says, tools

BROKEN = '{"path": "a.py", "edits": [{"old_text": "x", "newText": "y", "requireUnique": true}]}'
RIGHT = {"path": "a.py", "edits": [{"oldText": "x", "newText": "y"}]}
REPLY = says(Block("text", "Now."), call("edit", BROKEN), call("now", "{}"))


@pytest.fixture
def provider() -> Any:
    """A rig whose provider is spoken to directly; the gateway beside it is not used."""
    with rig(Script((REPLY,), every=True, loop=True)) as r:
        yield r


def test_anthropic(provider: Rig) -> None:
    """Streams, stream helpers and whole messages: the SDK only ever sees calls that conform."""
    seen: list[Verdict] = []
    client = anthropic.Anthropic(api_key="k", base_url=provider.provider.url)
    mended = for_anthropic.checked(client, on_call=seen.append)
    asked: dict[str, Any] = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "x"}],
        "tools": tools("anthropic"),
    }
    whole = mended.messages.create(**asked)
    with mended.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    for message in (whole, streamed):
        assert [block.input for block in message.content if block.type == "tool_use"] == [RIGHT, {}]
    assert [verdict.status for verdict in seen] == ["repaired", "accepted"] * 2
    assert client.messages.create(**asked).content[1].input != RIGHT  # the client given is as it was


def test_anthropic_async(provider: Rig) -> None:
    """The asynchronous client too."""

    async def ask() -> Any:
        client = for_anthropic.checked(
            anthropic.AsyncAnthropic(api_key="k", base_url=provider.provider.url), hold="call"
        )
        asked: dict[str, Any] = {
            "model": "m",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "x"}],
            "tools": tools("anthropic"),
        }
        async with client.messages.stream(**asked) as stream:
            return await stream.get_final_message(), await client.messages.create(**asked)

    for message in asyncio.run(ask()):
        assert [block.input for block in message.content if block.type == "tool_use"] == [RIGHT, {}]


def test_openai(provider: Rig) -> None:
    """Chat Completions and Responses, streamed and whole."""
    client = for_openai.checked(openai.OpenAI(api_key="k", base_url=provider.provider.url + "/v1"))
    chat: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": tools("chat")[:-1]}
    whole = client.chat.completions.create(**chat).choices[0].message
    with client.chat.completions.stream(**chat) as stream:
        streamed = stream.get_final_completion().choices[0].message
    for message in (whole, streamed):
        assert json.loads(message.tool_calls[0].function.arguments) == RIGHT  # type: ignore[index,union-attr]
    asked: dict[str, Any] = {"model": "m", "input": "x", "tools": tools("responses")}
    with client.responses.stream(**asked) as events:
        final = events.get_final_response()
    for response in (client.responses.create(**asked), final):
        assert json.loads(response.output[1].arguments) == RIGHT


def test_openai_async(provider: Rig) -> None:
    """The asynchronous client too."""

    async def ask() -> Any:
        client = for_openai.checked(openai.AsyncOpenAI(api_key="k", base_url=provider.provider.url + "/v1"))
        asked: dict[str, Any] = {"model": "m", "input": "x", "tools": tools("responses")}
        async with client.responses.stream(**asked) as stream:
            return await stream.get_final_response(), await client.responses.create(**asked)

    for response in asyncio.run(ask()):
        assert json.loads(response.output[1].arguments) == RIGHT


def test_errors_and_other_requests_pass(provider: Rig) -> None:
    """An error status reaches the SDK as its own error; requests without tools are not touched."""
    provider.provider.script = Script((Turn(status=429, error={"error": {"message": "slow"}}),), every=True, loop=True)
    client = for_openai.checked(openai.OpenAI(api_key="k", base_url=provider.provider.url + "/v1", max_retries=0))
    with pytest.raises(openai.RateLimitError):
        client.responses.create(model="m", input="x", tools=tools("responses"))  # type: ignore[arg-type]
    assert client.models.list().data


def edit(path: str, edits: list[dict[str, str]]) -> str:
    """Edit a file."""
    return "edited"


@pytest.mark.parametrize("kind", ["anthropic", "chat", "responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_pydantic_ai(provider: Rig, kind: str, stream: bool) -> None:
    """A broken call runs mended and is mended in the history; a refused one is answered with feedback, then lands."""
    url = provider.provider.url
    models = {
        "anthropic": lambda: AnthropicModel("m", provider=AnthropicProvider(api_key="k", base_url=url)),
        "chat": lambda: OpenAIChatModel("m", provider=OpenAIProvider(api_key="k", base_url=url + "/v1")),
        "responses": lambda: OpenAIResponsesModel("m", provider=OpenAIProvider(api_key="k", base_url=url + "/v1")),
    }
    turns = (
        says(call("lookup", '{"City": "Oslo", "unit": null}')),
        says(call("lookup", '{"city": ["a", "b"]}')),
        says(call("lookup", '{"city": "Bergen"}')),
    )
    provider.provider.script = Script((*turns, says(Block("text", "done"))), every=True)
    checked = Checked()
    ran: list[str] = []
    agent: Agent[None, str] = Agent(models[kind](), capabilities=[checked])

    @agent.tool_plain
    def lookup(city: str) -> str:
        """Look a city up."""
        ran.append(city)
        return "fine"

    async def ask() -> str:
        if not stream:
            return (await agent.run("x")).output

        async def watch(_: Any, events: Any) -> None:
            async for _event in events:
                pass

        return (await agent.run("x", event_stream_handler=watch)).output

    assert asyncio.run(ask()) == "done"
    assert ran == ["Oslo", "Bergen"]
    assert [outcome.status for outcome in checked.outcomes] == ["repaired", "refused", "accepted"]
    history = json.dumps(provider.provider.requests[1].body)
    assert "unit" not in history.replace("unit_", "") or kind == "responses"
    assert "city" in json.dumps(provider.provider.requests[2].body)


def test_langchain(provider: Rig) -> None:
    """Calls that LangChain could or could not read come out mended; refused ones carry feedback."""
    stringified = '{"path": "a.py", "edits": "[{\\"oldText\\": \\"x\\", \\"newText\\": \\"y\\"}]"}'
    fenced = f"```json\n{json.dumps(RIGHT)}\n```"
    broken = [
        BROKEN,
        stringified,
        fenced,
        '{"path": "a.py", "edits": [{"oldText": "x", "newText": "y',
        json.dumps(RIGHT),
    ]
    provider.provider.script = Script(
        (says(*(call("edit", text, id=f"c{number}") for number, text in enumerate(broken))),), every=True, loop=True
    )
    definition = {"type": "function", "function": {"name": "edit", "description": "Edit", "parameters": EDIT}}
    model = ChatOpenAI(model="m", api_key="k", base_url=provider.provider.url + "/v1", max_retries=0)  # type: ignore[arg-type]
    message = (model.bind_tools([definition]) | LangChainChecked([definition])).invoke("x")
    assert [(one["id"], one["args"]) for one in message.tool_calls] == [(f"c{n}", RIGHT) for n in (0, 1, 4, 2)]
    assert [one["id"] for one in message.invalid_tool_calls] == ["c3"]
    assert message.invalid_tool_calls[0]["error"]
    same = AIMessage("", tool_calls=[{"name": "edit", "args": RIGHT, "id": "1"}])
    assert LangChainChecked([definition]).invoke(same) is same


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: for_anthropic.checked("x"), TypeError, "the client is one of the anthropic SDK, not str"),
        (lambda: for_openai.checked("x"), TypeError, "the client is one of the openai SDK, not str"),
        (lambda: Mending(policy="safe"), TypeError, "such as Policy.named"),
        (lambda: Mending(hold="x"), InputError, "hold is one of value, call"),
        (lambda: Mending(retries=99), InputError, "retries is a number"),
        (lambda: LangChainChecked([], policy="safe"), TypeError, "such as Policy.named"),
        (lambda: Checked(policy="safe"), TypeError, "such as Policy.named"),
        (lambda: Receiver([], policy="safe"), TypeError, "such as Policy.named"),
        (lambda: receive("x", Tool("t", {})), TypeError, "put the one tool into a list"),
        (lambda: receive(5, []), TypeError, "a reply is text or bytes, not int"),
    ],
)
def test_what_a_developer_gets_wrong_is_said_at_once(make: Any, kind: type[Exception], message: str) -> None:
    """Not in the middle of a reply."""
    with pytest.raises(kind, match=message):
        make()
