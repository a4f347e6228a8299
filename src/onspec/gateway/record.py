"""What is remembered of one call: counts and places, never payloads or keys unless the operator asks for payloads."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from onspec.gateway.verdict import Verdict

BYTES_A_TOKEN = 4
"""For the estimate of tokens saved; measured tokenizers lie between 3 and 5 for code."""
UNKNOWN_KEY_RULES = frozenset({"drop_unknown_key", "alias_key", "key_case", "promote_numbered_item", "lift_flat_item"})
MAX_NAME = 80
MAX_AUDIT = 200
"""Entries of one call's audit that are kept, and keys that it invented; all are counted."""
MAX_RAW = 1_000_000
"""Characters of a call that are kept where payloads are."""
MAX_NOTED = 1000
"""Contracts whose fault is remembered, so that it is told once."""
log = logging.getLogger("onspec.gateway")


@dataclass(frozen=True, slots=True)
class Record:
    """One judged call.

    Attributes:
        at: Seconds since 1970.
        outcome: `accepted`, `repaired`, `refused`, `retried` (refused, then mended by asking again) or `promoted`.
        rules: Names of the repairs, in order.
        codes: Codes of the violations.
        invented: Keys the model invented, by name.
        audit: Each repair and violation with its path; payloads only where the operator keeps them.
        tries: How often the provider was asked again.
        saved: Output tokens, about, that the call would have cost again.
        shadow: Whether nothing was changed.
    """

    at: float
    model: str
    api: str
    tool: str
    outcome: str
    rules: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()
    audit: tuple[dict[str, Any], ...] = ()
    tries: int = 0
    saved: int = 0
    shadow: bool = False


@dataclass(slots=True)
class Watch:
    """Where records go: every watcher is told of every call. A contract that can't be enforced is told of once."""

    watchers: list[Callable[[Record], None]] = field(default_factory=list)
    keep_payloads: bool = False

    noted: set[tuple[str, str]] = field(default_factory=set)

    def tell(self, record: Record) -> None:
        """Tell every watcher. A watcher must not raise or block."""
        for watcher in self.watchers:
            watcher(record)

    def record(self, verdict: Verdict, *, model: str, api: str, outcome: str, tries: int, shadow: bool) -> Record:
        """The record of a verdict."""
        audit: list[dict[str, Any]] = []
        invented = []
        for repair in verdict.repairs:
            entry: dict[str, Any] = {"rule": repair.rule, "path": clean(repair.path[:200])}
            if repair.rule in UNKNOWN_KEY_RULES and repair.path:
                invented.append(repair.path.rpartition("/")[2][:MAX_NAME])
            if self.keep_payloads:
                entry |= {"before": _shown(repair.before), "after": _shown(repair.after)}
            audit.append(entry)
        for path in verdict.undeclared:
            invented.append(path.rpartition("/")[2][:MAX_NAME])
        for violation in verdict.violations:
            if violation.code == "unknown_key":
                invented.append(violation.path.rpartition("/")[2][:MAX_NAME])
            where, message = clean(violation.path[:200]), clean(violation.message[:300])
            audit.append({"code": violation.code, "path": where, "message": message})
        del audit[MAX_AUDIT:]
        if verdict.note and (verdict.tool, verdict.note) not in self.noted and len(self.noted) < MAX_NOTED:
            self.noted.add((verdict.tool, verdict.note))
            log.warning(
                "the contract of %s is not enforced: %s", clean(verdict.tool[:MAX_NAME]), clean(verdict.note[:300])
            )
            audit.append({"code": "not_enforced", "path": "", "message": clean(verdict.note[:300])})
        if self.keep_payloads and verdict.status != "accepted":
            audit.append({"raw": verdict.raw[:MAX_RAW]})
        saved = len(verdict.raw) // BYTES_A_TOKEN if outcome in ("repaired", "promoted") else 0
        return Record(
            at=time.time(),
            model=clean(model[:MAX_NAME]),
            api=api,
            tool=clean(verdict.tool[:MAX_NAME]) or "(unknown)",
            outcome=outcome,
            rules=tuple(repair.rule for repair in verdict.repairs),
            codes=tuple(violation.code for violation in verdict.violations),
            invented=tuple(map(clean, invented[:MAX_AUDIT])),
            audit=tuple(audit),
            tries=tries,
            saved=saved,
            shadow=shadow,
        )


def clean(text: str) -> str:
    """A text that can be written anywhere: halves of surrogate pairs become question marks."""
    return text.encode("utf-8", "replace").decode()


def _shown(value: Any) -> Any:
    """A payload as it is kept: itself, or the beginning of its text where it is very large or deep."""
    try:
        text = json.dumps(value, default=str)
    except RecursionError:
        return "(nested too deeply)"
    return value if len(text) <= MAX_RAW else text[:MAX_RAW]
