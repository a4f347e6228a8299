"""A logits processor for `transformers`: generation under a grammar, on whatever device the model is."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from onspec.errors import InputError, MissingExtra
from onspec.grammar.llguidance import Matcher, Vocabulary

try:
    # Not installed with onspec, and heavy: looked up by name, so that type checking needs neither.
    torch: Any = import_module("torch")
    LogitsProcessor: Any = import_module("transformers").LogitsProcessor
except ImportError:
    raise MissingExtra("transformers", None) from None

try:
    from llguidance.hf import from_tokenizer
except ImportError:
    raise MissingExtra("llguidance", "local") from None


def vocabulary(tokenizer: Any, size: int | None = None) -> Vocabulary:
    """The vocabulary of a fast tokenizer of `transformers`.

    Args:
        tokenizer: A `PreTrainedTokenizerFast`.
        size: Rows of the model's output, where it is padded beyond the tokenizer's tokens.

    Raises:
        InputError: It is not a fast tokenizer.
    """
    try:
        return Vocabulary(from_tokenizer(tokenizer, n_vocab=size))
    except (ValueError, AssertionError, TypeError) as error:
        raise InputError(f"this tokenizer cannot be used: {error}") from None


class GrammarLogits(LogitsProcessor):  # type: ignore[misc]  # its type is unknown here
    """Masks what a grammar forbids, for one batch of one `generate` call.

    Args:
        words: The vocabulary.
        grammar: Lark text (`onspec.grammar.build.Grammar.calls`, or `onspec.grammar.exact.Exact.grammar()`).
        prompt: Tokens of the prompt; what follows is held to the grammar. When the grammar is satisfied, only end
            tokens are left.
        ends: Ids of the tokens that end a reply.
    """

    def __init__(self, words: Vocabulary, grammar: str, prompt: int, ends: list[int]) -> None:
        self._start = words.matcher(grammar)
        self._prompt = prompt
        self._ends = ends
        self._rows: dict[int, tuple[Matcher, int]] = {}

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        for row in range(input_ids.shape[0]):
            matcher, seen = self._rows.get(row, (self._start.copy(), 0))
            for token in input_ids[row, self._prompt + seen :].tolist():
                matcher.consume(token)
                seen += 1
            self._rows[row] = (matcher, seen)
            mask = np.zeros(scores.shape[-1], bool)
            found = matcher.mask()[: len(mask)]
            mask[: len(found)] = found
            if matcher.accepting():
                mask[self._ends] = True
            scores[row].masked_fill_(torch.from_numpy(~mask).to(scores.device), -float("inf"))
        return scores
