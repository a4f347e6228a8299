"""Reads GitHub Copilot CLI's event logs: JSON Lines of dotted event types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onspec.audit import Json
from onspec.message import Text
from onspec.transcripts.session import Damage, Entry, Piece, Start, ToolCall, ToolResult, Turn, Unknown, Usage
from onspec.transcripts.source import Source, get
from onspec.transcripts.wire import count, seconds, text_of

NAME = "copilot-cli"

FREE_TEXT = ("apply_patch",)
"""Tools whose arguments are text by design."""

REMEMBERED = 4096
"""Calls whose ids are kept, to tell a start that was announced in a message from one that was not."""


def sniff(head: bytes) -> bool:
    """Whether a file begins like an event log."""
    compact = head.replace(b'": ', b'":')
    return b'"type":"session.start"' in compact or (
        b'"type":"tool.execution_start"' in compact or b'"type":"assistant.turn_start"' in compact
    )


def entries(source: Source) -> Iterator[Entry]:
    """The log's entries."""
    model: str | None = None
    announced: dict[str, None] = {}
    for line in source.lines():
        if isinstance(line, Damage):
            yield line
            continue
        value, data = line.value, get(line.value, "data")
        kind = get(value, "type")
        if not isinstance(data, dict) or not isinstance(kind, str):
            yield Damage(line.number, "shape")
            continue
        moment = seconds(value.get("timestamp"))
        place = (_text(value.get("id")), _text(value.get("parentId")), moment)
        if kind == "session.start":
            yield Start(NAME, _text(data.get("copilotVersion")), _text(data.get("sessionId")))
        elif kind == "session.model_change":
            model = _text(data.get("newModel")) or model
        elif kind == "assistant.message":
            turn = _message(data, place, model, line.number)
            for piece in turn.parts:
                if isinstance(piece, ToolCall) and piece.id:
                    announced[piece.id] = None
            yield turn
        elif kind == "tool.execution_start":
            identity = _text(data.get("toolCallId"))
            if identity not in announced:
                call = _call(data, data.get("toolName"), line.number)
                yield Turn("assistant", (call,), *place, model, None, _text(data.get("turnId")), line=line.number)
                if identity:
                    announced[identity] = None
        elif kind == "tool.execution_complete":
            model = _text(data.get("model")) or model
            yield Turn("tool", (_result(data),), *place, line=line.number)
        elif kind == "user.message":
            yield Turn("user", (Text(text_of(data.get("content"))),), *place, line=line.number)
        elif kind == "system.message":
            yield Turn("system", (Text(text_of(data.get("content"))),), *place, line=line.number)
        else:
            yield Unknown(kind, value, line.number)
        while len(announced) > REMEMBERED:
            del announced[next(iter(announced))]


def _message(
    data: dict[str, Any], place: tuple[str | None, str | None, float | None], model: str | None, number: int
) -> Turn:
    parts: list[Piece] = []
    text = text_of(data.get("content"))
    if text:
        parts.append(Text(text))
    requests = data.get("toolRequests")
    for request in requests if isinstance(requests, list) else ():
        if isinstance(request, dict):
            parts.append(_call(request, request.get("name"), number))
    output = data.get("outputTokens")
    usage = Usage(output=count(output)) if output is not None else None
    side = data.get("parentToolCallId") is not None
    named = _text(data.get("model")) or model
    return Turn("assistant", tuple(parts), *place, named, usage, _text(data.get("messageId")), None, side, number)


def _call(data: dict[str, Any], name: Json, number: int) -> ToolCall:
    arguments, identity = data.get("arguments"), _text(data.get("toolCallId"))
    text = arguments if isinstance(arguments, str) else None
    return ToolCall(
        _text(name) or "",
        None if text is not None else arguments,
        text,
        identity,
        custom=text is not None and (name in FREE_TEXT or not text.lstrip().startswith("{")),
        key=identity,
    )


def _result(data: dict[str, Any]) -> ToolResult:
    failed = data.get("success") is False
    error = get(data, "error", "message")
    content = text_of(error) if failed and error is not None else text_of(get(data, "result", "content"))
    return ToolResult(content, _text(data.get("toolCallId")), _text(data.get("toolName")), failed)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
