"""OpenAI Chat Completions, as a provider writes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onspec.providers.provider import INPUT_TOKENS, OUTPUT_TOKENS, Event
from onspec.providers.script import Block, Turn

name = "chat"
path = "/v1/chat/completions"
REASONS = {"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length"}
USAGE = {
    "prompt_tokens": INPUT_TOKENS,
    "completion_tokens": OUTPUT_TOKENS,
    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
}
DONE = "[DONE]"
CREATED = 1_767_000_000


def events(turn: Turn, request: dict[str, Any], made: str) -> Iterator[Event]:
    """A turn as streamed chunks; the last is the text `[DONE]`."""

    def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return None, {**head, "choices": [choice], **more}

    head = {
        "id": f"chatcmpl-{made}",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": request.get("model", "scripted"),
    }
    yield chunk({"role": "assistant", "content": ""})
    number = 0
    for block in turn.blocks:
        if block.type in ("text", "thinking"):
            field = "content" if block.type == "text" else "reasoning_content"
            for piece in block.pieces():
                yield chunk({field: piece})
            continue
        part, field = _part(block)
        call = {
            "index": number,
            "id": block.id or f"call_{made}_{number}",
            "type": part,
            part: {"name": block.name, field: ""},
        }
        yield chunk({"tool_calls": [call]})
        for piece in block.pieces():
            yield chunk({"tool_calls": [{"index": number, part: {field: piece}}]})
        number += 1
    yield chunk({}, REASONS[turn.reason])
    if (request.get("stream_options") or {}).get("include_usage"):
        yield None, {**head, "choices": [], "usage": USAGE}
    yield None, DONE


def whole(turn: Turn, request: dict[str, Any], made: str) -> dict[str, Any]:
    """A turn as one body."""
    calls: list[dict[str, Any]] = []
    for block in turn.blocks:
        if "tool" in block.type:
            part, field = _part(block)
            calls.append(
                {
                    "id": block.id or f"call_{made}_{len(calls)}",
                    "type": part,
                    part: {"name": block.name, field: block.text},
                }
            )
    text = "".join(block.text for block in turn.blocks if block.type == "text")
    message = {
        "role": "assistant",
        "content": text or None,
        "refusal": None,
        **({"tool_calls": calls} if calls else {}),
    }
    return {
        "id": f"chatcmpl-{made}",
        "object": "chat.completion",
        "created": CREATED,
        "model": request.get("model", "scripted"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": REASONS[turn.reason]}],
        "usage": USAGE,
    }


def _part(block: Block) -> tuple[str, str]:
    return ("custom", "input") if block.type == "custom_tool" else ("function", "arguments")
