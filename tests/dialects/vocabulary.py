"""The encoding of `openai-harmony`, its vocabulary taken from an installed package: nothing is downloaded."""

from __future__ import annotations

import hashlib
import os
import shutil
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
PLACE = "litellm_core_utils/tokenizers/fb374d419588a4632f3f557e76b4b70aebbca790"


@cache
def encoding() -> Any:
    """The encoding, or None where `openai-harmony` or the package with the vocabulary is not installed."""
    spec = find_spec("litellm")
    if spec is None or find_spec("openai_harmony") is None:
        return None
    source = Path(str(next(iter(spec.submodule_search_locations or [])))) / PLACE
    if not source.exists() or hashlib.sha256(source.read_bytes()).hexdigest() != SHA256:
        return None
    folder = Path(mkdtemp())
    shutil.copy(source, folder / "o200k_base.tiktoken")
    os.environ["TIKTOKEN_ENCODINGS_BASE"] = str(folder)
    harmony = import_module("openai_harmony")
    return harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
