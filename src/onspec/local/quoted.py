"""Names of control tokens inside what was said: they are text there, and never open or end a turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from onspec.local.runtime import Runtime
from onspec.message import Call, Message, Part, Result, Text

_MARK = "\ue0d5"
_SHORTEST = 3


def quoted(messages: Sequence[Message], names: Iterable[str]) -> list[Message]:
    """The messages with the names of control tokens marked, in what users and tools said and in arguments of calls.

    Whoever writes a file that an agent reads could otherwise speak with the system's voice.
    """
    known = [re.escape(name) for name in sorted(names, key=len, reverse=True) if len(name) >= _SHORTEST]
    if not known:
        return list(messages)
    pattern = re.compile("|".join(known))

    def safe(text: str) -> str:
        return pattern.sub(lambda found: found[0][0] + _MARK + found[0][1:], text)

    def part_of(message: Message, part: Part) -> Part:
        if isinstance(part, Text) and message.role == "user":
            return replace(part, text=safe(part.text))
        if isinstance(part, Result):
            return replace(part, content=safe(part.content))
        return replace(part, arguments=safe(part.arguments)) if isinstance(part, Call) else part

    return [replace(message, parts=tuple(part_of(message, part) for part in message.parts)) for message in messages]


def prompt_tokens(runtime: Runtime, told: str) -> list[int]:
    """Tokens of a prompt made from `quoted` messages: control tokens where the template wrote them, text elsewhere."""
    if _MARK not in told:
        return runtime.prompt(told)
    broken = [
        re.escape(name[0] + _MARK + name[1:])
        for name in sorted(runtime.specials, key=len, reverse=True)
        if len(name) >= _SHORTEST
    ]
    first, *rest = re.split(f"({'|'.join(broken)})", told)
    out = runtime.prompt(first)
    for number, piece in enumerate(rest):
        if number % 2 == 0:
            out += runtime.tokenize(piece.replace(_MARK, ""))
        elif piece:
            out += runtime.tokenize(piece, special=True)
    return out
