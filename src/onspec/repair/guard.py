"""What is valid and must not run all the same: values that swallowed a parameter, or end in leaked call markup."""

from __future__ import annotations

import re

from onspec.audit import Json, Path, Violation, pointer
from onspec.contract.view import Places, Views
from onspec.repair.names import fold
from onspec.repair.skeleton import ends_in_member

_PARAMETER = re.compile(
    r"<(?:[\w.-]+:)?(?:parameter|param|argument|arg)(?:\s+name\s*=\s*[\"']?|=)([\w.-]{1,64})[\"']?\s*>|<arg_key>\s*([\w.-]{1,64})\s*</arg_key>"
)
_CLOSERS = re.compile(r"(?:</(?:[\w.-]+:)?[A-Za-z_][\w.-]*>\s*)+\Z")
_CLOSER = re.compile(r"</((?:[\w.-]+:)?([A-Za-z_][\w.-]*))>")
_PROTOCOL = frozenset(
    {
        "parameter",
        "invoke",
        "function_calls",
        "tool_call",
        "tool_calls",
        "arg_value",
        "arg_key",
        "tool_use",
        "function_call",
    }
)
_MEMBER = re.compile(r"""",\s*"([\w.-]{1,64})"\s*:\s*"?[^"{}\[\]]*\Z""")
"""A JSON member at the end of a string whose own closing quote was escaped: `x", "limit": "5`."""

_WINDOW = 512
"""How many characters at the end of a value are looked at for leaked closers."""


def leaked(value: Json, views: Views, writes: bool) -> Violation | None:
    """The first value that swallowed a declared parameter, or, for a tool that writes or runs, ends in leaked markup.

    Args:
        value: Arguments that fit the schema.
        views: The tool's schema.
        writes: Whether the tool writes, executes or has no known effect.
    """
    stack: list[tuple[Path, Json, Places, dict[str, Json] | None, Places]] = [((), value, ("",), None, ())]
    while stack:
        path, item, places, parent, above = stack.pop()
        if isinstance(item, str):
            leak = _swallowed(item, parent, above, views, path)
            if leak is None and writes:
                leak = _ends_in_markup(item, path)
            if leak is not None:
                return leak
        elif isinstance(item, dict):
            views_here = views.of(places)
            for key, inner in item.items():
                if not _suspicious(inner):
                    continue
                sub = next((found for view in views_here if (found := view.places_of(key))), ())
                stack.append(((*path, key), inner, sub, item, places))
        elif isinstance(item, list):
            view = views.of(places)[0] if places else None
            for index, inner in enumerate(item):
                if _suspicious(inner):
                    stack.append(((*path, index), inner, view.item_places(index) if view else (), parent, above))
    return None


def _suspicious(value: Json) -> bool:
    """Whether a value can hold leaked markup or a swallowed member."""
    if isinstance(value, str):
        return "<" in value or ends_in_member(value)
    return isinstance(value, dict | list)


def _swallowed(text: str, parent: dict[str, Json] | None, places: Places, views: Views, path: Path) -> Violation | None:
    """A declared and absent parameter that stands, as markup or as JSON, inside the string before it."""
    if parent is None or not places:
        return None
    names = [match[1] or match[2] for match in _PARAMETER.finditer(text)]
    member = _MEMBER.search(text, max(0, text.rfind('"') - _WINDOW)) if ends_in_member(text) else None
    if member is not None and text.count('"', 0, member.start()) % 2 == 0:
        names.append(member[1])
    for name in names:
        for view in views.of(places):
            for declared in view.properties:
                if declared not in parent and fold(declared) == fold(name):
                    message = "the value swallowed the next parameter"
                    return Violation(
                        "swallowed_parameter", pointer(path), message, hint=f"send {declared} as its own key"
                    )
    return None


def _ends_in_markup(text: str, path: Path) -> Violation | None:
    if not text.rstrip().endswith(">"):
        return None
    tail = _CLOSERS.search(text[-_WINDOW:])
    if tail is None:
        return None
    own = fold(str(path[-1])) if path else ""
    names = [(full, bare) for full, bare in _CLOSER.findall(tail[0])]
    leaks = [full for full, bare in names if bare in _PROTOCOL or fold(bare) == own]
    for full in leaks:
        opened = len(re.findall(rf"<{re.escape(full)}(?=[\s=>])", text))
        if text.count(f"</{full}>") > opened:
            return Violation(
                "leaked_markup",
                pointer(path),
                "the value ends in markup of the call itself",
                hint="end the value before it",
            )
    return None
