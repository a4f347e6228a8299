"""Reads OpenHands: evaluation outputs and trajectories of version 0, and the events of its SDK."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from onspec.audit import Json
from onspec.message import Text, Thinking
from onspec.transcripts.document import Element, Frame, elements
from onspec.transcripts.session import Damage, Entry, Piece, Start, ToolResult, Tools, Turn, Unknown
from onspec.transcripts.source import Source, get
from onspec.transcripts.wire import chat_calls, openai_usage, seconds, text_of, tool_list

NAME = "openhands"

_KIND = re.compile(rb'"kind"\s*:\s*"(?:SystemPrompt|Message|Action|Observation|AgentError|Condensation)\w*"')
_ARRAY = re.compile(rb"\A\s*\[")


def sniff(head: bytes) -> bool:
    """Whether a file begins like an evaluation output, a trajectory or a stream of SDK events."""
    if _KIND.search(head):
        return True
    if b'"instance_id"' in head and b'"agent_class"' in head:
        return True
    events = b'"action"' in head and b'"source"' in head and b'"args"' in head
    return events and (b'"tool_call_metadata"' in head or b'"openhands_version"' in head or b'"observation"' in head)


def entries(source: Source) -> Iterator[Entry]:
    """The session's entries; each line of an evaluation output is a session of its own."""
    head = source.head()
    if _ARRAY.match(head) or re.match(rb'\s*\{\s*"history"', head):
        reader = _Events()
        for piece in elements(source, "history", "events"):
            if isinstance(piece, Frame):
                yield Start(NAME)
            elif isinstance(piece, Element):
                yield from reader.event(piece.value, piece.index)
            else:
                yield piece
        return
    reader = _Events()
    for line in source.lines():
        if isinstance(line, Damage):
            yield line
            continue
        history = get(line.value, "history")
        if isinstance(history, list):
            reader = _Events(_text(get(line.value, "metadata", "llm_config", "model")))
            yield Start(NAME, None, _text(get(line.value, "instance_id")), reader.model, True)
            for event in history:
                # The oldest outputs hold pairs of an action and its observation.
                for inner in event if isinstance(event, list) else [event]:
                    yield from reader.event(inner, line.number)
        else:
            yield from reader.event(line.value, line.number)


class _Events:
    """Turns events into entries; a reply with several calls is repeated on each of its actions and counts once."""

    def __init__(self, model: str | None = None) -> None:
        self.model = model
        self.seen: dict[str, None] = {}

    def event(self, event: Json, number: int) -> Iterator[Entry]:
        if not isinstance(event, dict):
            yield Damage(number, "shape")
        elif isinstance(event.get("kind"), str):
            yield from self._sdk(event, event["kind"], number)
        elif "observation" in event:
            yield _observation(event, number)
        elif "action" in event:
            yield from self._action(event, number)
        else:
            yield Unknown("event", event, number)

    def _action(self, event: dict[str, Any], number: int) -> Iterator[Entry]:
        moment, action = seconds(event.get("timestamp")), event.get("action")
        if action == "system":
            version = get(event, "args", "openhands_version")
            if isinstance(version, str):
                yield Start(NAME, version)
            tools = tool_list(get(event, "args", "tools"))
            if tools:
                yield Tools(tools)
            return
        reply = get(event, "tool_call_metadata", "model_response")
        message = get(_first(get(reply, "choices")), "message")
        if isinstance(message, dict):
            identity = _text(get(reply, "id"))
            calls = []
            for call in chat_calls(message):
                mark = f"{identity}:{call.id}"
                if mark not in self.seen:
                    self.seen[mark] = None
                    calls.append(call)
            while len(self.seen) > 4096:
                del self.seen[next(iter(self.seen))]
            text = text_of(message.get("content"))
            parts: list[Piece] = [Text(text)] if text and calls else []
            if calls:
                model = _text(get(reply, "model")) or self.model
                usage = openai_usage(get(reply, "usage"))
                yield Turn(
                    "assistant", (*parts, *calls), None, None, moment, model, usage, identity, None, False, number
                )
            return
        if action == "message":
            role = "user" if event.get("source") == "user" else "assistant"
            text = text_of(get(event, "args", "content")) or text_of(event.get("message"))
            if role == "user":
                yield Turn("user", (Text(text),), time=moment, line=number)
            else:
                yield Turn("assistant", (Text(text),), time=moment, model=self.model, line=number)
        else:
            yield Unknown(f"action:{action}", event, number)

    def _sdk(self, event: dict[str, Any], kind: str, number: int) -> Iterator[Entry]:
        moment = seconds(event.get("timestamp"))
        identity = _text(event.get("id"))
        if kind == "SystemPromptEvent":
            yield Start(NAME, "sdk")
            tools = tool_list(event.get("tools"))
            if tools:
                yield Tools(tools)
        elif kind == "ActionEvent":
            call = event.get("tool_call")
            parts: list[Piece] = []
            thought = text_of(event.get("reasoning_content"))
            if thought:
                parts.append(Thinking(thought))
            text = text_of(event.get("thought"))
            if text:
                parts.append(Text(text))
            if isinstance(call, dict):
                inner = (
                    call
                    if "name" in call or isinstance(call.get("function"), dict)
                    else {**call, "name": event.get("tool_name")}
                )
                parts.extend(chat_calls({"tool_calls": [inner]}))
            reply = _text(event.get("llm_response_id"))
            yield Turn("assistant", tuple(parts), identity, None, moment, self.model, None, reply, None, False, number)
        elif kind in ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent"):
            error = event.get("error") if kind == "AgentErrorEvent" else None
            observed = event.get("observation")
            content = (
                text_of(error)
                if error is not None
                else text_of(get(observed, "content") or get(observed, "output") or observed)
            )
            failed = kind == "AgentErrorEvent" or get(observed, "is_error") is True
            result = ToolResult(content, _text(event.get("tool_call_id")), _text(event.get("tool_name")), failed)
            yield Turn("tool", (result,), identity, None, moment, line=number)
        elif kind == "MessageEvent":
            text = text_of(get(event, "llm_message", "content"))
            if get(event, "llm_message", "role") == "assistant":
                yield Turn("assistant", (Text(text),), identity, None, moment, self.model, line=number)
            else:
                yield Turn("user", (Text(text),), identity, None, moment, line=number)
        else:
            yield Unknown(kind, event, number)


def _observation(event: dict[str, Any], number: int) -> Turn:
    """What an action led to. An error that came before there was an action has no call: the file has lost it."""
    content = text_of(event.get("content")) or text_of(event.get("message"))
    identity = _text(get(event, "tool_call_metadata", "tool_call_id"))
    name = _text(get(event, "tool_call_metadata", "function_name"))
    failed = event.get("observation") == "error"
    return Turn(
        "tool",
        (ToolResult(content, identity, name, failed),) if identity or failed else (Text(content),),
        time=seconds(event.get("timestamp")),
        line=number,
    )


def _first(value: Json) -> Json:
    return value[0] if isinstance(value, list) and value else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
