"""OpenAI Responses on the wire."""

from __future__ import annotations

import json
import re
from typing import Any

from onspec.gateway import sse
from onspec.gateway.usage import Tokens
from onspec.gateway.wire import (
    Begun,
    Change,
    Closed,
    Copy,
    Delta,
    End,
    Finish,
    Key,
    Mark,
    Path,
    Prose,
    Rejected,
    Start,
    Stopped,
    TextCopy,
    Usage,
    Whole,
    at,
    kind_of,
    listed,
    plain,
)

name = "responses"
empty_means_object = False
ends_calls = True
tells_tool = False

TEXT_FIELDS = {"function_call": "arguments", "custom_tool_call": "input"}
DELTAS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
DONES = {"response.function_call_arguments.done": "arguments", "response.custom_tool_call_input.done": "input"}
TEXT = "response.output_text.delta"
IDLE = frozenset(
    f"response.{kind}.delta" for kind in ("reasoning_summary_text", "reasoning_text", "reasoning_summary", "refusal")
)
"""Events that say nothing of calls, by name; most of a reply is reasoning and text."""
_NUMBER = re.compile(rb'"sequence_number"\s*:\s*(\d+)')
TERMINAL = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
WHOLE: tuple[Change, ...] = (
    (("type",), "response.completed"),
    (("response", "status"), "completed"),
    (("response", "incomplete_details"), None),
)
"""What makes an incomplete response a completed one."""


class _Stream:
    def __init__(self) -> None:
        self.calls: dict[Key, dict[str, Any]] = {}
        self.response: dict[str, Any] | None = None
        self.last = -1
        self.number: int | None = None
        self.prose = False
        self.called = False
        self.items = 0
        self.added: list[dict[str, Any]] = []

    def read(self, frame: sse.Frame) -> tuple[Mark, ...]:
        data = frame.data
        self.number = None
        if data is None:
            return ()
        if frame.name in IDLE or (frame.name == TEXT and not self.prose):
            number = _NUMBER.search(data)
            self._numbered(int(number[1]) if number is not None else None)
            return ()
        event = frame.json()
        if not isinstance(event, dict):
            return ()
        self._numbered(event.get("sequence_number"))
        kind, key = kind_of(event), plain(event.get("output_index"))
        if kind in DELTAS:
            return (
                (Delta(key, event["delta"], ("delta",)),)
                if key in self.calls and isinstance(event.get("delta"), str)
                else ()
            )
        if kind == "response.output_text.delta":
            place = (key, plain(event.get("content_index")))
            return (Prose(place, event["delta"], ("delta",)),) if isinstance(event.get("delta"), str) else ()
        if kind in DONES:
            if key not in self.calls:
                return ()
            named = ("name",) if isinstance(event.get("name"), str) else None
            copy = Copy(key, (DONES[kind],), named)
            # free text does not show whether it was cut: that stands in the item, which follows
            given = _text(event, DONES[kind])
            return (copy,) if self.calls[key]["type"] == "custom_tool_call" else (End(key, given=given), copy)
        if kind == "response.output_text.done":
            return (TextCopy((key, plain(event.get("content_index"))), ("text",)),)
        if kind == "response.content_part.done" and at(event, ("part", "type")) == "output_text":
            return (TextCopy((key, plain(event.get("content_index"))), ("part", "text")),)
        if kind == "response.output_item.added":
            self.items = max(self.items, key + 1 if isinstance(key, int) else 0)
            self.called = self.called or kind_of(event.get("item")).endswith("_call")
            return self._added(event, key)
        if kind == "response.output_item.done":
            item = event.get("item")
            if key not in self.calls or not isinstance(item, dict):
                return _copies(item, key, ("item",))
            cut = item.get("status") == "incomplete"
            whole: tuple[Change, ...] = ((("item", "status"), "completed"),) if cut else ()
            part = TEXT_FIELDS[self.calls[key]["type"]]
            return End(key, cut, _text(item, part)), Copy(key, ("item", part), ("item", "name"), whole)
        if kind in ("response.created", "response.in_progress", "response.queued"):
            self.response = event.get("response") if isinstance(event.get("response"), dict) else self.response
            return (Begun(),)
        if kind in TERMINAL:
            return self._terminal(event)
        return (Closed(failed=True),) if kind == "error" else ()

    def _numbered(self, number: Any) -> None:
        if isinstance(number, int) and number >= 0:
            self.number = self.last = number

    def _added(self, event: dict[str, Any], key: Any) -> tuple[Mark, ...]:
        item = event.get("item")
        if not isinstance(item, dict) or kind_of(item) not in TEXT_FIELDS or not isinstance(item.get("name"), str):
            return ()
        self.calls[key] = item
        custom = item["type"] == "custom_tool_call"
        return (Start(key, item["name"], ("item", "name"), item.get("call_id"), item.get("namespace"), custom),)

    def _terminal(self, event: dict[str, Any]) -> tuple[Mark, ...]:
        marks: list[Mark] = []
        given: dict[Key, str] = {}
        by_id = {_id(item): key for key, item in self.calls.items()}
        for index, item in enumerate(listed(at(event, ("response", "output")))):
            marks += _copies(item, index, ("response", "output", index))
            if kind_of(item) in TEXT_FIELDS:
                key = by_id.get(_id(item), index if index in self.calls else None)
                if key is not None:
                    given[key] = _text(item, TEXT_FIELDS[item["type"]])
                    path = ("response", "output", index)
                    cut = item.get("status") == "incomplete"
                    whole: tuple[Change, ...] = (((*path, "status"), "completed"),) if cut else ()
                    marks.append(Copy(key, (*path, TEXT_FIELDS[item["type"]]), (*path, "name"), whole))
        marks = [*(End(key, given=given.get(key, "")) for key in self.calls), *marks]
        marks.append(Stopped(finish(event.get("response")), WHOLE, "response.completed"))
        used = at(event, ("response", "usage"))
        if isinstance(used, dict):
            marks.append(Usage(("response", "usage"), used))
        return (*marks, Closed(failed=event.get("type") == "response.failed"))

    def delta(self, key: Key, text: str) -> bytes:
        item = self.calls[key]
        kind = DELTAS[item["type"] != "function_call"]
        event = {
            "type": kind,
            "sequence_number": self.last,
            "item_id": item.get("id"),
            "output_index": key,
            "delta": text,
        }
        return sse.encode(event, kind)

    def call_end(self, key: Key) -> bytes:
        return b""

    def call(self, made: str, name: str, arguments: str) -> bytes:
        place = self.items
        self.items += 1
        item = {"id": f"fc_{made}", "type": "function_call", "status": "completed", "call_id": f"call_{made}"}
        item |= {"name": name, "arguments": arguments}
        self.added.append(item)
        where = {"item_id": item["id"], "output_index": place}
        kind = "response.function_call_arguments"
        made_events = (
            (
                "response.output_item.added",
                {"output_index": place, "item": item | {"status": "in_progress", "arguments": ""}},
            ),
            (f"{kind}.delta", {**where, "delta": arguments}),
            (f"{kind}.done", {**where, "name": name, "arguments": arguments}),
            ("response.output_item.done", {"output_index": place, "item": item}),
        )
        out = b""
        for event, data in made_events:
            out += sse.encode({"type": event, "sequence_number": self.last, **data}, event)
            self.last += 1
        self.last -= 1
        return out

    def ended_with(self, frame: sse.Frame) -> list[Change]:
        output = at(frame.json(), ("response", "output"))
        return [(("response", "output"), [*output, *self.added])] if isinstance(output, list) and self.added else []

    def ending(self) -> bytes:
        return b""

    def failure(self, message: str) -> bytes:
        self.last += 1
        problem = {"code": "server_error", "message": message}
        if self.response is None:
            event = {"type": "error", "sequence_number": self.last, **problem, "param": None}
            return sse.encode(event, "error")
        response = {**self.response, "status": "failed", "error": problem}
        return sse.encode(
            {"type": "response.failed", "sequence_number": self.last, "response": response}, "response.failed"
        )


def _id(item: dict[str, Any]) -> Key:
    return plain(item.get("id") or item.get("call_id"))


def _text(holder: dict[str, Any], field: str) -> str:
    found = holder.get(field)
    return found if isinstance(found, str) else ""


def _copies(item: Any, key: Any, path: Path) -> tuple[Mark, ...]:
    """The texts that a message item repeats."""
    return tuple(
        TextCopy((key, index), (*path, "content", index, "text"))
        for index, part in enumerate(listed(at(item, ("content",))))
        if kind_of(part) == "output_text"
    )


def stream() -> _Stream:
    return _Stream()


def calls(body: Any) -> list[Whole]:
    output = listed(at(body, ("output",)))
    return [
        Whole(
            item["name"],
            item[TEXT_FIELDS[item["type"]]],
            ("output", index, TEXT_FIELDS[item["type"]]),
            ("output", index, "name"),
            item.get("call_id"),
            item.get("namespace"),
            item["type"] == "custom_tool_call",
            item.get("status") == "incomplete" or ("status" not in item and index == len(output) - 1),
        )
        for index, item in enumerate(output)
        if isinstance(item, dict)
        and kind_of(item) in TEXT_FIELDS
        and isinstance(item.get("name"), str)
        and isinstance(item.get(TEXT_FIELDS[item["type"]]), str)
    ]


def called(body: Any) -> bool:
    return any(kind_of(item).endswith("_call") for item in listed(at(body, ("output",))))


def finish(body: Any) -> Finish:
    if at(body, ("status",)) == "incomplete":
        return (
            "length"
            if at(body, ("incomplete_details", "reason")) in ("max_output_tokens", "max_tokens", None)
            else "other"
        )
    return "tool" if calls(body) else "stop"


def usage(body: Any) -> Tokens:
    found = at(body, ("usage",))
    return found if isinstance(found, dict) else {}


def error(status: int, message: str) -> bytes:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": None}}).encode()


def again(request: dict[str, Any], call: Rejected, strict: bool, pin: bool) -> dict[str, Any]:
    call_id = call.call_id or "call_onspec"
    kind = "custom_tool_call" if call.custom else "function_call"
    raw = call.raw if call.custom or _is_object(call.raw) else json.dumps({"INVALID_JSON": call.raw})
    asked: dict[str, Any] = {"type": kind, "call_id": call_id, "name": call.name, TEXT_FIELDS[kind]: raw}
    if call.namespace:
        asked["namespace"] = call.namespace
    answer = {"type": f"{kind}_output", "call_id": call_id, "output": call.feedback}
    made = {**request, "input": [*_history(request), *call.before, asked, answer]}
    if pin and not call.namespace:
        made["tool_choice"] = {"type": "custom" if call.custom else "function", "name": call.name}
    if strict:
        made["tools"] = [
            {**tool, "strict": True}
            if isinstance(tool, dict) and tool.get("type") == "function" and tool.get("name") == call.name
            else tool
            for tool in request.get("tools", [])
        ]
    return made


def urged(request: dict[str, Any], said: tuple[Any, ...], feedback: str, pin: bool) -> dict[str, Any]:
    told = {"role": "user", "content": feedback}
    made = {**request, "input": [*_history(request), *said, told]}
    return {**made, "tool_choice": "required"} if pin else made


def said(frames: list[sse.Frame]) -> tuple[Any, ...]:
    return before(frames, None)


def said_in(body: Any) -> tuple[Any, ...]:
    return tuple(item for item in listed(at(body, ("output",))) if kind_of(item) in KEPT)


def _history(request: dict[str, Any]) -> list[Any]:
    given = request.get("input", [])
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)


def _is_object(raw: str) -> bool:
    try:
        return isinstance(json.loads(raw), dict)
    except (ValueError, RecursionError):
        return False


KEPT = ("reasoning", "message")
"""Items that are replayed before a rejected call: a call of a reasoning model is not taken without its reasoning."""


def whole(body: Any) -> list[Change]:
    items = [(index, item) for index, item in enumerate(listed(at(body, ("output",)))) if isinstance(item, dict)]
    made: list[Change] = [(("output", index, "status"), "completed") for index, item in items if "status" in item]
    return [*made, (("status",), "completed"), (("incomplete_details",), None)]


def texts(body: Any) -> list[tuple[Path, str]]:
    return [
        (mark.path, text)
        for index, item in enumerate(listed(at(body, ("output",))))
        for mark in _copies(item, index, ("output", index))
        if isinstance(mark, TextCopy) and isinstance(text := at(body, mark.path), str)
    ]


def with_calls(body: Any, texts: dict[Path, str], calls: list[tuple[str, str, str]]) -> list[Change]:
    output = json.loads(json.dumps(body["output"]))
    for place, text in texts.items():
        at({"output": output}, place[:-1])["text"] = text
    for made, called, arguments in calls:
        item = {"id": f"fc_{made}", "type": "function_call", "status": "completed", "call_id": f"call_{made}"}
        output.append(item | {"name": called, "arguments": arguments})
    return [(("output",), output)]


def before_in(body: Any, call: Whole) -> tuple[Any, ...]:
    return tuple(item for item in listed(at(body, ("output",)))[: int(call.path[1])] if kind_of(item) in KEPT)


def before(frames: list[sse.Frame], key: Key) -> tuple[Any, ...]:
    kept = []
    for frame in frames:
        if frame.name and frame.name != "response.output_item.done":
            continue
        event = frame.json()
        if isinstance(event, dict) and event.get("type") == "response.output_item.done":
            item = event.get("item")
            if kind_of(item) in KEPT:
                kept.append(item)
    return tuple(kept)
