"""The probability that a free model writes what a grammar accepts: followed as far as it goes, the rest drawn."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from onspec.grammar.llguidance import Matcher
from onspec.local.runtime import Runtime, softmax
from onspec.local.sample import Draw, constrained, effective_size

Told = Callable[[str, int, int], None]

CONFIDENCE = 0.95
"""Probability with which `lower` and `upper` of an estimate hold the true value between them, at least."""

_WIDE = 256
"""Children of one prefix that are looked at one by one; the others are kept together, and drawn from."""

_LEAST = 1e-9
"""Probability below which a child is not looked at by itself."""

_TOGETHER = 12
"""Prefixes that are looked at before the likeliest are chosen anew."""

_ENOUGH = 1e-3
"""Share of the known probability at which what is open is negligible: nothing is drawn then, as it bounds the error."""

_GRID = 2_000
"""Values of the mean that are tested for its bounds."""

_CAP = 0.9
"""Largest share of the capital that is bet at once, below 1."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A probability, with bounds that hold.

    Attributes:
        value: The estimate: `known`, and `open` times the mean weight of the draws.
        lower: With `upper`: bounds of the true probability, at 95 % confidence or more, however few the draws and
            however uneven their weights. Never below `known`, never above `known + open`.
        upper: See `lower`.
        known: Probability of the valid texts that were followed to their end.
        open: Probability of everything that may still become valid and was not followed.
        steps: Evaluations of the model spent on following.
        effective: Effective sample size of the weights, out of `draws`.
        draws: How many samples were drawn.
    """

    value: float
    lower: float
    upper: float
    known: float
    open: float
    steps: int
    effective: float
    draws: int

    @property
    def error(self) -> float:
        """How far the true probability is away at most, at 95 % confidence or more."""
        return max(self.upper - self.value, self.value - self.lower)


@dataclass(order=True, slots=True)
class _Open:
    """A prefix that may still become valid (`tokens`), or what follows a prefix but for its likeliest children."""

    order: float
    number: int
    mass: float = field(compare=False)
    tokens: tuple[int, ...] = field(compare=False)
    matcher: Matcher = field(compare=False)
    without: tuple[int, ...] | None = field(compare=False, default=None)


def estimate(
    runtime: Runtime,
    prompt: Sequence[int],
    matcher: Matcher,
    rng: np.random.Generator,
    *,
    draws: int = 30,
    steps: int = 200,
    budget: int = 256,
    told: Told | None = None,
) -> tuple[Estimate, tuple[Draw, ...]]:
    """The probability that the model, left to itself, writes within `budget` tokens what `matcher` accepts.

    First the tree of what may still become valid is followed, the likeliest prefixes first, for `steps` evaluations:
    what is whole counts exactly, what the grammar forbids is gone, the rest is open. Then `draws` prefixes are drawn
    from what is open, each as likely as its mass, and led to an end by the masked model. With w the product of the
    masses that the grammar allowed on the way (0 where the budget did not suffice), `open` times the mean of w is what
    the rest adds (importance sampling: A. B. Owen, "Monte Carlo theory, methods and examples", chapter 9). Each w lies
    between 0 and 1, so its mean is bounded without any assumption about its distribution, which a standard error from
    a few uneven weights is not: by betting (I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random
    variables by betting", 2023, theorem 3), from below also by Markov's inequality.

    Args:
        runtime: The model.
        prompt: Tokens before.
        matcher: At the place where the text begins; it is copied, not moved.
        rng: Source of randomness.
        draws: How many samples. They are left out where what is open is negligible.
        steps: Most evaluations spent on following; 0 for pure importance sampling.
        budget: Most tokens of the text.
        told: Told how far it is.

    Returns:
        The estimate and the samples; a sample's text and tokens begin after the prefix that was drawn for it.
    """
    tree = _Tree(runtime, tuple(prompt), matcher, budget)
    while tree.steps < steps and tree.follow(steps - tree.steps):
        if told:
            told("following", tree.steps, steps)
    tree.settle()
    open_mass = tree.open()
    if open_mass <= _ENOUGH * tree.known or draws < 1:
        upper = tree.known + open_mass
        return Estimate(tree.known, tree.known, min(upper, 1.0), tree.known, open_mass, tree.steps, 0.0, 0), ()
    found, weights = [], []
    for number in range(draws):
        draw, weight = tree.draw(rng)
        found.append(draw)
        weights.append(weight)
        if told:
            told("sampling", number + 1, draws)
    all_weights = np.array(weights)
    low, high = bounds(all_weights, 1.0 - CONFIDENCE)
    known = tree.known
    return Estimate(
        known + open_mass * float(all_weights.mean()), known + open_mass * low, min(known + open_mass * high, 1.0),
        known, open_mass, tree.steps, effective_size(all_weights), draws,
    ), tuple(found)  # fmt: skip


class _Tree:
    def __init__(self, runtime: Runtime, prompt: tuple[int, ...], matcher: Matcher, budget: int) -> None:
        self._runtime = runtime
        self._prompt = prompt
        self._budget = budget
        self._numbers = 0
        self._heap: list[_Open] = []
        self._rest: list[_Open] = []
        self.known = 0.0
        self.steps = 0
        self._push(1.0, (), matcher.copy())

    def open(self) -> float:
        """Probability of everything that may still become valid."""
        return math.fsum(entry.mass for entry in (*self._heap, *self._rest))

    def follow(self, most: int) -> int:
        """Look at what follows some of the likeliest open prefixes: `most` at most, 0 where there are none.

        Those that begin alike are looked at one after the other, so that the runtime has less to evaluate anew.
        """
        chosen: list[tuple[tuple[int, ...], float, Matcher]] = []
        while self._heap and len(chosen) < min(most, _TOGETHER):
            entry = heapq.heappop(self._heap)
            matcher = entry.matcher
            if entry.tokens:
                matcher = matcher.copy()
                assert matcher.consume(entry.tokens[-1])
            if matcher.accepting():
                self.known += entry.mass
            elif len(entry.tokens) < self._budget:
                chosen.append((entry.tokens, entry.mass, matcher))
        for tokens, mass, matcher in sorted(chosen, key=lambda item: item[0]):
            self._spread(mass, tokens, matcher)
        self.steps += len(chosen)
        return len(chosen)

    def settle(self) -> None:
        """Count what is whole already, and leave out what the budget leaves no room for."""
        left = []
        for entry in self._heap:
            matcher = entry.matcher.copy()
            assert matcher.consume_all(entry.tokens[-1:])
            if matcher.accepting():
                self.known += entry.mass
            elif len(entry.tokens) < self._budget:
                left.append(entry)
        heapq.heapify(left)
        self._heap = left

    def _spread(self, mass: float, tokens: tuple[int, ...], matcher: Matcher) -> None:
        allowed = self._allowed(tokens, matcher) * mass
        wide = min(_WIDE, len(allowed))
        likeliest = np.argpartition(-allowed, wide - 1)[:wide]
        chosen = tuple(int(token) for token in likeliest if allowed[token] > _LEAST)
        for token in chosen:
            self._push(float(allowed[token]), (*tokens, token), matcher)
        allowed[list(chosen)] = 0.0
        left = float(allowed.sum())
        if left > 0.0:
            self._rest.append(_Open(-left, 0, left, tokens, matcher, chosen))

    def _allowed(self, tokens: tuple[int, ...], matcher: Matcher) -> NDArray[np.float64]:
        chances = softmax(self._runtime.prime((*self._prompt, *tokens)))
        return np.where(matcher.mask()[: len(chances)], chances, 0.0)

    def _push(self, mass: float, tokens: tuple[int, ...], before: Matcher) -> None:
        self._numbers += 1
        heapq.heappush(self._heap, _Open(-mass, self._numbers, mass, tokens, before))

    def draw(self, rng: np.random.Generator) -> tuple[Draw, float]:
        """One sample that begins at an open prefix, drawn as its mass, with its weight."""
        entries = (*self._heap, *self._rest)
        sums = np.cumsum([entry.mass for entry in entries])
        entry = entries[min(int(np.searchsorted(sums, rng.random() * sums[-1], side="right")), len(entries) - 1)]
        tokens, matcher = entry.tokens, entry.matcher.copy()
        if entry.without is not None:
            allowed = self._allowed(tokens, matcher)
            allowed[list(entry.without)] = 0.0
            parts = np.cumsum(allowed)
            tokens = (*tokens, int(np.searchsorted(parts, rng.random() * parts[-1], side="right")))
        if tokens and not matcher.consume(tokens[-1]):  # Rounding landed beside the last token that has weight.
            return Draw((), b"", "length", True, -math.inf), 0.0
        if matcher.accepting():
            return Draw((), b"", "whole"), 1.0
        if len(tokens) >= self._budget:
            return Draw((), b"", "length", True, -math.inf), 0.0
        left = self._budget - len(tokens)
        draw = constrained(self._runtime, (*self._prompt, *tokens), matcher, rng, budget=left, skip=False)
        return draw, math.exp(draw.log_weight) if draw.end == "whole" else 0.0


def bounds(values: NDArray[np.float64], alpha: float) -> tuple[float, float]:
    """Bounds of the mean of a distribution on [0, 1] from independent values, which hold with probability 1 - `alpha`
    or more whatever the distribution.

    A gambler who bets on each value against a mean of m can multiply his capital by 40 with probability 1/40 at most
    if the mean is m; so every m against which that happens is excluded. Bets follow the variance seen so far
    (Waudby-Smith and Ramdas 2023, theorem 3, with capital for each side and the running maximum). A mean much smaller
    than 1 is bounded from below by Markov's inequality instead: the average of the values exceeds the mean by a factor
    of c with probability 1 / c at most.
    """
    count = len(values)
    means = (np.arange(_GRID + 1) / _GRID).clip(1e-9, 1 - 1e-9)
    above, below = np.zeros_like(means), np.zeros_like(means)
    most_above, most_below = np.zeros_like(means), np.zeros_like(means)
    total, squares = 0.5, 0.25
    for index, value in enumerate(values):
        bet = math.sqrt(2 * math.log(2 / alpha) * (index + 1) / (count * squares))
        above += np.log1p(np.minimum(bet, _CAP / means) * (value - means))
        below += np.log1p(-np.minimum(bet, _CAP / (1 - means)) * (value - means))
        np.maximum(most_above, above, out=most_above)
        np.maximum(most_below, below, out=most_below)
        total += value
        squares += (value - total / (index + 2)) ** 2
    # The lower bound is the better of two, so each of them has half of its side's chance to be wrong.
    excluded = np.flatnonzero(most_above >= math.log(4 / alpha))
    low = max(float(means[excluded[-1]]) if len(excluded) else 0.0, float(values.mean()) * alpha / 4)
    excluded = np.flatnonzero(most_below >= math.log(2 / alpha))
    high = float(means[excluded[0]]) if len(excluded) else 1.0
    return min(low, float(values.mean())), max(high, float(values.mean()))
