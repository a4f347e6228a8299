"""Tools and a dialect as one grammar of a whole reply: prose free, calls exact."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import orjson

from onspec.contract.tool import Tool
from onspec.errors import InputError, SchemaError
from onspec.grammar import lexemes
from onspec.grammar.exact import Inexact, Options, SchemaRules
from onspec.grammar.forms import FORMS, Form
from onspec.grammar.notation import JSON, PYTHON, bare
from onspec.grammar.rules import Arr, Choice, Many, Marks, Member, Obj, Pieces, Ref, Rules, Seq
from onspec.grammar.tagged import FREE_TEXT, Tagged

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
            switch on at the trigger. None where the dialect has no trigger, or calls are not wanted.
        calls: One block of calls from just after the trigger to its end, with nothing after it.
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
        dialect: A row of `onspec.grammar.forms.FORMS`.
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
    form = FORMS.get(dialect)
    if form is None:
        raise InputError(f"no dialect is called {dialect!r}; there are {', '.join(FORMS)}")
    options = options or Options()
    specials = specials or {}
    named = [tool for tool in tools if tool.name == choice]
    if choice not in ("auto", "required", "none") and not named:
        raise InputError(f"no tool is called {choice!r}")
    chosen = named or list(tools)
    key = orjson.dumps(
        [
            dialect, choice, parallel, thinking, repr(options), sorted(specials.items()),
            [[tool.name, None if tool.schema is None else tool.schema.document] for tool in chosen],
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
        notation = {"keywords": PYTHON, "bare": bare(form.marks)}.get(form.style, JSON)
        self._schemas = SchemaRules(self._rules, options, notation)
        self._tagged = Tagged(self._rules, self._schemas, form, specials)
        self._options = options

    def build(self, tools: Sequence[Tool], wanted: Wanted, parallel: bool, thinking: Thinking) -> Grammar:
        form = self._form
        if wanted == "none" or not tools:
            if wanted == "required":
                raise InputError("a call is required, but there is no tool")
            start = self._seq(*self._thoughts(thinking), self._prose(thinking))
            return Grammar(form.name, self._written(start)[0], None, None, form.trigger, form.close)
        calls = self._rules.add(Choice(tuple(self._call(tool) for tool in tools)))
        if self._rules.admitting().isdisjoint({calls}):
            raise SchemaError("the schemas of these tools admit no value, so there is nothing a model could call")
        block = self._block(calls, parallel)
        if form.name == "harmony":
            whole = self._harmony(block, wanted, thinking)
            rest = block
        elif form.trigger:
            whole, rest = self._triggered(block, wanted, parallel, thinking)
        else:
            whole, rest = self._message(block, wanted, thinking), block
        lark, pieces = self._written(whole)
        body = self._written(rest)[0] if form.trigger else None
        once = self._written(block)[0]
        return Grammar(form.name, lark, body, once, form.trigger, form.close, self._schemas.inexact, pieces)

    # --- one call ---

    def _call(self, tool: Tool) -> Ref:
        form = self._form
        if form.style == "envelope":
            return self._envelope(tool)
        before, _, after = form.call.partition("{name}")
        head = [*self._words(before), *self._words(tool.name), *self._after_name(after)]
        if form.style == "tags":
            return self._seq(*head, self._tagged.arguments(tool), *self._words(form.end))
        document: Any = tool.schema.document if tool.schema is not None else FREE_TEXT
        if tool.schema is None and form.name == "harmony":
            body = self._rules.lazy(f"/(?s:.*){lexemes.escape(form.end)}/", form.end)
            if form.end in self._specials:
                body = self._seq(self._rules.terminal("(?s:.*)", ""), *self._words(form.end))
            return self._seq(*head, body)
        if form.style == "keywords":
            return self._seq(*head, self._keywords(document))
        return self._seq(
            *head, *self._gap(), self._schemas.add(document, "object"), *self._gap(), *self._words(form.end)
        )

    def _after_name(self, text: str) -> tuple[Ref, ...]:
        if "{index}" in text:
            before, after = text.split("{index}")
            return (*self._words(before), self._rules.terminal("[0-9]{1,3}", "0"), *self._words(after))
        if "{constrain}" in text:
            _, after = text.split("{constrain}")
            forms = (" <|constrain|>json", "<|constrain|>json", " json", "")
            ways = tuple(self._seq(*self._words(form)) for form in forms)
            return (self._rules.add(Choice(ways)), *self._words(after))
        return self._words(text)

    def _envelope(self, tool: Tool) -> Ref:
        name_key, arguments_key = self._form.keys
        body = self._schemas.add(tool.schema.document if tool.schema is not None else FREE_TEXT, "object")
        every = self._options.spellings
        parts = [(name_key, self._rules.terminal(JSON.spelled(tool.name, every), JSON.example(tool.name)))]
        parts += [(key, self._schemas.add(orjson.loads(schema))) for key, schema in self._form.fixed]
        parts.append((arguments_key, body))
        members = tuple(
            Member(self._rules.terminal(JSON.spelled(key, every), JSON.example(key)), value, True)
            for key, value in parts
        )
        return self._rules.add(Obj(members, (), ordered=self._options.order == "schema"))

    def _keywords(self, document: Any) -> Ref:
        flat, choices = self._schemas.document.flatten(self._schemas.open(document, "object"))
        if flat is None:
            return self._rules.add(None)
        if choices:
            self._schemas.note("anyOf at the top")
        shape = self._schemas.shape(flat)
        keys = [key for key in shape.values if key.isidentifier()]
        if set(keys) < set(shape.required):
            return self._rules.add(None)  # A key that is no identifier cannot be a keyword argument.
        members = [
            Member(self._rules.terminal(lexemes.escape(key) + "=", f"{key}="), self._schemas.place(shape.values[key]),
                   key in shape.required)
            for key in keys
        ]  # fmt: skip
        gap = r"[ \t\r\n]{0,8}"
        marks = Marks(
            self._rules.terminal(rf"\({gap}", "("), self._rules.terminal(rf"{gap}\)", ")"),
            self._rules.terminal(f"{gap},{gap}", ", "), None,
        )  # fmt: skip
        others: list[tuple[Ref | None, Ref]] = []
        if all(part.get("additionalProperties", True) is not False for part in flat):
            hidden = f" & ~/({'|'.join(keys)})=/" if keys else ""
            others.append(
                (self._rules.expression("/[A-Za-z_][A-Za-z0-9_]*=/" + hidden, "x="), self._schemas.anything())
            )
        return self._schemas.finish(shape, keys, members, others, marks)

    # --- several calls ---

    def _block(self, call: Ref, parallel: bool) -> Ref:
        """All that follows the trigger up to the end of the block."""
        form = self._form
        many = parallel and form.repeat == "call"
        if form.listed:
            body = self._rules.add(Arr((), call, 1, None if many else 1))
        elif many:
            between = self._rules.add(Seq(self._words(form.between))) if form.between else self._blank()
            body = self._rules.add(Many(call, between, 1))
        else:
            body = call
        return self._seq(*self._gap(), body, *self._gap(), *self._words(form.close))

    def _triggered(self, block: Ref, wanted: Wanted, parallel: bool, thinking: Thinking) -> tuple[Ref, Ref]:
        form = self._form
        again = parallel and form.repeat == "block"
        hidden = self._unthinking(thinking)
        unit = self._seq(self._until(form.trigger, hidden), block)
        tail = self._prose(thinking)
        if again:
            whole = self._rules.add(Many(unit, None, 1 if wanted == "required" else 0))
            rest = self._seq(block, self._rules.add(Many(unit)), tail)
        else:
            whole = unit if wanted == "required" else self._rules.add(Choice((unit, self._seq())))
            rest = self._seq(block, tail)
        return self._seq(*self._thoughts(thinking), whole, tail), rest

    def _message(self, block: Ref, wanted: Wanted, thinking: Thinking) -> Ref:
        """A dialect without a trigger: the whole message is the call, or holds none."""
        if wanted == "required":
            return self._seq(*self._thoughts(thinking), block)
        first = "{" if self._form.style in ("envelope", "json") and not self._form.listed else "["
        prose = self._rules.expression(rf"/([^\{first}\s](?s:.*))?/{self._unthinking(thinking)}", "")
        return self._seq(*self._thoughts(thinking), self._rules.add(Choice((block, prose))))

    def _harmony(self, call: Ref, wanted: Wanted, thinking: Thinking) -> Ref:
        def message(channel: str) -> Ref:
            return self._seq(*self._words(f"<|channel|>{channel}<|message|>"), self._until("<|end|>"))

        again = self._words("<|start|>assistant")
        before = self._rules.add(Choice((message("analysis"), message("commentary"))))
        lead = self._rules.add(Many(self._seq(before, *again)))
        first: tuple[Ref, ...] = ()
        if thinking == "open":
            first = (self._until("<|end|>"), *again)
        direct = self._seq(*self._words(self._form.trigger), call)
        final = self._seq(*self._words("<|channel|>final<|message|>"), self._text())
        last = direct if wanted == "required" else self._rules.add(Choice((direct, final)))
        return self._seq(*first, lead, last)

    # --- small parts ---

    def _seq(self, *parts: Ref) -> Ref:
        return self._rules.add(Seq(parts))

    def _words(self, text: str) -> tuple[Ref, ...]:
        return self._rules.words(text, self._specials)

    def _gap(self) -> tuple[Ref, ...]:
        return (self._blank(),) if self._form.loose and self._form.style != "tags" else ()

    def _blank(self) -> Ref:
        return self._rules.terminal(r"[ \t\r\n]{0,8}", "")

    def _text(self) -> Ref:
        return self._rules.terminal("(?s:.*)", "")

    def _prose(self, thinking: Thinking) -> Ref:
        """Text in which no call begins."""
        trigger = self._form.trigger
        hidden = self._unthinking(thinking)
        if trigger and not any(name in trigger for name in self._specials):
            hidden += rf" & ~/(?s:.*){lexemes.escape(trigger)}(?s:.*)/"
        return self._rules.expression("/(?s:.*)/" + hidden, "")

    def _until(self, text: str, hidden: str = "") -> Ref:
        """Text up to the first `text`, with it."""
        if any(name in text for name in self._specials):
            prose = self._rules.expression("/(?s:.*)/" + hidden, "")
            return self._seq(prose, *self._words(text))
        return self._rules.lazy(f"/(?s:.*){lexemes.escape(text)}/{hidden}", text)

    def _unthinking(self, thinking: Thinking) -> str:
        """Keeps prose from beginning with a thinking block, in which a trigger is nothing but text."""
        opened = self._form.think[0]
        if thinking != "optional" or opened in self._specials:
            return ""
        return rf" & ~/[ \t\r\n]*{lexemes.escape(opened)}(?s:.*)/"

    def _thoughts(self, thinking: Thinking) -> tuple[Ref, ...]:
        opened, closed = self._form.think
        if thinking == "none" or self._form.name == "harmony":
            return ()
        if thinking == "open":
            return (self._until(closed),)
        if opened in self._specials:
            block = self._seq(self._blank(), *self._words(opened), self._until(closed))
        else:
            head = self._rules.terminal(r"[ \t\r\n]{0,8}" + lexemes.escape(opened), opened)
            block = self._seq(head, self._until(closed))
        return (self._rules.add(Choice((block, self._seq()))),)

    def _written(self, start: Ref) -> tuple[str, Pieces]:
        alive = self._rules.admitting()
        if start not in alive:
            raise SchemaError("the schemas of these tools admit no value, so there is nothing a model could call")
        short = self._rules.shortest(alive)
        lark = f"start: {start}\n" + self._rules.write([start], alive)
        pieces = self._rules.pieces(start, alive, short)
        ends = {"tags": (self._form.tag_end,), "keywords": ('"', "'"), "bare": (self._form.marks,)}.get(
            self._form.style, ()
        )
        return lark, replace(pieces, raw=bool(ends), ends=ends)
