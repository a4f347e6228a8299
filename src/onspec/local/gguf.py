"""A GGUF model without native code: weights read by `gguf`, the forward pass in numpy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from onspec.errors import InputError, MissingExtra
from onspec.grammar.llguidance import Vocabulary
from onspec.local.forward import Forward
from onspec.local.runtime import Card, Logits, Runtime

try:
    from gguf import GGUFReader
except ImportError:
    raise MissingExtra("gguf", "local") from None

_CONTROL, _USER_DEFINED = 3, 4
"""Token types of `tokenizer.ggml.token_type`."""

_NUMERAL = r"\d²³¹¼½¾\u2070-\u2089\u2150-\u2189\u2460-\u249b"
_SPLIT = re.compile(rf"[{_NUMERAL}]|'(?:s|t|re|ve|m|ll|d)| ?[^\W{_NUMERAL}_]+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
"""How the byte-level tokenizers of the Llama family with single digits cut a text before merging."""


class NumpyRuntime(Runtime):
    """A model of the `llama` architecture with a byte-level BPE tokenizer, in single precision.

    Slow to start (all weights are unpacked) and to decode, but it runs wherever numpy does.

    Args:
        model: Path of the GGUF file.
        capacity: Tokens of context.
        threads: Threads of numpy's matrix products.

    Raises:
        InputError: The file is no GGUF model, or of another architecture or tokenizer.
    """

    def __init__(self, model: Path, capacity: int = 4096, threads: int = 1) -> None:
        super().__init__()
        self._forward = Forward(model, threads, keep=True)
        try:
            fields = {name: field.contents() for name, field in GGUFReader(model).fields.items()}
        except (ValueError, OSError, IndexError, KeyError) as error:
            raise InputError(f"{model} is damaged: {error}") from None
        if fields.get("tokenizer.ggml.model") != "gpt2":
            raise InputError(f"{model} has a tokenizer that needs llama.cpp; without native code byte-level BPE only")
        self.capacity = capacity
        shape = self._forward.shape
        self._keys = np.zeros((shape.depth, capacity, shape.kv_heads, shape.width), np.float32)
        self._values = np.zeros_like(self._keys)
        self._read_tokens(fields, model)

    def _read_tokens(self, fields: Mapping[str, Any], model: Path) -> None:
        kinds = fields["tokenizer.ggml.token_type"]
        texts: Sequence[str] = fields["tokenizer.ggml.tokens"]
        self.pieces = [
            text.encode() if kind in (_CONTROL, _USER_DEFINED) else _raw(text)
            for text, kind in zip(texts, kinds, strict=True)
        ]
        self.specials = {text: i for i, (text, kind) in enumerate(zip(texts, kinds, strict=True)) if kind == _CONTROL}
        self._numbers = {piece: i for i, piece in enumerate(self.pieces) if kinds[i] not in (_CONTROL, _USER_DEFINED)}
        merges: Sequence[str] = fields["tokenizer.ggml.merges"]
        self._ranks = {tuple(_raw(part) for part in merge.split(" ", 1)): i for i, merge in enumerate(merges)}
        eos = int(fields.get("tokenizer.ggml.eos_token_id", 0))
        names = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "</s>")
        bos = fields.get("tokenizer.ggml.bos_token_id")
        self.card = Card(
            name=str(fields.get("general.name", model.stem)),
            context=self._forward.shape.context,
            eos=eos,
            ends=frozenset({eos, *(self.specials[name] for name in names if name in self.specials)}),
            bos=int(bos) if bos is not None and fields.get("tokenizer.ggml.add_bos_token") else None,
            template=fields.get("tokenizer.chat_template"),
        )
        known = list(self.specials.values())
        self.vocabulary = Vocabulary.of_pieces(self.pieces, known, eos, lambda raw: self.tokenize(raw))

    def tokenize(self, text: str | bytes, *, special: bool = False) -> list[int]:
        raw = text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
        out: list[int] = []
        parts = (
            re.split("(" + "|".join(map(re.escape, self.specials)) + ")", raw) if special and self.specials else [raw]
        )
        for part in parts:
            if special and part in self.specials:
                out.append(self.specials[part])
            else:
                for word in _SPLIT.findall(part):
                    out += self._merged(word.encode("utf-8", "surrogateescape"))
        return out

    def _merged(self, word: bytes) -> list[int]:
        parts = [word[i : i + 1] for i in range(len(word))]
        while len(parts) > 1:
            ranked = [(self._ranks.get((a, b), 1 << 30), i) for i, (a, b) in enumerate(pairwise(parts))]
            rank, place = min(ranked)
            if rank == 1 << 30:
                break
            parts[place : place + 2] = [parts[place] + parts[place + 1]]
        missing = [part for part in parts if part not in self._numbers]
        if missing:
            raise InputError(f"this tokenizer cannot express the bytes {missing[0]!r}")
        return [self._numbers[part] for part in parts]

    def _eval(self, tokens: list[int], every: bool) -> Logits:
        if not all(0 <= token < len(self.pieces) for token in tokens):
            raise InputError("a token is outside the vocabulary")
        hidden = self._forward.hidden(tokens, self._keys, self._values, len(self._context))
        assert hidden is not None
        logits: Logits = self._forward.logits(hidden if every else hidden[-1:])
        return logits if every else logits[-1]

    def _forget(self, length: int) -> None:
        # Later tokens overwrite what stands there; nothing reads beyond the context.
        return

    def close(self) -> None:
        del self._forward, self._keys, self._values


def open_model(path: Path, capacity: int = 4096, threads: int = 1) -> NumpyRuntime:
    """A GGUF model in numpy.

    Raises:
        InputError: The file is not a model of the `llama` architecture with a byte-level tokenizer.
    """
    return NumpyRuntime(path, capacity, threads)


@lru_cache(maxsize=1)
def _byte_of() -> dict[str, int]:
    """The letters that byte-level BPE writes for bytes: printable Latin-1 stands for itself, the rest follows 255."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    out = {chr(code): code for code in shown}
    hidden = [code for code in range(256) if code not in set(shown)]
    out.update({chr(256 + index): code for index, code in enumerate(hidden)})
    return out


def _raw(text: str) -> bytes:
    table = _byte_of()
    try:
        return bytes(table[char] for char in text)
    except KeyError:
        return text.encode()
