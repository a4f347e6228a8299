"""One call against its contract: accepted, repaired with an audit, or refused with feedback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from onspec.audit import Repair, Violation
from onspec.contract.tool import Tool
from onspec.repair.policy import Policy

Status = Literal["accepted", "repaired", "refused"]


@dataclass(slots=True)
class Outcome:
    """What became of one call."""

    tool: Tool
    status: Status
    arguments: Any
    json: bytes
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Violation, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status != "refused"

    def feedback(self) -> str:
        return "; ".join(f"{v.path}: {v.message}" for v in self.violations)


def check(
    tool: Tool,
    arguments: str | bytes | dict[str, Any],
    policy: Policy | None = None,
    finish_reason: str | None = None,
) -> Outcome:
    """Judge one call."""
    raw = arguments.encode() if isinstance(arguments, str) else arguments if isinstance(arguments, bytes) else orjson.dumps(arguments)
    try:
        value = orjson.loads(raw)
    except ValueError:
        return Outcome(tool, "refused", None, raw, (), (Violation("not_json", "", "not JSON"),))
    if tool.is_valid(value):
        return Outcome(tool, "accepted", value, raw)
    return Outcome(tool, "refused", None, raw, (), (Violation("invalid", "", "does not fit the schema"),))
