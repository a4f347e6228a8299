"""What is measured about a model: free against constrained, estimates against brute force, the cost of a bad history.

    python benchmarks/pressure.py [--json FILE] [--samples 30] [--draws 20000]

Needs `onspec[local]` and the model `smollm2` (`onspec model add smollm2`). Takes about fifteen minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onspec.check import check
from onspec.contract.tool import Tool
from onspec.errors import LimitError
from onspec.grammar.build import build
from onspec.grammar.exact import Options
from onspec.grammar.llguidance import Matcher
from onspec.grammar.rules import PYTHON_SPACING
from onspec.local.chat import block_of
from onspec.local.closeout import Closeout
from onspec.local.demo import is_valid, sampled
from onspec.local.history import FLAT_TOOLS, TASKS, TOOLS, messages, reading, wanted
from onspec.local.models import open_model
from onspec.local.pressure import Meter
from onspec.local.prompt import render
from onspec.local.runtime import Runtime, softmax
from onspec.local.sample import constrained

_FORM = Options(spacing=PYTHON_SPACING, spellings=False)


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


MIXED_TOOLS = (
    Tool(
        "search",
        {
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1},
                "mode": {"enum": ["exact", "regex", "fuzzy"]},
                "limit": {"type": "integer", "minimum": 1, "maximum": 500},
                "where": {
                    "type": "object",
                    "properties": {"folder": {"type": "string"}, "hidden": {"type": "boolean"}},
                    "required": ["folder"],
                    "additionalProperties": False,
                },
            },
            "required": ["pattern", "mode", "where"],
            "additionalProperties": False,
        },
    ),
    Tool(
        "schedule",
        {
            "type": "object",
            "properties": {
                "on": {"type": "string", "format": "date"},
                "days": {"type": "array", "items": {"enum": ["mon", "tue", "wed"]}, "minItems": 1, "maxItems": 3},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["on", "days"],
        },
    ),
)
"""Numbers, enumerations, a pattern, nested and open objects."""

TOOL_SETS = {"nested edit": TOOLS, "flat edit": FLAT_TOOLS, "one tool": TOOLS[:1], "mixed": MIXED_TOOLS}


def budgets(runtime: Runtime, calls: int) -> dict[str, Any]:
    """Constrained calls of several tool sets, on budgets from the smallest that holds a call to an ample one: each must
    be valid and fit, and where its content was cut, `check` must refuse it."""
    rng = np.random.default_rng(3)
    out = {
        "calls": 0,
        "valid": 0,
        "over budget": 0,
        "closed": 0,
        "cut": 0,
        "cut and refused": 0,
        "too small refused": 0,
    }
    seconds = masks = 0.0
    tokens = 0
    each = max(calls // (len(TOOL_SETS) * len(TASKS)), 1)
    for task in TASKS:
        for tools in TOOL_SETS.values():
            grammar = build(tools, "hermes_json", "required", parallel=False, thinking="none", options=_FORM)
            assert grammar.calls is not None
            matcher = runtime.vocabulary.matcher(grammar.calls)
            prompt = runtime.prompt(render(messages(task), tools))
            least = Closeout(1, grammar.pieces).shortest(matcher)
            assert least is not None
            try:
                constrained(runtime, prompt, matcher, rng, pieces=grammar.pieces, budget=least - 1)
            except LimitError:
                out["too small refused"] += 1
            allowed = [least, least + 1, least + 3, least + 8, least + 20, 2 * least, 96, 160]
            for number in range(each):
                budget = allowed[number % len(allowed)]
                draw = constrained(runtime, prompt, matcher, rng, pieces=grammar.pieces, budget=budget)
                out["calls"] += 1
                out["valid"] += is_valid(draw.text, tools)
                out["over budget"] += len(draw.tokens) > budget
                out["closed"] += draw.end == "closed"
                if draw.cut:
                    block = block_of(draw.text)
                    assert block is not None
                    tool = next(tool for tool in tools if tool.name == block[0]["name"])
                    out["cut"] += 1
                    written = json.dumps(block[0]["arguments"])
                    out["cut and refused"] += not check(tool, written, finish_reason=draw.finish_reason).ok
                seconds, masks, tokens = seconds + draw.seconds, masks + draw.mask_seconds, tokens + len(draw.tokens)
    return {**out, "tokens": tokens, "seconds": round(seconds), "grammar share of time": round(masks / seconds, 4)}


@dataclass(frozen=True, slots=True)
class Setting:
    """A place from which on the model is left to itself.

    Attributes:
        name: What it is.
        prompt: Tokens up to the trigger.
        start: What of the call is given.
        budget: Tokens that the rest may have.
        inside: For ends of text: the call up to the last byte of the text, so that keys after it can be counted.
    """

    name: str
    prompt: list[int]
    start: bytes
    budget: int
    inside: bytes = b""


def settings(runtime: Runtime) -> list[Setting]:
    """Ten settings: the end of an edit after its text was closed (two tasks), or from inside the text; a call that has
    only its tool's name; a whole call. Each after a clean history and after one with an invented key in it."""
    out = []
    for invented in (False, True):
        after = "invented key in the history" if invented else "clean history"

        def add(
            kind: str, prompt: list[int], start: bytes, budget: int, inside: bytes = b"", after: str = after
        ) -> None:
            out.append(Setting(f"{kind}, {after}", prompt, start, budget, inside))

        for number in (0, 2):
            prompt = runtime.prompt(render(messages(TASKS[number], invented=invented), TOOLS))
            call = wanted(TASKS[number])
            inside = call[: call.rindex('"}]}}')].encode()
            add(f"after the text of {TASKS[number].path}", prompt, inside + b'"', 16, inside)
            if number == 0:
                add("inside the text, all but its last quote", prompt, inside, 12)
                add("a path", prompt, b'\n{"name": "read", "arguments": {"path": "', 24)
        add("a whole call", runtime.prompt(render(reading(invented), TOOLS)), b"", 40)
    return out


def brute_force(
    runtime: Runtime, meter: Meter, setting: Setting, draws: int, rng: np.random.Generator
) -> tuple[int, int]:
    """How many of `draws` free continuations are valid calls, and how many evaluations that took.

    All draws are made at once: those that stand at one prefix are spread over its next tokens by one draw from the
    multinomial distribution, which is what drawing them one after the other comes to.
    """
    matcher = meter.start
    given = runtime.tokenize(setting.start) if setting.start else []
    assert matcher.consume_all(given)
    base = [*setting.prompt, *given]
    hits = evaluations = 0
    waiting: list[tuple[tuple[int, ...], int, Matcher]] = [((), draws, matcher)]
    while waiting:
        path, count, here = waiting.pop()
        if here.accepting():
            hits += count
            continue
        if len(path) >= setting.budget:
            continue
        chances = softmax(runtime.prime([*base, *path]))
        evaluations += 1
        counts = rng.multinomial(count, chances / chances.sum())
        for token in map(int, np.flatnonzero(counts)):
            after = here.copy()
            if after.consume(token):
                waiting.append(((*path, token), int(counts[token]), after))
    return hits, evaluations


def interval(hits: int, draws: int) -> tuple[float, float]:
    """95 % interval of a share (score interval: E. B. Wilson, 1927)."""
    z, share = 1.96, hits / draws
    middle = share + z * z / (2 * draws)
    half = z * math.sqrt(share * (1 - share) / draws + (z / (2 * draws)) ** 2)
    scale = 1 + z * z / draws
    return max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)


def agreement(runtime: Runtime, draws: int) -> list[dict[str, Any]]:
    """The computed probability of a valid call against brute force in ten settings."""
    meter = Meter(runtime, TOOLS)
    out = []
    for number, setting in enumerate(settings(runtime)):
        clock = time.perf_counter()
        found, _ = meter.valid(
            setting.prompt, np.random.default_rng(number), draws=30, budget=setting.budget, start=setting.start
        )
        spent = time.perf_counter() - clock
        clock = time.perf_counter()
        hits, evaluations = brute_force(runtime, meter, setting, draws, np.random.default_rng(99 + number))
        low, high = interval(hits, draws)
        row = {
            "setting": setting.name,
            "computed": round(found.value, 5),
            "between": [round(found.lower, 5), round(found.upper, 5)],
            "followed": round(found.known, 5),
            "open": round(found.open, 5),
            "effective": round(found.effective, 1),
            "seconds": round(spent, 1),
            "brute force": hits / draws,
            "brute force between": [round(low, 5), round(high, 5)],
            "evaluations": evaluations,
            "brute force seconds": round(time.perf_counter() - clock, 1),
            # Both intervals hold with 95 %: they must have a value in common.
            "agree": found.lower <= high and low <= found.upper,
            "brute force within the bounds": found.lower <= hits / draws <= found.upper,
        }
        if setting.inside:
            row["invented key, computed"] = round(meter.key_chance(setting.prompt, setting.inside).invented, 5)
            row["invented key, sampled"] = round(sampled_key(runtime, setting.prompt, setting.inside, draws), 5)
        out.append(row)
        print(json.dumps(row), flush=True)
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
