"""The gateway as an ASGI application: requests are carried to a provider, or answered from what has been counted."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, cast

from onspec.errors import InputError, MissingExtra
from onspec.gateway.apis import api_of
from onspec.gateway.config import Config
from onspec.gateway.contracts import ContractCache
from onspec.gateway.exchange import Broken, Exchange, answer_error, read_request
from onspec.gateway.metrics import Metrics
from onspec.gateway.page.live import Live, page_routes
from onspec.gateway.promote import RecoverUnder
from onspec.gateway.record import Record, Watch
from onspec.gateway.store import Store
from onspec.gateway.telemetry import Spans
from onspec.gateway.upstream import Client

try:
    from starlette.applications import Starlette
except ImportError as error:
    raise MissingExtra("starlette", "gateway") from error

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

OWN = "/onspec"
RECENT = 200
TOKEN = b"x-onspec-token"
log = logging.getLogger("onspec.gateway")


class Gateway:
    """One gateway. An ASGI application; `close` it when it is done.

    Args:
        config: What the operator set; see `Config.checked`.
        recover: Finds calls that leaked into text, for the models whose rules say `promote`.

    Raises:
        InputError: A rule says `promote` and there is no `recover`.
    """

    def __init__(self, config: Config, recover: RecoverUnder | None = None) -> None:
        if config.promotes and recover is None:
            raise InputError("promote needs a reader of leaked markup")
        self._recover = recover
        self.config = config
        self.metrics = Metrics()
        self.recent: deque[Record] = deque(maxlen=RECENT)
        self.live = Live(self.metrics, self.recent, config)
        self.store = Store(config.database, self._lost) if config.database is not None else None
        self.watch = Watch([self.metrics.count, self.recent.append, self.live.tell], config.keep_payloads)
        if self.store is not None:
            self.watch.watchers.append(self.store.add)
        self._cache = ContractCache()
        self._client = Client(config.connect_seconds, config.read_seconds)
        self._spans = Spans(config.otel)
        self._own = Starlette(routes=page_routes(self.live))
        self._running: set[Exchange] = set()
        self._tokens = [token.encode() for token in config.tokens]

    def _lost(self, count: int) -> None:
        self.metrics.lost_records += count

    def stop_running(self, why: str) -> None:
        """End every reply that is under way, each with a well-formed end."""
        for exchange in tuple(self._running):
            exchange.stop(why)

    async def close(self) -> None:
        """Close the connections to providers and write what has been counted."""
        await self._client.close()
        if self.store is not None:
            await asyncio.to_thread(self.store.close)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._lifespan(receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1003})
        path = scope["path"]
        if path == OWN or path.startswith(OWN + "/"):
            if not self._allowed(scope):
                return await answer_error(send, None, 401, f"send a client token as {TOKEN.decode()}")
            return await self._own(cast(Any, scope), cast(Any, receive), cast(Any, send))
        await self._carry(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            try:
                message = await receive()
            except asyncio.CancelledError:  # a second Ctrl-C: the server ends without asking
                return await self.close()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.close()
                return await send({"type": "lifespan.shutdown.complete"})

    def _allowed(self, scope: Scope) -> bool:
        if not self._tokens:
            return True
        given = next((value for key, value in scope["headers"] if key.lower() == TOKEN), b"")
        return sum(hmac.compare_digest(given, token) for token in self._tokens) > 0

    async def _carry(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.monotonic()
        method = scope["method"]
        raw_path = scope.get("raw_path") or scope["path"].encode()
        target = raw_path.decode("latin-1") + (
            f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
        )
        api = api_of(method, scope["path"])
        if not self._allowed(scope):
            return await answer_error(send, api, 401, f"send a client token as {TOKEN.decode()}")
        upstream = self.config.route(scope["path"])
        if upstream is None or not target.startswith("/"):
            return await answer_error(send, api, 404, f"no upstream has a route for {scope['path'][:100]}")
        headers = [(key, value) for key, value in scope["headers"]]
        if sum(len(key) + len(value) for key, value in headers) > self.config.max_header:
            return await answer_error(
                send, api, 431, f"the request's headers are larger than {self.config.max_header} bytes"
            )
        try:
            data = await _body(receive, self.config.max_body, self.config.request_seconds)
        except TimeoutError:
            told = f"the request stood still for {self.config.request_seconds:g} seconds"
            return await answer_error(send, api, 408, told, closing=True)
        if data is None:
            return
        if isinstance(data, int):
            return await answer_error(send, api, 413, f"the request is larger than {self.config.max_body} bytes")
        asked = read_request(method, target, headers, data, upstream, api, self.config, self._cache)
        exchange = Exchange(asked, self.config, self._client, self.watch, self.metrics, send, self._recover)
        self._running.add(exchange)
        self.metrics.active += 1
        span = self._spans.start(asked)
        try:
            await _until_gone(exchange, receive)
        except Broken:
            log.info("an answer broke off at the provider and was broken off at the client")
        finally:
            self._running.discard(exchange)
            self.metrics.active -= 1
            self.metrics.request(
                api.name if api is not None else "other", exchange.status, exchange.outcome, time.monotonic() - started
            )
            self._spans.end(span, exchange)


async def _body(receive: Receive, limit: int, patience: float) -> bytes | int | None:
    """The request's body; its size where that is beyond the limit, None where the client left.

    Raises:
        TimeoutError: No piece of it came for `patience` seconds.
    """
    parts: list[bytes] = []
    size = 0
    while True:
        async with asyncio.timeout(patience):
            message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            return size
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def _until_gone(exchange: Exchange, receive: Receive) -> None:
    """Run the exchange; a client that leaves cancels it, and with it the provider's side, at once."""
    running = asyncio.ensure_future(exchange.run())
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            exchange.outcome = "client left"
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
        else:
            running.result()
    finally:
        leaving.cancel()
        if not running.done():
            running.cancel()
            await asyncio.wait({running})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
