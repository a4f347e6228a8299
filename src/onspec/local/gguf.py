"""A GGUF model without native code: weights read by `gguf`, the forward pass in numpy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onspec.errors import InputError, MissingExtra
from onspec.grammar.llguidance import Vocabulary
from onspec.local.llama_api import check_gguf
from onspec.local.runtime import Card, Logits, Runtime

try:
    from gguf import GGUFReader
    from gguf.quants import dequantize
except ImportError:
    raise MissingExtra("gguf", "local") from None

Array = NDArray[np.float32]

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

    Raises:
        InputError: The file is no GGUF model, or of another architecture or tokenizer.
    """

    def __init__(self, model: Path, capacity: int = 4096) -> None:
        super().__init__()
        check_gguf(model)
        try:
            reader = GGUFReader(model)
        except (ValueError, OSError, IndexError, KeyError) as error:
            raise InputError(f"{model} is damaged: {error}") from None
        fields = {name: _value(field) for name, field in reader.fields.items()}
        architecture = fields.get("general.architecture")
        if architecture != "llama":
            raise InputError(f"{model} has the architecture {architecture!r}; without native code only 'llama' runs")
        if fields.get("tokenizer.ggml.model") != "gpt2":
            raise InputError(f"{model} has a tokenizer that needs llama.cpp; without native code byte-level BPE only")
        self._shape(fields)
        self._weights = {tensor.name: _unpacked(tensor) for tensor in reader.tensors}
        self._layers: list[dict[str, Array]] = [
            {name.split(".", 2)[2]: w for name, w in self._weights.items() if name.startswith(f"blk.{i}.")}
            for i in range(self._depth)
        ]
        self.capacity = capacity
        self._keys = np.zeros((self._depth, capacity, self._kv_heads, self._width), np.float32)
        self._values = np.zeros_like(self._keys)
        self._read_tokens(fields, model)

    def _shape(self, fields: Mapping[str, Any]) -> None:
        self._depth = int(fields["llama.block_count"])
        self._heads = int(fields["llama.attention.head_count"])
        self._kv_heads = int(fields.get("llama.attention.head_count_kv", self._heads))
        self._size = int(fields["llama.embedding_length"])
        self._width = int(fields.get("llama.rope.dimension_count", self._size // self._heads))
        self._epsilon = float(fields["llama.attention.layer_norm_rms_epsilon"])
        base = float(fields.get("llama.rope.freq_base", 10000.0))
        self._frequencies = base ** (-np.arange(0, self._width, 2, dtype=np.float64) / self._width)
        self._trained = int(fields["llama.context_length"])

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
            context=self._trained,
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
        start = len(self._context)
        x = self._weights["token_embd.weight"][tokens]
        angles = np.outer(np.arange(start, start + len(tokens)), self._frequencies)
        turn = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        for index, layer in enumerate(self._layers):
            x = x + self._attention(layer, index, self._norm(x, layer["attn_norm.weight"]), start, turn)
            x = x + _feed_forward(layer, self._norm(x, layer["ffn_norm.weight"]))
        if not every:
            x = x[-1:]
        head = self._weights.get("output.weight", self._weights["token_embd.weight"])
        logits: Logits = self._norm(x, self._weights["output_norm.weight"]) @ head.T
        return logits if every else logits[-1]

    def _attention(
        self, layer: Mapping[str, Array], index: int, x: Array, start: int, turn: tuple[Array, Array]
    ) -> Array:
        count = len(x)
        q = _rotated((x @ layer["attn_q.weight"].T).reshape(count, self._heads, self._width), *turn)
        k = _rotated((x @ layer["attn_k.weight"].T).reshape(count, self._kv_heads, self._width), *turn)
        v = (x @ layer["attn_v.weight"].T).reshape(count, self._kv_heads, self._width)
        end = start + count
        self._keys[index, start:end], self._values[index, start:end] = k, v
        group = self._heads // self._kv_heads
        keys = self._keys[index, :end].repeat(group, axis=1)
        values = self._values[index, :end].repeat(group, axis=1)
        scores = np.einsum("qhd,khd->hqk", q, keys) / np.sqrt(np.float32(self._width))
        later = np.arange(end)[None, :] > (start + np.arange(count))[:, None]
        scores = np.where(later[None], np.float32(-np.inf), scores)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", scores, values).reshape(count, -1)
        out: Array = mixed @ layer["attn_output.weight"].T
        return out

    def _norm(self, x: Array, weight: Array) -> Array:
        out: Array = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(self._epsilon)) * weight
        return out

    def _forget(self, length: int) -> None:
        # Later tokens overwrite what stands there; nothing reads beyond the context.
        return

    def close(self) -> None:
        self._weights, self._layers = {}, []


def open_model(path: Path, capacity: int = 4096, threads: int = 1) -> NumpyRuntime:
    """A GGUF model in numpy. `threads` is numpy's own affair (`OMP_NUM_THREADS`).

    Raises:
        InputError: The file is not a model of the `llama` architecture with a byte-level tokenizer.
    """
    return NumpyRuntime(path, capacity)


def _feed_forward(layer: Mapping[str, Array], x: Array) -> Array:
    gate = x @ layer["ffn_gate.weight"].T
    out: Array = (gate / (1 + np.exp(-gate)) * (x @ layer["ffn_up.weight"].T)) @ layer["ffn_down.weight"].T
    return out


def _rotated(x: Array, cos: Array, sin: Array) -> Array:
    """Rotary position embedding over neighbouring pairs, the order in which GGUF stores Llama weights."""
    even, odd = x[..., 0::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., 0::2] = even * cos[:, None] - odd * sin[:, None]
    out[..., 1::2] = even * sin[:, None] + odd * cos[:, None]
    return out


def _unpacked(tensor: Any) -> Array:
    out: Array = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
    return out


def _value(field: Any) -> Any:
    return field.contents()


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
