"""`onspec report`: what a gateway counted, as a table or as JSON."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from onspec.errors import InputError
from onspec.gateway.store import read
from onspec.gateway.summary import OUTCOMES, Summary, summarise

UNITS = {"m": 60, "h": 3600, "d": 86400}


@click.command()
@click.option(
    "--gateway", "path", required=True, type=click.Path(path_type=Path), metavar="DB", help="Its SQLite file."
)
@click.option("--since", metavar="AGE", help="Only the last so much: 30m, 12h, 7d.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def report(path: Path, since: str | None, as_json: bool) -> None:
    """Show what a gateway counted: calls by tool and outcome, repairs by rule, invented keys.

    The file is only read, so the gateway may be running. Exit status 1 when a call was refused.
    """
    found = summarise(read(path, time.time() - _seconds(since) if since else 0.0))
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=2))
    else:
        show(found)
    if found.outcomes["refused"]:
        sys.exit(1)


def _seconds(age: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([mhd])", age.strip())
    if match is None:
        raise InputError(f"--since takes a number and m, h or d, such as 12h, not {age!r}")
    return float(match[1]) * UNITS[match[2]]


def show(found: Summary, console: Console | None = None) -> None:
    """Print a summary as tables."""
    console = console or Console()
    if not found.calls:
        return console.print("No tool calls yet.")
    table = Table(title=f"{found.calls} tool calls", title_justify="left")
    table.add_column("model")
    table.add_column("tool")
    for outcome in OUTCOMES:
        table.add_column(outcome, justify="right")
    for (model, tool), counts in sorted(found.tools.items()):
        table.add_row(model, tool, *(str(counts[outcome] or "") for outcome in OUTCOMES))
    console.print(table)
    for title, counts in (("Repairs", found.rules), ("Refusals", found.codes), ("Invented keys", found.invented)):
        if counts:
            console.print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in counts.most_common(12)))
    times = "once" if found.tries == 1 else f"{found.tries} times" if found.tries else "never"
    console.print(f"Asked again: {times}. Output tokens saved: about {found.saved}.")
