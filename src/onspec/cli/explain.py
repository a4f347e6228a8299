"""A readable before and after of one outcome, with the changed places marked in what the model wrote."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from onspec.audit import Repair
from onspec.check import Outcome
from onspec.repair.rules import RULES

AROUND = 40
"""Characters of source text shown on either side of a changed place."""

LONGEST = 60
"""Characters of a value, or of a changed place, that are shown."""

MOST = 20
"""Changes that are shown one by one."""

_COLOURS = {"accepted": "green", "repaired": "cyan", "refused": "yellow"}


def explain(outcome: Outcome) -> None:
    """Print what was written, every change marked in it, and what became of it."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(f"{outcome.tool.name}: {outcome.status}", style=f"bold {_COLOURS[outcome.status]}"))
    for repair in outcome.repairs[:MOST]:
        _change(console, outcome.raw, repair)
    if len(outcome.repairs) > MOST:
        console.print(f"  ... and {len(outcome.repairs) - MOST} more changes")
    for place in outcome.undeclared()[:MOST]:
        console.print(Text(f"  kept: {place} is not declared, and the schema is open"))
    if outcome.ok:
        console.print(Text("arguments:", style="bold"))
        console.print(Text(_shown(outcome.arguments, indent=True)))
        return
    console.print(Text(outcome.feedback()))


def _change(console: Console, raw: bytes, repair: Repair) -> None:
    title = Text("  ")
    title.append(repair.rule, style="bold")
    title.append(f" {repair.path}" if repair.path else "")
    console.print(title)
    console.print(Text(f"    {RULES[repair.rule].summary}", style="dim"))
    start, end = repair.span
    before = _visible(raw[max(0, start - AROUND) : start].decode("utf-8", "replace"))
    place = _visible(raw[start:end].decode("utf-8", "replace"))
    after = _visible(raw[end : end + AROUND].decode("utf-8", "replace"))
    if len(place) > LONGEST:
        place = place[: LONGEST // 2] + " ... " + place[-LONGEST // 2 :]
    line = Text("    ")
    line.append(("..." if start > AROUND else "") + before, style="dim")
    line.append(place or " ", style="reverse")
    line.append(after + ("..." if end + AROUND < len(raw) else ""), style="dim")
    console.print(line)
    console.print(Text("    " + " " * (len(before) + (3 if start > AROUND else 0)) + "^" * max(1, len(place))))
    console.print(Text(f"    {_shown(repair.before)} -> {'removed' if repair.after is None else _shown(repair.after)}"))


def _visible(text: str) -> str:
    """Text on one line, control characters as escapes."""
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def _shown(value: Any, indent: bool = False) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if indent and len(text) > LONGEST:
        return json.dumps(_short(value), ensure_ascii=False, indent=2)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 20]} ... ({len(text)} characters)"


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > 2 * LONGEST:
        return f"{value[:LONGEST]} ... ({len(value)} characters)"
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    return [_short(item) for item in value] if isinstance(value, list) else value
