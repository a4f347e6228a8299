"""A whole conversation as harmony text: roles, channels, recipients, tools, and which reasoning is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from onspec.contract.toolset import Toolset
from onspec.dialects.harmony import CALL, CHANNEL, CONSTRAIN, END, MESSAGE, START, TOKENS
from onspec.dialects.typescript import namespace
from onspec.dialects.write import arguments_of, defuse, escape_markers
from onspec.message import Call, Message, Result, Text, Thinking

Keep = Literal["open_turn", "first_final", "all"]
"""Which reasoning stays in the history.

`open_turn`: of turns that ended in a final answer none (what the format's documentation says); `first_final`: none
before the first final answer, if the last message is final (what `openai-harmony` does); `all`: every piece.
"""

Order = Literal["channel", "recipient"]
"""Where a call's recipient stands: behind the channel (what the model writes), or behind the role (what
`openai-harmony` writes)."""

ROUTING = "Calls to these tools must go to the commentary channel: 'functions'."


def render_conversation(
    messages: Sequence[Message],
    tools: Toolset,
    *,
    keep: Keep = "open_turn",
    order: Order = "channel",
    completion: bool = True,
) -> str:
    """The prompt that carries a conversation.

    Text is never read as a token: every token of the format that stands in a message's text is broken by a zero-width
    space, and in a call's arguments it is written as a JSON escape.

    Args:
        messages: In order. The system's text is taken as it is; with tools, the line that sends calls to the
            commentary channel is added where it is missing. The tools stand in the first developer message; one is
            made where there is none.
        tools: The declared function tools.
        keep, order: See there.
        completion: Whether to end with the opening of the assistant's next message.

    Raises:
        InputError: A call's arguments are not the JSON text of an object.
    """
    parts: list[str] = []
    listed = not len(tools)
    names = _names(messages)
    dropped = _dropped(messages, keep)
    for index, message in enumerate(messages):
        if message.role == "system":
            parts.append(_plain("system", _routed(_text(message), tools)))
            continue
        if not listed:
            listed = True
            own = message.role == "developer"
            parts.append(_developer(_text(message) if own else "", tools))
            if own:
                continue
        if message.role == "developer":
            parts.append(_developer(_text(message), Toolset()))
        elif message.role == "assistant":
            parts += _assistant(message, index in dropped, order)
        elif message.role == "user":
            parts.append(_plain("user", _text(message)))
        parts += [_result(part, names) for part in message.parts if isinstance(part, Result)]
    if not listed:
        parts.append(_developer("", tools))
    if completion:
        parts.append(f"{START}assistant")
    return "".join(part for part in parts if part)


def _text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def _plain(role: str, text: str) -> str:
    return f"{START}{role}{MESSAGE}{defuse(text, TOKENS)}{END}" if text else ""


def _routed(text: str, tools: Toolset) -> str:
    return text if not len(tools) or ROUTING in text else f"{text}\n{ROUTING}"


def _developer(text: str, tools: Toolset) -> str:
    sections = []
    if text:
        sections.append(f"# Instructions\n\n{defuse(text, TOKENS)}")
    if len(tools):
        sections.append(f"# Tools\n\n{defuse(namespace('functions', tools), TOKENS)}")
    return f"{START}developer{MESSAGE}" + "\n\n".join(sections) + END if sections else ""


def _assistant(message: Message, drop: bool, order: Order) -> list[str]:
    """Reasoning, preambles, calls and the final answer: text before a call of the same message is a preamble."""
    parts = []
    last_call = max((at for at, part in enumerate(message.parts) if isinstance(part, Call)), default=-1)
    for at, part in enumerate(message.parts):
        if isinstance(part, Thinking) and not drop:
            parts.append(_said("analysis", part.text))
        elif isinstance(part, Text):
            parts.append(_said("commentary" if at < last_call else "final", part.text))
        elif isinstance(part, Call):
            parts.append(_call(part, order))
    return parts


def _said(channel: str, text: str) -> str:
    return f"{START}assistant{CHANNEL}{channel}{MESSAGE}{defuse(text, TOKENS)}{END}"


def _call(call: Call, order: Order) -> str:
    body = escape_markers(arguments_of(call.name, call.arguments), TOKENS)
    to = f" to=functions.{call.name}"
    behind_role, behind_channel = (to, "") if order == "recipient" else ("", to)
    return f"{START}assistant{behind_role}{CHANNEL}commentary{behind_channel} {CONSTRAIN}json{MESSAGE}{body}{CALL}"


def _result(result: Result, names: dict[str, str]) -> str:
    name = result.name or names.get(result.call_id or "", "tool")
    content = defuse(result.content, TOKENS)
    return f"{START}functions.{name} to=assistant{CHANNEL}commentary{MESSAGE}{content}{END}"


def _names(messages: Sequence[Message]) -> dict[str, str]:
    """Names of the tools by the ids of their calls."""
    return {part.id: part.name for message in messages for part in message.parts if isinstance(part, Call) and part.id}


def _is_final(message: Message) -> bool:
    """Whether an assistant's message ends in an answer to the user."""
    return message.role == "assistant" and bool(message.parts) and isinstance(message.parts[-1], Text)


def _dropped(messages: Sequence[Message], keep: Keep) -> frozenset[int]:
    """Indexes of messages whose reasoning is left out."""
    finals = [index for index, message in enumerate(messages) if _is_final(message)]
    if keep == "all" or not finals:
        return frozenset()
    if keep == "open_turn":
        return frozenset(range(finals[-1] + 1))
    assistants = [index for index, message in enumerate(messages) if message.role == "assistant"]
    return frozenset(range(finals[0] + 1)) if assistants[-1] == finals[-1] else frozenset()
