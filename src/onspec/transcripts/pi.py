"""Reads Pi's session files: JSON Lines, a header and a tree of entries (versions 1 to 3, and forks of the format)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onspec.audit import Json
from onspec.message import Text, Thinking
from onspec.transcripts.session import Damage, Entry, Piece, Start, ToolCall, ToolResult, Tools, Turn, Unknown, Usage
from onspec.transcripts.source import Source
from onspec.transcripts.wire import ROLES, count, seconds, text_of, tool_list

NAME = "pi"

EVICTED = "[Compacted history content evicted"
SPILLED = "__gjcColdSpillArguments"
_RECEIVED = "Received arguments:\n"


def sniff(head: bytes) -> bool:
    """Whether a file begins like one of Pi's."""
    first = head.split(b"\n", 1)[0]
    compact = first.replace(b" ", b"")
    if b'"type":"session"' in compact and (b'"cwd"' in compact or b'"version"' in compact or b'"provider"' in compact):
        return True
    return b'"toolCall"' in head and b'"type":"message"' in head.replace(b'": "', b'":"') and b'"arguments"' in head


def entries(source: Source) -> Iterator[Entry]:
    """The session's entries. Arguments are what the model sent, decoded; text that could not be read is kept."""
    model: str | None = None
    for line in source.lines():
        if isinstance(line, Damage):
            yield line
            continue
        value = line.value
        if not isinstance(value, dict):
            yield Damage(line.number, "shape")
            continue
        kind = value.get("type")
        if kind == "message" and isinstance(value.get("message"), dict):
            yield from _message(value, value["message"], model, line.number)
        elif kind == "session":
            version, identity, named = value.get("version"), value.get("id"), value.get("modelId")
            model = named if isinstance(named, str) else model
            yield Start(
                NAME,
                f"v{version}" if isinstance(version, int) else "v1",
                identity if isinstance(identity, str) else None,
                model,
            )
        elif kind == "model_change":
            named = value.get("modelId")
            model = named if isinstance(named, str) else model
        else:
            yield Unknown(str(kind), value, line.number)


def _message(entry: dict[str, Any], message: dict[str, Any], model: str | None, number: int) -> Iterator[Entry]:
    role = message.get("role")
    moment = seconds(entry.get("timestamp")) or seconds(message.get("timestamp"))
    place = (_text(entry.get("id")), _text(entry.get("parentId")), moment)
    if role == "assistant":
        yield _assistant(message, place, model, number)
    elif role == "toolResult":
        result = ToolResult(
            text_of(message.get("content")),
            _text(message.get("toolCallId")),
            _text(message.get("toolName")),
            message.get("isError") is True,
        )
        yield Turn("tool", (result,), *place, line=number)
    elif role == "system":
        added, gone = message.get("toolsAdded"), message.get("toolsRemoved")
        removed = tuple(_removed(name) for name in gone) if isinstance(gone, list) else ()
        if added or removed:
            yield Tools(tool_list(added), replace=False, removed=removed)
        text = text_of(message.get("content"))
        if text:
            yield Turn("system", (Text(text),), *place, line=number)
    elif isinstance(role, str) and role in ROLES:
        yield Turn(ROLES[role], _texts(message.get("content")), *place, line=number)
    else:
        yield Unknown(f"message:{role}", entry, number)


def _assistant(
    message: dict[str, Any], place: tuple[str | None, str | None, float | None], model: str | None, number: int
) -> Turn:
    parts: list[Piece] = []
    content = message.get("content")
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            parts.append(Text(part))
        elif isinstance(part, dict):
            kind = part.get("type")
            if kind == "toolCall":
                parts.append(_call(part, place))
            elif kind == "thinking":
                parts.append(Thinking(text_of(part.get("thinking")), _text(part.get("thinkingSignature"))))
            elif isinstance(part.get("text"), str):
                parts.append(Text(part["text"]))
    usage = message.get("usage")
    tokens = None
    if isinstance(usage, dict) and usage:
        tokens = Usage(
            count(usage.get("input")),
            count(usage.get("output")),
            count(usage.get("cacheRead")),
            count(usage.get("cacheWrite")),
        )
    named = message.get("model")
    return Turn(
        "assistant",
        tuple(parts),
        *place,
        named if isinstance(named, str) else model,
        tokens,
        _text(message.get("responseId")) or place[0] or f"line {number}",
        _text(message.get("stopReason")),
        False,
        number,
    )


def _call(part: dict[str, Any], place: tuple[str | None, str | None, float | None]) -> ToolCall:
    arguments = part.get("arguments")
    text = arguments if isinstance(arguments, str) else None
    fault = _text(part.get("argumentsError"))
    if fault is not None:
        _, found, received = fault.partition(_RECEIVED)
        text = received if found else text
    identity = _text(part.get("id"))
    name = part.get("name")
    return ToolCall(
        name if isinstance(name, str) else "",
        None if isinstance(arguments, str) else arguments,
        text,
        identity,
        fault,
        stand_in=fault is not None,
        key=f"{place[0]}:{place[2]}:{identity}" if place[0] and identity else None,
        changed=_was_evicted(arguments),
    )


def _was_evicted(arguments: Json) -> bool:
    if not isinstance(arguments, dict):
        return False
    return SPILLED in arguments or any(
        isinstance(value, str) and value.startswith(EVICTED) for value in arguments.values()
    )


def _texts(content: Json) -> tuple[Piece, ...]:
    if isinstance(content, list):
        return tuple(
            Text(part["text"]) for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    text = text_of(content)
    return (Text(text),) if text else ()


def _removed(name: Json) -> str:
    return name if isinstance(name, str) else str(name.get("name")) if isinstance(name, dict) else ""


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
