"""How many rows of a case file of replies come out exactly, by dialect.

    python benchmarks/dialect_cases.py CASES.jsonl [--auto] [--write docs/dialects_measured.json]

A row has `dialect`, `tools`, `emitted` and `expected` with `outcome` (accept, repair, refuse, text_only), `calls` and
`text`; text is compared with white space folded. A wrong call is one that would run and is not expected.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onspec import Tool, Toolset, receive

OUTCOMES = {"refused": "refuse", "repaired": "repair", "accepted": "accept", "text": "text_only"}
UNMARKED = ("json_args", "granite_pythonic")
"""Dialects without a marker, which have to be named."""


@dataclass
class Score:
    """What became of the rows of one dialect."""

    rows: int = 0
    exact: int = 0
    wrong: int = 0
    missed: list[str] = field(default_factory=list)


def fold(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def judge(row: dict[str, Any], auto: bool = False) -> tuple[bool, bool]:
    """Whether a row comes out exactly, and whether a call would run that is not expected."""
    tools = Toolset([Tool(tool["name"], tool["schema"]) for tool in row["tools"]])
    dialect = "auto" if auto and row["dialect"] not in UNMARKED else row["dialect"]
    reply = receive(row["emitted"], tools, dialect)
    calls = [{"name": call.outcome.tool.name, "arguments": call.outcome.arguments} for call in reply.calls if call.ok]
    expected = row["expected"]
    same_text = fold(reply.text) == fold(expected["text"])
    exact = OUTCOMES[reply.status] == expected["outcome"] and calls == expected["calls"] and same_text
    return exact, any(call not in expected["calls"] for call in calls)


def score(path: Path, auto: bool = False) -> dict[str, Score]:
    """The scores of a case file, by dialect."""
    scores: dict[str, Score] = defaultdict(Score)
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        exact, wrong = judge(row, auto)
        one = scores[row["dialect"]]
        one.rows += 1
        one.exact += exact
        one.wrong += wrong
        if not exact:
            one.missed.append(row["id"])
    return dict(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--auto", action="store_true", help="do not name the dialect")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the figures, for docs/dialects.py")
    options = parser.parse_args()
    scores = score(options.cases, options.auto)
    for name, one in scores.items():
        print(f"{name:<20}{one.exact:>4} of {one.rows:<4}" + " ".join(one.missed))
    rows = sum(one.rows for one in scores.values())
    exact = sum(one.exact for one in scores.values())
    print(f"exact {exact} of {rows} ({exact / rows:.1%}), wrong calls {sum(one.wrong for one in scores.values())}")
    if options.write:
        figures = {name: [one.exact, one.rows] for name, one in scores.items()}
        options.write.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
