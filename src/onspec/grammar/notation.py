"""How values are written: as JSON, as Python literals, or in Gemma's bare notation."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from onspec.grammar import lexemes, patterns

_PYTHON_UNIT = r"""\\(["'\\\/nrtbf0]|x[0-9a-fA-F]{2}|u[0-9a-cA-Ce-fE-F][0-9a-fA-F]{3}|ud[0-7][0-9a-fA-F]{2})"""
_PYTHON_STRING = rf'"([^"\\\x00-\x1f]|{_PYTHON_UNIT})*"|' + rf"'([^'\\\x00-\x1f]|{_PYTHON_UNIT})*'"
_NOT_PYTHON = r" & ~/(?s:.*)\\\/(?s:.*)/"
"""Keeps out the one escape of JSON that Python reads as two characters."""

_BARE_KEY = r"[^\s:,=<>|{}()\[\]\"']{1,200}"


@dataclass(frozen=True, slots=True)
class Notation:
    """The words of one notation.

    Attributes:
        true, false, null: The three constants.
        marks: What stands around strings; `"` for JSON and Python.
        python: Whether strings are Python's: single quotes too, and other escapes.
        bare_keys: Whether keys stand without quotes.
        token: Id of the special token that the marks are, or None where they are text. With a token, the expressions
            here are of what stands between the marks.
        hidden: A regular expression of what may not stand in a string as it is, because it would end more than the
            string; "" for nothing. JSON strings can still write it with an escape.
    """

    true: str = "true"
    false: str = "false"
    null: str = "null"
    marks: str = '"'
    python: bool = False
    bare_keys: bool = False
    hidden: str = ""
    token: int | None = None

    @property
    def is_json(self) -> bool:
        """Whether this is JSON itself."""
        return not self.python and self.marks == '"'

    def string(self, low: int = 0, high: int | None = None) -> str:
        """A Lark terminal expression of strings of `low` to `high` characters; of Python's, where that is a limit, only
        those that are JSON too.
        """
        if self.python and not low and high is None:
            return f"/{_PYTHON_STRING}/"
        if self.python:
            return f"/{lexemes.string_of_length(low, high)}/{_NOT_PYTHON}"
        if self.marks != '"':
            mark = lexemes.escape(self.marks)
            count = "*" if not low and high is None else f"{{{low},{'' if high is None else high}}}"
            if self.token is not None:
                return f"/(?s:.{count})/"
            return rf"/{mark}(?s:.{count}){mark}/ & ~/{mark}(?s:.*){mark}(?s:.+)/"
        return f"/{lexemes.string_of_length(low, high)}/{self._guard}"

    @property
    def _guard(self) -> str:
        return f" & ~/(?s:.*)({self.hidden})(?s:.*)/" if self.hidden else ""

    def words(self, value: bool | None) -> str:
        """A constant as a regular expression."""
        word = self.null if value is None else self.true if value else self.false
        return f"{word}|{JSON.words(value)}" if self.python else word

    def matching(self, pattern: str) -> str:
        """A terminal expression of strings that match `pattern`; of Python's only those that are JSON too.

        Raises:
            patterns.Unsupported: The pattern cannot be expressed.
        """
        if self.python:
            return f'/"{patterns.containing(pattern)}"/{_NOT_PYTHON}'
        mark = lexemes.escape(self.marks)
        if self.token is not None:
            return f"/{patterns.containing(pattern, False)}/"
        once = "" if self.is_json else rf" & ~/{mark}(?s:.*){mark}(?s:.+)/"
        return f"/{mark}{patterns.containing(pattern, self.is_json)}{mark}/{once}{self._guard}"

    def spelled(self, text: str, every: bool) -> str:
        """The string `text` as a regular expression, in every spelling if `every` and the notation has escapes."""
        if self.is_json:
            return lexemes.spelled(text, every)
        if self.marks != '"':
            return lexemes.escape(text if self.token is not None else self.marks + text + self.marks)
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

    def limited_example(self, text: str) -> str:
        """`text` as a string that is limited by a pattern or a length, once."""
        return orjson.dumps(text).decode() if self.python else self.example(text)

    def key_example(self, text: str) -> str:
        """`text` as a key, once."""
        return text if self.bare_keys else self.example(text)


JSON = Notation()
PYTHON = Notation("True", "False", "None", python=True)


def bare(marks: str, token: int | None = None) -> Notation:
    """Gemma's notation: keys without quotes, strings between `marks`, which may be a special token."""
    return Notation(marks=marks, bare_keys=True, token=token)


def guarded(hidden: str) -> Notation:
    """JSON between tags: its strings hold no tag that a reader of tags would take for one."""
    return Notation(hidden=hidden)
