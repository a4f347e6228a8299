"""Runs a gateway on a port, and ends it without cutting a reply in two."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any

from onspec.errors import InputError, MissingExtra
from onspec.gateway.app import Gateway

try:
    import uvicorn
except ImportError as error:
    raise MissingExtra("uvicorn", "gateway") from error

BACKLOG = 4096
GRACE_SECONDS = 2
"""After the drain, how long the last bytes of stopped replies may take."""


class _Quiet(logging.Filter):
    """An answer that broke off at the provider is broken off at the client on purpose; the server need not complain."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "without completing response" not in record.getMessage()


class Server(uvicorn.Server):
    """A server for one gateway: after a signal it takes no more clients, lets replies end, then ends them itself."""

    def __init__(self, gateway: Gateway, started: Callable[[str], None] | None = None) -> None:
        config = gateway.config
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
                backlog=BACKLOG,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=int(config.drain_seconds) + GRACE_SECONDS,
                h11_max_incomplete_event_size=config.max_header,
            )
        )
        logging.getLogger("uvicorn.error").addFilter(_Quiet())
        self._gateway = gateway
        self._told = started

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

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


def run(gateway: Gateway, started: Callable[[str], None] | None = None) -> None:
    """Serve until a signal.

    Raises:
        InputError: The port cannot be listened on.
    """
    server = Server(gateway, started)
    try:
        server.run()
    except SystemExit:
        raise InputError(f"cannot listen on {gateway.config.host}:{gateway.config.port}; is the port in use?") from None
    if not server.started:
        raise InputError(f"cannot listen on {gateway.config.host}:{gateway.config.port}; is the port in use?")


async def serving(gateway: Gateway) -> tuple[Server, asyncio.Task[Any]]:
    """Start a gateway in this event loop; stop it by `server.should_exit = True` and awaiting the task."""
    server = Server(gateway)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.ensure_future(server._serve())
    while not server.started:
        if task.done():
            task.result()
            raise InputError(f"cannot listen on {gateway.config.host}:{gateway.config.port}")
        await asyncio.sleep(0.005)
    return server, task
