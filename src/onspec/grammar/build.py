"""Tools and a dialect as one grammar of a whole reply: prose free, calls exact."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import orjson

from onspec.contract.tool import Tool
from onspec.dialects.form import Form
from onspec.errors import InputError, LimitError, SchemaError
from onspec.grammar import lexemes
from onspec.grammar.block import Block, until
from onspec.grammar.exact import Inexact, Options
from onspec.grammar.forms import form_of
from onspec.grammar.harmony import Harmony
from onspec.grammar.rules import Choice, Many, Pieces, Ref, Rules, Seq
from onspec.grammar.tagged import GAP

Wanted = Literal["auto", "required", "none"]
Thinking = Literal["none", "optional", "open"]

CACHED = 256
"""Built grammars kept."""

_cache: OrderedDict[bytes, Grammar] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a decoder may emit.

    Attributes:
        dialect: Name of the dialect.
        lark: The whole reply: thinking, prose, calls.
        body: The same from just after the trigger to the end of the reply; for decoders that leave prose alone and
            switch on at the trigger. None where calls may stand without a trigger, or are not wanted.
        calls: One block of calls from just after the trigger to its end, with nothing after it; with its opener where
            the tools' names are the tags. None where calls may stand without a trigger.
        trigger: What switches `body` on, or "".
        close: What ends the block.
        inexact: What of the tools' schemas could not be followed exactly.
        pieces: Words from which the end of a half-written call can be made.
    """

    dialect: str
    lark: str
    body: str | None
    calls: str | None
    trigger: str
    close: str
    inexact: tuple[Inexact, ...] = ()
    pieces: Pieces = field(default_factory=Pieces)


def build(
    tools: Sequence[Tool],
    dialect: str,
    choice: str = "auto",
    *,
    parallel: bool = True,
    thinking: Thinking = "optional",
    options: Options | None = None,
    specials: Mapping[str, int] | None = None,
) -> Grammar:
    """Build the grammar of a reply. Cached by content.

    Args:
        tools: The tools that may be called.
        dialect: Any of `onspec.dialects` but `auto`.
        choice: `auto`, `required`, `none`, or the name of the one tool to call.
        parallel: Whether a reply may hold several calls.
        thinking: `none`: no thinking block. `optional`: one may come first. `open`: the prompt has opened it, so the
            reply starts inside and must close it.
        options: Key order, white space and spellings of arguments.
        specials: Special tokens of the vocabulary, text to id. Markers that are among them are matched as tokens,
            all others as text.

    Raises:
        InputError: The dialect is unknown, no tool has the name that `choice` gives, or calls are required and there
            is no tool that can be called.
        SchemaError: A tool's schema cannot be used. A tool whose schema admits nothing is left out of a choice of
            several; alone, it is refused.
        LimitError: The tools need a larger grammar than documented.
    """
    form = form_of(dialect)
    options = options or Options()
    specials = specials or {}
    named = [tool for tool in tools if tool.name == choice]
    if choice not in ("auto", "required", "none") and not named:
        raise InputError(f"no tool is called {choice!r}")
    chosen = named or list(tools)
    key = orjson.dumps(
        [
            dialect, choice, parallel, thinking, repr(options), sorted(specials.items()),
            [[tool.name, None if tool.schema is None else tool.schema.document, repr(tool.grammar)] for tool in chosen],
        ],
        option=orjson.OPT_NON_STR_KEYS,
    )  # fmt: skip
    found = _cache.get(key)
    if found is None:
        wanted: Wanted = "required" if named else choice  # type: ignore[assignment]  # checked above
        try:
            found = _cache[key] = _Turn(form, options, specials).build(chosen, wanted, parallel, thinking)
        except RecursionError:
            raise LimitError("a tool's schema is nested too deeply for a grammar") from None
        while len(_cache) > CACHED:
            _cache.popitem(last=False)
    else:
        _cache.move_to_end(key)
    return found


class _Turn:
    def __init__(self, form: Form, options: Options, specials: Mapping[str, int]) -> None:
        self._form = form
        self._specials = specials
        self._rules = Rules(options.spacing)
        self._options = options
        self._blocks = [Block(one, self._rules, options, specials) for one in (form, *form.others)]

    def build(self, tools: Sequence[Tool], wanted: Wanted, parallel: bool, thinking: Thinking) -> Grammar:
        form = self._form
        if wanted == "none" or not tools:
            if wanted == "required":
                raise InputError("a call is required, but there is no tool")
            start = self._seq(*self._thoughts(thinking), self._prose(thinking, tools))
            return Grammar(form.name, self._written(start)[0], None, None, form.word, form.close)
        blocks = [block.calls(tools, parallel) for block in self._blocks]
        by_trigger: dict[str, list[Ref]] = {}
        for block, calls_of in zip(self._blocks, blocks, strict=True):
            by_trigger.setdefault(block.form.trigger, []).append(calls_of)
        inside = self._rules.add(Choice(tuple(by_trigger[form.trigger])))
        others = {
            trigger: self._rules.add(Choice(tuple(found)))
            for trigger, found in by_trigger.items()
            if trigger != form.trigger
        }
        if self._rules.admitting().isdisjoint(blocks):
            raise SchemaError("the schemas of these tools admit no value, so there is nothing a model could call")
        body = once = None
        if form.style == "harmony":
            header = Harmony(self._rules, form, self._specials)
            calls = {tool.name: self._blocks[0].call(tool) for tool in tools}
            whole = header.turn(calls, wanted == "required", parallel, thinking == "open")
            body, once = self._written(inside)[0], self._written(inside)[0]
        elif not form.trigger and not form.optional:
            whole = self._named(tools, wanted, parallel, thinking)
            first = self._blocks[0]
            ways = [self._seq(*self._words(first.opener(tool)), first.after_opener(tool)) for tool in tools]
            once = self._written(self._rules.add(Choice(tuple(ways))))[0]
        else:
            whole = self._turn({form.trigger: inside, **others}, wanted, parallel, thinking, tools)
            if form.word:
                rest = self._rest(inside, parallel, thinking, tools)
                body, once = self._written(rest)[0], self._written(inside)[0]
        lark, pieces = self._written(whole)
        notes = tuple(dict.fromkeys(note for block in self._blocks for note in block.schemas.inexact))
        return Grammar(form.name, lark, body, once, form.word, form.close, notes, pieces)

    # --- the turn around the calls ---

    def _again(self, parallel: bool) -> bool:
        return parallel and self._form.repeat in ("block", "both")

    def _rest(self, block: Ref, parallel: bool, thinking: Thinking, tools: Sequence[Tool]) -> Ref:
        """From just after the trigger to the end of the reply."""
        tail = self._prose(thinking, tools)
        if not self._again(parallel):
            return self._seq(block, tail)
        unit = self._seq(self._until(self._form.trigger, self._unthinking(thinking)), block)
        return self._seq(block, self._rules.add(Many(unit)), tail)

    def _turn(
        self, blocks: Mapping[str, Ref], wanted: Wanted, parallel: bool, thinking: Thinking, tools: Sequence[Tool]
    ) -> Ref:
        """The whole reply, of blocks by their triggers."""
        form = self._form
        ways: list[Ref] = [one.alone(tools, parallel) for one in self._blocks if one.form.optional]
        hidden = self._unthinking(thinking)
        if ways:  # Prose must not look like a call that stands alone.
            hidden += f" & ~/{'|'.join(one.begins(tools) for one in self._blocks if one.form.optional)}/"
        tail = self._prose(thinking, tools)
        if form.trigger:
            units = []
            for trigger, block in blocks.items():
                lead: tuple[Ref, ...] = (self._until(trigger, hidden + self._without_trigger(trigger)),)
                if ways and wanted == "required":  # Where a call may be the whole message, it is.
                    lead = self._words(trigger)
                units.append(self._seq(*lead, block))
            unit = self._rules.add(Choice(tuple(units)))
            if self._again(parallel):
                many = self._rules.add(Many(unit, None, 1 if wanted == "required" else 0))
                ways.append(self._seq(many, tail))
            else:
                ways.append(self._seq(unit, tail))
        if wanted != "required":
            prose = self._rules.expression(f"/(?s:.*)/{hidden}{self._without_trigger()}", "")
            ways.append(prose)
        return self._seq(*self._thoughts(thinking), self._rules.add(Choice(tuple(ways))))

    def _named(self, tools: Sequence[Tool], wanted: Wanted, parallel: bool, thinking: Thinking) -> Ref:
        """A dialect in which the tools' names are the tags: each is a trigger of its own."""
        first = self._blocks[0]
        openers = "|".join(lexemes.escape(first.opener(tool)) for tool in tools)
        hidden = f" & ~/(?s:.*)({openers})(?s:.+)/{self._unthinking(thinking)}"
        units = []
        for tool in tools:
            opener = first.opener(tool)
            lead = self._rules.lazy(f"/(?s:.*){lexemes.escape(opener)}/{hidden}", opener)
            units.append(self._seq(lead, first.after_opener(tool)))
        unit = self._rules.add(Choice(tuple(units)))
        tail = self._prose(thinking, tools)
        if parallel:
            whole = self._rules.add(Many(unit, None, 1 if wanted == "required" else 0))
        else:
            whole = unit if wanted == "required" else self._rules.add(Choice((unit, self._seq())))
        return self._seq(*self._thoughts(thinking), whole, tail)

    # --- small parts ---

    def _seq(self, *parts: Ref) -> Ref:
        return self._rules.add(Seq(parts))

    def _words(self, text: str) -> tuple[Ref, ...]:
        return self._rules.words(text, self._specials)

    def _blank(self) -> Ref:
        return self._rules.terminal(GAP, "")

    def _without_trigger(self, but: str = "") -> str:
        """Keeps every trigger out of prose, except one."""
        triggers = dict.fromkeys(block.form.trigger for block in self._blocks)
        texts = [
            lexemes.escape(trigger)
            for trigger in triggers
            if trigger and trigger != but and not any(name in trigger for name in self._specials)
        ]
        return f" & ~/(?s:.*)({'|'.join(texts)})(?s:.*)/" if texts else ""

    def _prose(self, thinking: Thinking, tools: Sequence[Tool]) -> Ref:
        """Text in which no call begins."""
        hidden = self._unthinking(thinking) + self._without_trigger()
        if not self._form.trigger and not self._form.optional and tools:
            openers = "|".join(lexemes.escape(self._blocks[0].opener(tool)) for tool in tools)
            hidden += f" & ~/(?s:.*)({openers})(?s:.*)/"
        return self._rules.expression("/(?s:.*)/" + hidden, "")

    def _until(self, text: str, hidden: str = "") -> Ref:
        """Text up to the first `text`, with it."""
        return until(self._rules, text, self._specials, hidden)

    def _unthinking(self, thinking: Thinking) -> str:
        """Keeps prose from beginning with a thinking block, in which a trigger is nothing but text."""
        if self._form.think is None or thinking != "optional" or self._form.think[0] in self._specials:
            return ""
        return rf" & ~/[ \t\r\n]*{lexemes.escape(self._form.think[0])}(?s:.*)/"

    def _thoughts(self, thinking: Thinking) -> tuple[Ref, ...]:
        if thinking == "none" or self._form.think is None or self._form.style == "harmony":
            return ()
        opened, closed = self._form.think
        if thinking == "open":
            return (self._until(closed),)
        if opened in self._specials:
            block = self._seq(self._blank(), *self._words(opened), self._until(closed))
        else:
            head = self._rules.terminal(GAP + lexemes.escape(opened), opened)
            block = self._seq(head, self._until(closed))
        return (self._rules.add(Choice((block, self._seq()))),)

    def _written(self, start: Ref) -> tuple[str, Pieces]:
        alive = self._rules.admitting()
        if start not in alive:
            raise SchemaError("the schemas of these tools admit no value, so there is nothing a model could call")
        short = self._rules.shortest(alive)
        lark = f"start: {start}\n" + self._rules.write([start], alive)
        pieces = self._rules.pieces(start, alive, short)
        first = self._blocks[0]
        return lark, replace(pieces, raw=first.raw, ends=first.ends())
