"""pydantic models made from the schema, unknown keys forbidden or ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Union

from benchmarks.peers.peer import Parse, Peer
from pydantic import BaseModel, ConfigDict, Field, create_model

_SCALARS: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None}
_LIMITS = {
    "minItems": "min_length",
    "maxItems": "max_length",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minimum": "ge",
    "maximum": "le",
}


def _type(schema: Any, extra: Literal["forbid", "ignore"], root: dict[str, Any], made: dict[str, Any]) -> Any:
    """The Python type that a JSON Schema (of the kinds in the case file) describes."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        if name not in made:
            made[name] = None
            made[name] = _type(root["$defs"][name], extra, root, made)
            if isinstance(made[name], type):
                made[name].model_rebuild(_types_namespace=made)
        return made[name] or name
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    if "anyOf" in schema:
        return Union[tuple(_type(one, extra, root, made) for one in schema["anyOf"])]  # noqa: UP007  # built from data
    kind = schema.get("type")
    if isinstance(kind, list):
        return Union[tuple(_SCALARS[one] for one in kind)]  # noqa: UP007  # built from data
    if kind == "array":
        return _limited(list[_type(schema["items"], extra, root, made)], schema)  # type: ignore[misc]  # built from data
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return dict[str, _type(schema["additionalProperties"], extra, root, made)]  # type: ignore[misc]  # built from data
    if kind == "object":
        return _model(schema, extra, root, made)
    return _limited(_SCALARS[kind], schema) if kind else Any


def _limited(plain: Any, schema: dict[str, Any]) -> Any:
    limits = {name: schema[keyword] for keyword, name in _LIMITS.items() if keyword in schema}
    return Annotated[plain, Field(**limits)] if limits else plain


def _model(
    schema: dict[str, Any], extra: Literal["forbid", "ignore"], root: dict[str, Any], made: dict[str, Any]
) -> Any:
    required = set(schema.get("required", ()))
    fields: dict[str, Any] = {
        f"f{index}": (
            _type(one, extra, root, made),
            Field(alias=key) if key in required else Field(default=None, alias=key),
        )
        for index, (key, one) in enumerate(schema.get("properties", {}).items())
    }
    kept: Any = extra if schema.get("additionalProperties") is False else "allow"
    return create_model("Arguments", __config__=ConfigDict(extra=kept), **fields)


def _make(extra: Literal["forbid", "ignore"]) -> Any:
    def make(schema: dict[str, Any]) -> Parse:
        model: type[BaseModel] = _type(schema, extra, schema, {})
        return lambda text: model.model_validate_json(text).model_dump(exclude_unset=True, by_alias=True)

    return make


PEERS = [
    Peer("pydantic, extra=forbid", "pydantic", _make("forbid")),
    Peer("pydantic, extra=ignore", "pydantic", _make("ignore")),
]
