"""Rewrites a session that providers refuse to take again, changing only the records that they stumble on."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from onspec.audit import Json
from onspec.errors import InputError, LimitError
from onspec.transcripts import claude_code, cline, codex, pi, plain
from onspec.transcripts.layout import (
    BLOCKS,
    CHAT,
    CLAUDE,
    CODEX,
    FAMILIES,
    ITEMS,
    PI,
    Change,
    Family,
    Part,
    Record,
    State,
    holder_of,
    remove,
)
from onspec.transcripts.pairing import pair
from onspec.transcripts.reader import detect
from onspec.transcripts.replay import ID, NAME, has_surrogate
from onspec.transcripts.session import dumps
from onspec.transcripts.source import Source, decode, get

RULES: dict[str, str] = {
    "unreadable_line": "A line that is no JSON is left out.",
    "unreadable_arguments": "Arguments that are no JSON object become {}; what was there is kept aside.",
    "lone_surrogate": "Half of a surrogate pair becomes U+FFFD.",
    "bad_id": "An id with characters or a length that some provider refuses is replaced, in its answer too.",
    "duplicate_id": "A call whose id an earlier call has gets one of its own, and so does its answer.",
    "bad_name": "A tool name that no provider takes is replaced by one that says so.",
    "orphan_call": "A call without an answer gets one that says it was not recorded.",
    "orphan_result": "An answer without a call, or a second one, is left out.",
    "misplaced_result": "An answer that stands after other messages is moved behind its call.",
    "unsigned_thinking": "Thinking without a signature is left out; signed thinking is never changed.",
    "empty_message": "A message with nothing left in it, or an empty text, is left out.",
    "dangling_reasoning": "A reasoning item that nothing follows is left out.",
}
"""What is mended, and how; nothing else is changed."""

BAD_NAME = "unreadable_tool_name"
MAX_BYTES = 256 << 20
"""Largest session, in bytes, that is rewritten; it is held in memory while it is."""

FORMATS = (claude_code.NAME, pi.NAME, codex.NAME, cline.NAME, plain.NAME)
"""Formats that can be rewritten."""


@dataclass(slots=True)
class Healed:
    """A rewritten session: its bytes, and what was changed."""

    data: bytes
    changes: list[Change]


def heal(path: str, *, strip_thinking: bool = False) -> Healed:
    """Rewrites one session.

    Args:
        path: A session of one of `FORMATS`.
        strip_thinking: Leave out all thinking, signed or not, as after a change of model.

    Returns:
        The new file's bytes, equal to the old ones where nothing was wrong, and the changes. Records without a fault
        keep their bytes. Healing what was healed changes nothing.

    Raises:
        InputError: The format is none of `FORMATS`, or the file is compressed or damaged as a whole.
        LimitError: The file has more than `MAX_BYTES` bytes.
        OSError: It cannot be read.
    """
    source = Source(path)
    found = detect(source)
    if found is None or found.name not in FORMATS:
        name = "no known session format" if found is None else found.name
        raise InputError(f"{path} is in {name}; sessions of {', '.join(FORMATS)} can be healed")
    with source.open() as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise LimitError(f"{path} has more than {MAX_BYTES >> 20} MiB, the most that is rewritten")
    whole, reason = decode(data)
    if not reason and (isinstance(whole, list) or _list_key(whole) is not None):
        return _heal_document(data, whole, found.name, strip_thinking)
    return _heal_lines(data, found.name, strip_thinking)


def _list_key(whole: Json) -> str | None:
    return next((key for key in plain.LISTS if isinstance(get(whole, key), list)), None)


def _heal_document(data: bytes, whole: Any, name: str, strip: bool) -> Healed:
    key = None if isinstance(whole, list) else _list_key(whole)
    array = whole if key is None else whole[key]
    state = State([Record(index, b"", value) for index, value in enumerate(array)])
    _mend(state, name, strip)
    if not state.changes:
        return Healed(data, [])
    kept = [record.value for record in state.records if record.value is not None]
    healed = kept if key is None else {**whole, key: kept}
    return Healed(dumps(healed).encode() + b"\n", state.changes)


def _heal_lines(data: bytes, name: str, strip: bool) -> Healed:
    state = State([])
    for number, raw in enumerate(data.split(b"\n"), 1):
        if not raw.strip():
            continue
        value, reason = decode(raw)
        if reason or not isinstance(value, dict):
            record = Record(number, raw, None)
            state.note("unreadable_line", record, raw.decode("utf-8", "replace"))
        else:
            state.records.append(Record(number, raw, value))
    _mend(state, name, strip)
    if not state.changes:
        return Healed(data, [])
    out = [
        dumps(record.value).encode() if record.touched else record.raw
        for record in state.records
        if record.value is not None
    ]
    return Healed(b"\n".join(out) + b"\n", state.changes)


def _mend(state: State, name: str, strip: bool) -> None:
    family = FAMILIES[name] if name != plain.NAME else _plain_family(state)
    for record in state.records:
        if has_surrogate(record.value):
            state.note("lone_surrogate", record, record.value)
            record.value = _scrubbed(record.value)
    _mend_thinking(state, family, strip)
    _mend_calls(state, family)
    pair(state, family)
    _mend_empty(state, family)
    _relink(state)


def _scrubbed(value: Json) -> Json:
    if isinstance(value, str):
        # Two halves that stand side by side are one character.
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(inner) for key, inner in value.items()}
    return [_scrubbed(inner) for inner in value] if isinstance(value, list) else value


def _mend_thinking(state: State, family: Family, strip: bool) -> None:
    for part in list(family.parts(state)):
        if part.kind == "thinking" and (strip or not family.is_signed(part.item)):
            state.note("unsigned_thinking", part.record, part.item)
            remove(part)


def _mend_calls(state: State, family: Family) -> None:
    """Arguments, names and ids; an id that is changed is changed in its answer too, in the order of both."""
    seen: set[str] = set()
    renamed: dict[str, list[str]] = {}
    for part in list(family.parts(state)):
        if part.kind == "call":
            if not family.is_readable(part.item) or _is_listed_invalid(part):
                state.note("unreadable_arguments", part.record, part.item)
                family.empty(part.item)
                _unlist(part)
            holder = holder_of(part.item)
            name = holder.get("name")
            if not isinstance(name, str) or not NAME.match(name):
                state.note("bad_name", part.record, name)
                holder["name"] = _good_name(name)
            old = part.item.get(family.call_id)
            new = old
            if not isinstance(old, str) or not ID.match(old):
                new = _good_id(str(old), seen)
                state.note("bad_id", part.record, old)
            elif old in seen:
                new = _good_id(old, seen)
                state.note("duplicate_id", part.record, old)
            assert isinstance(new, str)
            seen.add(new)
            renamed.setdefault(str(old), []).append(new)
            part.item[family.call_id] = new
        elif part.kind == "result":
            old = str(part.item.get(family.result_id))
            waiting = renamed.get(old)
            if waiting:
                new = waiting.pop(0)
                if new != old:
                    part.record.touched = True
                    part.item[family.result_id] = new


def _is_listed_invalid(part: Part) -> bool:
    """Whether Cline says of a call, in the block or in the message, that it could not be read."""
    if get(part.item, "metadata", "inputParseError") is not None:
        return True
    listed = get(part.record.value, "metadata", "invalidToolCalls")
    return isinstance(listed, list) and any(get(one, "toolCallId") == part.item.get("id") for one in listed)


def _unlist(part: Part) -> None:
    inner = part.item.get("metadata")
    if isinstance(inner, dict):
        part.item["metadata"] = {k: v for k, v in inner.items() if k not in ("inputParseError", "rawInputText")}
    metadata = get(part.record.value, "metadata")
    listed = get(metadata, "invalidToolCalls")
    if isinstance(listed, list):
        metadata["invalidToolCalls"] = [one for one in listed if get(one, "toolCallId") != part.item.get("id")]


def _mend_empty(state: State, family: Family) -> None:
    for record in state.records:
        if record.value is None:
            continue
        content = family.content(record.value)
        if isinstance(content, list):
            for item in list(content):
                if get(item, "type") in ("text", "input_text", "output_text") and get(item, "text") == "":
                    state.note("empty_message", record, item)
                    content.remove(item)
            # In a tree, the harness leaves out by itself what was empty from the start.
            ours = record.touched or not (family is CLAUDE or family is PI)
            if not content and ours and not family.keeps_empty(record.value):
                state.note("empty_message", record, record.value)
                record.value = None
    if family is ITEMS or family is CODEX:
        _mend_reasoning(state, family)


def _mend_reasoning(state: State, family: Family) -> None:
    following = False
    for record in reversed(state.records):
        item = family.item(record.value) if record.value is not None else None
        kind = get(item, "type")
        if kind == "reasoning" and not following:
            state.note("dangling_reasoning", record, item)
            record.value = None
        elif kind in ("function_call", "custom_tool_call", "local_shell_call") or get(item, "role") == "assistant":
            following = True
        elif kind in ("function_call_output", "custom_tool_call_output") or get(item, "role") is not None:
            following = False


def _relink(state: State) -> None:
    """In a tree, what followed a record that is gone follows what that one followed."""
    for identity, parent in (("uuid", "parentUuid"), ("id", "parentId")):
        gone = {}
        alive = set()
        for record in state.records:
            if isinstance(get(record.value, identity), str):
                alive.add(record.value[identity])
        for record in state.records:
            if record.value is None and record.raw:
                old, reason = decode(record.raw)
                if not reason and isinstance(get(old, identity), str) and parent in old:
                    gone[old[identity]] = old[parent]
        for record in state.records:
            link = get(record.value, parent)
            steps = 0
            while isinstance(link, str) and link in gone and link not in alive and steps <= len(gone):
                link, steps = gone[link], steps + 1
            if isinstance(record.value, dict) and parent in record.value and record.value[parent] != link:
                record.value[parent] = link
                record.touched = True


def _good_id(old: str, seen: set[str]) -> str:
    """An id that every provider takes, made from the old one, and the same in every run."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", old).strip("_")[:24] or "call"
    number = 0
    while True:
        mark = hashlib.sha256(f"{old}\0{number}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
        made = f"{stem}_{mark}"
        if made not in seen:
            return made
        number += 1


def _good_name(name: Json) -> str:
    start = re.match(r"[A-Za-z0-9_-]+", name) if isinstance(name, str) else None
    return f"{BAD_NAME}_{start[0][:30]}" if start else BAD_NAME


def _plain_family(state: State) -> Family:
    """The family of a plain conversation, by what is in it.

    Raises:
        InputError: Its records are whole conversations, or no messages at all.
    """
    values = [record.value for record in state.records if isinstance(record.value, dict)]
    if any(_list_key(value) is not None and "role" not in value for value in values):
        raise InputError("each record is a whole conversation; heal one conversation at a time")
    if any(get(value, "type") in ("function_call", "custom_tool_call", "function_call_output") for value in values):
        return ITEMS
    if any(get(value, "role") == "tool" or get(value, "tool_calls") for value in values):
        return CHAT
    if not any(get(value, "role") for value in values):
        raise InputError("there are no messages in it that can be healed")
    return BLOCKS
