"""LangChain with tool calls that conform: a step that comes after the model, and one that asks the model again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onspec.check import Outcome, check
from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset
from onspec.errors import InputError, MissingExtra
from onspec.gateway.wire import replayable
from onspec.repair.policy import Policy

try:
    from langchain_core.language_models import LanguageModelInput
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage, convert_to_messages
    from langchain_core.messages.ai import add_usage
    from langchain_core.messages.tool import tool_call_chunk
    from langchain_core.prompt_values import PromptValue, StringPromptValue
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.tools import BaseTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
except ImportError as error:
    raise MissingExtra("langchain-core", "integrations") from error

Tools = Sequence[BaseTool | type | Mapping[str, Any] | Any]
"""LangChain tools, functions, pydantic models or definitions, as `bind_tools` takes them."""
FEEDBACK = "onspec_feedback"
"""Where, in the `additional_kwargs` of a streamed message, the feedback on refused calls stands, by call id."""


CALLS = {"function_call": "arguments", "tool_use": "input", "tool_call": "args"}
"""Blocks in which some providers' messages repeat a call, and the field with its arguments."""
PIECES = frozenset({*CALLS, "tool_call_chunk", "input_json_delta"})
"""The same in streams; a message without them is replayed from its tool calls."""


@dataclass(slots=True)
class _Judged:
    """The calls of one message, judged."""

    good: list[dict[str, Any]] = field(default_factory=list)
    bad: list[dict[str, Any]] = field(default_factory=list)
    changed: bool = False


class Checked(Runnable[AIMessage, AIMessage]):
    """`model.bind_tools(tools) | Checked(tools)`: broken calls are mended, unmendable ones say why.

    A call that LangChain could not read (`invalid_tool_calls`) becomes a tool call where it can be mended; one that is
    refused stands in `invalid_tool_calls` with the feedback for the model as its `error`.

    Streamed, text passes as it comes and the calls follow when the message has ended. The text of a call is what the
    model wrote; LangChain itself makes a whole call of one that was cut. Feedback stands in
    `additional_kwargs["onspec_feedback"]` by call id there, since adding chunks up loses an `error`.

    Args:
        tools: What the model may call.
        policy: Which repairs may be made; `Policy.safe()` where none is given.
    """

    def __init__(self, tools: Tools, policy: Policy | None = None) -> None:
        self._tools = Toolset(Tool.from_json(convert_to_openai_tool(tool)) for tool in tools)
        self._policy = Policy.given(policy)

    def invoke(self, input: AIMessage, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        """The message with its calls checked; the same message where all of them conform."""
        calls = [*input.tool_calls, *input.invalid_tool_calls]
        if isinstance(input, AIMessageChunk):
            calls = list(input.tool_call_chunks)
        found = self._judged(calls, input)
        if not found.changed:
            return input
        content = _mended(input.content, found.good)
        update = {"content": content, "tool_calls": found.good, "invalid_tool_calls": found.bad}
        return AIMessage(**{**_fields(input), **update}) if isinstance(input, AIMessageChunk) else _with(input, update)

    def transform(
        self, input: Iterator[AIMessage], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[AIMessage]:
        """Chunks as they come without their calls, then one with the calls, checked."""
        held = _Held()
        for chunk in input:
            yield from held.passed(chunk)
        yield from self._last(held)

    async def atransform(
        self, input: AsyncIterator[AIMessage], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessage]:
        """The same, waiting."""
        held = _Held()
        async for chunk in input:
            for passed in held.passed(chunk):
                yield passed
        for last in self._last(held):
            yield last

    def _last(self, held: _Held) -> Iterator[AIMessage]:
        if held.whole is not None:
            yield self.invoke(held.whole)
        calls = list(held.calls.tool_call_chunks) if held.calls is not None else []
        if held.calls is None or not calls:
            return
        found = self._judged(calls, held.calls)
        made = [(call, json.dumps(call["args"])) for call in found.good]
        # A refused call must not be read as one: as a JSON string it is no object, whatever its text is.
        made += [(call, json.dumps(call["args"])) for call in found.bad]
        content: Any = "" if isinstance(held.calls.content, str) else []
        yield AIMessageChunk(
            content=content,
            tool_call_chunks=[
                tool_call_chunk(name=call["name"], args=text, id=call["id"], index=place)
                for place, (call, text) in enumerate(made)
            ],
            additional_kwargs={FEEDBACK: {str(c["id"]): c["error"] for c in found.bad}} if found.bad else {},
        )

    def _judged(self, calls: Sequence[Any], message: AIMessage) -> _Judged:
        judged = _Judged()
        invalid = message.invalid_tool_calls
        for number, call in enumerate(calls):
            name, raw = call.get("name") or "", call.get("args")
            match = self._tools.find(name)
            if match.tool is None:
                found: Outcome | None = None
                feedback = f"There is no tool named {name!r}. The tools are: {', '.join(self._tools)}."
            else:
                last = number == len(calls) - 1 and not isinstance(raw, str)
                given = raw if isinstance(raw, str | dict) else ""
                found = check(match.tool, given or "{}", self._policy, _reason(message) if last else None)
                feedback = found.feedback()
            if found is not None and found.ok and match.tool is not None:
                judged.changed |= found.status == "repaired" or call in invalid or bool(match.repairs)
                judged.good.append(
                    {"name": match.tool.name, "args": found.arguments, "id": call.get("id"), "type": "tool_call"}
                )
            else:
                judged.changed |= call not in invalid or call.get("error") != feedback
                text = raw if isinstance(raw, str) else json.dumps(raw)
                judged.bad.append(
                    {"name": name, "args": text, "id": call.get("id"), "error": feedback, "type": "invalid_tool_call"}
                )
        return judged


class Retrying(Runnable[LanguageModelInput, AIMessage]):
    """A model whose calls are checked, and that is asked again for those that are refused.

    `Retrying(model.bind_tools(tools), tools, retries=2)`. The model gets its own call back with the feedback as the
    tool's error result; the new calls take the place of the refused ones, and usage is summed. A model that makes the
    same mistake again word for word, or no call at all, is not asked further.

    Args:
        model: The model, its tools bound.
        tools: What it may call.
        policy: Which repairs may be made; `Policy.safe()` where none is given.
        retries: How often, at most, it is asked again for one reply.

    Raises:
        InputError: `retries` is negative.
    """

    def __init__(
        self,
        model: Runnable[LanguageModelInput, AIMessage],
        tools: Tools,
        policy: Policy | None = None,
        retries: int = 1,
    ) -> None:
        if retries < 0:
            raise InputError("retries is a number from 0")
        self._model = model
        self._checked = Checked(tools, policy)
        self._retries = retries

    def invoke(self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        """The model's reply, with its calls checked."""
        steps = self._steps(input)
        asked = next(steps)
        while True:
            try:
                asked = steps.send(self._model.invoke(asked, config, **kwargs))
            except StopIteration as ended:
                found: AIMessage = ended.value
                return found

    async def ainvoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        """The same, waiting."""
        steps = self._steps(input)
        asked = next(steps)
        while True:
            try:
                asked = steps.send(await self._model.ainvoke(asked, config, **kwargs))
            except StopIteration as ended:
                found: AIMessage = ended.value
                return found

    def _steps(self, input: LanguageModelInput) -> Generator[list[BaseMessage], AIMessage, AIMessage]:
        """What the model is asked, one list of messages after another; it is sent the replies."""
        history = _messages(input)
        message = self._checked.invoke((yield history))
        for _ in range(self._retries):
            if not message.invalid_tool_calls:
                break
            again = self._checked.invoke((yield [*history, *_replayed(message)]))
            if not again.tool_calls and _texts(again) in ([], _texts(message)):
                break
            refused = {call["id"] for call in message.invalid_tool_calls}
            update = {
                "content": _without(message.content, refused),
                "tool_calls": [*message.tool_calls, *again.tool_calls],
                "invalid_tool_calls": again.invalid_tool_calls,
                "usage_metadata": add_usage(message.usage_metadata, again.usage_metadata),
            }
            message = _with(message, update)
        return message


@dataclass(slots=True)
class _Held:
    """What of a streamed message waits for its end: its calls, or all of a message that came whole."""

    calls: AIMessageChunk | None = None
    whole: AIMessage | None = None

    def passed(self, chunk: AIMessage) -> Iterator[AIMessage]:
        """What of a chunk may go on now."""
        if not isinstance(chunk, AIMessageChunk):
            self.whole = chunk
            return
        # What is kept aside carries no text, so that adding up stays linear.
        content: Any = "" if isinstance(chunk.content, str) else []
        kept = AIMessageChunk(
            content=content, tool_call_chunks=chunk.tool_call_chunks, response_metadata=chunk.response_metadata
        )
        if chunk.tool_call_chunks or chunk.response_metadata:
            total = kept if self.calls is None else self.calls + kept
            self.calls = total if isinstance(total, AIMessageChunk) else self.calls
        passed: Any = chunk.content
        if not isinstance(passed, str):
            passed = [block for block in passed if not (isinstance(block, dict) and block.get("type") in PIECES)]
        yield _with(chunk, {"content": passed, "tool_call_chunks": [], "tool_calls": [], "invalid_tool_calls": []})


def _mended(content: Any, calls: list[dict[str, Any]]) -> Any:
    """A message's content with the arguments of these calls wherever it repeats them."""
    if isinstance(content, str):
        return content
    by_id = {call["id"]: call for call in calls}
    made: list[Any] = []
    for block in content:
        call = by_id.get(_call_id(block))
        if call is not None:
            name = CALLS[block["type"]]
            given = json.dumps(call["args"]) if isinstance(block.get(name), str) else call["args"]
            block = {**block, "name": call["name"], name: given}
        made.append(block)
    return made


def _without(content: Any, ids: set[Any]) -> Any:
    """A message's content without the blocks of these calls."""
    return content if isinstance(content, str) else [block for block in content if _call_id(block) not in ids]


def _call_id(block: Any) -> str | None:
    if not isinstance(block, dict) or block.get("type") not in CALLS:
        return None
    found = block.get("call_id") or block.get("id")
    return found if isinstance(found, str) else None


def _with(message: AIMessage, update: dict[str, Any]) -> AIMessage:
    return message.model_copy(update=update)


def _fields(message: AIMessageChunk) -> dict[str, Any]:
    """What a whole message of the same content has."""
    return {name: getattr(message, name) for name in AIMessage.model_fields if name != "type"}


def _reason(message: AIMessage) -> str | None:
    """Why the model stopped, where its provider says so. A decoded call doesn't show that its text was cut."""
    told = message.response_metadata
    for name in ("finish_reason", "stop_reason"):
        if isinstance(told.get(name), str):
            return str(told[name])
    return "length" if told.get("status") == "incomplete" else None


def _messages(input: LanguageModelInput) -> list[BaseMessage]:
    if isinstance(input, str):
        input = StringPromptValue(text=input)
    return input.to_messages() if isinstance(input, PromptValue) else list(convert_to_messages(input))


def _replayed(message: AIMessage) -> list[BaseMessage]:
    """The refused calls in a form that every provider takes back, each with its feedback as result."""
    calls = [
        {"name": call["name"] or "unknown", "args": replayable(call["args"] or ""), "id": call["id"] or f"call_{place}"}
        for place, call in enumerate(message.invalid_tool_calls)
    ]
    results = [
        ToolMessage(content=call["error"] or "", tool_call_id=asked["id"], status="error")
        for call, asked in zip(message.invalid_tool_calls, calls, strict=True)
    ]
    text = message.content if isinstance(message.content, str) else ""
    return [AIMessage(content=text, tool_calls=calls), *results]


def _texts(message: AIMessage) -> list[tuple[str | None, str | None]]:
    return [(call["name"], call["args"]) for call in message.invalid_tool_calls]
