"""Tool definitions as Anthropic, OpenAI (Chat and Responses), Gemini and MCP write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from onspec.contract.builtin import BUILTIN
from onspec.contract.definition import Definition, Effect, Grammar
from onspec.contract.gemini import json_schema
from onspec.errors import SchemaError, ToolFormatError

FORMS = (
    "Anthropic {name, input_schema}, OpenAI Chat {type: function, function: {name, parameters}}, "
    "OpenAI Responses {type: function, name, parameters}, "
    "Gemini {functionDeclarations: [...]} or MCP {name, inputSchema}"
)

NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
"""The contract of a function that declares no parameters."""

MAX_NESTING = 16
"""Deepest nesting of namespaces that is read."""

_DECLARATIONS = ("functionDeclarations", "function_declarations")
_GROUPS = frozenset({"namespace", "additional_tools"})
_HOSTED = frozenset(
    {
        "googleSearch",
        "google_search",
        "googleSearchRetrieval",
        "google_search_retrieval",
        "googleMaps",
        "google_maps",
        "codeExecution",
        "code_execution",
        "urlContext",
        "url_context",
        "computerUse",
        "computer_use",
        "fileSearch",
        "file_search",
        "enterpriseWebSearch",
        "enterprise_web_search",
        "retrieval",
    }
)
"""Gemini tools that the provider runs; they stand beside `functionDeclarations` and have no schema."""


def read(definition: Any) -> Definition:
    """The one tool that a decoded definition declares.

    Raises:
        ToolFormatError: It is in none of the known forms, declares several tools, or is run by the provider and has no
            schema.
        SchemaError: Its schema is not an object.
    """
    if not isinstance(definition, Mapping):
        raise ToolFormatError(f"a tool definition is an object, not {_kind(definition)}; known forms: {FORMS}")
    found = _entries(definition, 0)
    if len(found) == 1:
        return found[0]
    if found:
        raise ToolFormatError(f"this declares {len(found)} tools; read it with Toolset.from_json")
    name = definition.get("type") or next(iter(definition), "this")
    raise ToolFormatError(f"{name!r} is run by the provider and carries no schema, so there is nothing to check")


def read_all(definitions: Any) -> list[Definition]:
    """Every tool of a decoded list of definitions, of one definition, or of a whole request.

    Tools stand in a request's `tools` (or `functions`), in the `tools` of a namespace, in `functionDeclarations` and in
    input items of type `additional_tools`; the answer to MCP's `tools/list` is read too. An entry whose `type` names
    something else and that carries no schema is a tool that the provider runs: it makes no call to check and is left
    out. A tool keeps its bare name; where two namespaces hold the same name it is called `namespace.name`.

    Raises:
        ToolFormatError: An entry is in none of the known forms; the message says which.
        SchemaError: A schema is not an object.
    """
    if isinstance(definitions, Sequence) and not isinstance(definitions, str | bytes | bytearray):
        return _distinct(_list(definitions, 0))
    if not isinstance(definitions, Mapping):
        raise ToolFormatError(
            f"tools are a list of definitions or a request that has `tools`, not {_kind(definitions)}; "
            "decode JSON text first"
        )
    result = definitions.get("result")
    if isinstance(result, Mapping) and "tools" in result:
        definitions = result
    if definitions.get("type") in _GROUPS or not _is_request(definitions):
        return _distinct(_entries(definitions, 0))
    found: list[Definition] = []
    for key in ("tools", "functions"):
        if definitions.get(key) is not None:
            found += _list(definitions[key], 0)
    return _distinct(_with_additional(found, definitions.get("input")))


def _with_additional(found: list[Definition], items: Any) -> list[Definition]:
    """The tools of a request and of its input items; a later item restates or replaces what an earlier one declared."""
    added: dict[tuple[str | None, str], Definition] = {}
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping) and item.get("type") == "additional_tools":
            added |= {(one.namespace, one.name): one for one in _entries(item, 0)}
    return [one for one in found if (one.namespace, one.name) not in added] + list(added.values())


def _is_request(body: Mapping[str, Any]) -> bool:
    return any(key in body for key in ("tools", "functions", "input", "messages", "contents"))


def _list(definitions: Any, depth: int) -> list[Definition]:
    if not isinstance(definitions, Sequence) or isinstance(definitions, str | bytes | bytearray):
        raise ToolFormatError(f"`tools` is a list of definitions, not {_kind(definitions)}")
    found: list[Definition] = []
    for index, definition in enumerate(definitions):
        try:
            found += _entries(definition, depth)
        except (ToolFormatError, SchemaError) as error:
            raise type(error)(f"tool {index}: {error}") from None
    return found


def _entries(definition: Any, depth: int) -> list[Definition]:
    """The tools of one entry of a list: mostly one, several in a group, none where the provider runs it."""
    if not isinstance(definition, Mapping):
        raise ToolFormatError(f"a tool definition is an object, not {_kind(definition)}; known forms: {FORMS}")
    if depth > MAX_NESTING:
        raise ToolFormatError(f"tools are nested more than {MAX_NESTING} deep")
    kind = definition.get("type")
    if kind in _GROUPS:
        name = definition.get("name")
        inside = _list(definition.get("tools", []), depth + 1)
        return [replace(one, namespace=name) for one in inside] if kind == "namespace" else inside
    declared = [key for key in _DECLARATIONS if key in definition]
    if declared:
        return [_gemini(one) for one in _declarations(definition[declared[0]])]
    if kind == "function":
        inner = definition.get("function")
        return [_function(inner if isinstance(inner, Mapping) else definition)]
    if "input_schema" in definition:
        return [_plain(definition, "input_schema")]
    if "inputSchema" in definition:
        return [_mcp(definition)]
    if kind == "custom":
        inner = definition.get("custom")
        return [_custom(inner if isinstance(inner, Mapping) else definition)]
    if isinstance(kind, str) and kind in BUILTIN:
        name, effect, schema, description = BUILTIN[kind]
        return [Definition(_name(definition, name), schema, description, effect)]
    if kind is None and ("parameters" in definition or "parametersJsonSchema" in definition) and "name" in definition:
        return [_gemini(definition)]
    return _provider_run(definition, kind)


def _provider_run(definition: Mapping[str, Any], kind: Any) -> list[Definition]:
    if kind == "object" or "properties" in definition or "$schema" in definition:
        raise ToolFormatError('this is a bare JSON Schema; wrap it: {"name": "...", "input_schema": {...}}')
    if isinstance(kind, str) and kind:
        return [_plain(definition, "parameters", kind)] if "parameters" in definition else []
    if definition and all(key in _HOSTED for key in definition):
        return []
    if "schema" in definition:
        raise ToolFormatError("a definition names its schema `input_schema` (Anthropic), `parameters` or `inputSchema`")
    raise ToolFormatError(f"this is in none of the known forms: {FORMS}")


def _declarations(value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ToolFormatError(f"functionDeclarations is a list, not {_kind(value)}")
    for one in value:
        if not isinstance(one, Mapping):
            raise ToolFormatError(f"a function declaration is an object, not {_kind(one)}")
    return list(value)


def _function(inner: Mapping[str, Any]) -> Definition:
    return _plain(inner, "parameters")


def _plain(definition: Mapping[str, Any], key: str, default_name: str | None = None) -> Definition:
    name = _name(definition, default_name)
    schema = definition.get(key)
    return Definition(name, NO_ARGUMENTS if schema is None else _schema(name, schema), _description(definition))


def _gemini(definition: Mapping[str, Any]) -> Definition:
    name = _name(definition)
    plain = definition.get("parametersJsonSchema", definition.get("parameters_json_schema"))
    dialect = definition.get("parameters")
    if plain is not None and dialect is not None:
        raise ToolFormatError(f"{name!r} has both parameters and parametersJsonSchema; the two exclude each other")
    schema = plain if plain is not None else json_schema(dialect)
    return Definition(name, NO_ARGUMENTS if schema is None else _schema(name, schema), _description(definition))


def _mcp(definition: Mapping[str, Any]) -> Definition:
    plain = _plain(definition, "inputSchema")
    hints = definition.get("annotations")
    return replace(plain, effect=_effect(hints) if isinstance(hints, Mapping) else None)


def _effect(hints: Mapping[str, Any]) -> Effect | None:
    """A server's own word for it: read-only, or not. MCP's default, where it says neither, is not read-only."""
    if hints.get("readOnlyHint") is True:
        return "read"
    if hints.get("readOnlyHint") is False or hints.get("destructiveHint") is not None:
        return "write"
    return None


def _custom(inner: Mapping[str, Any]) -> Definition:
    name = _name(inner)
    shape = inner.get("format")
    if shape is None or (isinstance(shape, Mapping) and shape.get("type") == "text"):
        return Definition(name, None, _description(inner), grammar=Grammar("text"))
    if isinstance(shape, Mapping) and shape.get("type") == "grammar":
        nested = shape.get("grammar")
        grammar = nested if isinstance(nested, Mapping) else shape
        syntax, text = grammar.get("syntax"), grammar.get("definition")
        if syntax in ("lark", "regex") and isinstance(text, str):
            return Definition(name, None, _description(inner), grammar=Grammar(syntax, text))
    raise ToolFormatError(
        f"custom tool {name!r}: its format is {{type: text}} or "
        "{type: grammar, syntax: lark or regex, definition: text}"
    )


def _name(definition: Mapping[str, Any], default: str | None = None) -> str:
    name = definition.get("name", default)
    if not isinstance(name, str) or not name:
        raise ToolFormatError("a tool needs a name, a string that is not empty")
    return name


def _description(definition: Mapping[str, Any]) -> str:
    text = definition.get("description")
    return text if isinstance(text, str) else ""


def _schema(name: str, schema: Any) -> Mapping[str, Any] | bool:
    if isinstance(schema, Mapping | bool):
        return schema
    raise SchemaError(f"tool {name!r}: its schema is an object, not {_kind(schema)}")


def _distinct(found: list[Definition]) -> list[Definition]:
    """Tools under names of their own: a bare name that stands in two places is told apart by its namespace."""
    shared = Counter(one.name for one in found)
    return [_qualified(one) if shared[one.name] > 1 and one.namespace else one for one in found]


def _qualified(definition: Definition) -> Definition:
    return replace(definition, name=f"{definition.namespace}.{definition.name}")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bytes: "bytes", type(None): "null"}
    return names.get(type(value), type(value).__name__)
