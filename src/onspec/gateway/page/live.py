"""What the live page shows, as JSON and as events."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from onspec.gateway.config import Config
from onspec.gateway.metrics import Metrics
from onspec.gateway.record import Record

MAX_KEYS = 500
MAX_WATCHERS = 50
IDLE_SECONDS = 15.0
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"


class Live:
    """The running totals behind the page, and those who watch them."""

    def __init__(self, metrics: Metrics, recent: deque[Record], config: Config) -> None:
        self._metrics = metrics
        self._recent = recent
        self._config = config
        self._outcomes: Counter[str] = Counter()
        self._rules: Counter[str] = Counter()
        self._codes: Counter[str] = Counter()
        self._keys: Counter[str] = Counter()
        self._watchers: set[asyncio.Event] = set()

    def tell(self, record: Record) -> None:
        """Take a record into the totals and wake those who watch."""
        self._outcomes[record.outcome] += 1
        self._rules.update(record.rules)
        self._codes.update(record.codes)
        for key in record.invented:
            if key in self._keys or len(self._keys) < MAX_KEYS:
                self._keys[key] += 1
        for event in self._watchers:
            event.set()

    def state(self) -> dict[str, Any]:
        """Everything the page shows."""
        return {
            "calls": sum(self._outcomes.values()),
            "outcomes": dict(self._outcomes),
            "rules": dict(self._rules.most_common(40)),
            "codes": dict(self._codes.most_common(40)),
            "invented": dict(self._keys.most_common(40)),
            "saved": self._metrics.saved,
            "tries": self._metrics.tries,
            "active": self._metrics.active,
            "lost": self._metrics.lost_records,
            "shadow": self._config.rules.shadow,
            "policy": self._config.rules.policy,
            "recent": [asdict(record) for record in reversed(self._recent)][:100],
        }

    async def events(self) -> AsyncIterator[bytes]:
        """The state now and after every change, as server-sent events."""
        changed = asyncio.Event()
        self._watchers.add(changed)
        try:
            while True:
                yield b"data: " + json.dumps(self.state(), default=str).encode("utf-8", "replace") + b"\n\n"
                try:
                    await asyncio.wait_for(changed.wait(), IDLE_SECONDS)
                except TimeoutError:
                    yield b": idle\n\n"
                changed.clear()
                await asyncio.sleep(0.2)
        finally:
            self._watchers.discard(changed)

    @property
    def full(self) -> bool:
        """Whether so many watch that no more are let in."""
        return len(self._watchers) >= MAX_WATCHERS


def page_routes(live: Live) -> list[Route]:
    """The routes under `/onspec`."""
    html = files("onspec.gateway.page").joinpath("page.html").read_text("utf-8")

    async def page(_: Request) -> Response:
        return HTMLResponse(html, headers={"content-security-policy": POLICY, "cache-control": "no-store"})

    async def state(_: Request) -> Response:
        return Response(json.dumps(live.state(), default=str), media_type="application/json")

    async def events(_: Request) -> Response:
        if live.full:
            return PlainTextResponse("too many watchers", 503)
        return StreamingResponse(live.events(), media_type="text/event-stream", headers={"cache-control": "no-store"})

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(live._metrics.prometheus(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def health(_: Request) -> Response:
        return JSONResponse({"ok": True})

    return [
        Route("/onspec", page),
        Route("/onspec/", page),
        Route("/onspec/state", state),
        Route("/onspec/events", events),
        Route("/onspec/metrics", metrics),
        Route("/onspec/health", health),
    ]
