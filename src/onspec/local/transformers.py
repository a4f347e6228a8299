"""A model folder or GGUF file run by `transformers`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from onspec.errors import InputError, MissingExtra
from onspec.grammar.transformers import vocabulary
from onspec.local.gguf_file import check_gguf
from onspec.local.runtime import Card, Logits, Runtime

try:
    # Not installed with onspec, and heavy: looked up by name, so that type checking needs neither.
    torch: Any = import_module("torch")
    AutoModelForCausalLM: Any = import_module("transformers").AutoModelForCausalLM
    AutoTokenizer: Any = import_module("transformers").AutoTokenizer
except ImportError:
    raise MissingExtra("transformers", None) from None


class TransformersRuntime(Runtime):
    """A causal language model of `transformers`, on the processor, in single precision.

    Args:
        model: A folder as `save_pretrained` writes it, or a GGUF file.
        capacity: Tokens of context.
        threads: Threads of torch.

    Raises:
        InputError: It cannot be loaded.
    """

    def __init__(self, model: Path, capacity: int = 4096, threads: int = 1) -> None:
        super().__init__()
        torch.set_num_threads(threads)
        where: dict[str, Any] = {"pretrained_model_name_or_path": str(model), "local_files_only": True}
        if model.is_file():
            check_gguf(model)
            where = {
                "pretrained_model_name_or_path": str(model.parent),
                "gguf_file": model.name,
                "local_files_only": True,
            }
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(**where)
            self._model: Any = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).eval()
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise InputError(f"{model} cannot be loaded: {str(error).splitlines()[0]}") from None
        self.capacity = capacity
        self._cache: Any = None
        config = self._model.config
        size = int(config.vocab_size)
        self.vocabulary = vocabulary(self._tokenizer, size)
        inner = self.vocabulary.tokenizer
        self.pieces = [bytes(inner.decode_bytes([token])) for token in range(size)]
        self.specials = {
            str(text): int(token)
            for token, text in ((t, self._tokenizer.convert_ids_to_tokens(t)) for t in self._tokenizer.all_special_ids)
        }
        for text, token in self.specials.items():
            self.pieces[token] = text.encode()
        eos = int(self._tokenizer.eos_token_id)
        names = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>")
        self.card = Card(
            name=str(getattr(config, "_name_or_path", "") or model.stem),
            context=int(getattr(config, "max_position_embeddings", capacity)),
            eos=eos,
            ends=frozenset({eos, *(self.specials[name] for name in names if name in self.specials)}),
            bos=None,
            template=self._tokenizer.chat_template if isinstance(self._tokenizer.chat_template, str) else None,
        )

    def tokenize(self, text: str | bytes, *, special: bool = False) -> list[int]:
        try:
            shown = text if isinstance(text, str) else text.decode()
        except UnicodeDecodeError:  # Only the engine's tokenizer takes bytes.
            return self.vocabulary.tokens_of(text if isinstance(text, bytes) else text.encode())
        found = self._tokenizer(shown, add_special_tokens=False, split_special_tokens=not special)
        return list(found["input_ids"])

    def _eval(self, tokens: list[int], every: bool) -> Logits:
        if not all(0 <= token < len(self.pieces) for token in tokens):
            raise InputError("a token is outside the vocabulary")
        with torch.no_grad():
            out = self._model(torch.tensor([tokens]), past_key_values=self._cache, use_cache=True)
        self._cache = out.past_key_values
        rows: Logits = out.logits[0].float().numpy().astype(np.float32)
        return rows if every else rows[-1]

    def _forget(self, length: int) -> None:
        if self._cache is None:
            return
        if length == 0:
            self._cache = None
        else:
            self._cache.crop(length - len(self._context))  # A negative number: how many to forget.

    def close(self) -> None:
        self._model = self._cache = None


def open_model(path: Path, capacity: int = 4096, threads: int = 1) -> TransformersRuntime:
    """A model of `transformers`.

    Raises:
        MissingExtra: transformers or torch is not installed.
        InputError: The folder or file is no model.
    """
    return TransformersRuntime(path, capacity, threads)
