"""The port to a model in this process: tokens in, logits out, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onspec.errors import LimitError
from onspec.grammar.llguidance import Vocabulary

Logits = NDArray[np.float32]
"""One number a token of the vocabulary, before softmax, in nats."""


@dataclass(frozen=True, slots=True)
class Card:
    """What a model file says of itself.

    Attributes:
        name: The model's name.
        context: Most tokens of context it was trained for.
        eos: The token that ends a reply.
        ends: All tokens that end a reply or a turn.
        bos: The token that starts a context, or None where the model wants none.
        template: The chat template (Jinja), or None.
    """

    name: str
    context: int
    eos: int
    ends: frozenset[int]
    bos: int | None
    template: str | None


class Runtime(ABC):
    """One model with one context.

    What holds for every implementation (`tests/local/test_runtime.py`): `eval` of a list equals `eval` of its parts;
    `rewind` makes later tokens forgotten; `pieces` of the tokens of a text put together are the text; a context that
    is too small raises LimitError and leaves the context as it was; a file that is no model raises InputError.

    Attributes:
        card: What the file says.
        pieces: Bytes of each token, by id; the name of a special token.
        specials: Special tokens, text to id.
        vocabulary: The same for the grammar engine.
        capacity: Tokens the context holds.
    """

    card: Card
    pieces: Sequence[bytes]
    specials: Mapping[str, int]
    vocabulary: Vocabulary
    capacity: int

    def __init__(self) -> None:
        self._context: list[int] = []
        self._last: Logits | None = None

    @property
    def context(self) -> tuple[int, ...]:
        """Tokens evaluated so far."""
        return tuple(self._context)

    @property
    def last(self) -> Logits:
        """Logits after the last token of the context."""
        assert self._last is not None, "evaluate something first"
        return self._last

    @abstractmethod
    def tokenize(self, text: str | bytes, *, special: bool = False) -> list[int]:
        """Tokens of `text`; special tokens are recognised in it only if `special`."""

    def prompt(self, text: str) -> list[int]:
        """Tokens of a whole prompt: special tokens recognised, after the token that starts a context, if any."""
        found = self.tokenize(text, special=True)
        return found if self.card.bos is None else [self.card.bos, *found]

    def eval(self, tokens: Sequence[int], *, every: bool = False) -> Logits:
        """Add `tokens` to the context.

        Args:
            tokens: At least one token.
            every: Give the logits after each of them, shape `(len(tokens), vocabulary)`; else only after the last.

        Raises:
            LimitError: The context cannot hold them.
        """
        if len(self._context) + len(tokens) > self.capacity:
            raise LimitError(
                f"{len(self._context) + len(tokens)} tokens do not fit the context of {self.capacity}; "
                "open the model with a larger context or shorten the history"
            )
        out = self._eval(list(tokens), every)
        self._context += tokens
        self._last = out[-1] if every else out
        return out

    def rewind(self, length: int) -> None:
        """Forget all tokens of the context from number `length` on. Logits must be evaluated anew after that."""
        if length < len(self._context):
            self._forget(length)
            del self._context[length:]
            self._last = None

    def prime(self, tokens: Sequence[int]) -> Logits:
        """Make the context exactly `tokens`, evaluating only what it does not share with the one at hand.

        A history is thus evaluated once for all samples of it.

        Raises:
            LimitError: The context cannot hold them.
        """
        wanted = list(tokens)
        shared = 0
        for one, other in zip(self._context, wanted, strict=False):
            if one != other:
                break
            shared += 1
        if shared == len(wanted) and shared == len(self._context) and self._last is not None:
            return self._last
        shared = min(shared, len(wanted) - 1)
        self.rewind(shared)
        return self.eval(wanted[shared:])

    def text(self, tokens: Sequence[int]) -> bytes:
        """The bytes of `tokens`, special tokens as their names."""
        return b"".join(self.pieces[token] for token in tokens)

    @abstractmethod
    def _eval(self, tokens: list[int], every: bool) -> Logits: ...

    @abstractmethod
    def _forget(self, length: int) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Give the memory back. The runtime cannot be used afterwards."""


def log_softmax(logits: Logits) -> NDArray[np.float64]:
    """Log-probabilities, in nats, computed in double precision."""
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=-1, keepdims=True)
    wide -= np.log(np.exp(wide).sum(axis=-1, keepdims=True))
    return wide


def softmax(logits: Logits, temperature: float = 1.0) -> NDArray[np.float64]:
    """Probabilities at `temperature`, computed in double precision."""
    wide = logits.astype(np.float64) / temperature
    wide -= wide.max(axis=-1, keepdims=True)
    np.exp(wide, out=wide)
    wide /= wide.sum(axis=-1, keepdims=True)
    return wide


def pick(weights: NDArray[np.float64], total: float, rng: np.random.Generator) -> int:
    """Draw a token in proportion to `weights`, which sum to `total`; one without weight is never drawn."""
    place = int(np.searchsorted(np.cumsum(weights), rng.random() * total, side="right"))
    place = min(place, len(weights) - 1)
    while weights[place] <= 0.0:  # Rounding may land beside the last token that has weight.
        place -= 1
    return place
