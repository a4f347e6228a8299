"""The computed probability of a valid text is right, and its bounds hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from onspec.grammar.exact import Options, compile_exact
from onspec.grammar.llguidance import Matcher
from onspec.grammar.rules import PYTHON_SPACING
from onspec.local.chance import bounds, estimate
from onspec.local.history import TOOLS
from onspec.local.pressure import Meter
from onspec.local.runtime import Runtime, softmax

CHOICE = compile_exact({"enum": ["the", "then", "in", True, 7]}, Options(spacing=PYTHON_SPACING, spellings=False))
LIST = compile_exact({"type": "array", "items": {"enum": [1, 2, 12]}}, Options(spacing=PYTHON_SPACING, spellings=False))


def _exact(runtime: Runtime, prompt: list[int], matcher: Matcher, budget: int) -> float:
    """The model's own probability of whole values, by following every allowed token."""
    total = 0.0
    waiting: list[tuple[tuple[int, ...], float, Matcher]] = [((), 1.0, matcher)]
    while waiting:
        tokens, mass, here = waiting.pop()
        if here.accepting():
            total += mass
        elif len(tokens) < budget:
            chances = softmax(runtime.prime([*prompt, *tokens]))
            for token in map(int, np.flatnonzero(here.mask()[: len(chances)])):
                after = here.copy()
                after.consume(token)
                waiting.append(((*tokens, token), mass * float(chances[token]), after))
    return total


@pytest.mark.parametrize("steps", [0, 1, 7, 60, 4000])
@pytest.mark.parametrize(("kind", "budget"), [(CHOICE, 8), (LIST, 5)], ids=["words", "lists"])
def test_bounds_hold_however_much_is_followed(fast: Runtime, kind: object, budget: int, steps: int) -> None:
    """With nothing followed it is importance sampling, with everything it is a sum."""
    assert isinstance(kind, type(CHOICE))
    prompt = fast.tokenize("in the ")
    matcher = fast.vocabulary.matcher(kind.grammar(edges=False))
    exact = _exact(fast, prompt, matcher, budget)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        found, draws = estimate(fast, prompt, matcher, rng, draws=40, steps=steps, budget=budget)
        assert found.lower <= exact * (1 + 1e-3)
        assert exact <= found.upper * (1 + 1e-3)
        assert found.known <= found.lower <= found.value <= found.upper <= found.known + found.open + 1e-12
        assert len(draws) == found.draws
        assert found.steps <= steps
        if steps == 4000:
            assert found.value == pytest.approx(exact, rel=0.02)


def test_the_estimate_is_unbiased(fast: Runtime) -> None:
    """The mean of many small estimates is the exact probability."""
    prompt = fast.tokenize("in the ")
    matcher = fast.vocabulary.matcher(LIST.grammar(edges=False))
    exact = _exact(fast, prompt, matcher, 5)
    values = [
        estimate(fast, prompt, matcher, np.random.default_rng(seed), draws=5, steps=3, budget=5)[0].value
        for seed in range(120)
    ]
    spread = float(np.std(values)) / math.sqrt(len(values))
    assert abs(float(np.mean(values)) - exact) < 4 * spread + 1e-3 * exact


@pytest.mark.parametrize("law", ["rare", "heavy", "even", "one", "zero"])
@pytest.mark.parametrize("count", [1, 5, 30, 200])
def test_bounds_of_a_mean_hold(law: str, count: int) -> None:
    """At least 95 of 100 times, also where a standard error would be far too small."""
    rng = np.random.default_rng(count)

    def values() -> tuple[np.ndarray, float]:
        if law == "rare":
            return (rng.random(count) < 0.01).astype(float), 0.01
        if law == "heavy":
            return np.exp(-3 * rng.exponential(size=count)), 0.25
        if law == "even":
            return rng.random(count), 0.5
        return np.full(count, float(law == "one")), float(law == "one")

    wrong = 0
    for _ in range(200):
        drawn, mean = values()
        low, high = bounds(drawn, 0.05)
        assert 0 <= low <= drawn.mean() <= high <= 1
        wrong += not low <= mean <= high
    assert wrong <= 10 + 2 * math.sqrt(10)
    assert law != "even" or count < 200 or high - low < 0.25


def test_a_whole_call_is_bounded(fast: Runtime) -> None:
    """From the trigger on: a model with random weights writes no valid call, and that is known for certain enough."""
    meter = Meter(fast, TOOLS)
    found, _ = meter.valid(fast.tokenize("the "), np.random.default_rng(0), draws=3, steps=50, budget=60)
    assert 0 <= found.lower <= found.value <= found.upper < 0.6
    assert found.error == max(found.upper - found.value, found.value - found.lower)
