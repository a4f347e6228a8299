"""Custom tools of the OpenAI API: free text held by a Lark or regex grammar, checked against the subset it takes."""

from __future__ import annotations

import re
from typing import Any

from onspec.contract.tool import Grammar, Tool
from onspec.errors import InputError

APPLY_PATCH = r"""start: begin hunk+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?
hunk: add | delete | update
add: "*** Add File: " NAME LF added+
delete: "*** Delete File: " NAME LF
update: "*** Update File: " NAME LF moved? change?
moved: "*** Move to: " NAME LF
change: (place | line)+ last?
place: ("@@" | "@@ " NAME) LF
line: /[-+ ][^\n]*/ LF
last: "*** End of File" LF
added: /\+[^\n]*/ LF
NAME: /[^\n]+/
LF: "\n"
"""
"""The patch language of `apply_patch`, with one reading for each text (an ambiguous one costs engines dearly)."""

MOST_BYTES = 100_000
"""Largest definition that is sent."""

_UNSUPPORTED = (
    (re.compile(r"^\s*%(?!import\s+common\b|ignore\b)\w+", re.MULTILINE), "a directive other than %ignore"),
    (re.compile(r"(?<!\\)\(\?<?[=!]"), "look-around"),
    (re.compile(r"(?<![\\*])[*+?}]\?(?=[^\s|)])"), "a lazy repetition"),
    (re.compile(r"^\s*\??\w+\s*(\.\d+)\s*:", re.MULTILINE), "a priority"),
    (re.compile(r"^\s*\w+\{[\w\s,]+\}\s*:", re.MULTILINE), "a template"),
)
"""What the API's Lark and regex dialects leave out (its guide to context-free grammars)."""


def custom_tool(tool: Tool) -> dict[str, Any]:
    """The tool as the Responses API declares a custom one.

    Raises:
        InputError: The tool has a schema, or its grammar uses what the API does not take.
    """
    if tool.schema is not None or tool.grammar is None:
        raise InputError(f"{tool.name} takes JSON; declare it as a function")
    grammar = tool.grammar
    out: dict[str, Any] = {"type": "custom", "name": tool.name, "description": tool.description}
    if grammar.syntax == "text":
        return {**out, "format": {"type": "text"}}
    check_subset(grammar)
    return {**out, "format": {"type": "grammar", "syntax": grammar.syntax, "definition": grammar.definition}}


def check_subset(grammar: Grammar) -> None:
    """Refuse a grammar that the API would not take.

    Raises:
        InputError: Naming the first thing that is outside the subset.
    """
    text = grammar.definition
    if not text.strip():
        raise InputError("the grammar is empty")
    if len(text.encode()) > MOST_BYTES:
        raise InputError(f"the grammar has more than {MOST_BYTES} bytes")
    rows = _UNSUPPORTED if grammar.syntax == "lark" else _UNSUPPORTED[1:3]
    for pattern, name in rows:
        found = pattern.search(text)
        if found is not None:
            line = text.count("\n", 0, found.start()) + 1
            raise InputError(f"line {line} of the grammar uses {name}, which the API does not take")
    if grammar.syntax == "lark" and not re.search(r"^\s*\??start\s*:", text, re.MULTILINE):
        raise InputError("the grammar has no rule called start")


def free_form(tool: Tool) -> str:
    """The tool's grammar as Lark for the local engine.

    Raises:
        InputError: The tool has a schema.
    """
    if tool.schema is not None or tool.grammar is None:
        raise InputError(f"{tool.name} takes JSON, not free text")
    if tool.grammar.syntax == "lark":
        return tool.grammar.definition
    if tool.grammar.syntax == "regex":
        return "start: /" + tool.grammar.definition.replace("/", r"\/") + "/\n"
    return "start: /(?s:.*)/\n"
