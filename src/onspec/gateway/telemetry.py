"""Spans with the GenAI attributes of OpenTelemetry, one a request; nothing where no exporter is configured."""

from __future__ import annotations

from typing import Any

from onspec.errors import MissingExtra
from onspec.gateway.exchange import Asked, Exchange
from onspec.gateway.record import clean

try:
    from opentelemetry import trace
except ImportError:
    trace = None  # type: ignore[assignment]

SYSTEMS = {"anthropic": "anthropic", "chat": "openai", "responses": "openai"}


class Spans:
    """Starts and ends spans; does nothing unless switched on.

    Raises:
        MissingExtra: It is switched on, and `opentelemetry` is not installed.
    """

    def __init__(self, on: bool) -> None:
        if on and trace is None:
            raise MissingExtra("opentelemetry-api", "otel")
        self._tracer: Any = trace.get_tracer("onspec.gateway") if on else None

    def start(self, asked: Asked) -> Any:
        """A span for a request, or None."""
        if self._tracer is None or asked.api is None:
            return None
        span = self._tracer.start_span(f"chat {clean(asked.model)}".strip(), kind=trace.SpanKind.CLIENT)
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.provider.name", SYSTEMS.get(asked.api.name, asked.api.name))
        span.set_attribute("gen_ai.request.model", clean(asked.model))
        return span

    def end(self, span: Any, exchange: Exchange) -> None:
        """End a span with what came of the request."""
        if span is None:
            return
        span.set_attribute("http.response.status_code", exchange.status)
        span.set_attribute("onspec.outcome", exchange.outcome)
        for name, count in exchange.calls.items():
            span.set_attribute(f"onspec.calls.{name}", count)
        for name, count in exchange.usage.items():
            span.set_attribute(f"gen_ai.usage.{name}", count)
        if exchange.status >= 400 or exchange.outcome in ("broken", "failed"):
            span.set_status(trace.StatusCode.ERROR)
        span.end()
