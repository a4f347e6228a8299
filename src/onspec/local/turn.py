"""One turn of a model, token by token: free where it speaks, held by the grammar where it calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from onspec.errors import LimitError
from onspec.grammar.build import Grammar
from onspec.grammar.llguidance import Matcher
from onspec.grammar.rules import Pieces
from onspec.local.closeout import Closeout
from onspec.local.runtime import Runtime, pick, softmax

End = Literal["stopped", "whole", "closed", "length", "cancelled"]

Gate = Callable[[str], str | None]
"""Given the text of the turn so far, what of its end belongs to a call that has just begun; None where none has."""


@dataclass(slots=True)
class Spoken:
    """What a turn was, complete once its iterator has ended.

    Attributes:
        text: All bytes, markers included.
        tokens: Their number.
        skipped: Tokens that the grammar forced and that were not asked of the model.
        end: `stopped`: the model ended its reply. `whole`: a block of calls is complete. `closed`: the closeout ended
            it. `length`: the budget ran out. `cancelled`: somebody asked to stop.
        cut: Whether content was lost or made up by the closeout.
        seconds: Wall time.
    """

    text: bytes = b""
    tokens: int = 0
    skipped: int = 0
    end: End = "length"
    cut: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Piece:
    """What came with one step.

    Attributes:
        text: Its bytes.
        block: Number of the block of calls that it belongs to, from 1, where the grammar held it; 0 outside.
        lead: What of that block was written before the grammar took hold.
    """

    text: bytes
    block: int = 0
    lead: bytes = b""


class Turn:
    """Writes one turn.

    Attributes:
        spoken: What it was so far.
        opening: The bytes of the token with which a call began in free text.

    Args:
        runtime: The model.
        prompt: Tokens before the turn.
        rng: Source of randomness.
        budget: Most tokens.
        temperature: Of the model's distribution, before masking.
        cancelled: Asked before each step; True ends the turn.
    """

    def __init__(
        self,
        runtime: Runtime,
        prompt: Sequence[int],
        rng: np.random.Generator,
        *,
        budget: int,
        temperature: float,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._runtime = runtime
        self._prompt = list(prompt)
        self._rng = rng
        self._budget = budget
        self._temperature = temperature
        self._cancelled = cancelled
        self.spoken = Spoken()
        self.opening = b""
        self._since = 0
        self._block = 0
        self._tokens: list[int] = []
        self._pending: list[int] = []
        self._logits: NDArray[np.float32] | None = None

    def free(self, gate: Gate | None) -> Iterator[Piece]:
        """Text until the model ends its reply, the budget runs out, or `gate` says that a call has begun. The token
        with which it begins is not given out: it is in `opening`.
        """
        started, self._since = time.perf_counter(), len(self.spoken.text)
        self.spoken.end = "length"
        while len(self._tokens) < self._budget:
            if self._cancelled():
                self.spoken.end = "cancelled"
                break
            probabilities = softmax(self._next(), self._temperature)
            token = pick(probabilities, float(probabilities.sum()), self._rng)
            if token in self._runtime.card.ends:
                self.spoken.end = "stopped"
                break
            piece = self._take([token])
            if gate is not None and gate(self.said) is not None:
                self.opening, self.spoken.end = piece.text, "whole"
                break
            yield piece
        self.spoken.seconds += time.perf_counter() - started

    @property
    def said(self) -> str:
        """What was written since it last began to speak freely."""
        return self.spoken.text[self._since :].decode("utf-8", "replace")

    def put(self, text: str) -> Piece:
        """Write `text` without asking the model."""
        return self._take(self._runtime.tokenize(text, special=True))

    def back_to(self, length: int) -> None:
        """Forget all bytes from number `length` on, in the model's own tokenization of what is left."""
        self.spoken.text = self.spoken.text[:length]
        self._tokens = self._runtime.tokenize(self.spoken.text.decode("utf-8", "replace"), special=True)
        self.spoken.tokens = len(self._tokens)
        self._pending, self._logits = [], None

    def fits(self, trigger: str, matcher: Matcher, pieces: Pieces) -> None:
        """Look whether a call that must come first can be written at all.

        Raises:
            LimitError: The shortest that was found is larger than the budget.
        """
        least = Closeout(self._budget, pieces).shortest(matcher) if not self._tokens else None
        if least is None:
            return
        least += len(self._runtime.tokenize(trigger, special=True)) if trigger else 0
        if least > self._budget:
            raise LimitError(
                f"the shortest call takes {least} tokens, and the budget is {self._budget}; give it {least} or more"
            )

    def held(self, matcher: Matcher, pieces: Pieces, begun: bytes = b"") -> Iterator[Piece]:
        """Text that the grammar holds, until it is whole.

        Args:
            matcher: Where the turn stands in the grammar; it is moved.
            pieces: Words from which an ending is made where the budget runs out.
            begun: What was already written inside the grammar.
        """
        started, written = time.perf_counter(), begun
        self._block += 1
        if begun:
            yield Piece(b"", self._block, begun)
        closeout = Closeout(max(self._budget - len(self._tokens), 1), pieces)
        first = len(self._tokens)
        self.spoken.end = "length"
        while True:
            if matcher.accepting():
                self.spoken.end = "whole"
                break
            if self._cancelled():
                self.spoken.end = "cancelled"
                break
            left = self._budget - len(self._tokens)
            if left <= 0:
                break
            forced = matcher.forced_tokens()[:left]
            step = forced or self._drawn(matcher)
            if not step:
                break
            text = self._runtime.text(step)
            ending = closeout.due(matcher, written, step, len(self._tokens) - first, text)
            if ending is not None:
                matcher.consume_all(ending.tokens)
                yield self._take(ending.tokens, self._block)
                self.spoken.end, self.spoken.cut = "closed", ending.invented
                break
            matcher.consume_all(step)
            self.spoken.skipped += len(forced)
            written += text
            yield self._take(step, self._block)
        self.spoken.cut = self.spoken.cut or self.spoken.end == "length"
        self.spoken.seconds += time.perf_counter() - started

    def _take(self, tokens: Sequence[int], block: int = 0) -> Piece:
        text = self._runtime.text(tokens)
        self._tokens += tokens
        self._pending += tokens
        self.spoken.tokens = len(self._tokens)
        self.spoken.text += text
        return Piece(text, block)

    def _next(self) -> NDArray[np.float32]:
        if self._logits is None:
            self._logits = self._runtime.prime([*self._prompt, *self._tokens])
        elif self._pending:
            self._logits = self._runtime.eval(self._pending)
        self._pending = []
        return self._logits

    def _drawn(self, matcher: Matcher) -> list[int]:
        logits = self._next()
        mask = matcher.mask()[: len(logits)]
        allowed = np.where(mask, softmax(logits, self._temperature), 0.0)
        mass = float(allowed.sum())
        if mass <= 0.0:  # The model gives what is allowed no measurable probability: take the grammar's word alone.
            allowed = mask.astype(np.float64)
            mass = float(allowed.sum())
        return [pick(allowed, mass, self._rng)] if mass > 0.0 else []


def closing_gate(closer: str) -> Gate:
    """A gate that opens when reasoning is closed."""
    return lambda text: "" if closer in text else None


def gate_of(grammar: Grammar, openers: Sequence[str], think: tuple[str, str] | None, opened: bool) -> Gate:
    """The gate of a dialect: where a call has begun in a turn.

    Args:
        grammar: Says which trigger switches calls on, if one does.
        openers: In a dialect without one: what a call begins with, anywhere where that is a tag, else at the start of a
            message that is nothing but calls.
        think: What opens and closes reasoning, in which nothing is a call; None where the dialect has none.
        opened: Whether the prompt has opened it.
    """
    trigger = grammar.trigger

    def gate(text: str) -> str | None:
        if think is not None and (opened or text.lstrip().startswith(think[0])):
            _, closed, text = text.partition(think[1])
            if not closed:
                return None
        if grammar.dialect == "harmony":
            message = text.rpartition("<|start|>assistant")[2]
            header, body, _ = message.partition("<|message|>")
            return message if not body and " to=" in header else None
        if trigger:
            _, found, rest = text.rpartition(trigger)
            return rest if found else None
        if grammar.calls is not None:
            places = [place for opener in openers if (place := text.rfind(opener)) >= 0]
            return text[max(places) :] if places else None
        begun = text.lstrip()
        return begun if any(begun.startswith(opener) for opener in openers) else None

    return gate
