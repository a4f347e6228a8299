"""A local model behind the interface of OpenAI Chat Completions, as an ASGI application without dependencies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import orjson

from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset
from onspec.errors import InputError, OnspecError
from onspec.local.chat import Chat, Reply
from onspec.local.models import open_model
from onspec.local.prompt import messages_of

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BYTES = 32 * 1024 * 1024
"""Largest request."""


class Endpoint:
    """Answers `POST /v1/chat/completions` and `GET /v1/models`; calls are constrained unless the request says
    `"onspec_constrain": false`. One request at a time is run, others wait.

    Args:
        chat: The model.
        name: How the model is called in answers.
    """

    def __init__(self, chat: Chat, name: str) -> None:
        self._chat = chat
        self._name = name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        route = (scope["method"], scope["path"].rstrip("/"))
        if route == ("GET", "/v1/models"):
            model = {"id": self._name, "object": "model", "created": 0, "owned_by": "onspec"}
            await _json(send, 200, {"object": "list", "data": [model]})
        elif route == ("POST", "/v1/chat/completions"):
            await self._complete(receive, send)
        else:
            await _error(send, 404, f"there is no {scope['method']} {scope['path']} here")

    async def _complete(self, receive: Receive, send: Send) -> None:
        try:
            request = _decoded(await _body(receive))
            reply = await asyncio.to_thread(self._run, request)
        except OnspecError as error:
            await _error(send, 400, str(error))
            return
        head = {"id": f"chatcmpl-{time.time_ns():x}", "created": int(time.time()), "model": self._name}
        if request.get("stream"):
            await _stream(send, head, reply, bool((request.get("stream_options") or {}).get("include_usage")))
        else:
            await _json(send, 200, {**head, "object": "chat.completion", **_completion(reply)})

    def _run(self, request: dict[str, Any]) -> Reply:
        tools: list[Tool] = list(Toolset.from_json(request["tools"]).values()) if request.get("tools") else []
        choice = request.get("tool_choice", "auto")
        if isinstance(choice, dict):
            choice = choice.get("function", {}).get("name", choice.get("name", ""))
        limit = request.get("max_completion_tokens") or request.get("max_tokens") or 512
        temperature = request.get("temperature")
        return self._chat.reply(
            messages_of(request.get("messages")),
            tools,
            str(choice),
            budget=_number(limit, "max_tokens"),
            temperature=0.7 if temperature is None else float(_number(temperature, "temperature", whole=False)),
            seed=request.get("seed"),
            constrain=request.get("onspec_constrain", True) is not False,
        )


def endpoint(model: str, *, capacity: int = 8192, threads: int = 1) -> Endpoint:
    """The application for a model by name or path, ready for any ASGI server.

    Raises:
        InputError: There is no such model.
        MissingExtra: No runtime is installed.
    """
    return Endpoint(Chat(open_model(model, capacity=capacity, threads=threads)), model)


def _number(value: Any, name: str, whole: bool = True) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or (whole and value < 1) or value < 0:
        raise InputError(f"{name} must be a number above 0")
    return int(value) if whole else value


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        request = orjson.loads(raw)
    except ValueError:
        raise InputError("the request is not JSON") from None
    if not isinstance(request, dict):
        raise InputError("the request is not a JSON object")
    return request


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise InputError("the client went away")
        parts.append(event.get("body", b""))
        if sum(map(len, parts)) > MOST_BYTES:
            raise InputError(f"the request has more than {MOST_BYTES} bytes")
        if not event.get("more_body"):
            return b"".join(parts)


def _message(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.calls
        ]
    return message


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.tokens,
        "total_tokens": reply.prompt_tokens + reply.tokens,
    }


def _completion(reply: Reply) -> dict[str, Any]:
    choice = {"index": 0, "message": _message(reply), "finish_reason": reply.finish_reason, "logprobs": None}
    return {"choices": [choice], "usage": _usage(reply)}


async def _stream(send: Send, head: dict[str, Any], reply: Reply, usage: bool) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": ""}, None)]
    if reply.text:
        deltas.append(({"content": reply.text}, None))
    for index, call in enumerate(reply.calls):
        opened = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        deltas.append(({"tool_calls": [opened]}, None))
        deltas.append(({"tool_calls": [{"index": index, "function": {"arguments": call.arguments}}]}, None))
    deltas.append(({}, reply.finish_reason))
    for delta, reason in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        await _event(send, orjson.dumps({**head, "object": "chat.completion.chunk", "choices": [choice]}))
    if usage:
        last = {**head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(reply)}
        await _event(send, orjson.dumps(last))
    await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


async def _event(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": b"data: " + data + b"\n\n", "more_body": True})


async def _json(send: Send, status: int, document: dict[str, Any]) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps(document)})


async def _error(send: Send, status: int, message: str) -> None:
    kind = "invalid_request_error"
    await _json(send, status, {"error": {"message": message, "type": kind, "param": None, "code": None}})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        event = await receive()
        if event["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif event["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return
