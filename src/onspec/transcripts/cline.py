"""Reads Cline's `messages.json`: Anthropic's blocks, with the text of calls that could not be read kept beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from onspec.audit import Json
from onspec.message import Role
from onspec.transcripts.document import Element, Frame, elements
from onspec.transcripts.session import Damage, Entry, Piece, Start, ToolCall, ToolResult, Turn, Usage
from onspec.transcripts.source import Source, get
from onspec.transcripts.wire import ROLES, block, count, seconds, text_of

NAME = "cline"

_DOCUMENT = re.compile(rb'\A\s*\{[^\[]*"messages"\s*:\s*\[')


def sniff(head: bytes) -> bool:
    """Whether a file begins like a `messages.json`."""
    start = head[:4096]
    return bool(_DOCUMENT.match(head)) and b'"version"' in start and b'"updated_at"' in start


def entries(source: Source) -> Iterator[Entry]:
    """The session's entries."""
    yield Start(NAME)
    for piece in elements(source, "messages"):
        if isinstance(piece, Damage):
            yield piece
        elif isinstance(piece, Element):
            turn = _message(piece.value, piece.index)
            yield turn if turn is not None else Damage(piece.index, "shape")
        elif isinstance(piece, Frame):
            continue


def _message(value: Json, number: int) -> Turn | None:
    role: Role | None = ROLES.get(str(get(value, "role")))
    if role is None:
        return None
    lost = _invalid(value)
    content = value.get("content")
    parts: list[Piece] = []
    for part in content if isinstance(content, list) else [content]:
        piece = block(part)
        if isinstance(piece, ToolCall):
            raw, fault = lost.get(piece.id or "", (get(part, "metadata", "rawInputText"), None))
            fault = fault or get(part, "metadata", "inputParseError")
            if isinstance(raw, str):
                piece = ToolCall(
                    piece.name, piece.arguments, raw, piece.id, text_of(fault) or "not JSON", stand_in=True
                )
        if piece is not None:
            parts.append(piece)
    if role == "user" and any(isinstance(piece, ToolResult) for piece in parts):
        role = "tool"
    metrics = value.get("metrics")
    return Turn(
        role,
        tuple(parts),
        time=seconds(value.get("ts")),
        model=_model(value.get("modelInfo")),
        usage=_usage(metrics) if role == "assistant" else None,
        line=number,
    )


def _invalid(value: dict[str, Any]) -> dict[str, tuple[Json, Json]]:
    calls = get(value, "metadata", "invalidToolCalls")
    found = {}
    for call in calls if isinstance(calls, list) else ():
        identity = get(call, "toolCallId")
        if isinstance(identity, str):
            found[identity] = (
                get(call, "input", "rawInputText"),
                get(call, "input", "parseError") or get(call, "reason"),
            )
    return found


def _model(info: Json) -> str | None:
    for key in ("modelId", "id", "model"):
        named = get(info, key)
        if isinstance(named, str):
            return named
    return None


def _usage(metrics: Json) -> Usage | None:
    if not isinstance(metrics, dict) or not metrics:
        return None
    held: dict[str, Json] = metrics["tokens"] if isinstance(metrics.get("tokens"), dict) else metrics
    return Usage(
        count(held.get("inputTokens", held.get("prompt"))),
        count(held.get("outputTokens", held.get("completion"))),
        count(held.get("cacheReadTokens", held.get("cacheReads"))),
        count(held.get("cacheWriteTokens", held.get("cacheWrites"))),
    )
