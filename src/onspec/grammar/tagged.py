"""Arguments as marked-up parameters, strings raw: any order, each once, required ones complete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onspec.contract.tool import Tool
from onspec.grammar import lexemes, patterns
from onspec.grammar.conjunction import Conj, constants_of, kinds_of
from onspec.grammar.exact import SchemaRules
from onspec.grammar.forms import Form
from onspec.grammar.rules import Choice, Marks, Member, Ref, Rules, Seq

_NO_MARKS = Marks(None, None, None, None)
_TYPE_WORDS = ("string", "number", "boolean", "null", "array", "object")


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
        self._raw_rule: Ref | None = None

    def arguments(self, tool: Tool) -> Ref:
        """The rule of all parameters of one call."""
        document: Any = tool.schema.document if tool.schema is not None else FREE_TEXT
        return self._place(self._schemas.open(document, "object"))

    def _place(self, conj: Conj) -> Ref:
        flat, choices = self._schemas.document.flatten(conj)
        if flat is None:
            return self._rules.add(None)
        if choices:
            made = self._schemas.document.made
            rest = [made({"anyOf": choice}) for choice in choices[1:]]
            arms = tuple(self._place((*flat, *rest, arm)) for arm in choices[0])
            return self._rules.add(Choice(arms))
        shape = self._schemas.shape(flat)
        members = [
            Member(None, self._parameter(key, conj), key in shape.required) for key, conj in shape.values.items()
        ]
        others: list[tuple[Ref | None, Ref]] = []
        if all(part.get("additionalProperties", True) is not False for part in flat):
            others.append((None, self._undeclared(list(shape.values))))
        return self._schemas.finish(shape, list(shape.values), members, others, _NO_MARKS)

    def _parameter(self, key: str, conj: Conj) -> Ref:
        flat, choices = self._schemas.document.flatten(conj)
        if flat is None:
            return self._rules.add(None)
        if choices:
            made = self._schemas.document.made
            rest = [made({"anyOf": choice}) for choice in choices[1:]]
            return self._rules.add(Choice(tuple(self._parameter(key, (*flat, *rest, arm)) for arm in choices[0])))
        kinds = kinds_of(flat)
        arms: list[Ref] = []
        if "string" in kinds:
            arms.append(self._rules.add(Seq((*self._tag(key, "string"), self._raw(flat)))))
        for word in ("integer", *_TYPE_WORDS[1:]):
            if word in kinds:
                only = self._schemas.document.made({"type": word})
                value = self._schemas.place((*flat, only))
                arms.append(self._rules.add(Seq((*self._tag(key, word), value, *self._end()))))
        return self._rules.add(Choice(tuple(arms)))

    def _tag(self, key: str, kind: str) -> tuple[Ref, ...]:
        word = "number" if kind == "integer" else kind
        text = self._form.tag.replace("{key}", key).replace("{string}", "true" if kind == "string" else "false")
        return self._rules.words(text.replace("{type}", word), self._specials)

    def _end(self) -> tuple[Ref, ...]:
        return self._rules.words(self._form.tag_end, self._specials)

    def _raw(self, flat: list[dict[str, Any]]) -> Ref:
        """Raw text with what closes it."""
        values = constants_of(flat)
        if values is not None:
            texts = [value for value in values if isinstance(value, str)]
            if not texts:
                return self._rules.add(None)
            word = self._rules.terminal("|".join(map(lexemes.escape, texts)), min(texts, key=len))
            return self._rules.add(Seq((word, *self._end())))
        found = [part["pattern"] for part in flat if isinstance(part.get("pattern"), str)]
        if any("minLength" in part or "maxLength" in part for part in flat):
            self._schemas.note("minLength, maxLength of raw text")
        try:
            terms = [f"/{patterns.containing(pattern, False)}/" for pattern in found]
        except patterns.Unsupported:
            self._schemas.note("pattern")
            terms = []
        end = self._form.tag_end
        if terms:
            hidden = rf"~/(?s:.*){lexemes.escape(end)}(?s:.*)/"
            text = self._rules.expression(" & ".join([*terms, hidden]), patterns.shortest(found[0]))
            return self._rules.add(Seq((text, *self._end())))
        return self._anything()

    def _anything(self) -> Ref:
        """Any text up to the first closing tag."""
        if self._raw_rule is None:
            end = self._form.tag_end
            if any(name in end for name in self._specials):
                self._raw_rule = self._rules.add(Seq((self._rules.terminal("(?s:.*)", ""), *self._end())))
            else:
                self._raw_rule = self._rules.lazy(f"/(?s:.*){lexemes.escape(end)}/", end)
        return self._raw_rule

    def _undeclared(self, keys: list[str]) -> Ref:
        before, after = self._form.tag.replace("{string}", "true").replace("{type}", "string").split("{key}")
        known = f" & ~/({'|'.join(map(lexemes.escape, keys))})/" if keys else ""
        key = self._rules.expression(r"/[^\s<>\"|]+/" + known, "x")
        lead = self._rules.words(before, self._specials)
        return self._rules.add(Seq((*lead, key, *self._rules.words(after, self._specials), self._anything())))


FREE_TEXT: dict[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
"""Arguments of a custom tool in a dialect that knows only objects."""
