"""What makes a provider refuse a conversation that is sent again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from onspec.audit import Json
from onspec.message import Text, Thinking
from onspec.transcripts.session import ToolCall, ToolResult, Turn
from onspec.transcripts.source import decode

ID = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")
"""Ids that every provider takes: Anthropic allows these characters, Chat Completions 40 of them."""

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
"""Tool names that every provider takes."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One reason to refuse a conversation.

    Attributes:
        rule: A row of `onspec.transcripts.heal.RULES`, which mends it.
        line: Line or index of the turn in the file.
        what: A few words that show no payload.
    """

    rule: str
    line: int
    what: str


def faults(turns: Iterable[Turn], items: bool = False) -> list[Fault]:
    """Everything in a conversation, in its order, that at least one provider refuses.

    Args:
        turns: The turns, in the order in which they are sent.
        items: Whether they are items of the Responses API, where calls may follow each other before their answers.

    Sources of the rules: the providers' documentation and error texts on tool use (pairing, ids), thinking blocks and
    history; see `docs/heal.md`.
    """
    found: list[Fault] = []
    held = [turn for turn in turns if turn.parts]
    seen: set[str] = set()
    waiting: dict[str, int] = {}
    reply: str | None = None
    for turn in held:
        answers = turn.role == "tool" or isinstance(turn.parts[0], ToolResult)
        goes_on = turn.role == "assistant" and (items or (turn.message_id is not None and turn.message_id == reply))
        if waiting and not answers and not goes_on:
            found.extend(Fault("orphan_call", line, "a call without an answer") for line in waiting.values())
            waiting = {}
        if turn.role == "assistant":
            reply = turn.message_id
        for part in turn.parts:
            if isinstance(part, ToolCall):
                found.extend(_call(part, turn.line, seen))
                if part.id:
                    seen.add(part.id)
                    waiting[part.id] = turn.line
            elif isinstance(part, ToolResult):
                if part.call_id not in waiting:
                    found.append(Fault("orphan_result", turn.line, "an answer without a call before it"))
                else:
                    del waiting[str(part.call_id)]
                if has_surrogate(part.content):
                    found.append(Fault("lone_surrogate", turn.line, "half of a surrogate pair in an answer"))
            elif isinstance(part, Thinking):
                if not part.signature:
                    found.append(Fault("unsigned_thinking", turn.line, "thinking without a signature"))
            elif isinstance(part, Text) and has_surrogate(part.text):
                found.append(Fault("lone_surrogate", turn.line, "half of a surrogate pair in a text"))
    found.extend(Fault("orphan_call", line, "a call without an answer") for line in waiting.values())
    return found


def _call(call: ToolCall, line: int, seen: set[str]) -> list[Fault]:
    found = []
    if not call.id or not ID.match(call.id):
        found.append(Fault("bad_id", line, "an id that not every provider takes"))
    elif call.id in seen:
        found.append(Fault("duplicate_id", line, "an id that an earlier call has"))
    if not NAME.match(call.name):
        found.append(Fault("bad_name", line, "a tool name that no provider takes"))
    value: Json = call.text if call.custom else call.arguments
    if not call.custom:
        if call.stand_in:
            found.append(Fault("unreadable_arguments", line, "a stand-in for arguments that could not be read"))
        elif call.text is not None:
            value, reason = decode(call.text.encode("utf-8", "surrogatepass"))
            if reason or not isinstance(value, dict):
                found.append(Fault("unreadable_arguments", line, "arguments that are no JSON object"))
        elif not isinstance(call.arguments, dict):
            found.append(Fault("unreadable_arguments", line, "arguments that are no JSON object"))
    if has_surrogate(value):
        found.append(Fault("lone_surrogate", line, "half of a surrogate pair in arguments"))
    return found


def has_surrogate(value: Json) -> bool:
    """Whether a decoded value holds half of a surrogate pair anywhere."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False
