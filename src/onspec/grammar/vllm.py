"""Request fields that make vLLM and SGLang constrain a reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from onspec.contract.tool import Tool
from onspec.errors import InputError
from onspec.grammar.exact import Options, compile_exact
from onspec.grammar.structural_tag import structural_tag, structural_tag_flat


def structured_outputs(tools: Sequence[Tool], dialect: str, choice: str = "auto") -> dict[str, Any]:
    """Fields of a request to vLLM 0.11 and newer: `structured_outputs` with a structural tag."""
    return {"structured_outputs": {"structural_tag": orjson.dumps(structural_tag(tools, dialect, choice)).decode()}}


def response_format(tools: Sequence[Tool], dialect: str, choice: str = "auto") -> dict[str, Any]:
    """The `response_format` that older vLLM and SGLang take: the flat structural tag."""
    return {"response_format": structural_tag_flat(tools, dialect, choice)}


def guided(tool: Tool, options: Options | None = None, *, backend: str = "guidance") -> dict[str, Any]:
    """Fields for one forced tool: the exact grammar where the server runs llguidance, else its JSON Schema.

    Args:
        tool: The tool whose arguments the whole reply is.
        options: Form of the exact grammar.
        backend: `guidance` sends the exact grammar (`guided_grammar`, Lark); any other sends `guided_json`.

    Raises:
        InputError: The tool has no schema.
    """
    if tool.schema is None:
        raise InputError(f"{tool.name} takes free text; there is no schema to guide by")
    if backend != "guidance":
        return {"guided_json": tool.schema.document, "guided_decoding_backend": backend}
    exact = compile_exact(tool.schema.document, options, root="object")
    return {"guided_grammar": "%llguidance {}\n" + exact.grammar(), "guided_decoding_backend": "guidance"}
