"""Tools and a dialect as one grammar of a whole reply: prose free, calls exact."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import orjson

from onspec.contract.tool import Tool
from onspec.dialects.form import Form
from onspec.errors import InputError, SchemaError
from onspec.grammar import lexemes
from onspec.grammar.conjunction import Conj
from onspec.grammar.exact import Inexact, Options, SchemaRules
from onspec.grammar.forms import form_of
from onspec.grammar.free import definition, document
from onspec.grammar.harmony import Harmony
from onspec.grammar.notation import JSON, PYTHON, Notation, bare, guarded
from onspec.grammar.rules import Arr, Choice, Many, Marks, Member, Obj, Pieces, Ref, Rules, Seq, Source
from onspec.grammar.tagged import GAP, Tagged

Wanted = Literal["auto", "required", "none"]
Thinking = Literal["none", "optional", "open"]

CACHED = 256
"""Built grammars kept."""

_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"

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
        found = _cache[key] = _Turn(form, options, specials).build(chosen, wanted, parallel, thinking)
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
        self._blocks = [_Block(one, self._rules, options, specials) for one in (form, *form.others)]

    def build(self, tools: Sequence[Tool], wanted: Wanted, parallel: bool, thinking: Thinking) -> Grammar:
        form = self._form
        if wanted == "none" or not tools:
            if wanted == "required":
                raise InputError("a call is required, but there is no tool")
            start = self._seq(*self._thoughts(thinking), self._prose(thinking, tools))
            return Grammar(form.name, self._written(start)[0], None, None, form.word, form.close)
        blocks = [block.calls(tools, parallel) for block in self._blocks]
        inside = self._rules.add(Choice(tuple(blocks)))
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
            whole = self._turn(inside, wanted, parallel, thinking, tools)
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

    def _turn(self, block: Ref, wanted: Wanted, parallel: bool, thinking: Thinking, tools: Sequence[Tool]) -> Ref:
        form = self._form
        ways: list[Ref] = [one.alone(tools, parallel) for one in self._blocks if one.form.optional]
        hidden = self._unthinking(thinking)
        if ways:  # Prose must not look like a call that stands alone.
            hidden += f" & ~/{'|'.join(one.begins(tools) for one in self._blocks if one.form.optional)}/"
        tail = self._prose(thinking, tools)
        if form.trigger:
            lead: tuple[Ref, ...] = (self._until(form.trigger, hidden),)
            if ways and wanted == "required":  # Where a call may be the whole message, it is.
                lead = self._words(form.trigger)
            unit = self._seq(*lead, block)
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

    def _without_trigger(self) -> str:
        trigger = self._form.trigger
        if not trigger or any(name in trigger for name in self._specials):
            return ""
        return f" & ~/(?s:.*){lexemes.escape(trigger)}(?s:.*)/"

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


class _Block:
    """The calls in one form.

    Args:
        form: How they are written.
        rules: Where the rules go.
        options: Of the arguments.
        specials: Special tokens of the vocabulary, text to id.
    """

    def __init__(self, form: Form, rules: Rules, options: Options, specials: Mapping[str, int]) -> None:
        self.form = form
        self._rules = rules
        self._options = options
        self._specials = specials
        self.schemas = SchemaRules(rules, options, self._notation())
        self._tagged = Tagged(rules, self.schemas, form, specials)
        self._calls: dict[str, Ref] = {}

    def _notation(self) -> Notation:
        form = self.form
        if form.style == "keywords":
            return PYTHON
        if form.style == "bare":
            return bare(form.mark, self._specials.get(form.mark))
        if form.style not in ("tags", "elements"):
            return JSON
        texts = (form.tag_end.partition("{key}")[0], form.tag.partition("{key}")[0], form.end, form.close)
        words = [text.partition("{name}")[0].strip() for text in texts]
        plain = [word for word in words if word and not any(name in word for name in self._specials)]
        return guarded("|".join(dict.fromkeys(map(lexemes.escape, plain))))

    @property
    def raw(self) -> bool:
        """Whether the body is not JSON, so that quotes and brackets mean nothing in it."""
        return self.form.style in ("keywords", "tags", "elements", "bare")

    def ends(self) -> tuple[str, ...]:
        """What closes a raw string; nothing where the body is JSON."""
        form = self.form
        if form.style == "keywords":
            return ('"', "'")
        if form.style in ("tags", "elements"):
            return self._tagged.closers
        return (form.mark,) if form.style == "bare" else ()

    # --- several calls ---

    def calls(self, tools: Sequence[Tool], parallel: bool) -> Ref:
        """All that follows the trigger up to the end of the block."""
        form, rules = self.form, self._rules
        if form.style == "harmony":
            return rules.add(Choice(tuple(self._after_trigger(tool) for tool in tools)))
        parts = [self._inner(tools, parallel), *self._gap()]
        if form.close:
            parts += self._words(form.close.strip() if form.loose else form.close)
        headed = form.style == "json" and form.repeat == "block"
        return rules.add(Seq((*(() if headed else self._gap(form.lead)), *parts)))

    def alone(self, tools: Sequence[Tool], parallel: bool) -> Ref:
        """The calls as a whole message, without trigger and close."""
        return self._rules.add(Seq((self._inner(tools, parallel),)))

    def begins(self, tools: Sequence[Tool]) -> str:
        """A regular expression of texts that begin as a message of calls alone does."""
        bracket = r"[ \t\r\n]*" + (r"\[[ \t\r\n]*" if self.form.listed else "")
        if self.form.style in ("envelope", "keyed", "json"):
            return bracket + r"\{(?s:.*)"
        if self.form.listed:  # A bracket is a word of its own: from the next character on it must be no prose.
            return bracket + "[" + "".join(dict.fromkeys(re.escape(tool.name[0]) for tool in tools)) + "](?s:.*)"
        names = "|".join(lexemes.escape(tool.name + self.form.call.partition("{name}")[2]) for tool in tools)
        return bracket + rf"({names})[ \t]*\((?s:.*)"

    def _inner(self, tools: Sequence[Tool], parallel: bool) -> Ref:
        form, rules = self.form, self._rules
        call = rules.add(Choice(tuple(self.call(tool) for tool in tools)))
        many = parallel and form.repeat in ("call", "both")
        if form.listed:
            return rules.add(Arr((), call, 1, None if many else 1))
        if not many:
            return call
        if form.between.strip():
            return rules.add(Many(call, rules.add(Seq(self._words(form.between))), 1))
        # Tags carry the white space behind them; JSON bodies do not.
        return rules.add(Many(call, None if form.style in ("tags", "elements") else self._separator(), 1))

    def _separator(self) -> Ref:
        if self.form.style == "keywords":
            return self._rules.terminal(r"[ \t]{0,4}\n[ \t\n]{0,4}", "\n")
        return self._blank(self.form.between)

    # --- one call ---

    def call(self, tool: Tool) -> Ref:
        """The rule of one call, after the trigger."""
        found = self._calls.get(tool.name)
        if found is None:
            found = self._calls[tool.name] = self._call(tool)
        return found

    def opener(self, tool: Tool) -> str:
        """What begins a call of `tool` where there is no other trigger."""
        return self.form.call.replace("{name}", tool.name).strip()

    def after_opener(self, tool: Tool) -> Ref:
        """The rest of such a call."""
        end = self._words((self.form.end + self.form.close).replace("{name}", tool.name).strip())
        return self._rules.add(Seq((self._blank("\n"), self._tagged.arguments(tool), *end)))

    def _after_trigger(self, tool: Tool) -> Ref:
        header = Harmony(self._rules, self.form, self._specials)
        return self._rules.add(Seq((*self._words(tool.name), header.constrained(), self.call(tool))))

    def _call(self, tool: Tool) -> Ref:
        form, rules = self.form, self._rules
        if form.style in ("envelope", "keyed"):
            return self._envelope(tool)
        if form.style == "harmony":
            return self._body(tool)
        if not form.call:
            return self._body(tool)
        before, _, after = form.call.partition("{name}")
        head = [*self._words(before), *self._words(tool.name), *self._after_name(after)]
        if form.style in ("tags", "elements"):
            end = self._words(form.end.strip())
            tail = (self._blank(form.end[len(form.end.rstrip()) :]),) if end else ()
            gap = self._blank(after[len(after.rstrip()) :])
            return rules.add(Seq((*head, gap, self._tagged.arguments(tool), *end, *tail)))
        if form.style == "keywords":
            return rules.add(Seq((*head, self._keywords(document(tool)))))
        return rules.add(Seq((*head, self._body(tool))))

    def _body(self, tool: Tool) -> Ref:
        """The arguments as JSON with what ends the call, or a custom tool's text."""
        form, rules = self.form, self._rules
        if tool.schema is None and form.free:
            lark = definition(tool)
            if lark is not None:
                return rules.add(Seq((rules.add(Source(lark)), *self._words(form.end))))
            begin = "(?s:.*)" if form.style == "harmony" else r"[^\s{\[`](?s:.*)"
            return until(rules, form.end, self._specials, "", begin)
        body = self.schemas.add(document(tool), "object")
        return rules.add(Seq((*self._gap(), body, *self._gap(), *self._words(form.end))))

    def _after_name(self, text: str) -> tuple[Ref, ...]:
        if "{index}" in text:
            before, after = text.split("{index}")
            return (*self._words(before), self._rules.terminal("[0-9]{1,3}", "0"), *self._words(after.rstrip()))
        if "{call_id}" in text:
            ident = self._rules.add(Seq((*self._words("[CALL_ID]"), self._rules.terminal("[A-Za-z0-9_-]{1,40}", "0"))))
            way = self._rules.add(Choice((ident, self._rules.add(Seq(())))))
            return (way, *self._words(text.split("{call_id}")[1]))
        return self._words(text.rstrip() if self.form.style in ("tags", "elements") else text)

    def _envelope(self, tool: Tool) -> Ref:
        form = self.form
        body = self.schemas.add(document(tool), "object")
        every = self._options.spellings
        name = self._rules.terminal(JSON.spelled(tool.name, every), JSON.example(tool.name))
        if form.style == "keyed":
            return self._rules.add(Obj((Member(name, body, True),), ()))
        parts = [(form.keys[0], name, True)]
        parts += [(key, self.schemas.add(orjson.loads(schema)), True) for key, schema in form.fixed]
        parts += [(key, self.schemas.add(orjson.loads(schema)), False) for key, schema in form.may]
        parts.append((form.keys[1], body, True))
        members = tuple(  # Readers know the envelope's keys by their plain spelling only.
            Member(self._rules.terminal(JSON.spelled(key, False), JSON.example(key)), value, needed)
            for key, value, needed in parts
        )
        return self._rules.add(Obj(members, (), ordered=self._options.order == "schema"))

    def _keywords(self, found: Any) -> Ref:
        return self._arguments(self.schemas.open(found, "object"))

    def _arguments(self, conj: Conj) -> Ref:
        flat, choices = self.schemas.document.flatten(conj)
        if flat is None:
            return self._rules.add(None)
        if choices:
            more = [self.schemas.document.made({"anyOf": choice}) for choice in choices[1:]]
            return self._rules.add(Choice(tuple(self._arguments((*flat, *more, arm)) for arm in choices[0])))
        shape = self.schemas.shape(flat)
        keys = [key for key in shape.values if key.isidentifier() and key.isascii()]
        if not shape.required <= set(keys):
            return self._rules.add(None)  # A key that is no identifier cannot be a keyword argument.
        members = [
            Member(self._rules.terminal(lexemes.escape(key) + "=", f"{key}="), self.schemas.place(shape.values[key]),
                   key in shape.required)
            for key in keys
        ]  # fmt: skip
        gap = r"[ \t\r\n]{0,8}"
        marks = Marks(
            self._rules.terminal(rf"\({gap}", "("), self._rules.terminal(rf"{gap}\)", ")"),
            self._rules.terminal(f"{gap},{gap}", ", "), None,
        )  # fmt: skip
        others: list[tuple[Ref | None, Ref]] = []
        rest = self.schemas.rest_of(flat)
        if False not in rest:
            hidden = f" & ~/({'|'.join(keys)})=/" if keys else ""
            others.append((self._rules.expression(f"/{_IDENTIFIER}=/{hidden}", "x="), self.schemas.place(rest)))
        return self.schemas.finish(shape, keys, members, others, marks)

    # --- small parts ---

    def _words(self, text: str) -> tuple[Ref, ...]:
        return self._rules.words(text, self._specials)

    def _gap(self, written: str = "") -> tuple[Ref, ...]:
        return (self._blank(written),) if self.form.loose else ()

    def _blank(self, written: str = "") -> Ref:
        """White space, as little as may be; `written` is how the dialect writes it."""
        return self._rules.terminal(GAP, written if not written.strip() else "")


def until(rules: Rules, text: str, specials: Mapping[str, int], hidden: str = "", before: str = "(?s:.*)") -> Ref:
    """What `before` matches up to the first `text`, with it."""
    if any(name in text for name in specials):
        prose = rules.expression(f"/{before}/{hidden}", "")
        return rules.add(Seq((prose, *rules.words(text, specials))))
    return rules.lazy(f"/{before}{lexemes.escape(text)}/{hidden}", text)
