"""The second half of the demo: a small model, free against constrained, and the pressure that one failed call adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from onspec.contract.tool import Tool
from onspec.grammar.build import build
from onspec.grammar.exact import Options
from onspec.grammar.rules import PYTHON_SPACING
from onspec.local.chat import block_of
from onspec.local.history import TASKS, TOOLS, messages, wanted
from onspec.local.picture import Arm
from onspec.local.pressure import Meter
from onspec.local.prompt import render
from onspec.local.runtime import Runtime
from onspec.local.sample import Draw, constrained, free

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sampled:
    """How many of the samples were calls that keep their contract.

    Attributes:
        draws: The samples.
        valid: How many of them are valid.
        tokens_per_second: Over all of them.
    """

    draws: tuple[Draw, ...]
    valid: int
    tokens_per_second: float


@dataclass(frozen=True, slots=True)
class Story:
    """What the demo shows: samples, and the pressure on the same call after a clean and after a failed history."""

    free: Sampled
    constrained: Sampled
    arms: tuple[Arm, ...]


def is_valid(text: bytes, tools: tuple[Tool, ...] = TOOLS) -> bool:
    """Whether a block from just after `<tool_call>` is one whole call that keeps its contract."""
    found = block_of(text)
    if found is None or set(found[0]) != {"name", "arguments"}:
        return False
    named = [tool for tool in tools if tool.name == found[0]["name"]]
    return bool(named) and bool(named[0].is_valid(found[0]["arguments"]))


def sampled(runtime: Runtime, task: int, count: int, budget: int, seed: int, constrain: bool) -> Sampled:
    """`count` samples of the call that one history asks for."""
    prompt = runtime.prompt(render(messages(TASKS[task]), TOOLS))
    rng = np.random.default_rng(seed)
    draws: list[Draw] = []
    grammar = build(
        TOOLS, "hermes_json", "required", parallel=False, thinking="none",
        options=Options(spacing=PYTHON_SPACING, spellings=False),
    )  # fmt: skip
    assert grammar.calls is not None
    matcher = runtime.vocabulary.matcher(grammar.calls)
    for _ in range(count):
        if constrain:
            draws.append(constrained(runtime, prompt, matcher, rng, pieces=grammar.pieces, budget=budget))
        else:
            draws.append(free(runtime, prompt, rng, budget=budget, stops=[b"</tool_call>"]))
    seconds = sum(draw.seconds for draw in draws)
    tokens = sum(len(draw.tokens) for draw in draws)
    return Sampled(tuple(draws), sum(is_valid(draw.text) for draw in draws), tokens / seconds if seconds else 0.0)


def run(runtime: Runtime, *, samples: int = 8, budget: int = 160, seed: int = 1, told: Told | None = None) -> Story:
    """Run the demo.

    Args:
        runtime: The model.
        samples: Samples of each kind.
        budget: Tokens of one.
        seed: Makes it repeatable.
        told: Told what is being done.
    """
    tell = told or (lambda line: None)
    tell(f"the model writes {samples} calls freely")
    loose = sampled(runtime, 0, samples, budget, seed, constrain=False)
    tell(f"the model writes {samples} calls under the grammar")
    strict = sampled(runtime, 0, samples, budget, seed, constrain=True)
    meter = Meter(runtime, TOOLS)
    arms = []
    for name, failed in (("a clean history", False), ("one failed call in the history", True)):
        tell(f"the pressure after {name}")
        prompt = runtime.prompt(render(messages(TASKS[0], failed=failed), TOOLS))
        arms.append(Arm(name, meter.measure(prompt, wanted(TASKS[0]))))
    return Story(loose, strict, tuple(arms))


def with_valid(arm: Arm, meter: Meter, prompt: list[int], draws: int, budget: int, seed: int) -> Arm:
    """The same arm with the probability of a valid call."""
    estimate, _ = meter.valid(prompt, np.random.default_rng(seed), draws=draws, budget=budget)
    return Arm(arm.name, replace(arm.pressure, valid=estimate))
