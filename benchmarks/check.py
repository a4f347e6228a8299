"""How fast `check` is, as ratios against orjson + jsonschema-rs doing the bare parse and validation in the same run.

    python benchmarks/check.py [--json] [--write docs/speed.md]

Every figure is a median of rounds in which the two take turns, in CPU time of the measuring thread, so that other work
on the machine counts little. The peer does not look for doubled keys, lone surrogates, leaked markup or cut output. On
a text with a defect it would simply fail, so there the peer is given the sound text.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson

from onspec import Tool, check

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "edits": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
                "required": ["oldText", "newText"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["path", "edits"],
    "additionalProperties": False,
}
LINE = (
    '    def method_{0}(self, name: str = "x{0}") -> dict[str, int]:\n'
    '        return {{"k\\n": {0}, name: len(self.rows) * 2}}\n\n'
)
ROUNDS = 15


def payload(size: int) -> str:
    """Python code of about `size` characters, with quotes, backslashes and newlines."""
    lines = [LINE.format(i) for i in range(size // len(LINE.format(0)) + 1)]
    return "".join(lines)[:size].rstrip("\\")


def call(size: int, edits: int = 1) -> dict[str, Any]:
    """A call of about `size` bytes with so many edits."""
    part = max(1, int(size / edits / 2 / 1.13))
    return {"path": "src/app.py", "edits": [{"oldText": payload(part), "newText": payload(part)} for _ in range(edits)]}


def extra_key(value: dict[str, Any]) -> str:
    value["edits"][-1]["requireUnique"] = True
    return json.dumps(value, ensure_ascii=False)


def missing_closers(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)[:-2]


def trailing_comma(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)[:-1] + ",}"


def raw_newline(value: dict[str, Any]) -> str:
    value["edits"][-1]["newText"] += "\x01"
    return json.dumps(value, ensure_ascii=False).replace("\\u0001", "\n")


DEFECTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "extra key": extra_key,
    "missing closers": missing_closers,
    "trailing comma": trailing_comma,
    "raw newline": raw_newline,
}


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
    """Median seconds of ours, and the median of the ratios of rounds in which both took a turn."""
    start = time.thread_time()
    ours(), theirs()
    repeat = max(1, min(2000, int(0.02 / max(time.thread_time() - start, 1e-6))))
    mine: list[float] = []
    ratios: list[float] = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        for _ in range(repeat):
            ours()
        middle = time.thread_time()
        for _ in range(repeat):
            theirs()
        end = time.thread_time()
        mine.append((middle - start) / repeat)
        ratios.append((middle - start) / (end - middle))
    return statistics.median(mine), statistics.median(ratios)


def peer(text: str) -> Callable[[], Any]:
    judge = jsonschema_rs.validator_for(SCHEMA)
    return lambda: judge.is_valid(orjson.loads(text))


def rows(tool: Tool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def row(name: str, text: str, sound: str, status: str, limit: float | None) -> None:
        outcome = check(tool, text)
        assert outcome.status == status, (name, outcome)
        seconds, times = ratio(lambda: check(tool, text), peer(sound))
        found.append({"case": name, "bytes": len(text.encode()), "ms": seconds * 1e3, "ratio": times, "limit": limit})
        print(
            f"{name:34} {len(text):>10,} B {seconds * 1e3:10.3f} ms {times:7.2f}x"
            + (f"  (limit {limit}x)" if limit else ""),
            flush=True,
        )

    for size, limit in ((2_000, 3.0), (100_000, 1.3), (5_000_000, 1.3)):
        text = json.dumps(call(size), ensure_ascii=False)
        row(f"accepted {size // 1000} kB", text, text, "accepted", limit)
    text = json.dumps(call(100_000, 20), ensure_ascii=False)
    row("accepted 100 kB in 20 edits", text, text, "accepted", None)
    text = json.dumps(call(100_000, 1000), ensure_ascii=False)
    row("accepted 100 kB in 1,000 edits", text, text, "accepted", None)
    for size in (100_000, 5_000_000):
        for name, break_ in DEFECTS.items():
            row(
                f"{name} {size // 1000} kB",
                break_(call(size)),
                json.dumps(call(size), ensure_ascii=False),
                "repaired",
                8.0,
            )
    text = extra_key(call(100_000, 1000))
    row("extra key 100 kB in 1,000 edits", text, text, "repaired", None)
    return found


def growth(tool: Tool) -> dict[str, float]:
    """Exponent of time over size from 10 kB to 10 MB (least squares over the logarithms); 1 is linear."""
    found: dict[str, float] = {}
    shapes: dict[str, Callable[[int], str]] = {
        "accepted": lambda n: json.dumps(call(n), ensure_ascii=False),
        "one huge string": lambda n: json.dumps({"path": "p", "edits": [{"oldText": "a" * n, "newText": "b"}]}),
        "many edits": lambda n: json.dumps(call(n, n // 500), ensure_ascii=False),
        **{name: (lambda n, b=break_: b(call(n))) for name, break_ in DEFECTS.items()},
    }
    for name, make in shapes.items():
        points: list[tuple[float, float]] = []
        for size in (10_000, 100_000, 1_000_000, 10_000_000):
            text = make(size)
            times = []
            for _ in range(5):
                start = time.thread_time()
                check(tool, text)
                times.append(time.thread_time() - start)
            points.append((math.log(len(text)), math.log(min(times))))
        mean_x = statistics.fmean(x for x, _ in points)
        mean_y = statistics.fmean(y for _, y in points)
        slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
        found[name] = slope
        print(f"growth exponent, {name:20} {slope:5.2f}  (limit 1.1)", flush=True)
    return found


def memory() -> dict[str, float]:
    """Peak resident memory of a fresh process during one check, less what it held before, over the input, at 5 MB."""
    found: dict[str, float] = {}
    for name in ("accepted", *DEFECTS):
        run = subprocess.run([sys.executable, __file__, "--peak", name], capture_output=True, text=True, check=True)
        found[name] = float(run.stdout)
        print(f"peak memory, {name:24} {found[name]:5.2f}x the input  (limit 6x)", flush=True)
    return found


def peak(name: str) -> float:
    text = DEFECTS[name](call(5_000_000)) if name in DEFECTS else json.dumps(call(5_000_000), ensure_ascii=False)
    tool = Tool("edit", SCHEMA)
    check(tool, '{"path": "p", "edits": [{"oldText": "a", "newText": "b"}]}')
    before = _resident()
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak to what is held now
    check(tool, text)
    return (_peak() - before) / len(text.encode())


def _resident() -> int:
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(field: str) -> int:
    """Bytes, from the kernel's own account of this process (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def page(result: dict[str, Any]) -> str:
    """docs/speed.md."""
    lines = [
        "# What a check costs",
        "",
        "Written by `python benchmarks/check.py --write docs/speed.md`. Ratios are against orjson + jsonschema-rs",
        "doing the bare parse and validation of the sound text in the same run: medians of rounds in which the two",
        "take turns, in CPU time of one thread. The call is an `edit` whose texts are Python code.",
        "",
        "| call | bytes | milliseconds | ratio | limit |",
        "|---|--:|--:|--:|--:|",
    ]
    for row in result["rows"]:
        limit = f"{row['limit']:g}x" if row["limit"] else ""
        lines.append(f"| {row['case']} | {row['bytes']:,} | {row['ms']:.3f} | {row['ratio']:.2f}x | {limit} |")
    lines += ["", "Time grows with the size to the power of (10 kB to 10 MB; 1 is linear, the limit is 1.1):", ""]
    lines += [f"- {name}: {value:.2f}" for name, value in result["growth"].items()]
    lines += ["", "Peak resident memory of one check of 5 MB, over the input (the limit is 6x):", ""]
    lines += [f"- {name}: {value:.1f}x" for name, value in result["memory"].items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--json", action="store_true", help="print one JSON document at the end")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the figures as a page")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(peak(options.peak))
        return
    tool = Tool("edit", SCHEMA)
    result = {"rows": rows(tool), "growth": growth(tool), "memory": memory()}
    if options.write:
        options.write.write_text(page(result), encoding="utf-8")
    if options.json:
        json.dump(result, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
