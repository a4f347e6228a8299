"""The calls of one form: several in a block, one with its head and end, its arguments in the form's notation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from onspec.contract.tool import Tool
from onspec.dialects.form import Form
from onspec.grammar import lexemes
from onspec.grammar.conjunction import Conj
from onspec.grammar.exact import Options, SchemaRules
from onspec.grammar.free import definition, document
from onspec.grammar.harmony import Harmony
from onspec.grammar.notation import JSON, PYTHON, Notation, bare, guarded
from onspec.grammar.rules import Arr, Choice, Many, Marks, Member, Obj, Ref, Rules, Seq, Source
from onspec.grammar.tagged import GAP, Tagged

_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"


class Block:
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
        headed = (form.style == "json" and form.repeat == "block") or form.trigger.endswith('"')  # a name in quotes
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
