"""Writing a history back in a dialect: calls that read back exactly, results and text in which no marker stands."""

from __future__ import annotations

import orjson

from onspec.audit import Json
from onspec.contract.toolset import Toolset
from onspec.dialects.dialect import Context, Dialect
from onspec.dialects.items import Found, Shown, Thought
from onspec.dialects.machine import Machine
from onspec.dialects.values import join
from onspec.dialects.write import defuse
from onspec.errors import InputError
from onspec.message import Call, Message, Result, Text, Thinking


def render_calls(dialect: Dialect, calls: tuple[Call, ...], tools: Toolset) -> str:
    """The calls as a model of this dialect writes them. What is written reads back as the same calls.

    Markers inside string values are escaped where the dialect has an escape (JSON, Python). Dialects that write values
    raw have none; their own reader tells most markers in a value from the real ones, but not all.

    Args:
        dialect: The row.
        calls: Names and arguments' JSON text.
        tools: The declared tools; in dialects without types on the wire they say how a value is written.

    Raises:
        InputError: A call cannot be written in this dialect so that it reads back: a value holds the dialect's own
            closing markers, a name or key has characters it cannot have, or the arguments are not a JSON object.
    """
    text = dialect.family.write_calls(calls, tools)
    context = Context(tools)
    machine = Machine(dialect, context, "unknown" if dialect.prefilled else "closed")
    items = [*machine.feed(text), *machine.close()]
    found = [item for item in items if isinstance(item, Found)]
    strays = any(isinstance(item, Shown | Thought) and item.text.strip() for item in items)
    if strays or len(found) != len(calls):
        raise InputError(f"these calls cannot be written in {dialect.name}: its markers stand in their values")
    for call, item in zip(calls, found, strict=True):
        tool = context.tool(call.name)
        read = join(item.draft, tool) if item.draft.fault is None else None
        if read is None or item.draft.name != call.name or not _same(_value(read), _value(call.arguments or "{}")):
            raise InputError(f"the call to {call.name!r} cannot be written in {dialect.name} so that it reads back")
    return text


def _value(text: str) -> Json:
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _same(one: Json, other: Json) -> bool:
    """Equal, and of the same types all through: 1 is not true, nor 1.0."""
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)


def render_results(dialect: Dialect, results: tuple[Result, ...]) -> str:
    """Tool results as the prompt carries them. Markers of the dialect in their text are broken by a zero-width space,
    so that a result cannot pose as a turn or a call."""
    markers = markers_of(dialect)
    safe = tuple(
        Result(defuse(result.content, markers), result.call_id, result.name, result.is_error) for result in results
    )
    return dialect.family.write_results(safe)


def render_tools(dialect: Dialect, tools: Toolset) -> str:
    """The part of the prompt that tells a model which tools there are."""
    return dialect.family.write_tools(tools)


def render_assistant(dialect: Dialect, message: Message, tools: Toolset) -> str:
    """An assistant's turn: its reasoning, its text and its calls, in their order; calls that follow one another share
    an envelope.

    Raises:
        InputError: As `render_calls`; or the message is not an assistant's.
    """
    if message.role != "assistant":
        raise InputError(f"this is a message of the {message.role}, not of the assistant")
    markers = markers_of(dialect)
    parts: list[str] = []
    calls: list[Call] = []
    for part in message.parts:
        if isinstance(part, Call):
            calls.append(part)
            continue
        if calls:
            parts.append(render_calls(dialect, tuple(calls), tools))
            calls = []
        if isinstance(part, Thinking) and dialect.think:
            opener, closer = dialect.think[0]
            parts.append(f"{opener}{defuse(part.text, markers)}{closer}")
        elif isinstance(part, Text):
            parts.append(defuse(part.text, markers))
    if calls:
        parts.append(render_calls(dialect, tuple(calls), tools))
    return "\n".join(parts)


def markers_of(dialect: Dialect) -> tuple[str, ...]:
    """Every marker and control token of the dialect, longest first."""
    words = {*dialect.family.literals, *dialect.controls, *(word for pair in dialect.think for word in pair)}
    return tuple(sorted(words, key=len, reverse=True))
