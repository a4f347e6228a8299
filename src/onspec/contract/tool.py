"""One tool: its name, its schema, and what calling it does to the world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Self

from onspec.contract.definition import EFFECTS, Definition, Effect, Grammar
from onspec.contract.effects import effect_of
from onspec.contract.formats import read
from onspec.contract.free_text import FreeText, judge_of
from onspec.contract.schema import Schema
from onspec.contract.view import Views
from onspec.errors import SchemaError, ToolFormatError

__all__ = ["EFFECTS", "Effect", "Grammar", "Tool"]


class Tool:
    """A tool and its contract.

    `free_text` judges the text of a custom tool with a grammar; its `unenforced` says why it does not, where it can't.

    Args:
        name: The name by which a model calls it.
        schema: JSON Schema of the arguments. None for a custom tool, whose input is free text.
        description: What it does, for a model.
        aliases: Other spellings of keys, alias to declared key; they apply at any depth where the declared key is
            declared and absent and the alias is not declared.
        effect: `read`, `write` or `exec`; None where it is not known, which counts as `write`.
        grammar: The grammar of a custom tool.

    Raises:
        SchemaError: The schema cannot be used.
        ToolFormatError: The name is empty, or an alias or effect is not of the kind above.
    """

    __slots__ = ("aliases", "description", "effect", "free_text", "grammar", "is_valid", "name", "schema", "views")

    def __init__(
        self,
        name: str,
        schema: Mapping[str, Any] | bool | None,
        *,
        description: str = "",
        aliases: Mapping[str, str] | None = None,
        effect: Effect | None = None,
        grammar: Grammar | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ToolFormatError("a tool needs a name, a string that is not empty")
        if effect is not None and effect not in EFFECTS:
            raise ToolFormatError(f"effect is one of {', '.join(EFFECTS)}, not {effect!r}")
        aliases = aliases or {}
        if not all(isinstance(key, str) and isinstance(value, str) for key, value in aliases.items()):
            raise ToolFormatError("aliases map a string (the other spelling) to a string (the declared key)")
        self.name = name
        self.description = description
        self.aliases: Mapping[str, str] = MappingProxyType(dict(aliases))
        self.effect: Effect | None = effect
        self.grammar = grammar if schema is not None or grammar is not None else Grammar("text")
        free = self.grammar if schema is None else None
        self.free_text: FreeText | None = judge_of(free) if free is not None else None
        self.schema: Schema | None = None
        self.views = Views(Schema(True))
        self.is_valid: Callable[[Any], bool] = _is_text
        if schema is not None:
            try:
                self.schema = Schema(dict(schema) if isinstance(schema, Mapping) else schema)
            except SchemaError as error:
                raise SchemaError(f"tool {name!r}: {error}") from None
            self.is_valid = self.schema.judge.is_valid
            self.views = Views(self.schema)

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    @classmethod
    def from_json(cls, definition: Mapping[str, Any], **options: Any) -> Self:
        """A tool from one definition in the form of Anthropic, OpenAI Chat, OpenAI Responses, Gemini or MCP.

        A text editor, shell or patch tool that Anthropic or OpenAI declare by its type alone gets the schema behind it.
        The effect is what MCP annotations say, else that of a known tool of the name, else unknown.

        Args:
            definition: The decoded definition.
            options: Keyword arguments of `Tool` that override what the definition says (`aliases`, `effect`).

        Raises:
            ToolFormatError: The definition is in none of these forms, or the provider runs the tool itself.
            SchemaError: Its schema cannot be used.
        """
        return cls.from_definition(read(definition), **options)

    @classmethod
    def from_definition(cls, definition: Definition, **options: Any) -> Self:
        """A tool from facts already read; `options` override them.

        Raises:
            SchemaError: The schema cannot be used.
        """
        facts: dict[str, Any] = {
            "name": definition.name,
            "schema": definition.schema,
            "description": definition.description,
            "effect": definition.effect or effect_of(definition.name, definition.schema),
            "grammar": definition.grammar,
        }
        return cls(**{**facts, **options})

    @classmethod
    def from_function(cls, function: Callable[..., Any], **options: Any) -> Self:
        """A tool from a typed function: its name, docstring and type hints become name, description and schema.

        A docstring in Google, NumPy or Sphinx style describes the parameters. The object of arguments is closed, and so
        are dataclasses and typed dicts, which take no other keys.

        Args:
            function: Parameters may be of any type pydantic knows: scalars, containers, Literal, Enum, dataclasses,
                TypedDict, pydantic models, Annotated with Field. `*args`, `**kwargs`, positional-only parameters and
                parameters without a type hint are refused.
            options: Keyword arguments of `Tool` that override what the function says.

        Raises:
            ToolFormatError: A parameter has no type that JSON Schema can express.
            MissingExtra: pydantic is not installed.
        """
        define = import_module("onspec.contract.pydantic_function").define
        definition: Definition = define(function, options.get("name"))
        return cls.from_definition(definition, **options)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
