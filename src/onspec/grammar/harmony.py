"""Turns of harmony: reasoning and preambles as messages, a call as a message with a recipient."""

from __future__ import annotations

from collections.abc import Mapping

from onspec.dialects.form import Form
from onspec.grammar.rules import Choice, Many, Ref, Rules, Seq

_BUILT_IN = ("browser", "python", "container")
"""Names of tools, or their namespaces, that models address without `functions.`."""

_NEXT = "<|start|>assistant"
_TYPES = (" <|constrain|>json", "<|constrain|>json", " json", " code", "")


class Harmony:
    """Writes the messages around calls.

    Args:
        rules: Where the rules go.
        form: The dialect.
        specials: Special tokens of the vocabulary, text to id.
    """

    def __init__(self, rules: Rules, form: Form, specials: Mapping[str, int]) -> None:
        self._rules = rules
        self._form = form
        self._specials = specials

    def turn(self, calls: Mapping[str, Ref], required: bool, parallel: bool, thinking: bool) -> Ref:
        """A whole reply, from behind `<|start|>assistant`.

        Args:
            calls: Bodies of calls with their end, by the tool's name.
            required: Whether there must be a call.
            parallel: Whether one call may follow another.
            thinking: Whether the prompt has opened the reasoning.
        """
        again = self._words(_NEXT)
        before = self._choice([self._message("analysis"), self._message("commentary")])
        lead = self._rules.add(Many(self._seq(before, *again)))
        first = (self._until_end(), *again) if thinking else ()
        one = self._choice([self._addressed(name, body) for name, body in calls.items()])
        said = self._rules.add(Many(one, self._seq(*again), 1)) if parallel else one
        final = self._seq(*self._words("<|channel|>final<|message|>"), self._rules.terminal("(?s:.*)", ""))
        return self._seq(*first, lead, said if required else self._choice([said, final]))

    def constrained(self) -> Ref:
        """What may stand between the recipient and the body: the data type, and the token that ends the header."""
        types = [self._seq(*self._words(word)) for word in _TYPES]
        return self._seq(self._choice(types), *self._words("<|message|>"))

    def _addressed(self, name: str, body: Ref) -> Ref:
        """One call with its header: the recipient stands behind the channel, or before it."""
        built_in = name.partition(".")[0] in _BUILT_IN
        names = [f" to=functions.{name}", *([f" to={name}"] if built_in else [])]
        ways: list[Ref] = []
        for channel in ("commentary", "analysis"):
            for to in names:
                ways.append(self._seq(*self._words(f"<|channel|>{channel}{to}")))
                ways.append(self._seq(*self._words(f"{to}<|channel|>{channel}")))
        return self._seq(self._choice(ways), self.constrained(), body)

    def _message(self, channel: str) -> Ref:
        return self._seq(*self._words(f"<|channel|>{channel}<|message|>"), self._until_end())

    def _until_end(self) -> Ref:
        if "<|end|>" in self._specials:
            return self._seq(self._rules.terminal("(?s:.*)", ""), *self._words("<|end|>"))
        return self._rules.lazy(r"/(?s:.*)<\|end\|>/", "<|end|>")

    def _choice(self, ways: list[Ref]) -> Ref:
        return self._rules.add(Choice(tuple(ways)))

    def _seq(self, *parts: Ref) -> Ref:
        return self._rules.add(Seq(parts))

    def _words(self, text: str) -> tuple[Ref, ...]:
        return self._rules.words(text, self._specials)
