"""Gemma's calls: `call:name{key:<mark>text<mark>,n:3}` with a token in place of the quotation mark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import orjson

from onspec import possessive
from onspec.contract.toolset import Toolset
from onspec.dialects.dialect import Context
from onspec.dialects.draft import NOT_CALL, Block, Draft, Fault, More, Note, Reading
from onspec.dialects.form import Form
from onspec.dialects.scan import SPACE, waker
from onspec.dialects.values import is_text, quote
from onspec.dialects.write import arguments_of, escape_markers, tool_list
from onspec.errors import InputError
from onspec.message import Call, Result

MAX_DEPTH = 100
"""Brackets in brackets that an argument may have."""

_HEAD = re.compile(r"\s*+(?P<call>call)?\s*+:?\s*+(?P<name>[^\s{}()<>:,\"']{1,200})\s*+(?P<open>[{(])")
_KEY = re.compile(r"""\s*+["']?([^\s"'{}()\[\]<>:=,]{1,200})["']?\s*+([:=])\s*+""")
_NEXT_KEY = re.compile(r"[,}\])]\s*+[\w.-]{1,200}\s*+:|[})]\s*+<")
_KEY_START = re.compile(r"""["']?[^\s"'{}()\[\]<>:=,]{0,200}["']?\s*+""")
_JSON_STRING = possessive.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_WORD = re.compile(r"[^,{}()\[\]<>\"\n]*+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_CLOSE = {"{": "}", "(": ")", "[": "]"}


class _Cut(Exception):
    """The text ends inside the call."""


class _Bad(Exception):
    """What stands there is no argument."""


@dataclass(slots=True)
class _State:
    """One call that is being read."""

    text: str
    draft: Draft
    context: Context
    final: bool


@dataclass(frozen=True)
class Gemma:
    """Reader and writer.

    Attributes:
        opens, closes: Markers around a call.
        mark: What stands on either side of a string.
    """

    open: str
    close: str
    mark: str
    doubled: bool = False
    result: str = ""
    prompt: str = ""

    @property
    def hold(self) -> str:
        return ""

    @property
    def firsts(self) -> str:
        return "<"

    @property
    def literals(self) -> tuple[str, ...]:
        return (self.open, self.close, self.mark)

    def opener(self, names: tuple[str, ...]) -> str:
        return re.escape(self.open)

    def orphans(self) -> str:
        return re.escape(self.close)

    @cached_property
    def _closing(self) -> re.Pattern[str]:
        return re.compile(re.escape(self.close))

    @cached_property
    def _marks(self) -> re.Pattern[str]:
        return re.compile(f"{re.escape(self.close)}|{re.escape(self.mark)}")

    @cached_property
    def _string_ends(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """The mark that ends a string, in a text that goes on and in one that is over: what follows is structural."""
        return self._string_end(False), self._string_end(True)

    def _string_end(self, final: bool) -> re.Pattern[str]:
        mark, close = re.escape(self.mark), re.escape(self.close)
        after_value = r"(?:\s*+,\s*+|\s*+)[\"']?[^\s\"'{}()\[\]<>:=,]{1,200}[\"']?\s*+[:=]"
        item = rf"\s*+,\s*+(?:{mark}|[-0-9tfnTFN{{\[\"])"
        over = r"|\Z" if final else ""
        shut = rf"\s*+[}})\]](?=\s*+(?:[,}})\]]|{close}|call:{over}))"
        return re.compile(rf"{mark}(?={after_value}|{item}|{shut}|\s*+{close})")

    def read(self, text: str, pos: int, inside: object | None, context: Context, final: bool) -> Reading:
        at = pos if inside is not None else pos + len(self.open)
        if inside is None and not text.startswith(self.open, pos):
            return NOT_CALL
        gap = SPACE.match(text, at).end()  # type: ignore[union-attr]
        if not final and len(text) - gap < len(self.close):
            return More()
        if inside is not None:
            if text.startswith(self.close, gap):
                return Block(gap + len(self.close))
            if not text.startswith("call:", gap):
                return Block(
                    pos, notes=[Note("close_tag_added", pos, pos, "", self.close)], whole_text=gap >= len(text)
                )
        if gap >= len(text):
            return NOT_CALL
        head = _HEAD.match(text, at)
        if head is None:
            if not final and len(text) - gap < 300 and not self._closing.search(text, gap):
                return More()
            return self._misfit(text, pos, gap, final)
        closing = self._closing.search(text, head.end())
        if closing is None and not final:
            return More(waker(self._closing, text))
        draft = Draft(head["name"], "{}", gap if inside is not None else pos, pos)
        if head["open"] == "(":
            draft.notes.append(Note("bracket_style", head.end() - 1, head.end(), "(", "{"))
        if not head["call"]:
            draft.notes.append(Note("tag_name_fixed", gap, head.end(), head[0].strip()))
        state = _State(text, draft, context, final)
        try:
            draft.body, end = self._object(state, head.end(), _CLOSE[head["open"]], 0)
        except _Cut:
            if not final:
                return More(waker(self._marks, text))
            draft.fault, draft.at_end = Fault("cut_off"), True
            draft.end = len(text)
            return Block(len(text), [draft], whole_text=True)
        except (_Bad, RecursionError):
            return self._broken(text, draft, head.end(), final)
        after = SPACE.match(text, end).end()  # type: ignore[union-attr]
        if not final and len(text) - after < len(self.close):
            return More()
        extra = re.compile(r"[\s})]*+").match(text, end).end()  # type: ignore[union-attr]
        draft.end = end
        block = Block(end, [draft])
        if text.startswith(self.close, after) or text.startswith(self.close, extra):
            if not text.startswith(self.close, after):
                draft.notes.append(Note("trailing_markup_dropped", end, extra, text[end:extra].strip(), ""))
                after = extra
            block.end = draft.end = after + len(self.close)
        elif text.startswith("call:", after):
            block.inside = "calls"
        else:
            draft.notes.append(Note("close_tag_added", end, end, "", self.close))
            block.whole_text = after >= len(text)
        return block

    def _misfit(self, text: str, pos: int, at: int, final: bool) -> Reading:
        closing = self._closing.search(text, at, at + 4000)
        if closing is None:
            if not final and len(text) - at < 4000:
                return More(waker(self._closing, text))
            if text.startswith("call:", at):
                fault = Draft("", "", pos, len(text), fault=Fault("cut_off"), at_end=True)
                return Block(len(text), [fault], whole_text=True) if final and len(text) - at < 4000 else NOT_CALL
            return NOT_CALL
        if not text.startswith("call:", at) and "\n" not in text[at : closing.start()]:
            return NOT_CALL
        return Block(closing.end(), [Draft("", "", pos, closing.end(), fault=Fault("no_body"))])

    def _broken(self, text: str, draft: Draft, at: int, final: bool) -> Reading:
        closing = self._closing.search(text, at)
        if closing is None and not final:
            return More(waker(self._closing, text))
        draft.fault = Fault("damaged_call")
        draft.end = closing.end() if closing else len(text)
        draft.at_end = closing is None
        return Block(draft.end, [draft], whole_text=closing is None)

    # -- values ----------------------------------------------------------------------------------------------------

    def _object(self, state: _State, pos: int, close: str, depth: int) -> tuple[str, int]:
        if depth > MAX_DEPTH:
            raise _Bad
        text, items = state.text, list[str]()
        seen: dict[str, str] = {}
        while True:
            pos = _skip(text, pos)
            if text[pos] in "})" and (text[pos] == close or depth == 0):
                return "{" + ", ".join(items) + "}", pos + 1
            if items:
                if text[pos] == ",":
                    pos = _skip(text, pos + 1)
                    if text[pos] == close:
                        return "{" + ", ".join(items) + "}", pos + 1
                elif depth == 0 and self._declared_key(state, pos):
                    state.draft.notes.append(Note("separator_inferred", pos, pos, "", ","))
                else:
                    raise _Bad
            if len(text) - pos < len(self.mark) and self.mark.startswith(text[pos:]):
                raise _Cut
            marked = text.startswith(self.mark, pos)
            at = pos + len(self.mark) if marked else pos
            if marked:
                end = text.find(self.mark, at)
                if end < 0:
                    raise _Cut
                key, rest = text[at:end], re.compile(r"\s*+[:=]\s*+").match(text, end + len(self.mark))
                if rest is None:
                    raise _Bad
                pos = rest.end()
            else:
                match = _KEY.match(text, pos)
                if match is None:
                    raise _Cut if _KEY_START.fullmatch(text, pos) else _Bad
                key, pos = match[1], match.end()
                if match[2] == "=":
                    state.draft.notes.append(Note("separator_inferred", match.start(2), match.end(2), "=", ":"))
            value, pos = self._value(state, pos, depth, key if depth == 0 else None)
            if key in seen:
                if seen[key] != value:
                    state.draft.fault = Fault("ambiguous_call", "two values for one parameter")
                else:
                    state.draft.notes.append(Note("duplicate_collapsed", pos, pos, key))
                continue
            seen[key] = value
            items.append(f"{quote(key)}: {value}")

    def _declared_key(self, state: _State, pos: int) -> bool:
        key = _KEY.match(state.text, pos)
        return key is not None and state.context.declares(state.draft.name, key[1])

    def _array(self, state: _State, pos: int, depth: int) -> tuple[str, int]:
        if depth > MAX_DEPTH:
            raise _Bad
        text, items = state.text, list[str]()
        while True:
            pos = _skip(text, pos)
            if text[pos] == "]":
                return "[" + ", ".join(items) + "]", pos + 1
            if items:
                if text[pos] != ",":
                    raise _Bad
                pos = _skip(text, pos + 1)
                if text[pos] == "]":
                    return "[" + ", ".join(items) + "]", pos + 1
            value, pos = self._value(state, pos, depth, None)
            items.append(value)

    def _value(self, state: _State, pos: int, depth: int, key: str | None) -> tuple[str, int]:
        text = state.text
        rest = text[pos : pos + 24]
        if len(rest) < 24 and (self.mark.startswith(rest) or self.close.startswith(rest)):
            raise _Cut
        if text.startswith(self.mark, pos):
            start = pos + len(self.mark)
            end = self._string_ends[state.final].search(text, start)
            if end is None:
                raise _Cut
            inner = text[start : end.start()]
            return quote(inner.replace(self.mark, '"') if self.doubled else inner), end.end()
        char = text[pos]
        if char == "{":
            return self._object(state, pos + 1, "}", depth + 1)
        if char == "[":
            return self._array(state, pos + 1, depth + 1)
        if char == '"':
            string = _JSON_STRING.match(text, pos)
            if string is None:
                raise _Cut
            try:
                orjson.loads(string[0])
            except ValueError:
                raise _Bad from None
            state.draft.notes.append(Note("quote_style", pos, string.end(), '"', self.mark))
            return string[0], string.end()
        word = _WORD.match(text, pos)
        assert word is not None
        end_at = word.end()
        written = word[0].strip()
        if end_at >= len(text):
            raise _Cut
        if key and self._textual(state, key):
            ends = self._string_ends[state.final].search(text, pos)
            if ends and not _NEXT_KEY.search(text, pos, ends.start()):
                state.draft.notes.append(Note("quote_style", pos, ends.start(), "", self.mark))
                return quote(text[pos : ends.start()]), ends.end()
        if text.startswith(self.mark, end_at):
            state.draft.notes.append(Note("quote_style", pos, end_at, "", self.mark))
            return quote(word[0]), end_at + len(self.mark)
        if written in _WORDS and not (key and self._textual(state, key)):
            return _WORDS[written], end_at
        if _NUMBER.fullmatch(written) and not (key and self._textual(state, key)):
            return written, end_at
        if key and written and self._textual(state, key):
            state.draft.notes.append(Note("quote_style", pos, end_at, "", self.mark))
            return quote(written), end_at
        raise _Bad

    @staticmethod
    def _textual(state: _State, key: str) -> bool:
        tool = state.context.tool(state.draft.name)
        return tool is not None and state.context.declares(state.draft.name, key) and is_text(tool, key)

    # -- writing ---------------------------------------------------------------------------------------------------

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        form = Form("bare", self.open, call="call:{name}", close=self.close, repeat="both", mark=self.mark, loose=False)
        return (form,)

    def write_calls(self, calls: tuple[Call, ...], tools: Toolset) -> str:
        return "".join(self._one(call) for call in calls)

    def _one(self, call: Call) -> str:
        value = orjson.loads(arguments_of(call.name, call.arguments))
        if re.search(r"[\s{}()<>:,\"']", call.name):
            raise InputError(f"the tool name {call.name!r} cannot be written in this dialect")
        return f"{self.open}call:{call.name}{self._write(call.name, value)}{self.close}"

    def _write(self, name: str, value: object) -> str:
        if isinstance(value, dict):
            for key in value:
                if not re.fullmatch(r"""[^\s"'{}()\[\]<>:=,]{1,200}""", key):
                    raise InputError(f"the key {key!r} of a call to {name!r} cannot be written in this dialect")
            return "{" + ",".join(f"{key}:{self._write(name, item)}" for key, item in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ",".join(self._write(name, item) for item in value) + "]"
        if isinstance(value, str):
            inner = value.replace('"', self.mark) if self.doubled and self.mark in value else value
            return f"{self.mark}{inner}{self.mark}"
        return orjson.dumps(value).decode()

    def write_results(self, results: tuple[Result, ...]) -> str:
        return "".join(
            self.result.replace("{name}", result.name or "").replace("{content}", result.content) for result in results
        )

    def write_tools(self, tools: Toolset) -> str:
        return self.prompt.replace("{tools}", escape_markers(tool_list(tools), self.literals))


def _skip(text: str, pos: int) -> int:
    pos = SPACE.match(text, pos).end()  # type: ignore[union-attr]
    if pos >= len(text):
        raise _Cut
    return pos
