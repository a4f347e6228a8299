"""The llguidance engine: which tokens a grammar allows next, over a vocabulary."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from onspec.errors import InputError, LimitError, MissingExtra

try:
    import numpy as np
    from numpy.typing import NDArray
except ImportError:
    raise MissingExtra("numpy", "local") from None

try:
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper
except ImportError:
    raise MissingExtra("llguidance", "local") from None

Mask = NDArray[np.bool_]
"""One truth value a token of the vocabulary."""

CACHED = 64
"""Compiled grammars kept for one vocabulary."""

_TOO_LARGE = ("fuel", "panic", "too large", "too many", "max is", "too deeply nested", "too complex")
"""Words of the engine's refusals that are about size, not about syntax."""

_SHORT, _REMEMBERED = 256, 50_000
"""Texts up to this many bytes keep their tokens, up to so many of them: closing tries the same few again and again."""

_LIMITS = LLParserLimits(
    initial_lexer_fuel=20_000_000,
    step_lexer_fuel=2_000_000,
    max_items_in_row=20_000,
    step_max_items=500_000,
    max_grammar_size=2_000_000,
)
"""Work that one grammar or one mask may cost before it is refused; a few seconds at most."""


class _Pieces:
    """The shape in which llguidance reads a vocabulary that is given by its pieces."""

    def __init__(
        self, tokens: Sequence[bytes], special: Sequence[int], eos: int, tokenize: Callable[[bytes], list[int]]
    ) -> None:
        self.tokens = list(tokens)
        self.special_token_ids = list(special)
        self.eos_token_id = eos
        self.bos_token_id = None
        self._tokenize = tokenize

    def __call__(self, text: bytes | str) -> list[int]:
        return self._tokenize(text.encode() if isinstance(text, str) else text)


class Vocabulary:
    """A tokenizer's tokens, as the engine sees them. Building one takes a second or two: keep it.

    Args:
        tokenizer: llguidance's own tokenizer object.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer.with_slices(LLTokenizer.json_slices())
        self.size: int = self.tokenizer.vocab_size
        self.eos: int = self.tokenizer.eos_token
        self._compiled: OrderedDict[str, Any] = OrderedDict()
        self._tokens: dict[bytes, list[int]] = {}

    @classmethod
    def of_bytes(cls) -> Vocabulary:
        """A vocabulary with one token a byte, for tests and for judging texts."""
        return cls(LLTokenizer("byte"))

    @classmethod
    def of_pieces(
        cls,
        pieces: Sequence[bytes],
        special: Sequence[int],
        eos: int,
        tokenize: Callable[[bytes], list[int]],
    ) -> Vocabulary:
        """A vocabulary from its pieces.

        Args:
            pieces: Bytes of each token, by id.
            special: Ids of control tokens, which never match text.
            eos: Id of the token that ends a reply.
            tokenize: The model's own tokenization of a text without control tokens.

        Raises:
            InputError: llguidance cannot use the vocabulary.
        """
        wrapper: Any = TokenizerWrapper
        try:
            return cls(LLTokenizer(wrapper(_Pieces(pieces, special, eos, tokenize))))
        except (ValueError, AssertionError, TypeError) as error:
            raise InputError(f"this vocabulary cannot be used: {error}") from None

    def tokens_of(self, text: bytes) -> list[int]:
        """The model's own tokens of `text`."""
        found = self._tokens.get(text)
        if found is None:
            found = list(self.tokenizer.tokenize_bytes(text))
            if len(text) <= _SHORT and len(self._tokens) < _REMEMBERED:
                self._tokens[text] = found
        return list(found)

    def bytes_of(self, tokens: Sequence[int]) -> bytes:
        """The text of `tokens`; control tokens are written as their names."""
        found: bytes = self.tokenizer.decode_bytes(list(tokens))
        return found

    def matcher(self, grammar: str) -> Matcher:
        """A matcher at the start of `grammar`, Lark text. Compiled once, then copied.

        Raises:
            InputError: The grammar is not valid, or names a special token that the vocabulary has not.
            LimitError: It is larger than the engine can hold.
        """
        found = self._compiled.get(grammar)
        if found is None:
            made = LLMatcher(self.tokenizer, LLMatcher.grammar_from_lark(grammar), log_level=0, limits=_LIMITS)
            if made.is_error():
                raise _translated(made.get_error())
            found = self._compiled[grammar] = made
            while len(self._compiled) > CACHED:
                self._compiled.popitem(last=False)
        else:
            self._compiled.move_to_end(grammar)
        return Matcher(self, found.deep_copy())


def _translated(message: str) -> InputError | LimitError:
    first = message.strip().split("\n", 1)[0][:300]
    if any(word in message for word in _TOO_LARGE):
        return LimitError(f"the grammar is larger than the engine can hold ({first}); use fewer or simpler tools")
    return InputError(f"the grammar is not valid: {first}")


class Matcher:
    """A place in a grammar. Fed with tokens, it says which may follow. Not for use by several threads at once."""

    __slots__ = ("_buffer", "_inner", "vocabulary")

    def __init__(self, vocabulary: Vocabulary, inner: Any) -> None:
        self.vocabulary = vocabulary
        self._inner = inner
        self._buffer: NDArray[np.uint8] | None = None

    def mask(self) -> Mask:
        """Which tokens may come next.

        Raises:
            LimitError: The engine gave up: the grammar is too ambiguous here.
        """
        if self._buffer is None:
            self._buffer = np.zeros((self.vocabulary.size + 31) // 32 * 4, np.uint8)
        self._inner.unsafe_compute_mask_ptr(self._buffer.ctypes.data, self._buffer.size)
        if self._inner.is_error():
            raise LimitError(f"the grammar engine gave up: {self._inner.get_error().strip().splitlines()[0][:200]}")
        return np.unpackbits(self._buffer, bitorder="little")[: self.vocabulary.size].astype(bool)

    def consume(self, token: int) -> bool:
        """Take one token; False, and nothing changes, where it is not allowed."""
        return self.consume_all([token])

    def consume_all(self, tokens: Sequence[int]) -> bool:
        """Take all of `tokens`, or none of them and answer False."""
        tokens = list(tokens)
        if self._inner.validate_tokens(tokens) < len(tokens):
            return False
        return bool(self._inner.try_consume_tokens(tokens) == len(tokens))

    def consume_bytes(self, text: bytes) -> bool:
        """Take a text, as the model's own tokens; all of it, or nothing and False."""
        return self.consume_all(self.vocabulary.tokens_of(text))

    def allowed_length(self, tokens: Sequence[int]) -> int:
        """How many of `tokens`, from the first, are allowed here."""
        return int(self._inner.validate_tokens(list(tokens)))

    def accepting(self) -> bool:
        """Whether what was taken is whole, so that the text may end here."""
        return bool(self._inner.is_accepting())

    def ended(self) -> bool:
        """Whether nothing but the end may follow."""
        return bool(self._inner.is_stopped())

    def forced(self) -> bytes:
        """The bytes that must come next, as far as the grammar leaves no choice."""
        found: bytes = self._inner.compute_ff_bytes()
        return found

    def forced_tokens(self) -> list[int]:
        """The tokens that must come next, in the model's own tokenization."""
        found: list[int] = self._inner.compute_ff_tokens()
        return found

    def rewind(self, tokens: int) -> None:
        """Go back over the last `tokens` tokens."""
        if tokens:
            self._inner.rollback(tokens)

    def copy(self) -> Matcher:
        """Another matcher at the same place."""
        return Matcher(self.vocabulary, self._inner.deep_copy())


def accepts(vocabulary: Vocabulary, grammar: str, text: str | bytes) -> bool:
    """Whether `text` as a whole is in the language of `grammar`.

    Raises:
        InputError: The grammar is not valid.
        LimitError: It is larger than the engine can hold.
    """
    matcher = vocabulary.matcher(grammar)
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return matcher.consume_bytes(raw) and matcher.accepting()
