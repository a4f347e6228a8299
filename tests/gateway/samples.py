"""Streamed replies as providers send them, whole and broken: bytes by name."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from onspec.providers import PROVIDERS
from onspec.providers.script import Block, Turn
from tests.gateway.rig import call, says

GOOD = call("get_weather", '{"city": "Z\\u00fcrich", "days": 3}', 5)
TURNS: dict[str, Turn] = {
    "text": says(Block("text", "Just text, with ☀️ in it.")),
    "two_calls": says(
        Block("thinking", "Two cities."), Block("text", "Both."), GOOD, call("get_weather", '{"city":"Oslo"}', 0)
    ),
    "no_arguments": says(call("now", "{}")),
    "cut_by_length": says(
        Block("text", "Writing."), call("make_file", '{"filename": "a", "lines": ["one", "tw'), stop="max_tokens"
    ),
    "not_json": says(call("make_file", '{"filename": "x = "1"", "lines": []}')),
    "nothing": says(),
}


def encoded(api: str, turn: Turn) -> bytes:
    """A turn as the bytes of one API."""
    events = PROVIDERS[api].events(turn, {"model": "m-1", "stream_options": {"include_usage": True}}, "sample")
    return b"".join(_event(name, data) for name, data in events)


def _event(name: str | None, data: Any) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def _anthropic(*events: dict[str, Any]) -> bytes:
    usage = {"input_tokens": 9, "output_tokens": 1, "service_tier": "standard"}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    first = {"type": "message_start", "message": message}
    return b"".join(_event(event["type"], event) for event in (first, *events))


def _start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def _end(reason: str, **more: Any) -> list[dict[str, Any]]:
    delta = {"stop_reason": reason, "stop_sequence": None, **more}
    return [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 40}}, {"type": "message_stop"}]


def _chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    return _event(
        None,
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m-1",
            "choices": [choice],
            "usage": None,
            **more,
        },
    )


ODD: dict[str, tuple[str, bytes]] = {
    "anthropic_omitted_thinking": (
        "anthropic",
        _anthropic(
            _start(0, type="thinking", thinking="", signature=""),
            {"type": "ping"},
            _delta(0, type="signature_delta", signature="c2ln"),
            _stop(0),
            _start(1, type="redacted_thinking", data="cmVk"),
            _stop(1),
            _start(2, type="tool_use", id="toolu_1", name="list_files", caller={"type": "direct"}, input={}),
            _delta(2, type="input_json_delta", partial_json=""),
            _delta(2, type="input_json_delta", partial_json="{}"),
            _stop(2),
            *_end("tool_use"),
        ),
    ),
    "anthropic_call_without_any_text": (
        "anthropic",
        _anthropic(
            _start(0, type="tool_use", id="toolu_1", name="now", input={}),
            _delta(0, type="input_json_delta", partial_json=""),
            _stop(0),
            *_end("tool_use"),
        ),
    ),
    "anthropic_error_after_200": (
        "anthropic",
        _anthropic(
            _start(0, type="text", text=""),
            _delta(0, type="text_delta", text="Hel"),
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ),
    ),
    "anthropic_refusal": (
        "anthropic",
        _anthropic(
            _start(0, type="text", text=""),
            _stop(0),
            *_end("refusal", stop_details={"type": "refusal", "category": None}),
        ),
    ),
    "anthropic_cut_without_block_stop": (
        "anthropic",
        _anthropic(
            _start(0, type="tool_use", id="toolu_1", name="make_file", input={}),
            _delta(0, type="input_json_delta", partial_json='{"filename": "a", "lines": ["on'),
            *_end("max_tokens"),
        ),
    ),
    "anthropic_padded_and_unknown": (
        "anthropic",
        _anthropic(
            _start(0, type="text", text=""),
            _delta(0, type="text_delta", text="x"),
            _delta(0, type="citations_delta", citation={"a": 1}),
            _stop(0),
            {"type": "brand_new", "x": 1},
            *_end("end_turn"),
        ).replace(b'"text":"x"}}', b'"text":"x"}     }'),
    ),
    "chat_custom_call": (
        "chat",
        _chunk({"role": "assistant", "content": None})
        + _chunk(
            {
                "tool_calls": [
                    {"index": 0, "id": "call_1", "type": "custom", "custom": {"name": "code_exec", "input": ""}}
                ]
            }
        )
        + _chunk({"tool_calls": [{"index": 0, "custom": {"input": 'print("hi'}}]}, obfuscation="abc")
        + _chunk({"tool_calls": [{"index": 0, "custom": {"input": '")'}}]})
        + _chunk({}, "tool_calls")
        + b"data: [DONE]\n\n",
    ),
    "chat_interleaved_calls_in_one_chunk": (
        "chat",
        _chunk({"role": "assistant", "content": ""})
        + _chunk(
            {
                "tool_calls": [
                    {
                        "index": n,
                        "id": f"call_{n}",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": ""},
                    }
                    for n in (0, 1)
                ]
            }
        )
        + _chunk({"tool_calls": [{"index": n, "function": {"arguments": '{"city":'}} for n in (0, 1)]})
        + _chunk({"tool_calls": [{"index": n, "function": {"arguments": '"Oslo"}'}} for n in (1, 0)]})
        + _chunk({}, "tool_calls")
        + b"data: [DONE]\n\n",
    ),
    "chat_reasoning_field": (
        "chat",
        _chunk({"role": "assistant", "content": ""})
        + _chunk({"reasoning_content": "hm"})
        + _chunk({"content": "x"})
        + _chunk({}, "stop"),
    ),
    "chat_error_after_200": (
        "chat",
        _chunk({"role": "assistant", "content": "He"})
        + _event(None, {"error": {"message": "broke", "type": "server_error"}}),
    ),
    "chat_refusal": (
        "chat",
        _chunk({"role": "assistant", "content": "", "refusal": None})
        + _chunk({"refusal": "No."})
        + _chunk({}, "stop")
        + b"data: [DONE]\n\n",
    ),
}


def all_samples() -> dict[str, tuple[str, bytes]]:
    """Every sample: its API and its bytes. `ONSPEC_CASES` may name a folder whose `streams/*.sse` are added."""
    found = {f"{api}_{name}": (api, encoded(api, turn)) for api in PROVIDERS for name, turn in TURNS.items()} | ODD
    patch = Turn((Block("custom_tool", "*** Begin Patch\n*** End Patch\n", name="apply_patch", chunk=4),))
    found["responses_custom_call"] = ("responses", encoded("responses", patch))
    broken = encoded("responses", TURNS["text"]).split(b"event: response.completed")[0]
    found["responses_error"] = (
        "responses",
        broken
        + _event(
            "error", {"type": "error", "code": "server_error", "message": "broke", "param": None, "sequence_number": 99}
        ),
    )
    folder = os.environ.get("ONSPEC_CASES")
    for path in sorted(Path(folder).glob("streams/*.sse")) if folder else ():
        api = path.name.split("_")[0] if path.name.startswith("anthropic") else path.name.split("_")[1]
        found[path.stem] = (api, path.read_bytes())
    return found


SAMPLES = all_samples()
