"""Dialects that write calls as Python: `[f(a=1), g()]`, alone, in markers, or one a line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from onspec import possessive
from onspec.contract.toolset import Toolset
from onspec.dialects.dialect import Context
from onspec.dialects.draft import NOT_CALL, Block, Draft, Fault, More, NotCall, Note, Reading
from onspec.dialects.form import Form
from onspec.dialects.scan import SPACE, waker
from onspec.dialects.values import is_json, quote
from onspec.dialects.write import arguments_of, escape_markers, pairs_of, tool_list
from onspec.errors import InputError
from onspec.message import Call, Result

MAX_DEPTH = 100
"""Brackets in brackets that a literal may have."""

_NAME = re.compile(r"[A-Za-z_][\w.-]*+")
_KEYWORD = re.compile(r"\s*+([A-Za-z_]\w*+)\s*+=(?!=)\s*+")
_STRING = possessive.compile(
    r"""([rRuU]?)(?:\"\"\"((?:[^"\\]++|\\.|"(?!""))*+)\"\"\"|'''((?:[^'\\]++|\\.|'(?!''))*+)'''"""
    r"""|"((?:[^"\\]++|\\.)*+)"|'((?:[^'\\]++|\\.)*+)')""",
    re.DOTALL,
)
_ATOM = re.compile(r"[-+]?[A-Za-z0-9_.]++(?:(?<=[eE])[-+]?[0-9]++)?")
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_ESCAPE = re.compile(r"\\(?:\n|[\\'\"abfnrtv]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-7]{1,3})")
_SIMPLE = {
    "\n": "", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f",
    "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
_PAIR = re.compile("([\ud800-\udbff])([\udc00-\udfff])")


class _Cut(Exception):
    """The text ends inside the value."""


class _Bad(Exception):
    """What stands there is no literal."""


def _decode(raw: bool, body: str) -> str:
    if raw or "\\" not in body:
        return body

    def one(match: re.Match[str]) -> str:
        code = match[0][1:]
        if code in _SIMPLE:
            return _SIMPLE[code]
        number = int(code[1:], 16) if code[0] in "xuU" else int(code, 8)
        return chr(number) if number < 0x110000 else match[0]

    text = _ESCAPE.sub(one, body)
    return _PAIR.sub(lambda m: chr(0x10000 + (ord(m[1]) - 0xD800) * 0x400 + ord(m[2]) - 0xDC00), text)


def literal(text: str, pos: int, depth: int = 0) -> tuple[str, int]:
    """JSON text of the Python (or JSON) literal at `pos`, and where it ends.

    Raises:
        _Cut: The text ends first.
        _Bad: It is no literal: a name, a call, an expression, an f-string, or nested too deeply.
    """
    if depth > MAX_DEPTH:
        raise _Bad
    if pos >= len(text):
        raise _Cut
    char = text[pos]
    if char in "[(":
        return _sequence(text, pos + 1, "]" if char == "[" else ")", depth)
    if char == "{":
        return _mapping(text, pos + 1, depth)
    string = _STRING.match(text, pos)
    if string:
        written = string[0]
        if written[0] == '"' and "\\/" not in written and is_json(written):
            return written, string.end()
        body = next(part for part in string.groups()[1:] if part is not None)
        return quote(_decode(string[1] in ("r", "R"), body)), string.end()
    if char in "\"'" or text[pos + 1 : pos + 2] in ('"', "'"):
        if char in "fFbB":
            raise _Bad
        raise _Cut
    atom = _ATOM.match(text, pos)
    if atom is None:
        raise _Bad
    if atom.end() >= len(text):
        raise _Cut
    word = atom[0]
    if word in _WORDS:
        return _WORDS[word], atom.end()
    if _NUMBER.fullmatch(word):
        return word, atom.end()
    plain = word.lstrip("+").replace("_", "")
    if _NUMBER.fullmatch(plain):
        return plain, atom.end()
    raise _Bad


def _skip(text: str, pos: int) -> int:
    pos = SPACE.match(text, pos).end()  # type: ignore[union-attr]
    if pos >= len(text):
        raise _Cut
    return pos


def _sequence(text: str, pos: int, close: str, depth: int) -> tuple[str, int]:
    items: list[str] = []
    while True:
        pos = _skip(text, pos)
        if text[pos] == close:
            return "[" + ", ".join(items) + "]", pos + 1
        if items:
            if text[pos] != ",":
                raise _Bad
            pos = _skip(text, pos + 1)
            if text[pos] == close:
                return "[" + ", ".join(items) + "]", pos + 1
        item, pos = literal(text, pos, depth + 1)
        items.append(item)


def _mapping(text: str, pos: int, depth: int) -> tuple[str, int]:
    items: list[str] = []
    while True:
        pos = _skip(text, pos)
        if text[pos] == "}":
            return "{" + ", ".join(items) + "}", pos + 1
        if items:
            if text[pos] != ",":
                raise _Bad
            pos = _skip(text, pos + 1)
            if text[pos] == "}":
                return "{" + ", ".join(items) + "}", pos + 1
        key, pos = literal(text, pos, depth + 1)
        pos = _skip(text, pos)
        if text[pos] != ":":
            raise _Bad
        value, pos = literal(text, _skip(text, pos + 1), depth + 1)
        items.append(f"{key if key.startswith(chr(34)) else quote(key)}: {value}")


def read_call(text: str, pos: int) -> tuple[Draft, int]:
    """One call `name(key=literal, ...)` at `pos`.

    Raises:
        _Cut: The text ends first.
        _Bad: It is not of this form.
    """
    name = _NAME.match(text, pos)
    if name is None:
        if pos >= len(text):
            raise _Cut
        raise _Bad
    at = name.end()
    if at >= len(text):
        raise _Cut
    if text[at] != "(":
        raise _Bad
    written: dict[str, str] = {}
    draft = Draft(name[0], "{}", pos, pos)
    at = _skip(text, at + 1)
    while text[at] != ")":
        keyword = _KEYWORD.match(text, at)
        if keyword is None:
            if re.compile(r"\s*\w*\s*=?\s*\Z").match(text, at):
                raise _Cut
            raise _Bad
        value, end = literal(text, keyword.end())
        if keyword[1] in written and written[keyword[1]] != value:
            draft.fault = Fault("ambiguous_call", "two values for one parameter")
        written[keyword[1]] = value
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
        elif text[at] != ")":
            raise _Bad
    draft.body = "{" + ", ".join(f"{quote(key)}: {value}" for key, value in written.items()) + "}"
    draft.end = at + 1
    return draft, at + 1


_CLOSES = re.compile(r"[\])]")


def read_call_list(text: str, pos: int, context: Context, final: bool) -> Block | More | NotCall:
    """A list of calls `[f(...), g(...)]` at `pos`, every name declared."""
    drafts: list[Draft] = []
    try:
        at = _skip(text, pos + 1)
        while text[at] != "]":
            draft, at = read_call(text, at)
            if context.tool(draft.name) is None:
                return NOT_CALL
            drafts.append(draft)
            at = _skip(text, at)
            if text[at] == ",":
                at = _skip(text, at + 1)
            elif text[at] != "]":
                return NOT_CALL
    except _Cut:
        return NOT_CALL if final else More(waker(_CLOSES, ""))
    except (_Bad, RecursionError):
        return NOT_CALL
    if not drafts:
        return NOT_CALL
    drafts[0].start, drafts[-1].end = pos, at + 1
    return Block(at + 1, drafts)


def read_call_lines(text: str, pos: int, context: Context, final: bool) -> Block | More | NotCall:
    """The rest of the text as one call a line, every name declared."""
    name = _NAME.match(text, pos)
    if name is not None and name.end() >= len(text) and not final:
        known = any(tool.startswith(name[0]) for tool in context.names)
        return More() if known else NOT_CALL
    if name is None or context.tool(name[0]) is None:
        return NOT_CALL
    if not final:
        return More(waker(re.compile(r"(?!)"), "")) if text[name.end()] == "(" else NOT_CALL
    drafts: list[Draft] = []
    at = pos
    try:
        while at < len(text):
            draft, at = read_call(text, at)
            if context.tool(draft.name) is None:
                return NOT_CALL
            drafts.append(draft)
            line = re.compile(r"[ \t]*(?:,|;)?[ \t]*(?:\n\s*|\Z)").match(text, at)
            if line is None:
                return NOT_CALL
            at = line.end()
    except (_Cut, _Bad, RecursionError):
        return NOT_CALL
    return Block(at, drafts, whole_text=True)


@dataclass(frozen=True)
class Pythonic:
    """Reader and writer of calls as Python.

    Attributes:
        opens, closes: Markers around the calls; empty where there are none.
        lines: Whether calls stand one a line, without a list's brackets.
        bare: Whether a list without markers counts at the end of a reply.
        suffix: What stands behind a name and is not part of it.
    """

    opens: tuple[str, ...] = ()
    closes: tuple[str, ...] = ()
    lines: bool = False
    bare: bool = False
    suffix: str = ""
    result: str = "{content}"
    prompt: str = ""

    @property
    def hold(self) -> str:
        return r"\[\s{0,20}[\w.-]{0,80}\(?" if self.bare else ""

    @property
    def firsts(self) -> str:
        return "<[" if self.bare else "<"

    @property
    def literals(self) -> tuple[str, ...]:
        return (*self.opens, *self.closes)

    def opener(self, names: tuple[str, ...]) -> str:
        parts = [re.escape(word) for word in self.opens]
        if self.bare and names:
            known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
            parts.append(rf"\[\s{{0,20}}(?:{known})\(")
        return "|".join(parts) or r"(?!)"

    def orphans(self) -> str:
        return "|".join(re.escape(word) for word in self.closes)

    @cached_property
    def _opening(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(word) for word in self.opens) or r"(?!)")

    @cached_property
    def _closing(self) -> re.Pattern[str]:
        return re.compile(self.orphans() or r"(?!)")

    def read(self, text: str, pos: int, inside: object | None, context: Context, final: bool) -> Reading:
        opening = self._opening.match(text, pos)
        if opening is None:
            return self._bare(text, pos, context, final)
        at = SPACE.match(text, opening.end()).end()  # type: ignore[union-attr]
        if at >= len(text):
            return NOT_CALL if final else More()
        try:
            drafts, end = self._calls(text, at)
        except _Cut:
            closing = self._closing.search(text, at)
            if not final:
                return More(waker(self._closing, "") if closing is None else None)
            fault = Draft("", "", pos, len(text), fault=Fault("cut_off"), at_end=True)
            return Block(len(text), [fault], whole_text=True)
        except (_Bad, RecursionError):
            return self._misfit(text, pos, at, final)
        after = SPACE.match(text, end).end()  # type: ignore[union-attr]
        rest = text[after : after + 40]
        if not final and any(word.startswith(rest) for word in self.closes):
            return More()
        closing = self._closing.match(text, after)
        block = Block(closing.end() if closing else end, drafts)
        if not closing and self.closes and drafts:
            drafts[-1].notes.append(Note("close_tag_added", end, end, "", self.closes[0]))
            block.whole_text = not rest
        for draft in drafts:
            draft.name = draft.name.removesuffix(self.suffix)
        if drafts:
            drafts[0].start, drafts[-1].end = pos, block.end
        return block

    def _calls(self, text: str, at: int) -> tuple[list[Draft], int]:
        """Calls in a list, or one after another."""
        drafts: list[Draft] = []
        listed = text[at] == "["
        at = _skip(text, at + 1) if listed else at
        while not (listed and text[at] == "]"):
            draft, at = read_call(text, at)
            drafts.append(draft)
            end = at
            if not listed:
                gap = SPACE.match(text, at).end()  # type: ignore[union-attr]
                if gap >= len(text) or not _NAME.match(text, gap):
                    return drafts, end
                at = gap
                continue
            at = _skip(text, at)
            if text[at] == ",":
                at = _skip(text, at + 1)
            elif text[at] != "]":
                raise _Bad
        return drafts, at + 1

    def _misfit(self, text: str, pos: int, at: int, final: bool) -> Reading:
        closing = self._closing.search(text, at, at + 4000)
        if closing is None:
            if not final and len(text) - at < 4000:
                return More(waker(self._closing, text))
            return NOT_CALL
        return Block(closing.end(), [Draft("", "", pos, closing.end(), fault=Fault("no_body"))])

    def _bare(self, text: str, pos: int, context: Context, final: bool) -> Reading:
        """A list without markers: only as the last line of a reply."""
        line = text.rfind("\n", 0, pos) + 1
        if text[line:pos].strip():
            return NOT_CALL
        reading = read_call_list(text, pos, context, final)
        if not isinstance(reading, Block):
            return reading
        after = SPACE.match(text, reading.end).end()  # type: ignore[union-attr]
        if after < len(text):
            return NOT_CALL
        if not final:
            return More()
        reading.whole_text = reading.bare = True
        return reading

    # -- writing ---------------------------------------------------------------------------------------------------

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        opened, close = (self.opens[0] if self.opens else ""), (self.closes[0] if self.closes else "")
        return (
            Form(
                "keywords", opened, optional=self.bare or not opened, call="{name}" + self.suffix, close=close,
                between="\n" if self.lines else "", listed=not self.lines,
            ),
        )  # fmt: skip

    def write_calls(self, calls: tuple[Call, ...], tools: Toolset) -> str:
        written = [self._one(call) for call in calls]
        if self.lines:
            inner = "\n".join(written)
        else:
            inner = f"[{', '.join(written)}]"
        return f"{self.opens[0] if self.opens else ''}{inner}{self.closes[0] if self.closes else ''}"

    def _one(self, call: Call) -> str:
        if not _NAME.fullmatch(call.name):
            raise InputError(f"the tool name {call.name!r} cannot be written as a Python name")
        arguments = []
        for key, value, string in pairs_of(arguments_of(call.name, call.arguments)):
            if not re.fullmatch(r"[A-Za-z_]\w*", key, re.ASCII):
                raise InputError(f"the key {key!r} of a call to {call.name!r} cannot be written as a Python name")
            body = escape_markers(quote(value), self.literals) if string else value
            arguments.append(f"{key}={body if string or is_json(value) else quote(value)}")
        return f"{call.name}{self.suffix}({', '.join(arguments)})"

    def write_results(self, results: tuple[Result, ...]) -> str:
        return "\n".join(self.result.replace("{content}", result.content) for result in results)

    def write_tools(self, tools: Toolset) -> str:
        return self.prompt.replace("{tools}", tool_list(tools, self.literals))
