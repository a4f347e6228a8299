"""What a gateway saw, added up: per tool, per rule, per model, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from onspec.gateway.record import Record

OUTCOMES = ("accepted", "repaired", "retried", "promoted", "refused")


@dataclass(slots=True)
class Summary:
    """Totals over records."""

    calls: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    tools: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    rules: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    invented: Counter[str] = field(default_factory=Counter)
    tries: int = 0
    saved: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As `onspec report --json` prints it."""
        return {
            "calls": self.calls,
            "outcomes": dict(self.outcomes),
            "tools": [{"model": model, "tool": tool, **counts} for (model, tool), counts in self.tools.items()],
            "rules": dict(self.rules),
            "codes": dict(self.codes),
            "invented": dict(self.invented),
            "retries": self.tries,
            "tokens_saved": self.saved,
        }


def summarise(records: Iterable[Record]) -> Summary:
    """The totals of some records."""
    found = Summary()
    for record in records:
        found.calls += 1
        found.outcomes[record.outcome] += 1
        found.tools.setdefault((record.model, record.tool), Counter())[record.outcome] += 1
        found.rules.update(record.rules)
        found.codes.update(record.codes)
        found.invented.update(record.invented)
        found.tries += record.tries
        found.saved += record.saved
    return found
