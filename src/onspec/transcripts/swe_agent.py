"""Reads SWE-agent's and mini-swe-agent's trajectories: one JSON document of messages or of steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from onspec.audit import Json
from onspec.message import Text
from onspec.transcripts.document import Element, Frame, elements
from onspec.transcripts.session import Damage, Entry, Piece, Start, ToolCall, ToolResult, Turn
from onspec.transcripts.source import Source, get
from onspec.transcripts.wire import chat_calls, message_turn, openai_usage, seconds, text_of

NAME = "swe-agent"
MINI = "mini-swe-agent"

_TRAJECTORY = re.compile(rb'"(?:trajectory|history)"\s*:\s*\[')
_MESSAGES = re.compile(rb'"messages"\s*:\s*\[')


def sniff(head: bytes) -> bool:
    """Whether a file begins like a trajectory."""
    start = head[:8192]
    if b"mini_version" in head or b'"mini-swe-agent' in head or (b'"model_stats"' in start and _MESSAGES.search(head)):
        return True
    return (
        bool(_TRAJECTORY.search(head))
        and (b'"observation"' in head or b'"environment"' in head or b'"thought"' in head)
        and b'"openhands_version"' not in head
        and b'"args"' not in start
    )


def entries(source: Source) -> Iterator[Entry]:
    """The trajectory's entries. Actions that are text are calls with free text; the tool is the action's first word."""
    head = source.head()
    if b"mini_version" in head or _MESSAGES.search(head):
        yield from _mini(source)
    else:
        yield from _full(source)


def _mini(source: Source) -> Iterator[Entry]:
    model: str | None = None
    for piece in elements(source, "messages"):
        if isinstance(piece, Damage):
            yield piece
        elif isinstance(piece, Frame):
            version = get(piece.value, "info", "mini_version")
            model = _text(get(piece.value, "info", "config", "model", "model_name"))
            yield Start(MINI, _text(version), _text(get(piece.value, "instance_id")), model)
        elif isinstance(piece, Element):
            yield from _mini_message(piece.value, piece.index, model)


def _mini_message(message: Json, number: int, model: str | None) -> Iterator[Entry]:
    if not isinstance(message, dict):
        yield Damage(number, "shape")
        return
    extra = message.get("extra")
    moment = seconds(get(extra, "timestamp"))
    if message.get("role") == "user" and get(extra, "interrupt_type") == "FormatError":
        # The reply that could not be read is not in the file; what the model was told is.
        yield Turn("tool", (ToolResult(text_of(message.get("content")), None, None, False),), time=moment, line=number)
        return
    reply = get(extra, "response")
    turn = message_turn(
        message,
        number,
        time=moment,
        model=_text(get(reply, "model")) or model,
        usage=openai_usage(get(reply, "usage")),
        message_id=_text(get(reply, "id")) or f"message {number}",
        stop_reason=None,
    )
    if turn is not None:
        yield turn


def _full(source: Source) -> Iterator[Entry]:
    whole, damage = source.document()
    if damage is not None and damage.reason != "too_large":
        yield damage
        return
    history = get(whole, "history")
    functions = isinstance(history, list) and any(
        isinstance(message, dict) and message.get("tool_calls") for message in history
    )
    model = _text(get(whole, "replay_config", "agent", "model", "name")) or _text(get(whole, "info", "model"))
    yield Start(NAME, _text(get(whole, "info", "swe_agent_version")), None, model)
    if functions:
        for number, message in enumerate(history):
            turn = _history(message, number, model) if isinstance(message, dict) else None
            if turn is not None:
                yield turn
        return
    for piece in elements(source, "trajectory"):
        if isinstance(piece, Damage):
            yield piece
        elif isinstance(piece, Element) and isinstance(piece.value, dict):
            yield from _step(piece.value, piece.index, model)


def _history(message: dict[str, Any], number: int, model: str | None) -> Turn | None:
    if message.get("role") == "tool":
        ids = message.get("tool_call_ids")
        identity = message.get("tool_call_id") or (ids[0] if isinstance(ids, list) and ids else None)
        return Turn("tool", (ToolResult(text_of(message.get("content")), _text(identity)),), line=number)
    parts: list[Piece] = []
    text = text_of(message.get("content"))
    if text:
        parts.append(Text(text))
    if message.get("role") == "assistant":
        parts.extend(chat_calls(message))
        return Turn("assistant", tuple(parts), model=model, message_id=f"message {number}", line=number)
    return Turn("system" if message.get("role") == "system" else "user", tuple(parts), line=number)


def _step(step: dict[str, Any], number: int, model: str | None) -> Iterator[Entry]:
    action = text_of(step.get("action")).strip()
    parts: list[Piece] = [Text(text_of(step.get("response") or step.get("thought")))]
    identity = f"step {number}"
    if action:
        parts.append(ToolCall(action.split(None, 1)[0], None, action, identity, custom=True))
    yield Turn("assistant", tuple(parts), model=model, message_id=identity, line=number)
    if action:
        yield Turn("tool", (ToolResult(text_of(step.get("observation")), identity),), line=number)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
