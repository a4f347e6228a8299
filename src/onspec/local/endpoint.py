"""A local model behind the interface of OpenAI Chat Completions, as an ASGI application without dependencies."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from typing import Any

import orjson

from onspec.errors import InputError, OnspecError
from onspec.local.chat import Chat, Event, Reply
from onspec.local.live import ArgumentsPiece, CallBegun
from onspec.local.models import open_model
from onspec.local.request import Request, read, until_stopped
from onspec.message import Text, Thinking

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

    @property
    def told(self) -> str:
        """How the model is spoken to, in words."""
        return self._chat.speech.how

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
        gone = threading.Event()
        try:
            request = read(await _body(receive))
            events = self._events(request, gone)
            watcher = asyncio.create_task(_watch(receive, gone))
            try:
                first = await anext(events)
                head = {"id": f"chatcmpl-{time.time_ns():x}", "created": int(time.time()), "model": self._name}
                if request.stream:
                    await _stream(send, head, _chained(first, events), request.usage, gone)
                    return
                reply = first
                async for event in events:
                    reply = event
                if not watcher.done():  # Whoever asked is still there.
                    assert isinstance(reply, Reply)
                    await _json(send, 200, {**head, "object": "chat.completion", **_completion(reply)})
            finally:
                gone.set()
                watcher.cancel()
                await events.aclose()
        except OnspecError as error:
            await _error(send, 400, str(error))

    async def _events(self, request: Request, gone: threading.Event) -> AsyncGenerator[Event]:
        """What the model writes, as it writes it: the generation runs in a thread of its own and ends, after the token
        at hand, once `gone` is set.
        """
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Event | Exception | None] = asyncio.Queue()

        def tell(item: Event | Exception | None) -> None:
            with contextlib.suppress(RuntimeError):  # The loop is closed: nobody listens any more.
                loop.call_soon_threadsafe(queue.put_nowait, item)

        def generate() -> None:
            try:
                for event in self._run(request, gone.is_set):
                    tell(event)
            except Exception as error:  # Handed to the one who asked.
                tell(error)
            finally:
                tell(None)

        running = loop.run_in_executor(None, generate)
        try:
            while (item := await queue.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            gone.set()
            await running

    def _run(self, request: Request, cancelled: Callable[[], bool]) -> Iterator[Event]:
        stopped = threading.Event()
        events = self._chat.stream(
            request.messages,
            request.tools,
            request.choice,
            budget=request.budget,
            temperature=request.temperature,
            seed=request.seed,
            constrain=request.constrain,
            parallel=request.parallel,
            cancelled=lambda: cancelled() or stopped.is_set(),
        )
        return until_stopped(events, request.stops, stopped.set) if request.stops else events


def endpoint(model: str, *, capacity: int = 8192, threads: int = 1, dialect: str | None = None) -> Endpoint:
    """The application for a model by name or path, ready for any ASGI server.

    Args:
        model: As for `onspec.local.models.open_model`.
        capacity: Tokens of context.
        threads: Of the model.
        dialect: The dialect of its calls, where its chat template does not tell.

    Raises:
        InputError: There is no such model.
        MissingExtra: No runtime is installed.
    """
    return Endpoint(Chat(open_model(model, capacity=capacity, threads=threads), dialect), model)


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
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
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


async def _watch(receive: Receive, gone: threading.Event) -> None:
    """Sets `gone` when the client goes away."""
    while (await receive())["type"] != "http.disconnect":
        pass
    gone.set()


async def _chained(first: Event, rest: AsyncIterator[Event]) -> AsyncIterator[Event]:
    yield first
    async for event in rest:
        yield event


async def _stream(
    send: Send, head: dict[str, Any], events: AsyncIterator[Event], usage: bool, gone: threading.Event
) -> None:
    headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def say(delta: dict[str, Any], reason: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        await _event(send, orjson.dumps({**head, "object": "chat.completion.chunk", "choices": [choice]}))

    await say({"role": "assistant", "content": ""})
    try:
        async for event in events:
            if gone.is_set():
                return
            if isinstance(event, Reply):
                await say({}, event.finish_reason)
                if usage:
                    last = {**head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(event)}
                    await _event(send, orjson.dumps(last))
            else:
                await say(_delta(event))
    except OnspecError as error:
        await _event(send, orjson.dumps({"error": {"message": str(error), "type": "server_error"}}))
    await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


def _delta(event: Text | Thinking | CallBegun | ArgumentsPiece) -> dict[str, Any]:
    if isinstance(event, Text):
        return {"content": event.text}
    if isinstance(event, Thinking):
        return {"reasoning_content": event.text}
    if isinstance(event, CallBegun):
        function = {"name": event.name, "arguments": ""}
        return {"tool_calls": [{"index": event.index, "id": event.id, "type": "function", "function": function}]}
    return {"tool_calls": [{"index": event.index, "function": {"arguments": event.text}}]}


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
        try:
            event = await receive()
        except asyncio.CancelledError:  # a second Ctrl-C: the server ends without asking
            return
        if event["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        elif event["type"] == "lifespan.shutdown":
            await send({"type": "lifespan.shutdown.complete"})
            return
