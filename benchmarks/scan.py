"""Measures `onspec scan`: megabytes a second, memory, start-up and scaling, on generated session files.

python benchmarks/scan.py [--size 1000] [--engine local|ray] [--folder DIR] [--keep]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from onspec.scan import scan, scan_file

WORDS = [
        "the", "parser", "reads", "a", "token", "and", "returns", "nothing", "when", "its", "buffer", "ends", "before",
        "the", "next", "line", "of", "the", "file",
]  # fmt: skip
CODE = (
    "def step(self, item):\n    if item is None:\n        return 'a \"quoted\" word\\n'\n    self.total += item.size\n"
)


def prose(rng: random.Random, size: int) -> str:
    """Text of about `size` characters, with the quotes, newlines and non-ASCII of real tool output."""
    piece = " ".join(rng.choices(WORDS, k=40)) + "\n" + CODE + "é…\n"
    start = rng.randrange(len(piece))
    return (piece * (size // len(piece) + 2))[start : start + size]


def call(rng: random.Random, number: int, pi: bool) -> tuple[str, dict[str, object]]:
    """A tool name and arguments; one edit in fifty has an invented key."""
    kind = rng.random()
    if kind < 0.5:
        return ("bash", {"command": prose(rng, 120)}) if pi else ("Bash", {"command": prose(rng, 120)})
    if kind < 0.75:
        return ("read", {"path": f"src/{number}.py"}) if pi else ("Read", {"file_path": f"/w/{number}.py"})
    old, new = prose(rng, rng.randrange(200, 2000)), prose(rng, rng.randrange(200, 2000))
    if pi:
        edit: dict[str, object] = {"oldText": old, "newText": new}
        if rng.random() < 0.02:
            edit["requireUnique"] = True
        return "edit", {"path": f"src/{number}.py", "edits": [edit]}
    arguments: dict[str, object] = {"file_path": "/w/a.py", "old_string": old, "new_string": new, "replace_all": False}
    if rng.random() < 0.02:
        arguments["requireUnique"] = True
    return "Edit", arguments


def pi_lines(rng: random.Random) -> Iterator[str]:
    """A Pi session without end."""
    stamp = "2026-10-01T10:00:00.000Z"
    yield json.dumps({"type": "session", "version": 3, "id": "s", "timestamp": stamp, "cwd": "/w"})
    parent = None
    number = 0
    while True:
        number += 1
        name, arguments = call(rng, number, True)
        usage = {"input": 10, "output": 200, "cacheRead": 50000, "cacheWrite": 300, "totalTokens": 50510}
        content = [
            {"type": "thinking", "thinking": prose(rng, 400), "thinkingSignature": "E" * 300},
            {"type": "toolCall", "id": f"toolu_{number:08}", "name": name, "arguments": arguments},
        ]
        message = {"role": "assistant", "content": content, "model": "claude-opus-4-8", "provider": "anthropic"}
        message |= {"usage": usage, "stopReason": "toolUse", "timestamp": 1790000000000}
        yield json.dumps(
            {"type": "message", "id": f"a{number}", "parentId": parent, "timestamp": stamp, "message": message},
            ensure_ascii=False,
        )
        bad = "requireUnique" in json.dumps(arguments)
        text = (
            'Validation failed for tool "edit":\n  - edits.0: must not have additional properties'
            if bad
            else prose(rng, rng.randrange(200, 12000))
        )
        result = {"role": "toolResult", "toolCallId": f"toolu_{number:08}", "toolName": name, "isError": bad}
        result |= {"content": [{"type": "text", "text": text}], "timestamp": 1790000000000}
        parent = f"r{number}"
        yield json.dumps(
            {"type": "message", "id": parent, "parentId": f"a{number}", "timestamp": stamp, "message": result},
            ensure_ascii=False,
        )


def claude_lines(rng: random.Random) -> Iterator[str]:
    """A Claude Code session without end."""
    number = 0
    base = {"isSidechain": False, "userType": "external", "cwd": "/w", "sessionId": "s", "version": "2.1.332"}
    base |= {"timestamp": "2026-10-01T10:00:00.000Z"}
    usage = {
        "input_tokens": 10,
        "output_tokens": 200,
        "cache_read_input_tokens": 50000,
        "cache_creation_input_tokens": 300,
    }
    while True:
        number += 1
        name, arguments = call(rng, number, False)
        reply = {"id": f"msg_{number:08}", "role": "assistant", "model": "claude-opus-4-8", "usage": usage}
        blocks = [
            {"type": "thinking", "thinking": prose(rng, 400), "signature": "E" * 300},
            {"type": "tool_use", "id": f"toolu_{number:08}", "name": name, "input": arguments},
        ]
        for index, block in enumerate(blocks):
            line = {"parentUuid": f"u{number}", "type": "assistant", "uuid": f"a{number}-{index}", **base}
            yield json.dumps({**line, "message": {**reply, "content": [block]}}, ensure_ascii=False)
        bad = "requireUnique" in arguments
        error = (
            "<tool_use_error>InputValidationError: Edit failed due to the following issue:\n"
            "An unexpected parameter `requireUnique` was provided</tool_use_error>"
        )
        text = error if bad else prose(rng, rng.randrange(200, 6000))
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number:08}", "content": text, "is_error": bad}
        line = {"parentUuid": f"a{number}-1", "type": "user", "uuid": f"u{number + 1}", **base}
        line |= {"message": {"role": "user", "content": [result]}, "toolUseResult": {"stdout": text, "stderr": ""}}
        yield json.dumps(line, ensure_ascii=False)


def write(path: Path, lines: Iterator[str], size: int) -> None:
    """Writes lines until the file has `size` bytes."""
    written = 0
    with path.open("w", encoding="utf-8") as out:
        for line in lines:
            out.write(line + "\n")
            written += len(line) + 1
            if written >= size:
                return


def one(path: Path) -> None:
    """Scans one file in this process and prints its rate and this process's largest memory."""
    begin, busy = time.perf_counter(), time.process_time()
    report = scan_file(str(path))
    seconds, core = time.perf_counter() - begin, time.process_time() - busy
    total = report.total()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = report.size / 1e6
    print(
        f"{path.name}: {size:.0f} MB in {seconds:.2f} s, {size / core:.0f} MB per second of a core, "
        f"peak {peak:.0f} MB, {total.calls} calls, {total.rejected} rejected, {total.off_schema} off schema"
    )


def timed(*command: str) -> float:
    """Seconds a command takes."""
    begin = time.perf_counter()
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def scaling(folder: Path, engine: str) -> None:
    """Counts the same files with one worker and with two, on an engine that is warm, and prints the speed-up."""
    if engine == "ray":
        ray = import_module("ray")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        scan([str(folder / "0.jsonl"), str(folder / "1.jsonl")], engine=engine, workers=2)
    seconds = {}
    for workers in (1, 2):
        before = core_seconds()
        seconds[workers] = scan([str(folder)], engine=engine, workers=workers).seconds
        print(f"{engine}, {workers} worker(s): {seconds[workers]:.2f} s, {core_seconds() - before:.2f} s of cores")
    print(f"speed-up: {seconds[1] / seconds[2]:.2f}")


def core_seconds() -> float:
    """Seconds of cores that this process and those it has seen end have used; workers of Ray are not among them."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Generates the files, measures, and removes them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=1000, help="megabytes of each file")
    parser.add_argument("--folder", type=Path, help="where to put the files")
    parser.add_argument("--keep", action="store_true", help="leave the files")
    parser.add_argument("--engine", choices=("none", "local", "ray"), default="none", help="also measure scaling")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given.one)
        return
    folder = given.folder or Path(tempfile.mkdtemp(prefix="onspec-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("pi", pi_lines), ("claude-code", claude_lines)):
        path = folder / f"{name}.jsonl"
        write(path, lines(random.Random(1)), given.size * 1_000_000)
        subprocess.run([sys.executable, __file__, "--one", str(path)], check=True)
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    startup = min(timed(sys.executable, "-m", "onspec", "scan", str(empty)) for _ in range(5))
    print(f"start-up, an empty folder: {startup:.2f} s")
    if given.engine != "none":
        parts = folder / "parts"
        parts.mkdir(exist_ok=True)
        for index in range(8):
            write(parts / f"{index}.jsonl", pi_lines(random.Random(index + 10)), given.size * 125_000)
        scaling(parts, given.engine)
    if not given.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
