"""The definition of a tool from a typed Python function, by pydantic."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from functools import partial, reduce
from operator import or_
from typing import Annotated, Any

from onspec.contract import docstring
from onspec.contract.definition import Definition
from onspec.errors import MissingExtra, ToolFormatError

try:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError
    from pydantic.fields import FieldInfo
    from pydantic.json_schema import GenerateJsonSchema
    from pydantic_core import PydanticSerializationError, to_jsonable_python
    from typing_extensions import TypedDict
except ImportError:
    raise MissingExtra("pydantic", "pydantic") from None

_REFUSED = {
    inspect.Parameter.VAR_POSITIONAL: "takes any number of values",
    inspect.Parameter.VAR_KEYWORD: "takes any keys",
    inspect.Parameter.POSITIONAL_ONLY: "cannot be passed by name",
}
_ADVICE = "bind it with functools.partial, or pass onspec a function without it"


class _Closed(GenerateJsonSchema):
    """Dataclasses and typed dicts closed, as they are in Python; no titles made up from names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        return _close(super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
        return _close(super().typed_dict_schema(schema))


def _close(schema: dict[str, Any]) -> dict[str, Any]:
    if "properties" in schema:
        schema.setdefault("additionalProperties", False)
    return schema


def define(function: Callable[..., Any], name: str | None = None) -> Definition:
    """What a function's name, docstring and type hints say of it as a tool.

    Args:
        function: The function, or anything callable that has a signature.
        name: The tool's name; the function's own by default.

    Raises:
        ToolFormatError: A parameter has no type hint, a type that JSON Schema cannot express, or cannot be passed by
            name; or a type hint names something that does not exist.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ToolFormatError(f"not a function with a readable signature: {error}") from None
    bare, bound = _bare(function)
    name = name or getattr(bare, "__name__", None) or type(bare).__name__
    if name == "<lambda>":
        raise ToolFormatError("a lambda has no name; pass one: Tool.from_function(..., name='...')")
    hints = _hints(bare, name)
    text, described = docstring.parse(inspect.getdoc(bare))
    adapters: list[tuple[str, Any, TypeAdapter[Any]]] = []
    required: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name in bound:
            continue
        if parameter.kind in _REFUSED:
            raise ToolFormatError(f"{name}: parameter {parameter.name!r} {_REFUSED[parameter.kind]}; {_ADVICE}")
        if parameter.name not in hints:
            if isinstance(bare, type) and hasattr(bare, "model_json_schema"):
                raise ToolFormatError(
                    f"{name} is a pydantic model, not a function: Tool({name!r}, {name}.model_json_schema())"
                )
            raise ToolFormatError(f"{name}: parameter {parameter.name!r} has no type hint; give it one")
        adapters.append((parameter.name, "validation", _adapter(name, parameter, hints[parameter.name])))
        if _is_required(parameter):
            required.append(parameter.name)
    schema = _schema(name, signature, adapters, described)
    schema["required"] = required
    return Definition(name, schema, text)


def _bare(function: Callable[..., Any]) -> tuple[Any, set[str]]:
    """What carries name, docstring and hints, under partials and decorators; and the parameters that partials bind."""
    bare: Any = function
    bound: set[str] = set()
    while isinstance(bare, partial):
        bound |= bare.keywords.keys()
        bare = bare.func
    return inspect.unwrap(bare), bound


def _hints(bare: Any, name: str) -> dict[str, Any]:
    target = bare.__init__ if inspect.isclass(bare) else bare if inspect.isroutine(bare) else bare.__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except NameError as error:
        raise ToolFormatError(f"{name}: a type hint names what does not exist: {error}") from None
    except TypeError as error:
        raise ToolFormatError(f"{name}: a type hint cannot be read: {error}") from None


def _is_required(parameter: inspect.Parameter) -> bool:
    default = parameter.default
    return default is inspect.Parameter.empty or (isinstance(default, FieldInfo) and default.is_required())


def _adapter(name: str, parameter: inspect.Parameter, hint: Any) -> TypeAdapter[Any]:
    default = parameter.default
    hint = _readable(hint, {})
    try:
        return TypeAdapter(Annotated[hint, default] if isinstance(default, FieldInfo) else hint)
    except PydanticUserError as error:
        if error.code == "typed-dict-version":
            raise ToolFormatError(f"{name}: parameter {parameter.name!r}: {error.message}") from None
        raise ToolFormatError(_inexpressible(name, parameter.name, hint)) from None


def _readable(hint: Any, seen: dict[Any, Any]) -> Any:
    """The type with each `typing.TypedDict`, which pydantic reads from Python 3.12 on only, as one it always reads."""
    if typing.is_typeddict(hint):
        if hint not in seen:
            seen[hint] = hint  # one that refers to itself stays as it is there
            keys = typing.get_type_hints(hint, include_extras=True)
            optional = hint.__optional_keys__
            fields = {
                key: _optional(_readable(value, seen)) if key in optional else _readable(value, seen)
                for key, value in keys.items()
            }
            seen[hint] = TypedDict(hint.__name__, fields)  # type: ignore[operator]  # built from data, not from a literal
        return seen[hint]
    arguments = typing.get_args(hint)
    origin = typing.get_origin(hint)
    if not arguments or origin is typing.Literal:
        return hint
    if origin is Annotated:
        return Annotated[(_readable(arguments[0], seen), *arguments[1:])]
    read = [[_readable(one, seen) for one in a] if isinstance(a, list) else _readable(a, seen) for a in arguments]
    if read == list(arguments):
        return hint
    if origin in (typing.Union, types.UnionType):
        return reduce(or_, read)
    return origin[tuple(read)] if origin is not None else hint


def _optional(hint: Any) -> Any:
    return hint if typing.get_origin(hint) in (typing.Required, typing.NotRequired) else typing.NotRequired[hint]


def _inexpressible(name: str, parameter: str, hint: Any) -> str:
    return f"{name}: parameter {parameter!r} has the type {hint!r}, which JSON Schema cannot express; {_ADVICE}"


def _schema(
    name: str,
    signature: inspect.Signature,
    adapters: list[tuple[str, Any, TypeAdapter[Any]]],
    described: dict[str, str],
) -> dict[str, Any]:
    try:
        found, shared = TypeAdapter.json_schemas(adapters, schema_generator=_Closed)
    except PydanticUserError:
        raise ToolFormatError(_culprit(name, adapters)) from None
    properties: dict[str, Any] = {}
    for parameter, _, _ in adapters:
        one = dict(found[parameter, "validation"])
        if parameter in described and "description" not in one:
            one["description"] = described[parameter]
        default = _default(signature.parameters[parameter].default)
        properties[parameter] = {**one, **default}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if shared.get("$defs"):
        schema["$defs"] = shared["$defs"]
    return schema


def _culprit(name: str, adapters: list[tuple[str, Any, TypeAdapter[Any]]]) -> str:
    for parameter, _, adapter in adapters:
        try:
            adapter.json_schema(schema_generator=_Closed)
        except PydanticUserError:
            return _inexpressible(name, parameter, adapter._type)
    return f"{name}: its parameters have types that JSON Schema cannot express"


def _default(default: Any) -> dict[str, Any]:
    """`default` for the schema, where there is one that JSON can say."""
    if default is inspect.Parameter.empty or isinstance(default, FieldInfo):
        return {}
    try:
        return {"default": to_jsonable_python(default)}
    except (PydanticSerializationError, ValueError):
        return {}
