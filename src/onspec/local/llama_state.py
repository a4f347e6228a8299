"""Long texts read in numpy, their keys and values handed to llama.cpp as the saved state of a sequence."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onspec.local.forward import Array, Forward

Half = NDArray[np.float16]

LEAST = 96

_CLOSE = 0.01
"""Relative difference of keys and values, numpy's against llama.cpp's, up to which a layout counts as known."""

_HEAD, _COUNT, _CELL, _KEYS_HEAD, _F16 = 12, 16, 12, 12, 1
"""Bytes before the number of cells; to its end; of a cell (position, number of sequences, the sequence); of the head of
a layer's keys (type, bytes a row). The type number of 16-bit floats."""


@dataclass(frozen=True, slots=True)
class State:
    """The saved state of one sequence, taken apart.

    Attributes:
        head: Bytes before the number of cells.
        middle: Bytes between the cells and the first layer.
        keys: Shape `(depth, tokens, kv_heads * width)`.
        values: The same.
    """

    head: bytes
    middle: bytes
    keys: Half
    values: Half


class Layout:
    """How one build of llama.cpp saves a sequence of one model (`llama_kv_cache::state_write`), values transposed as
    they are where flash attention is off.

    Args:
        depth: Layers.
        size: Numbers in one layer's keys of one token.
        middle: Bytes between the cells and the first layer.
    """

    def __init__(self, depth: int, size: int, middle: int = 16) -> None:
        self._depth, self._size, self._middle = depth, size, middle

    def parsed(self, raw: bytes) -> State | None:
        """The parts of a state, or None where it is laid out otherwise."""
        if len(raw) < _COUNT:
            return None
        count = struct.unpack_from("<I", raw, _HEAD)[0]
        place = _COUNT + count * _CELL
        middle = raw[place : place + self._middle]
        place += self._middle
        row = 2 * self._size
        if len(raw) != place + 2 * self._depth * (_KEYS_HEAD + count * row):
            return None
        keys = np.empty((self._depth, count, self._size), np.float16)
        values = np.empty_like(keys)
        for layer in range(self._depth):
            if struct.unpack_from("<iQ", raw, place) != (_F16, row):
                return None
            part = np.frombuffer(raw, np.float16, count * self._size, place + _KEYS_HEAD)
            keys[layer] = part.reshape(count, self._size)
            place += _KEYS_HEAD + count * row
        for layer in range(self._depth):
            if struct.unpack_from("<iII", raw, place) != (_F16, 2, self._size):
                return None
            part = np.frombuffer(raw, np.float16, count * self._size, place + _KEYS_HEAD)
            values[layer] = part.reshape(self._size, count).T
            place += _KEYS_HEAD + count * row
        return State(raw[:_HEAD], middle, keys, values)

    def composed(self, state: State) -> bytes:
        """The state put together again."""
        count = state.keys.shape[1]
        out = [state.head, struct.pack("<I", count)]
        out += [struct.pack("<iIi", place, 1, 0) for place in range(count)]
        out.append(state.middle)
        head = struct.pack("<iQ", _F16, 2 * self._size)
        for keys in state.keys:
            out += [head, np.ascontiguousarray(keys).tobytes()]
        head = struct.pack("<iII", _F16, 2, self._size)
        for values in state.values:
            out += [head, np.ascontiguousarray(values.T).tobytes()]
        return b"".join(out)


def idle_cores() -> int:
    """Cores that stood idle in the last minute, rounded down; 0 where the system does not say."""
    try:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0
        return max(math.floor(cores - os.getloadavg()[0]), 0)
    except (AttributeError, OSError):
        return 0


class Reader:
    """Extends saved states by tokens.

    Args:
        forward: The same weights in numpy. Its threads are the fewest that are used: cores that stand idle help.

    Attributes:
        least: Tokens from which on numpy reads: for fewer, unpacking the weights would cost more than it saves.
    """

    least = LEAST

    def __init__(self, forward: Forward) -> None:
        shape = forward.shape
        self._forward = forward
        self._threads = forward.threads
        self._layout = Layout(shape.depth, shape.kv_heads * shape.width)
        self._empty: State | None = None

    def fits(self, tokens: Sequence[int], raw: bytes) -> bool:
        """Whether `raw`, the state that llama.cpp saved after `tokens`, is laid out as known and holds what numpy
        computes. Must have been answered with yes before `extended` is used."""
        state = self._layout.parsed(raw)
        if state is None or self._layout.composed(state) != raw or state.keys.shape[1] != len(tokens):
            return False
        keys, values = self._room(len(tokens))
        self._forward.hidden(tokens, keys, values, 0, only_keys=True)
        for saved, own in ((state.keys, keys), (state.values, values)):
            wide = saved.astype(np.float32)
            if np.linalg.norm(wide - own.reshape(wide.shape)) > _CLOSE * np.linalg.norm(wide):
                return False
        self._empty = State(state.head, state.middle, state.keys[:, :0], state.values[:, :0])
        return True

    def extended(self, raw: bytes | None, tokens: Sequence[int]) -> bytes | None:
        """The state after `tokens` more, or None where the one at hand cannot be extended.

        Args:
            raw: The state so far; None if nothing was read.
            tokens: What to read, at least one token.
        """
        before = self._empty if raw is None else self._layout.parsed(raw)
        if before is None:
            return None
        start = before.keys.shape[1]
        keys, values = self._room(start + len(tokens))
        self._forward.threads = max(self._threads, idle_cores())
        keys[:, :start] = before.keys.reshape(len(keys), start, *keys.shape[2:])
        values[:, :start] = before.values.reshape(len(keys), start, *keys.shape[2:])
        self._forward.hidden(tokens, keys, values, start, only_keys=True)
        flat = (len(keys), start + len(tokens), -1)
        return self._layout.composed(
            State(before.head, before.middle, keys.astype(np.float16).reshape(flat),
                  values.astype(np.float16).reshape(flat))
        )  # fmt: skip

    def _room(self, count: int) -> tuple[Array, Array]:
        shape = self._forward.shape
        keys = np.empty((shape.depth, count, shape.kv_heads, shape.width), np.float32)
        return keys, np.empty_like(keys)
