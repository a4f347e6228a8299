"""Where a measured call comes from: a request, a list of messages, or a session file of an agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from onspec.cli.generate import load_tools
from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset
from onspec.errors import InputError
from onspec.local.arms import Cut, cut_at
from onspec.local.prompt import DIALECT, messages_of
from onspec.message import Call, Message
from onspec.transcripts.known import agent
from onspec.transcripts.reader import load_all
from onspec.transcripts.session import Session, ToolCall, Turn, messages

_LISTED = 20


def read_history(path: Path, tools: Path | None, number: int, dialect: str = DIALECT) -> tuple[Cut, list[Tool]]:
    """The history before one call of a file, with the call, and the tools that the model had.

    Tools are those of the file `tools`; else those that the history itself holds; else, for a session of a known agent,
    those of its tools that the history calls, as that version of the agent has them.

    Args:
        path: A request or a list of messages as JSON, or any session file that `onspec scan` reads.
        tools: A file of tool definitions, or None.
        number: Which call, counted from 0 over the whole file; negative numbers count from the last.
        dialect: How the call is written.

    Raises:
        InputError: The file is neither, holds no such call, or names no tools and is of no known agent.
    """
    declared = load_tools(tools) if tools is not None else []
    found = _document(path)
    if found is None:
        return _of_session(load_all(str(path)), number, declared, dialect)
    if isinstance(found, dict):
        if not declared and found.get("tools"):
            declared = list(Toolset.from_json(found["tools"]).values())
        found = found.get("messages")
    cut = cut_at(messages_of(found), number, dialect)
    if not declared:
        raise InputError("the history names no tools; give them with --tools")
    return cut, declared


def last_messages(cut: Cut, most: int | None) -> Cut:
    """The same with at most so many messages before the one that calls, and the system's."""
    if most is None:
        return cut
    *before, last = cut.messages
    system = [message for message in before if message.role in ("system", "developer")]
    spoken = [message for message in before if message.role not in ("system", "developer")]
    kept = spoken[len(spoken) - most :] if most < len(spoken) else spoken
    while kept and kept[0].role == "tool":  # An answer without its call would be out of place.
        kept = kept[1:]
    return replace(cut, messages=(*system, *kept, last))


def _document(path: Path) -> object:
    """The JSON of a request or a list of messages; None where the file is something else."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        if path.suffix.lower() == ".json" and not _is_session(path):
            raise InputError(f"{path} is not JSON") from None
        return None
    listed = found.get("messages") if isinstance(found, dict) else found
    plain = not isinstance(listed, list) or all(_is_message(item) for item in listed)
    return found if plain and (isinstance(found, list) or (isinstance(found, dict) and "messages" in found)) else None


def _is_message(item: object) -> bool:
    """Whether this is a message as OpenAI or Anthropic have it; what is no object at all is told so later."""
    roles = ("system", "developer", "user", "assistant", "tool")
    return not isinstance(item, dict) or item.get("role") in roles


def _is_session(path: Path) -> bool:
    try:
        return bool(load_all(str(path)))
    except InputError:
        return False


def _of_session(sessions: Sequence[Session], number: int, declared: list[Tool], dialect: str) -> tuple[Cut, list[Tool]]:
    places = [
        (session, turn, at)
        for session in sessions
        for turn in session.turns
        for at, part in enumerate(turn.parts)
        if isinstance(part, ToolCall)
    ]
    if not places:
        raise InputError("the session holds no call; there is nothing to measure along")
    try:
        session, turn, at = places[number]
    except IndexError:
        raise InputError(f"the session holds {len(places)} calls; there is no number {number}") from None
    call = turn.parts[at]
    assert isinstance(call, ToolCall)
    if call.custom or call.stand_in or (call.text is None and call.arguments is None):
        raise InputError(f"call {number} ({call.name}) has no JSON arguments in the file; measure another one")
    path = _before(session, turn)
    history = list(messages(path))
    ordinal = sum(isinstance(part, ToolCall) for one in path[:-1] for part in one.parts)
    ordinal += sum(isinstance(part, ToolCall) for part in turn.parts[:at])
    cut = cut_at(history, ordinal, dialect)
    return cut, declared or _tools(session, history, call.name)


def _before(session: Session, turn: Turn) -> list[Turn]:
    """The turns that lead to `turn`, with it."""
    found = session.path(turn.id) if turn.id and any(one.parent for one in session.turns) else list(session.turns)
    place = next((index for index, one in enumerate(found) if one is turn), None)
    return found[: place + 1] if place is not None else [turn]


def _tools(session: Session, history: Sequence[Message], name: str) -> list[Tool]:
    if session.tools:
        recorded = list(Toolset.from_json(list(session.tools)).values())
        if any(tool.name == name for tool in recorded):
            return recorded
    known = agent(session.harness)
    called = dict.fromkeys(part.name for message in history for part in message.parts if isinstance(part, Call))
    if known is not None:
        found = [tool for one in called if (tool := known.tool(one, session.version)) is not None]
        if any(tool.name == name for tool in found):
            return found
        names = ", ".join(known.names()[:_LISTED])
        raise InputError(f"{session.harness} has no tool {name} that is known here ({names}); give it with --tools")
    raise InputError(f"the tools of {session.harness} are not known; give them with --tools")
