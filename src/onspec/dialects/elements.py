"""Calls whose tags are named after the tool or the argument: Cline's XML, and MiniMax M3."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import orjson

from onspec.contract.toolset import Toolset
from onspec.dialects.dialect import Context, properties
from onspec.dialects.draft import NOT_CALL, Block, Draft, Fault, More, Note, Pair, Reading
from onspec.dialects.form import Form
from onspec.dialects.scan import SPACE, waker
from onspec.dialects.values import declared, is_json, is_text, quote, wants_text
from onspec.dialects.write import arguments_of, pairs_of, tool_list
from onspec.errors import InputError
from onspec.message import Call, Result

_TAG = re.compile(r"<([A-Za-z_][\w.-]{0,99})>")
_IDENT = re.compile(r"[A-Za-z_][\w.-]{0,99}")
MAX_DEPTH = 50
"""Elements in elements that an argument may have."""


def _framed(value: str) -> str:
    value = value[1:] if value.startswith("\n") else value
    return value[:-1] if value.endswith("\n") else value


@dataclass(frozen=True)
class ToolTags:
    """`<tool><argument>value</argument></tool>`: names are the tags.

    Attributes:
        declared_only: Whether an element with another name than a declared tool's is always text; else one that holds
            declared arguments is a call of an unknown tool.
    """

    result: str = "[{name}] Result:\n{content}"
    prompt: str = ""
    declared_only: bool = False

    @property
    def hold(self) -> str:
        return r"<[A-Za-z_][\w.-]{0,99}>\s{0,20}<?"

    @property
    def firsts(self) -> str:
        return "<"

    @property
    def literals(self) -> tuple[str, ...]:
        return ()

    def opener(self, names: tuple[str, ...]) -> str:
        known = "|".join(f"<{re.escape(name)}>" for name in sorted(names, key=len, reverse=True))
        if self.declared_only:
            return known or r"(?!)"
        return (known + "|" if known else "") + r"<[A-Za-z_][\w.-]{0,99}>(?=\s{0,20}<[A-Za-z_])"

    def orphans(self) -> str:
        return ""

    def read(self, text: str, pos: int, inside: object | None, context: Context, final: bool) -> Reading:
        tag = _TAG.match(text, pos)
        if tag is None:
            return NOT_CALL
        name = tag[1]
        known = context.tool(name) is not None
        closer = re.compile(rf"</{re.escape(name)}>")
        end = self._tool_end(text, tag.end(), name)
        if end is None and not final:
            return More(waker(closer, text))
        if not known:
            return self._unknown(text, pos, tag, end, context)
        if end is None:
            body = text[tag.end() :].lstrip()
            if not body.startswith("<") and body:
                return NOT_CALL
            return Block(
                len(text), [Draft(name, "", pos, len(text), fault=Fault("cut_off"), at_end=True)], whole_text=True
            )
        pairs = self._pairs(text, tag.end(), end, name, context)
        draft = Draft(name, pairs or [], pos, end + len(name) + 3)
        if pairs is None:
            draft.fault = Fault("no_body")
        return Block(draft.end, [draft])

    def _unknown(self, text: str, pos: int, tag: re.Match[str], end: int | None, context: Context) -> Reading:
        """An element that is a call in all but its name: every child is a declared argument of some tool."""
        line = text.rfind("\n", 0, pos) + 1
        if end is None or text[line:pos].strip():
            return NOT_CALL
        keys = {key for tool in context.tools.values() for key in properties(tool)}
        children = _TAG.findall(text, tag.end(), end)
        first = _TAG.match(text, SPACE.match(text, tag.end()).end())  # type: ignore[union-attr]
        if first is None or first[1] not in keys or not all(child in keys for child in children[:1]):
            return NOT_CALL
        stop = end + len(tag[1]) + 3
        return Block(stop, [Draft(tag[1], "{}", pos, stop)])

    @staticmethod
    def _tool_end(text: str, at: int, name: str) -> int | None:
        """Where the closer of the tool's own tag stands: nested tags of the same name are in balance."""
        depth, last = 1, None
        for tag in re.compile(rf"<(/?){re.escape(name)}>").finditer(text, at):
            depth += -1 if tag[1] else 1
            if tag[1]:
                last = tag.start()
            if depth == 0:
                return tag.start()
        return last

    def _pairs(self, text: str, at: int, end: int, name: str, context: Context) -> list[Pair] | None:
        pairs: list[Pair] = []
        seen: set[str] = set()
        while True:
            at = SPACE.match(text, at).end()  # type: ignore[union-attr]
            if at >= end:
                return pairs
            tag = _TAG.match(text, at, end)
            if tag is None:
                return None
            key = tag[1]
            stop = self._value_end(text, tag.end(), end, key, name, context, {*seen, key})
            if stop is None:
                return None
            pairs.append(Pair(key, _framed(text[tag.end() : stop])))
            seen.add(key)
            at = stop + len(key) + 3

    @staticmethod
    def _value_end(text: str, at: int, end: int, key: str, name: str, context: Context, seen: set[str]) -> int | None:
        """The closer in balance and followed by another argument or the end; else the last one that is so followed."""
        depth, fallback = 1, None
        for tag in re.compile(rf"<(/?){re.escape(key)}>").finditer(text, at, end):
            if not tag[1]:
                depth += 1
                continue
            depth -= 1
            gap = SPACE.match(text, tag.end()).end()  # type: ignore[union-attr]
            following = _TAG.match(text, gap, end)
            structural = gap >= end or (
                following is not None and following[1] not in seen and context.declares(name, following[1])
            )
            if structural:
                if depth <= 0:
                    return tag.start()
                fallback = tag.start()
            elif depth <= 0:
                depth = 1
        return fallback

    @property
    def forms(self) -> tuple[Form, ...]:
        return (
            Form("tags", call="<{name}>\n", end="</{name}>", repeat="block", tag="<{key}>", tag_end="</{key}>\n",
                 framed=True),
        )  # fmt: skip

    def write_calls(self, calls: tuple[Call, ...], tools: Toolset) -> str:
        return "\n".join(self._one(call, tools) for call in calls)

    def _one(self, call: Call, tools: Toolset) -> str:
        lines = [f"<{call.name}>"]
        if not _IDENT.fullmatch(call.name):
            raise InputError(f"the tool name {call.name!r} cannot be written as a tag")
        for key, value, string in pairs_of(arguments_of(call.name, call.arguments)):
            if not _IDENT.fullmatch(key):
                raise InputError(f"the key {key!r} of a call to {call.name!r} cannot be written as a tag")
            if string and not is_text(tools.find(call.name).tool, key):
                value = quote(value)
            frame = "\n" if "\n" in value else ""
            lines.append(f"<{key}>{frame}{value}{frame}</{key}>")
        return "\n".join((*lines, f"</{call.name}>"))

    def write_results(self, results: tuple[Result, ...]) -> str:
        return "\n\n".join(
            self.result.replace("{name}", result.name or "").replace("{content}", result.content) for result in results
        )

    def write_tools(self, tools: Toolset) -> str:
        return self.prompt.replace("{tools}", tool_list(tools))


NS = "]<]minimax[>["


@dataclass(frozen=True)
class MarkedElements:
    """MiniMax M3: a mark before every tag, and one element an argument, with elements inside for containers."""

    result: str = "<tool_result>{content}</tool_result>"
    prompt: str = ""

    @property
    def hold(self) -> str:
        return re.escape(NS) + r"(?:<[^<>\n]{0,100})?"

    @property
    def firsts(self) -> str:
        return "]"

    @property
    def literals(self) -> tuple[str, ...]:
        return (f"{NS}<tool_call>", f"{NS}</tool_call>", f"{NS}</invoke>", f'{NS}<invoke name="')

    def opener(self, names: tuple[str, ...]) -> str:
        return re.escape(NS) + r"<(?:tool_call>|invoke\b)"

    def orphans(self) -> str:
        return re.escape(NS) + r"(?:<[^<>\n]{0,100}>)?"

    @cached_property
    def _invoke(self) -> re.Pattern[str]:
        return re.compile(re.escape(NS) + r'<invoke name="([^"<>\n]+)"\s*>')

    @cached_property
    def _ends(self) -> re.Pattern[str]:
        return re.compile(re.escape(NS) + "</(?:invoke|tool_call)>")

    @cached_property
    def _element(self) -> re.Pattern[str]:
        return re.compile(re.escape(NS) + r"<([^/<>\s][^<>]{0,199})>")

    def read(self, text: str, pos: int, inside: object | None, context: Context, final: bool) -> Reading:
        opening = f"{NS}<tool_call>"
        at = pos
        wrapped = inside is not None
        if not wrapped and text.startswith(opening, pos):
            at, wrapped = pos + len(opening), True
        at = SPACE.match(text, at).end()  # type: ignore[union-attr]
        rest = text[at : at + 200]
        if not final and (
            not rest or (rest.count(">") < 2 and "\n" not in rest and len(rest) < 200 and NS[0] == rest[0])
        ):
            return More()
        if inside is not None:
            closing = f"{NS}</tool_call>"
            if text.startswith(closing, at):
                return Block(at + len(closing))
            if not self._invoke.match(text, at):
                return Block(pos, notes=[Note("close_tag_added", pos, pos)], whole_text=at >= len(text))
        invoke = self._invoke.match(text, at)
        if invoke is None:
            if not final and not self._ends.search(text, at):
                return More(waker(self._ends, text))
            return self._refused(text, pos, at, "no_name", final)
        draft = Draft(invoke[1], "{}", at if inside is not None else pos, at)
        if not wrapped:
            draft.notes.append(Note("wrapper_missing", at, at))
        closing_at = self._ends.search(text, invoke.end())
        if closing_at is None and not final:
            return More(waker(self._ends, text))
        items, end = self._children(text, invoke.end(), draft, context)
        if end < 0 and not final:
            return More(waker(self._ends, text))
        if end < 0:
            return self._refused(text, draft.start, invoke.end(), "cut_off", final, draft.name)
        draft.body = "{" + ", ".join(items) + "}"
        draft.end = end
        return Block(end, [draft], inside="calls" if wrapped else None)

    def _refused(self, text: str, pos: int, at: int, code: str, final: bool, name: str = "") -> Block:
        closing = self._ends.search(text, at)
        end = closing.end() if closing else len(text)
        code = code if closing is None or code != "cut_off" else "damaged_call"
        code = "cut_off" if closing is None else code
        return Block(
            end, [Draft(name, "", pos, end, fault=Fault(code), at_end=closing is None)], whole_text=closing is None
        )

    def _children(self, text: str, at: int, draft: Draft, context: Context) -> tuple[list[str], int]:
        """The arguments as JSON members, and where the call ends; -1 where it does not."""
        items: list[str] = []
        seen: dict[str, str] = {}
        closing = f"{NS}</invoke>"
        while True:
            at = SPACE.match(text, at).end()  # type: ignore[union-attr]
            if text.startswith(closing, at):
                return items, at + len(closing)
            element = self._element.match(text, at)
            if element is None:
                if text.startswith(f"{NS}</tool_call>", at) and items:
                    draft.notes.append(Note("close_tag_added", at, at))
                    return items, at
                return items, -1
            tool = context.tool(draft.name)
            root = tool.schema.document if tool is not None and tool.schema is not None else None
            value, at = self._value(text, element.end(), element[1], declared(tool, element[1]), root, 0)
            if at < 0:
                return items, -1
            if seen.get(element[1], value) != value:
                draft.fault = Fault("ambiguous_call", "two values for one parameter")
            if element[1] not in seen:
                items.append(f"{quote(element[1])}: {value}")
            seen[element[1]] = value

    def _value(self, text: str, at: int, key: str, schema: object, root: object, depth: int) -> tuple[str, int]:
        """JSON text of the element's content, and where the element ends; -1 where it does not."""
        close = f"{NS}</{key}>"
        gap = SPACE.match(text, at).end()  # type: ignore[union-attr]
        textual = schema is None or wants_text(schema, root)
        if depth < MAX_DEPTH and not textual and self._element.match(text, gap):
            return self._nested(text, gap, close, schema, root, depth)
        if depth < MAX_DEPTH and schema is None and depth and self._element.match(text, gap):
            return self._nested(text, gap, close, schema, root, depth)
        end = self._text_end(text, at, close)
        if end < 0:
            return "", -1
        value = text[at:end]
        if textual and not (schema is None and depth and is_json(value.strip()) and value.strip()[:1] not in '"'):
            return quote(value), end + len(close)
        inner = value.strip()
        return (inner if is_json(inner) else quote(inner)), end + len(close)

    @staticmethod
    def _text_end(text: str, at: int, close: str) -> int:
        """The closer that is followed by another mark; the first one where none is."""
        first = pos = text.find(close, at)
        while pos >= 0:
            gap = SPACE.match(text, pos + len(close)).end()  # type: ignore[union-attr]
            if text.startswith(NS, gap):
                return pos
            pos = text.find(close, pos + 1)
        return first

    def _nested(self, text: str, at: int, close: str, schema: object, root: object, depth: int) -> tuple[str, int]:
        parts: list[tuple[str, str]] = []
        while True:
            at = SPACE.match(text, at).end()  # type: ignore[union-attr]
            if text.startswith(close, at):
                break
            element = self._element.match(text, at)
            if element is None:
                return "", -1
            below = _below(schema, element[1])
            value, at = self._value(text, element.end(), element[1], below, root, depth + 1)
            if at < 0:
                return "", -1
            parts.append((element[1], value))
        is_list = all(key == "item" for key, _ in parts) and not (
            isinstance(schema, dict) and "item" in (schema.get("properties") or {})
        )
        if is_list:
            return "[" + ", ".join(value for _, value in parts) + "]", at + len(close)
        return "{" + ", ".join(f"{quote(key)}: {value}" for key, value in parts) + "}", at + len(close)

    # -- writing ---------------------------------------------------------------------------------------------------

    @property
    def forms(self) -> tuple[Form, ...]:
        return (
            Form(
                "elements", f"{NS}<tool_call>", lead="\n", call=f'{NS}<invoke name="{{name}}">\n',
                end=f"{NS}</invoke>\n", close=f"{NS}</tool_call>", tag=f"{NS}<{{key}}>", tag_end=f"{NS}</{{key}}>\n",
            ),
        )  # fmt: skip

    def write_calls(self, calls: tuple[Call, ...], tools: Toolset) -> str:
        lines = [f"{NS}<tool_call>"]
        for call in calls:
            lines.append(f'{NS}<invoke name="{call.name}">')
            for key, value, string in pairs_of(arguments_of(call.name, call.arguments)):
                if re.search(r"[<>/]|^\s|\s$", key) or not key:
                    raise InputError(f"the key {key!r} of a call to {call.name!r} cannot be written in this dialect")
                if string and not is_text(tools.find(call.name).tool, key):
                    value = orjson.dumps(value).decode()
                lines.append(f"{NS}<{key}>{value}{NS}</{key}>")
            lines.append(f"{NS}</invoke>")
        return "\n".join((*lines, f"{NS}</tool_call>"))

    def write_results(self, results: tuple[Result, ...]) -> str:
        return "\n".join(self.result.replace("{content}", result.content) for result in results)

    def write_tools(self, tools: Toolset) -> str:
        return self.prompt.replace("{tools}", tool_list(tools, (NS,)))


def _below(schema: object, key: str) -> object:
    if not isinstance(schema, dict):
        return None
    if key == "item" and isinstance(schema.get("items"), dict):
        return schema["items"]
    found = schema.get("properties")
    return found.get(key) if isinstance(found, dict) else None
