"""OpenAI Chat Completions on the wire."""

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
    Usage,
    Whole,
    at,
    listed,
    plain,
)

name = "chat"
empty_means_object = False
ends_calls = False
tells_tool = True

REASONS: dict[str, Finish] = {
    "stop": "stop",
    "tool_calls": "tool",
    "function_call": "tool",
    "length": "length",
    "model_length": "length",
}
TEXT_FIELDS = {"function": "arguments", "custom": "input"}


class _Stream:
    def __init__(self) -> None:
        self.calls: dict[Key, str] = {}
        self._ids: dict[Key, Any] = {}
        self._running: dict[Key, Key] = {}  # by the place that the wire gives, where calls share one
        self.template: dict[str, Any] = {}
        self.prose = False
        self.called = False

    def read(self, frame: sse.Frame) -> tuple[Mark, ...]:
        data = frame.data
        if data is None:
            return ()
        if data.strip() == b"[DONE]":
            return (Closed(),)
        if self.template and not self.prose and _idle(data):
            return ()
        event = frame.json()
        if not isinstance(event, dict):
            return ()
        if event.get("error"):
            return (Closed(failed=True),)
        marks: list[Mark] = [] if self.template or "choices" not in event else [Begun()]
        choices = event.get("choices")
        for place, choice in enumerate(listed(choices)):
            if isinstance(choice, dict):
                marks += self._choice(choice, place)
        if isinstance(event.get("usage"), dict):
            marks.append(Usage(("usage",), event["usage"]))
        if marks and choices:
            self.template = event
        return tuple(marks)

    def _choice(self, choice: dict[str, Any], place: int) -> list[Mark]:
        marks: list[Mark] = []
        delta = choice.get("delta")
        number = plain(choice.get("index", place))
        if isinstance(delta, dict):
            self.called = self.called or bool(delta.get("tool_calls") or delta.get("function_call"))
            alone = not any(value for name, value in delta.items() if name != "tool_calls")
            text = delta.get("content")
            if isinstance(text, str) and text:
                marks.append(Prose(number, text, ("choices", place, "delta", "content")))
            for slot, call in enumerate(listed(delta.get("tool_calls"))):
                if isinstance(call, dict):
                    key = number, plain(call.get("index", slot))
                    marks += self._call(call, key, alone, ("choices", place, "delta", "tool_calls", slot))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:  # some write "" where others write null
            keys = tuple(key for key in self.calls if isinstance(key, tuple) and key[0] == number)
            path: Path = ("choices", place, "finish_reason")
            marks.append(Stopped(REASONS.get(reason, "other"), ((path, "tool_calls"),), keys=keys))
        return marks

    def _call(self, call: dict[str, Any], given: tuple[Key, Key], alone: bool, path: Path) -> list[Mark]:
        marks: list[Mark] = []
        key = self._running.get(given, given)
        if key in self.calls and self._is_another(call, key):
            marks.append(End(key))
            key = self._running[given] = (*given, len(self.calls))
        for part, field in TEXT_FIELDS.items():
            inner = call.get(part)
            if not isinstance(inner, dict):
                continue
            if key not in self.calls and isinstance(inner.get("name"), str) and inner["name"]:
                self.calls[key] = part
                self._ids[key] = call.get("id")
                marks.append(Start(key, inner["name"], (*path, part, "name"), call.get("id"), custom=part == "custom"))
            if key in self.calls and isinstance(inner.get(field), str) and inner[field]:
                marks.append(Delta(key, inner[field], (*path, part, field), alone))
        return marks

    def _is_another(self, call: dict[str, Any], key: Key) -> bool:
        """Whether a call begins at the index of one that came before: some providers number all of them 0.

        It has an id of its own, a name, and its text begins as a call's does. Some make up an id for each piece.
        """
        if not call.get("id") or call["id"] == self._ids.get(key):
            return False
        for part, field in TEXT_FIELDS.items():
            name, text = at(call, (part, "name")), at(call, (part, field))
            if isinstance(name, str) and name:
                return part == "custom" or not isinstance(text, str) or text.lstrip()[:1] in ("", "{")
        return False

    def _chunk(self, delta: dict[str, Any], choice: Any) -> bytes:
        """A new chunk like those that came."""
        event = {
            field: value
            for field, value in self.template.items()
            if field not in ("choices", "usage", "error", "obfuscation")
        }
        event["choices"] = [{"index": choice, "delta": delta, "logprobs": None, "finish_reason": None}]
        return sse.encode(event)

    def delta(self, key: Key, text: str) -> bytes:
        assert isinstance(key, tuple)
        part = self.calls[key]
        call = {"index": key[1], part: {TEXT_FIELDS[part]: text}}
        return self._chunk({"tool_calls": [call]}, key[0])

    def call_end(self, key: Key) -> bytes:
        return b""

    def call(self, made: str, name: str, arguments: str) -> bytes:
        index = sum(isinstance(key, tuple) and key[0] == 0 for key in self.calls)
        key = (0, index)
        self.calls[key] = "function"
        call = {"index": index, "id": f"call_{made}", "type": "function", "function": {"name": name, "arguments": ""}}
        return self._chunk({"tool_calls": [call]}, 0) + self.delta(key, arguments)

    def ended_with(self, frame: sse.Frame) -> list[Change]:
        return []

    def ending(self) -> bytes:
        return b"data: [DONE]\n\n"

    def failure(self, message: str) -> bytes:
        return sse.encode({"error": {"message": message, "type": "server_error", "param": None, "code": None}})


def _idle(data: bytes) -> bool:
    """Whether a chunk says nothing of calls, of the end, or of usage; most of a reply is text."""
    if b"tool_calls" in data or b"function_call" in data or b'"error"' in data or _USAGE.search(data):
        return False
    return data.count(b'"finish_reason"') == 1 and _UNFINISHED.search(data) is not None


_UNFINISHED = re.compile(rb'"finish_reason"\s*:\s*null')
_USAGE = re.compile(rb'"usage"\s*:\s*\{')


def stream() -> _Stream:
    return _Stream()


def calls(body: Any) -> list[Whole]:
    found = []
    choices = at(body, ("choices",))
    for place, choice in enumerate(listed(choices)):
        slots = listed(at(choice, ("message", "tool_calls")))
        for slot, call in enumerate(slots):
            path: Path = ("choices", place, "message", "tool_calls", slot)
            for part, field in TEXT_FIELDS.items():
                inner = at(call, (part,))
                if (
                    isinstance(inner, dict)
                    and isinstance(inner.get("name"), str)
                    and isinstance(inner.get(field), str | dict)
                ):
                    found.append(
                        Whole(
                            inner["name"],
                            inner[field],
                            (*path, part, field),
                            (*path, part, "name"),
                            call.get("id"),
                            custom=part == "custom",
                            last=slot == len(slots) - 1,
                            finish=_finish(choice),
                        )
                    )
    return found


def called(body: Any) -> bool:
    return any(
        at(choice, ("message", "tool_calls")) or at(choice, ("message", "function_call"))
        for choice in listed(at(body, ("choices",)))
    )


def finish(body: Any) -> Finish:
    return _finish(at(body, ("choices", 0)))


def _finish(choice: Any) -> Finish:
    return REASONS.get(str(at(choice, ("finish_reason",))), "other")


def usage(body: Any) -> Tokens:
    found = at(body, ("usage",))
    return found if isinstance(found, dict) else {}


def error(status: int, message: str) -> bytes:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": None}}).encode()


def again(request: dict[str, Any], call: Rejected, strict: bool, pin: bool) -> dict[str, Any]:
    call_id = call.call_id or "call_onspec"
    part = "custom" if call.custom else "function"
    raw = call.raw if call.custom or _is_object(call.raw) else json.dumps({"INVALID_JSON": call.raw})
    asked = {"id": call_id, "type": part, part: {"name": call.name, TEXT_FIELDS[part]: raw}}
    said = {"role": "assistant", "content": None, "tool_calls": [asked]}
    answer = {"role": "tool", "tool_call_id": call_id, "content": call.feedback}
    made = {**request, "messages": [*request.get("messages", []), said, answer]}
    if pin:
        made["tool_choice"] = {"type": part, part: {"name": call.name}}
    if strict:
        made["tools"] = [
            {**tool, "function": {**tool["function"], "strict": True}}
            if at(tool, ("function", "name")) == call.name
            else tool
            for tool in request.get("tools", [])
        ]
    return made


def urged(request: dict[str, Any], said: tuple[Any, ...], feedback: str, pin: bool) -> dict[str, Any]:
    told = {"role": "user", "content": feedback}
    made = {**request, "messages": [*request.get("messages", []), *said, told]}
    return {**made, "tool_choice": "required"} if pin else made


def said(frames: list[sse.Frame]) -> tuple[Any, ...]:
    pieces = []
    for frame in frames:
        text = at(frame.json(), ("choices", 0, "delta", "content"))
        pieces.append(text if isinstance(text, str) else "")
    text = "".join(pieces)
    return ({"role": "assistant", "content": text},) if text.strip() else ()


def said_in(body: Any) -> tuple[Any, ...]:
    return tuple({"role": "assistant", "content": text} for _, text in texts(body) if text.strip())


def _is_object(raw: str) -> bool:
    try:
        return isinstance(json.loads(raw), dict)
    except (ValueError, RecursionError):
        return False


def whole(body: Any) -> list[Change]:
    choices = listed(at(body, ("choices",)))
    return [(("choices", place, "finish_reason"), "tool_calls") for place in range(len(choices))]


def texts(body: Any) -> list[tuple[Path, str]]:
    text = at(body, ("choices", 0, "message", "content"))
    return [(("choices", 0, "message", "content"), text)] if isinstance(text, str) else []


def with_calls(body: Any, texts: dict[Path, str], calls: list[tuple[str, str, str]]) -> list[Change]:
    message = dict(body["choices"][0]["message"])
    message["content"] = texts.get(("choices", 0, "message", "content"), message.get("content")) or None
    message["tool_calls"] = [
        *(message.get("tool_calls") or []),
        *(
            {"id": f"call_{made}", "type": "function", "function": {"name": called, "arguments": arguments}}
            for made, called, arguments in calls
        ),
    ]
    return [(("choices", 0, "message"), message), (("choices", 0, "finish_reason"), "tool_calls")]


def before(frames: list[sse.Frame], key: Key) -> tuple[Any, ...]:
    return ()


def before_in(body: Any, call: Whole) -> tuple[Any, ...]:
    return ()
