"""Feedback: what a model is told about a refused call, so that its next try can be right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import orjson

from onspec.audit import Violation

MAX_LINES = 12
"""How many violations are worded; the rest is counted."""

_NEUTRAL = str.maketrans({"<": "‹", ">": "›", "`": "'", "｜": "|"})


def neutral(text: str) -> str:
    """Text in which no call markup is left to copy, on one line."""
    return " ".join(text.translate(_NEUTRAL).split())


def plain(tool: str, violations: Sequence[Violation]) -> str:
    """A few lines for a model: each place, what is wrong there, what is allowed. The payload is never echoed."""
    name = neutral(tool)
    if len(violations) == 1:
        return f"{name} was not run. {_line(violations[0])}"
    lines = [f"- {_line(violation)}" for violation in violations[:MAX_LINES]]
    if len(violations) > MAX_LINES:
        lines.append(f"- and {len(violations) - MAX_LINES} more")
    return "\n".join([f"{name} was not run:", *lines])


def structured(tool: str, violations: Iterable[Violation]) -> str:
    """The same as a JSON document."""
    rows = [
        {
            "code": violation.code,
            "path": neutral(violation.path),
            "message": neutral(violation.message),
            **({"expected": neutral(violation.expected)} if violation.expected else {}),
            **({"found": neutral(violation.found)} if violation.found else {}),
            **({"hint": neutral(violation.hint)} if violation.hint else {}),
        }
        for violation in violations
    ]
    return orjson.dumps({"error": "call_refused", "tool": neutral(tool), "violations": rows}).decode()


def _line(violation: Violation) -> str:
    place = neutral(violation.path) or "The call"
    text = f"{place}: {neutral(violation.message)}"
    if violation.code == "missing_required":
        return f"{text} ({neutral(violation.expected)})." if violation.expected else f"{text}."
    if violation.code in ("unknown_key", "misplaced_key", "conflicting_key"):
        text += f"; declared: {neutral(violation.expected)}" if violation.expected else ""
        text += f"; nearest: {neutral(violation.hint)}" if violation.hint else ""
        return f"{text}."
    if violation.found and violation.code not in ("cut_off", "empty"):
        text += f"; found {neutral(violation.found)}"
    if violation.expected:
        text += f"; expected {neutral(violation.expected)}"
    if violation.hint:
        text += f"; {neutral(violation.hint)}"
    return f"{text}."
