"""What a Chat Completions request asks of a local model, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset
from onspec.errors import InputError
from onspec.local.chat import Event, Reply
from onspec.local.prompt import messages_of
from onspec.message import Message, Text

MOST_STOPS = 16
"""Texts that may end a reply."""

_SEEN = frozenset({"image_url", "input_image", "image", "input_audio", "audio", "file", "document", "video_url"})


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        messages: The conversation, at least one message.
        tools: Tools that may be called.
        choice: `auto`, `required`, `none`, or the name of a tool.
        budget: Most tokens of the answer.
        temperature: 0 takes the likeliest token.
        seed: Makes the answer repeatable.
        stops: Texts before which the answer's text ends.
        constrain: Whether calls must keep their contracts.
        parallel: Whether the reply may hold several calls.
        stream: Whether it is told piece by piece.
        usage: Whether a stream ends with its count of tokens.
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    choice: str
    budget: int
    temperature: float
    seed: int | None
    stops: tuple[str, ...]
    constrain: bool
    parallel: bool
    stream: bool
    usage: bool


def read(raw: bytes) -> Request:
    """A request from its bytes.

    Raises:
        InputError: It is no JSON object, or a part of it is wrong or cannot be followed here.
        SchemaError: A tool's schema is no JSON Schema.
    """
    try:
        body = orjson.loads(raw)
    except ValueError:
        raise InputError("the request is not JSON") from None
    if not isinstance(body, dict):
        raise InputError("the request is not a JSON object")
    if body.get("n") not in (None, 1):
        raise InputError("n must be 1: one answer at a time is written here")
    messages = body.get("messages")
    _text_only(messages)
    history = messages_of(messages)
    if not history:
        raise InputError("messages is empty")
    tools = tuple(Toolset.from_json(body["tools"]).values()) if body.get("tools") else ()
    choice, tools = _choice(body.get("tool_choice"), tools)
    limit = next((body[word] for word in ("max_completion_tokens", "max_tokens") if body.get(word) is not None), 512)
    options = _object(body.get("stream_options"), "stream_options")
    return Request(
        tuple(history),
        tools,
        choice,
        int(_number(limit, "max_tokens", 1)),
        float(_number(0.7 if body.get("temperature") is None else body["temperature"], "temperature", 0)),
        _seed(body.get("seed")),
        _stops(body.get("stop")),
        body.get("onspec_constrain", True) is not False,
        body.get("parallel_tool_calls") is True,
        bool(body.get("stream")),
        bool(options.get("include_usage")),
    )


def until_stopped(events: Iterator[Event], stops: tuple[str, ...], stop: Callable[[], object]) -> Iterator[Event]:
    """The events of a reply up to the first of `stops` in its text; `stop` is called when it comes.

    What may be the beginning of one is held until it is decided.
    """
    said, told, ended = "", 0, False
    for event in events:
        if isinstance(event, Text) and not ended:
            said += event.text
            found = [at for text in stops if (at := said.find(text, max(told - len(text), 0))) >= 0]
            ended = bool(found)
            upto = min(found) if found else len(said) - _begun(said, stops)
            if upto > told:
                yield Text(said[told:upto])
            told = max(told, upto)
            if ended:
                stop()
        elif isinstance(event, Reply):
            if not ended and told < len(said):
                yield Text(said[told:])
            yield replace(event, text=said[:told].strip(), finish_reason="stop") if ended else event
        elif not ended:
            if told < len(said):
                yield Text(said[told:])
                told = len(said)
            yield event


def _begun(said: str, stops: tuple[str, ...]) -> int:
    """How many characters at the end of a text may be the beginning of a stop."""
    sizes = [size for text in stops for size in range(1, len(text)) if said.endswith(text[:size])]
    return max(sizes, default=0)


def _choice(asked: Any, tools: tuple[Tool, ...]) -> tuple[str, tuple[Tool, ...]]:
    if asked is None:
        return "auto", tools
    if isinstance(asked, dict) and asked.get("type") == "allowed_tools":
        allowed = _object(asked.get("allowed_tools", asked), "allowed_tools")
        listed = allowed.get("tools")
        names = [_named(one) for one in listed] if isinstance(listed, list) else []
        known = {tool.name: tool for tool in tools}
        missing = [name for name in names if name not in known]
        if missing or not names:
            raise InputError(f"no tool is called {missing[0]!r}" if missing else "allowed_tools names no tool")
        return str(allowed.get("mode", "auto")), tuple(known[name] for name in names)
    name = _named(asked) if isinstance(asked, dict) else asked
    if not isinstance(name, str) or not name:
        raise InputError("tool_choice is auto, required, none, or names a function")
    return name, tools


def _named(choice: Any) -> Any:
    choice = _object(choice, "tool_choice")
    return _object(choice.get("function", choice), "tool_choice").get("name")


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InputError(f"{name} must be an object")
    return value


def _number(value: Any, name: str, least: int) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
        raise InputError(f"{name} must be a number, at least {least}")
    return value


def _seed(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise InputError("seed must be a whole number")
    return int(value) % 2**64


def _stops(value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value or []
    if not isinstance(texts, list) or len(texts) > MOST_STOPS or not all(isinstance(text, str) for text in texts):
        raise InputError(f"stop must be a text, or a list of up to {MOST_STOPS} texts")
    return tuple(text for text in texts if text)


def _text_only(messages: Any) -> None:
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") in _SEEN:
                raise InputError(f"a local model reads text only, not {block['type']!r}")
