"""Tools as the TypeScript-like namespace that harmony's prompts carry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset


def namespace(name: str, tools: Toolset, description: str = "") -> str:
    """The namespace with every tool as a function type; property order is kept."""
    lines = [f"## {name}", ""]
    lines += [f"// {line}" for line in description.splitlines()]
    lines += [f"namespace {name} {{", ""]
    for tool in tools.values():
        lines += _function(tool)
    lines.append(f"}} // namespace {name}")
    return "\n".join(lines)


def _function(tool: Tool) -> list[str]:
    lines = [f"// {line}" for line in tool.description.splitlines()]
    document = tool.schema.document if tool.schema is not None else {}
    found = document.get("properties") if isinstance(document, Mapping) else None
    if not isinstance(found, Mapping) or not found:
        return [*lines, f"type {tool.name} = () => any;", ""]
    required = document.get("required") if isinstance(document, Mapping) else ()
    lines.append(f"type {tool.name} = (_: {{")
    for key, schema in found.items():
        lines += _property(key, schema, key in (required or ()), "")
    return [*lines, "}) => any;", ""]


def _property(key: str, schema: Any, required: bool, indent: str) -> list[str]:
    schema = schema if isinstance(schema, Mapping) else {}
    lines = []
    for word in ("title", "description"):
        if isinstance(schema.get(word), str):
            lines += [f"{indent}// {line}" for line in schema[word].splitlines()]
    examples = schema.get("examples")
    if isinstance(examples, list) and examples:
        lines.append(f"{indent}// Examples:")
        lines += [f"{indent}// - {json.dumps(example, ensure_ascii=False)}" for example in examples]
    written = f"{indent}{key}{'' if required else '?'}: {type_of(schema, indent)},"
    if "default" in schema and schema["default"] is not None:
        default = schema["default"]
        text = default if isinstance(default, str) and "enum" in schema else json.dumps(default, ensure_ascii=False)
        written += f" // default: {text}"
    return [*lines, written]


def type_of(schema: Any, indent: str = "") -> str:
    """The type that a schema stands for; `any` where there is no plain one."""
    if not isinstance(schema, Mapping):
        return "any"
    for word in ("oneOf",):
        if isinstance(schema.get(word), list):
            return " | ".join(type_of(arm, indent) for arm in schema[word])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_plain(one) for one in kind)
    if kind == "object":
        return _object(schema, indent)
    if kind == "string":
        choices = schema.get("enum")
        if isinstance(choices, list) and choices:
            return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices if isinstance(choice, str))
        return "string"
    if kind == "array":
        inner = type_of(schema["items"], indent) if "items" in schema else "any"
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    return _plain(kind)


def _plain(kind: Any) -> str:
    if kind in ("number", "integer"):
        return "number"
    return kind if kind in ("string", "boolean", "null", "object") else "Array<any>" if kind == "array" else "any"


def _object(schema: Mapping[str, Any], indent: str) -> str:
    found = schema.get("properties")
    if not isinstance(found, Mapping) or not found:
        return "object"
    required = schema.get("required") or ()
    inner = indent + "    "
    lines = ["{"]
    for key, value in found.items():
        lines += _property(key, value, key in required, inner)
    return "\n".join((*lines, f"{indent}}}"))
