"""Models for the tests: a tiny one that is made here, opened in every runtime."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from onspec.local.runtime import Runtime
from tests.local.tiny import write_tiny

RUNTIMES = {"xllamacpp": "xllamacpp", "llama_cpp": "llama_cpp", "gguf": "gguf", "transformers": "torch"}


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="session", params=list(RUNTIMES))
def tiny(request: pytest.FixtureRequest, tiny_path: Path) -> Iterator[Runtime]:
    """The tiny model in each runtime that is installed."""
    if find_spec(RUNTIMES[request.param]) is None:
        pytest.skip(f"{request.param} is not installed")
    module: Any = import_module(f"onspec.local.{request.param}")
    runtime: Runtime = module.open_model(tiny_path, 512)
    yield runtime
    runtime.close()


@pytest.fixture(scope="session")
def fast(tiny_path: Path) -> Iterator[Runtime]:
    """The tiny model in llama.cpp."""
    from_wheel: Any = import_module("onspec.local.xllamacpp")
    runtime: Runtime = from_wheel.open_model(tiny_path, 512)
    yield runtime
    runtime.close()
