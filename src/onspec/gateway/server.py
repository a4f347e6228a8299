"""Runs a gateway on a port, and ends it without cutting a reply in two."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from typing import Any

from onspec.errors import InputError, MissingExtra
from onspec.gateway.app import Gateway

try:
    import uvicorn
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError as error:
    raise MissingExtra("uvicorn", "gateway") from error

BACKLOG = 4096
MAX_HEAD = 64 * 1024
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: application/json\r\ncontent-length: 69\r\nconnection: close\r\n\r\n"
    b'{"error": {"message": "onspec: the head of the request is too long"}}'
)
GRACE_SECONDS = 2
"""After the drain, how long the last bytes of stopped replies may take."""


class _Quiet(logging.Filter):
    """What the server need not say: that an answer broke off, and why it cannot listen, as we say that.

    Attributes:
        fault: Why it cannot listen, or None.
    """

    fault: OSError | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, OSError):
            self.fault = record.msg
            return False
        return "without completing response" not in record.getMessage()


class _Client(HttpToolsProtocol):
    """A client's connection. One whose head does not end is answered and closed, before it fills the memory.

    Attributes:
        patience: Seconds for a head that has begun, or for the first byte.
    """

    patience = 60.0
    _head = 0
    _heading = True
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._waited()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._waited()
        self._timer = self.loop.call_later(self.patience, self.transport.close)

    def _waited(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._heading or self.transport.is_closing():
            return
        self._head += len(data)
        limit = self.config.h11_max_incomplete_event_size or MAX_HEAD
        if self._head > limit:
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        self._head, self._heading = 0, True
        self._wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._heading = False
        self._waited()
        super().on_headers_complete()


class Server(uvicorn.Server):
    """A server for one gateway: after a signal it takes no more clients, lets replies end, then ends them itself."""

    def __init__(self, gateway: Gateway, started: Callable[[str], None] | None = None) -> None:
        config = gateway.config
        client = type("_Client", (_Client,), {"patience": config.request_seconds})
        super().__init__(
            uvicorn.Config(
                gateway,
                host=config.host,
                port=config.port,
                log_level="warning",
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                ws="none",
                lifespan="on",
                http=client,
                backlog=BACKLOG,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=int(config.drain_seconds) + GRACE_SECONDS,
                h11_max_incomplete_event_size=config.max_header,
            )
        )
        self._quiet = _Quiet()
        logging.getLogger("uvicorn.error").addFilter(self._quiet)
        self._gateway = gateway
        self._told = started

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def unheard(self) -> InputError:
        """Why it does not listen."""
        fault, config = self._quiet.fault, self._gateway.config
        return unheard(config.host, config.port, fault or OSError())

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._told is not None:
            self._told(self.url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        ending = loop.call_later(
            self._gateway.config.drain_seconds, self._gateway.stop_running, "the gateway is shutting down"
        )
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()
        self._captured_signals.clear()  # being stopped is how it ends well; uvicorn would raise the signal once more


def unheard(host: str, port: int, fault: OSError) -> InputError:
    """Why an address cannot be listened on, in a line."""
    known = fault.errno is not None and fault.errno > 0
    why = os.strerror(fault.errno or 0) if known else fault.strerror or "the address cannot be used"
    return InputError(f"cannot listen on {host}:{port}: {why.lower()}")


def run(gateway: Gateway, started: Callable[[str], None] | None = None) -> None:
    """Serve until a signal.

    Raises:
        InputError: The port cannot be listened on.
    """
    server = Server(gateway, started)
    try:
        server.run()
    except SystemExit:
        raise server.unheard from None
    if not server.started:
        raise server.unheard


async def serving(gateway: Gateway) -> tuple[Server, asyncio.Task[Any]]:
    """Start a gateway in this event loop; stop it by `server.should_exit = True` and awaiting the task."""
    server = Server(gateway)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.ensure_future(server._serve())
    while not server.started:
        if task.done():
            task.result()
            raise server.unheard
        await asyncio.sleep(0.005)
    return server, task
