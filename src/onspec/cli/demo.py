"""`onspec demo`: broken calls as models write them, each with its verdict, then the score beside other libraries."""

from __future__ import annotations

import io
import json
import sys
import textwrap
import time
from collections import Counter
from importlib import import_module
from importlib.resources import files
from typing import Any, Literal

import click
import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from onspec.audit import Json, Repair
from onspec.check import Outcome, check
from onspec.cli.cases import Case, Verdict, bundled
from onspec.errors import InputError

STYLES = {"accepted": "green", "repaired": "cyan", "refused": "yellow"}
PRIMARY = {"accepted": "accept", "repaired": "repair", "refused": "refuse"}
INDENT = " " * 6
SHOWN = 60
"""Characters of a value that are shown."""

VERDICTS: tuple[Verdict, ...] = ("right", "refused", "wrong")
Group = Literal["article", "cases"]
TITLES: dict[Group, str] = {
    "article": "{} calls of one edit tool: edit(path, edits: [oldText, newText]), closed",
    "cases": "{} calls of other tools, by kind of defect",
}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
@click.option(
    "--only",
    type=click.Choice(["article", "cases", "model"]),
    help="Run one part only: the calls of the edit tool, the case file, or the model.",
)
@click.option("--no-model", is_flag=True, help="Leave out the second half, in which the bundled model runs.")
def demo(as_json: bool, only: Literal["article", "cases", "model"] | None, no_model: bool) -> None:
    """Run broken calls through onspec and compare the outcome with other libraries.

    First the calls of one edit tool that newer models write, then the case file: every kind of defect that is known
    from real agents. Each call is accepted untouched, repaired with an audit, or refused with feedback for the model.
    The score of other libraries was measured by the scoreboard, on the date shown.

    Then the bundled model writes calls of such a tool, freely and under a grammar, and the chance that it breaks the
    schema is measured, after a clean history and after one with a failed call (about a minute; `--no-model` leaves it
    out, and so does --json).

    Nothing is sent anywhere.

    Exit status: 0 when no call was executed wrongly, 1 when one was.
    """
    if only == "model":
        _second_half(needed=True)
        return
    groups: tuple[Group, ...] = (only,) if only else ("article", "cases")
    cases = {group: bundled(group) for group in groups}
    start = time.perf_counter()
    judged = {group: [_judged(case) for case in rows] for group, rows in cases.items()}
    seconds = time.perf_counter() - start
    totals = {group: Counter(verdict for _, _, verdict in rows) for group, rows in judged.items()}
    if as_json:
        click.echo(json.dumps(_document(judged, totals), ensure_ascii=True, indent=1))
    else:
        _print(judged, totals, seconds)
        if only is None and not no_model:
            _second_half(needed=False)
    if any(total["wrong"] for total in totals.values()):
        sys.exit(1)


def _second_half(needed: bool) -> None:
    """The model's part, where its packages are installed."""
    try:
        story = import_module("onspec.cli.story")
    except ImportError as error:
        missing = f"the second half runs a small model: {error}"
    else:
        if story.there():
            click.echo()
            story.tell(Console(highlight=False))
            return
        missing = "the second half runs a small model: onspec model add smollm2"
    if needed:
        raise InputError(missing)
    click.echo(f"\n{missing}")


def _judged(case: Case) -> tuple[Case, Outcome, Verdict]:
    outcome = check(case.contract(), case.emitted, finish_reason=case.finish_reason)
    return case, outcome, case.judge(outcome.ok, outcome.arguments)


Judged = dict[Group, list[tuple[Case, Outcome, Verdict]]]


def _document(judged: Judged, totals: dict[Group, Counter[Verdict]]) -> dict[str, Any]:
    return {
        "rows": [
            {"group": group, "id": case.id, "kind": case.failure, "tool": case.tool, "emitted": case.emitted}
            | outcome.to_dict()
            | {"verdict": verdict}
            for group, rows in judged.items()
            for case, outcome, verdict in rows
        ],
        "totals": {group: _figures(total) for group, total in totals.items()},
        "peers": _peers(),
    }


def _figures(total: Counter[Verdict]) -> dict[str, int]:
    return {verdict: total[verdict] for verdict in VERDICTS}


def _peers() -> dict[str, Any] | None:
    """The figures that the scoreboard measured, or None where none came with the package."""
    path = files("onspec").joinpath("data", "peers.json")
    if not path.is_file():
        return None
    figures: dict[str, Any] = orjson.loads(path.read_bytes())
    return figures


def _print(judged: Judged, totals: dict[Group, Counter[Verdict]], seconds: float) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    console = Console(highlight=False, markup=False, emoji=False)
    for group, rows in judged.items():
        console.print(Text(TITLES[group].format(len(rows)), style="bold"))
        console.print()
        for case, outcome, verdict in rows:
            _row(console, case, outcome, verdict)
        console.print()
    _score(console, judged, totals, seconds)


def _row(console: Console, case: Case, outcome: Outcome, verdict: Verdict) -> None:
    head = Text(f"{case.id}  ")
    head.append(outcome.status, style=STYLES[outcome.status])
    head.append(f"  {case.failure.replace('_', ' ')}")
    if case.finish_reason:
        head.append(f", stop reason {case.finish_reason}", style="dim")
    if verdict != "right":
        head.append(f"  {'EXECUTED WRONGLY' if verdict == 'wrong' else 'refused too much'}", style="bold red")
    console.print(head)
    if len(case.emitted) <= SHOWN * 4:
        _line(console, _printable(case.emitted), "dim")
    for repair in outcome.repairs:
        _line(console, _worded(repair))
    for line in outcome.feedback().splitlines():
        _line(console, line)
    if case.why and PRIMARY[outcome.status] == case.outcome:
        _line(console, f"({case.why})", "dim italic")


def _line(console: Console, text: str, style: str = "") -> None:
    for line in textwrap.wrap(text, max(console.width - len(INDENT), 20), break_on_hyphens=False) or [""]:
        console.print(Text(INDENT + line, style=style), soft_wrap=True)


def _worded(repair: Repair) -> str:
    place = f" {_printable(repair.path)}" if repair.path else ""
    if repair.after is None:
        return f"{repair.rule}{place}: {_shown(repair.before)} removed"
    return f"{repair.rule}{place}: {_shown(repair.before)} -> {_shown(repair.after)}"


def _shown(value: Json) -> str:
    text = _printable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 20]} ... {len(text)} characters"


def _printable(text: str) -> str:
    """The text on one line, with nothing in it that a terminal obeys."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _score(console: Console, judged: Judged, totals: dict[Group, Counter[Verdict]], seconds: float) -> None:
    rows = sum(map(len, judged.values()))
    table = Table(box=None, pad_edge=False, title=None)
    table.add_column(f"{rows} calls", overflow="fold")
    for verdict in VERDICTS:
        table.add_column(verdict, justify="right")
    total = sum(totals.values(), Counter())
    table.add_row(Text("onspec", style="bold"), *(str(one) for one in _figures(total).values()))
    peers = _peers()
    others = [one for one in peers["systems"] if one["name"] != "onspec"] if peers else []
    for other in others:
        sums = [sum(other[group][verdict] for group in judged) for verdict in VERDICTS]
        name = f"{other['name']} {other['version']}"
        table.add_row(name, str(sums[0]), str(sums[1]), Text(str(sums[2]), style="red" if sums[2] else ""))
    console.print(table)
    console.print()
    console.print(Text("refused: not run although one reading was clear. wrong: run with other arguments, or at all."))
    console.print(Text(f"onspec: {seconds * 1000:.0f} ms for all of them, schemas compiled included.", style="dim"))
    if peers:
        stale = any(peers["rows"][group] != len(rows) for group, rows in judged.items())
        note = f"The others were measured on {peers['date']} by benchmarks/scoreboard.py"
        note += ", on another edition of the files." if stale else "; kind by kind in docs/scoreboard.md."
        console.print(Text(note, style="dim"))
