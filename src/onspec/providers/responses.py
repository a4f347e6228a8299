"""OpenAI Responses, as a provider writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

from onspec.providers.provider import INPUT_TOKENS, OUTPUT_TOKENS, Event
from onspec.providers.script import Block, Turn

name = "responses"
path = "/v1/responses"
CREATED = 1_767_000_000
USAGE = {
    "input_tokens": INPUT_TOKENS,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": OUTPUT_TOKENS,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
}


def events(turn: Turn, request: dict[str, Any], made: str) -> Iterator[Event]:
    """A turn as streamed events."""
    numbers = count()

    def event(kind: str, **data: Any) -> Event:
        return kind, {"type": kind, "sequence_number": next(numbers), **data}

    started = _response(request, made, "in_progress", [])
    yield event("response.created", response=started)
    yield event("response.in_progress", response=started)
    output = []
    for index, block in enumerate(turn.blocks):
        item = _item(block, f"{made}_{index}", _is_cut(turn, index))
        output.append(item)
        place = {"item_id": item["id"], "output_index": index}
        if block.type == "text":
            part = item["content"][0]
            yield event(
                "response.output_item.added", output_index=index, item={**item, "status": "in_progress", "content": []}
            )
            yield event("response.content_part.added", **place, content_index=0, part={**part, "text": ""})
            for piece in block.pieces():
                yield event("response.output_text.delta", **place, content_index=0, delta=piece, logprobs=[])
            yield event("response.output_text.done", **place, content_index=0, text=block.text, logprobs=[])
            yield event("response.content_part.done", **place, content_index=0, part=part)
        elif block.type == "thinking":
            part = item["summary"][0]
            yield event("response.output_item.added", output_index=index, item={**item, "summary": []})
            yield event("response.reasoning_summary_part.added", **place, summary_index=0, part={**part, "text": ""})
            for piece in block.pieces():
                yield event("response.reasoning_summary_text.delta", **place, summary_index=0, delta=piece)
            yield event("response.reasoning_summary_text.done", **place, summary_index=0, text=block.text)
            yield event("response.reasoning_summary_part.done", **place, summary_index=0, part=part)
        else:
            kind, field = (
                ("function_call_arguments", "arguments")
                if block.type == "tool"
                else ("custom_tool_call_input", "input")
            )
            yield event(
                "response.output_item.added", output_index=index, item={**item, "status": "in_progress", field: ""}
            )
            for piece in block.pieces():
                yield event(f"response.{kind}.delta", **place, delta=piece)
            if item["status"] == "completed":
                named = {"name": block.name} if block.type == "tool" else {}
                yield event(f"response.{kind}.done", **place, **named, **{field: block.text})
        yield event("response.output_item.done", output_index=index, item=item)
    if turn.reason == "max_tokens":
        yield event("response.incomplete", response=_response(request, made, "incomplete", output))
    else:
        yield event("response.completed", response=_response(request, made, "completed", output))


def whole(turn: Turn, request: dict[str, Any], made: str) -> dict[str, Any]:
    """A turn as one body."""
    output = [_item(block, f"{made}_{index}", _is_cut(turn, index)) for index, block in enumerate(turn.blocks)]
    return _response(request, made, "incomplete" if turn.reason == "max_tokens" else "completed", output)


def _response(request: dict[str, Any], made: str, status: str, output: list[Any]) -> dict[str, Any]:
    return {
        "id": f"resp_{made}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": None,
        "model": request.get("model", "scripted"),
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": request.get("tool_choice", "auto"),
        "tools": [],
        "temperature": 1.0,
        "top_p": 1.0,
        "metadata": {},
        "text": {"format": {"type": "text"}},
        "truncation": "disabled",
        "usage": None if status == "in_progress" else USAGE,
        "store": False,
    }


def _is_cut(turn: Turn, index: int) -> bool:
    """Whether the token limit came inside a block: it is the last one, and not arguments that are whole."""
    if turn.reason != "max_tokens" or index < len(turn.blocks) - 1:
        return False
    if turn.blocks[index].type != "tool":
        return True
    try:
        json.loads(turn.blocks[index].text)
    except ValueError:
        return True
    return False


def _item(block: Block, made: str, cut: bool = False) -> dict[str, Any]:
    status = "incomplete" if cut else "completed"
    if block.type == "text":
        content = [{"type": "output_text", "text": block.text, "annotations": [], "logprobs": []}]
        return {"id": f"msg_{made}", "type": "message", "status": status, "role": "assistant", "content": content}
    if block.type == "thinking":
        return {
            "id": f"rs_{made}",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": block.text}],
            "encrypted_content": "Zm9v",
        }
    call: dict[str, Any] = {"status": status, "call_id": block.id or f"call_{made}", "name": block.name}
    if block.namespace:
        call["namespace"] = block.namespace
    if block.type == "custom_tool":
        return {"id": f"ctc_{made}", "type": "custom_tool_call", **call, "input": block.text}
    return {"id": f"fc_{made}", "type": "function_call", **call, "arguments": block.text}
