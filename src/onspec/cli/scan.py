"""`onspec scan`: how often were my agents' calls off their schema, and what did that cost."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import orjson
from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.table import Table

from onspec.cli.page import look
from onspec.errors import InputError
from onspec.scan.html import page
from onspec.scan.price import Price, Prices
from onspec.scan.run import ENGINES, Report, default_paths
from onspec.scan.run import scan as run_scan
from onspec.scan.summary import SAVED, WASTE, by, cost, invented_rows, split_by, summary, tokens
from onspec.transcripts.wire import seconds

FAILED = 1
INTERRUPTED = 130
NAME_WIDTH = 24
"""A name is not cut shorter than this."""

MAX_ROWS = 25
"""Rows of a table on the terminal; the JSON and the page have them all."""

COLUMNS = ("calls", "errors", "rejected", "off", "rate", "silent", "repairs", "wasted", "cost")

LEGEND = (
    "errors: answers flagged as errors; rejected: by the harness, for what the model wrote; off: off schema in any way;"
    " silent: off, and accepted all the same; repairs: off, and repairable by the safe policy; wasted: tokens of lost"
    " replies."
)

_AGE = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@click.command(
    epilog="Exit status: 0 fine, 1 more off-schema calls than --fail-over allows, 2 used wrongly, 130 interrupted."
)
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--since", metavar="AGE", help="Only files changed and calls made since then: 30d, 12h, or 2026-11-01.")
@click.option(
    "--by",
    "grouping",
    default="model",
    show_default=True,
    metavar="NAMES",
    help="Group by model, tool, harness, day, or several of them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, for scripts and CI.")
@click.option("--html", "html", type=click.Path(dir_okay=False, path_type=Path), help="Also write a page with plots.")
@click.option("--fail-over", metavar="RATE", help="Exit 1 when more calls than this are off schema: 2% or 0.02.")
@click.option(
    "--price", "prices", multiple=True, metavar="MODEL=IN,OUT[,READ[,WRITE]]",
    help="Dollars per million tokens of models that fit a pattern; may be repeated. Else the genai-prices list counts.",
)  # fmt: skip
@click.option(
    "--engine", type=click.Choice(sorted(ENGINES)), default="local", show_default=True, help="Where files are counted."
)
@click.option(
    "--workers", type=click.IntRange(0, 4096), default=0, help="Files counted at once; 0 picks what the machine has."
)
@click.option("--quiet", "-q", is_flag=True, help="No progress on the terminal.")
def scan(
    paths: tuple[str, ...],
    since: str | None,
    grouping: str,
    as_json: bool,
    html: Path | None,
    fail_over: str | None,
    prices: tuple[str, ...],
    engine: str,
    workers: int,
    quiet: bool,
) -> None:
    """Count off-schema tool calls in the session files of agents.

    Without a PATH, looks where Pi, Claude Code, Codex, OpenCode, Gemini CLI, Qwen Code, Cline, OpenHands and Copilot
    keep their sessions on this machine. A PATH is a file, a folder, or a URL that fsspec knows. Reads only; prints no
    payload of any call.
    """
    names = split_by(grouping)
    limit = None if fail_over is None else rate(fail_over)
    price_list = Prices(Price.parse(text) for text in prices)
    moment = None if since is None else moment_of(since, time.time())
    look(html)
    targets = paths or default_paths()
    report = _run(targets, moment, engine, workers, quiet or not sys.stderr.isatty())
    data = summary(report, names, price_list)
    if html is not None:
        html.write_text(page(data, report, names), encoding="utf-8", errors="replace")
    if as_json:
        click.echo(orjson.dumps(_safe(data), option=orjson.OPT_INDENT_2))
    else:
        show(Console(), report, names, price_list)
        if html is not None:
            click.echo(f"written: {html}")
    if report.interrupted:
        sys.exit(INTERRUPTED)
    if limit is not None and data["calls"] and data["off_schema"] / data["calls"] > limit:
        if not as_json:
            click.echo(f"off schema: {data['off_schema'] / data['calls']:.2%}, more than {limit:.2%}", err=True)
        sys.exit(FAILED)


def _run(paths: tuple[str, ...], since: float | None, engine: str, workers: int, quiet: bool) -> Report:
    if quiet:
        return run_scan(paths, since=since, engine=engine, workers=workers)
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        job = bar.add_task("looking for sessions")

        def tell(report: Report) -> None:
            bar.update(job, description=f"{report.files} sessions, {report.size / 1e6:.0f} MB, {_calls(report)} calls")

        return run_scan(paths, since=since, engine=engine, workers=workers, progress=_sparing(tell))


def _sparing(tell: Callable[[Report], None]) -> Callable[[Report], None]:
    """At most ten times a second."""
    last = [0.0]

    def maybe(report: Report) -> None:
        now = time.monotonic()
        if now - last[0] > 0.1:
            last[0] = now
            tell(report)

    return maybe


def _calls(report: Report) -> int:
    return sum(tally.calls for tally in report.groups.values())


def show(console: Console, report: Report, names: tuple[str, ...], prices: Prices) -> None:
    """Prints the tables."""
    total = report.total()
    if not total.calls:
        console.print(f"No tool calls in {report.files} session files ({report.other} other files looked into).")
        _show_trouble(console, report)
        return
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, overflow="ellipsis", no_wrap=True, min_width=8, max_width=NAME_WIDTH)
    for title in COLUMNS:
        table.add_column(title, justify="right", no_wrap=True)
    rows = by(report, names) if names else []
    if "day" not in names:
        rows.sort(key=lambda row: (-row[1].off_schema, -row[1].calls))
    for key, tally, models in rows[:MAX_ROWS]:
        table.add_row(*(_cell(one) for one in key), *_numbers(tally, cost(models, WASTE, prices)))
    if len(rows) > MAX_ROWS:
        table.add_row(*(f"{len(rows) - MAX_ROWS} more" if index == 0 else "" for index in range(len(names))))
    models = {row[0][0]: row[1] for row in by(report, ("model",))}
    if len(rows) != 1:
        table.add_section()
        table.add_row(
            *("all" if index == 0 else "" for index in range(len(names))), *_numbers(total, cost(models, WASTE, prices))
        )
    _print_whole(console, table)
    console.print(LEGEND, style="dim", highlight=False)
    saved, wasted = tokens(total, SAVED), tokens(total, WASTE)
    console.print(
        f"\n{total.calls} calls in {report.files} files, {report.size / 1e6:.1f} MB, {report.seconds:.1f} s. "
        f"Retries: {total.retries} made good, {total.gave_up} never."
    )
    if sum(wasted):
        dollars = cost(models, SAVED, prices)
        console.print(
            f"The safe policy would have repaired {total.safe_repaired} of {total.off_schema} off-schema calls and "
            f"saved {_big(sum(saved))} of {_big(sum(wasted))} wasted tokens{f' (${dollars:.2f})' if dollars else ''}."
        )
    if report.guessed:
        console.print(
            f"Of {report.guessed} calls the output tokens are estimated (a token for four bytes of arguments): "
            "their files hold the count at the start of the stream.",
            style="dim",
        )
    _show_keys(console, report)
    _show_trouble(console, report)
    if prices.missing:
        console.print(f"No prices: {prices.missing}", style="dim", markup=False)
    elif prices.unknown - {""}:
        console.print(
            f"No price for: {', '.join(name[:40] for name in sorted(prices.unknown - {''})[:6])}; use --price",
            style="dim",
            markup=False,
            highlight=False,
        )


def _print_whole(console: Console, table: Table) -> None:
    """Prints the table, beyond the terminal's width where a number would be cut else; names may be cut."""
    widths = []
    for column in table.columns:
        whole = max(cell_len(str(cell)) for cell in (column.header, *column.cells))
        widths.append(max(min(whole, NAME_WIDTH), column.min_width or 0) if column.justify == "left" else whole)
    before = console.width
    console.width = max(before, sum(widths) + 2 * (len(widths) - 1))
    console.print(table)
    console.width = before


def _show_keys(console: Console, report: Report) -> None:
    rows = invented_rows(report, 10)
    if not rows:
        return
    table = Table(box=None, pad_edge=False, title="\nkeys that models invented", title_justify="left")
    for title in ("key", "kind", "tools"):
        table.add_column(title, overflow="fold")
    for title in ("times", "inert"):
        table.add_column(title, justify="right")
    for row in rows:
        table.add_row(
            _cell(row["key"]),
            row["kind"],
            _cell(", ".join(list(row["tools"])[:3])),
            str(row["times"]),
            str(row["inert"]),
        )
    console.print(table)


def _show_trouble(console: Console, report: Report) -> None:
    for path, why in report.errors[:5]:
        console.print(f"not read: {_safe(path)}: {why}", style="yellow", markup=False, highlight=False)
    if len(report.errors) > 5:
        console.print(f"and {len(report.errors) - 5} more that could not be read", style="yellow")
    if report.damage:
        parts = ", ".join(f"{number} {reason}" for reason, number in report.damage.most_common())
        console.print(f"damaged lines, passed over: {parts}", style="dim")
    if report.interrupted:
        console.print("interrupted; these are the counts until then", style="yellow")


def _numbers(tally: Any, dollars: float | None) -> list[str]:
    share = f"{tally.off_schema / tally.calls:.2%}" if tally.calls else "-"
    wasted = sum(tokens(tally, WASTE))
    return [
        str(tally.calls),
        str(tally.error_results),
        str(tally.rejected),
        str(tally.off_schema),
        share,
        str(tally.silent),
        str(tally.safe_repaired),
        _big(wasted),
        f"${dollars:.2f}" if dollars else "-",
    ]


def _big(number: int) -> str:
    return (
        str(number) if number < 10_000 else f"{number / 1000:.0f}k" if number < 10_000_000 else f"{number / 1e6:.1f}M"
    )


def _cell(text: str) -> str:
    """Text from a file, made safe for a terminal: no markup, no control characters, and not endless."""
    shown = "".join(char if char.isprintable() else "?" for char in text[:80]) or "unknown"
    return shown.replace("[", "\\[")


def rate(text: str) -> float:
    """A rate from `2%` or `0.02`.

    Raises:
        InputError: It is neither, or not between 0 and 1.
    """
    try:
        value = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"--fail-over {text!r} is no rate; write 2% or 0.02")
    return value


def moment_of(text: str, now: float) -> float:
    """Unix seconds of an age before `now` (`30d`) or of a date (`2026-11-01`, with a time if wanted).

    Raises:
        InputError: It is neither.
    """
    found = _AGE.match(text.strip())
    if found:
        return now - float(found[1]) * _SECONDS[found[2]]
    moment = seconds(text.strip())
    if moment is None:
        raise InputError(f"--since {text!r} is neither an age such as 30d nor a date such as 2026-11-01")
    return moment


def _safe(value: Any) -> Any:
    """Data whose texts can be written as UTF-8: file names may hold bytes that are none."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_safe(key): _safe(inner) for key, inner in value.items()}
    return [_safe(inner) for inner in value] if isinstance(value, list | tuple) else value
