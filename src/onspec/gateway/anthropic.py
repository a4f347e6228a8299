"""Anthropic Messages on the wire."""

from __future__ import annotations

import json
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
    kind_of,
    listed,
    plain,
    replayable,
)

name = "anthropic"
empty_means_object = True
"""A call without arguments streams an empty text; that is the wire's own way."""
ends_calls = True
tells_tool = True

REASONS: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


class _Stream:
    def __init__(self) -> None:
        self.calls: set[Key] = set()
        self.blocks = 0
        self.prose = False
        self.called = False

    def read(self, frame: sse.Frame) -> tuple[Mark, ...]:
        data = frame.data
        if data is None or not _worth(data, self.prose):
            return ()
        event = frame.json()
        if not isinstance(event, dict):
            return ()
        kind, index = event.get("type"), plain(event.get("index"))
        if kind == "content_block_delta":
            delta = event.get("delta")
            if not isinstance(delta, dict):
                return ()
            if (
                delta.get("type") == "input_json_delta"
                and index in self.calls
                and isinstance(delta.get("partial_json"), str)
            ):
                return (Delta(index, delta["partial_json"], ("delta", "partial_json")),)
            if delta.get("type") == "text_delta" and isinstance(delta.get("text"), str):
                return (Prose(index, delta["text"], ("delta", "text")),)
            return ()
        if kind == "content_block_start":
            self.blocks = max(self.blocks, index + 1 if isinstance(index, int) else 0)
            block = event.get("content_block")
            self.called = self.called or kind_of(block).endswith("tool_use")
            if isinstance(block, dict) and block.get("type") == "tool_use" and isinstance(block.get("name"), str):
                self.calls.add(index)
                given = json.dumps(block["input"]) if block.get("input") else ""
                return (Start(index, block["name"], ("content_block", "name"), block.get("id"), given=given),)
            return ()
        if kind == "content_block_stop":
            return (End(index),) if index in self.calls else ()
        if kind == "message_delta":
            reason = at(event, ("delta", "stop_reason"))
            marks: list[Mark] = (
                [Stopped(REASONS.get(str(reason), "other"), ((("delta", "stop_reason"), "tool_use"),))]
                if reason
                else []
            )
            return (*marks, *_usage(event, ("usage",)))
        if kind == "message_start":
            return (Begun(), *_usage(event, ("message", "usage")))
        if kind == "message_stop":
            return (Closed(),)
        return (Closed(failed=True),) if kind == "error" else ()

    def delta(self, key: Key, text: str) -> bytes:
        event = {
            "type": "content_block_delta",
            "index": key,
            "delta": {"type": "input_json_delta", "partial_json": text},
        }
        return sse.encode(event, "content_block_delta")

    def call_end(self, key: Key) -> bytes:
        return sse.encode({"type": "content_block_stop", "index": key}, "content_block_stop")

    def call(self, made: str, name: str, arguments: str) -> bytes:
        index = self.blocks
        self.blocks += 1
        block = {"type": "tool_use", "id": f"toolu_{made}", "name": name, "input": {}}
        start = {"type": "content_block_start", "index": index, "content_block": block}
        return sse.encode(start, "content_block_start") + self.delta(index, arguments) + self.call_end(index)

    def ended_with(self, frame: sse.Frame) -> list[Change]:
        return []

    def ending(self) -> bytes:
        return sse.encode({"type": "message_stop"}, "message_stop")

    def failure(self, message: str) -> bytes:
        return sse.encode({"type": "error", "error": {"type": "api_error", "message": message}}, "error")


def _worth(data: bytes, prose: bool) -> bool:
    """Whether a frame must be read; most of a reply is thinking and text, and need not be."""
    if b"_delta" not in data or b"input_json_delta" in data or b"message_delta" in data:
        return True
    return prose and b"text_delta" in data


def _usage(event: Any, path: Path) -> tuple[Usage, ...]:
    found = at(event, path)
    return (Usage(path, found),) if isinstance(found, dict) else ()


def stream() -> _Stream:
    return _Stream()


def calls(body: Any) -> list[Whole]:
    content = listed(at(body, ("content",)))
    return [
        Whole(
            block["name"],
            block.get("input") or {},
            ("content", index, "input"),
            ("content", index, "name"),
            block.get("id"),
            last=index == len(content) - 1,
        )
        for index, block in enumerate(content)
        if isinstance(block, dict) and block.get("type") == "tool_use" and isinstance(block.get("name"), str)
    ]


def called(body: Any) -> bool:
    return any(kind_of(block).endswith("tool_use") for block in listed(at(body, ("content",))))


def finish(body: Any) -> Finish:
    return REASONS.get(str(at(body, ("stop_reason",))), "other")


def usage(body: Any) -> Tokens:
    found = at(body, ("usage",))
    return found if isinstance(found, dict) else {}


def error(status: int, message: str) -> bytes:
    kinds = {
        400: "invalid_request_error",
        401: "authentication_error",
        413: "request_too_large",
        504: "timeout_error",
        529: "overloaded_error",
    }
    return json.dumps({"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}).encode()


def again(request: dict[str, Any], call: Rejected, strict: bool, pin: bool) -> dict[str, Any]:
    call_id = call.call_id or "toolu_onspec"
    block = {"type": "tool_use", "id": call_id, "name": call.name, "input": replayable(call.raw)}
    result = {"type": "tool_result", "tool_use_id": call_id, "is_error": True, "content": call.feedback}
    messages = [
        *request.get("messages", []),
        {"role": "assistant", "content": [*call.before, block]},
        {"role": "user", "content": [result]},
    ]
    made = {**request, "messages": messages}
    if pin and at(request, ("thinking", "type")) != "enabled":
        made["tool_choice"] = {"type": "tool", "name": call.name, "disable_parallel_tool_use": True}
    if strict:
        made["tools"] = [
            {**tool, "strict": True}
            if isinstance(tool, dict) and tool.get("name") == call.name and "input_schema" in tool
            else tool
            for tool in request.get("tools", [])
        ]
    return made


def urged(request: dict[str, Any], said: tuple[Any, ...], feedback: str, pin: bool) -> dict[str, Any]:
    replayed = [{"role": "assistant", "content": list(said)}] if said else []
    told = {"role": "user", "content": feedback}
    made = {**request, "messages": [*request.get("messages", []), *replayed, told]}
    if pin and at(request, ("thinking", "type")) != "enabled":
        made["tool_choice"] = {"type": "any", "disable_parallel_tool_use": True}
    return made


def said(frames: list[sse.Frame]) -> tuple[Any, ...]:
    return before(frames, None)


def said_in(body: Any) -> tuple[Any, ...]:
    return _kept(listed(at(body, ("content",))))


def whole(body: Any) -> list[Change]:
    return [(("stop_reason",), "tool_use")]


def texts(body: Any) -> list[tuple[Path, str]]:
    return [
        (("content", index, "text"), block["text"])
        for index, block in enumerate(listed(at(body, ("content",))))
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]


def with_calls(body: Any, texts: dict[Path, str], calls: list[tuple[str, str, str]]) -> list[Change]:
    content = [
        {**block, "text": texts[place]} if (place := ("content", index, "text")) in texts else block
        for index, block in enumerate(body["content"])
    ]
    content = [block for block in content if kind_of(block) != "text" or at(block, ("text",)) != ""]
    for made, called, arguments in calls:
        content.append({"type": "tool_use", "id": f"toolu_{made}", "name": called, "input": json.loads(arguments)})
    return [(("content",), content), *whole(body)]


def before_in(body: Any, call: Whole) -> tuple[Any, ...]:
    return _kept(listed(at(body, ("content",)))[: int(call.path[1])])


def _kept(blocks: list[Any]) -> tuple[Any, ...]:
    return tuple(block for block in blocks if isinstance(block, dict) and block.get("type") in KEPT and _says(block))


def before(frames: list[sse.Frame], key: Key) -> tuple[Any, ...]:
    blocks: dict[Any, dict[str, Any]] = {}
    for frame in frames:
        event = frame.json()
        index = plain(event.get("index")) if isinstance(event, dict) else None
        if index is None or index == key:
            continue
        if event.get("type") == "content_block_start" and isinstance(event.get("content_block"), dict):
            blocks[index] = dict(event["content_block"])
        elif event.get("type") == "content_block_delta" and index in blocks and isinstance(event.get("delta"), dict):
            for field in ("text", "thinking", "signature"):
                if isinstance(event["delta"].get(field), str):
                    blocks[index][field] = str(blocks[index].get(field) or "") + event["delta"][field]
    return _kept(list(blocks.values()))


KEPT = ("text", "thinking", "redacted_thinking")
"""Blocks that are replayed before a rejected call; thinking goes back byte for byte, with its signature."""


def _says(block: dict[str, Any]) -> bool:
    return block.get("type") != "text" or bool(str(block.get("text", "")).strip())
