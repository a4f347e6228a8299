"""A local model on a port, for `onspec serve --local`."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import click
import uvicorn

from onspec.gateway.server import unheard
from onspec.local.endpoint import endpoint
from onspec.local.models import DEFAULT

PORT = 8484
"""Where it listens unless told otherwise."""


class _Server(uvicorn.Server):
    """Says where it listens, once it does; a signal ends it well."""

    def __init__(self, config: uvicorn.Config, told: str) -> None:
        super().__init__(config)
        self._told = told

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            click.echo(f"onspec local model on http://{host}:{port}/v1   {self._told}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        self._captured_signals.clear()  # uvicorn would raise the signal once more


def serve_model(model: str, host: str, port: int | None, context: int, dialect: str | None) -> None:
    """Answer OpenAI chat completions from a local model until a signal comes.

    Args:
        model: A name, or the path of a GGUF file; "" for the default.
        host: Address to listen on.
        port: Port; 0 takes a free one, None the default.
        context: Tokens of context.
        dialect: The dialect of the model's calls, or None.

    Raises:
        InputError: There is no such model, or the port is taken.
        MissingExtra: No runtime is installed.
    """
    model = model or DEFAULT
    application: Any = endpoint(model, capacity=context, dialect=dialect)
    config = uvicorn.Config(
        application, host=host, port=PORT if port is None else port, log_level="warning", access_log=False,
        server_header=False, ws="none", lifespan="on", timeout_graceful_shutdown=5,
    )  # fmt: skip
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, config.port))
        except OSError as error:
            raise unheard(host, config.port, error) from None
    asyncio.run(_Server(config, f"{model}: {application.told}").serve())
