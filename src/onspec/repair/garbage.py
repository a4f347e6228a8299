"""What stood around the arguments: text that speaks of another tool, or holds a member of the call, is no garbage."""

from __future__ import annotations

import re
from collections.abc import Sequence

from onspec.audit import Violation
from onspec.repair.names import fold, synonyms
from onspec.repair.tolerant import Edit

_TARGETS = (
    re.compile(r"(?:functions?|tools?)[.:]\s*([\w-]+)"),
    re.compile(r"<function=([\w.-]+)>"),
    re.compile(r"\bto=\s*(?:functions\.)?([\w.-]+)"),
    re.compile(r"([\w.-]+)\s*(?:\(|\[ARGS\]|<\|message\|>|:\d+)\s*\Z"),
)
_MEMBER = re.compile(r"([A-Za-z_][\w-]{0,63})[\"'”’`*]*\s*[:=]")
_AROUND = frozenset({"strip_leading_garbage", "strip_trailing_garbage", "strip_fence"})
_WORDS = frozenset({"json", "assistant", "call", "arguments", "tool", "function", "input", "commentary", "analysis"})
_LONGEST = 20_000
"""Characters of text around a call that are looked at; more of it is refused."""


def misread(text: str, edits: Sequence[Edit], tool: str, names: frozenset[str]) -> Violation | None:
    """Why text around the arguments may not be taken off, or None.

    Args:
        text: What the model wrote.
        edits: The edits of reading.
        tool: Name of the tool that was called.
        names: Every key that its schema declares.
    """
    for edit in edits:
        if edit.rule not in _AROUND:
            continue
        garbage = text[edit.start : edit.end]
        if len(garbage) > _LONGEST:
            return Violation("trailing_text", "", "there is too much text around the arguments")
        if edit.rule == "strip_leading_garbage" and _other_tool(garbage, tool):
            return Violation("other_tool", "", "the text before the arguments names another tool", expected=tool)
        for match in _MEMBER.finditer(garbage):
            if any(fold(match[1]) == fold(name) or synonyms(match[1], name) for name in names):
                message = "the text around the arguments holds a key of the call"
                return Violation("trailing_text", "", message, hint=match[1])
    return None


def _other_tool(garbage: str, tool: str) -> bool:
    for pattern in _TARGETS:
        for match in pattern.finditer(garbage):
            target = match[1].rsplit(".", 1)[-1]
            if fold(target) != fold(tool) and target not in _WORDS:
                return True
    return False
