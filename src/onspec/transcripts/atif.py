"""Reads Harbor's agent trajectories (ATIF): one JSON document of steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onspec.audit import Json
from onspec.message import Role, Text, Thinking
from onspec.transcripts.document import Element, Frame, elements
from onspec.transcripts.session import Damage, Entry, Piece, Start, ToolCall, ToolResult, Tools, Turn, Usage
from onspec.transcripts.source import Source, get
from onspec.transcripts.wire import count, seconds, text_of, tool_list

NAME = "atif"

_ROLES: dict[str, Role] = {"agent": "assistant", "system": "system", "user": "user"}


def sniff(head: bytes) -> bool:
    """Whether a file begins like an ATIF document."""
    return b'"ATIF-v' in head[:4096] or (b'"schema_version"' in head[:4096] and b'"step_id"' in head)


def entries(source: Source) -> Iterator[Entry]:
    """The trajectory's entries; the harness is the agent that the document names."""
    model: str | None = None
    for piece in elements(source, "steps"):
        if isinstance(piece, Damage):
            yield piece
        elif isinstance(piece, Frame):
            agent = get(piece.value, "agent")
            model = _text(get(agent, "model_name"))
            yield Start(
                _text(get(agent, "name")) or NAME,
                _text(get(agent, "version")),
                _text(get(piece.value, "session_id")),
                model,
            )
            tools = tool_list(get(agent, "tool_definitions"))
            if tools:
                yield Tools(tools)
        elif isinstance(piece, Element):
            if isinstance(piece.value, dict):
                yield from _step(piece.value, piece.index, model)
            else:
                yield Damage(piece.index, "shape")


def _step(step: dict[str, Any], number: int, model: str | None) -> Iterator[Entry]:
    role = _ROLES.get(str(step.get("source")), "user")
    moment = seconds(step.get("timestamp"))
    identity = str(step.get("step_id", number))
    parts: list[Piece] = []
    thought = text_of(step.get("reasoning_content"))
    if thought:
        parts.append(Thinking(thought))
    text = text_of(step.get("message"))
    if text:
        parts.append(Text(text))
    calls = step.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            arguments = call.get("arguments")
            held = arguments if isinstance(arguments, str) else None
            parts.append(
                ToolCall(
                    text_of(call.get("function_name")),
                    None if held is not None else arguments,
                    held,
                    _text(call.get("tool_call_id")),
                )
            )
    named = _text(step.get("model_name")) or model
    usage = _usage(step.get("metrics"))
    yield Turn(role, tuple(parts), identity, None, moment, named, usage, f"step {identity}", line=number)
    results = get(step, "observation", "results")
    answered = tuple(
        ToolResult(
            text_of(result.get("content")), _text(result.get("source_call_id")), None, result.get("is_error") is True
        )
        for result in (results if isinstance(results, list) else ())
        if isinstance(result, dict)
    )
    if answered:
        yield Turn("tool", answered, None, None, moment, line=number)


def _usage(metrics: Json) -> Usage | None:
    if not isinstance(metrics, dict) or not metrics:
        return None
    total, cached = count(metrics.get("prompt_tokens")), count(metrics.get("cached_tokens"))
    return Usage(max(total - cached, 0), count(metrics.get("completion_tokens")), min(cached, total))


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
