"""The scoreboard: onspec and its peers on the article's calls, the project's cases and mutants.

    python -m benchmarks.scoreboard [--mutants N] [--seed S] [--largest BYTES]

writes `docs/scoreboard.md` and `src/onspec/data/peers.json`. A peer that is not installed is reported as missing.
"""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from benchmarks.mutants import KINDS, mutants
from benchmarks.peers.peer import Parse, Peer

from onspec import check
from onspec.cli.cases import Case, bundled

ROOT = Path(__file__).resolve().parent.parent
PEERS = (
    "json_repair",
    "fast_json_repair",
    "pydantic",
    "dirtyjson",
    "partial_json_parser",
    "langchain_core",
    "baml_py",
)
"""Modules of `benchmarks.peers`, each named for the package it measures."""

CUT = frozenset({"length", "max_tokens"})
PATIENCE = 20
"""Seconds after which a call counts as refused."""

VERDICTS = ("right", "refused", "wrong")
Run = Callable[[Case], tuple[bool, Any]]


@dataclass(slots=True)
class System:
    """What is measured: onspec or a peer, with its counts by group and kind."""

    name: str
    version: str
    run: Run | None
    seconds: float = 0.0
    counts: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)

    def total(self, group: str) -> Counter[str]:
        """Verdicts over all kinds of a group."""
        return sum((count for (one, _), count in self.counts.items() if one == group), Counter())


def _onspec(case: Case) -> tuple[bool, Any]:
    outcome = check(case.contract(), case.emitted, finish_reason=case.finish_reason)
    return outcome.ok, outcome.arguments


def _as_run(peer: Peer) -> Run:
    """A peer behind the one guard that any caller can have: what the provider cut is not executed."""
    made: dict[str, Parse] = {}

    def run(case: Case) -> tuple[bool, Any]:
        if case.finish_reason in CUT:
            return False, None
        key = json.dumps(case.schema, sort_keys=True)
        try:
            if key not in made:
                made[key] = peer.make(case.schema)
            return True, made[key](case.emitted)
        except Exception:
            # Whatever a peer raises, of whatever class, is its refusal.
            return False, None

    return run


SOUND_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def systems() -> list[System]:
    """onspec and every peer; one that is not installed has no `run`."""
    found = [System("onspec", metadata.version("onspec"), _onspec)]
    for name in PEERS:
        try:
            peers: list[Peer] = import_module(f"benchmarks.peers.{name}").PEERS
        except ImportError:
            found.append(System(name, "missing", None))
            continue
        for peer in peers:
            # A sound call that a peer cannot read means that it is not whole, which is no refusal.
            if peer.make(SOUND_SCHEMA)('{"a": 1}') != {"a": 1}:
                raise SystemExit(f"{peer.name} does not read a sound call")
            found.append(System(peer.name, metadata.version(peer.distribution), _as_run(peer)))
    return found


def _measure(system: System, group: str, cases: Iterable[Case]) -> None:
    assert system.run is not None
    for case in cases:
        start = time.perf_counter()
        signal.alarm(PATIENCE)
        try:
            executed, arguments = system.run(case)
        except TimeoutError:
            executed, arguments = False, None
        finally:
            signal.alarm(0)
        system.seconds += time.perf_counter() - start
        system.counts.setdefault((group, case.failure), Counter())[case.judge(executed, arguments)] += 1


def _too_long(signum: int, frame: Any) -> None:
    raise TimeoutError


def _table(found: list[System], groups: dict[str, list[Case]]) -> list[str]:
    head = "| | version | " + " | ".join(f"{group}: right | refused | wrong" for group in groups) + " | seconds |"
    lines = [head, "|---|---|" + "--:|--:|--:|" * len(groups) + "--:|"]
    for system in found:
        if system.run is None:
            lines.append(f"| {system.name} | missing |" + " | | |" * len(groups) + " |")
            continue
        cells = []
        for group, cases in groups.items():
            total = system.total(group)
            cells += [
                f"{total['right']} ({total['right'] / len(cases):.1%})",
                str(total["refused"]),
                str(total["wrong"]),
            ]
        name = f"**{system.name}**" if system.name == "onspec" else system.name
        lines.append(f"| {name} | {system.version} | {' | '.join(cells)} | {system.seconds:.1f} |")
    return lines


def _kinds(found: list[System], group: str, cases: list[Case]) -> list[str]:
    present = [system for system in found if system.run is not None]
    counts = Counter(case.failure for case in cases)
    lines = ["| kind | rows | " + " | ".join(system.name for system in present) + " | best |"]
    lines.append("|---|--:|" + "--:|" * len(present) + "---|")
    for kind, rows in sorted(counts.items()):
        cells = []
        scores: dict[str, tuple[int, int]] = {}
        for system in present:
            count = system.counts[group, kind]
            cells.append(str(count["right"]) + (f" (**{count['wrong']} wrong**)" if count["wrong"] else ""))
            scores[system.name] = (-count["wrong"], count["right"])
        lines.append(f"| {kind} | {rows} | {' | '.join(cells)} | {_best(scores)} |")
    return lines


def _best(scores: dict[str, tuple[int, int]]) -> str:
    """Who has the row: fewest executed wrongly, then most right; the peers by name where they beat onspec."""
    top = max(scores.values())
    winners = [name for name, score in scores.items() if score == top]
    if "onspec" not in winners:
        return "**" + ", ".join(winners) + "**"
    return "onspec" if len(winners) == 1 else f"onspec and {len(winners) - 1} more"


def _won_by_peers(found: list[System], groups: dict[str, list[Case]]) -> list[str]:
    """Rows in which a peer has more right than onspec, whatever else it got wrong."""
    ours, *peers = found
    lines = []
    for group, cases in groups.items():
        for kind in sorted({case.failure for case in cases}):
            own = ours.counts[group, kind]["right"]
            better = [
                f"{peer.name} ({peer.counts[group, kind]['right']} right, {peer.counts[group, kind]['wrong']} wrong)"
                for peer in peers
                if peer.run is not None and peer.counts[group, kind]["right"] > own
            ]
            if better:
                lines.append(f"- {group}, {kind}: onspec {own} right; {', '.join(better)}")
    return lines or ["- none"]


def _report(found: list[System], groups: dict[str, list[Case]], command: str, date: str) -> str:
    lines = [
        "# Scoreboard",
        "",
        f"Written by `{command}` on {date}, Python {platform.python_version()}.",
        "",
        "Every system gets the same text and schema. *right*: executed with exactly the right arguments, or refused",
        "where refusing is right. *refused*: not executed although one reading was clear. *wrong*: executed with other",
        "arguments, or executed where no reading was clear. Peers that know no schema are followed by a JSON Schema",
        "validator, and every peer is behind a guard that refuses what the provider cut (`length`), so that only what",
        "it does with the text itself is counted. Seconds are the sum over all rows, compiling of schemas included.",
        "",
        "The rows were written for onspec and follow its policy: a guess at content is refused, an unknown key of a",
        "closed schema may go where nothing is lost with it. Where the policy can be argued, a row allows both.",
        "A system with another policy loses rows here that it would call its own way of being right; what it executed",
        "wrongly was executed with other arguments than the row allows, or should not have been executed.",
        "",
        *_table(found, groups),
        "",
        "## Rows that a peer wins",
        "",
        "More right than onspec, whatever it executed wrongly:",
        "",
        *_won_by_peers(found, groups),
    ]
    for group, cases in groups.items():
        if group == "article":
            continue
        lines += ["", f"## {group.capitalize()} by kind", "", "Cells: rows right; executed wrongly in bold.", ""]
        lines += _kinds(found, group, cases)
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, then write the page and the figures that `onspec demo` prints."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--mutants", type=int, default=20 * len(KINDS), help="how many (default: 20 of each kind)")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--largest", type=int, default=10_000, help="greatest payload, in bytes")
    options = arguments.parse_args()
    signal.signal(signal.SIGALRM, _too_long)
    groups = {
        "article": bundled("article"),
        "cases": bundled("cases"),
        "mutants": list(mutants(options.seed, options.mutants, 100, options.largest)),
    }
    found = systems()
    for system in found:
        if system.run is None:
            print(f"{system.name}: missing", file=sys.stderr)
            continue
        for group, cases in groups.items():
            _measure(system, group, cases)
        totals = "; ".join(f"{group} {dict(system.total(group))}" for group in groups)
        print(f"{system.name} {system.version}: {totals}; {system.seconds:.1f} s", file=sys.stderr)
    date = datetime.now(UTC).date().isoformat()
    command = f"python -m benchmarks.scoreboard --mutants {options.mutants} --seed {options.seed}"
    command += f" --largest {options.largest}"
    (ROOT / "docs" / "scoreboard.md").write_text(_report(found, groups, command, date), encoding="utf-8")
    figures = {
        "date": date,
        "command": command,
        "rows": {group: len(cases) for group, cases in groups.items()},
        "systems": [
            {"name": one.name, "version": one.version, **{group: _figures(one, group) for group in groups}}
            for one in found
            if one.run is not None
        ],
    }
    path = ROOT / "src" / "onspec" / "data" / "peers.json"
    path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _figures(system: System, group: str) -> dict[str, int]:
    total = system.total(group)
    return {verdict: total[verdict] for verdict in VERDICTS}


if __name__ == "__main__":
    main()
