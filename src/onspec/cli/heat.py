"""Measured calls on a terminal: the text in the colours of its pressure, the causes, the keys."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from onspec.local.causes import MEANING
from onspec.local.demo import Story
from onspec.local.picture import Arm, marked

LEAST = 0.01
"""Mass below which a cause or a key is not shown."""


def show(console: Console, arm: Arm) -> None:
    """Print one arm."""
    pressure = arm.pressure
    console.print(Text(arm.name, style="bold"))
    line = Text()
    for text, colour in marked(pressure):
        line.append(text, style=f"black on {colour}" if colour else "")
    console.print(line)
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for cause, mass in pressure.causes.items():
        if mass >= LEAST:
            table.add_row(f"{mass:.2f}", "█" * max(1, min(round(mass * 20), 40)), cause, Text(MEANING[cause], "dim"))
    console.print(table)
    for chance in pressure.keys:
        if chance.invented >= LEAST:
            keys = ", ".join(f"{key} {share:.1%}" for key, share in chance.keys[:4] if share >= 0.001)
            console.print(Text(f"  after {chance.after}: an invented key {chance.invented:.1%}  {keys}"))
    everywhere, at_quotes = pressure.early_close
    if everywhere >= LEAST:
        console.print(
            Text(f"  a string ended early, legally: {everywhere:.2f} times expected, {at_quotes:.2f} at quotes", "dim")
        )
    if pressure.valid is not None:
        valid = pressure.valid
        console.print(
            Text(
                f"  a valid call without a grammar: {valid.value:.3g}, between {valid.lower:.3g} and {valid.upper:.3g} "
                f"(95 %; followed {valid.known:.3g}, open {valid.open:.3g}, {valid.draws} draws)"
            )
        )
    console.print()


def show_story(console: Console, story: Story) -> None:
    """Print the demo's second half."""
    free, strict = story.free, story.constrained
    console.print(Text("A 135M model asked for an edit call, again and again", style="bold"))
    console.print(f"  left to itself     {free.valid:>2} of {len(free.draws)} calls keep their contract")
    console.print(f"  under the grammar  {strict.valid:>2} of {len(strict.draws)}")
    console.print(f"  tokens a second    {free.tokens_per_second:.0f} free, {strict.tokens_per_second:.0f} constrained")
    console.print()
    for arm in story.arms:
        show(console, arm)
