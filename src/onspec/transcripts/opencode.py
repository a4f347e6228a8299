"""Reads OpenCode's sessions: an export, the stream of `run --format json`, single part files, the SQLite database."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import Any

from onspec.audit import Json
from onspec.message import Text, Thinking
from onspec.transcripts.document import Element, Frame, elements
from onspec.transcripts.session import Damage, Entry, Piece, Start, ToolCall, ToolResult, Turn, Unknown, Usage
from onspec.transcripts.source import Source, decode, get
from onspec.transcripts.wire import count, seconds, text_of

NAME = "opencode"

ABORTED = "Tool execution aborted"
"""Start of the error of a call that was stopped; where its arguments are empty, they had not been read yet."""

_EXPORT = re.compile(rb'\A\s*\{\s*"info"\s*:\s*\{')
_PART = re.compile(rb'"type"\s*:\s*"(?:tool_use|step_start|tool)"')
_TEXT = re.compile(r"JSON parsing failed: Text: (.*?)\.\s*\n?Error message:", re.DOTALL)


def sniff(head: bytes) -> bool:
    """Whether a file begins like an export, a run stream, a part file, or is a database."""
    if _EXPORT.match(head) and b'"model_stats"' not in head and b'"mini_version"' not in head:
        return True
    if head.startswith(b"SQLite format 3\x00"):
        return True
    return bool(_PART.search(head)) and b'"sessionID"' in head and (b'"messageID"' in head or b'"part"' in head)


def entries(source: Source) -> Iterator[Entry]:
    """The session's entries.

    A call that could not be parsed, or whose tool does not exist, is in the file as a call of the tool `invalid`; it
    is given back its real name, and its text where the file has it.
    """
    head = source.head()
    if head.startswith(b"SQLite format 3\x00"):
        yield from _database(source)
    elif _EXPORT.match(head):
        yield from _export(source)
    else:
        yield from _stream(source)


def _export(source: Source) -> Iterator[Entry]:
    for piece in elements(source, "messages"):
        if isinstance(piece, Frame):
            info = get(piece.value, "info")
            yield Start(NAME, _text(get(info, "version")), _text(get(info, "id")))
        elif isinstance(piece, Element):
            info, parts = get(piece.value, "info"), get(piece.value, "parts")
            if isinstance(info, dict) and isinstance(parts, list):
                yield from _message(info, parts, piece.index)
            else:
                yield Damage(piece.index, "shape")
        else:
            yield piece


def _stream(source: Source) -> Iterator[Entry]:
    yield Start(NAME)
    for line in source.lines():
        if isinstance(line, Damage):
            yield line
            continue
        value = line.value
        part = get(value, "part") if isinstance(get(value, "part"), dict) else value
        kind = get(part, "type")
        if not isinstance(part, dict):
            yield Damage(line.number, "shape")
        elif kind in ("tool", "text", "reasoning", "step-finish", "step_finish"):
            info = {"role": "assistant", "id": part.get("messageID"), "time": {"created": get(value, "timestamp")}}
            yield from _message(info, [part], line.number)
        else:
            yield Unknown(str(get(value, "type")), value, line.number)


def _database(source: Source) -> Iterator[Entry]:
    """Rows in the order of their ids, which sort by time."""
    if "://" in source.path:
        yield Damage(0, "unreadable")
        return
    link = _connect(source.path)
    try:
        link.text_factory = bytes
        sessions = link.execute("SELECT id, version FROM session ORDER BY id").fetchall()
        for session, version in sessions:
            yield Start(NAME, _decoded(version), _decoded(session), None, True)
            rows = link.execute("SELECT id, data FROM message WHERE session_id = ? ORDER BY id", (_decoded(session),))
            for number, (identity, data) in enumerate(rows):
                info, reason = decode(data)
                found = link.execute(
                    "SELECT id, data FROM part WHERE message_id = ? ORDER BY id", (_decoded(identity),)
                )
                parts = []
                for part_id, raw in found:
                    part, broken = decode(raw)
                    if isinstance(part, dict):
                        parts.append({"id": _decoded(part_id), "messageID": _decoded(identity), **part})
                    elif broken:
                        yield Damage(number, broken)
                if reason or not isinstance(info, dict):
                    yield Damage(number, reason or "shape")
                else:
                    yield from _message({"id": _decoded(identity), **info}, parts, number)
    except sqlite3.Error:
        yield Damage(0, "unreadable")
    finally:
        link.close()


def _connect(path: str) -> sqlite3.Connection:
    """Read-only; where even that needs to write beside the database (its log, in a folder of others), as it lies."""
    link = sqlite3.connect(f"file:{_quoted(path)}?mode=ro", uri=True)
    try:
        link.execute("SELECT 1 FROM sqlite_master")
    except sqlite3.OperationalError:
        link.close()
        link = sqlite3.connect(f"file:{_quoted(path)}?mode=ro&immutable=1", uri=True)
    except sqlite3.DatabaseError:
        pass  # no database: the first query says so
    return link


def _message(info: dict[str, Any], parts: list[Json], number: int) -> Iterator[Entry]:
    role = info.get("role")
    identity, moment = _text(info.get("id")), seconds(get(info, "time", "created"))
    if role == "user":
        pieces: list[Piece] = [Text(part["text"]) for part in parts if isinstance(get(part, "text"), str)]
        yield Turn("user", tuple(pieces), identity, None, moment, line=number)
        return
    model = _text(info.get("modelID")) or _text(get(info, "model", "modelID"))
    usage = _usage(info.get("tokens"))
    said: list[Piece] = []
    answered: list[Piece] = []
    for part in parts:
        kind = get(part, "type")
        if kind == "tool":
            call, result = _tool(part)
            said.append(call)
            if result is not None:
                answered.append(result)
        elif kind == "reasoning":
            said.append(Thinking(text_of(part.get("text")), _text(get(part, "metadata", "anthropic", "signature"))))
        elif kind == "text":
            said.append(Text(text_of(part.get("text"))))
        elif kind in ("step-finish", "step_finish") and usage is None:
            usage = _usage(part.get("tokens"))
    yield Turn(
        "assistant",
        tuple(said),
        identity,
        None,
        moment,
        model,
        usage,
        identity,
        _text(info.get("finish")),
        False,
        number,
    )
    if answered:
        yield Turn("tool", tuple(answered), None, None, moment, line=number)


def _tool(part: dict[str, Any]) -> tuple[ToolCall, ToolResult | None]:
    state = part.get("state")
    name, given, status = text_of(part.get("tool")), get(state, "input"), get(state, "status")
    # Some providers number their calls from zero in each reply; the part's id is the one that is unique.
    identity = _text(part.get("id")) or _text(part.get("callID"))
    key = f"{part.get('messageID')}:{identity}" if identity else None
    if name == "invalid" and isinstance(get(given, "tool"), str):
        error = text_of(get(given, "error"))
        found = _TEXT.search(error)
        call = ToolCall(
            given["tool"], given, found[1] if found else None, identity, error or None, stand_in=True, key=key
        )
        return call, ToolResult(text_of(get(state, "output")) or error, identity, name, True, error or None)
    raw = get(state, "raw")
    text = raw if isinstance(raw, str) and raw and given in (None, {}) else None
    partial = given in (None, {}) and (status == "pending" or text_of(get(state, "error")).startswith(ABORTED))
    call = ToolCall(name, given, text, identity, key=key, changed=partial)
    if status == "error":
        return call, ToolResult(text_of(get(state, "error")), identity, name, True)
    if status == "completed":
        return call, ToolResult(text_of(get(state, "output")), identity, name, False)
    return call, None


def _usage(tokens: Json) -> Usage | None:
    if not isinstance(tokens, dict) or not tokens:
        return None
    output = count(tokens.get("output")) + count(tokens.get("reasoning"))
    return Usage(
        count(tokens.get("input")), output, count(get(tokens, "cache", "read")), count(get(tokens, "cache", "write"))
    )


def _quoted(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _decoded(value: Json) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else _text(value)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
