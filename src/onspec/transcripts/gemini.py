"""Reads Gemini CLI's chats: one JSON document, or JSON Lines in which a message may be written again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from onspec.audit import Json
from onspec.message import Text, Thinking
from onspec.transcripts.document import Element, Frame, elements
from onspec.transcripts.session import Damage, Entry, Piece, Start, ToolCall, ToolResult, Turn, Unknown, Usage
from onspec.transcripts.source import Source, get
from onspec.transcripts.wire import count, seconds, text_of

NAME = "gemini-cli"

KEPT = 256
"""Messages of a JSON Lines chat that are held back, because a later line may replace any of them."""

_DOCUMENT = re.compile(rb'\A\s*\{[^{\[]*"(?:projectHash|startTime)"')


def sniff(head: bytes) -> bool:
    """Whether a file begins like a chat."""
    return b'"projectHash"' in head[:4096] or (
        re.search(rb'"type"\s*:\s*"gemini"', head) is not None
        and (b'"sessionId"' in head or b'"toolCalls"' in head or b'"messages"' in head)
    )


def entries(source: Source) -> Iterator[Entry]:
    """The chat's entries. Where a message is written twice, the last one counts.

    What `$rewindTo` takes back was said, and paid for, all the same; it stays, as branches do in other formats.
    """
    head = source.head()
    if re.search(rb'"messages"\s*:\s*\[', head) and not re.search(rb'\}\s*\n\s*\{"', head):
        for piece in elements(source, "messages"):
            if isinstance(piece, Frame):
                yield Start(NAME, None, _text(get(piece.value, "sessionId")))
            elif isinstance(piece, Element):
                yield from _message(piece.value, piece.index)
            else:
                yield piece
        return
    held: dict[str, tuple[dict[str, Any], int]] = {}
    for line in source.lines():
        if isinstance(line, Damage):
            yield line
            continue
        value = line.value
        if not isinstance(value, dict):
            yield Damage(line.number, "shape")
        elif isinstance(value.get("$set"), dict):
            yield from _set(held, value["$set"], line.number)
        elif isinstance(value.get("id"), str) and "type" in value:
            held[value["id"]] = (value, line.number)
            if len(held) > KEPT:
                oldest = next(iter(held))
                message, number = held.pop(oldest)
                yield from _message(message, number)
        elif value.get("type") in ("user", "gemini") and "sessionId" not in value:
            yield from _message(value, line.number)
        elif "sessionId" in value:
            yield Start(NAME, None, _text(value["sessionId"]))
        else:
            yield Unknown(next(iter(value), "record"), value, line.number)
    for message, number in held.values():
        yield from _message(message, number)


def _set(held: dict[str, tuple[dict[str, Any], int]], change: dict[str, Any], number: int) -> Iterator[Entry]:
    messages = change.get("messages")
    if isinstance(messages, list):
        held.clear()
        for message in messages:
            if isinstance(message, dict) and isinstance(message.get("id"), str):
                held[message["id"]] = (message, number)
    else:
        yield Unknown("$set", change, number)


def _message(value: Json, number: int) -> Iterator[Entry]:
    kind = get(value, "type")
    if not isinstance(value, dict) or not isinstance(kind, str):
        yield Damage(number, "shape")
        return
    identity, moment = _text(value.get("id")), seconds(value.get("timestamp"))
    if kind == "user":
        yield Turn("user", (Text(text_of(value.get("content"))),), identity, None, moment, line=number)
        return
    if kind not in ("gemini", "assistant", "model"):
        yield Unknown(kind, value, number)
        return
    said: list[Piece] = []
    answered: list[Piece] = []
    thoughts = value.get("thoughts")
    for thought in thoughts if isinstance(thoughts, list) else ():
        said.append(Thinking(text_of(get(thought, "description")) or text_of(thought)))
    text = text_of(value.get("content"))
    if text:
        said.append(Text(text))
    calls = value.get("toolCalls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            said.append(_call(call, identity))
            result = _result(call)
            if result is not None:
                answered.append(result)
    yield Turn(
        "assistant",
        tuple(said),
        identity,
        None,
        moment,
        _text(value.get("model")),
        _usage(value.get("tokens")),
        identity,
        line=number,
    )
    if answered:
        yield Turn("tool", tuple(answered), None, None, moment, line=number)


def _call(call: dict[str, Any], owner: str | None) -> ToolCall:
    identity, arguments = _text(call.get("id")), call.get("args")
    return ToolCall(
        text_of(call.get("name")),
        None if isinstance(arguments, str) else arguments,
        arguments if isinstance(arguments, str) else None,
        identity,
        key=f"{owner}:{identity}" if owner and identity else None,
    )


def _result(call: dict[str, Any]) -> ToolResult | None:
    status, identity, name = call.get("status"), _text(call.get("id")), _text(call.get("name"))
    texts, failed = [], False
    result = call.get("result")
    for part in result if isinstance(result, list) else [result]:
        response = get(part, "functionResponse", "response")
        if isinstance(get(response, "error"), str):
            texts.append(response["error"])
            failed = True
        elif response is not None:
            texts.append(text_of(get(response, "output")) or text_of(response))
        elif part is not None:
            texts.append(text_of(part))
    if status is None and result is None:
        return None
    shown = call.get("resultDisplay")
    content = "\n".join(texts) or (shown if isinstance(shown, str) else "")
    return ToolResult(content, identity, name, status == "error" or (status is None and failed))


def _usage(tokens: Json) -> Usage | None:
    if not isinstance(tokens, dict) or not tokens:
        return None
    cached = count(tokens.get("cached"))
    output = count(tokens.get("output")) + count(tokens.get("thoughts"))
    return Usage(max(count(tokens.get("input")) - cached, 0), output, cached)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
