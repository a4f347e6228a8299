"""A GGUF model of a few kilobytes with random weights, so that every runtime can be tested without a download."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize

LAYERS, SIZE, HEADS, KV_HEADS, INNER, CONTEXT = 2, 64, 4, 2, 96, 512
MERGES = ["t h", "th e", "Ġ the", "i n", "e r", '" :', '" }', "} ]", '" ,']


def letters() -> list[str]:
    """The letters that byte-level BPE writes for the bytes 0 to 255."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {code: chr(code) for code in shown}
    for index, code in enumerate(code for code in range(256) if code not in set(shown)):
        table[code] = chr(256 + index)
    return [table[code] for code in range(256)]


def write_tiny(path: Path, packed: GGMLQuantizationType | None = None) -> Path:
    """Write the model, its matrices quantised to `packed` if that is given, and give its path back."""
    rng = np.random.default_rng(7)
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *letters(), *(merge.replace(" ", "") for merge in MERGES)]
    writer = GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(SIZE)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(SIZE // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3] + [1] * (len(tokens) - 3))
    writer.add_token_merges(MERGES)
    writer.add_eos_token_id(2)
    writer.add_bos_token_id(1)
    writer.add_add_bos_token(False)

    def tensor(name: str, *shape: int) -> None:
        values = rng.normal(0, 0.25, shape).astype(np.float32)
        if packed is None:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, quantize(values, packed), raw_dtype=packed)

    tensor("token_embd.weight", len(tokens), SIZE)
    writer.add_tensor("output_norm.weight", np.ones(SIZE, np.float32))
    for layer in range(LAYERS):
        writer.add_tensor(f"blk.{layer}.attn_norm.weight", np.ones(SIZE, np.float32))
        writer.add_tensor(f"blk.{layer}.ffn_norm.weight", np.ones(SIZE, np.float32))
        tensor(f"blk.{layer}.attn_q.weight", SIZE, SIZE)
        tensor(f"blk.{layer}.attn_k.weight", SIZE * KV_HEADS // HEADS, SIZE)
        tensor(f"blk.{layer}.attn_v.weight", SIZE * KV_HEADS // HEADS, SIZE)
        tensor(f"blk.{layer}.attn_output.weight", SIZE, SIZE)
        tensor(f"blk.{layer}.ffn_gate.weight", INNER, SIZE)
        tensor(f"blk.{layer}.ffn_up.weight", INNER, SIZE)
        tensor(f"blk.{layer}.ffn_down.weight", SIZE, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
