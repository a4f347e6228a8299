"""Time and memory of edits: many edits in a large file, and the nearest passage, beside bare reads and writes.

Run: python benchmarks/edits.py [--json]. Exit status 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from onspec.edits.edit import Change, Insert, Lines, Modify, Replace
from onspec.edits.nearest import nearest
from onspec.edits.workspace import Workspace

LARGE = 10 * 1024 * 1024
"""Bytes of the large file."""

EDITS, ROUNDS = 1_000, 6
MOST_SECONDS, MOST_RATIO, MOST_NEAREST, MOST_MEMORY = 0.5, 4.0, 0.150, 5.0
"""Limits: seconds for the edits; times a bare read and write; seconds for the nearest passage; times the file."""


def source(size: int, seed: int = 1) -> list[str]:
    """Lines of a file that looks like code: few words, many times."""
    chance = random.Random(seed)
    words = ["value", "result", "index", "count", "total", "items", "cache", "user", "request", "handler", "config"]
    lines, length = [], 0
    while length < size:
        one, other = chance.choice(words), chance.choice(words)
        line = f"    {one}_{len(lines):06d} = {other}.get({chance.randint(0, 99999)}, '{chance.choice(words)}')\n"
        lines.append(line)
        length += len(line)
    return lines


def shapes(lines: list[str]) -> dict[str, list[Change]]:
    """Sets of edits: of one line each, of several, of part of a line, and in a patch."""
    chance = random.Random(2)
    places = sorted(chance.sample(range(0, len(lines) - 8, 8), EDITS))
    return {
        "one line": [Replace(lines[n], f"# {lines[n]}", at=f"/{n}") for n in places],
        "four lines": [Replace("".join(lines[n : n + 4]), lines[n] + "pass\n", at=f"/{n}") for n in places],
        "a name": [Replace(lines[n].split()[0] + " ", f"new_{n} ", at=f"/{n}") for n in places],
        "one for all": [Replace("request.get(", "request.fetch(", True, at="/0"), Insert(0, "# top\n", at="/1")],
        "patch, 50 chunks": [
            Lines((lines[n][:-1], lines[n + 1][:-1]), (lines[n][:-1], "x", lines[n + 1][:-1]), at=f"/{n}")
            for n in places[:50]
        ],
    }


def timed(work: Callable[[], object]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def apply(workspace: Workspace, changes: list[Change]) -> None:
    done = workspace.apply([Modify("large.py", tuple(changes))])
    assert done.ok, done.violations[0]


def bare(path: Path, new: bytes) -> None:
    """Read a file, and put other bytes in its place as durably as an edit does."""
    path.read_bytes()
    beside = path.with_suffix(".tmp")
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    view = memoryview(new)
    while view:
        view = view[os.write(fd, view) :]
    os.fsync(fd)
    os.close(fd)
    os.rename(beside, path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def large(ends: str) -> list[dict[str, object]]:
    lines = source(LARGE)
    data = "".join(lines).replace("\n", ends).encode()
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        root.mkdir()
        file = root / "large.py"
        for name, changes in shapes(lines).items():
            bares, edits = [], []
            with Workspace(root, state=Path(folder, "state")) as workspace:
                for _ in range(ROUNDS):  # the two take turns, so that a busy machine slows both
                    file.write_bytes(data)
                    bares.append(timed(lambda: bare(file, data)))
                    edits.append(timed(lambda: apply(workspace, changes)))  # noqa: B023
            floor, seconds = min(bares), min(edits)
            rows.append(
                {
                    "what": f"{name}, {len(changes)} edits, {'CRLF' if ends != chr(10) else 'LF'}",
                    "seconds": round(seconds, 4),
                    "read and write": round(floor, 4),
                    "ratio": round(seconds / floor, 1),
                }
            )
    return rows


def passages() -> list[dict[str, object]]:
    lines = source(1024 * 1024, seed=3)
    text = "".join(lines)
    wide = text.replace("\n", " ")
    middle = len(lines) // 2
    wanted = {
        "a line, one letter off": (text, lines[middle].replace("get", "gat")),
        "twelve lines, some off": (text, "".join(lines[middle : middle + 12]).replace("value", "velue")),
        "nothing alike": (text, "ünglaublich ähnlich nichts\n"),
        "in one line of a megabyte": (wide, lines[middle].strip().replace("get", "gat")),
    }
    return [
        {"what": f"nearest: {name}", "seconds": round(min(timed(lambda: nearest(text, old)) for _ in range(3)), 4)}  # noqa: B023
        for name, (text, old) in wanted.items()
    ]


def memory() -> dict[str, object]:
    """Peak of a process that edits the large file, above that of one that edits a small file, in file sizes."""
    peaks = []
    for size in (1000, LARGE):
        code = (
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import edits; print(edits.peak({size}))"
        )
        peaks.append(
            int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        )
    return {
        "what": "memory above a small edit's, in file sizes",
        "ratio": round((peaks[1] - peaks[0]) * 1024 / LARGE, 2),
    }


def peak(size: int) -> int:
    """Edit a file of a size in this process, and give its peak of resident memory in KiB."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        root.mkdir()
        chance = random.Random(1)
        wanted = []
        with open(root / "f", "w", newline="") as file:
            number = 0
            while file.tell() < size:
                line = f"    value_{number:06d} = other.get({chance.randint(0, 99999)}, 'name')\n"
                file.write(line)
                if number % max(1, size // 60 // EDITS) == 0 and len(wanted) < EDITS:
                    wanted.append(line)
                number += 1
        with Workspace(root, state=Path(folder, "state")) as workspace:
            changes = tuple(Replace(line, "# " + line, at=f"/{n}") for n, line in enumerate(wanted))
            done = workspace.apply([Modify("f", changes)])
            assert done.ok, done.violations
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    rows = [*large("\n"), *large("\r\n"), *passages(), memory()]
    missed = []
    for row in rows:
        seconds, ratio = float(str(row.get("seconds", 0))), float(str(row.get("ratio", 0)))
        near, held = str(row["what"]).startswith("nearest"), str(row["what"]).startswith("memory")
        limit = MOST_NEAREST if near else MOST_SECONDS
        if seconds > limit or ratio > (MOST_MEMORY if held else MOST_RATIO):
            missed.append(row["what"])
    if arguments.json:
        print(json.dumps({"rows": rows, "missed": missed}, indent=1))
    else:
        for row in rows:
            print("  ".join(f"{key} {value}" for key, value in row.items()))
        print("missed: " + "; ".join(map(str, missed)) if missed else "all limits hold")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
