"""The pieces that several formats share: messages as the OpenAI and Anthropic wires write them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from onspec.audit import Json
from onspec.message import Role, Text, Thinking
from onspec.transcripts.session import Piece, ToolCall, ToolResult, Turn, Usage, dumps
from onspec.transcripts.source import get

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "gpt": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
    "toolResult": "tool",
}
"""Names of speakers in the wild, and the role they stand for."""


def text_of(content: Json) -> str:
    """The text in a content value: a string, a list of parts with `text` or `content`, or anything else as JSON."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        if len(content) == 1:
            return _text_part(content[0])
        return "\n".join(text for text in map(_text_part, content) if text)
    if isinstance(content, dict):
        return _text_part(content) or dumps(content)
    return dumps(content)


def _text_part(part: Json) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        for key in ("text", "content", "output"):
            if isinstance(part.get(key), str):
                return str(part[key])
        if isinstance(part.get("content"), list):
            return text_of(part["content"])
    return ""


def seconds(value: Json) -> float | None:
    """Unix seconds of an ISO 8601 text, or of a number in seconds or milliseconds; None where it makes no sense."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        try:
            stamp = moment.timestamp()
        except (OverflowError, OSError, ValueError):
            return None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        stamp = value / 1000 if value > 1e11 else float(value)
    else:
        return None
    return stamp if 0 < stamp < 1e11 else None


def count(value: Json) -> int:
    """A number of tokens; 0 for anything that is none."""
    if value.__class__ is int and 0 <= value < 1_000_000_000_000:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or not 0 <= value < 1e12:
        return 0
    return int(value)


def anthropic_usage(usage: Json) -> Usage | None:
    """Usage as Anthropic's Messages API reports it."""
    if not isinstance(usage, dict) or not usage:
        return None
    return Usage(
        count(usage.get("input_tokens")),
        count(usage.get("output_tokens")),
        count(usage.get("cache_read_input_tokens")),
        count(usage.get("cache_creation_input_tokens")),
    )


def openai_usage(usage: Json) -> Usage | None:
    """Usage as OpenAI's Chat Completions or Responses APIs report it, whose input count includes the cached tokens."""
    if not isinstance(usage, dict) or not usage:
        return None
    total = count(usage.get("prompt_tokens", usage.get("input_tokens")))
    cached = count(
        get(usage, "prompt_tokens_details", "cached_tokens")
        or get(usage, "input_tokens_details", "cached_tokens")
        or usage.get("cached_input_tokens")
        or usage.get("prompt_cache_hit_tokens")
    )
    output = count(usage.get("completion_tokens", usage.get("output_tokens")))
    return Usage(max(total - cached, 0), output, min(cached, total))


def arguments_of(value: Json) -> tuple[Json, str | None]:
    """`(arguments, text)` of a call's recorded arguments: text as it is, anything else as a decoded value."""
    return (None, value) if isinstance(value, str) else (value, None)


def chat_calls(message: dict[str, Any]) -> Iterator[ToolCall]:
    """The calls in an assistant message of Chat Completions, including the old `function_call`."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        if isinstance(call.get("custom"), dict):
            custom = call["custom"]
            yield ToolCall(_name(custom), None, text_of(custom.get("input")), _id(call.get("id")), custom=True)
        elif isinstance(function, dict):
            arguments, text = arguments_of(function.get("arguments"))
            yield ToolCall(_name(function), arguments, text, _id(call.get("id")))
        elif isinstance(call.get("name") or function, str):
            arguments, text = arguments_of(call.get("arguments", call.get("args")))
            fault = call.get("parse_error")
            yield ToolCall(
                str(call.get("name") or function),
                arguments,
                text,
                _id(call.get("id")),
                fault if isinstance(fault, str) else None,
            )
    old = message.get("function_call")
    if isinstance(old, dict) and not calls and isinstance(old.get("name"), str):
        arguments, text = arguments_of(old.get("arguments"))
        yield ToolCall(old["name"], arguments, text)


def block(part: Json) -> Piece | None:
    """One content block of Anthropic's Messages API, or None for kinds that carry no text, call or result."""
    if isinstance(part, str):
        return Text(part)
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    if kind == "tool_use":
        return unparsed(part) or ToolCall(_name(part), *arguments_of(part.get("input")), _id(part.get("id")))
    if kind == "tool_result":
        return ToolResult(
            text_of(part.get("content")),
            _id(part.get("tool_use_id")),
            part.get("name") if isinstance(part.get("name"), str) else None,
            part.get("is_error") is True,
        )
    if kind == "thinking":
        signature = part.get("signature")
        return Thinking(text_of(part.get("thinking")), signature if isinstance(signature, str) else None)
    if kind == "redacted_thinking":
        data = part.get("data")
        return Thinking("", data if isinstance(data, str) else None)
    if isinstance(part.get("text"), str):
        return Text(part["text"])
    return None


STAND_INS = ("__unparsedToolInput", "INVALID_JSON", "_raw", "__unparsed", "rawInputText")
"""Keys under which harnesses put text that they could not read, in the place of the arguments."""


def unparsed(part: dict[str, Any]) -> ToolCall | None:
    """The call in a `tool_use` block whose input is a harness's stand-in for text that it could not read."""
    given = part.get("input")
    if not isinstance(given, dict) or not 0 < len(given) <= 2:
        return None
    for key in STAND_INS:
        held = given.get(key)
        if held is not None:
            raw = held.get("raw") if isinstance(held, dict) else held
            whole = isinstance(raw, str) and get(held, "len") in (None, len(raw), len(raw.encode("utf-8", "replace")))
            return ToolCall(_name(part), given, raw if whole else None, _id(part.get("id")), "not JSON", stand_in=True)
    return None


def message_turn(message: dict[str, Any], line: int = 0, **more: Any) -> Turn | None:
    """One message of Chat Completions or of Anthropic's Messages API as a turn; None where it is no message."""
    role = ROLES.get(str(message.get("role") or message.get("from") or ""))
    if role is None:
        return None
    content = message.get("content", message.get("value"))
    parts: list[Piece] = []
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(reasoning, str) and reasoning:
        parts.append(Thinking(reasoning))
    if role == "tool":
        parts.append(
            ToolResult(
                text_of(content),
                _id(message.get("tool_call_id")),
                message.get("name") if isinstance(message.get("name"), str) else None,
                is_flagged(message),
            )
        )
    elif isinstance(content, list):
        parts.extend(piece for piece in map(block, content) if piece is not None)
    elif content:
        parts.append(Text(text_of(content)))
    if role == "assistant":
        parts.extend(chat_calls(message))
    if role == "user" and parts and all(isinstance(piece, ToolResult) for piece in parts):
        role = "tool"
    return Turn(role, tuple(parts), line=line, **more)


def is_flagged(message: dict[str, Any]) -> bool:
    """Whether a tool message says itself that it is an error."""
    return message.get("is_error") is True or message.get("isError") is True or message.get("status") == "error"


def response_item(item: dict[str, Any], line: int = 0, **more: Any) -> Turn | None:
    """One item of OpenAI's Responses API as a turn; None for kinds that carry no text, call or result."""
    kind = item.get("type")
    if kind == "function_call":
        arguments, text = arguments_of(item.get("arguments"))
        call = ToolCall(_name(item), arguments, text, _id(item.get("call_id") or item.get("id")))
        return Turn("assistant", (call,), line=line, **more)
    if kind == "custom_tool_call":
        given = text_of(item.get("input"))
        call = ToolCall(_name(item), None, given, _id(item.get("call_id")), custom=True)
        return Turn("assistant", (call,), line=line, **more)
    if kind in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
        content, failed = output_of(item.get("output"))
        result = ToolResult(content, _id(item.get("call_id")), None, failed)
        return Turn("tool", (result,), line=line, **more)
    if kind == "local_shell_call":
        call = ToolCall("local_shell", item.get("action"), None, _id(item.get("call_id") or item.get("id")))
        return Turn("assistant", (call,), line=line, **more)
    if kind == "reasoning":
        signature = item.get("encrypted_content")
        thinking = Thinking(
            text_of(item.get("content")) or text_of(item.get("summary")),
            signature if isinstance(signature, str) else None,
        )
        return Turn("assistant", (thinking,), line=line, **more)
    if kind in (None, "message") and "role" in item:
        return message_turn(item, line, **more)
    return None


def output_of(output: Json) -> tuple[str, bool]:
    """The text of a call's output, and whether the output itself says that the call failed.

    The output may be a text, a JSON text `{"output", "metadata"}`, a list of content parts, or an object with
    `content` and `success`.
    """
    if isinstance(output, dict):
        inner = output.get("content", output.get("output", output.get("body")))
        return text_of(inner if inner is not None else output), output.get("success") is False
    return text_of(output), False


def tool_list(value: Json) -> tuple[Json, ...]:
    """The definitions in a request's `tools`, with those inside namespaces; () where there are none."""
    found: list[Json] = []
    for tool in value if isinstance(value, list) else ():
        if isinstance(tool, dict) and isinstance(tool.get("tools"), list):
            found.extend(inner for inner in tool["tools"] if isinstance(inner, dict))
        elif isinstance(tool, dict):
            found.append(tool)
    return tuple(found)


def _name(holder: dict[str, Any]) -> str:
    name = holder.get("name")
    return name if isinstance(name, str) else ""


def _id(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
