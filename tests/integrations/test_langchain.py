"""LangChain, the real package over the real OpenAI client: streamed messages, and asking again."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

from onspec.errors import InputError
from onspec.integrations.langchain import FEEDBACK, Checked, Retrying
from onspec.providers.script import Block, Turn
from tests.gateway.rig import EDIT, Rig, call, rig, says

TOOLS = [{"type": "function", "function": {"name": "edit", "description": "Edit", "parameters": EDIT}}]
RIGHT = {"path": "a.py", "edits": [{"oldText": "x", "newText": "y"}]}
GOOD = json.dumps(RIGHT)
EXTRA = GOOD.replace('"y"', '"y", "requireUnique": true')
CUT = GOOD[:-5]
WRONG = '{"path": "a.py", "edits": [{"oldText": "x"}]}'


def model(r: Rig, responses: bool = False) -> Any:
    """The model with its tool, spoken to directly."""
    made = ChatOpenAI(
        model="m",
        api_key="k",  # type: ignore[arg-type]
        base_url=r.provider.url + "/v1",
        max_retries=0,
        use_responses_api=responses,
        stream_usage=True,
    )
    return made.bind_tools(TOOLS)


def streamed(asynchronous: bool, *chains: Any) -> list[list[AIMessageChunk]]:
    """Every chunk of one reply of each chain, all in one event loop."""

    async def run() -> list[list[AIMessageChunk]]:
        return [[chunk async for chunk in chain.astream("x")] for chain in chains]

    return asyncio.run(run()) if asynchronous else [list(chain.stream("x")) for chain in chains]


def added(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    """The message that the chunks are."""
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    return total


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("responses", [True, False])
def test_a_streamed_message_has_checked_calls(asynchronous: bool, responses: bool) -> None:
    """Text as it comes, then the calls: mended, or refused with feedback; never a cut call made whole."""
    turn = says(
        Block("text", "Now I edit.", chunk=3),
        *(call("edit", text, id=one) for one, text in (("c0", EXTRA), ("c1", CUT), ("c2", GOOD))),
    )
    with rig([turn] * 2) as r:
        bare = model(r, responses)
        first, chunks = streamed(asynchronous, bare, bare | Checked(TOOLS))
    plain = added(first)
    assert len(plain.tool_calls) == 3  # LangChain makes a whole call of the cut one
    assert not any(chunk.tool_call_chunks for chunk in chunks[:-1])
    assert sum(bool(chunk.content) for chunk in chunks) > 2
    message = added(chunks)
    assert message.text == "Now I edit."
    assert [one["args"] for one in message.tool_calls] == [RIGHT, RIGHT]
    assert [one["id"] for one in message.tool_calls] == [plain.tool_calls[0]["id"], plain.tool_calls[2]["id"]]
    (bad,) = message.invalid_tool_calls
    assert json.loads(bad["args"] or "") == CUT
    assert "edit was not run" in message.additional_kwargs[FEEDBACK][bad["id"]]
    assert message.usage_metadata == plain.usage_metadata


def test_a_streamed_message_without_calls_is_as_it_was() -> None:
    """Chunk for chunk."""
    with rig([says(Block("text", "Only words.", chunk=2))] * 2) as r:
        plain, checked = streamed(False, model(r), model(r) | Checked(TOOLS))
    assert [chunk.content for chunk in checked] == [chunk.content for chunk in plain]


def test_added_chunks_are_judged_by_what_the_model_wrote() -> None:
    """A summed message is checked like a stream: the cut call does not pass as the whole one LangChain made of it."""
    with rig([says(call("edit", CUT))]) as r:
        total = added(streamed(False, model(r))[0])
    assert total.tool_calls
    message = Checked(TOOLS).invoke(total)
    assert not message.tool_calls
    assert "edit was not run" in (message.invalid_tool_calls[0]["error"] or "")


@pytest.mark.parametrize("responses", [True, False])
@pytest.mark.parametrize("way", ["whole", "streamed", "asked again"])
def test_the_history_holds_the_checked_call(responses: bool, way: str) -> None:
    """What goes back to the provider in the next turn is the call that ran, and nothing of the broken one."""
    bad = WRONG if way == "asked again" else EXTRA
    with rig([says(Block("text", "Now."), call("edit", bad, id="c0")), says(call("edit", EXTRA, id="c1"))]) as r:
        bare = model(r, responses)
        if way == "streamed":
            (chunks,) = streamed(False, bare | Checked(TOOLS))
            message: Any = added(chunks)
        else:
            message = (Retrying(bare, TOOLS) if way == "asked again" else bare | Checked(TOOLS)).invoke("x")
        done = ToolMessage("done", tool_call_id=message.tool_calls[0]["id"])
        bare.invoke([HumanMessage("x"), message, done])
        body = r.provider.requests[-1].body
    assert "requireUnique" not in json.dumps(body)
    if responses:
        calls = [(item["call_id"], item["arguments"]) for item in body["input"] if item["type"] == "function_call"]
    else:
        calls = [(one["id"], one["function"]["arguments"]) for one in body["messages"][1]["tool_calls"]]
    assert [(one, json.loads(text)) for one, text in calls] == [("c1" if way == "asked again" else "c0", RIGHT)]


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize("responses", [True, False])
def test_the_model_is_asked_again(asynchronous: bool, responses: bool) -> None:
    """With its call and the feedback; the new call stands beside those that were right, and usage is the sum."""
    turns = [says(call("edit", GOOD, id="c0"), call("edit", WRONG, id="c1")), says(call("edit", EXTRA, id="c2"))]
    with rig(turns) as r:
        chain = Retrying(model(r, responses), TOOLS)
        asked = [HumanMessage("x")]
        message = asyncio.run(chain.ainvoke(asked)) if asynchronous else chain.invoke(asked)
        second = json.dumps(r.provider.requests[1].body)
    assert [one["args"] for one in message.tool_calls] == [RIGHT, RIGHT]
    assert not message.invalid_tool_calls
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_tokens"] == 84
    assert "edit was not run" in second
    assert "c1" in second
    assert "c0" not in second


@pytest.mark.parametrize(
    ("again", "asked"),
    [
        ([says(call("edit", WRONG))] * 4, 2),
        ([says(Block("text", "I give up."))], 2),
        ([says(call("edit", '{"path": 1}')), says(call("edit", '{"path": 2}')), says(call("edit", GOOD))], 4),
        ([says(call("edit", '{"path": 1}')), says(call("edit", '{"path": [2]}')), says(call("edit", "{"))], 4),
    ],
    ids=["the same", "words", "lands at last", "never"],
)
def test_tries_are_bounded(again: list[Turn], asked: int) -> None:
    """The same mistake, or no call at all, ends it; otherwise so many tries as were said."""
    with rig([says(call("edit", WRONG)), *again]) as r:
        message = Retrying(model(r), TOOLS, retries=3).invoke("x")
        assert len(r.provider.requests) == asked
    assert bool(message.tool_calls) == (again[-1].blocks[0].text == GOOD)
    assert bool(message.invalid_tool_calls) != bool(message.tool_calls)


def test_a_decoded_call_of_a_cut_reply_is_refused() -> None:
    """Where only decoded arguments are left, the reason of the stop decides over the last call."""
    calls = [{"name": "edit", "args": RIGHT, "id": one} for one in ("1", "2")]
    for told in ({"finish_reason": "length"}, {"stop_reason": "max_tokens"}, {"status": "incomplete"}):
        message = Checked(TOOLS).invoke(AIMessage("", tool_calls=calls, response_metadata=told))
        assert [one["id"] for one in message.tool_calls] == ["1"]
        assert [one["id"] for one in message.invalid_tool_calls] == ["2"]
    whole = AIMessage("", tool_calls=calls, response_metadata={"finish_reason": "tool_calls"})
    assert Checked(TOOLS).invoke(whole) is whole


def test_a_negative_number_of_tries_is_refused() -> None:
    """Said at once."""
    with rig([]) as r, pytest.raises(InputError, match="from 0"):
        Retrying(model(r), TOOLS, retries=-1)
