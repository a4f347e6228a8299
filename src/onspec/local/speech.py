"""How one model is spoken to: its chat template, and the dialect in which it writes calls."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset
from onspec.dialects.form import Form
from onspec.dialects.models import dialect_of
from onspec.dialects.render import render_calls, render_results, render_tools
from onspec.dialects.table import named
from onspec.dialects.write import definition
from onspec.errors import InputError
from onspec.grammar.forms import FORMS, form_of
from onspec.local.prompt import DIALECT, asked, render
from onspec.local.runtime import Runtime
from onspec.message import Call, Message, Result, Text, Thinking

_CHATML = ("<|im_start|>", "<|im_end|>")


@dataclass(frozen=True, slots=True)
class Speech:
    """How prompts are made for one model.

    Attributes:
        dialect: The dialect of its calls.
        how: In words, for people: by which template, and who tells the tools.
        template: The model's own template, or None for plain ChatML.
        native: Whether the template itself tells the tools and writes earlier calls.
    """

    dialect: str
    how: str
    template: Any = None
    native: bool = False

    def prompt(self, messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        """The prompt of a conversation, ending where the assistant is to speak. An assistant's message at the very end
        is left open, so that the model goes on with it.

        Raises:
            InputError: The model's template refuses the conversation.
        """
        if self.template is None and self.dialect == DIALECT:
            return render(messages, tools)
        head, tail = list(messages), ""
        if head and head[-1].role == "assistant":
            tail = _plain(head.pop(), Toolset(tools), self.dialect)
        if self.native:
            turns = [turn for message in head for turn in _chat(message)]
            found = [definition(tool) for tool in tools] or None
        else:
            turns, found = _told(head, tools, self.dialect), None
        if self.template is None:
            told = "".join(f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n" for turn in turns)
            return f"{told}<|im_start|>assistant\n{tail}"
        text: str = self.template.render(turns, found, opened=True)
        return text + tail


def speech_of(runtime: Runtime, dialect: str | None = None) -> Speech:
    """How to speak to a model, by what its file says.

    The model's own template is used where it has one. Where that takes tools, the dialect is the one whose markers
    stand in it; where it does not, the tools are told in the system's message and calls are asked for in `hermes_json`.

    Args:
        runtime: The model.
        dialect: The dialect of its calls, where somebody knows better.

    Raises:
        InputError: The template takes tools in a dialect that is not known here, or it cannot be read; or no dialect is
            called so.
        MissingExtra: The template needs `jinja2`, which is not installed.
    """
    card = runtime.card
    source = card.template
    asked_in = dialect if dialect is None else form_of(dialect).name
    if not source or (all(word in source for word in _CHATML) and "tools" not in source):
        return Speech(asked_in or DIALECT, "ChatML; tools told in the system's message")
    pieces = runtime.pieces
    bos = pieces[card.bos].decode("utf-8", "replace") if card.bos is not None else ""
    template = import_module("onspec.local.jinja").ChatTemplate(
        source, bos, pieces[card.eos].decode("utf-8", "replace")
    )
    if not template.takes_tools:
        return Speech(asked_in or DIALECT, "the model's template; tools told in the system's message", template)
    found = asked_in or dialect_in(source, card.name)
    if found is None:
        raise InputError(
            f"the chat template of {card.name or 'this model'} takes tools, in a form that is none of the known "
            "dialects; name the dialect of its calls"
        )
    return Speech(found, f"the model's template, which takes tools; calls in {found}", template, True)


def measured(runtime: Runtime) -> Speech:
    """How to speak to a model whose calls are to be measured: as `speech_of` says where its calls are JSON objects
    behind a trigger; else its own template, with tools told in words and calls asked for in `hermes_json`.

    Raises:
        InputError, MissingExtra: As `speech_of`.
    """
    speech = speech_of(runtime)
    form = form_of(speech.dialect)
    if form.style == "envelope" and form.word:
        return speech
    how = f"the model's template; its own dialect, {speech.dialect}, cannot be measured: tools told in words instead"
    return replace(speech, dialect=DIALECT, how=how, native=False)


def dialect_in(source: str, name: str = "") -> str | None:
    """The dialect whose markers stand in a chat template: of several, the one with the most of them; of equals, the
    one that the model's name says. None where there is none."""
    scores = {form.name: score for form in FORMS.values() if (score := _score(form, source))}
    if not scores:
        return None
    best = max(scores.values())
    equal = [dialect for dialect, score in scores.items() if score == best]
    said = dialect_of(name) if name else "auto"
    return said if said in equal else equal[0]


def _score(form: Form, source: str) -> int:
    """Characters of a form's markers, if all of them stand in a template."""
    texts = [form.trigger, form.close, form.end, form.tag, form.tag_end, form.mark]
    if form.style != "bare":
        texts += [form.call.replace("{call_id}", "{}")]
    parts = [part for text in texts for part in _literals(text)]
    if form.style == "envelope" and form.keys != ("name", "arguments"):
        parts += list(form.keys)
    if form.name in ("json_args",) or not parts or not all(part in source for part in parts):
        return 0
    return sum(map(len, dict.fromkeys(parts)))


_MARKER = re.compile(r"<[^<>]{2,}?>|<[\w:｜.-]{3,}|\[[A-Z_/]{3,}\]|```\w+")


def _literals(text: str) -> list[str]:
    """The markers in a fixed text; where it has none, its words from three characters on."""
    for hole in ("{name}", "{index}", "{key}", "{string}", "{type}"):
        text = text.replace(hole, "\0")
    pieces = text.replace("{}", "\0").split("\0")
    return [marker for piece in pieces for marker in _MARKER.findall(piece)] or [
        part for piece in pieces if len(part := piece.strip(' "\n')) >= 3
    ]


# --- messages ---


def _chat(message: Message) -> list[dict[str, Any]]:
    """A message as templates have it: OpenAI's form, arguments as objects; a result is a message of its own."""
    out: list[dict[str, Any]] = []
    text = "".join(part.text for part in message.parts if isinstance(part, Text))
    thoughts = "".join(part.text for part in message.parts if isinstance(part, Thinking))
    calls = [part for part in message.parts if isinstance(part, Call)]
    if message.role != "tool" and (text or calls or thoughts):
        role = "system" if message.role == "developer" else message.role
        turn: dict[str, Any] = {"role": role, "content": text}
        if thoughts:
            turn["reasoning_content"] = thoughts
        if calls:
            turn["tool_calls"] = [_call(call) for call in calls]
        out.append(turn)
    for part in message.parts:
        if isinstance(part, Result):
            answer = {"role": "tool", "content": part.content, "name": part.name or "tool"}
            out.append({**answer, "tool_call_id": part.call_id or "call_0"})
    return out


def _call(call: Call) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments or "{}")
    except ValueError:
        arguments = call.arguments
    return {"id": call.id or "call_0", "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _told(messages: Sequence[Message], tools: Sequence[Tool], dialect: str) -> list[dict[str, Any]]:
    """For a template that knows text only: tools in the first message, calls and results as text, no two turns of one
    role in a row."""
    known = Toolset(tools)
    turns: list[dict[str, Any]] = []
    system = "\n\n".join(_plain(m, known, dialect) for m in messages if m.role in ("system", "developer"))
    about = "" if not tools else asked(tools) if dialect == DIALECT else render_tools(named(dialect), known)
    lead = "\n\n".join(part for part in (system, about) if part)
    if lead:
        turns.append({"role": "system", "content": lead})
    for message in messages:
        if message.role in ("system", "developer"):
            continue
        role = "assistant" if message.role == "assistant" else "user"
        text = _plain(message, known, dialect)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += "\n\n" + text
        else:
            turns.append({"role": role, "content": text})
    return turns


def _plain(message: Message, tools: Toolset, dialect: str) -> str:
    """A message as one text, its calls and results in a dialect. A call that the dialect cannot write, because its
    arguments are no JSON object, stands as it was written."""
    row = named(dialect)
    parts: list[str] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(part.text)
        elif isinstance(part, Thinking) and part.text and row.think:
            parts.append(f"{row.think[0][0]}{part.text}{row.think[0][1]}")
        elif isinstance(part, Call):
            try:
                parts.append(render_calls(row, (part,), tools))
            except InputError:
                parts.append(f"{FORMS[dialect].trigger}{part.name} {part.arguments}")
        elif isinstance(part, Result):
            parts.append(render_results(row, (part,)))
    return "\n".join(parts)
