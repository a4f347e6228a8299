"""Quantised weights unpacked once to 16-bit floats, in a copy that is kept."""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from onspec.errors import InputError, MissingExtra
from onspec.local.forward import shape_of
from onspec.local.gguf_file import head_of

try:
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
    from gguf.quants import dequantize
except ImportError:
    raise MissingExtra("gguf", "local") from None

LARGEST = 1_000_000_000
"""Bytes of the largest copy that is made."""

_FLOATS = (GGMLQuantizationType.F32, GGMLQuantizationType.F16, GGMLQuantizationType.BF16)
_HALF_FILE = 1
"""`general.file_type` of a file that holds mostly 16-bit floats (`LLAMA_FTYPE_MOSTLY_F16`)."""

Told = Callable[[str], None]


def is_float(model: Path) -> bool:
    """Whether a file holds floats and nothing quantised, so that a layer is unpacked in no time."""
    try:
        return all(place.kind in _FLOATS for place in head_of(model).tensors.values())
    except InputError:
        return False


def folder() -> Path:
    """Where copies are kept: `$XDG_CACHE_HOME/onspec/models`, else `~/.cache/onspec/models`."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "onspec" / "models"


def unpacked(model: Path, told: Told | None = None) -> Path:
    """A copy of `model` with its weights as 16-bit floats, made at the first call and kept.

    Quantised weights are unpacked as the quantisation defines them and rounded to 16-bit floats (relative error at most
    2^-11), so it is the same model; what falls away is that llama.cpp rounds the numbers that go *through* a quantised
    layer to 8 bits, which makes its logits depend on how tokens were grouped (figures in `docs/local.md`). The copy is
    named by the SHA-256 of the file, written beside its place and moved there when whole.

    Args:
        model: Path of a GGUF file.
        told: Told, once, that a copy is being made, where and how large.

    Returns:
        The copy; or `model` itself, where its weights are floats already, where it is of another architecture than
        `llama` (nothing here would be faster for it), where the copy would be larger than `LARGEST`, or where the
        folder cannot be written.
    """
    try:
        head = head_of(model)
        if all(place.kind in _FLOATS for place in head.tensors.values()):
            return model
        size = sum(2 * math.prod(place.shape) for place in head.tensors.values())
        shape_of(head.fields, list(head.tensors))
    except (InputError, KeyError):
        return model  # Whatever is wrong with it, the runtime says it better.
    if size > LARGEST:
        return model
    copy = folder() / f"{_digest(model)}-f16.gguf"
    if copy.exists():
        return copy
    if told:
        told(f"unpacking {model.name} once to {copy} ({size // 1_000_000} MB)")
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(dir=copy.parent, prefix=".", suffix=".part")
    except OSError:
        return model
    os.close(number)
    part = Path(name)
    try:
        _write(GGUFReader(model), part)
        part.replace(copy)
    except (OSError, ValueError, NotImplementedError):
        part.unlink(missing_ok=True)
        return model
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return copy


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(reader: Any, target: Path) -> None:
    writer = GGUFWriter(target, str(reader.fields["general.architecture"].contents()))
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, inner)
    writer.add_file_type(_HALF_FILE)
    for tensor in reader.tensors:
        if tensor.tensor_type in _FLOATS:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        else:
            writer.add_tensor(tensor.name, dequantize(tensor.data, tensor.tensor_type).astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
