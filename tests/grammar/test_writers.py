"""Grammars for other engines, each read back by the engine it is for where that is installed."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onspec.contract.schema import Schema
from onspec.contract.tool import Grammar, Tool
from onspec.contract.toolset import Toolset
from onspec.dialects import named
from onspec.dialects.render import render_calls
from onspec.errors import InputError
from onspec.grammar.forms import FORMS
from onspec.grammar.gbnf import gbnf
from onspec.grammar.llguidance import Vocabulary, accepts
from onspec.grammar.openai_custom import APPLY_PATCH, custom_tool, free_form
from onspec.grammar.structural_tag import structural_tag, structural_tag_flat
from onspec.grammar.vllm import guided, response_format, structured_outputs
from onspec.local import xllamacpp
from onspec.local.llama_api import LlamaRuntime
from onspec.message import Call
from tests.local.tiny import write_tiny

BYTES = Vocabulary.of_bytes()
TOOL = Tool(
    "get_weather",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "units": {"enum": ["metric", "imperial"]},
            "near": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "rate": {"type": "number", "minimum": 0.5},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    },
)
OPEN = Tool("open", {"type": "object", "additionalProperties": {"type": "string"}})
PATCH = Tool("apply_patch", None, grammar=Grammar("lark", APPLY_PATCH))
JSON_DIALECTS = [name for name, form in FORMS.items() if form.style in ("json", "envelope", "keyed", "harmony")]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaRuntime]:
    runtime = xllamacpp.open_model(write_tiny(tmp_path_factory.mktemp("gbnf") / "tiny.gguf"), 64)
    yield runtime
    runtime.close()


class _Item(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int32), ("logit", ctypes.c_float), ("p", ctypes.c_float))


class _Items(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.POINTER(_Item)),
        ("size", ctypes.c_size_t),
        ("selected", ctypes.c_int64),
        ("sorted", ctypes.c_bool),
    )


def _llama_takes(runtime: LlamaRuntime, grammar: str, text: str) -> bool:
    """Whether llama.cpp's own grammar engine takes `text` whole, byte by byte, and may then end."""
    library = runtime._library
    library.llama_sampler_init_grammar.restype = ctypes.c_void_p
    library.llama_sampler_init_grammar.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    library.llama_sampler_apply.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Items)]
    library.llama_sampler_accept.argtypes = [ctypes.c_void_p, ctypes.c_int32]
    library.llama_sampler_free.argtypes = [ctypes.c_void_p]
    sampler = library.llama_sampler_init_grammar(runtime._vocab, grammar.encode(), b"root")
    assert sampler, "llama.cpp does not read the grammar"
    size = len(runtime.pieces)
    try:
        for token in [*(runtime.pieces.index(bytes([code])) for code in text.encode()), runtime.card.eos]:
            items = (_Item * size)(*(_Item(i, 0.0, 0.0) for i in range(size)))
            array = _Items(items, size, -1, False)
            library.llama_sampler_apply(sampler, ctypes.byref(array))
            if items[token].logit == float("-inf"):
                return False
            if token != runtime.card.eos:
                library.llama_sampler_accept(sampler, token)
    finally:
        library.llama_sampler_free(sampler)
    return True


@pytest.mark.parametrize("dialect", JSON_DIALECTS)
def test_llama_cpp_reads_the_grammar_of_every_json_dialect(llama: LlamaRuntime, dialect: str) -> None:
    written = gbnf([TOOL, OPEN], dialect)
    library = llama._library
    library.llama_sampler_init_grammar.restype = ctypes.c_void_p
    library.llama_sampler_init_grammar.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    assert library.llama_sampler_init_grammar(llama._vocab, written.grammar.encode(), b"root")
    fields = written.request()
    assert bool(fields.get("grammar_lazy")) == bool(FORMS[dialect].word)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ('{"city": "Oslo", "days": 2}', True),
        ('{"city": "\\u00e9 \\"x\\"", "days": 14, "units": "metric", "near": ["a", "b"]}', True),
        ('{"city": "Oslo", "days": 2, "near": []}', True),
        ('{"days": 3, "rate": 0.5, "city": "Oslo"}', True),
        ('{"days": 3, "city": "Oslo", "days": 3}', False),
        ('{"days": 3, "rate": 1}', False),
        ('{"city": "Oslo", "days": 0}', False),
        ('{"city": "Oslo", "days": 15}', False),
        ('{"city": "Oslo"}', False),
        ('{"city": "Oslo", "days": 2, "in_file": 1}', False),
        ('{"city": "Oslo", "days": 2, "near": ["a", "b", "c"]}', False),
        ('{"city": "a\nb", "days": 2}', False),
        ('{"city": "\\d", "days": 2}', False),
    ],
)
def test_llama_cpp_holds_the_schema(llama: LlamaRuntime, arguments: str, wanted: bool) -> None:
    text = f'<tool_call>\n{{"name": "get_weather", "arguments": {arguments}}}\n</tool_call>'
    assert _llama_takes(llama, gbnf([TOOL, OPEN], "hermes_json").grammar, text) is wanted


JOIN = Tool(
    "join",
    {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "boolean"}},
        "required": ["a"],
        "dependentRequired": {"b": ["c"]},
        "additionalProperties": False,
    },
)


@pytest.mark.parametrize("dialect", JSON_DIALECTS)
def test_llama_cpp_takes_keys_in_any_order_in_every_json_dialect(llama: LlamaRuntime, dialect: str) -> None:
    """What the dialect's writer renders is taken by llama.cpp's engine, in any order; an invented key is not."""
    grammar = gbnf([JOIN], dialect).grammar
    for arguments, wanted in (
        ('{"c":true,"b":"x","a":"y"}', True),
        ('{"a": "y"}', True),
        ('{"b":"x","a":"y"}', False),
        ('{"a":"y","in_file":1}', False),
    ):
        row = named(dialect)
        text = arguments if dialect == "json_args" else render_calls(row, (Call("join", arguments),), Toolset([JOIN]))
        text = text.removeprefix("<|start|>assistant")
        if FORMS[dialect].optional and FORMS[dialect].trigger:
            text = text.removeprefix(FORMS[dialect].trigger)
        assert _llama_takes(llama, grammar, text) is wanted, text


_EIGHT = {
    "type": "object",
    "properties": {f"k{n}": {"type": "integer"} for n in range(8)},
    "additionalProperties": False,
}
_ODD = ["a\u2028b", "\u200b", "\u0085", "\x7f", "\U0001f642", 'q"', "b\\", "n\n"]


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"enum": _ODD}, [*_ODD, "x"]),
        ({"type": "string", "minLength": 3000}, ["a" * 2500, "a" * 10]),
        *(({"type": "string", "maxLength": most}, ["", "a" * 66]) for most in (64, 65, 800, 1000, 2000, 2001, 20_000)),
        ({"type": "string", "minLength": 1000, "maxLength": 1500}, ["a" * 1001, "a"]),
        ({"type": "string", "pattern": "^([a-c]{1,900}-){1,3}$"}, ["abc-", "abc"]),
        ({"type": "string", "pattern": "^((x|y[0-9]){70}z){1,80}$"}, ["x" * 70 + "z", "x"]),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 1000}, [["a", "b"]]),
        ({"type": "object", "additionalProperties": {"type": "null"}, "maxProperties": 0}, [{}, {"a": None}]),
        ({"type": "object", "additionalProperties": {"type": "null"}, "maxProperties": 1500}, [{}, {"a": None}]),
        ({"type": "array", "items": {"type": "null"}, "maxItems": 1}, [[], [None], [None, None]]),
        ({"type": "array", "items": {"type": "null"}, "maxItems": 10**6}, [[None]]),
        ({**_EIGHT, "maxProperties": 2}, [{"k0": 1}, {"k0": 1, "k1": 2, "k2": 3}]),
        ({**_EIGHT, "minProperties": 2}, [{}, {"k0": 1, "k1": 2}]),
        ({**_EIGHT, "dependentRequired": {"k0": ["k1"]}}, [{"k0": 1}, {"k0": 1, "k1": 2}]),
        ({"type": "array", "prefixItems": [{"type": "null"}, False, {"type": "integer"}]}, [[None], [None, 1], []]),
        ({"type": "number", "minimum": 0.5, "exclusiveMaximum": 2}, [0.5, 0.4, 1.99, 2, -1]),
    ],
)
def test_llama_cpp_takes_what_the_schema_takes_or_a_note_says_why(
    llama: LlamaRuntime, schema: Any, values: list[Any]
) -> None:
    whole = {"type": "object", "properties": {"p": schema}, "required": ["p"], "additionalProperties": False}
    written, judge = gbnf([Tool("f", whole)], "hermes_json"), Schema(whole).judge
    effects = {note.effect for note in written.inexact}
    for value in values:
        arguments = json.dumps({"p": value}, ensure_ascii=False)
        text = f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>'
        taken, valid = _llama_takes(llama, written.grammar, text), judge.is_valid({"p": value})
        assert taken == valid or ("more" if taken else "less") in effects, value


def test_gbnf_says_what_it_cannot_follow() -> None:
    written = gbnf([OPEN, TOOL], "hermes_json", order="schema")
    assert "key order" in {note.keyword for note in written.inexact}
    assert gbnf([JOIN], "hermes_json").inexact == ()
    wide = Tool("wide", {"type": "object", "properties": {f"k{n}": {"type": "string"} for n in range(7)}})
    assert "key order (of more than 6 keys)" in {note.keyword for note in gbnf([wide], "hermes_json").inexact}
    with pytest.raises(InputError):
        gbnf([TOOL], "qwen3_coder_xml")
    with pytest.raises(InputError):
        gbnf([TOOL], "hermes_json", "nope")


def test_structural_tags_frame_the_body() -> None:
    tag = structural_tag([TOOL], "hermes_json", "required")
    inner = tag["format"]
    assert inner["triggers"] == ["<tool_call>"]
    assert inner["at_least_one"]
    only = inner["tags"][0]
    assert only["begin"].startswith("<tool_call>")
    assert only["end"].endswith("</tool_call>")
    assert only["content"]["json_schema"]["properties"]["name"] == {"const": "get_weather"}
    flat = structural_tag_flat([TOOL], "mistral_args")
    assert flat["structures"][0]["begin"] == "[TOOL_CALLS]get_weather[ARGS]"
    assert structural_tag([TOOL], "qwen3_coder_xml")["format"]["tags"][0]["content"]["style"] == "qwen_xml"
    for dialect in ("pythonic", "llama3_json", "gemma4"):
        with pytest.raises(InputError):
            structural_tag([TOOL], dialect)


def test_references_keep_pointing_at_their_definitions() -> None:
    tool = Tool("t", {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string"}}})
    schema = structural_tag([tool], "hermes_json")["format"]["tags"][0]["content"]["json_schema"]
    assert schema["$defs"] == {"x": {"type": "string"}}
    assert "$defs" not in schema["properties"]["arguments"]


def test_vllm_bodies_are_json() -> None:
    assert json.loads(structured_outputs([TOOL], "hermes_json")["structured_outputs"]["structural_tag"])["type"]
    assert response_format([TOOL], "hermes_json")["response_format"]["type"] == "structural_tag"
    assert guided(TOOL, backend="xgrammar")["guided_json"] == TOOL.schema.document  # type: ignore[union-attr]
    lark = guided(TOOL)["guided_grammar"]
    assert accepts(BYTES, lark, '{"days": 2, "city": "Oslo"}')
    with pytest.raises(InputError):
        guided(PATCH)


PATCHES = [
    ("*** Begin Patch\n*** Add File: a.py\n+x = 1\n*** End Patch\n", True),
    ("*** Begin Patch\n*** Delete File: a.py\n*** End Patch", True),
    ("*** Begin Patch\n*** Update File: a.py\n@@ def f():\n a\n-b\n+c\n*** End Patch\n", True),
    ("*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** End of File\n*** End Patch\n", True),
    ("*** Begin Patch\n*** End Patch\n", False),
    ("*** Begin Patch\n*** Add File: a.py\nx = 1\n*** End Patch\n", False),
    ("*** Update File: a\n-x\n", False),
]


@pytest.mark.parametrize(("text", "wanted"), PATCHES)
def test_the_patch_language(text: str, wanted: bool) -> None:
    assert accepts(BYTES, free_form(PATCH), text) is wanted


def test_custom_tools_are_declared_and_checked() -> None:
    assert custom_tool(PATCH)["format"]["syntax"] == "lark"
    assert custom_tool(Tool("say", None))["format"] == {"type": "text"}
    regex = Tool("when", None, grammar=Grammar("regex", r"\d{4}-\d{2}"))
    assert custom_tool(regex)["format"]["definition"] == r"\d{4}-\d{2}"
    assert accepts(BYTES, free_form(regex), "2026-11")


@pytest.mark.parametrize(
    "grammar",
    [
        Grammar("lark", ""),
        Grammar("lark", 'begin: "x"'),
        Grammar("lark", "start: /(?=x)y/"),
        Grammar("lark", "%declare X\nstart: X"),
        Grammar("lark", 'start: A\nA.2: "x"'),
        Grammar("regex", "(?<!a)b"),
    ],
)
def test_what_the_api_does_not_take_is_refused(grammar: Grammar) -> None:
    with pytest.raises(InputError):
        custom_tool(Tool("t", None, grammar=grammar))
    with pytest.raises(InputError):
        custom_tool(TOOL)


def test_no_grammar_is_written_for_nothing(tmp_path: Path) -> None:
    for write in (structural_tag, gbnf):
        with pytest.raises(InputError, match="no tool"):
            write([], "hermes_json")
