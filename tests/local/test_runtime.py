"""What every runtime keeps, whichever library runs the model."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from onspec.errors import InputError, LimitError
from onspec.local.models import locate, open_model
from onspec.local.runtime import Runtime, log_softmax, softmax

TEXTS = ["", "the", "in the end", 'x = {"a": "b\\n"}]', "é ☃ \U0001f642", "  two\n\n\tlines ", "1234 don't"]


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_put_together_are_the_text(tiny: Runtime, text: str) -> None:
    assert tiny.text(tiny.tokenize(text)) == text.encode()


def test_special_tokens_are_recognised_only_when_asked(tiny: Runtime) -> None:
    text = "<|im_start|>the<|im_end|>"
    assert tiny.tokenize(text, special=True)[0] == tiny.specials["<|im_start|>"]
    assert tiny.specials["<|im_start|>"] not in tiny.tokenize(text)
    assert tiny.card.eos in tiny.card.ends
    assert tiny.vocabulary.size >= len(tiny.pieces)


def test_a_list_evaluates_as_its_parts_do(tiny: Runtime) -> None:
    tokens = tiny.tokenize("in the end there is an other")
    tiny.rewind(0)
    rows = tiny.eval(tokens, every=True)
    tiny.rewind(0)
    for token, row in zip(tokens, rows, strict=True):
        assert np.allclose(softmax(tiny.eval([token])), softmax(row), atol=2e-3)


def test_rewinding_forgets(tiny: Runtime) -> None:
    start, one, other = tiny.tokenize("in the"), tiny.tokenize(" end"), tiny.tokenize('"x"')
    tiny.rewind(0)
    tiny.eval(start)
    first = tiny.eval(one)
    tiny.rewind(len(start))
    tiny.eval(other)
    tiny.rewind(len(start))
    assert np.allclose(softmax(tiny.eval(one)), softmax(first), atol=2e-3)
    assert tiny.context == (*start, *one)


def test_priming_evaluates_only_what_is_new(tiny: Runtime) -> None:
    tokens = tiny.tokenize("the inner the outer")
    whole = tiny.prime(tokens).copy()
    tiny.prime(tokens[:4])
    assert tiny.context == tuple(tokens[:4])
    assert np.allclose(softmax(tiny.prime(tokens)), softmax(whole), atol=2e-3)
    assert tiny.prime(tokens) is tiny.last


def test_a_context_that_is_too_small_is_refused_and_stays(tiny: Runtime) -> None:
    tiny.rewind(0)
    tiny.eval(tiny.tokenize("the"))
    before = tiny.context
    with pytest.raises(LimitError, match="do not fit the context"):
        tiny.eval([5] * 600)
    assert tiny.context == before


def test_a_token_outside_the_vocabulary_is_refused(tiny: Runtime) -> None:
    with pytest.raises(InputError, match="outside the vocabulary"):
        tiny.eval([10**6])


def test_probabilities_sum_to_one(tiny: Runtime) -> None:
    logits = tiny.prime(tiny.tokenize("the"))
    assert softmax(logits).sum() == pytest.approx(1)
    assert np.allclose(np.exp(log_softmax(logits)), softmax(logits))


def test_two_runtimes_agree(tiny_path: Path) -> None:
    """The forward pass in numpy gives what llama.cpp gives."""
    one = import_module("onspec.local.xllamacpp").open_model(tiny_path, 128)
    two = import_module("onspec.local.gguf").open_model(tiny_path, 128)
    for text in TEXTS[1:]:
        tokens = one.tokenize(text)
        assert tokens == two.tokenize(text)
        one.rewind(0)
        two.rewind(0)
        distance = np.abs(softmax(one.eval(tokens, every=True)) - softmax(two.eval(tokens, every=True))).sum(axis=1) / 2
        assert distance.max() < 0.02
    assert list(one.pieces) == list(two.pieces)
    one.close()


BROKEN = {
    "empty": b"",
    "text": b"this is no model",
    "head only": b"GGUF\x03\x00\x00\x00",
    "cut": b"GGUF\x03\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x10",
}


@pytest.mark.parametrize("runtime", ["xllamacpp", "gguf"])
@pytest.mark.parametrize("content", BROKEN.values(), ids=list(BROKEN))
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, runtime: str, content: bytes) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    with pytest.raises(InputError):
        import_module(f"onspec.local.{runtime}").open_model(path)


@pytest.mark.parametrize("runtime", ["xllamacpp", "gguf"])
def test_a_damaged_model_is_refused(tmp_path: Path, tiny_path: Path, runtime: str) -> None:
    raw = tiny_path.read_bytes()
    path = tmp_path / "half.gguf"
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(InputError):
        import_module(f"onspec.local.{runtime}").open_model(path)


def test_a_model_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="no such file"):
        locate("nowhere.gguf")
    with pytest.raises(InputError, match="no such file"):
        open_model("nowhere.gguf")


def test_a_tokenizer_that_lacks_a_byte_says_so(tiny_path: Path) -> None:
    runtime = import_module("onspec.local.gguf").open_model(tiny_path, 64)
    del runtime._numbers[b"z"]
    with pytest.raises(InputError, match="cannot express"):
        runtime.tokenize("fizz")
