"""Custom tools: free text, held by a Lark or regex grammar of its own, inside the grammar of a reply."""

from __future__ import annotations

from typing import Any

from onspec.contract.tool import Tool

FREE_TEXT: dict[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
"""Arguments of a custom tool in a dialect that knows only objects."""


def definition(tool: Tool) -> str | None:
    """The rule body that is the tool's own grammar, or None where any text will do."""
    if tool.grammar is None or tool.grammar.syntax == "text":
        return None
    if tool.grammar.syntax == "lark":
        return f"%lark {{\n{tool.grammar.definition}\n}}"
    return "%lark {\nstart: /" + tool.grammar.definition.replace("/", r"\/") + "/\n}"


def document(tool: Tool) -> Any:
    """The schema of the tool's arguments; for a custom tool an object with its text, followed where it is a regex."""
    if tool.schema is not None:
        return tool.schema.document
    if tool.grammar is None or tool.grammar.syntax != "regex":
        return FREE_TEXT
    text = {"type": "string", "pattern": f"^(?:{tool.grammar.definition})$"}
    return {**FREE_TEXT, "properties": {"input": text}}
