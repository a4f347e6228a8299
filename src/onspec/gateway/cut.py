"""A call that must not run, because it was cut or is refused too late, turned into one that its own tool refuses."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from onspec.check import check
from onspec.contract.tool import Tool
from onspec.repair.policy import Policy
from onspec.repair.stream import ArgumentStream

MARK = "INVALID_JSON"
"""The key under which Anthropic's documentation keeps arguments that could not be read."""
CUT_OFF = "cut off before its end and not run; send the whole call again"


def marked(tool: Tool | None, raw: str) -> dict[str, Any] | None:
    """Arguments that say that a call was cut, and with which nobody runs its tool.

    Args:
        tool: The contract.
        raw: What came of the call.

    Returns:
        `{"INVALID_JSON": raw}`, with members of the wrong type where the tool would run without them; None where the
        contract takes anything, so that nothing can be refused.
    """
    if tool is None or tool.schema is None:
        return None
    for keys in ((), _declared(tool)):
        made = {MARK: raw, **wrong(tool, keys)}
        if hopeless(tool, made):
            return made
    return None


def spoiled(tool: Tool | None, stream: ArgumentStream, sent: int, why: str = CUT_OFF) -> str | None:
    """What to send after the first `sent` characters of a call so that nobody runs it; `why` is for the model.

    The text so far is closed, and every member of it stands once more, with a value of another type: in JSON the last
    of equal keys counts, and the whole is JSON, so no reader has to guess.

    Returns:
        The text; None where the contract takes anything, or the text so far cannot be closed.
    """
    if tool is None or tool.schema is None:
        return None
    if not sent:
        made = marked(tool, stream.text)
        return None if made is None else json.dumps(made)
    for keys in (stream.members(), [*stream.members(), *_declared(tool)]):
        rest = stream.closing(sent, wrong(tool, keys, why))
        if rest is not None and hopeless(tool, json.loads(stream.passed(sent) + rest)):
            return rest
    return None


def wrong(tool: Tool, keys: Iterable[str], why: str = CUT_OFF) -> dict[str, Any]:
    """For each declared key a value that it does not take and that says why; keys that take anything are left out."""
    views = tool.views
    values: tuple[Any, ...] = ({MARK: why}, [[MARK, why]], None)
    found = {}
    for key in keys:
        places = next((known for view in views.of(("",)) if (known := view.places_of(key)) is not None), None)
        if places:
            refused = [value for value in values if not views.valid(value, places)]
            found.update({key: refused[0]} if refused else {})
    return found


def hopeless(tool: Tool, value: Any) -> bool:
    """Whether arguments are refused as they are, without their undeclared keys, and after any repair."""
    if not isinstance(value, dict) or tool.is_valid(value):
        return False
    declared = {key: item for key, item in value.items() if key in _declared(tool)}
    return not tool.is_valid(declared) and not check(tool, value, Policy.lenient()).ok


def _declared(tool: Tool) -> list[str]:
    return list(dict.fromkeys(key for view in tool.views.of(("",)) for key in view.properties))
