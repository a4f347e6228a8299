"""How each kind of session file holds calls, answers and thinking, so that healing can change them in place."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from onspec.audit import Json
from onspec.transcripts import claude_code, cline, codex, pi
from onspec.transcripts.replay import has_surrogate
from onspec.transcripts.source import decode, get
from onspec.transcripts.wire import ROLES, STAND_INS

NOT_RECORDED = "The answer to this call was not recorded."


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
class Record:
    """One line or element; `raw` is what it was, `value` what it is, None where it is to go."""

    line: int
    raw: bytes
    value: Any
    touched: bool = False


@dataclass(slots=True)
class Part:
    """One call, answer or thinking block of a record; `holder` is the list it stands in, None for a whole record."""

    kind: str
    record: Record
    item: dict[str, Any]
    holder: list[Any] | None = None


@dataclass(slots=True)
class State:
    records: list[Record]
    changes: list[Change] = field(default_factory=list)

    def note(self, rule: str, record: Record, before: Json) -> None:
        record.touched = True
        self.changes.append(Change(rule, record.line, copy.deepcopy(before)))


def remove(part: Part) -> None:
    part.record.touched = True
    if part.holder is None:
        part.record.value = None
    else:
        part.holder[:] = [item for item in part.holder if item is not part.item]


@dataclass(frozen=True, slots=True)
class Family:
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

    of: Callable[[Record], list[Part]]
    call_id: str
    result_id: str
    content: Callable[[Json], Json]
    item: Callable[[Json], Json]
    answer: Callable[[Part, str, Record], Record]
    joins: Callable[[Json, Json], bool]
    blocks: bool = False

    def parts(self, state: State) -> Iterator[Part]:
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
        holder = holder_of(item)
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
        holder = holder_of(item)
        if _is_text_form(item):
            holder["arguments"] = "{}"
        elif "input" in holder or item.get("type") == "tool_use":
            holder["input"] = {}
        else:
            holder["arguments"] = {}

    def speaks(self, record: Record) -> bool:
        """Whether a record is a message of somebody, after which an answer comes too late."""
        role = get(self.item(record.value), "role")
        return isinstance(role, str) and ROLES.get(role) in ("user", "assistant", "system", "developer")

    def keeps_empty(self, value: Json) -> bool:
        """Whether a message may be without content, because it has calls beside it."""
        return bool(get(self.item(value), "tool_calls")) or get(self.item(value), "role") in ("toolResult", "tool")


def not_recorded(identity: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": identity, "content": NOT_RECORDED, "is_error": True}


def holder_of(item: dict[str, Any]) -> dict[str, Any]:
    """Where a call's name and arguments stand."""
    inner = item.get("function")
    return inner if isinstance(inner, dict) else item


def _is_text_form(item: dict[str, Any]) -> bool:
    """Whether arguments are written as text there: in Chat Completions and Responses, not in blocks or in Pi."""
    return isinstance(item.get("function"), dict) or item.get("type") == "function_call"


def _blocks(record: Record, content: Json) -> list[Part]:
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
        Part(names[item["type"]], record, item, content)
        for item in content
        if isinstance(item, dict) and isinstance(item.get("type"), str) and item["type"] in names
    ]


def _claude_parts(record: Record) -> list[Part]:
    if record.value.get("type") not in ("user", "assistant"):
        return []
    return _blocks(record, get(record.value, "message", "content"))


def _claude_answer(part: Part, identity: str, before: Record) -> Record:
    told = part.record.value
    uuid = hashlib.sha256(f"{told.get('uuid')}{identity}".encode()).hexdigest()
    kept = ("isSidechain", "timestamp", "sessionId", "version", "cwd", "userType", "gitBranch", "entrypoint")
    made = {
        "parentUuid": told.get("uuid"),
        "type": "user",
        "message": {"role": "user", "content": [not_recorded(identity)]},
        "toolUseResult": NOT_RECORDED,
        "uuid": f"{uuid[:8]}-{uuid[8:12]}-4{uuid[13:16]}-8{uuid[17:20]}-{uuid[20:32]}",
        **{key: told[key] for key in kept if key in told},
    }
    return Record(part.record.line, b"", made, True)


def _claude_joins(first: Json, value: Json) -> bool:
    one = get(first, "message", "id")
    return one is not None and one == get(value, "message", "id") and get(value, "type") == "assistant"


def _pi_parts(record: Record) -> list[Part]:
    message = record.value.get("message")
    if record.value.get("type") != "message" or not isinstance(message, dict):
        return []
    if message.get("role") == "toolResult":
        return [Part("result", record, message)]
    return _blocks(record, message.get("content")) if message.get("role") == "assistant" else []


def _pi_answer(part: Part, identity: str, before: Record) -> Record:
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
    return Record(part.record.line, b"", {**made, "message": message}, True)


def _block_parts(record: Record) -> list[Part]:
    return _blocks(record, get(record.value, "content"))


def _block_answer(part: Part, identity: str, before: Record) -> Record:
    return Record(part.record.line, b"", {"role": "user", "content": [not_recorded(identity)]}, True)


def _chat_parts(record: Record) -> list[Part]:
    value = record.value
    if not isinstance(value, dict):
        return []
    if value.get("role") == "tool":
        return [Part("result", record, value)]
    calls = value.get("tool_calls")
    return (
        [Part("call", record, call, calls) for call in calls if isinstance(get(call, "function"), dict)]
        if isinstance(calls, list)
        else []
    )


def _chat_answer(part: Part, identity: str, before: Record) -> Record:
    made = {"role": "tool", "tool_call_id": identity, "content": NOT_RECORDED}
    return Record(part.record.line, b"", made, True)


def _never(first: Json, value: Json) -> bool:
    return False


def _item_of(record: Record) -> dict[str, Any] | None:
    value = record.value
    if not isinstance(value, dict):
        return None
    payload = value.get("payload")
    if isinstance(payload, dict):
        return payload if value.get("type") == "response_item" else None
    return value


def _item_parts(record: Record) -> list[Part]:
    item = _item_of(record)
    kind = get(item, "type")
    if item is not None and kind in ("function_call", "custom_tool_call"):
        return [Part("call", record, item)]
    if item is not None and kind in ("function_call_output", "custom_tool_call_output"):
        return [Part("result", record, item)]
    return []


def _item_answer(part: Part, identity: str, before: Record) -> Record:
    kind = "custom_tool_call_output" if part.item.get("type") == "custom_tool_call" else "function_call_output"
    made: dict[str, Any] = {"type": kind, "call_id": identity, "output": NOT_RECORDED}
    told = part.record.value
    if isinstance(told.get("payload"), dict):
        made = {**{key: told[key] for key in ("timestamp",) if key in told}, "type": "response_item", "payload": made}
    return Record(part.record.line, b"", made, True)


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


CLAUDE = Family(
    _claude_parts, "id", "tool_use_id", lambda v: get(v, "message", "content"), _message, _claude_answer, _claude_joins
)
PI = Family(_pi_parts, "id", "toolCallId", lambda v: get(v, "message", "content"), _message, _pi_answer, _never)
BLOCKS = Family(_block_parts, "id", "tool_use_id", lambda v: get(v, "content"), _same, _block_answer, _never, True)
CHAT = Family(_chat_parts, "id", "tool_call_id", lambda v: get(v, "content"), _same, _chat_answer, _never)
ITEMS = Family(_item_parts, "call_id", "call_id", lambda v: get(v, "content"), _same, _item_answer, _item_joins)
CODEX = Family(
    _item_parts, "call_id", "call_id", lambda v: get(v, "payload", "content"), _payload, _item_answer, _item_joins
)
FAMILIES = {claude_code.NAME: CLAUDE, pi.NAME: PI, codex.NAME: CODEX, cline.NAME: BLOCKS}
