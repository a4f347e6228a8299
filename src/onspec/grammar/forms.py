"""How each dialect writes a call, as far as a decoder must know it: the dialects' own description, by name."""

from __future__ import annotations

from dataclasses import replace

from onspec.dialects.dialect import Dialect
from onspec.dialects.form import Form
from onspec.dialects.table import DIALECTS
from onspec.errors import InputError


def _of(dialect: Dialect) -> Form:
    think = dialect.think[0] if dialect.think else None
    if dialect.name == "harmony":
        think = ("<|channel|>analysis<|message|>", "<|end|>")
    bare = "json" in dialect.bare_native
    first, *others = (
        replace(form, name=dialect.name, think=think, optional=form.optional or (bare and form.style == "envelope"))
        for form in dialect.family.forms
    )
    return replace(first, others=tuple(others))


FORMS: dict[str, Form] = {name: _of(dialect) for name, dialect in DIALECTS.items() if name != "auto"}
"""Every dialect but `auto`, by name."""


def form_of(dialect: str) -> Form:
    """The form of a dialect by name.

    Raises:
        InputError: There is no such dialect, or it is `auto`, in which nothing can be written.
    """
    form = FORMS.get(dialect)
    if form is None:
        raise InputError(f"no dialect to write in is called {dialect!r}; there are {', '.join(FORMS)}")
    return form
