"""What kind of key a model invented."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from onspec.audit import Json
from onspec.contract.view import Views

NUMBERED, SUFFIXED, ALIAS, MATCH, METADATA = "numbered_twin", "suffixed_twin", "alias", "match_option", "metadata"
ECHO, LEVEL, DOTTED, MARKUP, TEXT, OTHER = "schema_echo", "other_level", "dotted", "markup", "text_as_key", "other"

_MATCH = frozenset(
    [
        "requireunique", "unique", "matchcase", "casesensitive", "ignorecase", "forcematchcount", "matchcount",
        "expectedcount", "expectedreplacements", "occurrence", "occurrences", "replaceall", "allowmultiple", "multiple",
        "regex", "isregex", "exact", "exactmatch", "fuzzy", "closeenough", "global", "all", "count", "lineno",
        "linenumber", "startline", "endline", "line", "lines", "offset", "limit", "range",
    ]
)  # fmt: skip
_METADATA = frozenset(
    [
        "id", "type", "kind", "name", "title", "description", "note", "notes", "comment", "comments", "reason",
        "reasoning", "explanation", "purpose", "intent", "cost", "label", "tag", "tags", "status", "priority",
        "summary", "metadata", "meta", "infile", "file", "dummy", "placeholder", "unused", "children", "index",
    ]
)  # fmt: skip
_ECHO = frozenset(
    [
        "additionalproperties", "properties", "required", "items", "schema", "$schema", "$ref", "enum", "oneof",
        "anyof", "allof", "default", "examples", "minitems", "maxitems", "minlength", "maxlength", "format",
    ]
)  # fmt: skip
_ALIASES = (
    frozenset(["path", "file", "filepath", "filename", "absolutepath", "targetfile"]),
    frozenset(["command", "cmd", "script"]),
    frozenset(["oldstring", "oldstr", "oldtext", "search", "find", "original"]),
    frozenset(["newstring", "newstr", "newtext", "replace", "replacement"]),
    frozenset(["content", "contents", "text", "body", "filetext"]),
    frozenset(["pattern", "query", "regex", "search"]),
    frozenset(["replaceall", "replacealloccurrences"]),
    frozenset(["timeout", "timeoutms", "timeoutseconds"]),
    frozenset(["limit", "length", "maxlines", "headlimit", "maxresults"]),
)
_NAME = re.compile(r"[\w.$:/@-]+\Z", re.ASCII)
_SECRET = re.compile(r"(?=(?:\D*\d){4})[A-Za-z0-9+=_-]{24}|\d{9}|(?:sk|pk|gh[opsu]|xox[a-z]|AKIA|eyJ)[-_A-Za-z0-9]{12}")
_IDENTIFIER = re.compile(r"[A-Za-z_$@-][\w.$@\[\]/-]*\Z")


@dataclass(frozen=True, slots=True)
class Invented:
    """One key that the schema does not name.

    Attributes:
        key: The key, safe to print.
        kind: One of the kinds of this module.
        depth: Number of objects and arrays around it; 0 at the top level.
        place: `first`, `middle`, `last` or `only` among the keys of its object.
        inert: Whether its value means nothing: null, empty, false or zero.
    """

    key: str
    kind: str
    depth: int
    place: str
    inert: bool


def invented(pointer: str, arguments: Json, views: Views) -> Invented:
    """Classifies the undeclared key at a JSON Pointer of `arguments`."""
    steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    holder: Any = arguments
    for step in steps[:-1]:
        holder = holder[int(step)] if isinstance(holder, list) else holder[step]
    key = steps[-1]
    names = list(holder)
    at = names.index(key)
    place = "only" if len(names) == 1 else "first" if at == 0 else "last" if at == len(names) - 1 else "middle"
    siblings = _siblings(views, steps[:-1])
    return Invented(printable(key), kind_of(key, siblings, views.names), len(steps) - 1, place, is_inert(holder[key]))


def kind_of(key: str, siblings: Collection[str], declared: Collection[str]) -> str:
    """The kind of an undeclared key.

    Args:
        key: The key.
        siblings: Keys that the schema names at its place.
        declared: Keys that the schema names anywhere.
    """
    if "<" in key or ">" in key:
        return MARKUP
    if len(key) > 64 or not _IDENTIFIER.match(key):
        return TEXT
    stem = re.sub(r"[_-]?\d+\Z", "", key)
    if stem != key and stem in siblings:
        return NUMBERED
    if any(key.startswith(name) and len(name) > 2 and key[len(name) :][:1] in "_-" for name in siblings):
        return SUFFIXED
    folded = _fold(key)
    if any(folded == _fold(name) or any({folded, _fold(name)} <= group for group in _ALIASES) for name in siblings):
        return ALIAS
    if "." in key or "/" in key or "[" in key:
        return DOTTED
    if key in declared:
        return LEVEL
    if folded in _ECHO:
        return ECHO
    if folded in _MATCH:
        return MATCH
    return METADATA if folded in _METADATA or key.startswith("_") else OTHER


def is_inert(value: Json) -> bool:
    """Whether a value means nothing: null, an empty string, array or object, false or zero."""
    return value is None or value is False or value == "" or value == [] or value == {} or value == 0


def printable(key: str) -> str:
    """A key that may be shown: what a model wrote may be long, or a secret, or break a terminal."""
    return key if len(key) <= 48 and _IDENTIFIER.match(key) and not _SECRET.search(key) else f"<{len(key)} characters>"


def tool_label(name: str) -> str:
    """A tool's name as it may be shown."""
    return name if len(name) <= 100 and _NAME.match(name) else f"<{len(name)} characters>"


def _siblings(views: Views, steps: list[str]) -> frozenset[str]:
    places: tuple[str, ...] = ("",)
    for step in steps:
        for view in views.of(places):
            inner = view.properties.get(step)
            if inner is None and step.isdigit():
                inner = view.item_places(int(step))
            if inner:
                places = inner
                break
        else:
            return frozenset()
    return frozenset(name for view in views.of(places) for name in view.properties)


def _fold(key: str) -> str:
    return re.sub(r"[_\-\s]", "", key).lower()
