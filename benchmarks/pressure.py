"""What is measured about a model: free against constrained, estimates against brute force, the cost of a bad history.

    python benchmarks/pressure.py [--json FILE] [--samples 30] [--draws 20000]

Needs `onspec[local]` and the model `smollm2` (`onspec model add smollm2`). Takes about fifteen minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from onspec.local.demo import sampled
from onspec.local.history import FLAT_TOOLS, TASKS, TOOLS, messages, wanted
from onspec.local.models import open_model
from onspec.local.pressure import Meter
from onspec.local.prompt import render
from onspec.local.runtime import Runtime, softmax


def validity(runtime: Runtime, samples: int) -> dict[str, Any]:
    """Valid calls, tokens a second and the grammar's share of the time, free and constrained."""
    out: dict[str, Any] = {}
    each = max(samples // len(TASKS), 1)
    for name, constrain in (("free", False), ("constrained", True)):
        runs = [sampled(runtime, task, each, 256, task, constrain) for task in range(len(TASKS))]
        draws = [draw for run in runs for draw in run.draws]
        seconds = sum(draw.seconds for draw in draws)
        out[name] = {
            "valid": sum(run.valid for run in runs),
            "samples": len(draws),
            "tokens per second": round(sum(len(draw.tokens) for draw in draws) / seconds, 1),
            "grammar share of time": round(sum(draw.mask_seconds for draw in draws) / seconds, 4),
            "forced tokens": sum(draw.skipped for draw in draws),
        }
    return out


class Memory:
    """Probabilities after each prefix, kept, so that many draws cost few evaluations."""

    def __init__(self, runtime: Runtime, base: list[int]) -> None:
        self._runtime = runtime
        self._base = base
        self._sums: dict[tuple[int, ...], np.ndarray[Any, Any]] = {}

    def draw(self, path: tuple[int, ...], rng: np.random.Generator) -> int:
        found = self._sums.get(path)
        if found is None:
            found = self._sums[path] = np.cumsum(softmax(self._runtime.prime([*self._base, *path])))
        return int(min(np.searchsorted(found, rng.random() * found[-1], side="right"), len(found) - 1))


def brute_force(
    runtime: Runtime, meter: Meter, prompt: list[int], start: bytes, draws: int, budget: int
) -> tuple[float, float]:
    """The share of free continuations of `start` that are valid calls, and its standard error."""
    matcher = meter.start
    given = runtime.tokenize(start)
    assert matcher.consume_all(given)
    memory = Memory(runtime, [*prompt, *given])
    rng = np.random.default_rng(99)
    # What becomes of a path is decided once: its tokens repeat from draw to draw.
    verdicts: dict[tuple[int, ...], str] = {}

    def verdict(path: tuple[int, ...]) -> str:
        found = verdicts.get(path)
        if found is None:
            here = matcher.copy()
            found = "dead" if not here.consume_all(path) else "valid" if here.accepting() else "open"
            verdicts[path] = found
        return found

    hits = 0
    for _ in range(draws):
        path: tuple[int, ...] = ()
        while len(path) < budget:
            path = (*path, memory.draw(path, rng))
            state = verdict(path)
            if state != "open":
                hits += state == "valid"
                break
    share = hits / draws
    return share, math.sqrt(max(share * (1 - share), 1 / draws) / draws)


def agreement(runtime: Runtime, draws: int) -> list[dict[str, Any]]:
    """Importance sampling against brute force in ten settings: the end of an edit call, on five tasks and two
    histories, after the quote that closes the new text."""
    meter = Meter(runtime, TOOLS)
    out = []
    for number, task in enumerate(TASKS):
        for invented in (False, True):
            prompt = runtime.prompt(render(messages(task, invented=invented), TOOLS))
            call = wanted(task)
            inside = call[: call.rindex('"}]}}')].encode()
            start = inside + b'"'  # The text is closed; the brackets and the end of the block are still to come.
            # Computed and sampled from one evaluation: llama.cpp's logits depend a little on how tokens were batched.
            chance = meter.key_chance(prompt, inside)
            drawn = sampled_key(runtime, prompt, inside, draws)
            estimate, _ = meter.valid(prompt, np.random.default_rng(number), draws=400, budget=16, start=start)
            share, error = brute_force(runtime, meter, prompt, start, draws, 16)
            apart = abs(estimate.value - share)
            out.append(
                {
                    "task": task.path,
                    "invented key in history": invented,
                    "estimate": round(estimate.value, 5),
                    "error": round(estimate.error, 5),
                    "effective": round(estimate.effective, 1),
                    "brute force": round(share, 5),
                    "brute force error": round(error, 5),
                    "apart in errors": round(apart / math.hypot(estimate.error, error), 2),
                    "invented key, computed": round(chance.invented, 5),
                    "invented key, sampled": round(drawn, 5),
                }
            )
            print(json.dumps(out[-1]), flush=True)
    return out


def sampled_key(runtime: Runtime, prompt: list[int], start: bytes, draws: int) -> float:
    """The share of comma among free continuations of a text that end it at once, by drawing."""
    base = [*prompt, *runtime.tokenize(start)]
    memory = Memory(runtime, base)
    first = softmax(runtime.prime(base))
    closing = np.array([b'"' in piece and b"\\" not in piece for piece in runtime.pieces])
    weights = np.cumsum(np.where(closing, first, 0.0))
    rng = np.random.default_rng(5)
    commas = 0
    for _ in range(draws):
        token = int(np.searchsorted(weights, rng.random() * weights[-1], side="right"))
        path: tuple[int, ...] = (token,)
        rest = runtime.pieces[token].split(b'"', 1)[1].lstrip()
        while not rest and len(path) < 6:
            path = (*path, memory.draw(path, rng))
            rest = runtime.text(path).split(b'"', 1)[1].lstrip()
        commas += rest[:1] == b","
    return commas / draws


def histories(runtime: Runtime) -> list[dict[str, Any]]:
    """The chance of an invented key after the new text, and what one bad call in the history does to it, for the
    nested and the flat edit tool: means over the tasks."""
    out = []
    for shape, tools, flat in (("nested", TOOLS, False), ("flat", FLAT_TOOLS, True)):
        meter = Meter(runtime, tools)
        for name, form in (
            ("clean", {}),
            ("one failed call", {"failed": True}),
            ("an invented key", {"invented": True}),
        ):
            chances = []
            for task in TASKS:
                prompt = runtime.prompt(render(messages(task, flat=flat, **form), tools))
                call = wanted(task, flat=flat)
                start = call[: call.rindex('"}}' if flat else '"}]}}')].encode()
                chances.append(meter.key_chance(prompt, start).invented)
            out.append({"shape": shape, "history": name, "invented key": round(float(np.mean(chances)), 4)})
            print(json.dumps(out[-1]), flush=True)
    return out


def long_history(runtime: Runtime) -> dict[str, Any]:
    """Seconds for one measurement after a history of about 3,000 tokens, and again with the history at hand."""
    meter = Meter(runtime, TOOLS)
    text = render(messages(TASKS[0]), TOOLS)
    filler = text.split("<|im_start|>user", 1)[1]
    while len(runtime.tokenize(text, special=True)) < 2900:
        text = text.replace("<|im_start|>user", f"<|im_start|>user{filler[:2000]}<|im_end|>\n<|im_start|>user", 1)
    prompt = runtime.tokenize(text, special=True)[-3000:]
    out: dict[str, Any] = {"tokens": len(prompt)}
    for name in ("first", "again"):
        clock, cpu = time.perf_counter(), time.process_time()
        meter.measure(prompt, wanted(TASKS[0]))
        out[name] = {"wall s": round(time.perf_counter() - clock, 1), "cpu s": round(time.process_time() - cpu, 1)}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--draws", type=int, default=20_000)
    options = parser.parse_args()
    runtime = open_model("smollm2")
    found: dict[str, Any] = {"model": runtime.card.name, "validity": validity(runtime, options.samples)}
    print(json.dumps(found), flush=True)
    found["histories"] = histories(runtime)
    found["agreement"] = agreement(runtime, options.draws)
    found["long history"] = long_history(runtime)
    print(json.dumps(found["long history"]))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
