"""Reads Inspect's evaluation logs: `.eval` archives and JSON."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from typing import IO, Any, cast

from onspec.audit import Json
from onspec.message import Text, Thinking
from onspec.transcripts.document import Element, Frame, elements
from onspec.transcripts.session import Damage, Entry, Piece, Start, ToolCall, ToolResult, Tools, Turn
from onspec.transcripts.source import FREE_EXPANSION, MAX_DOCUMENT, MAX_RATIO, Source, decode, get
from onspec.transcripts.wire import ROLES, openai_usage, seconds, text_of, tool_list

NAME = "inspect"

_SAMPLE = re.compile(r"(?:.*/)?samples/[^/]+\.json\Z")


def sniff(head: bytes) -> bool:
    """Whether a file begins like an archive of samples, or like a log in JSON."""
    if head.startswith(b"PK\x03\x04"):
        return b"_journal/" in head or b"samples/" in head or b"header.json" in head
    return b'"eval"' in head[:8192] and b'"task"' in head and (b'"samples"' in head or b'"run_id"' in head)


def entries(source: Source) -> Iterator[Entry]:
    """The log's entries; each sample is a session of its own."""
    if source.head().startswith(b"PK\x03\x04"):
        yield from _archive(source)
        return
    model: str | None = None
    for piece in elements(source, "samples"):
        if isinstance(piece, Damage):
            yield piece
        elif isinstance(piece, Frame):
            model = _text(get(piece.value, "eval", "model"))
        elif isinstance(piece, Element):
            yield from _sample(piece.value, piece.index, model)


def _archive(source: Source) -> Iterator[Entry]:
    model: str | None = None
    try:
        with source.open() as stream, zipfile.ZipFile(_seekable(source, stream)) as archive:
            infos = archive.infolist()
            header, _ = _member(archive, "header.json") or (None, "")
            start, _ = _member(archive, "_journal/start.json") or (None, "")
            model = _text(get(header, "eval", "model")) or _text(get(start, "eval", "model"))
            for number, info in enumerate(info for info in infos if _SAMPLE.match(info.filename)):
                if info.file_size > max(FREE_EXPANSION, info.compress_size * MAX_RATIO):
                    yield Damage(number, "bomb")
                elif info.file_size > MAX_DOCUMENT:
                    yield Damage(number, "too_large")
                else:
                    value, reason = decode(archive.read(info))
                    if reason:
                        yield Damage(number, reason)
                    else:
                        yield from _sample(value, number, model)
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, NotImplementedError, RuntimeError):
        yield Damage(0, "unreadable")


def _seekable(source: Source, stream: IO[bytes]) -> IO[bytes]:
    """The file itself: an archive is read from its end. A URL's archive is read into memory within the limit."""
    if "://" not in source.path:
        return cast("IO[bytes]", open(source.path, "rb"))
    raise ValueError("an archive is read from a local file only")


def _member(archive: zipfile.ZipFile, name: str) -> tuple[Json, str] | None:
    try:
        info = archive.getinfo(name)
    except KeyError:
        return None
    return None if info.file_size > MAX_DOCUMENT else decode(archive.read(info))


def _sample(sample: Json, number: int, model: str | None) -> Iterator[Entry]:
    if not isinstance(sample, dict):
        yield Damage(number, "shape")
        return
    yield Start(NAME, None, f"{sample.get('id')}:{sample.get('epoch')}", model, True)
    events = sample.get("events")
    usages: dict[str, Json] = {}
    for event in events if isinstance(events, list) else ():
        if get(event, "event") == "model":
            tools = tool_list(event.get("tools"))
            if tools:
                yield Tools(tools)
            said = get(_first(get(event, "output", "choices")), "message", "id")
            if isinstance(said, str):
                usages[said] = get(event, "output", "usage")
    messages = sample.get("messages")
    for message in messages if isinstance(messages, list) else ():
        turn = _message(message, number, model, usages)
        yield turn if turn is not None else Damage(number, "shape")


def _message(message: Json, number: int, model: str | None, usages: dict[str, Json]) -> Turn | None:
    role = ROLES.get(str(get(message, "role")))
    if role is None:
        return None
    if role == "tool":
        error = message.get("error")
        content = text_of(get(error, "message")) if error else text_of(message.get("content"))
        kind = _text(get(error, "type"))
        result = ToolResult(
            content,
            _text(message.get("tool_call_id")),
            _text(message.get("function")),
            bool(error),
            f"type: {kind}" if kind else None,
        )
        return Turn("tool", (result,), line=number)
    parts: list[Piece] = []
    content = message.get("content")
    for part in content if isinstance(content, list) else [content]:
        if get(part, "type") == "reasoning":
            parts.append(Thinking(text_of(part.get("reasoning")), _text(part.get("signature"))))
        elif text_of(part):
            parts.append(Text(text_of(part)))
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            parts.append(_call(call))
    identity = _text(message.get("id"))
    usage = openai_usage(usages.get(identity or ""))
    named = _text(message.get("model")) or model
    return Turn(
        role,
        tuple(parts),
        identity,
        None,
        seconds(message.get("timestamp")),
        named if role == "assistant" else None,
        usage,
        identity,
        line=number,
    )


def _call(call: dict[str, Any]) -> ToolCall:
    name = call.get("function")
    if isinstance(name, dict):
        arguments, name = name.get("arguments"), name.get("name")
    else:
        arguments = call.get("arguments")
    fault = _text(call.get("parse_error"))
    text = arguments if isinstance(arguments, str) else None
    return ToolCall(
        _text(name) or "",
        None if text is not None else arguments,
        text,
        _text(call.get("id")),
        fault,
        stand_in=fault is not None and text is None,
    )


def _first(value: Json) -> Json:
    return value[0] if isinstance(value, list) and value else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
