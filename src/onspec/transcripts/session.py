"""One model of a recorded session: turns as a tree, calls, results, usage, and what could not be read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from onspec.audit import Json
from onspec.message import Call, Message, Part, Result, Role, Text, Thinking


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a provider reported for one model reply.

    Attributes:
        input: Input tokens that were neither read from nor written to a cache.
        output: Output tokens, reasoning included.
        cache_read: Input tokens read from a cache.
        cache_write: Input tokens written to a cache.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def context(self) -> int:
        """All input tokens, cached or not."""
        return self.input + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as a file holds it.

    Attributes:
        name: The tool's name, as the model wrote it where the file still has that.
        arguments: The decoded arguments, or None where the file has only text, or has lost them.
        text: The argument text exactly as the model wrote it, or None where the file keeps only a decoded value.
        id: The call's id, which is not always unique.
        fault: The harness's own note that the text could not be read, or None.
        custom: Whether the input is free text by design (a tool with a grammar instead of a schema).
        stand_in: Whether the file holds something else in the place of what the model wrote, because that could not
            be read; such arguments cannot be judged against a schema.
        key: Identifies this call across copies of its session, or None where the format has nothing for it.
        changed: Whether the arguments are not what the model wrote: replaced by a compaction, or stopped half-way.
    """

    name: str
    arguments: Json = None
    text: str | None = None
    id: str | None = None
    fault: str | None = None
    custom: bool = False
    stand_in: bool = False
    key: str | None = None
    changed: bool = False

    def raw(self) -> str:
        """The argument text: the model's own where the file has it, else the decoded value as JSON.

        Lone surrogates are kept, as escapes.
        """
        return self.text if self.text is not None else "" if self.arguments is None else dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the harness answered to one call.

    Attributes:
        content: The answer as text.
        call_id: Id of the call it answers, or None.
        name: Name of the tool, where the file has it.
        is_error: Whether the file flags it as an error. False also where the format has no such flag.
        detail: A second copy of an error, in the harness's own words, or None.
    """

    content: str
    call_id: str | None = None
    name: str | None = None
    is_error: bool = False
    detail: str | None = None


Piece = Text | Thinking | ToolCall | ToolResult


@dataclass(frozen=True, slots=True)
class Turn:
    """One entry of a conversation.

    Attributes:
        role: Who spoke.
        parts: Text, thinking, calls and results in their order.
        id: The entry's own id, or None in linear formats.
        parent: Id of the entry it follows, or None for a root and in linear formats.
        time: Unix seconds, or None.
        model: The model that wrote it.
        usage: Tokens of the reply it belongs to.
        message_id: Id of the model reply; several turns of one file may be pieces of one reply and share it.
        stop_reason: Why the model stopped, in the provider's word.
        side: Whether it belongs to a sub-agent's conversation.
        line: Line (from 1) or index in the file.
    """

    role: Role
    parts: tuple[Piece, ...]
    id: str | None = None
    parent: str | None = None
    time: float | None = None
    model: str | None = None
    usage: Usage | None = None
    message_id: str | None = None
    stop_reason: str | None = None
    side: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class Start:
    """What a file says about itself; later ones add to, and override, earlier ones.

    Attributes:
        harness: The agent that wrote the file.
        version: Its version, or None.
        session: The session's id, or None.
        model: The model in use, or None.
        fresh: Whether another conversation begins here, so that nothing before it is pending any more.
    """

    harness: str
    version: str | None = None
    session: str | None = None
    model: str | None = None
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Tools:
    """Tool definitions recorded in the file, as decoded JSON in any provider's form.

    Attributes:
        definitions: The definitions; with the same name twice, any of them may be meant.
        replace: Whether they stand for all tools from here on, instead of adding to those before.
        removed: Names of tools that are gone from here on.
    """

    definitions: tuple[Json, ...]
    replace: bool = True
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """A record of a kind that no reader knows, kept as it is."""

    kind: str
    data: Json
    line: int


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a file that could not be read.

    Attributes:
        line: Line (from 1) or index.
        reason: `not_json`, `not_text`, `cut`, `too_long`, `too_large`, `too_dense`, `too_deep`, `bomb`, `shape` or
            `unreadable`.
    """

    line: int
    reason: str


Entry = Turn | Start | Tools | Unknown | Damage


@dataclass(slots=True)
class Session:
    """A whole session in memory: for packing, healing and experiments. `scan` streams entries instead."""

    format: str
    harness: str
    version: str | None = None
    id: str | None = None
    turns: list[Turn] = field(default_factory=list)
    tools: list[Json] = field(default_factory=list)
    unknown: list[Unknown] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)

    @classmethod
    def gather(cls, format_name: str, entries: Iterable[Entry]) -> Session:
        """One session from all of a reader's entries, with the tools of its end."""
        session = cls(format_name, format_name)
        for entry in entries:
            session.take(entry)
        return session

    @classmethod
    def split(cls, format_name: str, entries: Iterable[Entry]) -> list[Session]:
        """The sessions in a reader's entries, one for each conversation that has turns; at least one."""
        found = [cls(format_name, format_name)]
        for entry in entries:
            if isinstance(entry, Start) and entry.fresh and found[-1].turns:
                found.append(cls(format_name, found[-1].harness))
            found[-1].take(entry)
        return found if found[-1].turns or len(found) == 1 else found[:-1]

    def take(self, entry: Entry) -> None:
        """Adds one entry."""
        if isinstance(entry, Turn):
            self.turns.append(entry)
        elif isinstance(entry, Start):
            self.harness = entry.harness
            self.version = entry.version or self.version
            self.id = entry.session or self.id
        elif isinstance(entry, Tools):
            kept = [] if entry.replace else [t for t in self.tools if tool_name(t) not in entry.removed]
            self.tools = [*kept, *entry.definitions]
        elif isinstance(entry, Damage):
            self.damage.append(entry)
        else:
            self.unknown.append(entry)

    def path(self, leaf: str | None = None) -> list[Turn]:
        """The turns from the root to `leaf`, which is the last one of the main conversation where it is not given.

        In a linear format these are all turns before the leaf. A cycle in the tree ends the path where it closes, and a
        parent that is not in the file ends it there. Calls and results that belong to one reply of the path but stand
        on a fork beside it (parallel calls) are part of it.
        """
        main = [turn for turn in self.turns if not turn.side] or self.turns
        if not any(turn.parent for turn in main):
            if leaf is None:
                return main
            end = next((i for i, turn in enumerate(main) if turn.id == leaf), len(main) - 1)
            return main[: end + 1]
        by_id = {turn.id: turn for turn in self.turns if turn.id}
        at = by_id.get(leaf) if leaf else next((turn for turn in reversed(main) if turn.id), None)
        wanted: set[str] = set()
        while at is not None and at.id and at.id not in wanted:
            wanted.add(at.id)
            at = by_id.get(at.parent) if at.parent else None
        replies = {turn.message_id for turn in self.turns if turn.id in wanted and turn.message_id}
        calls: set[str] = set()
        for turn in self.turns:
            if turn.id in wanted or (turn.message_id and turn.message_id in replies):
                calls.update(part.id for part in turn.parts if isinstance(part, ToolCall) and part.id)
        return [
            turn
            for turn in self.turns
            if turn.id in wanted
            or (turn.message_id is not None and turn.message_id in replies)
            or any(isinstance(part, ToolResult) and part.call_id in calls for part in turn.parts)
        ]

    def messages(self, leaf: str | None = None) -> list[Message]:
        """The conversation up to `leaf` as messages; the pieces of one model reply become one message."""
        return list(messages(self.path(leaf)))


def messages(turns: Iterable[Turn]) -> Iterator[Message]:
    """Turns as messages: pieces of one reply joined, calls with their argument text."""
    role: Role | None = None
    reply: str | None = None
    parts: list[Part] = []
    for turn in turns:
        same = turn.role == role and (turn.role == "tool" or (reply is not None and turn.message_id == reply))
        if not same and role is not None and parts:
            yield Message(role, tuple(parts))
            parts = []
        role, reply = turn.role, turn.message_id
        parts.extend(plain(part) for part in turn.parts)
    if role is not None and parts:
        yield Message(role, tuple(parts))


def plain(piece: Piece) -> Part:
    """A piece in the words of `onspec.message`."""
    if isinstance(piece, ToolCall):
        return Call(piece.name, piece.raw(), piece.id)
    if isinstance(piece, ToolResult):
        return Result(piece.content, piece.call_id, piece.name, piece.is_error)
    return piece


def dumps(value: Json) -> str:
    """Compact JSON. Lone surrogates, huge integers and any depth, which orjson refuses, are written too."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return json.dumps(value, separators=(",", ":"))
    except RecursionError:
        return "".join(_written(value))


def _written(value: Json) -> Iterator[str]:
    """The pieces of a value's JSON, without recursion."""
    stack: list[tuple[bool, Json]] = [(False, value)]
    while stack:
        is_text, node = stack.pop()
        if is_text:
            yield node
        elif isinstance(node, dict) and node:
            pieces: list[tuple[bool, Json]] = []
            for key, inner in node.items():
                pieces += [(True, "," if pieces else "{"), (True, f"{json.dumps(key)}:"), (False, inner)]
            stack.extend(reversed([*pieces, (True, "}")]))
        elif isinstance(node, list) and node:
            items: list[tuple[bool, Json]] = []
            for inner in node:
                items += [(True, "," if items else "["), (False, inner)]
            stack.extend(reversed([*items, (True, "]")]))
        else:
            yield json.dumps(node)


def tool_name(definition: Json) -> str | None:
    """The name in a tool definition of any provider's form, or None."""
    if not isinstance(definition, Mapping):
        return None
    inner: Any = definition.get("function")
    name = inner.get("name") if isinstance(inner, Mapping) else definition.get("name")
    return name if isinstance(name, str) else None
