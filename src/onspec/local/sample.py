"""Samples of a model: free, under a grammar, and faithful to the model's own distribution of valid calls."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from onspec.errors import LimitError
from onspec.grammar.closing import Ending
from onspec.grammar.llguidance import Matcher
from onspec.grammar.rules import Pieces
from onspec.local.closeout import Closeout
from onspec.local.runtime import Runtime, pick, softmax

End = Literal["whole", "closed", "length", "stopped"]


@dataclass(frozen=True, slots=True)
class Draw:
    """One sample.

    Attributes:
        tokens: Its tokens, the prompt not included.
        text: Their bytes.
        end: `whole`: the grammar was satisfied. `closed`: by the closeout, as the budget ran out. `stopped`: the model
            ended its reply, or a stop text came. `length`: the budget ran out in the middle.
        cut: Whether content was lost or made up by the closeout; such a call must not be run.
        log_weight: Sum over all positions of the log of the probability mass that the grammar allowed, in nats: the
            importance weight of the sample. 0 for free samples.
        masses: That forbidden mass, position by position (empty for free samples, and for skipped tokens).
        skipped: Tokens that the grammar forced and that were not asked of the model.
        mask_seconds: Wall time spent in the grammar engine.
        seconds: Wall time of the whole sample.
    """

    tokens: tuple[int, ...]
    text: bytes
    end: End
    cut: bool = False
    log_weight: float = 0.0
    masses: tuple[float, ...] = ()
    skipped: int = 0
    mask_seconds: float = 0.0
    seconds: float = 0.0

    @property
    def finish_reason(self) -> str:
        """As providers say it; `length` makes `onspec.check` refuse a cut call."""
        return "length" if self.cut or self.end == "length" else "tool_calls" if self.end != "stopped" else "stop"


def free(
    runtime: Runtime,
    prompt: Sequence[int],
    rng: np.random.Generator,
    *,
    budget: int = 256,
    temperature: float = 1.0,
    stops: Sequence[bytes] = (),
) -> Draw:
    """One sample with no grammar, ended by an end token, a stop text or the budget.

    Raises:
        LimitError: Prompt and budget do not fit the context.
    """
    started = time.perf_counter()
    _fits(runtime, prompt, budget)
    logits = runtime.prime(prompt)
    tokens: list[int] = []
    text = b""
    end: End = "length"
    for _ in range(budget):
        token = _choose(logits, temperature, rng)
        if token in runtime.card.ends:
            end = "stopped"
            break
        tokens.append(token)
        text += runtime.pieces[token]
        if any(stop in text[-len(runtime.pieces[token]) - len(stop) :] for stop in stops):
            end = "stopped"
            break
        if len(tokens) < budget:
            logits = runtime.eval([token])
    return Draw(tuple(tokens), text, end, seconds=time.perf_counter() - started)


def constrained(
    runtime: Runtime,
    prompt: Sequence[int],
    matcher: Matcher,
    rng: np.random.Generator,
    *,
    pieces: Pieces | None = None,
    budget: int = 256,
    temperature: float = 1.0,
    skip: bool = True,
) -> Draw:
    """One sample under a grammar.

    Args:
        runtime: The model.
        prompt: Tokens before the sample.
        matcher: At the place where the sample begins; it is copied, not moved.
        rng: Source of randomness.
        pieces: Words from which the closeout makes an end. None: no closeout, the sample may end in the middle.
        budget: Most tokens.
        temperature: Of the model's distribution, before masking.
        skip: Put forced tokens without asking the model, in the model's own tokenization. Off, every token is drawn
            from the masked distribution, and `log_weight` is the exact importance weight.

    Raises:
        LimitError: Prompt and budget do not fit the context, no call fits the budget (only where there is a closeout),
            or the grammar engine gave up.
    """
    started = time.perf_counter()
    _fits(runtime, prompt, budget)
    state = _State(matcher.copy())
    closeout = Closeout(budget, pieces) if pieces is not None else None
    least = closeout.shortest(matcher) if closeout is not None else None
    if least is not None and least > budget:
        raise LimitError(f"the shortest call takes {least} tokens, and the budget is {budget}; give it {least} or more")
    state.mask_seconds += time.perf_counter() - started
    logits = runtime.prime(prompt)
    end: End = "length"
    cut = False
    pending: list[int] = []
    while True:
        if state.matcher.accepting():
            end = "whole"
            break
        if closeout is None and len(state.tokens) >= budget:
            break
        forced = state.forced(budget - len(state.tokens)) if skip else []
        if forced:
            step = forced
        else:
            if pending:
                logits, pending = runtime.eval(pending), []
            token = state.draw(logits, temperature, rng)
            if token is None:
                break
            step = [token]
        if closeout is not None:
            ending = state.ending(closeout, step, runtime.text(step))
            if ending is not None:
                state.take(runtime, ending.tokens)
                end, cut = "closed", ending.invented
                break
        state.take(runtime, step)
        state.skipped += len(forced)
        pending += step
    return Draw(
        tuple(state.tokens), state.text, end, cut or end == "length", state.log_weight, tuple(state.masses),
        state.skipped, state.mask_seconds, time.perf_counter() - started,
    )  # fmt: skip


@dataclass(slots=True)
class _State:
    matcher: Matcher
    tokens: list[int] = field(default_factory=list)
    text: bytes = b""
    log_weight: float = 0.0
    masses: list[float] = field(default_factory=list)
    skipped: int = 0
    mask_seconds: float = 0.0

    def take(self, runtime: Runtime, tokens: Sequence[int]) -> None:
        clock = time.perf_counter()
        assert self.matcher.consume_all(tokens)
        self.mask_seconds += time.perf_counter() - clock
        self.tokens += tokens
        self.text += runtime.text(tokens)

    def ending(self, closeout: Closeout, step: Sequence[int], text: bytes) -> Ending | None:
        clock = time.perf_counter()
        found = closeout.due(self.matcher, self.text, step, len(self.tokens), text)
        self.mask_seconds += time.perf_counter() - clock
        return found

    def forced(self, most: int) -> list[int]:
        clock = time.perf_counter()
        found = self.matcher.forced_tokens()[: max(most, 1)]
        self.mask_seconds += time.perf_counter() - clock
        return found

    def draw(self, logits: NDArray[np.float32], temperature: float, rng: np.random.Generator) -> int | None:
        clock = time.perf_counter()
        mask = self.matcher.mask()[: len(logits)]
        self.mask_seconds += time.perf_counter() - clock
        probabilities = softmax(logits, temperature)
        allowed = np.where(mask, probabilities, 0.0)
        mass = float(allowed.sum())
        if mass <= 0.0:
            # The model gives what is allowed no measurable probability: take the grammar's word alone.
            allowed = mask.astype(np.float64)
            total = float(allowed.sum())
            if total == 0.0:
                return None
            self.log_weight = -math.inf
            self.masses.append(1.0)
            return int(rng.choice(len(allowed), p=allowed / total))
        self.log_weight += math.log(min(mass, 1.0))
        self.masses.append(max(1.0 - mass, 0.0))
        return pick(allowed, mass, rng)


def _choose(logits: NDArray[np.float32], temperature: float, rng: np.random.Generator) -> int:
    probabilities = softmax(logits, temperature)
    return pick(probabilities, float(probabilities.sum()), rng)


def _fits(runtime: Runtime, prompt: Sequence[int], budget: int) -> None:
    if len(prompt) + budget > runtime.capacity:
        raise LimitError(
            f"a prompt of {len(prompt)} tokens and a budget of {budget} do not fit the context of {runtime.capacity}"
        )


# --- faithful to the model ---


@dataclass(frozen=True, slots=True)
class Faithful:
    """Samples that follow the model's own distribution, given that the call is valid.

    Attributes:
        draws: The samples.
        effective: Effective sample size of the weights they were resampled by: (sum w)^2 / sum w^2. For exact
            rejection it is the number of samples.
        attempts: Samples that were begun.
    """

    draws: tuple[Draw, ...]
    effective: float
    attempts: int


def resampled(draws: Sequence[Draw], count: int, rng: np.random.Generator) -> Faithful:
    """Importance resampling: `count` of `draws`, each as likely as its weight.

    Masking draws x from q(x) = p(x) / w(x), where w is the product of the allowed masses; drawing again in proportion
    to w gives p given validity, in the limit of many draws (sampling/importance resampling, D. B. Rubin, 1987; why
    plain masking is not enough: Park et al., "Grammar-Aligned Decoding", arXiv 2405.21047).

    Args:
        draws: From `constrained` with `skip=False`. Those that did not come to a whole call count nothing.
    """
    logs = np.array([draw.log_weight if draw.end == "whole" else -math.inf for draw in draws])
    if not len(logs) or np.all(np.isneginf(logs)):
        return Faithful((), 0.0, len(draws))
    weights = np.exp(logs - logs.max())
    chosen = rng.choice(len(draws), size=count, p=weights / weights.sum())
    return Faithful(tuple(draws[i] for i in chosen), effective_size(weights), len(draws))


def effective_size(weights: NDArray[np.float64]) -> float:
    """Effective sample size of importance weights: (sum w)^2 / sum w^2 (A. Kong, 1992)."""
    square = float((weights * weights).sum())
    return float(weights.sum()) ** 2 / square if square else 0.0


@dataclass(slots=True)
class _Node:
    """A prefix that was met: the masked probabilities after it, and how much below each step may still be valid."""

    allowed: NDArray[np.float64]
    alive: dict[int, float] = field(default_factory=dict)
    children: dict[int, _Node] = field(default_factory=dict)


class Rejection:
    """Adaptive rejection: exact samples of the model given validity, cheaper with every failure.

    Draws from the model itself; a draw that leaves the grammar is thrown away, and the mass of everything below that
    step is taken out of all later draws. What was taken out is certainly invalid, so each accepted draw follows the
    model's distribution given validity exactly, however few were drawn (the idea of adaptive rejection over a prefix
    tree: Park et al., arXiv 2405.21047; Lipkin et al., "Fast Controlled Generation from Language Models with Adaptive
    Weighted Rejection Sampling", arXiv 2504.05410).

    Args:
        runtime: The model.
        prompt: Tokens before the sample.
        matcher: Where samples begin.
        budget: Most tokens of one sample; longer ones count as invalid, so samples follow the model given validity
            within the budget.
    """

    def __init__(self, runtime: Runtime, prompt: Sequence[int], matcher: Matcher, *, budget: int = 256) -> None:
        _fits(runtime, prompt, budget)
        self._runtime = runtime
        self._prompt = tuple(prompt)
        self._matcher = matcher
        self._budget = budget
        self._root: _Node | None = None

    def draw(self, rng: np.random.Generator) -> Draw | None:
        """One attempt: a sample, or None where it was rejected."""
        matcher = self._matcher.copy()
        path: list[tuple[_Node, int]] = []
        tokens: list[int] = []
        node, new = self._root, False
        if node is None:
            node, new = self._expand(matcher, tokens), True
            self._root = node
        while True:
            weights = node.allowed.copy()
            for token, alive in node.alive.items():
                weights[token] *= alive
            total = float(weights.sum())
            # A node met before is entered with the chance of what is left below it; a new one was entered as if all
            # were left, so that here the model may still step outside.
            if total <= 0.0 or (new and rng.random() >= total):
                self._update(path, total)
                return None
            token = pick(weights, total, rng)
            path.append((node, token))
            tokens.append(token)
            assert matcher.consume(token)
            if matcher.accepting():
                self._update(path, 1.0)
                return Draw(tuple(tokens), self._runtime.text(tokens), "whole")
            if len(tokens) >= self._budget:
                self._update(path, 0.0)
                return None
            child = node.children.get(token)
            new = child is None
            if child is None:
                child = node.children[token] = self._expand(matcher, tokens)
            node = child

    def _expand(self, matcher: Matcher, tokens: Sequence[int]) -> _Node:
        probabilities = softmax(self._runtime.prime((*self._prompt, *tokens)))
        return _Node(np.where(matcher.mask()[: len(probabilities)], probabilities, 0.0))

    def _update(self, path: Sequence[tuple[_Node, int]], left: float) -> None:
        """Write down, from the end of a path to its start, how much below each step may still be valid."""
        for node, token in reversed(path):
            node.alive[token] = left
            known = sum(float(node.allowed[t]) * (1.0 - alive) for t, alive in node.alive.items())
            left = max(float(node.allowed.sum()) - known, 0.0)

    def draws(self, rng: np.random.Generator, count: int, attempts: int = 10_000) -> Faithful:
        """`count` samples, or as many as `attempts` attempts give."""
        found: list[Draw] = []
        tried = 0
        while len(found) < count and tried < attempts:
            tried += 1
            draw = self.draw(rng)
            if draw is not None:
                found.append(draw)
        return Faithful(tuple(found), float(len(found)), tried)
