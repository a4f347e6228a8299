"""Call markup inside a string, as far as it can be seen while the string arrives."""

from __future__ import annotations

import re

from onspec.audit import Json
from onspec.repair.names import fold

BEGUN = re.compile(r"<(?:/[^<>\"\\\s]{0,80})?\Z")
"""A closing tag that has begun and may become leaked call markup."""
CLOSER = re.compile(r"</([^<>\"\\\s]{1,80})>(?:\s|\\[nrt])*\Z")
"""A closing tag at the end of a string."""
MARKUP = re.compile(
    r"</?\s*(?:antml:|｜DSML｜)?(?:parameter|invoke|function_calls|function|tool_call|tool_calls|arg_value|arg_key)\b"
)
"""Call markup inside a string: the rest waits for the judge of the whole call."""
KEYS = re.compile(r'"([^"\\]{1,80})"\s*:')
TAGS = re.compile(r"</([^<>\"\\\s]{1,80})>")
MAX_DEPTH = 128
"""How deep a schema is looked into for names of keys."""


def bare(tag: str) -> str:
    return fold(tag.rpartition(":")[2])


def closes(text: str) -> bool:
    """Whether a value's text holds a closing tag that is named as one of its own keys."""
    if "</" not in text:
        return False
    keys = {fold(key) for key in KEYS.findall(text)}
    return any(bare(tag) in keys for tag in TAGS.findall(text))


def property_names(node: Json, depth: int) -> set[str]:
    if depth > MAX_DEPTH or not isinstance(node, dict | list):
        return set()
    names: set[str] = set()
    if isinstance(node, dict) and isinstance(node.get("properties"), dict):
        names.update(node["properties"])
    for sub in node.values() if isinstance(node, dict) else node:
        names |= property_names(sub, depth + 1)
    return names
