"""Reads Claude Code's session files: JSON Lines, one content block a line, a tree by `parentUuid`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from onspec.audit import Json
from onspec.message import Role, Text
from onspec.transcripts.session import Damage, Entry, Piece, Start, ToolCall, ToolResult, Tools, Turn, Unknown
from onspec.transcripts.source import Source, get
from onspec.transcripts.wire import anthropic_usage, block, seconds, text_of, tool_list

NAME = "claude-code"

_WEB = re.compile(rb'\s*\{\s*"loglines"')
_MARKS = (b'"parentUuid"', b'"sessionId"', b'"loglines"', b'"isSidechain"', b'"leafUuid"')


def sniff(head: bytes) -> bool:
    """Whether a file begins like one of Claude Code's."""
    if _WEB.match(head):
        return True
    talks = b'"type":"user"' in head or b'"type":"assistant"' in head or b'"type":"summary"' in head
    kinds = talks or b'"file-history-snapshot"' in head or b'"queue-operation"' in head or b'"type":"progress"' in head
    return (kinds or b'"type": "user"' in head or b'"type": "assistant"' in head) and (
        sum(mark in head for mark in _MARKS) >= 1 and b'"functionCall"' not in head and b'"role":"model"' not in head
    )


def entries(source: Source) -> Iterator[Entry]:
    """The session's entries.

    One model reply is spread over several lines that share its message id, and its usage stands on each. Calls of
    sub-agents, in lines of their own or inside `progress` lines, are marked `side`.
    """
    state = _State()
    if _WEB.match(source.head()):
        whole, damage = source.document()
        if damage:
            yield damage
        lines = get(whole, "loglines")
        for number, value in enumerate(lines if isinstance(lines, list) else ()):
            yield from _line(value, number, state)
        return
    for line in source.lines():
        if isinstance(line, Damage):
            yield line
        else:
            yield from _line(line.value, line.number, state)


class _State:
    """What the lines so far have said about the session."""

    __slots__ = ("session", "version")

    def __init__(self) -> None:
        self.version: Json = None
        self.session: Json = None


def _line(value: Json, number: int, state: _State) -> Iterator[Entry]:
    if not isinstance(value, dict):
        yield Damage(number, "shape")
        return
    version, session = value.get("version"), value.get("sessionId")
    if (version is not None and version != state.version) or (session is not None and session != state.session):
        state.version, state.session = version or state.version, session or state.session
        yield Start(NAME, _text(state.version), _text(state.session))
    kind = value.get("type")
    if kind in ("user", "assistant"):
        turn = _turn(value, number, value.get("isSidechain") is True)
        yield turn if turn is not None else Damage(number, "shape")
    elif kind == "progress":
        inner = get(value, "data", "message")
        if get(value, "data", "type") == "agent_progress" and isinstance(inner, dict):
            turn = _turn(inner, number, True)
            if turn is not None:
                yield turn
    elif kind == "api-request-shape":
        tools = tool_list(get(value, "shape", "tools"))
        if tools:
            yield Tools(tools)
    else:
        yield Unknown(str(kind), value, number)


def _turn(value: dict[str, Any], number: int, side: bool) -> Turn | None:
    message = value.get("message")
    if not isinstance(message, dict):
        return None
    role: Role = "assistant" if value.get("type") == "assistant" else "user"
    content = message.get("content")
    reply, uuid = message.get("id"), value.get("uuid")
    parts: list[Piece] = []
    if isinstance(content, list):
        for part in content:
            piece = block(part)
            if isinstance(piece, ToolCall):
                piece = _call(piece, reply if isinstance(reply, str) else uuid)
            elif isinstance(piece, ToolResult):
                role = "tool"
                detail = value.get("toolUseResult")
                if isinstance(detail, str):
                    piece = ToolResult(piece.content, piece.call_id, piece.name, piece.is_error, detail)
            if piece is not None:
                parts.append(piece)
    elif content:
        parts.append(Text(text_of(content)))
    model, usage = message.get("model"), message.get("usage")
    return Turn(
        role,
        tuple(parts),
        _text(uuid),
        _text(value.get("parentUuid")),
        seconds(value.get("timestamp")),
        model if isinstance(model, str) and model != "<synthetic>" else None,
        anthropic_usage(usage) if role == "assistant" else None,
        _text(reply),
        _text(message.get("stop_reason")),
        side,
        number,
    )


def _call(call: ToolCall, owner: Json) -> ToolCall:
    key = f"{owner}:{call.id}" if call.id and isinstance(owner, str) else None
    return ToolCall(call.name, call.arguments, call.text, call.id, call.fault, stand_in=call.stand_in, key=key)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
