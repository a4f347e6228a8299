"""HTTP/1.1 to a provider, straight on a socket: one kept-alive connection a request, bytes handed on as they arrive."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from onspec.errors import MissingExtra

try:
    import httptools
except ImportError as error:
    raise MissingExtra("httptools", "gateway") from error

HIGH_WATER = 1024 * 1024
"""Bytes that may wait for the client before the provider is not read any more."""
IDLE_SECONDS = 30.0
MAX_IDLE = 512
MAX_HEAD = 256 * 1024
MAX_HEADERS = 500

Origin = tuple[bool, str, int]
"""Whether it speaks TLS, its host and its port."""


class Lost(Exception):
    """The connection ended before the answer did. `unanswered` when not one byte of it had come."""

    def __init__(self, message: str, unanswered: bool = False) -> None:
        super().__init__(message)
        self.unanswered = unanswered


class NeedsHttp2(Exception):
    """The provider chose HTTP/2 for this origin."""


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.reused = False
        self.idle_since = 0.0
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.done = False
        self._parser: Any = None
        self._chunks: deque[bytes] = deque()
        self._waiting = 0
        self._paused = False
        self._head = 0
        self._seen = False
        self._complete_head = False
        self._keep = False
        self._framed = False
        self._surplus_seen = False
        self._fault: str | None = None
        self._waiter: asyncio.Future[None] | None = None

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self._parser is None:  # bytes that nobody asked for
            self.transport.abort()
            return
        self._seen = True
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"its answer is not HTTP ({type(error).__name__})")
            self.transport.abort()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done and self._parser is not None:
            if self._complete_head and not self._framed and error is None:
                self.done = True  # an answer without a length ends with its connection
            else:
                self._fail("it closed the connection")
        self._keep = False
        self._wake()

    # What the parser calls

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.done:
            return self._surplus()
        self._head += len(name) + len(value)
        if self._head > MAX_HEAD or len(self.headers) > MAX_HEADERS:
            self._fail("the head of its answer is too large")
            self.transport.abort()
            return
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self.done:
            return self._surplus()
        if self._fault is not None:
            return  # a head that is too large is no head
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            return
        self.status = status
        self._complete_head = True
        self._keep = self._parser.should_keep_alive()
        names = {name.lower() for name, _ in self.headers}
        self._framed = b"content-length" in names or b"transfer-encoding" in names or status in (204, 304)

    def on_body(self, body: bytes) -> None:
        if self.done:
            return self._surplus()
        self._chunks.append(body)
        self._waiting += len(body)
        if self._waiting > HIGH_WATER and not self._paused:
            self._paused = True
            self.transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._complete_head:
            self.done = True
        else:
            self.headers.clear()  # of an answer that only says to go on

    # What the pool calls

    def ask(self, data: bytes) -> None:
        """Send a request."""
        self._parser = httptools.HttpResponseParser(self)
        self.status, self.headers, self.done = 0, [], False
        self._chunks.clear()
        self._waiting = self._head = 0
        self._seen = self._complete_head = self._keep = self._framed = False
        self._fault = None
        self.transport.write(data)

    async def head(self, seconds: float) -> None:
        """Wait for the head of the answer.

        Raises:
            Lost: There was none.
            TimeoutError: It took too long.
        """
        while not self._complete_head:
            if self._fault is not None:
                raise Lost(self._fault, unanswered=not self._seen)
            await self._wait(seconds)

    async def body(self, seconds: float) -> AsyncIterator[bytes]:
        """The body's bytes as they come.

        Raises:
            Lost: The body stopped before its end.
            TimeoutError: Nothing came for so long.
        """
        while True:
            if self._chunks:
                data = b"".join(self._chunks) if len(self._chunks) > 1 else self._chunks[0]
                self._chunks.clear()
                self._waiting = 0
                if self._paused:
                    self._paused = False
                    self.transport.resume_reading()
                yield data
                continue
            if self._fault is not None:
                raise Lost(self._fault)
            if self.done:
                return
            await self._wait(seconds)

    @property
    def usable(self) -> bool:
        """Whether another request may follow."""
        return (
            self.done and self._keep and not self._surplus_seen and not self.transport.is_closing() and not self._chunks
        )

    def close(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()

    async def _wait(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = loop.call_later(seconds, _expire, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _surplus(self) -> None:
        """More came than was asked for: it is no part of this answer, and the connection cannot be trusted again."""
        self._surplus_seen = True

    def _fail(self, message: str) -> None:
        self._fault = self._fault or message


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())


@dataclass(slots=True)
class Pool:
    """Connections by origin; the youngest idle one is used first."""

    connect_seconds: float
    idle: dict[Origin, deque[Connection]] = field(default_factory=dict)
    context: ssl.SSLContext | None = None

    async def send(self, origin: Origin, data: bytes, seconds: float) -> Connection:
        """Send a request and wait for the head of its answer. A kept connection that turns out dead is replaced once.

        Raises:
            Lost, TimeoutError, OSError: There was no answer.
            NeedsHttp2: The origin wants HTTP/2.
        """
        while True:
            connection = await self._take(origin)
            try:
                connection.ask(data)
                await connection.head(seconds)
                return connection
            except Lost as lost:
                connection.close()
                if not (lost.unanswered and connection.reused):
                    raise
            except BaseException:
                connection.close()
                raise

    def give(self, origin: Origin, connection: Connection) -> None:
        """Take a connection back, to be used again or closed."""
        if not connection.usable:
            return connection.close()
        idle = self.idle.setdefault(origin, deque())
        connection.reused = True
        connection.idle_since = asyncio.get_running_loop().time()
        idle.append(connection)
        if len(idle) > MAX_IDLE:
            idle.popleft().close()

    def close(self) -> None:
        """Close every idle connection."""
        for idle in self.idle.values():
            while idle:
                idle.pop().close()

    async def _take(self, origin: Origin) -> Connection:
        idle = self.idle.get(origin)
        oldest = asyncio.get_running_loop().time() - IDLE_SECONDS
        while idle:
            connection = idle.pop()
            if connection.idle_since >= oldest and connection.usable:
                return connection
            connection.close()
        return await self._connect(origin)

    async def _connect(self, origin: Origin) -> Connection:
        secure, host, port = origin
        if secure and self.context is None:
            self.context = ssl.create_default_context()
            self.context.set_alpn_protocols(["h2", "http/1.1"])
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self.connect_seconds):
            _, connection = await loop.create_connection(
                Connection, host, port, ssl=self.context if secure else None, server_hostname=host if secure else None
            )
        if secure:
            found = connection.transport.get_extra_info("ssl_object")
            if found is not None and found.selected_alpn_protocol() == "h2":
                connection.close()
                raise NeedsHttp2
        with suppress(OSError, AttributeError):
            sock = connection.transport.get_extra_info("socket")
            sock.setsockopt(6, 1, 1)  # TCP_NODELAY
        return connection
