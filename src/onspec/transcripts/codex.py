"""Reads Codex rollouts: JSON Lines of Responses items, plain or compressed, argument text byte for byte."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import orjson

from onspec.audit import Json
from onspec.transcripts.session import Damage, Entry, Start, ToolCall, ToolResult, Tools, Turn, Unknown, Usage
from onspec.transcripts.source import Source, get
from onspec.transcripts.wire import openai_usage, response_item, seconds, tool_list

NAME = "codex"

_ITEMS = (
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "local_shell_call",
    "local_shell_call_output",
)


def sniff(head: bytes) -> bool:
    """Whether a file begins like a rollout: an envelope with a payload, or (2025) a bare header with `instructions`."""
    first = head.split(b"\n", 1)[0].replace(b'": ', b'":')
    if b'"payload"' in first and (b'"session_meta"' in first or b'"response_item"' in first or b'"event_msg"' in first):
        return True
    if b'"payload"' in first and (b'"turn_context"' in first or b'"compacted"' in first):
        return True
    return (
        b'"instructions"' in first and b'"timestamp"' in first and b'"git"' in first and b'"role"' not in first
    ) or (b'"record_type"' in head and b'"function_call"' in head)


class _State:
    """What the items so far have said."""

    __slots__ = ("model", "reply", "total")

    def __init__(self) -> None:
        self.model: str | None = None
        self.reply = 0
        self.total: Json = None


def entries(source: Source) -> Iterator[Entry]:
    """The session's entries.

    Token use is recorded after a reply, so it comes as a turn of its own, without parts, that shares the reply's id.
    """
    state = _State()
    for line in source.lines():
        if isinstance(line, Damage):
            yield line
            continue
        value = line.value
        if not isinstance(value, dict):
            yield Damage(line.number, "shape")
            continue
        kind, payload = value.get("type"), value.get("payload")
        moment = seconds(value.get("timestamp"))
        if kind == "response_item" and isinstance(payload, dict):
            yield from _item(payload, moment, line.number, state)
        elif kind in _ITEMS and payload is None:
            yield from _item(value, moment, line.number, state)
        elif kind == "event_msg" and get(payload, "type") == "token_count":
            yield from _tokens(payload, moment, line.number, state)
        elif kind == "turn_context":
            named = get(payload, "model")
            state.model = named if isinstance(named, str) else state.model
        elif kind == "session_meta" or (kind is None and "instructions" in value):
            yield from _meta(payload if isinstance(payload, dict) else value)
        else:
            yield Unknown(str(kind), value, line.number)


def _meta(meta: dict[str, Any]) -> Iterator[Entry]:
    version, identity = meta.get("cli_version"), meta.get("id")
    yield Start(NAME, version if isinstance(version, str) else None, identity if isinstance(identity, str) else None)
    tools = tuple(_dynamic(tool) for tool in tool_list(meta.get("dynamic_tools")))
    if tools:
        yield Tools(tools, replace=False)


def _dynamic(tool: dict[str, Any]) -> Json:
    return {"name": tool.get("name"), "parameters": tool.get("inputSchema", tool.get("parameters"))}


def _item(item: dict[str, Any], moment: float | None, number: int, state: _State) -> Iterator[Entry]:
    turn = response_item(item, number, time=moment)
    if turn is None:
        yield Unknown(str(item.get("type")), item, number)
        return
    if turn.role == "assistant":
        parts = tuple(_keyed(part) if isinstance(part, ToolCall) else part for part in turn.parts)
        yield Turn(
            "assistant", parts, None, None, moment, state.model, None, f"reply {state.reply}", None, False, number
        )
        return
    parts = tuple(_unwrapped(part) if isinstance(part, ToolResult) else part for part in turn.parts)
    yield Turn(turn.role, parts, time=moment, line=number)


def _keyed(call: ToolCall) -> ToolCall:
    mark = zlib.crc32((call.text or "").encode("utf-8", "surrogatepass"))
    key = f"{call.id}:{mark:x}" if call.id else None
    return ToolCall(call.name, call.arguments, call.text, call.id, custom=call.custom, key=key)


def _unwrapped(result: ToolResult) -> ToolResult:
    """The output's text, taken out of the JSON envelope that some versions write."""
    if not result.content.startswith('{"output":'):
        return result
    try:
        inner = orjson.loads(result.content)
    except ValueError:
        return result
    text = get(inner, "output")
    return ToolResult(text, result.call_id, result.name, result.is_error) if isinstance(text, str) else result


def _tokens(payload: Json, moment: float | None, number: int, state: _State) -> Iterator[Entry]:
    total, last = get(payload, "info", "total_token_usage"), get(payload, "info", "last_token_usage")
    if last is None or (total is not None and total == state.total):
        return
    state.total = total
    usage: Usage | None = openai_usage(last)
    yield Turn("assistant", (), None, None, moment, state.model, usage, f"reply {state.reply}", None, False, number)
    state.reply += 1
