"""llama.cpp from the prebuilt `xllamacpp` wheel."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from onspec.errors import MissingExtra
from onspec.local.llama_api import LlamaRuntime, Reader, load

TESTED = "2026.10.11549"
"""The version whose binary layout is known; others are tried, and refused where the layout differs."""


@lru_cache(maxsize=1)
def _library() -> Any:
    found = find_spec("xllamacpp")
    if found is None or found.origin is None:
        raise MissingExtra("xllamacpp", "local")
    files = sorted(Path(found.origin).parent.glob("xllamacpp*.so")) or sorted(
        Path(found.origin).parent.glob("xllamacpp*.pyd")
    )
    if not files:
        raise MissingExtra("xllamacpp", "local")
    return load(files[0])


def installed() -> str | None:
    """The version of the package, or None."""
    try:
        return version("xllamacpp")
    except PackageNotFoundError:
        return None


def open_model(path: Path, capacity: int = 4096, threads: int = 1, reader: Reader | None = None) -> LlamaRuntime:
    """A GGUF model in the llama.cpp of `xllamacpp`.

    Raises:
        MissingExtra: The package is not installed.
        InputError: The file is not a model.
        LayoutError: The installed version is laid out in an unknown way.
    """
    return LlamaRuntime(_library(), path, capacity, threads, reader)
