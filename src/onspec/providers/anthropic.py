"""Anthropic Messages, as a provider writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from onspec.providers.provider import INPUT_TOKENS, OUTPUT_TOKENS, Event
from onspec.providers.script import Turn

name = "anthropic"
path = "/v1/messages"


def events(turn: Turn, request: dict[str, Any], made: str) -> Iterator[Event]:
    """A turn as streamed events. `made` makes its ids unique."""
    used = {
        "input_tokens": INPUT_TOKENS,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 1,
    }
    message = {
        "id": f"msg_{made}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "scripted"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": used,
    }
    yield _event("message_start", message=message)
    yield _event("ping")
    for index, block in enumerate(turn.blocks):
        if block.type == "text":
            yield _event("content_block_start", index=index, content_block={"type": "text", "text": ""})
            deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": piece} for piece in block.pieces()]
        elif block.type == "thinking":
            yield _event(
                "content_block_start", index=index, content_block={"type": "thinking", "thinking": "", "signature": ""}
            )
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in block.pieces()]
            deltas.append({"type": "signature_delta", "signature": block.signature})
        else:
            used_id = block.id or f"toolu_{made}_{index}"
            yield _event(
                "content_block_start",
                index=index,
                content_block={"type": "tool_use", "id": used_id, "name": block.name, "input": {}},
            )
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *block.pieces()]]
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    yield _event(
        "message_delta",
        delta={"stop_reason": turn.reason, "stop_sequence": None},
        usage={"output_tokens": OUTPUT_TOKENS},
    )
    yield _event("message_stop")


def whole(turn: Turn, request: dict[str, Any], made: str) -> dict[str, Any]:
    """A turn as one body. Arguments that are not JSON cannot be carried here; they become `{"unparsed": text}`."""
    content: list[dict[str, Any]] = []
    for index, block in enumerate(turn.blocks):
        if block.type == "text":
            content.append({"type": "text", "text": block.text})
        elif block.type == "thinking":
            content.append({"type": "thinking", "thinking": block.text, "signature": block.signature})
        else:
            content.append(
                {
                    "type": "tool_use",
                    "id": block.id or f"toolu_{made}_{index}",
                    "name": block.name,
                    "input": _object(block.text),
                }
            )
    return {
        "id": f"msg_{made}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "scripted"),
        "content": content,
        "stop_reason": turn.reason,
        "stop_sequence": None,
        "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS},
    }


def _event(kind: str, **data: Any) -> Event:
    return kind, {"type": kind, **data}


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {"unparsed": text} if text.strip() else {}
