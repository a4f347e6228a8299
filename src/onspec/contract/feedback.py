"""Feedback: what a model is told about a refused call, so that its next try can be right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import orjson

from onspec.audit import Violation

MAX_LINES = 12
"""How many violations are worded; the rest is counted."""

_OF_KEYS = frozenset({"unknown_key", "misplaced_key", "conflicting_key"})
_INDEX = re.compile(r"/[0-9]+(?=/|\Z)")
_NEUTRAL = str.maketrans({"<": "‹", ">": "›", "`": "'", "｜": "|"})


def neutral(text: str) -> str:
    """Text in which no call markup is left to copy, on one line."""
    return " ".join(text.translate(_NEUTRAL).split())


def plain(tool: str, violations: Sequence[Violation]) -> str:
    """A few lines for a model: each place, what is wrong there, what is allowed. The payload is never echoed."""
    name = neutral(tool)
    groups = _alike(violations)
    if len(groups) == 1:
        return f"{name} was not run. {_line(groups[0])}"
    lines: list[str] = []
    said: set[tuple[str, str | None]] = set()
    for group in groups[:MAX_LINES]:
        keys = (group[0].path.rpartition("/")[0], group[0].expected)
        lines.append(f"- {_line(group, keys not in said)}")
        said.add(keys)
    if len(groups) > MAX_LINES:
        lines.append(f"- and {sum(map(len, groups[MAX_LINES:]))} more")
    return "\n".join([f"{name} was not run:", *lines])


def _alike(violations: Sequence[Violation]) -> list[list[Violation]]:
    """Violations that differ only in the index of an array's item, together."""
    groups: dict[tuple[str | None, ...], list[Violation]] = {}
    for violation in violations:
        shape = _INDEX.sub("/*", violation.path)
        key = (shape, violation.code, violation.message, violation.expected, violation.hint)
        groups.setdefault(key, []).append(violation)
    return list(groups.values())


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


def _line(group: list[Violation], lists_keys: bool = True) -> str:
    violation = group[0]
    place = neutral(violation.path) or "The call"
    if len(group) > 1:
        place += f" and {len(group) - 1} more like it"
    text = f"{place}: {neutral(violation.message)}"
    if violation.code == "missing_required":
        return f"{text} ({neutral(violation.expected)})." if violation.expected else f"{text}."
    if violation.code in _OF_KEYS:
        text += f"; declared: {neutral(violation.expected)}" if violation.expected and lists_keys else ""
        text += f"; nearest: {neutral(violation.hint)}" if violation.hint else ""
        return f"{text}."
    if violation.found and violation.found.startswith("at "):
        text += f" ({neutral(violation.found)})" if violation.code != "cut_off" else ""
    elif violation.found and violation.code not in ("cut_off", "empty") and len({v.found for v in group}) == 1:
        text += f"; found {neutral(violation.found)}"
    if violation.expected:
        text += f"; {'required' if violation.code == 'empty' else 'expected'}: {neutral(violation.expected)}"
    if violation.hint or violation.code == "cut_off":
        text += f"; {neutral(violation.hint or 'the call was cut off, send it whole')}"
    return f"{text}."
