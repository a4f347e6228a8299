"""Which dialect a model writes, by its name."""

from __future__ import annotations

import re

_ROWS: tuple[tuple[str, str], ...] = (
    # pattern of the model's name, dialect; the first that matches
    (r"gpt-?oss", "harmony"),
    (r"claude", "anthropic_xml"),
    (r"qwen-?3(?:[.-]?\d)?-?coder|qwen-?3\.[5-9]|qwen-?[4-9]|mimo", "qwen3_coder_xml"),
    (r"nemotron-?3", "nemotron3_xml"),
    (r"nemotron-?nano", "nemotron_nano_v2"),
    (r"qwen|qwq|hermes", "hermes_json"),
    (r"step-?3\.[5-9]|step-?3p5", "step3p5"),
    (r"step-?3", "step3"),
    (r"devstral|ministral|magistral|mistral-(?:small|medium|large)-(?:3\.|25|26)", "mistral_args"),
    (r"mistral|mixtral", "mistral_json"),
    (r"deepseek.*v(?:3\.2|4)", "deepseek_dsml"),
    (r"deepseek.*v3\.1", "deepseek_v31"),
    (r"deepseek", "deepseek_v3"),
    (r"kimi-?k3", "kimi_k3"),
    (r"kimi", "kimi_k2"),
    (r"glm|laguna|poolside", "glm45"),
    (r"llama-?4|llama-?3\.2|toolace", "pythonic"),
    (r"llama", "llama3_json"),
    (r"lfm", "lfm2"),
    (r"olmo", "olmo3"),
    (r"minimax.*m3", "minimax_m3"),
    (r"minimax.*m1", "minimax_m1"),
    (r"minimax", "minimax_m2"),
    (r"functiongemma", "functiongemma"),
    (r"gemma-?[4-9]", "gemma4"),
    (r"gemma", "gemma3"),
    (r"granite.*20b", "granite_20b"),
    (r"granite-?(?:3\.3|4.*-h)", "granite_pythonic"),
    (r"granite-?4", "hermes_json"),
    (r"granite", "granite"),
    (r"phi-?4-?mini|firefunction", "phi4_mini"),
    (r"command|cohere", "cohere_cmd3"),
    (r"xlam", "xlam"),
    (r"hunyuan.*a13b", "hunyuan_a13b"),
    (r"hunyuan|hy-?v?3", "hy_v3"),
    (r"jamba", "jamba"),
    (r"seed", "seed_oss"),
    (r"minicpm", "minicpm5_xml"),
    (r"internlm", "internlm2"),
    (r"longcat", "longcat"),
    (r"ernie", "ernie45"),
    (r"apertus", "apertus"),
    (r"functionary", "functionary"),
    (r"glimmer", "glimmer"),
)

_COMPILED = tuple((re.compile(pattern), dialect) for pattern, dialect in _ROWS)


def dialect_of(model: str) -> str:
    """Name of the dialect that a model of this name writes; `auto` where it is not known."""
    lower = model.lower().replace("_", "-")
    return next((dialect for pattern, dialect in _COMPILED if pattern.search(lower)), "auto")
