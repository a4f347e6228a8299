"""Rewrites a session that providers refuse to take again, changing only the records that they stumble on."""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from onspec.audit import Json
from onspec.errors import InputError, LimitError
from onspec.transcripts import claude_code, cline, codex, pi, plain
from onspec.transcripts.reader import detect
from onspec.transcripts.replay import ID, NAME, has_surrogate
from onspec.transcripts.session import dumps
from onspec.transcripts.source import Source, decode, get
from onspec.transcripts.wire import ROLES, STAND_INS

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

NOT_RECORDED = "The answer to this call was not recorded."
BAD_NAME = "unreadable_tool_name"
MAX_BYTES = 256 << 20
"""Largest session, in bytes, that is rewritten; it is held in memory while it is."""

FORMATS = (claude_code.NAME, pi.NAME, codex.NAME, cline.NAME, plain.NAME)
"""Formats that can be rewritten."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that was mended.

    Attributes:
        rule: A row of `RULES`.
        line: Line or index in the original.
        before: What was there, for the file kept aside; None where something was added.
    """

    rule: str
    line: int
    before: Json


@dataclass(slots=True)
class Healed:
    """A rewritten session: its bytes, and what was changed."""

    data: bytes
    changes: list[Change]


@dataclass(slots=True)
class _Record:
    """One line or element; `raw` is what it was, `value` what it is, None where it is to go."""

    line: int
    raw: bytes
    value: Any
    touched: bool = False


@dataclass(slots=True)
class _Part:
    """One call, answer or thinking block of a record; `holder` is the list it stands in, None for a whole record."""

    kind: str
    record: _Record
    item: dict[str, Any]
    holder: list[Any] | None = None


@dataclass(slots=True)
class _State:
    records: list[_Record]
    changes: list[Change] = field(default_factory=list)

    def note(self, rule: str, record: _Record, before: Json) -> None:
        record.touched = True
        self.changes.append(Change(rule, record.line, copy.deepcopy(before)))


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
    state = _State([_Record(index, b"", value) for index, value in enumerate(array)])
    _mend(state, name, strip)
    if not state.changes:
        return Healed(data, [])
    kept = [record.value for record in state.records if record.value is not None]
    healed = kept if key is None else {**whole, key: kept}
    return Healed(dumps(healed).encode() + b"\n", state.changes)


def _heal_lines(data: bytes, name: str, strip: bool) -> Healed:
    state = _State([])
    for number, raw in enumerate(data.split(b"\n"), 1):
        if not raw.strip():
            continue
        value, reason = decode(raw)
        if reason or not isinstance(value, dict):
            record = _Record(number, raw, None)
            state.note("unreadable_line", record, raw.decode("utf-8", "replace"))
        else:
            state.records.append(_Record(number, raw, value))
    _mend(state, name, strip)
    if not state.changes:
        return Healed(data, [])
    out = [
        dumps(record.value).encode() if record.touched else record.raw
        for record in state.records
        if record.value is not None
    ]
    return Healed(b"\n".join(out) + b"\n", state.changes)


def _mend(state: _State, name: str, strip: bool) -> None:
    family = _FAMILIES[name] if name != plain.NAME else _plain_family(state)
    for record in state.records:
        if has_surrogate(record.value):
            state.note("lone_surrogate", record, record.value)
            record.value = _scrubbed(record.value)
    _mend_thinking(state, family, strip)
    _mend_calls(state, family)
    _mend_pairs(state, family)
    _mend_empty(state, family)
    _relink(state)


def _scrubbed(value: Json) -> Json:
    if isinstance(value, str):
        # Two halves that stand side by side are one character.
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_scrubbed(key): _scrubbed(inner) for key, inner in value.items()}
    return [_scrubbed(inner) for inner in value] if isinstance(value, list) else value


def _mend_thinking(state: _State, family: _Family, strip: bool) -> None:
    for part in list(family.parts(state)):
        if part.kind == "thinking" and (strip or not family.is_signed(part.item)):
            state.note("unsigned_thinking", part.record, part.item)
            _remove(part)


def _mend_calls(state: _State, family: _Family) -> None:
    """Arguments, names and ids; an id that is changed is changed in its answer too, in the order of both."""
    seen: set[str] = set()
    renamed: dict[str, list[str]] = {}
    for part in list(family.parts(state)):
        if part.kind == "call":
            if not family.is_readable(part.item) or _is_listed_invalid(part):
                state.note("unreadable_arguments", part.record, part.item)
                family.empty(part.item)
                _unlist(part)
            holder = _holder(part.item)
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


def _is_listed_invalid(part: _Part) -> bool:
    """Whether Cline says of a call, in the block or in the message, that it could not be read."""
    if get(part.item, "metadata", "inputParseError") is not None:
        return True
    listed = get(part.record.value, "metadata", "invalidToolCalls")
    return isinstance(listed, list) and any(get(one, "toolCallId") == part.item.get("id") for one in listed)


def _unlist(part: _Part) -> None:
    inner = part.item.get("metadata")
    if isinstance(inner, dict):
        part.item["metadata"] = {k: v for k, v in inner.items() if k not in ("inputParseError", "rawInputText")}
    metadata = get(part.record.value, "metadata")
    listed = get(metadata, "invalidToolCalls")
    if isinstance(listed, list):
        metadata["invalidToolCalls"] = [one for one in listed if get(one, "toolCallId") != part.item.get("id")]


def _mend_pairs(state: _State, family: _Family) -> None:
    """Each call's answer behind its turn, once, and before anybody speaks again."""
    calls: dict[str, int] = {}
    results: dict[str, _Part] = {}
    for index, record in enumerate(state.records):
        if not isinstance(record.value, dict):
            continue
        for part in family.of(record):
            if part.kind == "call":
                calls[part.item[family.call_id]] = index
    for part in list(family.parts(state)):
        if part.kind == "result":
            identity = part.item.get(family.result_id)
            if not isinstance(identity, str) or identity not in calls or identity in results:
                state.note("orphan_result", part.record, part.item)
                _remove(part)
            else:
                results[identity] = part
    pairing = _Pairing(state, family, calls, results)
    pairing.run()
    state.records = pairing.out


@dataclass(slots=True)
class _Pairing:
    """Puts records into a new order in which every turn is followed by its answers."""

    state: _State
    family: _Family
    calls: dict[str, int]
    results: dict[str, _Part]
    out: list[_Record] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)

    def run(self) -> None:
        """Goes through all records once."""
        records = self.state.records
        at = 0
        while at < len(records):
            record = records[at]
            if id(record) in self.taken or self.is_early(record, at):
                at += 1
                continue
            self.out.append(record)
            at += 1
            open_calls = self.calls_of(record)
            if open_calls:
                at = self.turn(record, open_calls, at)

    def calls_of(self, record: _Record) -> dict[str, _Part]:
        """The calls of a record by id."""
        parts = self.family.of(record) if isinstance(record.value, dict) else []
        return {part.item[self.family.call_id]: part for part in parts if part.kind == "call"}

    def results_of(self, record: _Record) -> list[str] | None:
        """The ids of a record that holds answers and nothing else; None for any other."""
        parts = self.family.of(record) if isinstance(record.value, dict) else []
        if not parts or any(part.kind != "result" for part in parts):
            return None
        content = self.family.content(record.value)
        if isinstance(content, list) and parts[0].holder is content and len(content) != len(parts):
            return None
        return [part.item[self.family.result_id] for part in parts]

    def is_early(self, record: _Record, at: int) -> bool:
        """Whether a record of answers stands before its calls; it is fetched when they come."""
        own = self.results_of(record)
        return bool(own) and not self.family.blocks and all(self.calls[identity] > at for identity in own or ())

    def turn(self, first: _Record, waiting: dict[str, _Part], at: int) -> int:
        """Takes in the rest of a turn; returns where to go on."""
        records = self.state.records
        while at < len(records):
            record = records[at]
            own = None if self.family.blocks else self.results_of(record)
            if id(record) in self.taken or record.value is None:
                pass
            elif own is not None and all(identity in waiting for identity in own):
                for identity in own:
                    del waiting[identity]
                self.out.append(record)
            elif self.family.joins(first.value, record.value):
                waiting |= self.calls_of(record)
                self.out.append(record)
            elif own is None and not self.family.speaks(record):
                self.out.append(record)
            else:
                break
            at += 1
        if self.family.blocks:
            self.lead(records[at] if at < len(records) else None, first, waiting)
            return at
        for identity, call in waiting.items():
            self.out.append(self.fetch(identity, call))
        return at

    def fetch(self, identity: str, call: _Part) -> _Record:
        """The answer's record from wherever it is, or one that says that there is none."""
        part = self.results.get(identity)
        if part is None:
            self.state.note("orphan_call", call.record, None)
            made = self.family.answer(call, identity, self.out[-1])
            _hang(self.state.records, self.out[-1], call.record, made)
            return made
        self.state.note("misplaced_result", part.record, part.item)
        if part.holder is None or len(part.holder) == 1:
            self.taken.add(id(part.record))
            return part.record
        _remove(part)
        moved = self.family.answer(call, identity, self.out[-1])
        for inner in self.family.of(moved):
            inner.item.clear()
            inner.item.update(part.item)
        return moved

    def lead(self, following: _Record | None, first: _Record, waiting: dict[str, _Part]) -> None:
        """Blocks: the answers stand at the start of the next message, which is the user's."""
        content = get(following.value, "content") if following is not None else None
        if following is None or get(following.value, "role") != "user" or not isinstance(content, list):
            following, content = _Record(first.line, b"", {"role": "user", "content": []}, True), []
            following.value["content"] = content
            self.out.append(following)
        leading = []
        for item in content:
            if get(item, "type") != "tool_result":
                break
            leading.append(item)
        front: list[Any] = [item for item in leading if item.get("tool_use_id") in waiting]
        for identity, call in waiting.items():
            part = self.results.get(identity)
            if part is None:
                self.state.note("orphan_call", call.record, None)
                front.append(_not_recorded(identity))
                following.touched = True
            elif not any(part.item is item for item in front):
                self.state.note("misplaced_result", part.record, part.item)
                _remove(part)
                front.append(part.item)
                following.touched = True
        content[:] = front + [item for item in content if not any(item is other for other in front)]


def _hang(records: list[_Record], before: _Record, call: _Record, made: _Record) -> None:
    """In a tree, what hung on the last record of the turn hangs on the answer that was added to it."""
    for identity, parent in (("uuid", "parentUuid"), ("id", "parentId")):
        name = made.value.get(identity)
        if name is None or parent not in made.value:
            continue
        for record in records:
            if record is made or not isinstance(record.value, dict) or record.value.get(parent) != made.value[parent]:
                continue
            talks = record.value.get("type") in ("user", "assistant", "message")
            if talks and record is not before and record is not call and not _is_answer(record.value):
                record.value[parent] = name
                record.touched = True


def _is_answer(value: dict[str, Any]) -> bool:
    message = get(value, "message")
    content = get(message, "content")
    blocks = content if isinstance(content, list) else []
    return get(message, "role") == "toolResult" or any(get(block, "type") == "tool_result" for block in blocks)


def _not_recorded(identity: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": NOT_RECORDED, "is_error": True}


def _mend_empty(state: _State, family: _Family) -> None:
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
            ours = record.touched or not (family is _CLAUDE or family is _PI)
            if not content and ours and not family.keeps_empty(record.value):
                state.note("empty_message", record, record.value)
                record.value = None
    if family is _ITEMS or family is _CODEX:
        _mend_reasoning(state, family)


def _mend_reasoning(state: _State, family: _Family) -> None:
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


def _relink(state: _State) -> None:
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


def _remove(part: _Part) -> None:
    part.record.touched = True
    if part.holder is None:
        part.record.value = None
    else:
        part.holder[:] = [item for item in part.holder if item is not part.item]


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


@dataclass(frozen=True, slots=True)
class _Family:
    """How one kind of file holds calls, answers and thinking.

    Attributes:
        of: The parts of a record.
        call_id: Key of a call's id.
        result_id: Key of the id in an answer.
        content: The list of content blocks in a record's value, or None.
        item: The message or item in a record's value.
        answer: A record that says that there is no answer to a call, to stand behind another record.
        joins: Whether a record goes on with the turn that another began.
        blocks: Whether answers stand as blocks at the start of the next message.
    """

    of: Callable[[_Record], list[_Part]]
    call_id: str
    result_id: str
    content: Callable[[Json], Json]
    item: Callable[[Json], Json]
    answer: Callable[[_Part, str, _Record], _Record]
    joins: Callable[[Json, Json], bool]
    blocks: bool = False

    def parts(self, state: _State) -> Iterator[_Part]:
        """All parts, in order; records that are gone by the time they are reached have none."""
        for record in list(state.records):
            if isinstance(record.value, dict):
                yield from self.of(record)

    def is_signed(self, item: dict[str, Any]) -> bool:
        """Whether a thinking block can be sent back."""
        return any(isinstance(item.get(key), str) and item[key] for key in ("signature", "thinkingSignature", "data"))

    def is_readable(self, item: dict[str, Any]) -> bool:
        """Whether a call's arguments are an object, and not a stand-in for something else."""
        if item.get("type") == "custom_tool_call" or "custom" in item:
            return True
        if "argumentsError" in item:
            return False
        holder = _holder(item)
        value = holder.get("input") if "input" in holder else holder.get("arguments")
        if _is_text_form(item):
            if not isinstance(value, str):
                return False
            value, reason = decode(value.encode("utf-8", "surrogatepass"))
            if reason or has_surrogate(value):
                return False
        return isinstance(value, dict) and not (0 < len(value) <= 2 and any(key in value for key in STAND_INS))

    def empty(self, item: dict[str, Any]) -> None:
        """Puts {} in the place of a call's arguments."""
        item.pop("argumentsError", None)
        holder = _holder(item)
        if _is_text_form(item):
            holder["arguments"] = "{}"
        elif "input" in holder or item.get("type") == "tool_use":
            holder["input"] = {}
        else:
            holder["arguments"] = {}

    def speaks(self, record: _Record) -> bool:
        """Whether a record is a message of somebody, after which an answer comes too late."""
        role = get(self.item(record.value), "role")
        return isinstance(role, str) and ROLES.get(role) in ("user", "assistant", "system", "developer")

    def keeps_empty(self, value: Json) -> bool:
        """Whether a message may be without content, because it has calls beside it."""
        return bool(get(self.item(value), "tool_calls")) or get(self.item(value), "role") in ("toolResult", "tool")


def _holder(item: dict[str, Any]) -> dict[str, Any]:
    """Where a call's name and arguments stand."""
    inner = item.get("function")
    return inner if isinstance(inner, dict) else item


def _is_text_form(item: dict[str, Any]) -> bool:
    """Whether arguments are written as text there: in Chat Completions and Responses, not in blocks or in Pi."""
    return isinstance(item.get("function"), dict) or item.get("type") == "function_call"


def _blocks(record: _Record, content: Json) -> list[_Part]:
    names = {
        "tool_use": "call",
        "toolCall": "call",
        "tool_result": "result",
        "thinking": "thinking",
        "redacted_thinking": "thinking",
    }
    if not isinstance(content, list):
        return []
    return [
        _Part(names[item["type"]], record, item, content)
        for item in content
        if isinstance(item, dict) and isinstance(item.get("type"), str) and item["type"] in names
    ]


def _claude_parts(record: _Record) -> list[_Part]:
    if record.value.get("type") not in ("user", "assistant"):
        return []
    return _blocks(record, get(record.value, "message", "content"))


def _claude_answer(part: _Part, identity: str, before: _Record) -> _Record:
    told = part.record.value
    uuid = hashlib.sha256(f"{told.get('uuid')}{identity}".encode()).hexdigest()
    kept = ("isSidechain", "timestamp", "sessionId", "version", "cwd", "userType", "gitBranch", "entrypoint")
    made = {
        "parentUuid": told.get("uuid"),
        "type": "user",
        "message": {"role": "user", "content": [_not_recorded(identity)]},
        "toolUseResult": NOT_RECORDED,
        "uuid": f"{uuid[:8]}-{uuid[8:12]}-4{uuid[13:16]}-8{uuid[17:20]}-{uuid[20:32]}",
        **{key: told[key] for key in kept if key in told},
    }
    return _Record(part.record.line, b"", made, True)


def _claude_joins(first: Json, value: Json) -> bool:
    one = get(first, "message", "id")
    return one is not None and one == get(value, "message", "id") and get(value, "type") == "assistant"


def _pi_parts(record: _Record) -> list[_Part]:
    message = record.value.get("message")
    if record.value.get("type") != "message" or not isinstance(message, dict):
        return []
    if message.get("role") == "toolResult":
        return [_Part("result", record, message)]
    return _blocks(record, message.get("content")) if message.get("role") == "assistant" else []


def _pi_answer(part: _Part, identity: str, before: _Record) -> _Record:
    told = part.record.value
    message = {
        "role": "toolResult",
        "toolCallId": identity,
        "toolName": part.item.get("name"),
        "content": [{"type": "text", "text": NOT_RECORDED}],
        "isError": True,
    }
    if "timestamp" in told["message"]:
        message["timestamp"] = told["message"]["timestamp"]
    made: dict[str, Any] = {"type": "message"}
    if "id" in told:
        made["id"] = hashlib.sha256(f"{told['id']}{identity}".encode()).hexdigest()[:8]
        made["parentId"] = before.value.get("id") if isinstance(before.value, dict) else told["id"]
    if "timestamp" in told:
        made["timestamp"] = told["timestamp"]
    return _Record(part.record.line, b"", {**made, "message": message}, True)


def _block_parts(record: _Record) -> list[_Part]:
    return _blocks(record, get(record.value, "content"))


def _block_answer(part: _Part, identity: str, before: _Record) -> _Record:
    return _Record(part.record.line, b"", {"role": "user", "content": [_not_recorded(identity)]}, True)


def _chat_parts(record: _Record) -> list[_Part]:
    value = record.value
    if not isinstance(value, dict):
        return []
    if value.get("role") == "tool":
        return [_Part("result", record, value)]
    calls = value.get("tool_calls")
    return (
        [_Part("call", record, call, calls) for call in calls if isinstance(get(call, "function"), dict)]
        if isinstance(calls, list)
        else []
    )


def _chat_answer(part: _Part, identity: str, before: _Record) -> _Record:
    made = {"role": "tool", "tool_call_id": identity, "content": NOT_RECORDED}
    return _Record(part.record.line, b"", made, True)


def _never(first: Json, value: Json) -> bool:
    return False


def _item_of(record: _Record) -> dict[str, Any] | None:
    value = record.value
    if not isinstance(value, dict):
        return None
    payload = value.get("payload")
    if isinstance(payload, dict):
        return payload if value.get("type") == "response_item" else None
    return value


def _item_parts(record: _Record) -> list[_Part]:
    item = _item_of(record)
    kind = get(item, "type")
    if item is not None and kind in ("function_call", "custom_tool_call"):
        return [_Part("call", record, item)]
    if item is not None and kind in ("function_call_output", "custom_tool_call_output"):
        return [_Part("result", record, item)]
    return []


def _item_answer(part: _Part, identity: str, before: _Record) -> _Record:
    kind = "custom_tool_call_output" if part.item.get("type") == "custom_tool_call" else "function_call_output"
    made: dict[str, Any] = {"type": kind, "call_id": identity, "output": NOT_RECORDED}
    told = part.record.value
    if isinstance(told.get("payload"), dict):
        made = {**{key: told[key] for key in ("timestamp",) if key in told}, "type": "response_item", "payload": made}
    return _Record(part.record.line, b"", made, True)


def _item_joins(first: Json, value: Json) -> bool:
    item = _payload(value)
    kinds = ("function_call", "custom_tool_call", "reasoning")
    return get(item, "type") in kinds or get(item, "role") == "assistant"


def _payload(value: Json) -> Json:
    return get(value, "payload") if isinstance(get(value, "payload"), dict) else value


def _message(value: Json) -> Json:
    return get(value, "message")


def _same(value: Json) -> Json:
    return value


_CLAUDE = _Family(
    _claude_parts, "id", "tool_use_id", lambda v: get(v, "message", "content"), _message, _claude_answer, _claude_joins
)
_PI = _Family(_pi_parts, "id", "toolCallId", lambda v: get(v, "message", "content"), _message, _pi_answer, _never)
_BLOCKS = _Family(_block_parts, "id", "tool_use_id", lambda v: get(v, "content"), _same, _block_answer, _never, True)
_CHAT = _Family(_chat_parts, "id", "tool_call_id", lambda v: get(v, "content"), _same, _chat_answer, _never)
_ITEMS = _Family(_item_parts, "call_id", "call_id", lambda v: get(v, "content"), _same, _item_answer, _item_joins)
_CODEX = _Family(
    _item_parts, "call_id", "call_id", lambda v: get(v, "payload", "content"), _payload, _item_answer, _item_joins
)
_FAMILIES = {claude_code.NAME: _CLAUDE, pi.NAME: _PI, codex.NAME: _CODEX, cline.NAME: _BLOCKS}


def _plain_family(state: _State) -> _Family:
    """The family of a plain conversation, by what is in it.

    Raises:
        InputError: Its records are whole conversations, or no messages at all.
    """
    values = [record.value for record in state.records if isinstance(record.value, dict)]
    if any(_list_key(value) is not None and "role" not in value for value in values):
        raise InputError("each record is a whole conversation; heal one conversation at a time")
    if any(get(value, "type") in ("function_call", "custom_tool_call", "function_call_output") for value in values):
        return _ITEMS
    if any(get(value, "role") == "tool" or get(value, "tool_calls") for value in values):
        return _CHAT
    if not any(get(value, "role") for value in values):
        raise InputError("there are no messages in it that can be healed")
    return _BLOCKS
