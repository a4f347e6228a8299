"""Reads plain conversations: OpenAI or Anthropic messages and Responses items, as JSON or JSON Lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from onspec.audit import Json
from onspec.transcripts.document import Element, Frame, elements
from onspec.transcripts.session import Damage, Entry, Piece, Start, ToolResult, Tools, Turn, Unknown
from onspec.transcripts.source import Source, get
from onspec.transcripts.wire import (
    ROLES,
    anthropic_usage,
    message_turn,
    openai_usage,
    response_item,
    seconds,
    text_of,
    tool_list,
)

NAME = "messages"

LISTS = ("messages", "traj", "trajectory", "conversations", "conversation", "input", "output", "history")
"""Keys under which a conversation stands in a wrapper."""

_ITEM = re.compile(rb'"(?:type)"\s*:\s*"(?:function_call|custom_tool_call|tool_use|tool_result)"')
_ROLE = re.compile(rb'"(?:role|from)"\s*:\s*"(?:system|developer|user|assistant|tool|human|gpt|model|function)"')
_COMPACT = re.compile(rb'\A\s*\{"v":\d+,"agent":"')


def sniff(head: bytes) -> bool:
    """Whether a file has something like messages in it."""
    return bool(_ROLE.search(head) or _ITEM.search(head) or _COMPACT.match(head))


def entries(source: Source) -> Iterator[Entry]:
    """The file's entries.

    A line or element may be a message, an item, or a wrapper that holds a whole conversation and its tools; a wrapper
    is a session of its own.
    """
    yield Start(NAME)
    if _is_document(source):
        for piece in elements(source, *LISTS):
            if isinstance(piece, Damage):
                yield piece
            elif isinstance(piece, Frame):
                yield from _frame(piece.value)
            elif isinstance(piece, Element):
                yield from _record(piece.value, piece.index)
        return
    for line in source.lines():
        if isinstance(line, Damage):
            yield line
        else:
            yield from _record(line.value, line.number)


def _is_document(source: Source) -> bool:
    """Whether the file is one JSON value: an array, or an object that goes on past its first line."""
    head = source.head().lstrip()
    if head.startswith(b"["):
        return not re.match(rb"\[[^\n]*\]\s*\n\s*\[", head)
    line, newline, rest = head.partition(b"\n")
    return not line.rstrip().endswith(b"}") or not newline or not rest.strip()


def _frame(frame: Json) -> Iterator[Entry]:
    tools = tool_list(get(frame, "tools") or get(frame, "functions"))
    if tools:
        yield Tools(tools)
    model = get(frame, "model")
    if isinstance(model, str):
        yield Start(NAME, None, None, model)


def _record(value: Json, number: int, model: str | None = None) -> Iterator[Entry]:
    if isinstance(value, list):
        for inner in value:
            yield from _record(inner, number, model)
        return
    if not isinstance(value, dict):
        yield Damage(number, "shape")
        return
    for key in LISTS:
        if isinstance(value.get(key), list) and "role" not in value:
            yield from _wrapper(value, value[key], number)
            return
    turn = _turn(value, number, model)
    yield turn if turn is not None else Unknown(str(value.get("type")), value, number)


def _wrapper(value: dict[str, Any], inner: list[Json], number: int) -> Iterator[Entry]:
    named = value.get("model") or get(value, "response", "model")
    model = named if isinstance(named, str) else None
    yield Start(NAME, None, f"record {number}", model, True)
    tools = tool_list(value.get("tools") or value.get("functions") or get(value, "request", "tools"))
    if tools:
        yield Tools(tools)
    for index, message in enumerate(inner):
        if isinstance(message, dict):
            turn = _turn(message, number, model, f"{number}:{index}")
            if turn is not None:
                yield turn
    answer = get(_first(get(value, "response", "choices") or value.get("choices")), "message")
    if isinstance(answer, dict):
        turn = _turn(answer, number, model, f"{number}:answer")
        if turn is not None:
            yield turn


def _turn(value: dict[str, Any], number: int, model: str | None, reply: str | None = None) -> Turn | None:
    """A message, an item, or an envelope around one (`{"type": "message", "message": {...}}`)."""
    inner = value.get("message")
    message = inner if isinstance(inner, dict) and ("role" in inner or "content" in inner) else value
    if message is not value and "role" not in message:
        message = {**message, "role": value.get("role") or value.get("type")}
    if message.get("role") is None and str(value.get("type")) in ROLES:
        message = {**message, "role": str(value["type"])}
    named = message.get("model") or value.get("model")
    usage = message.get("usage")
    more: dict[str, Any] = {
        "time": seconds(value.get("timestamp") or value.get("ts") or value.get("created")),
        "model": named if isinstance(named, str) else model,
        "usage": openai_usage(usage) if "prompt_tokens" in (usage or {}) else anthropic_usage(usage),
        "message_id": message["id"] if isinstance(message.get("id"), str) else reply or f"line {number}",
    }
    turn = response_item(message, number, **more) or message_turn(message, number, **more)
    return turn if turn is None else _with_inner_results(turn, message)


def _with_inner_results(turn: Turn, message: dict[str, Any]) -> Turn:
    """Adds the results that a compact log writes inside its `tool_use` blocks."""
    content = message.get("content")
    found: list[Piece] = []
    for part in content if isinstance(content, list) else ():
        result = get(part, "result")
        if get(part, "type") == "tool_use" and isinstance(result, dict):
            found.append(
                ToolResult(
                    text_of(result.get("output")),
                    _text(part.get("id")),
                    _text(part.get("name")),
                    result.get("status") == "error",
                )
            )
    if not found:
        return turn
    return Turn(
        turn.role, (*turn.parts, *found), turn.id, turn.parent, turn.time, turn.model, turn.usage, turn.message_id,
        turn.stop_reason, turn.side, turn.line,
    )  # fmt: skip


def _first(value: Json) -> Json:
    return value[0] if isinstance(value, list) and value else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
