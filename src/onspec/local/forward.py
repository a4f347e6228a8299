"""The forward pass of the `llama` architecture in numpy, in single precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onspec.errors import InputError, MissingExtra
from onspec.local.gguf_file import Place, head_of

try:
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize
except ImportError:
    raise MissingExtra("gguf", "local") from None

try:
    from threadpoolctl import ThreadpoolController
except ImportError:
    raise MissingExtra("threadpoolctl", "local") from None

Array = NDArray[np.float32]

_ROWS = 512
"""Tokens that go through the matrices at once."""

_QUERIES = 128
"""Tokens that look at the keys at once: their scores should stay in the processor's cache."""

_LAYER = (
    "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down",
)  # fmt: skip
"""Weights of one layer. A model with others (biases, experts) is not of the kind computed here."""

_ENDS = ("token_embd.weight", "output_norm.weight", "output.weight")


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model.

    Attributes:
        depth: Layers.
        heads: Query heads of a layer.
        kv_heads: Key and value heads of a layer; each serves `heads // kv_heads` query heads.
        width: Numbers in a head.
        epsilon: Added under the root of the normalisation.
        frequencies: Turn of each pair of a head, in radians a token, shape `(width // 2,)`.
        context: Tokens it was trained for.
    """

    depth: int
    heads: int
    kv_heads: int
    width: int
    epsilon: float
    frequencies: NDArray[np.float64]
    context: int


def shape_of(fields: Mapping[str, Any], tensors: Sequence[str]) -> Shape:
    """The sizes of a model, from the fields and the names of the tensors of its file.

    Raises:
        InputError: It is no model of the plain `llama` architecture: another one, or one with experts, biases or
            scaled positions.
    """
    architecture = fields.get("general.architecture")
    if architecture != "llama":
        raise InputError(f"the model has the architecture {architecture!r}; without native code only 'llama' runs")
    depth = int(fields["llama.block_count"])
    heads = int(fields["llama.attention.head_count"])
    size = int(fields["llama.embedding_length"])
    width = int(fields.get("llama.rope.dimension_count", size // heads))
    known = {f"blk.{layer}.{name}.weight" for layer in range(depth) for name in _LAYER}
    strange = sorted({*tensors} - known - {*_ENDS}) + sorted(known - {*tensors})
    scaled = [name for name in fields if name.startswith("llama.rope.scaling") or name.endswith("_scale")]
    if strange or scaled or width * heads != size:
        what = (strange or scaled or ["llama.rope.dimension_count"])[0]
        raise InputError(f"the model is not of the plain 'llama' architecture, which alone runs here: {what}")
    base = float(fields.get("llama.rope.freq_base", 10000.0))
    return Shape(
        depth, heads, int(fields.get("llama.attention.head_count_kv", heads)), width,
        float(fields["llama.attention.layer_norm_rms_epsilon"]),
        base ** (-np.arange(0, width, 2, dtype=np.float64) / width), int(fields["llama.context_length"]),
    )  # fmt: skip


class Packed:
    """One tensor of a file, unpacked when it is asked for.

    Args:
        model: Path of the GGUF file.
        place: Where in it the tensor lies.

    Raises:
        InputError: The file ends before the tensor does, or the type cannot be unpacked.
    """

    def __init__(self, model: Path, place: Place) -> None:
        try:
            self._kind = GGMLQuantizationType(place.kind)
            block, size = GGML_QUANT_SIZES[self._kind]
            *outer, inner = place.shape
            self._data = np.memmap(model, np.uint8, "r", place.offset, (*outer, inner // block * size))
            dequantize(np.zeros((1, size), np.uint8), self._kind)
        except (ValueError, OSError, KeyError, NotImplementedError) as error:
            raise InputError(f"{model} is damaged, or packed in a way that is not known here: {error}") from None

    def rows(self, wanted: Sequence[int] | None = None) -> Array:
        """All of it, or only some of its rows, in single precision."""
        data: Any = self._data if wanted is None else self._data[list(wanted)]
        if self._kind == GGMLQuantizationType.F16:
            return np.asarray(data).view(np.float16).astype(np.float32)
        out: Array = dequantize(data, self._kind).astype(np.float32, copy=False)
        return out


class Forward:
    """The weights of one file, and what they make of tokens.

    Args:
        model: Path of the GGUF file.
        threads: Threads of numpy's matrix products.
        keep: Unpack all weights at once and keep them; else each layer is unpacked anew in each pass, which costs
            little where the pass is long and the weights are 16-bit floats.

    Attributes:
        shape: Its sizes.
        threads: As above; may be changed between two passes.

    Raises:
        InputError: The file is no GGUF model, or not of the plain `llama` architecture.
    """

    def __init__(self, model: Path, threads: int = 1, *, keep: bool) -> None:
        self.threads = threads
        self._pool = ThreadpoolController()
        head = head_of(model)
        self.shape = shape_of(head.fields, list(head.tensors))
        self._packed = {name: Packed(model, place) for name, place in head.tensors.items()}
        self._kept: dict[str, Array] = {}
        if keep:
            self._kept = {name: packed.rows() for name, packed in self._packed.items()}

    def hidden(
        self, tokens: Sequence[int], keys: Array, values: Array, start: int, *, only_keys: bool = False
    ) -> Array | None:
        """What comes out of the last layer, shape `(len(tokens), size)`, before the last normalisation.

        Args:
            tokens: What to read.
            keys: Keys of the context, shape `(depth, room, kv_heads, width)`: those before `start` are read, those of
                `tokens` are written.
            values: The same for values.
            start: Tokens that stand before.
            only_keys: Leave out what only the output of the last layer needs, and return None.
        """
        with self._pool.limit(limits=self.threads, user_api="blas"):
            return self._hidden(tokens, keys, values, start, only_keys)

    def _hidden(self, tokens: Sequence[int], keys: Array, values: Array, start: int, only_keys: bool) -> Array | None:
        shape, end = self.shape, start + len(tokens)
        angles = np.outer(np.arange(start, end), shape.frequencies)
        turn = np.cos(angles).astype(np.float32)[:, None], np.sin(angles).astype(np.float32)[:, None]
        x = self._rows("token_embd.weight", tokens)
        for index in range(shape.depth):
            layer = {name: self._weight(f"blk.{index}.{name}.weight") for name in _LAYER}
            h = self._norm(x, layer["attn_norm"])
            keys[index, start:end] = _turned((h @ layer["attn_k"].T).reshape(len(tokens), -1, shape.width), *turn)
            values[index, start:end] = (h @ layer["attn_v"].T).reshape(len(tokens), -1, shape.width)
            if only_keys and index == shape.depth - 1:
                return None
            q = _turned((h @ layer["attn_q"].T).reshape(len(tokens), -1, shape.width), *turn)
            q *= np.float32(shape.width**-0.5)
            x = x + self._attended(q, keys[index, :end], values[index, :end], start) @ layer["attn_output"].T
            for first in range(0, len(tokens), _ROWS):
                rows = slice(first, first + _ROWS)
                x[rows] += _fed(layer, self._norm(x[rows], layer["ffn_norm"]))
        return x

    def logits(self, hidden: Array) -> Array:
        """Logits of what `hidden` gave."""
        head = "output.weight" if "output.weight" in self._packed else "token_embd.weight"
        with self._pool.limit(limits=self.threads, user_api="blas"):
            out: Array = self._norm(hidden, self._weight("output_norm.weight")) @ self._weight(head).T
        return out

    def _weight(self, name: str) -> Array:
        return self._kept[name] if self._kept else self._packed[name].rows()

    def _rows(self, name: str, rows: Sequence[int]) -> Array:
        if not self._kept:
            return self._packed[name].rows(rows)
        found: Array = self._kept[name][list(rows)]
        return found

    def _norm(self, x: Array, weight: Array) -> Array:
        scale = np.einsum("ij,ij->i", x, x) / np.float32(x.shape[1])
        np.sqrt(scale + np.float32(self.shape.epsilon), out=scale)
        out: Array = x / scale[:, None]
        out *= weight
        return out

    def _attended(self, q: Array, keys: Array, values: Array, start: int) -> Array:
        """Each token's mixture of the values up to its own, shape `(tokens, heads * width)`."""
        group = self.shape.heads // self.shape.kv_heads
        out = np.empty_like(q)
        for head in range(self.shape.kv_heads):
            own = slice(head * group, (head + 1) * group)
            k, v = np.ascontiguousarray(keys[:, head]), np.ascontiguousarray(values[:, head])
            for first in range(0, len(q), _QUERIES):
                part = q[first : first + _QUERIES, own]
                count, end = len(part), start + first + len(part)
                rows = np.ascontiguousarray(part.transpose(1, 0, 2)).reshape(group * count, -1)
                scores = rows @ k[:end].T
                # Of the keys, only the last `count` may be later than the query.
                late = scores.reshape(group, count, end)[:, :, start + first :]
                late[:, ~np.tri(count, dtype=bool)] = -np.inf
                scores -= scores.max(axis=1, keepdims=True)
                np.exp(scores, out=scores)
                mixed = scores @ v[:end]
                mixed /= scores.sum(axis=1, keepdims=True)
                out[first : first + count, own] = mixed.reshape(group, count, -1).transpose(1, 0, 2)
        return out.reshape(len(q), -1)


def _fed(layer: Mapping[str, Array], x: Array) -> Array:
    gate: Array = x @ layer["ffn_gate"].T
    inner: Array = x @ layer["ffn_up"].T
    inner *= gate
    np.negative(gate, out=gate)
    np.exp(gate, out=gate)
    gate += np.float32(1)
    inner /= gate
    out: Array = inner @ layer["ffn_down"].T
    return out


def _turned(x: Array, cos: Array, sin: Array) -> Array:
    """Rotary position embedding over neighbouring pairs, the order in which GGUF stores Llama weights."""
    even: Array = x[..., 0::2]
    odd: Array = x[..., 1::2]
    out: Array = np.empty_like(x)
    out[..., 0::2] = even * cos - odd * sin
    out[..., 1::2] = even * sin + odd * cos
    return out
