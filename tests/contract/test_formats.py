"""Definitions in the five forms become tools; what cannot be used says what to do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from onspec import Tool, Toolset
from onspec.errors import OnspecError, SchemaError, ToolFormatError

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["path"],
    "additionalProperties": False,
}

FORMS: dict[str, dict[str, Any]] = {
    "anthropic": {"name": "view", "description": "d", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}},
    "anthropic custom": {"type": "custom", "name": "view", "description": "d", "input_schema": SCHEMA},
    "chat": {
        "type": "function",
        "function": {"name": "view", "description": "d", "parameters": SCHEMA, "strict": True},
    },
    "responses": {"type": "function", "name": "view", "description": "d", "parameters": SCHEMA, "strict": False},
    "mcp": {"name": "view", "title": "View", "description": "d", "inputSchema": SCHEMA},
    "gemini json": {"name": "view", "description": "d", "parametersJsonSchema": SCHEMA},
    "gemini": {
        "name": "view",
        "description": "d",
        "parameters": {
            "type": "OBJECT",
            "properties": {"path": {"type": "STRING"}, "limit": {"type": "INTEGER"}},
            "required": ["path"],
            "propertyOrdering": ["path", "limit"],
            "additionalProperties": False,
        },
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_same_contract(form: str) -> None:
    tool = Tool.from_json(FORMS[form])
    assert (tool.name, tool.description) == ("view", "d")
    assert tool.schema is not None
    assert tool.schema.document == SCHEMA
    assert tool.grammar is None
    assert tool.is_valid({"path": "a"})
    assert not tool.is_valid({"path": "a", "x": 1})


@pytest.mark.parametrize("wrap", ["list", "request", "functions", "mcp result", "single", "gemini"])
@pytest.mark.parametrize("form", FORMS)
def test_a_list_a_request_and_one_definition_are_read(form: str, wrap: str) -> None:
    one = FORMS[form]
    body: Any = {
        "list": [one],
        "request": {"model": "m", "messages": [], "tools": [one]},
        "functions": {"messages": [], "functions": [one]},
        "mcp result": {"jsonrpc": "2.0", "id": 1, "result": {"tools": [one]}},
        "single": one,
        "gemini": {"contents": [], "tools": [{"googleSearch": {}}, {"functionDeclarations": [FORMS["gemini"]]}]},
    }[wrap]
    tools = Toolset.from_json(body)
    assert list(tools) == ["view"]
    assert tools["view"].schema is not None
    assert tools["view"].schema.document == SCHEMA


def test_options_override_the_definition() -> None:
    tool = Tool.from_json(FORMS["mcp"], effect="exec", aliases={"file": "path"}, name="other")
    assert (tool.name, tool.effect, dict(tool.aliases)) == ("other", "exec", {"file": "path"})
    assert Toolset.from_json([FORMS["mcp"]], effect="read")["view"].effect == "read"


@pytest.mark.parametrize(
    ("annotations", "effect"),
    [
        ({"readOnlyHint": True}, "read"),
        ({"readOnlyHint": True, "destructiveHint": False}, "read"),
        ({"readOnlyHint": False}, "write"),
        ({"destructiveHint": True}, "write"),
        ({"destructiveHint": False}, "write"),
        ({"title": "x"}, None),
        (None, None),
        ({"readOnlyHint": "yes"}, None),
    ],
)
def test_mcp_annotations_give_the_effect(annotations: Any, effect: str | None) -> None:
    definition = {"name": "lookup", "inputSchema": SCHEMA}
    if annotations is not None:
        definition["annotations"] = annotations
    assert Tool.from_json(definition).effect == effect


@pytest.mark.parametrize(
    ("name", "key", "effect"),
    [
        ("read", "path", "read"),
        ("Read", "file_path", "read"),
        ("read", "queue", None),  # some other tool that bears the name
        ("edit", "path", "write"),
        ("bash", "command", "exec"),
        ("frobnicate", "path", None),
    ],
)
def test_a_known_name_gives_the_effect(name: str, key: str, effect: str | None) -> None:
    schema = {"type": "object", "properties": {key: {"type": "string"}}}
    assert Tool.from_json({"name": name, "input_schema": schema}).effect == effect


GRAMMAR = 'start: "a" LF\n%import common.LF\n'


@pytest.mark.parametrize(
    ("definition", "syntax", "text"),
    [
        ({"type": "custom", "name": "p"}, "text", ""),
        ({"type": "custom", "name": "p", "format": {"type": "text"}}, "text", ""),
        (
            {"type": "custom", "name": "p", "format": {"type": "grammar", "syntax": "lark", "definition": GRAMMAR}},
            "lark",
            GRAMMAR,
        ),
        ({"type": "custom", "custom": {"name": "p"}}, "text", ""),
        (
            {
                "type": "custom",
                "custom": {
                    "name": "p",
                    "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}},
                },
            },
            "regex",
            "a+",
        ),
    ],
)
def test_a_custom_tool_has_a_grammar_and_no_schema(definition: dict[str, Any], syntax: str, text: str) -> None:
    tool = Tool.from_json(definition)
    assert tool.schema is None
    assert tool.grammar is not None
    assert (tool.name, tool.grammar.syntax, tool.grammar.definition) == ("p", syntax, text)
    assert tool.is_valid("any text")
    assert not tool.is_valid({"input": "x"})


EDITORS = ["text_editor_20241022", "text_editor_20250124", "text_editor_20250429", "text_editor_20250728"]


@pytest.mark.parametrize("version", EDITORS)
@pytest.mark.parametrize(
    ("call", "valid"),
    [
        ({"command": "view", "path": "a"}, True),
        ({"command": "view", "path": "a", "view_range": [1, -1]}, True),
        ({"command": "view", "path": "a", "view_range": [1]}, False),
        ({"command": "view"}, False),
        ({"command": "create", "path": "a", "file_text": ""}, True),
        ({"command": "create", "path": "a"}, False),
        ({"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"}, True),
        ({"command": "str_replace", "path": "a", "old_str": "x"}, False),
        ({"command": "insert", "path": "a", "insert_line": 0, "insert_text": "x"}, True),
        ({"command": "insert", "path": "a", "insert_line": 0, "new_str": "x"}, True),
        ({"command": "insert", "path": "a", "insert_line": 0}, False),
        ({"command": "delete", "path": "a"}, False),
        ({"command": "view", "path": "a", "recursive": True}, False),
    ],
)
def test_the_text_editor_is_known_by_its_version(version: str, call: dict[str, Any], valid: bool) -> None:
    tool = Tool.from_json({"type": version, "name": "edit_tool", "max_characters": 9})
    assert (tool.name, tool.effect) == ("edit_tool", "write")
    assert tool.is_valid(call) is valid


def test_only_older_editors_undo() -> None:
    undo = {"command": "undo_edit", "path": "a"}
    assert [Tool.from_json({"type": version}).is_valid(undo) for version in EDITORS] == [True, True, False, False]


@pytest.mark.parametrize(
    ("kind", "name", "effect", "good", "bad"),
    [
        (
            "bash_20250124",
            "bash",
            "exec",
            [{"command": "ls"}, {"restart": True}],
            [{}, {"restart": False}, {"cmd": "ls"}],
        ),
        (
            "memory_20250818",
            "memory",
            "write",
            [{"command": "rename", "old_path": "a", "new_path": "b"}],
            [{"command": "x"}],
        ),
        (
            "apply_patch",
            "apply_patch",
            "write",
            [{"type": "delete_file", "path": "a"}, {"type": "update_file", "path": "a", "diff": "@@"}],
            [{"type": "update_file", "path": "a"}],
        ),
    ],
)
def test_other_tools_known_by_type(kind: str, name: str, effect: str, good: list[Any], bad: list[Any]) -> None:
    tool = Tool.from_json({"type": kind})
    assert (tool.name, tool.effect) == (name, effect)
    assert all(tool.is_valid(one) for one in good)
    assert not any(tool.is_valid(one) for one in bad)


HOSTED = [
    {"type": "web_search_20250305", "name": "web_search"},
    {"type": "web_search"},
    {"type": "image_generation", "output_format": "png"},
    {"type": "mcp", "server_label": "x", "server_url": "u"},
    {"type": "code_interpreter", "container": {"type": "auto"}},
    {"googleSearch": {}},
    {"code_execution": {}, "url_context": {}},
]


@pytest.mark.parametrize("hosted", HOSTED)
def test_what_the_provider_runs_is_left_out_of_a_set_and_refused_alone(hosted: dict[str, Any]) -> None:
    assert list(Toolset.from_json([hosted, FORMS["chat"]])) == ["view"]
    with pytest.raises(ToolFormatError, match="run by the provider"):
        Tool.from_json(hosted)


def test_a_typed_tool_that_carries_a_schema_is_kept() -> None:
    tool = Tool.from_json({"type": "tool_search", "execution": "client", "parameters": SCHEMA})
    assert tool.name == "tool_search"
    assert not tool.is_valid({})


def _function(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": SCHEMA}


def test_namespaces_and_additional_tools_are_opened() -> None:
    group = {
        "type": "additional_tools",
        "role": "developer",
        "tools": [
            {
                "type": "namespace",
                "name": "functions",
                "tools": [{"type": "custom", "name": "exec"}, _function("wait")],
            },
            {"type": "namespace", "name": "clock", "tools": [_function("sleep")]},
        ],
    }
    names = ["exec", "wait", "sleep"]
    assert list(Toolset.from_json([group])) == names
    assert list(Toolset.from_json({"model": "m", "input": [{"type": "message"}, group]})) == names
    assert list(Toolset.from_json({"tools": [_function("top")], "input": [group]})) == ["top", *names]
    assert list(Toolset.from_json({"input": "hello", "tools": [_function("top")]})) == ["top"]


def test_a_later_item_restates_or_replaces_tools() -> None:
    first = {"type": "additional_tools", "tools": [_function("wait"), _function("stop")]}
    later = {"type": "additional_tools", "tools": [{"type": "custom", "name": "wait"}]}
    tools = Toolset.from_json({"tools": [_function("top"), _function("stop")], "input": [first, first, later]})
    assert list(tools) == ["top", "wait", "stop"]
    assert tools["wait"].grammar is not None


def test_one_name_in_two_namespaces_is_told_apart() -> None:
    spaces = [{"type": "namespace", "name": name, "tools": [_function("list")]} for name in ("a", "b")]
    assert list(Toolset.from_json(spaces)) == ["a.list", "b.list"]
    assert list(Toolset.from_json([_function("list"), *spaces])) == ["list", "a.list", "b.list"]


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    for definition in (
        {"type": "function", "function": {"name": "now"}},
        {"type": "function", "name": "now", "parameters": None},
        {"functionDeclarations": [{"name": "now"}]},
    ):
        tool = Tool.from_json(definition)
        assert tool.is_valid({})
        assert not tool.is_valid([])


@pytest.mark.parametrize(
    ("gemini", "plain"),
    [
        ({"type": "STRING", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "STRING", "nullable": False}, {"type": "string"}),
        ({"type": "STRING", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"anyOf": [{"type": "STRING"}], "nullable": True}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"any_of": [{"type": "NUMBER"}]}, {"anyOf": [{"type": "number"}]}),
        (
            {"type": "ARRAY", "items": {"type": "BOOLEAN"}, "minItems": "2"},
            {"type": "array", "items": {"type": "boolean"}, "minItems": 2},
        ),
        ({"type": "TYPE_UNSPECIFIED", "description": "x"}, {"description": "x"}),
        # A property may be called like a keyword; it is data, not a keyword.
        (
            {"type": "OBJECT", "properties": {"nullable": {"type": "STRING"}, "type": {"type": "INTEGER"}}},
            {"type": "object", "properties": {"nullable": {"type": "string"}, "type": {"type": "integer"}}},
        ),
        ({"type": "STRING", "enum": ["STRING", "OBJECT"]}, {"type": "string", "enum": ["STRING", "OBJECT"]}),
        ({"type": "OBJECT", "example": {"a": 1}, "propertyOrdering": ["a"]}, {"type": "object"}),
        ({"$ref": "#/$defs/a", "nullable": True}, {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}),
    ],
)
def test_geminis_dialect_becomes_json_schema(gemini: dict[str, Any], plain: dict[str, Any]) -> None:
    definition = {
        "name": "t",
        "parameters": {"type": "OBJECT", "properties": {"x": gemini}, "$defs": {"a": {"type": "STRING"}}},
    }
    schema = Tool.from_json({"functionDeclarations": [definition]}).schema
    assert schema is not None
    assert schema.document["properties"]["x"] == plain  # type: ignore[index]  # an object by construction


BAD: list[tuple[Any, type[OnspecError], str]] = [
    ({"name": "", "input_schema": SCHEMA}, ToolFormatError, "needs a name"),
    ({"input_schema": SCHEMA}, ToolFormatError, "needs a name"),
    ({"name": 3, "inputSchema": SCHEMA}, ToolFormatError, "needs a name"),
    ({"type": "function"}, ToolFormatError, "needs a name"),
    ({"name": "t"}, ToolFormatError, "none of the known forms"),
    ({}, ToolFormatError, "none of the known forms"),
    ({"name": "t", "schema": SCHEMA}, ToolFormatError, "input_schema"),
    (SCHEMA, ToolFormatError, "bare JSON Schema"),
    ({"name": "t", "input_schema": "object"}, SchemaError, "'t'.*an object, not text"),
    ({"name": "t", "input_schema": [SCHEMA]}, SchemaError, "'t'.*an object, not a list"),
    ({"name": "t", "input_schema": {"type": "strnig"}}, SchemaError, "'t'"),
    ({"name": "t", "input_schema": {"$ref": "https://example.com/s.json"}}, SchemaError, "never fetched"),
    ({"name": "t", "parameters": SCHEMA, "parametersJsonSchema": SCHEMA}, ToolFormatError, "exclude each other"),
    ({"functionDeclarations": SCHEMA}, ToolFormatError, "is a list"),
    ({"functionDeclarations": ["x"]}, ToolFormatError, "is an object"),
    ({"type": "custom", "name": "t", "format": {"type": "grammar", "syntax": "bnf"}}, ToolFormatError, "lark or regex"),
    ({"type": "custom", "name": "t", "format": "lark"}, ToolFormatError, "lark or regex"),
    ({"type": "namespace", "name": "n", "tools": 3}, ToolFormatError, "list of definitions"),
]


@pytest.mark.parametrize(("definition", "error", "message"), BAD)
def test_what_cannot_be_used_says_what_to_do(definition: Any, error: type[OnspecError], message: str) -> None:
    with pytest.raises(error, match=message):
        Tool.from_json(definition)
    with pytest.raises(error, match=message):
        Toolset.from_json([FORMS["chat"], definition])


@pytest.mark.parametrize("value", [None, 3, "[]", b"[]", True, [1], ["x"], [None], {"tools": {}}, {"tools": "x"}])
def test_what_is_no_definition_at_all(value: Any) -> None:
    with pytest.raises(ToolFormatError):
        Toolset.from_json(value)
    with pytest.raises(ToolFormatError):
        Tool.from_json(value)


def test_a_set_names_the_entry_that_is_wrong() -> None:
    with pytest.raises(ToolFormatError, match="tool 2: "):
        Toolset.from_json([FORMS["chat"], HOSTED[0], {"nme": "x"}])
    with pytest.raises(ToolFormatError, match="two tools"):
        Toolset.from_json([FORMS["chat"], FORMS["mcp"]])
    with pytest.raises(ToolFormatError, match="declares 2 tools"):
        Tool.from_json({"functionDeclarations": [{"name": "a"}, {"name": "b"}]})


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    space: dict[str, Any] = {"type": "namespace", "name": "n", "tools": [FORMS["chat"]]}
    schema: dict[str, Any] = {"type": "STRING"}
    for _ in range(20_000):
        space = {"type": "namespace", "name": "n", "tools": [space]}
        schema = {"type": "ARRAY", "items": schema}
    with pytest.raises(ToolFormatError, match="nested"):
        Toolset.from_json([space])
    with pytest.raises(SchemaError, match=r"nested|JSON"):
        Tool.from_json({"name": "t", "parameters": schema})
    # Taken apart by hand: the interpreter's own clean-up of so deep a value may overflow the stack.
    for value, key in ((space, "tools"), (schema, "items")):
        node: Any = value
        while isinstance(node, dict) and key in node:
            inner = node.pop(key)
            node = inner[0] if isinstance(inner, list) else inner


@pytest.mark.skipif("ONSPEC_CASES" not in os.environ, reason="ONSPEC_CASES is not set")
def test_definitions_of_real_agents_are_read() -> None:
    folder = Path(os.environ["ONSPEC_CASES"]).parent / "client_tools"
    files = [path for path in sorted(folder.glob("*.json")) if not path.name.endswith(".meta.json")]
    assert files
    for path in files:
        assert len(Toolset.from_json(json.loads(path.read_bytes()))), path.name
