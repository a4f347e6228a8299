"""A conversation with tools on a local model: prose free, calls constrained to their contracts."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onspec.check import Outcome, check
from onspec.contract.tool import Tool
from onspec.errors import InputError, LimitError
from onspec.grammar.build import build
from onspec.grammar.exact import Options
from onspec.grammar.place import Place
from onspec.grammar.rules import PYTHON_SPACING
from onspec.local.prompt import DIALECT, render
from onspec.local.runtime import Runtime
from onspec.local.sample import constrained, free
from onspec.message import Call, Message

_TRIGGER = "<tool_call>"
_FORM = Options(spacing=PYTHON_SPACING, spellings=False)
"""As models write: any key order, one form of white space. What is forced then needs no model."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answered.

    Attributes:
        text: Visible text.
        calls: Calls, arguments as written.
        outcomes: What `check` says of each; a call that the budget cut is refused.
        finish_reason: `stop`, `tool_calls` or `length`.
        prompt_tokens: Tokens of the prompt.
        tokens: Tokens of the answer.
        skipped: Those of them that the grammar forced.
        seconds: Wall time.
    """

    text: str
    calls: tuple[Call, ...]
    outcomes: tuple[Outcome, ...]
    finish_reason: str
    prompt_tokens: int
    tokens: int
    skipped: int
    seconds: float


class Chat:
    """One model that answers conversations, one at a time.

    Args:
        runtime: The model. It must speak ChatML (SmolLM2 and most small chat models do).
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = threading.Lock()

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        choice: str = "auto",
        *,
        budget: int = 512,
        temperature: float = 0.7,
        seed: int | None = None,
        constrain: bool = True,
    ) -> Reply:
        """The model's next turn.

        Args:
            messages: The conversation so far.
            tools: Tools that it may call.
            choice: `auto`, `required`, `none`, or the name of a tool.
            budget: Most tokens of the answer. A call that would not fit is closed in time and marked as cut.
            temperature: 0 takes the likeliest token.
            seed: Makes the answer repeatable.
            constrain: Whether calls must keep their contracts.

        Raises:
            InputError: `choice` names no tool.
            SchemaError: A tool's schema admits nothing.
            LimitError: Conversation and budget do not fit the context.
        """
        with self._lock:
            return self._reply(messages, list(tools), choice, budget, max(temperature, 1e-4), seed, constrain)

    def _reply(
        self,
        messages: Sequence[Message],
        tools: list[Tool],
        choice: str,
        budget: int,
        temperature: float,
        seed: int | None,
        constrain: bool,
    ) -> Reply:
        runtime, rng = self._runtime, np.random.default_rng(seed)
        wanted = choice not in ("auto", "none")
        if wanted and not tools:
            raise InputError("a call is required, but there is no tool")
        shown = tools if choice != "none" else []
        prompt = runtime.prompt(render(messages, shown))
        if len(prompt) + budget > runtime.capacity:
            raise LimitError(
                f"the conversation has {len(prompt)} tokens; with a budget of {budget} it does not fit the context of "
                f"{runtime.capacity}"
            )
        lead = runtime.tokenize(_TRIGGER)
        text, tokens, seconds = b"", 0, 0.0
        if not wanted:
            stops = [_TRIGGER.encode()] if shown else []
            draw = free(runtime, prompt, rng, budget=budget, temperature=temperature, stops=stops)
            text, tokens, seconds = draw.text, len(draw.tokens), draw.seconds
            if not text.endswith(_TRIGGER.encode()):
                return self._answer(text, (), draw.finish_reason, prompt, tokens, 0, seconds, tools)
            lead = list(draw.tokens)
            text = text[: -len(_TRIGGER)]
        whole = [*prompt, *lead]
        left = max(budget - len(lead), 1)
        if not constrain:
            rest = free(runtime, whole, rng, budget=left, temperature=temperature, stops=[b"</tool_call>"])
            calls = _calls(rest.text)
            shown_text = text if calls else text + _TRIGGER.encode() + rest.text
            reason = "length" if rest.end == "length" else "tool_calls" if calls else "stop"
            return self._answer(
                shown_text, calls, reason, prompt, tokens + len(rest.tokens), 0, seconds + rest.seconds, tools
            )
        grammar = build(
            tools, DIALECT, choice if wanted else "required", parallel=False, thinking="none", options=_FORM
        )
        assert grammar.calls is not None
        matcher = runtime.vocabulary.matcher(grammar.calls)
        call = constrained(runtime, whole, matcher, rng, pieces=grammar.pieces, budget=left, temperature=temperature)
        return self._answer(
            text, _calls(call.text), call.finish_reason, prompt, tokens + len(call.tokens), call.skipped,
            seconds + call.seconds, tools,
        )  # fmt: skip

    def _answer(
        self,
        text: bytes,
        calls: tuple[Call, ...],
        reason: str,
        prompt: Sequence[int],
        tokens: int,
        skipped: int,
        seconds: float,
        tools: Sequence[Tool],
    ) -> Reply:
        by_name = {tool.name: tool for tool in tools}
        numbered = tuple(Call(call.name, call.arguments, f"call_{i}") for i, call in enumerate(calls))
        outcomes = tuple(
            check(by_name[call.name], call.arguments, finish_reason=reason) for call in numbered if call.name in by_name
        )
        shown = text.decode("utf-8", "replace").strip()
        return Reply(shown, numbered, outcomes, reason, len(prompt), tokens, skipped, seconds)


def block_of(text: bytes) -> tuple[dict[str, Any], bytes] | None:
    """The JSON object at the start of a block with its own bytes, if `</tool_call>` follows it; else None.

    The end is found by the JSON, not by the marker, which may well stand inside a string.
    """
    shown = text.decode("utf-8", "replace")
    start = len(shown) - len(shown.lstrip())
    try:
        value, end = json.JSONDecoder().raw_decode(shown, start)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not shown[end:].lstrip().startswith("</tool_call>"):
        return None
    return value, shown[start:end].encode()


def _calls(text: bytes) -> tuple[Call, ...]:
    """The call in a block, or none where it is not whole JSON with a name."""
    found = block_of(text)
    if found is None or not isinstance(found[0].get("name"), str):
        return ()
    return (Call(found[0]["name"], arguments_of(found[1])),)


def arguments_of(body: bytes, key: str = "arguments") -> str:
    """The text of the member `key` of a JSON object, byte for byte; "" where it has none."""
    place = Place()
    start = None
    for index in range(len(body)):
        depth = len(place.stack)
        place.feed(body[index : index + 1])
        if start is None:
            if depth == 1 and len(place.stack) == 1 and place.tail == 0x3A and place.path == f'"{key}"':
                start = index + 1
        elif len(place.stack) <= 1 and place.word is None and (place.tail in b",}" and body[index] in b",}"):
            closed = index + 1 if len(place.stack) == 1 and body[index] == 0x7D else index
            return body[start:closed].decode("utf-8", "replace").strip()
    return ""
