"""Counts in memory, as Prometheus reads them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from onspec.gateway.record import Record

Counts = Counter[tuple[str, ...]]
"""Counts by the values of a metric's labels."""
MAX_SERIES = 5000
"""Most label sets of one metric; models and tools are named by clients, so they are bounded here."""
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)


@dataclass(slots=True)
class Metrics:
    """What has been counted since the start."""

    calls: Counts = field(default_factory=Counter)
    repairs: Counts = field(default_factory=Counter)
    refusals: Counts = field(default_factory=Counter)
    requests: Counts = field(default_factory=Counter)
    tries: int = 0
    saved: int = 0
    active: int = 0
    lost_records: int = 0
    internal_errors: int = 0
    seconds: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds_sum: float = 0.0

    def count(self, record: Record) -> None:
        """Count one call."""
        _add(self.calls, (record.model, record.api, record.tool, record.outcome))
        for rule in record.rules:
            _add(self.repairs, (record.model, record.tool, rule))
        for code in record.codes:
            _add(self.refusals, (record.model, record.tool, code))
        self.tries += record.tries
        self.saved += record.saved

    def request(self, api: str, status: int, outcome: str, seconds: float) -> None:
        """Count one finished request."""
        _add(self.requests, (api, str(status), outcome))
        self.seconds_sum += seconds
        for index, limit in enumerate(BUCKETS):
            if seconds <= limit:
                self.seconds[index] += 1
        self.seconds[-1] += 1

    def prometheus(self) -> str:
        """The counts in the text format, version 0.0.4."""
        lines: list[str] = []
        _series(lines, "onspec_calls_total", "Tool calls judged.", ("model", "api", "tool", "outcome"), self.calls)
        _series(lines, "onspec_repairs_total", "Repairs by rule.", ("model", "tool", "rule"), self.repairs)
        _series(
            lines, "onspec_violations_total", "Violations of refused calls.", ("model", "tool", "code"), self.refusals
        )
        _series(lines, "onspec_requests_total", "Requests by answer.", ("api", "status", "outcome"), self.requests)
        for name, kind, text, value in (
            ("onspec_retries_total", "counter", "Times a provider was asked again.", self.tries),
            ("onspec_tokens_saved_total", "counter", "Output tokens saved, about.", self.saved),
            ("onspec_active_requests", "gauge", "Requests under way.", self.active),
            ("onspec_records_lost_total", "counter", "Records the database did not take.", self.lost_records),
            ("onspec_internal_errors_total", "counter", "Faults of the gateway itself.", self.internal_errors),
        ):
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", f"{name} {value}"]
        name = "onspec_request_seconds"
        lines += [f"# HELP {name} Time from request to the end of the answer.", f"# TYPE {name} histogram"]
        lines += [f'{name}_bucket{{le="{limit}"}} {count}' for limit, count in zip(BUCKETS, self.seconds, strict=False)]
        lines += [f'{name}_bucket{{le="+Inf"}} {self.seconds[-1]}', f"{name}_sum {self.seconds_sum:.6f}"]
        lines += [f"{name}_count {self.seconds[-1]}", ""]
        return "\n".join(lines)


def _add(counter: Counts, key: tuple[str, ...]) -> None:
    if key not in counter and len(counter) >= MAX_SERIES:
        key = tuple("(other)" for _ in key)
    counter[key] += 1


def _series(lines: list[str], name: str, text: str, labels: tuple[str, ...], counts: Counts) -> None:
    lines += [f"# HELP {name} {text}", f"# TYPE {name} counter"]
    for values, count in sorted(counts.items()):
        pairs = ",".join(f'{label}="{_escape(value)}"' for label, value in zip(labels, values, strict=True))
        lines.append(f"{name}{{{pairs}}} {count}")


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").encode("utf-8", "replace").decode()
