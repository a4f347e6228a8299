"""A readable before and after of one outcome, with the changed places marked in what the model wrote."""

from __future__ import annotations

import json
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from onspec.audit import Repair
from onspec.check import Outcome
from onspec.repair.rules import RULES

AROUND = 40
"""Cells of source text shown on either side of a changed place, where the terminal is wide enough."""

NARROWEST = 40
"""Cells a terminal is taken to have at least."""

LONGEST = 60
"""Characters of a value, or of a changed place, that are shown."""

MOST = 20
"""Changes that are shown one by one."""

_COLOURS = {"accepted": "green", "repaired": "cyan", "refused": "yellow"}


def explain(outcome: Outcome) -> None:
    """Print what was written, every change marked in it, and what became of it."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(Text(f"{outcome.tool.name}: {outcome.status}", style=f"bold {_COLOURS[outcome.status]}"))
    said: set[str] = set()
    for repair in outcome.repairs[:MOST]:
        _change(console, outcome.raw, repair, repair.rule not in said)
        said.add(repair.rule)
    if len(outcome.repairs) > MOST:
        console.print(f"  ... and {len(outcome.repairs) - MOST} more changes")
    for place in outcome.undeclared()[:MOST]:
        console.print(Text(f"  kept: {place} is not declared, and the schema is open"))
    if outcome.ok:
        console.print(Text("arguments:", style="bold"))
        console.print(Text(_shown(outcome.arguments, indent=True)))
        return
    console.print(Text(outcome.feedback()))


def _change(console: Console, raw: bytes, repair: Repair, explains: bool) -> None:
    title = Text("  ")
    title.append(repair.rule, style="bold")
    title.append(f" {_visible(repair.path)}" if repair.path else "")
    console.print(title)
    if explains:
        console.print(Text(f"    {RULES[repair.rule].summary}", style="dim"))
    width = max(NARROWEST, console.width) - 4
    start, end = repair.span
    longest = min(LONGEST, width // 2)
    place = _visible(_text(raw, start, min(end, start + 4 * longest)))
    if end - start > 4 * longest or len(place) > longest:
        last = _visible(_text(raw, max(start, end - 4 * longest), end))
        place = f"{place[: longest // 2 - 3]} ... {last[3 - longest // 2 :]}"
    around = max(6, min(AROUND, (width - cell_len(place)) // 2 - 3))
    before, after = _text(raw, max(0, start - 4 * around), start), _text(raw, end, end + 4 * around)
    head, tail = _last_cells(_visible(before), around), _first_cells(_visible(after), around)
    head = head if head == _visible(before) and start <= 4 * around else f"...{head}"
    tail = tail if tail == _visible(after) and end + 4 * around >= len(raw) else f"{tail}..."
    line = Text("    ")
    line.append(head, style="dim")
    line.append(place or " ", style="reverse")
    line.append(tail, style="dim")
    console.print(line)
    console.print(Text("    " + " " * cell_len(head) + "^" * max(1, cell_len(place))))
    console.print(Text(f"    {_shown(repair.before)} -> {'removed' if repair.after is None else _shown(repair.after)}"))


def _text(raw: bytes, start: int, end: int) -> str:
    """The text of a stretch of bytes; a character that it cuts is left out."""
    end = min(end, len(raw))
    while start < end and start and raw[start] & 0xC0 == 0x80:
        start += 1
    while end > start and end < len(raw) and raw[end] & 0xC0 == 0x80:
        end -= 1
    return raw[start:end].decode("utf-8", "replace")


def _last_cells(text: str, cells: int) -> str:
    at = len(text)
    while at and cell_len(text[at - 1 :]) <= cells:
        at -= 1
    return text[at:]


def _first_cells(text: str, cells: int) -> str:
    at = 0
    while at < len(text) and cell_len(text[: at + 1]) <= cells:
        at += 1
    return text[:at]


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
