"""Puts every answer behind its call, where providers want it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from onspec.transcripts.layout import Family, Part, Record, State, not_recorded, remove
from onspec.transcripts.source import get


def pair(state: State, family: Family) -> None:
    """Each call's answer behind its turn, once, and before anybody speaks again."""
    calls: dict[str, int] = {}
    results: dict[str, Part] = {}
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
                remove(part)
            else:
                results[identity] = part
    pairing = _Pairing(state, family, calls, results)
    pairing.run()
    state.records = pairing.out


@dataclass(slots=True)
class _Pairing:
    """Puts records into a new order in which every turn is followed by its answers."""

    state: State
    family: Family
    calls: dict[str, int]
    results: dict[str, Part]
    out: list[Record] = field(default_factory=list)
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

    def calls_of(self, record: Record) -> dict[str, Part]:
        """The calls of a record by id."""
        parts = self.family.of(record) if isinstance(record.value, dict) else []
        return {part.item[self.family.call_id]: part for part in parts if part.kind == "call"}

    def results_of(self, record: Record) -> list[str] | None:
        """The ids of a record that holds answers and nothing else; None for any other."""
        parts = self.family.of(record) if isinstance(record.value, dict) else []
        if not parts or any(part.kind != "result" for part in parts):
            return None
        content = self.family.content(record.value)
        if isinstance(content, list) and parts[0].holder is content and len(content) != len(parts):
            return None
        return [part.item[self.family.result_id] for part in parts]

    def is_early(self, record: Record, at: int) -> bool:
        """Whether a record of answers stands before its calls; it is fetched when they come."""
        own = self.results_of(record)
        return bool(own) and not self.family.blocks and all(self.calls[identity] > at for identity in own or ())

    def turn(self, first: Record, waiting: dict[str, Part], at: int) -> int:
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

    def fetch(self, identity: str, call: Part) -> Record:
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
        remove(part)
        moved = self.family.answer(call, identity, self.out[-1])
        for inner in self.family.of(moved):
            inner.item.clear()
            inner.item.update(part.item)
        return moved

    def lead(self, following: Record | None, first: Record, waiting: dict[str, Part]) -> None:
        """Blocks: the answers stand at the start of the next message, which is the user's."""
        content = get(following.value, "content") if following is not None else None
        if following is None or get(following.value, "role") != "user" or not isinstance(content, list):
            following, content = Record(first.line, b"", {"role": "user", "content": []}, True), []
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
                front.append(not_recorded(identity))
                following.touched = True
            elif not any(part.item is item for item in front):
                self.state.note("misplaced_result", part.record, part.item)
                remove(part)
                front.append(part.item)
                following.touched = True
        content[:] = front + [item for item in content if not any(item is other for other in front)]


def _hang(records: list[Record], before: Record, call: Record, made: Record) -> None:
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
