"""How values are written: as JSON, as Python literals, or in Gemma's bare notation."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from onspec.grammar import lexemes, patterns

_PYTHON_UNIT = r"""\\(["'\\\/nrtbf0]|x[0-9a-fA-F]{2}|u[0-9a-cA-Ce-fE-F][0-9a-fA-F]{3}|ud[0-7][0-9a-fA-F]{2})"""
_PYTHON_STRING = rf'"([^"\\\x00-\x1f]|{_PYTHON_UNIT})*"|' + rf"'([^'\\\x00-\x1f]|{_PYTHON_UNIT})*'"
_BARE_KEY = r"[^\s:,<>|{}\[\]]+"


@dataclass(frozen=True, slots=True)
class Notation:
    """The words of one notation.

    Attributes:
        true, false, null: The three constants.
        marks: What stands around strings; `"` for JSON and Python.
        python: Whether strings are Python's: single quotes too, and other escapes.
        bare_keys: Whether keys stand without quotes.
    """

    true: str = "true"
    false: str = "false"
    null: str = "null"
    marks: str = '"'
    python: bool = False
    bare_keys: bool = False

    @property
    def is_json(self) -> bool:
        """Whether this is JSON itself."""
        return not self.python and self.marks == '"'

    def string(self, low: int = 0, high: int | None = None) -> str:
        """A Lark terminal expression of strings of `low` to `high` characters (followed in JSON only)."""
        if self.python:
            return f"/{_PYTHON_STRING}/"
        if self.marks != '"':
            mark = lexemes.escape(self.marks)
            return rf"/{mark}(?s:.*){mark}/ & ~/{mark}(?s:.*){mark}(?s:.+)/"
        return f"/{lexemes.string_of_length(low, high)}/"

    def matching(self, pattern: str) -> str | None:
        """A terminal expression of strings that match `pattern`, or None where the notation hides their text.

        Raises:
            patterns.Unsupported: The pattern cannot be expressed.
        """
        if self.python:
            return None
        mark = lexemes.escape(self.marks)
        return f"/{mark}{patterns.containing(pattern, self.is_json)}{mark}/"

    def spelled(self, text: str, every: bool) -> str:
        """The string `text` as a regular expression, in every spelling if `every` and the notation has escapes."""
        if self.is_json:
            return lexemes.spelled(text, every)
        if self.marks != '"':
            return lexemes.escape(self.marks + text + self.marks)
        forms = {repr(text), orjson.dumps(text).decode()} if text.isprintable() else {repr(text)}
        return "|".join(sorted(lexemes.escape(form) for form in forms))

    def key(self, text: str, every: bool) -> str:
        """The key `text` as a regular expression."""
        return lexemes.escape(text) if self.bare_keys else self.spelled(text, every)

    def any_key(self) -> str:
        """A terminal expression of any key."""
        return f"/{_BARE_KEY}/" if self.bare_keys else self.string()

    def example(self, text: str) -> str:
        """`text` as a string, once."""
        if self.marks != '"':
            return self.marks + text + self.marks
        return repr(text) if self.python else orjson.dumps(text).decode()

    def key_example(self, text: str) -> str:
        """`text` as a key, once."""
        return text if self.bare_keys else self.example(text)


JSON = Notation()
PYTHON = Notation("True", "False", "None", python=True)


def bare(marks: str) -> Notation:
    """Gemma's notation: keys without quotes, strings between `marks`."""
    return Notation(marks=marks, bare_keys=True)
