"""BAML's schema-aligned parser, driven by classes made from the schema."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

from baml_py import BamlRuntime
from benchmarks.peers.peer import Parse, Peer, validated
from pydantic import BaseModel, ConfigDict

_SCALARS = {"string": "string", "integer": "int", "number": "float", "boolean": "bool", "null": "null"}
_CLIENT = 'client<llm> None_ {\n  provider openai\n  options {\n    model "none"\n    api_key "none"\n  }\n}\n'
_FUNCTION = 'function Read(text: string) -> {} {{\n  client None_\n  prompt #"{{{{ text }}}}"#\n}}\n'


class _Writer:
    """BAML source for a schema, one class an object."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.classes: dict[str, str] = {}
        self.named: dict[str, str] = {}

    def type(self, schema: Any) -> str:
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            if name not in self.named:
                self.named[name] = f"C{len(self.classes)}"
                self.type_of_object(self.root["$defs"][name], self.named[name])
            return self.named[name]
        if "enum" in schema:
            return "(" + " | ".join(json.dumps(one) for one in schema["enum"]) + ")"
        if "anyOf" in schema:
            return "(" + " | ".join(self.type(one) for one in schema["anyOf"]) + ")"
        kind = schema.get("type")
        if isinstance(kind, list):
            return "(" + " | ".join(_SCALARS[one] for one in kind) + ")"
        if kind == "array":
            return f"{self.type(schema['items'])}[]"
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"map<string, {self.type(schema['additionalProperties'])}>"
        if kind == "object":
            return self.type_of_object(schema, f"C{len(self.classes)}")
        return _SCALARS[kind]

    def type_of_object(self, schema: dict[str, Any], name: str) -> str:
        self.classes[name] = ""
        required = schema.get("required", ())
        lines = []
        for index, (key, one) in enumerate(schema.get("properties", {}).items()):
            optional = "" if key in required else "?"
            lines.append(f"  f{index} {self.type(one)}{optional} @alias({json.dumps(key)})\n")
        self.classes[name] = f"class {name} {{\n{''.join(lines)}}}\n"
        return name


class _Object(BaseModel):
    model_config = ConfigDict(extra="allow")


def _make(schema: dict[str, Any]) -> Parse:
    writer = _Writer(schema)
    top = writer.type(schema)
    source = _CLIENT + "".join(writer.classes.values()) + _FUNCTION.format(top)
    runtime = BamlRuntime.from_files("baml_src", {"baml_src/tool.baml": source}, {})
    module = ModuleType("classes")
    for name in writer.classes:
        setattr(module, name, type(name, (_Object,), {}))
    context = runtime.create_context_manager()

    def parse(text: str) -> Any:
        value = runtime.parse_llm_response("Read", text, module, module, module, False, context, None, None, {})
        return _plain(value, schema, schema)

    return validated(parse)(schema)


def _plain(value: Any, schema: Any, root: dict[str, Any]) -> Any:
    """Its objects as dicts under the keys of the schema; an optional key that it leaves None is absent."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if isinstance(value, _Object):
        keys = list(schema["properties"])
        members = {keys[int(name[1:])]: one for name, one in value if name[1:].isdigit()}
        required = schema.get("required", ())
        return {
            key: _plain(one, schema["properties"][key], root)
            for key, one in members.items()
            if one is not None or key in required
        }
    if isinstance(value, list):
        return [_plain(one, schema.get("items", {}), root) for one in value]
    return value


PEERS = [Peer("baml-py + validator", "baml-py", _make)]
