"""llama.cpp from `llama-cpp-python`, where somebody has compiled it."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from onspec.errors import MissingExtra
from onspec.local.llama_api import LlamaRuntime, Reader, load

_NAMES = ("libllama.so", "libllama.dylib", "llama.dll")


@lru_cache(maxsize=1)
def _library() -> Any:
    found = find_spec("llama_cpp")
    if found is None or found.origin is None:
        raise MissingExtra("llama-cpp-python", None)
    folder = Path(found.origin).parent / "lib"
    for name in _NAMES:
        if (folder / name).exists():
            return load(folder / name)
    raise MissingExtra("llama-cpp-python", None)


def installed() -> bool:
    """Whether the package is there. It is not imported."""
    return find_spec("llama_cpp") is not None


def open_model(path: Path, capacity: int = 4096, threads: int = 1, reader: Reader | None = None) -> LlamaRuntime:
    """A GGUF model in the llama.cpp of `llama-cpp-python`.

    Raises:
        MissingExtra: The package is not installed, or has no library.
        InputError: The file is not a model.
        LayoutError: The installed version is laid out in an unknown way.
    """
    return LlamaRuntime(_library(), path, capacity, threads, reader)
