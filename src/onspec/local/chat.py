"""A conversation with tools on a local model: prose free, calls constrained to their contracts, told as they come."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onspec.check import Outcome, check
from onspec.contract.tool import Tool
from onspec.errors import InputError, LimitError
from onspec.grammar.build import Grammar, build
from onspec.grammar.exact import Options
from onspec.grammar.forms import form_of
from onspec.grammar.rules import PYTHON_SPACING
from onspec.local.live import ArgumentsPiece, CallBegun, LiveCall
from onspec.local.quoted import prompt_tokens, quoted
from onspec.local.runtime import Runtime
from onspec.local.speech import Speech, speech_of
from onspec.local.turn import Gate, Piece, Turn, closing_gate, gate_of
from onspec.message import Call, Message, Text, Thinking
from onspec.receive import Receiver

_FORM = Options(spacing=PYTHON_SPACING, spellings=False)
"""As models write: any key order, one form of white space. What is forced then needs no model."""

MOST_BLOCKS = 32
"""Blocks of calls in one reply."""


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
        thinking: Its reasoning.
    """

    text: str
    calls: tuple[Call, ...]
    outcomes: tuple[Outcome, ...]
    finish_reason: str
    prompt_tokens: int
    tokens: int
    skipped: int
    seconds: float
    thinking: str = ""


Event = Text | Thinking | CallBegun | ArgumentsPiece | Reply
"""What is told while a reply is written; the reply itself comes last."""


@dataclass(slots=True)
class _Asked:
    """One request, on its way to a reply."""

    tools: list[Tool]
    choice: str
    parallel: bool
    constrain: bool
    cancelled: Callable[[], bool]
    opened: bool = False
    calls: list[Call] = field(default_factory=list)
    live: dict[int, LiveCall] = field(default_factory=dict)


def _judged(tool: Tool | None, call: Call, received: Outcome, reason: str) -> Outcome:
    """A call's outcome where the reply's end is known; `tool` has the very name that was written, `received` any."""
    if tool is None and received.ok and reason == "length":
        tool = received.tool
    return received if tool is None else check(tool, call.arguments, finish_reason=reason)


class Chat:
    """One model that answers conversations, one at a time.

    Args:
        runtime: The model.
        dialect: The dialect of its calls, where its chat template does not tell; the prompt stays the template's.

    Raises:
        InputError: The model's template takes tools in no known dialect, and none is named.
        MissingExtra: The template needs `jinja2`, which is not installed.
    """

    def __init__(self, runtime: Runtime, dialect: str | None = None) -> None:
        self._runtime = runtime
        self._lock = threading.Lock()
        self.speech: Speech = speech_of(runtime, dialect)

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
        parallel: bool = False,
    ) -> Reply:
        """The model's next turn, when it is complete. Arguments and errors as of `stream`."""
        *_, last = self.stream(
            messages, tools, choice, budget=budget, temperature=temperature, seed=seed, constrain=constrain,
            parallel=parallel,
        )  # fmt: skip
        assert isinstance(last, Reply)
        return last

    def stream(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        choice: str = "auto",
        *,
        budget: int = 512,
        temperature: float = 0.7,
        seed: int | None = None,
        constrain: bool = True,
        parallel: bool = False,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Iterator[Event]:
        """The model's next turn as it is written: text and thinking, the beginnings and the arguments of calls, and at
        the end the reply.

        Arguments come piece by piece in dialects that write them as JSON, else when their call is complete.

        Args:
            messages: The conversation so far.
            tools: Tools that it may call.
            choice: `auto`, `required`, `none`, or the name of a tool.
            budget: Most tokens of the answer. A call that would not fit is closed in time and marked as cut.
            temperature: 0 takes the likeliest token.
            seed: Makes the answer repeatable.
            constrain: Whether calls must keep their contracts.
            parallel: Whether the reply may hold several calls.
            cancelled: Asked before each token; True ends the reply there.

        Raises:
            InputError: `choice` names no tool, or the model's template refuses the conversation.
            SchemaError: A tool's schema admits nothing.
            LimitError: Conversation and budget do not fit the context, or no call that must come fits the budget.
        """
        asked = _Asked(list(tools) if choice != "none" else [], choice, parallel, constrain, cancelled)
        if choice not in ("auto", "none") and not asked.tools:
            raise InputError("a call is required, but there is no tool")
        with self._lock:
            told = self.speech.prompt(quoted(messages, self._runtime.specials), asked.tools)
            think = form_of(self.speech.dialect).think
            asked.opened = think is not None and told.rstrip().endswith(think[0])
            prompt = prompt_tokens(self._runtime, told)
            if len(prompt) + budget > self._runtime.capacity:
                raise LimitError(
                    f"the conversation has {len(prompt)} tokens; with a budget of {budget} it does not fit the "
                    f"context of {self._runtime.capacity}"
                )
            rng = np.random.default_rng(seed)
            turn = Turn(
                self._runtime, prompt, rng, budget=budget, temperature=max(temperature, 1e-4), cancelled=cancelled
            )
            yield from self._turn(turn, asked, len(prompt))

    # --- one turn ---

    def _turn(self, turn: Turn, asked: _Asked, prompt_tokens: int) -> Iterator[Event]:
        receiver = Receiver(asked.tools, self.speech.dialect, thinking="open" if asked.opened else "closed")
        pieces = self._pieces(turn, asked)
        for piece in pieces:
            yield from self._told(piece, receiver, asked)
            if not asked.constrain and asked.calls and not asked.parallel:
                pieces.close()  # type: ignore[attr-defined]  # it is a generator
                break
        spoken = turn.spoken
        length = spoken.cut or (spoken.end == "length" and not asked.calls)
        for event in receiver.close("length" if spoken.end == "length" else "stop"):
            yield from self._event(event, asked)
        found = receiver.reply
        reason = "length" if length else "tool_calls" if asked.calls else "stop"
        by_name = {tool.name: tool for tool in asked.tools}
        outcomes = tuple(
            _judged(by_name.get(call.name), call, received.outcome, reason)
            for call, received in zip(asked.calls, found.calls, strict=True)
        )
        yield Reply(
            found.text.strip(), tuple(asked.calls), outcomes, reason, prompt_tokens, spoken.tokens, spoken.skipped,
            spoken.seconds, found.thinking.strip(),
        )  # fmt: skip

    def _pieces(self, turn: Turn, asked: _Asked) -> Iterator[Piece]:
        """All that the model writes. Where calls are constrained, the turn goes from free to held and back."""
        if not asked.tools or not asked.constrain:
            if asked.tools and asked.choice != "auto":
                yield turn.put(form_of(self.speech.dialect).word)
            yield from turn.free(None)
            return
        required = asked.choice not in ("auto", "none")
        grammar = self._grammar(asked, asked.choice if required else "required")
        think = form_of(self.speech.dialect).think if grammar.dialect != "harmony" else None
        gate = gate_of(grammar, self._openers(asked.tools), think, asked.opened)
        if required and asked.opened and think is not None:
            yield from turn.free(closing_gate(think[1]))
            if turn.spoken.end != "whole":
                return
            yield Piece(turn.opening)
        for _ in range(MOST_BLOCKS):
            if required:
                yield from self._required(turn, grammar)
            else:
                yield from turn.free(gate)
                if turn.spoken.end != "whole":
                    return
                yield from self._called(turn, grammar, gate)
            if turn.spoken.end != "whole" or not asked.parallel:
                return
            required = False
            gate = gate_of(grammar, self._openers(asked.tools), None, False)

    def _grammar(self, asked: _Asked, choice: str) -> Grammar:
        return build(
            asked.tools, self.speech.dialect, choice, parallel=asked.parallel, thinking="none", options=_FORM,
            specials=self._runtime.specials,
        )  # fmt: skip

    def _openers(self, tools: Sequence[Tool]) -> list[str]:
        """How a message begins that is nothing but calls."""
        form = form_of(self.speech.dialect)
        if not form.trigger and not form.optional:
            return [form.call.replace("{name}", tool.name).strip() for tool in tools]
        if form.listed:
            return ["["]
        return ["{"] if form.style == "envelope" else [f"{tool.name}(" for tool in tools]

    def _required(self, turn: Turn, grammar: Grammar) -> Iterator[Piece]:
        trigger = grammar.trigger if grammar.trigger and grammar.dialect != "harmony" else ""
        matcher = self._runtime.vocabulary.matcher(_inside(grammar))
        turn.fits(trigger, matcher, grammar.pieces)
        if trigger:
            yield turn.put(trigger)
        yield from turn.held(matcher, grammar.pieces)

    def _called(self, turn: Turn, grammar: Grammar, gate: Gate) -> Iterator[Piece]:
        """The rest of a call that the model has begun."""
        begun, opening = gate(turn.said) or "", turn.opening
        matcher = self._runtime.vocabulary.matcher(_inside(grammar))
        if begun and not matcher.consume_all(self._runtime.tokenize(begun, special=True)):
            # The last token wrote more than the trigger, and what no call begins with: that is taken back.
            size = len(begun.encode()) if grammar.trigger else len(opening)
            turn.back_to(len(turn.spoken.text) - size)
            opening = opening[: len(opening) - size]
            begun = begun.encode()[: len(begun.encode()) - size].decode("utf-8", "replace")
            matcher.consume_all(self._runtime.tokenize(begun, special=True))
        yield Piece(opening)
        yield from turn.held(matcher, grammar.pieces, begun.encode())

    # --- what is told ---

    def _told(self, piece: Piece, receiver: Receiver, asked: _Asked) -> Iterator[Event]:
        form = form_of(self.speech.dialect)
        one_each = not asked.parallel or form.repeat == "block"
        if piece.block and one_each and LiveCall.follows(form):
            live = asked.live.get(piece.block)
            if live is None:
                index = len(asked.live)
                names = [tool.name for tool in asked.tools]
                live = asked.live[piece.block] = LiveCall(form, names, index, f"call_{index}")
            yield from live.feed(piece.lead + piece.text)
        for event in receiver.feed(piece.text):
            yield from self._event(event, asked)

    @staticmethod
    def _event(event: Any, asked: _Asked) -> Iterator[Event]:
        if isinstance(event, Text | Thinking):
            yield event
            return
        index = len(asked.calls)
        call = Call(event.name, event.arguments, f"call_{index}")
        asked.calls.append(call)
        if not any(live.begun and live.index == index for live in asked.live.values()):
            yield CallBegun(index, call.id or "", call.name)
            yield ArgumentsPiece(index, call.arguments)


def _inside(grammar: Grammar) -> str:
    """What holds a call once it has begun. In harmony that is the message with its header."""
    return grammar.lark if grammar.calls is None or grammar.dialect == "harmony" else grammar.calls


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
