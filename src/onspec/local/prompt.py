"""A conversation as the prompt of a small chat model: ChatML, with tools described in the system message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from onspec.contract.tool import Tool
from onspec.errors import InputError
from onspec.grammar.forms import form_of
from onspec.message import Call, Message, Result, Role, Text, Thinking

DIALECT = "hermes_json"
"""How the prompt asks for calls."""

_ASK = (
    "You can call these tools:\n{tools}\n"
    "To call a tool, write one JSON object with the keys name and arguments between <tool_call> and </tool_call>."
)


def render(
    messages: Sequence[Message], tools: Sequence[Tool], *, keep_thinking: bool = True, open_turn: bool = True
) -> str:
    """The prompt of `messages`, ending where the assistant is to speak if `open_turn`.

    An assistant's message at the very end is left open, so that the model goes on with it.

    Args:
        messages: The conversation.
        tools: Tools described to the model.
        keep_thinking: Whether the assistant's earlier thinking stays in.
        open_turn: Whether a turn of the assistant is begun at the end.
    """
    told = [_text(message, keep_thinking) for message in messages if message.role in ("system", "developer")]
    if tools:
        told.append(asked(tools))
    out = [_turn("system", "\n\n".join(part for part in told if part))] if told else []
    spoken = [message for message in messages if message.role not in ("system", "developer")]
    for message in spoken[:-1]:
        out.append(_turn(message.role, _text(message, keep_thinking)))
    if spoken:
        last = spoken[-1]
        text = _text(last, keep_thinking)
        if last.role == "assistant" and open_turn:
            return "".join(out) + f"<|im_start|>assistant\n{text}"
        out.append(_turn(last.role, text))
    return "".join(out) + ("<|im_start|>assistant\n" if open_turn else "")


def asked(tools: Sequence[Tool]) -> str:
    """What tells a model of its tools, and how to call them."""
    return _ASK.format(tools="\n".join(_described(tool) for tool in tools))


def call_text(call: Call, dialect: str = DIALECT) -> str:
    """One call as a model writes it, its arguments byte for byte, in a dialect whose calls are JSON objects."""
    form = form_of(dialect)
    pairs = [f'"{key}": "0"' for key, _ in form.fixed]
    pairs += [f'"{form.keys[0]}": {orjson.dumps(call.name).decode()}', f'"{form.keys[1]}": {call.arguments}']
    opened, closed = ("[", "]") if form.listed else ("", "")
    return f"{form.trigger}{form.lead}{opened}{{{', '.join(pairs)}}}{closed}{form.close}"


def _turn(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def _described(tool: Tool) -> str:
    parameters = tool.schema.document if tool.schema is not None else {"type": "string"}
    about = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return orjson.dumps({key: value for key, value in about.items() if value != ""}).decode()


def _text(message: Message, keep_thinking: bool) -> str:
    parts: list[str] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(part.text)
        elif isinstance(part, Thinking):
            if keep_thinking and part.text:
                parts.append(f"<think>{part.text}</think>")
        elif isinstance(part, Call):
            parts.append(call_text(part))
        elif isinstance(part, Result):
            parts.append(part.content)
    return "\n".join(parts)


def messages_of(items: Any) -> list[Message]:
    """Messages from a decoded list in the form of OpenAI Chat Completions or Anthropic Messages.

    Raises:
        InputError: The list is in neither form.
    """
    if not isinstance(items, list):
        raise InputError("a history is a list of messages")
    out: list[Message] = []
    for item in items:
        if not isinstance(item, dict) or item.get("role") not in ("system", "developer", "user", "assistant", "tool"):
            raise InputError("each message is an object with a role: system, developer, user, assistant or tool")
        out.append(_message(item))
    return out


def _message(item: dict[str, Any]) -> Message:
    parts: list[Text | Thinking | Call | Result] = []
    content = item.get("content")
    if item["role"] == "tool":
        return Message("tool", (Result(_flat(content), item.get("tool_call_id"), item.get("name")),))
    reasoning = item.get("reasoning_content") or item.get("reasoning")
    if isinstance(reasoning, str):
        parts.append(Thinking(reasoning))
    if isinstance(content, str):
        if content:
            parts.append(Text(content))
    elif content is not None and not isinstance(content, list):
        raise InputError("the content of a message is text or a list of blocks")
    else:
        parts += [part for block in content or () if (part := _block(block)) is not None]
    calls = item.get("tool_calls") or []
    if not isinstance(calls, list):
        raise InputError("tool_calls is a list of calls")
    parts += [_call(call) for call in calls]
    answers = bool(parts) and all(isinstance(part, Result) for part in parts)
    role: Role = "tool" if answers else item["role"]
    return Message(role, tuple(parts))


def _call(call: Any) -> Call:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise InputError("each of tool_calls is an object with a function that has a name")
    arguments = function.get("arguments", "")
    return Call(
        function["name"], arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode(), call.get("id")
    )


def _block(block: Any) -> Text | Thinking | Call | Result | None:
    if not isinstance(block, dict):
        raise InputError("a content block is an object")
    kind = block.get("type")
    if kind == "text":
        return Text(str(block.get("text", "")))
    if kind == "thinking":
        return Thinking(str(block.get("thinking", "")), block.get("signature"))
    if kind == "tool_use":
        return Call(str(block.get("name", "")), orjson.dumps(block.get("input", {})).decode(), block.get("id"))
    if kind == "tool_result":
        return Result(_flat(block.get("content")), block.get("tool_use_id"), None, bool(block.get("is_error")))
    return None


def _flat(content: Any) -> str:
    if isinstance(content, str):
        return content
    if content is not None and not isinstance(content, list):
        raise InputError("the content of a message is text or a list of blocks")
    return "\n".join(str(block.get("text", "")) for block in content or () if isinstance(block, dict))
