"""Arguments as marked-up parameters, strings raw: any order, each once, required ones complete."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onspec.contract.tool import Tool
from onspec.dialects.envelope import ARGUMENTS
from onspec.dialects.form import Form
from onspec.dialects.values import is_text, wants_text
from onspec.grammar import lexemes, patterns
from onspec.grammar.conjunction import Conj, constants_of, kinds_of
from onspec.grammar.exact import SchemaRules
from onspec.grammar.free import FREE_TEXT, definition
from onspec.grammar.rules import Arr, Choice, Many, Marks, Member, Ref, Rules, Seq, Source

_NO_MARKS = Marks(None, None, None, None)
_TYPE_WORDS = ("string", "number", "boolean", "null", "array", "object")
_SPACE = r"[ \t\r\n]*"
_KEY = re.compile(r"[^<>\"\n|]{1,200}")
_ELEMENT = re.compile(r"[^/<>\s\"|][^<>\s/\"|]{0,199}")
_NAMED = re.compile(r"[A-Za-z_][\w.-]{0,99}", re.ASCII)

NAMES = r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"
"""Undeclared keys that are offered; others could not be told from markup in every dialect."""

GAP = r"[ \t\r\n]{0,8}"
"""White space between two tags."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One call's parameters.

    Attributes:
        tool: Whose.
        keys: Declared keys that can be written.
        names: An expression of any of them.
    """

    tool: Tool
    keys: tuple[str, ...]
    names: str


def hidden_tags(form: Form, name: str = "") -> str:
    """What a raw value may not hold, because its reader would take it for the end of more than the value: the end of
    the call with markup behind it, and the opener of a declared parameter on a line of its own."""
    end = lexemes.escape((form.end or form.close).strip().replace("{name}", name))
    close = lexemes.escape(form.close.strip())
    tag = form.tag.partition("{key}")[0].strip()
    head = (form.call if form.end else form.trigger + form.call).partition("{name}")[0].strip()
    follows = [lexemes.escape(word) for word in (tag, head, form.trigger) if word] + ([close] if close else [])
    ends = "|".join(dict.fromkeys(part for part in (end, close) if part))
    parts = [rf"({ends}){_SPACE}({'|'.join(dict.fromkeys(follows))})"] if tag else []
    if not form.trigger:  # The tags are the names themselves.
        parts = [rf"<\/?{lexemes.escape(name)}>"]
    return "|".join(parts)


class Tagged:
    """Writes the parameters of tools in one dialect.

    Args:
        rules: Where the rules go.
        schemas: Compiles values that are not strings, as JSON.
        form: The dialect.
        specials: Special tokens of the vocabulary, text to id.
    """

    def __init__(self, rules: Rules, schemas: SchemaRules, form: Form, specials: Mapping[str, int]) -> None:
        self._rules = rules
        self._schemas = schemas
        self._form = form
        self._specials = specials
        self._typed = "{string}" in form.tag or "{type}" in form.tag
        self._named = not form.trigger
        self._elements = form.style == "elements"
        self._closers: dict[str, None] = {}
        self._places: dict[tuple[str, tuple[int, ...]], Ref] = {}

    @property
    def closers(self) -> tuple[str, ...]:
        """What closes the parameters written so far."""
        return tuple(self._closers)

    def arguments(self, tool: Tool) -> Ref:
        """The rule of all parameters of one call, each with the white space behind it."""
        document: Any = tool.schema.document if tool.schema is not None else FREE_TEXT
        return self._place(tool, self._schemas.open(document, "object"))

    def _place(self, tool: Tool, conj: Conj) -> Ref:
        flat, choices = self._schemas.document.flatten(conj)
        if flat is None:
            return self._rules.add(None)
        if choices:
            made = self._schemas.document.made
            more = [made({"anyOf": choice}) for choice in choices[1:]]
            return self._rules.add(Choice(tuple(self._place(tool, (*flat, *more, arm)) for arm in choices[0])))
        shape = self._schemas.shape(flat)
        keys = [key for key in shape.values if self._writable(key)]
        if not shape.required <= set(keys):
            return self._rules.add(None)
        call = _Call(tool, tuple(keys), "|".join(map(lexemes.escape, keys)))
        members = [Member(None, self._parameter(call, key, shape.values[key]), key in shape.required) for key in keys]
        others: list[tuple[Ref | None, Ref]] = []
        rest = self._schemas.rest_of(flat)
        if False not in rest:
            if self._named or "{key}" in self._form.tag_end:  # A closer cannot repeat a name that no rule knows.
                self._schemas.note("undeclared keys", "less")
            else:
                self._schemas.note("undeclared keys with unusual characters", "less")
                others.append((None, self._undeclared(call, rest)))
        return self._schemas.finish(shape, keys, members, others, _NO_MARKS)

    def _writable(self, key: str) -> bool:
        shape = _NAMED if self._named else _ELEMENT if self._elements else _KEY
        return shape.fullmatch(key) is not None

    # --- one parameter ---

    def _parameter(self, call: _Call, key: str, conj: Conj) -> Ref:
        if self._typed:
            return self._typed_parameter(call, key, conj)
        if call.tool.schema is None:
            return self._whole(key, "string", self._free(call.tool, key))
        if is_text(call.tool, key):
            return self._text(call, key, (*conj, self._schemas.document.made({"type": "string"})))
        return self._whole(key, "object", self._ended(key, self._value(key, conj)))

    def _text(self, call: _Call, key: str, conj: Conj) -> Ref:
        flat, choices = self._schemas.document.flatten(conj)
        if flat is None or "string" not in kinds_of(flat):
            return self._rules.add(None)
        if choices:
            made = self._schemas.document.made
            rest = [made({"anyOf": choice}) for choice in choices[1:]]
            return self._rules.add(Choice(tuple(self._text(call, key, (*flat, *rest, arm)) for arm in choices[0])))
        return self._whole(key, "string", self._raw(call, key, flat))

    def _typed_parameter(self, call: _Call, key: str, conj: Conj) -> Ref:
        flat, choices = self._schemas.document.flatten(conj)
        if flat is None:
            return self._rules.add(None)
        if choices:
            made = self._schemas.document.made
            rest = [made({"anyOf": choice}) for choice in choices[1:]]
            arms = tuple(self._typed_parameter(call, key, (*flat, *rest, arm)) for arm in choices[0])
            return self._rules.add(Choice(arms))
        kinds = kinds_of(flat)
        arms_: list[Ref] = []
        if "string" in kinds:
            free = call.tool.schema is None
            arms_.append(self._whole(key, "string", self._free(call.tool, key) if free else self._raw(call, key, flat)))
        for word in ("integer", *_TYPE_WORDS[1:]):
            if word in kinds:
                value = self._schemas.place((*flat, self._schemas.document.made({"type": word})))
                arms_.append(self._whole(key, word, self._ended(key, value)))
        return self._rules.add(Choice(tuple(arms_)))

    def _whole(self, key: str, kind: str, rest: Ref) -> Ref:
        """A parameter: its opener, its value with the closer, and white space."""
        word = "number" if kind == "integer" else kind
        text = self._form.tag.replace("{key}", key).replace("{string}", "true" if kind == "string" else "false")
        head = self._rules.words(text.replace("{type}", word), self._specials)
        return self._rules.add(Seq((*head, rest, self._rules.terminal(GAP, self._gap()))))

    def _gap(self) -> str:
        """White space behind a parameter, as written."""
        return self._form.tag_end[len(self._form.tag_end.rstrip()) :]

    def _closer(self, key: str) -> tuple[str, str]:
        """The newline before a parameter's closer, if it is framed so, and the closer."""
        end = self._form.tag_end.replace("{key}", key)
        self._closers[end.rstrip()] = None
        return end[: len(end) - len(end.lstrip())], end.strip()

    def _ended(self, key: str, value: Ref) -> Ref:
        return self._rules.add(Seq((value, *self._rules.words("".join(self._closer(key)), self._specials))))

    # --- values ---

    def _free(self, tool: Tool, key: str) -> Ref:
        """The text of a custom tool, in its own grammar where it has one."""
        lark = definition(tool)
        if lark is None:
            return self._until(key, "(?s:.*)", "")
        return self._ended(key, self._rules.add(Source(lark)))

    def _raw(self, call: _Call, key: str, flat: list[dict[str, Any]]) -> Ref:
        """Raw text with what closes it."""
        values = constants_of(flat)
        if values is not None:
            texts = [value for value in self._schemas.allowed(flat, values) if isinstance(value, str)]
            if not texts:
                return self._rules.add(None)
            return self._until(key, "(" + "|".join(map(lexemes.escape, texts)) + ")", min(texts, key=len))
        low, high = self._schemas.lengths(flat)
        if high is not None and low > high:
            return self._rules.add(None)
        found = [part["pattern"] for part in flat if isinstance(part.get("pattern"), str)]
        found += self._schemas.formats(flat)
        bodies: list[str] = []
        for pattern in dict.fromkeys(found):
            try:
                bodies.append(patterns.containing(pattern, False))
            except patterns.Unsupported:
                self._schemas.note("pattern")
        short: str | None = "x" * low
        if bodies:
            example = patterns.shortest(found[0])
            fits = len(bodies) == 1 and low <= len(example) and (high is None or len(example) <= high)
            short = example if fits else None
        if low or high is not None:
            bodies.append(f"(?s:.{{{low},{'' if high is None else high}}})")
        if bodies:
            return self._until(key, bodies, short, call)
        return self._until(key, "(?s:.*)", "", call)

    def _until(self, key: str, bodies: str | list[str], short: str | None, call: _Call | None = None) -> Ref:
        """Text of which each of `bodies` is a regular expression, with the closer behind it."""
        frame, end = self._closer(key)
        listed = [bodies] if isinstance(bodies, str) else bodies
        free = listed == ["(?s:.*)"]
        lead = trail = frame
        if self._form.framed and not frame and not free:
            lead = trail = r"\n?"
        else:
            lead, trail = "", lexemes.escape(frame)
        whole = [f"{lead}{body}{trail}" for body in listed]
        if self._form.cdata and not free:
            whole = [rf"({text}|<!\[CDATA\[{text}\]\]>)" for text in whole]
        guards = self._guards(key, call, end, framed=bool(frame))
        if any(name in end for name in self._specials):
            text = self._rules.expression(" & ".join([*(f"/{body}/" for body in whole), *guards]), short)
            return self._rules.add(Seq((text, *self._rules.words(end, self._specials))))
        close = lexemes.escape(end)
        if not free:
            guards.append(f"~/(?s:.*){close}(?s:.+)/")
        lark = " & ".join([*(f"/{body}{close}/" for body in whole), *guards])
        example = None if short is None else short + frame + end
        return self._rules.lazy(lark, example)

    def _guards(self, key: str, call: _Call | None, end: str, framed: bool) -> list[str]:
        if call is None:
            return []
        found = [hidden_tags(self._form, call.tool.name)]
        if self._named:
            found.append(f"<{lexemes.escape(key)}>")
        elif framed:
            tag = lexemes.escape(self._form.tag.partition("{key}")[0])
            over = lexemes.escape((self._form.end or self._form.close).strip())
            found.append(f"{lexemes.escape(end)}{_SPACE}({tag}|{over})")
        guards = [f"~/(?s:.*)({'|'.join(filter(None, found))})(?s:.*)/"]
        if not self._named and not self._elements and call.keys:
            lead, _, after = self._form.tag.partition("{key}")
            opener = f"{lexemes.escape(lead)}({call.names}){lexemes.escape(after.strip()[:1])}"
            guards.append(rf"~/((?s:.*)\n)?[ \t]*{opener}(?s:.*)/")
        return guards

    def _undeclared(self, call: _Call, rest: Conj) -> Ref:
        text = all(wants_text(part, self._schemas.document.schema) for part in rest)
        kind = "string" if text else "object"
        tag = self._form.tag.replace("{string}", "true" if text else "false").replace("{type}", kind)
        before, after = tag.split("{key}")
        known = f" & ~/({'|'.join(map(lexemes.escape, [*call.keys, *ARGUMENTS]))})/"
        key = self._rules.expression(f"/{NAMES}/" + known, "x")
        if text:
            made = self._schemas.document.made({"type": "string"})
            flat, choices = self._schemas.document.flatten((*rest, made))
            value = self._raw(call, "", flat) if flat is not None and not choices else self._rules.add(None)
        else:
            value = self._ended("", self._schemas.place(rest))
        lead, follow = (self._rules.words(part, self._specials) for part in (before, after))
        return self._rules.add(Seq((*lead, key, *follow, value, self._rules.terminal(GAP, self._gap()))))

    # --- elements in elements ---

    def _value(self, key: str, conj: Conj) -> Ref:
        """A value that is no text: as JSON; in a dialect of elements also as elements in elements."""
        plain = self._schemas.place(conj)
        if not self._elements:
            return plain
        place = (key, tuple(id(part) for part in conj))
        found = self._places.get(place)
        if found is None:
            found = self._places[place] = self._rules.reserve()
            nested = self._nested(conj)
            self._rules.define(found, Choice((plain, nested) if nested is not None else (plain,)))
        return found

    def _nested(self, conj: Conj) -> Ref | None:
        flat, choices = self._schemas.document.flatten(conj)
        if (
            flat is None
            or choices
            or constants_of(flat) is not None
            or any("$ref" in part for part in conj if isinstance(part, dict))
        ):
            return None
        kinds = kinds_of(flat)
        gap = self._rules.terminal(GAP, "")
        if kinds == {"object"}:
            shape = self._schemas.shape(flat)
            if not shape.values or "item" in shape.values or not all(map(_ELEMENT.fullmatch, shape.values)):
                return None
            members = [Member(None, self._child(key, value), key in shape.required)
                       for key, value in shape.values.items()]  # fmt: skip
            return self._rules.add(Seq((gap, self._schemas.finish(shape, list(shape.values), members, [], _NO_MARKS))))
        if kinds == {"array"} and all(isinstance(part.get("items", {}), dict) for part in flat):
            node = self._rules.node_of(self._schemas.place(conj))
            low = max((int(part.get("minItems", 0)) for part in flat), default=0)
            bounded = any("maxItems" in part or "prefixItems" in part for part in flat) or low > 1
            if bounded or not isinstance(node, Arr | Choice):
                return None
            item = self._child("item", tuple(part.get("items", True) for part in flat))
            return self._rules.add(Seq((gap, self._rules.add(Many(item, None, 1)))))
        return None

    def _child(self, key: str, conj: Conj) -> Ref:
        """One element inside another. Its schema must say plainly whether it is text."""
        root = self._schemas.document.schema
        plain = all(isinstance(part, dict) and "$ref" not in part for part in conj)
        if plain and all(wants_text(part, root) for part in conj) and any("type" in part for part in conj):
            flat, choices = self._schemas.document.flatten((*conj, self._schemas.document.made({"type": "string"})))
            if flat is None or choices:
                return self._rules.add(None)
            return self._whole(key, "string", self._raw(_Call(Tool("x", True), (), ""), key, flat))
        if not plain:
            return self._rules.add(None)
        return self._whole(key, "object", self._ended(key, self._value(key, conj)))
