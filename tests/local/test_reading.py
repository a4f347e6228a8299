"""Long texts are read in numpy, from an unpacked copy of the weights, and come to the same as in llama.cpp."""

from __future__ import annotations

import struct
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFWriter

from onspec.errors import InputError
from onspec.local.forward import Forward
from onspec.local.gguf_file import head_of
from onspec.local.llama_api import LlamaRuntime
from onspec.local.llama_state import LEAST, Layout, Reader, idle_cores
from onspec.local.models import open_model
from onspec.local.runtime import Runtime, softmax
from onspec.local.weights import folder, unpacked
from tests.local.tiny import LAYERS, SIZE, write_tiny


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ONSPEC_UNPACK", raising=False)
    return folder()


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    return write_tiny(tmp_path / "packed.gguf", GGMLQuantizationType.Q8_0)


def _text(runtime: Runtime, count: int) -> list[int]:
    rng = np.random.default_rng(count)
    return [int(token) for token in rng.integers(3, len(runtime.pieces), count)]


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(softmax(one) - softmax(other)).sum(axis=-1).max() / 2)


def test_a_long_text_reads_as_in_llama_cpp(tiny_path: Path) -> None:
    """From an empty context, after a beginning, and after a rewind."""
    plain: LlamaRuntime = import_module("onspec.local.xllamacpp").open_model(tiny_path, 512)
    other = open_model(str(tiny_path), runtime="xllamacpp", capacity=512)
    assert isinstance(other, LlamaRuntime)
    assert other.reads_elsewhere
    assert not plain.reads_elsewhere
    text = _text(plain, 3 * LEAST)
    for runtime in (plain, other):
        runtime.rewind(0)
    assert _apart(plain.eval(text[:LEAST]), other.eval(text[:LEAST])) < 1e-2
    assert _apart(plain.eval(text[LEAST:]), other.eval(text[LEAST:])) < 1e-2
    assert _apart(plain.eval(text[:5], every=True), other.eval(text[:5], every=True)) < 1e-2
    short = [*text[:40], *_text(plain, LEAST + 9)]
    assert _apart(plain.prime(short), other.prime(short)) < 1e-2
    assert plain.context == other.context
    plain.close()
    other.close()


def test_a_quantised_model_is_unpacked_once(cache: Path, packed: Path) -> None:
    """The copy holds the very numbers of the quantised file, rounded to 16 bits, and everything that was said of it."""
    told: list[str] = []
    copy = unpacked(packed, told.append)
    assert copy.parent == cache
    assert unpacked(packed, told.append) == copy
    assert len(told) == 1
    assert str(copy) in told[0]
    assert [path.name for path in cache.iterdir()] == [copy.name]
    one, other = Forward(packed, keep=False), Forward(copy, keep=False)
    for name in head_of(packed).tensors:
        assert np.allclose(one._packed[name].rows(), other._packed[name].rows(), rtol=2**-11, atol=1e-7)
    first, second = (open_model(str(packed), capacity=512, unpack=unpack) for unpack in (True, False))
    assert first.card == second.card
    assert list(first.pieces) == list(second.pieces)
    text = _text(first, 2 * LEAST)
    assert _apart(first.eval(text), second.eval(text)) < 0.1  # llama.cpp rounds what goes through a quantised layer.
    first.close()
    second.close()


def test_a_copy_can_be_declined(cache: Path, packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONSPEC_UNPACK", "0")
    open_model(str(packed), capacity=64).close()
    assert not cache.exists()


@pytest.mark.parametrize("why", ["floats", "folder", "size"])
def test_what_need_not_or_cannot_be_unpacked_stays(
    cache: Path, packed: Path, tiny_path: Path, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_path if why == "floats" else packed
    if why == "folder":
        cache.parent.parent.write_text("in the way")
    if why == "size":
        monkeypatch.setattr("onspec.local.weights.LARGEST", 1000)
    assert unpacked(model) == model


def test_another_architecture_is_left_to_llama_cpp(tmp_path: Path) -> None:
    path = tmp_path / "other.gguf"
    writer = GGUFWriter(path, "gemma3")
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(InputError, match="gemma3"):
        Forward(path, keep=False)
    assert unpacked(path) == path


def test_a_state_that_is_laid_out_otherwise_is_not_touched(tiny_path: Path) -> None:
    """The layout is checked byte for byte, and the numbers against a forward pass, before it is used."""
    runtime = open_model(str(tiny_path), runtime="xllamacpp", capacity=64)
    assert isinstance(runtime, LlamaRuntime)
    runtime.eval([0, 1, 2])
    raw = runtime._state()
    reader = Reader(Forward(tiny_path, keep=False))
    assert reader.fits([0, 1, 2], raw)
    assert not reader.fits([0, 1, 3], raw)
    layout = Layout(LAYERS, SIZE // 2)
    state = layout.parsed(raw)
    assert state is not None
    assert layout.composed(state) == raw
    broken = [b"", raw[:-1], raw + b"\0", raw[:12] + struct.pack("<I", 2) + raw[16:], bytes(len(raw))]
    for text in broken:
        assert not reader.fits([0, 1, 2], text)
        assert layout.parsed(text) is None
    runtime.close()


def test_idle_cores_are_counted() -> None:
    assert idle_cores() >= 0
