"""Reads Qwen Code's session files: JSON Lines, a tree by `parentUuid`, messages in Gemini's form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onspec.audit import Json
from onspec.message import Role, Text, Thinking
from onspec.transcripts.session import Damage, Entry, Piece, Start, ToolCall, ToolResult, Turn, Unknown, Usage
from onspec.transcripts.source import Source, get
from onspec.transcripts.wire import count, seconds, text_of

NAME = "qwen-code"


def sniff(head: bytes) -> bool:
    """Whether a file begins like one of Qwen Code's."""
    compact = head.replace(b'": ', b'":')
    return b'"parentUuid"' in compact and b'"sessionId"' in compact and b'"parts"' in compact


def entries(source: Source) -> Iterator[Entry]:
    """The session's entries."""
    version: Json = None
    for line in source.lines():
        if isinstance(line, Damage):
            yield line
            continue
        value = line.value
        if not isinstance(value, dict):
            yield Damage(line.number, "shape")
            continue
        if value.get("version") is not None and value["version"] != version:
            version = value["version"]
            yield Start(NAME, _text(version), _text(value.get("sessionId")))
        parts = get(value, "message", "parts")
        if value.get("type") in ("user", "assistant", "tool_result") and isinstance(parts, list):
            yield _turn(value, parts, line.number)
        else:
            yield Unknown(f"{value.get('type')}:{value.get('subtype')}", value, line.number)


def _turn(value: dict[str, Any], parts: list[Json], number: int) -> Turn:
    kind = value["type"]
    uuid = _text(value.get("uuid"))
    pieces = [piece for piece in (_piece(part, value, uuid) for part in parts) if piece is not None]
    role: Role = "assistant" if kind == "assistant" else "user"
    if any(isinstance(piece, ToolResult) for piece in pieces):
        role = "tool"
    return Turn(
        role,
        tuple(pieces),
        uuid,
        _text(value.get("parentUuid")),
        seconds(value.get("timestamp")),
        _text(value.get("model")),
        _usage(value.get("usageMetadata")),
        uuid if role == "assistant" else None,
        line=number,
    )


def _piece(part: Json, value: dict[str, Any], uuid: str | None) -> Piece | None:
    call, response = get(part, "functionCall"), get(part, "functionResponse")
    if isinstance(call, dict):
        identity, arguments = _text(call.get("id")), call.get("args")
        text = arguments if isinstance(arguments, str) else None
        key = f"{uuid}:{identity}" if uuid and identity else None
        return ToolCall(text_of(call.get("name")), None if text is not None else arguments, text, identity, key=key)
    if isinstance(response, dict):
        error = get(response, "response", "error")
        failed = error is not None or get(value, "toolCallResult", "status") == "error"
        content = text_of(error) if error is not None else text_of(get(response, "response", "output"))
        return ToolResult(
            content or text_of(get(value, "toolCallResult", "error")),
            _text(response.get("id")) or _text(get(value, "toolCallResult", "callId")),
            _text(response.get("name")),
            failed,
        )
    if isinstance(get(part, "text"), str):
        if part.get("thought") is True:
            return Thinking(part["text"], _text(part.get("thoughtSignature")))
        return Text(part["text"])
    return None


def _usage(usage: Json) -> Usage | None:
    if not isinstance(usage, dict) or not usage:
        return None
    cached = count(usage.get("cachedContentTokenCount"))
    output = count(usage.get("candidatesTokenCount")) + count(usage.get("thoughtsTokenCount"))
    return Usage(max(count(usage.get("promptTokenCount")) - cached, 0), output, cached)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
