"""llama.cpp through its C interface, by ctypes: no compiler, and the whole vector of logits."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from llguidance import LLTokenizer

from onspec.errors import InputError, LimitError, OnspecError
from onspec.grammar.llguidance import Vocabulary
from onspec.local.gguf_file import check_gguf
from onspec.local.runtime import Card, Logits, Runtime

_CONTROL, _USER_DEFINED = 8, 16
"""Attributes of a token, from llama.h (`LLAMA_TOKEN_ATTR_*`)."""

_BATCH = 512
_DEFAULTS = (512, 2048, 512)
"""First fields of the default context parameters (n_ctx, n_batch, n_ubatch): they tell a layout that is known."""

_WAITING = "OMP_WAIT_POLICY"

_UNSET = 0xFFFFFFFF
"""-1 as an unsigned number."""

_TRIAL = (0, 1, 2)
"""Tokens on which a reader is tried; every vocabulary has them."""

_THREADS = 4
"""Default of the two adjacent thread fields (`GGML_DEFAULT_N_THREADS`)."""


class _Blob(ctypes.Structure):
    """Room for a parameter structure that is passed by value; larger than any that is known."""

    _fields_ = (("bytes", ctypes.c_uint8 * 1024),)


class _Batch(ctypes.Structure):
    _fields_ = (
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.POINTER(ctypes.c_float)),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    )


_Log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_silent = _Log(lambda level, text, data: None)

_P, _I, _B = ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool
_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "llama_backend_init": (None, []),
    "llama_log_set": (None, [_Log, _P]),
    "llama_model_default_params": (_Blob, []),
    "llama_context_default_params": (_Blob, []),
    "llama_model_load_from_file": (_P, [ctypes.c_char_p, _Blob]),
    "llama_init_from_model": (_P, [_P, _Blob]),
    "llama_model_get_vocab": (_P, [_P]),
    "llama_model_n_ctx_train": (_I, [_P]),
    "llama_model_chat_template": (ctypes.c_char_p, [_P, ctypes.c_char_p]),
    "llama_model_meta_val_str": (_I, [_P, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]),
    "llama_vocab_n_tokens": (_I, [_P]),
    "llama_vocab_eos": (_I, [_P]),
    "llama_vocab_bos": (_I, [_P]),
    "llama_vocab_get_add_bos": (_B, [_P]),
    "llama_vocab_is_eog": (_B, [_P, _I]),
    "llama_vocab_get_attr": (_I, [_P, _I]),
    "llama_token_to_piece": (_I, [_P, _I, ctypes.c_char_p, _I, _I, _B]),
    "llama_tokenize": (_I, [_P, ctypes.c_char_p, _I, ctypes.POINTER(_I), _I, _B, _B]),
    "llama_decode": (_I, [_P, _Batch]),
    "llama_get_logits_ith": (ctypes.POINTER(ctypes.c_float), [_P, _I]),
    "llama_get_memory": (_P, [_P]),
    "llama_memory_seq_rm": (_B, [_P, _I, _I, _I]),
    "llama_state_seq_get_size": (ctypes.c_size_t, [_P, _I]),
    "llama_state_seq_get_data": (ctypes.c_size_t, [_P, ctypes.c_char_p, ctypes.c_size_t, _I]),
    "llama_state_seq_set_data": (ctypes.c_size_t, [_P, ctypes.c_char_p, ctypes.c_size_t, _I]),
    "llama_batch_init": (_Batch, [_I, _I, _I]),
    "llama_batch_free": (None, [_Batch]),
    "llama_free": (None, [_P]),
    "llama_model_free": (None, [_P]),
}


class LayoutError(OnspecError):
    """The llama.cpp library at hand has another binary layout than this code knows."""


def load(path: Path) -> Any:
    """Open the library at `path` and declare what is used of it.

    Raises:
        LayoutError: A function is missing.
        InputError: It cannot be opened.
    """
    # Threads that spin while they wait starve each other where other work shares the cores. OpenMP reads its settings
    # once, when it is loaded.
    waiting = os.environ.get(_WAITING)
    if waiting is None:
        os.environ[_WAITING] = "passive"
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise InputError(f"{path} cannot be opened: {error}") from None
    finally:
        if waiting is None:
            del os.environ[_WAITING]
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name, None)
        if function is None:
            raise LayoutError(f"{path.name} has no function {name}; install the pinned version of its package")
        function.restype, function.argtypes = result, arguments
    library.llama_log_set(_silent, None)
    library.llama_backend_init()
    return library


class Reader(Protocol):
    """Reads long texts in llama.cpp's place: extends the saved state of its one sequence.

    Attributes:
        least: Tokens from which on it is worth asking.
    """

    least: int

    def fits(self, tokens: Sequence[int], raw: bytes) -> bool:
        """Whether it understands `raw`, the state after `tokens`, and would have come to the same."""
        ...

    def extended(self, raw: bytes | None, tokens: Sequence[int]) -> bytes | None:
        """The state after `tokens` more, or None where that is not known."""
        ...


class LlamaRuntime(Runtime):
    """A GGUF model in llama.cpp.

    Args:
        library: From `load`.
        model: Path of the GGUF file.
        capacity: Tokens of context to make room for.
        threads: Threads; one is fastest where other work shares the cores.
        reader: Reads long texts in llama.cpp's place. It is tried on a few tokens first, and left alone where its
            answer is not llama.cpp's.

    Raises:
        InputError: The file is not a GGUF model that llama.cpp can load.
        LayoutError: The library's structures are laid out in an unknown way.
    """

    def __init__(
        self, library: Any, model: Path, capacity: int = 4096, threads: int = 1, reader: Reader | None = None
    ) -> None:
        super().__init__()
        self._library = library
        self._model = self._context_pointer = None
        check_gguf(model)
        self._model = library.llama_model_load_from_file(str(model).encode(), library.llama_model_default_params())
        if not self._model:
            raise InputError(f"{model} cannot be loaded: not a model that this llama.cpp knows, or damaged")
        self._context_pointer = library.llama_init_from_model(
            self._model, self._parameters(capacity, threads, reader is None)
        )
        if not self._context_pointer:
            self.close()
            raise LimitError(f"no room for a context of {capacity} tokens")
        self._vocab = library.llama_model_get_vocab(self._model)
        self._batch = library.llama_batch_init(_BATCH, 0, 1)
        self._size: int = library.llama_vocab_n_tokens(self._vocab)
        self.capacity = capacity
        self.card = self._read_card(model)
        self._read_tokens()
        self._reader = reader
        if reader is not None:
            self._decode(_TRIAL, 0, True, False)
            self._reader = reader if reader.fits(_TRIAL, self._state()) else None
            self._forget(0)

    @property
    def reads_elsewhere(self) -> bool:
        """Whether long texts are read by the reader that was given, and not by llama.cpp."""
        return self._reader is not None

    def _parameters(self, capacity: int, threads: int, flash: bool) -> _Blob:
        blob = self._library.llama_context_default_params()
        fields = ctypes.cast(ctypes.byref(blob), ctypes.POINTER(ctypes.c_uint32))
        place = next((i for i in range(3, 10) if fields[i] == _THREADS and fields[i + 1] == _THREADS), None)
        if tuple(fields[:3]) != _DEFAULTS or place is None:
            raise LayoutError(
                "the installed llama.cpp lays out its parameters in an unknown way; install the pinned version: "
                "pip install 'onspec[local]'"
            )
        fields[0], fields[1], fields[2] = capacity, _BATCH, _BATCH
        fields[place] = fields[place + 1] = threads
        # Four fields in a row stand at -1, "as the model has it": the last is flash attention. On a processor it reads
        # faster and writes slower (31 against 65 tokens a second after 3,000), so it goes where something else reads.
        unset = next((i for i in range(place + 2, place + 6) if all(fields[i + k] == _UNSET for k in range(4))), None)
        if not flash and unset is not None:
            fields[unset + 3] = 0
        assert isinstance(blob, _Blob)
        return blob

    def _read_card(self, model: Path) -> Card:
        library, vocab = self._library, self._vocab
        buffer = ctypes.create_string_buffer(256)
        length = library.llama_model_meta_val_str(self._model, b"general.name", buffer, 256)
        template = library.llama_model_chat_template(self._model, None)
        ends = frozenset(token for token in range(self._size) if library.llama_vocab_is_eog(vocab, token))
        return Card(
            name=buffer.value.decode("utf-8", "replace") if length > 0 else model.stem,
            context=library.llama_model_n_ctx_train(self._model),
            eos=library.llama_vocab_eos(vocab),
            ends=ends,
            bos=library.llama_vocab_bos(vocab) if library.llama_vocab_get_add_bos(vocab) else None,
            template=template.decode("utf-8", "replace") if template else None,
        )

    def _read_tokens(self) -> None:
        buffer = ctypes.create_string_buffer(4096)
        pieces: list[bytes] = []
        marked: list[bytes] = []
        specials: dict[str, int] = {}
        for token in range(self._size):
            length = self._library.llama_token_to_piece(self._vocab, token, buffer, 4096, 0, True)
            piece = buffer.raw[: max(length, 0)]
            kind = self._library.llama_vocab_get_attr(self._vocab, token)
            special = kind & _CONTROL or (kind & _USER_DEFINED and piece[:1] == b"<" and piece[-1:] == b">")
            pieces.append(piece)
            # llguidance marks special tokens with a byte that no text holds.
            marked.append(b"\xff" + piece if special else piece)
            if special:
                specials[piece.decode("utf-8", "replace")] = token
        self.pieces, self.specials = pieces, specials
        from_llamacpp: Any = LLTokenizer.from_llamacpp  # type: ignore[attr-defined]  # missing in its stubs
        self.vocabulary = Vocabulary(
            from_llamacpp(
                tokens=marked,
                vocab_ptr=self._vocab,
                tokenize_fptr=ctypes.cast(self._library.llama_tokenize, ctypes.c_void_p).value,
                eos_token=self.card.eos,
            )
        )

    def tokenize(self, text: str | bytes, *, special: bool = False) -> list[int]:
        raw = text.encode() if isinstance(text, str) else text
        room = len(raw) + 8
        out = (ctypes.c_int32 * room)()
        count = self._library.llama_tokenize(self._vocab, raw, len(raw), out, room, False, special)
        return list(out[:count])

    def _eval(self, tokens: list[int], every: bool) -> Logits:
        if not all(0 <= token < self._size for token in tokens):
            raise InputError("a token is outside the vocabulary")
        rows: list[Logits] = []
        start = len(self._context)
        if self._reader is not None and not every and len(tokens) >= self._reader.least:
            read = self._reader.extended(self._state() if start else None, tokens[:-1])
            if read is not None and self._restored(read):
                start, tokens = start + len(tokens) - 1, tokens[-1:]
        for offset in range(0, len(tokens), _BATCH):
            part = tokens[offset : offset + _BATCH]
            self._decode(part, start + offset, every or offset + _BATCH >= len(tokens), every)
            if every:
                rows += [self._logits(index) for index in range(len(part))]
        return np.stack(rows) if every else self._logits(-1)

    def _decode(self, tokens: Sequence[int], start: int, last: bool, every: bool) -> None:
        batch = self._batch
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index] = token
            batch.pos[index] = start + index
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = 0
            batch.logits[index] = every or (last and index == len(tokens) - 1)
        code = self._library.llama_decode(self._context_pointer, batch)
        if code:
            self._forget(len(self._context))
            raise LimitError(f"llama.cpp could not evaluate {len(tokens)} tokens (code {code})")

    def _state(self) -> bytes:
        size = self._library.llama_state_seq_get_size(self._context_pointer, 0)
        buffer = ctypes.create_string_buffer(size)
        written = self._library.llama_state_seq_get_data(self._context_pointer, buffer, size, 0)
        return buffer.raw[:written]

    def _restored(self, state: bytes) -> bool:
        if self._library.llama_state_seq_set_data(self._context_pointer, state, len(state), 0):
            return True
        raise LimitError("llama.cpp could not take over what was read; open the model with a larger context")

    def _logits(self, index: int) -> Logits:
        pointer = self._library.llama_get_logits_ith(self._context_pointer, index)
        return np.ctypeslib.as_array(pointer, (self._size,)).copy()

    def _forget(self, length: int) -> None:
        memory = self._library.llama_get_memory(self._context_pointer)
        self._library.llama_memory_seq_rm(memory, -1, length, -1)

    def close(self) -> None:
        if self._context_pointer:
            self._library.llama_batch_free(self._batch)
            self._library.llama_free(self._context_pointer)
        if self._model:
            self._library.llama_model_free(self._model)
        self._model = self._context_pointer = None
