"""Reads vendor verifiers' results: JSON Lines, each a Chat Completions request with the response it got."""

from __future__ import annotations

from collections.abc import Iterator

from onspec.audit import Json
from onspec.transcripts.session import Damage, Entry, Start, Tools, Turn
from onspec.transcripts.source import Source, get
from onspec.transcripts.wire import message_turn, openai_usage, seconds, tool_list

NAME = "vendor-verifier"


def sniff(head: bytes) -> bool:
    """Whether a file begins like such a result: a request with messages, and a response with choices or a verdict."""
    first = head.split(b"\n", 1)[0]
    return (
        b'"request"' in first
        and b'"messages"' in first
        and (b'"choices"' in first or b'"tool_calls_valid"' in first or b'"finish_reason"' in first)
    )


def entries(source: Source) -> Iterator[Entry]:
    """The results' entries; each line is a session of its own, and only the response's calls are the model's."""
    for line in source.lines():
        if isinstance(line, Damage):
            yield line
        elif not isinstance(get(line.value, "request"), dict):
            yield Damage(line.number, "shape")
        else:
            yield from _result(line.value, line.number)


def _result(value: Json, number: int) -> Iterator[Entry]:
    asked, answer = value["request"], value.get("response")
    model = get(answer, "model") or asked.get("model")
    named = model if isinstance(model, str) else None
    yield Start(NAME, None, f"line {number}", named, True)
    tools = tool_list(asked.get("tools"))
    yield Tools(tools)
    messages = asked.get("messages")
    for message in messages if isinstance(messages, list) else ():
        turn = message_turn(message, number) if isinstance(message, dict) else None
        if turn is not None and turn.role in ("system", "user", "developer"):
            yield turn
    choices = get(answer, "choices")
    for choice in choices if isinstance(choices, list) else ():
        message = get(choice, "message")
        reason = get(choice, "finish_reason") or value.get("finish_reason")
        if isinstance(message, dict):
            turn = message_turn(
                message,
                number,
                model=named,
                time=seconds(get(answer, "created")),
                usage=openai_usage(get(answer, "usage")),
                message_id=f"line {number}",
                stop_reason=reason if isinstance(reason, str) else None,
            )
            if turn is not None:
                yield Turn(
                    "assistant",
                    turn.parts,
                    time=turn.time,
                    model=named,
                    usage=turn.usage,
                    message_id=turn.message_id,
                    stop_reason=turn.stop_reason,
                    line=number,
                )
