"""How fast replies are read: prose, call bodies in every dialect, token by token, and beside `openai-harmony`.

    python benchmarks/dialects.py [--quick] [--adversarial] [--json FILE]

Figures asked for, on one core: 30 MB/s of prose, 10 MB/s through a call's body in the slowest dialect, 20 microseconds
an event when fed token by token.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from onspec import Receiver, Tool, Toolset, receive
from onspec.dialects import DIALECTS, Dialect
from onspec.dialects.dialect import Context
from onspec.dialects.machine import Machine
from onspec.dialects.render import markers_of, render_calls
from onspec.message import Call

TOOL = Tool(
    "write_file",
    {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    effect="read",
)
TOOLS = Toolset([TOOL])
SENTENCE = "The quick brown fox jumps over the lazy dog, and then it rests for a while in the shade of an old tree.\n"
CODE = "def area(r):\n    if r < 0 and r > -1:\n        return [x for x in {1: 'a'}.items()]\n"
CODE += "    return 3.14 * r ** 2  # µ\n\n"


def rate(work: Callable[[], Any], size: int, repeat: int) -> float:
    """Best of `repeat` runs, in MB/s."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return size / best / 1e6


def read(row: Dialect, text: str) -> Callable[[], Any]:
    """Reading alone: text to drafts, without the contract."""

    def work() -> None:
        machine = Machine(row, Context(TOOLS))
        machine.feed(text)
        machine.close()

    return work


def tokens(text: str) -> list[str]:
    """The text in pieces of about a token's size."""
    return [text[at : at + 4] for at in range(0, len(text), 4)]


def per_event(row: Dialect, text: str, repeat: int) -> float:
    """Microseconds for each piece fed."""
    pieces = tokens(text)
    best = float("inf")
    for _ in range(repeat):
        receiver = Receiver(TOOLS, row, thinking="closed")
        start = time.perf_counter()
        for piece in pieces:
            receiver.feed(piece)
        receiver.close()
        best = min(best, time.perf_counter() - start)
    return best / len(pieces) * 1e6


def by_library(text: str, repeat: int) -> dict[str, float] | None:
    """`openai-harmony` over the same text: parsing its tokens, and with encoding."""
    try:
        from tests.dialects.vocabulary import encoding
    except ImportError:
        return None
    found = encoding()
    if found is None:
        return None
    from openai_harmony import Role

    ids = found.encode(text, allowed_special="all")
    size = len(text.encode())
    parse = rate(lambda: found.parse_messages_from_completion_tokens(ids, Role.ASSISTANT), size, repeat)
    both = rate(
        lambda: found.parse_messages_from_completion_tokens(found.encode(text, allowed_special="all"), Role.ASSISTANT),
        size,
        repeat,
    )
    return {"library, tokens given": parse, "library, text given": both}


def adversarial(size: int) -> dict[str, float]:
    """Seconds for `size` bytes of one marker repeated, the worst marker of each dialect."""
    worst = {}
    for row in DIALECTS.values():
        slowest = 0.0
        for marker in dict.fromkeys((*markers_of(row)[:6], row.example, row.example[: len(row.example) * 2 // 3])):
            text = marker * (size // max(1, len(marker)))
            start = time.perf_counter()
            receive(text, TOOLS, row)
            slowest = max(slowest, time.perf_counter() - start)
        worst[row.name] = slowest
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the text, one run each")
    parser.add_argument("--adversarial", action="store_true", help="8 MB of repeated markers in every dialect (slow)")
    parser.add_argument("--json", metavar="FILE", help="also write the figures as JSON")
    options = parser.parse_args()
    repeat, size = (1, 200_000) if options.quick else (3, 2_000_000)
    prose = SENTENCE * (size // len(SENTENCE))
    content = CODE * (size // len(CODE))
    body = json.dumps({"path": "a.py", "content": content}, ensure_ascii=False)
    rows: dict[str, dict[str, float]] = {}
    print(f"{'dialect':<18}{'prose MB/s':>12}{'body MB/s':>12}{'us/event prose':>16}{'us/event body':>16}")
    for row in DIALECTS.values():
        if row.name == "json_args":
            continue
        call = render_calls(row, (Call("write_file", body),), TOOLS)
        short = render_calls(row, (Call("write_file", json.dumps({"path": "a", "content": CODE * 100})),), TOOLS)
        rows[row.name] = {
            "prose": rate(read(row, prose), len(prose), repeat),
            "body": rate(read(row, call), len(call.encode()), repeat),
            "event, prose": per_event(row, prose[:40_000], repeat),
            "event, body": per_event(row, short, repeat),
        }
        print(
            f"{row.name:<18}"
            + "".join(f"{v:>{w}.1f}" for v, w in zip(rows[row.name].values(), (12, 12, 16, 16), strict=True))
        )
    for key, better in (("prose", min), ("body", min), ("event, prose", max), ("event, body", max)):
        name = better(rows, key=lambda one, key=key: rows[one][key])
        print(f"slowest, {key}: {name} {rows[name][key]:.1f}")
    harmony = "<|channel|>analysis<|message|>" + prose[: size // 4] + "<|end|><|start|>assistant"
    harmony += render_calls(DIALECTS["harmony"], (Call("write_file", body),), TOOLS).removeprefix("<|start|>assistant")
    ours = rate(lambda: receive(harmony, TOOLS, "harmony"), len(harmony.encode()), repeat)
    figures: dict[str, Any] = {"rows": rows, "harmony": {"onspec, text given, calls checked": ours}}
    figures["harmony"].update(by_library(harmony, repeat) or {})
    for label, value in figures["harmony"].items():
        print(f"harmony, {label}: {value:.1f} MB/s")
    if options.adversarial:
        figures["adversarial"] = adversarial(8_000_000)
        for name, seconds in sorted(figures["adversarial"].items(), key=lambda item: -item[1]):
            print(f"8 MB of markers, {name}: {seconds:.1f} s")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
