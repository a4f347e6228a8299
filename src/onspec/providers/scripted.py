"""A provider that says exactly what a script tells it, on every wire, with every fault."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from onspec.providers import spoken_at
from onspec.providers.provider import Provider
from onspec.providers.script import Block, Script, Turn

STALL_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came.

    Attributes:
        body: The decoded JSON, or None.
        turn: The number of the turn that answered it; None where it took none.
    """

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    body: Any
    turn: int | None = None


class Scripted:
    """An HTTP/1.1 server on loopback that plays a script.

    Use as an asynchronous context manager; `url` is its address, `requests` what it was asked, `open` and
    `most_open` how many connections there are and were, `vanished` how many clients left during a reply. `sent` is told
    the size of each piece of a stream before it is sent.
    """

    def __init__(self, script: Script, port: int = 0, seen: Callable[[Request], None] | None = None) -> None:
        self.script = script
        self.requests: list[Request] = []
        self.open = 0
        self.most_open = 0
        self.vanished = 0
        self.sent: Callable[[int], None] = lambda size: None
        self._port = port
        self._seen = seen
        self._next = 0
        self._made = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Scripted:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, backlog=4096)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def forever(self) -> None:
        """Serve until cancelled."""
        assert self._server is not None
        await self._server.serve_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            while (request := await _read(reader)) is not None:
                if not await self._answer(request, writer, reader):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.open -= 1
            writer.close()

    def _pick(self, request: Request) -> tuple[int | None, Turn]:
        body = request.body if isinstance(request.body, dict) else {}
        inputs = body.get("input")
        extra = any(
            isinstance(item, dict) and item.get("type") == "additional_tools"
            for item in inputs or []
            if not isinstance(inputs, str)
        )
        if not (self.script.every or body.get("tools") or extra):
            return None, Turn((Block("text", self.script.side_text),))
        number = self._next
        self._next += 1
        turns = self.script.turns
        if self.script.loop and turns:
            return number, turns[number % len(turns)]
        return number, turns[number] if number < len(turns) else Turn((Block("text", self.script.tail_text),))

    async def _answer(self, request: Request, writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> bool:
        """Answer one request; False ends the connection."""
        path = request.path.partition("?")[0].rstrip("/")
        wire = spoken_at(request.method, path)
        if wire is None:
            self._note(request, None)
            return await _send(writer, *self._other(request, path))
        number, turn = self._pick(request)
        self._note(request, number)
        self._made += 1
        if turn.delay_ms:
            await asyncio.sleep(turn.delay_ms / 1000)
        body = request.body if isinstance(request.body, dict) else {}
        made = f"{self._made:06d}"
        if turn.status != 200 or turn.error is not None:
            error = (
                turn.error
                if turn.error is not None
                else {"type": "error", "error": {"type": "api_error", "message": "scripted"}}
            )
            return await _send(
                writer, turn.status, json.dumps(error).encode(), {"content-type": "application/json", **turn.headers}
            )
        if body.get("stream"):
            return await self._stream(wire, turn, body, made, writer, reader)
        data = turn.raw if turn.raw is not None else json.dumps(wire.whole(turn, body, made)).encode()
        headers = {"content-type": "application/json", "request-id": f"req_{made}", **turn.headers}
        if turn.gzip:
            data, headers["content-encoding"] = gzip.compress(data), "gzip"
        if turn.cut_after_bytes is not None:
            await _send(writer, 200, data[: turn.cut_after_bytes], headers, len(data))
            return await self._end(turn, writer)
        return await _send(writer, 200, data, headers)

    def _note(self, request: Request, number: int | None) -> None:
        request = Request(request.method, request.path, request.headers, request.raw, request.body, number)
        self.requests.append(request)
        if self._seen is not None:
            self._seen(request)

    def _other(self, request: Request, path: str) -> tuple[int, bytes, dict[str, str]]:
        kind = {"content-type": "application/json", "request-id": "req_scripted"}
        if path.endswith("/count_tokens"):
            return 200, json.dumps({"input_tokens": max(1, len(request.raw) // 4)}).encode(), kind
        if path.endswith("/models"):
            return 200, b'{"object":"list","data":[{"id":"scripted","object":"model"}]}', kind
        if path in ("", "/echo"):
            return 200, request.raw or b"{}", {"content-type": request.headers.get("content-type", "application/json")}
        return 404, b'{"error":{"message":"no such path"}}', kind

    async def _stream(
        self,
        wire: Provider,
        turn: Turn,
        body: dict[str, Any],
        made: str,
        writer: asyncio.StreamWriter,
        reader: asyncio.StreamReader,
    ) -> bool:
        headers = {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "request-id": f"req_{made}",
        }
        headers |= {"transfer-encoding": "chunked", **turn.headers}
        pack = zlib.compressobj(wbits=31) if turn.gzip else None
        if pack is not None:
            headers["content-encoding"] = "gzip"
        writer.write(_head(200, headers))
        gone = asyncio.create_task(_gone(reader, writer))
        sent = 0
        try:
            for index, data in enumerate(_pieces(wire, turn, body, made)):
                if turn.cut_after_events is not None and index >= turn.cut_after_events:
                    return await self._end(turn, writer)
                if turn.event_ms:
                    await asyncio.sleep(turn.event_ms / 1000)
                if gone.done():
                    self.vanished += 1
                    return False
                data = data if pack is None else pack.compress(data) + pack.flush(zlib.Z_SYNC_FLUSH)
                if turn.cut_after_bytes is not None and sent + len(data) > turn.cut_after_bytes:
                    _chunk(writer, data[: turn.cut_after_bytes - sent])
                    await writer.drain()
                    return await self._end(turn, writer)
                sent += len(data)
                self.sent(len(data))
                _chunk(writer, data)
                await writer.drain()
            if pack is not None:
                _chunk(writer, pack.flush())
            if turn.stall:
                await asyncio.wait([gone], timeout=STALL_SECONDS)
                self.vanished += 1
                return False
            writer.write(b"0\r\n\r\n")
            await writer.drain()
            return True
        finally:
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await gone

    async def _end(self, turn: Turn, writer: asyncio.StreamWriter) -> bool:
        await writer.drain()
        if turn.stall:
            await asyncio.sleep(STALL_SECONDS)
        if turn.reset:
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False


def _pieces(wire: Provider, turn: Turn, body: dict[str, Any], made: str) -> Iterator[bytes]:
    if turn.raw is not None:
        size = turn.chunk_bytes or max(1, len(turn.raw))
        yield from (turn.raw[index : index + size] for index in range(0, len(turn.raw), size))
        return
    for number in range(turn.keepalives):
        yield f": keepalive {number}\n\n".encode()
    for name, data in wire.events(turn, body, made):
        text = data if isinstance(data, str) else json.dumps(data)
        encoded = (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()
        size = turn.chunk_bytes or len(encoded)
        yield from (encoded[index : index + size] for index in range(0, len(encoded), size))


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = [*first.split(" ", 2), "", ""][:3]
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    if "chunked" in headers.get("transfer-encoding", "").lower():
        raw = b""
        while size := int((await reader.readline()).split(b";")[0], 16):
            raw += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        raw = await reader.readexactly(int(headers.get("content-length") or 0))
    try:
        body = json.loads(raw.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        body = None
    return Request(method, path, headers, raw, body)


async def _gone(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Returns when the client has closed its side. Clients do not pipeline, so nothing may come before that."""
    with contextlib.suppress(ConnectionError):
        while not reader.at_eof():
            await asyncio.sleep(0.02)


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    if data:
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))


async def _send(
    writer: asyncio.StreamWriter, status: int, body: bytes, headers: dict[str, str], length: int | None = None
) -> bool:
    writer.write(_head(status, {**headers, "content-length": str(len(body) if length is None else length)}) + body)
    await writer.drain()
    return True
