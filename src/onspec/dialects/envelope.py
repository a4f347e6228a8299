"""A call as a JSON object with a name and arguments, alone or in a list."""

from __future__ import annotations

import re

import orjson

from onspec.dialects.draft import Draft, Fault, Note
from onspec.dialects.scan import elements, members, undouble

NAMES = ("name", "tool_name", "function_name", "tool", "function")
ARGUMENTS = ("arguments", "parameters", "args", "input", "params")
IDS = ("id", "tool_call_id", "call_id")
HARMLESS = frozenset({"type", "index", *IDS})
MAX_NESTED = 8
"""Lists in lists that are followed when a list of calls is nested too deeply."""


def read_values(
    text: str,
    start: int,
    end: int,
    names: tuple[str, ...] = ("name",),
    arguments: tuple[str, ...] = ("arguments",),
    *,
    keyed: bool = False,
    string_arguments: bool = False,
) -> tuple[list[Draft], list[Note]]:
    """Drafts of the object, or of the objects in the list, at `start`; notes on the list itself.

    Args:
        names, arguments: The keys this dialect writes.
        keyed: Whether an object is `{name: arguments}` instead.
        string_arguments: Whether arguments may be the JSON text of an object, without this being a fault.
    """
    drafts: list[Draft] = []
    notes: list[Note] = []
    places = [(start, end)]
    if text[start : start + 1] == "[":
        places, depth = list(elements(text, start, end)), 0
        while len(places) == 1 and text[places[0][0]] == "[" and depth < MAX_NESTED:
            notes.append(Note("list_flattened", places[0][0], places[0][1]))
            places, depth = list(elements(text, *places[0])), depth + 1
    for at, stop in places:
        if text[at] != "{":
            drafts.append(Draft("", "", at, stop, fault=Fault("no_name")))
            continue
        drafts.append(read_envelope(text, at, stop, names, arguments, keyed=keyed, string_arguments=string_arguments))
    return drafts, notes


def read_envelope(
    text: str,
    start: int,
    end: int,
    names: tuple[str, ...] = ("name",),
    arguments: tuple[str, ...] = ("arguments",),
    *,
    keyed: bool = False,
    string_arguments: bool = False,
) -> Draft:
    """The draft of one object. What it holds besides name and arguments must be harmless, or the draft is at fault."""
    draft = Draft("", "{}", start, end)
    value, base = text, start
    if text.startswith("{{", start):
        single = undouble(text[start:end])
        if single is not None:
            draft.notes.append(Note("json_double_braces", start, end))
            value, base = single, 0
    found: dict[str, str] = {}
    clash = ""
    for key, at, stop in members(value, base):
        if value is text and at >= end:
            break
        stop = min(stop, end) if value is text else stop
        written = value[at:stop]
        if key in found and found[key] != written:
            clash = key
        found[key] = written
    if keyed and len(found) == 1:
        draft.name, draft.body = next(iter(found.items()))
        return draft
    inner = found.get("function", "")
    if inner.startswith("{") and "name" not in found:
        unwrapped = read_envelope(inner, 0, len(inner), names, arguments, string_arguments=string_arguments)
        notes = [Note("envelope_unwrapped", start, end)]
        return Draft(unwrapped.name, unwrapped.body, start, end, notes, unwrapped.fault)
    name_key = _pick(found, names, NAMES)
    body_key = _pick(found, arguments, ARGUMENTS)
    if name_key is None or found[name_key][:1] not in "\"'" or not found[name_key]:
        draft.fault = Fault("no_name")
        return draft
    draft.name = unquote(found[name_key])
    draft.id = next((unquote(found[key]) for key in IDS if found.get(key, "").startswith('"')), None)
    for written_key, native in ((name_key, names), (body_key, arguments)):
        if written_key is not None and written_key not in native:
            draft.notes.append(Note("envelope_key_fixed", start, end, written_key, native[0]))
    extra = [key for key in found if key not in (name_key, body_key) and key not in HARMLESS]
    if clash in (name_key, body_key) and clash:
        draft.fault = Fault("ambiguous_call", f"two values for {clash}")
    elif body_key is None:
        if extra:
            draft.fault = Fault("no_arguments", f"{len(extra)} keys beside the name, none of them {arguments[0]}")
        else:
            draft.notes.append(Note("arguments_inferred", start, end, "", "{}"))
    else:
        draft.body = found[body_key]
        if string_arguments and draft.body.startswith('"'):
            draft.body = unquote(draft.body)
    return draft


def _pick(found: dict[str, str], native: tuple[str, ...], known: tuple[str, ...]) -> str | None:
    return next((key for key in (*native, *known) if key in found), None)


def unquote(text: str) -> str:
    """The string that a JSON or Python string literal writes; its inside as it stands where that can't be decoded."""
    try:
        value = orjson.loads(text)
    except ValueError:
        return text.strip()[1:-1]
    return value if isinstance(value, str) else text


_FENCE = re.compile(r"\s*+```(?:json|JSON)?[ \t]*\n?")


def fence_start(text: str, pos: int) -> int:
    """Where a fence that frames arguments ends, or `pos` where there is none."""
    match = _FENCE.match(text, pos)
    return match.end() if match else pos
