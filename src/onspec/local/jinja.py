"""A model's own chat template, run in Jinja's sandbox."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, NoReturn

from onspec.errors import InputError, MissingExtra

try:
    from jinja2 import TemplateError, meta
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    raise MissingExtra("jinja2", "local") from None

MOST_CHARACTERS = 200_000
"""Longest template that is run."""


class ChatTemplate:
    """One template.

    Args:
        source: Jinja text, as a model file carries it.
        bos: Text of the token that starts a context.
        eos: Text of the token that ends a reply.

    Attributes:
        takes_tools: Whether it speaks of tools at all.

    Raises:
        InputError: The text is no Jinja template, or too long.
    """

    def __init__(self, source: str, bos: str = "", eos: str = "") -> None:
        if len(source) > MOST_CHARACTERS:
            raise InputError(f"the model's chat template has more than {MOST_CHARACTERS} characters")
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _refuse
        environment.globals["strftime_now"] = lambda form: datetime.now(UTC).strftime(form)
        try:
            names = meta.find_undeclared_variables(environment.parse(source))
            self._template = environment.from_string(source)
        except (TemplateError, RecursionError) as error:
            raise InputError(f"the model's chat template cannot be read: {error}") from None
        self.takes_tools = "tools" in names
        self._bos, self._eos = bos, eos

    def render(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None, *, opened: bool) -> str:
        """The prompt, without the token that starts a context.

        Args:
            messages: As OpenAI's chat messages; the arguments of calls as objects.
            tools: Function definitions.
            opened: Whether a turn of the assistant is begun at the end.

        Raises:
            InputError: The template refuses this conversation, or fails on it.
        """
        try:
            text = self._template.render(
                messages=messages,
                tools=tools,
                add_generation_prompt=opened,
                bos_token=self._bos,
                eos_token=self._eos,
            )
        except (
            TemplateError,
            RecursionError,
            TypeError,
            ValueError,
            LookupError,
            AttributeError,
            ArithmeticError,
        ) as error:
            raise InputError(f"the model's chat template refuses this conversation: {error}") from None
        return text.removeprefix(self._bos) if self._bos else text


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _tojson(value: Any, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
