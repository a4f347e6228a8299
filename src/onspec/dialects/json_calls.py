"""Dialects whose block is a marker with JSON objects after it, each a name and arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from onspec.contract.toolset import Toolset
from onspec.dialects.dialect import Context
from onspec.dialects.draft import NOT_CALL, Block, Draft, Fault, More, Note, Reading
from onspec.dialects.envelope import fence_start, read_envelope, read_values
from onspec.dialects.form import Form
from onspec.dialects.scan import SPACE, JsonScan, json_waker, scan_json, waker
from onspec.dialects.values import quote
from onspec.dialects.write import arguments_of, escape_markers, tool_list
from onspec.message import Call, Result

_ID = '{"type":"string","pattern":"^[A-Za-z0-9_-]{1,64}$"}'

MISFIT_REACH = 4000
"""Characters within which a closer must stand for a block without JSON to count as a broken call, not as prose."""

NO_MARKER = "\x00"
"""The marker of a text that is nothing but the arguments of a call."""

_SOLID = re.compile(r"\S")
_EXTRA = re.compile(r"[\s}\]`]*+")


@dataclass(frozen=True)
class JsonCalls:
    """Reader and writer of `OPEN json CLOSE`.

    Attributes:
        opens: Spellings of the marker; the first is written.
        closes: Spellings of its closer; empty where the body's end is the end.
        misspelt: Spellings that are read with a note.
        names, arguments: Keys of the object, the native one first.
        as_list: Whether calls are written as one list.
        repeat: Whether every call has its own marker; else several objects share one.
        sentinel: Names that mean: no call.
        keyed: Whether an object is `{name: arguments}`.
        string_arguments: Whether arguments may be text of JSON.
        brackets_optional: Whether the list's brackets may be missing.
        id_key: Key of a call's id, "" where none is written.
        may: Further members that a model may write, key and JSON Schema of the value.
        result: Format of a result; `{content}` and `{name}` are filled in.
        prompt: Words of the prompt around the tools; `{tools}` is filled in.
    """

    opens: tuple[str, ...]
    closes: tuple[str, ...] = ()
    misspelt: tuple[str, ...] = ()
    names: tuple[str, ...] = ("name",)
    arguments: tuple[str, ...] = ("arguments",)
    as_list: bool = False
    repeat: bool = False
    newline: bool = False
    sentinel: tuple[str, ...] = ()
    keyed: bool = False
    string_arguments: bool = False
    id_key: str = ""
    may: tuple[tuple[str, str], ...] = ()
    result: str = "<tool_response>\n{content}\n</tool_response>"
    prompt: str = ""

    @property
    def hold(self) -> str:
        return ""

    @cached_property
    def firsts(self) -> str:
        return "".join({word[0] for word in (*self.opens, *self.misspelt, *self.closes)})

    @cached_property
    def literals(self) -> tuple[str, ...]:
        return (*self.opens, *self.misspelt, *self._shuts)

    def opener(self, names: tuple[str, ...]) -> str:
        return "|".join(re.escape(word) for word in sorted((*self.opens, *self.misspelt), key=len, reverse=True))

    def orphans(self) -> str:
        return "|".join(re.escape(word) for word in sorted(self._shuts, key=len, reverse=True))

    @cached_property
    def _shuts(self) -> tuple[str, ...]:
        """Closers, those of misspelt markers too."""
        if not self.closes:
            return ()
        return (*self.closes, *(word.replace("<", "</", 1) for word in self.misspelt))

    @cached_property
    def _opening(self) -> re.Pattern[str]:
        return re.compile(self.opener(()))

    @cached_property
    def _closing(self) -> re.Pattern[str]:
        return re.compile(self.orphans() or r"(?!)")

    def read(self, text: str, pos: int, inside: object | None, context: Context, final: bool) -> Reading:
        opening = self._opening.match(text, pos)
        if opening is None:
            return NOT_CALL
        begin = opening.end() - (1 if opening[0][-1] == "[" and len(opening[0]) > 1 else 0)
        at = SPACE.match(text, begin).end()  # type: ignore[union-attr]
        if at >= len(text):
            return NOT_CALL if final else More()
        framed = fence_start(text, at)
        if text[at] == "`" and not final and len(text) - at < 12:
            return More()
        if framed > at:
            at = SPACE.match(text, framed).end()  # type: ignore[union-attr]
            if at >= len(text):
                return NOT_CALL if final else More()
        if text[at] not in "{[":
            return self.misfit(text, at, pos, final)
        block = Block(at)
        if "```" in text[begin:framed]:
            block.notes.append(Note("fence_stripped", begin, framed, text[begin:framed].strip(), ""))
        if opening[0] in self.misspelt:
            block.notes.append(Note("tag_name_fixed", pos, opening.end(), opening[0], self.opens[0]))
        while True:
            scan = scan_json(text, at)
            if scan.end < 0:
                if scan.stray < 0 and not final:
                    return More(json_waker(scan))
                if not final and not self._resumes(text, scan.stray):
                    return More(waker(self._ends, text))
                self._damaged(text, at, scan, block)
                break
            drafts, notes = self._values(text, at, scan.end)
            block.drafts += drafts
            block.notes += notes
            block.end = scan.end
            after = SPACE.match(text, scan.end).end()  # type: ignore[union-attr]
            joined = text[after : after + 1] in (",", ";") and after < len(text)
            if joined:
                after = SPACE.match(text, after + 1).end()  # type: ignore[union-attr]
            if after >= len(text) and not final:
                return More(waker(_SOLID, ""))
            if text[after : after + 1] == "{" and (self.closes or (joined and not self.repeat)):
                at = after
                continue
            verdict = self._close(text, scan.end, block, final)
            if verdict is not None:
                return verdict
            break
        return self._finish(block, pos, text)

    @cached_property
    def _ends(self) -> re.Pattern[str]:
        return re.compile("|".join(part for part in (self.orphans(), self.opener(())) if part))

    def _resumes(self, text: str, stray: int) -> bool:
        """Whether a closer, or at the stray character another marker, already stands where the body broke."""
        return self._opening.match(text, stray) is not None or self._closing.search(text, stray) is not None

    def _values(self, text: str, at: int, end: int) -> tuple[list[Draft], list[Note]]:
        return read_values(
            text, at, end, self.names, self.arguments, keyed=self.keyed, string_arguments=self.string_arguments
        )

    def _close(self, text: str, end: int, block: Block, final: bool) -> More | None:
        """Take the closer that follows the body, or note that there is none."""
        if not self.closes:
            return None
        after = _EXTRA.match(text, end).end()  # type: ignore[union-attr]
        rest = text[after : after + 64]
        if not final and any(word.startswith(rest) for word in self._shuts):
            return More()
        closing = self._closing.match(text, after)
        if closing:
            extra = text[end:after].strip().strip("`").strip()
            if extra:
                block.notes.append(Note("trailing_markup_dropped", end, after, extra, ""))
            block.end = closing.end()
        elif block.drafts:
            block.drafts[-1].notes.append(Note("close_tag_added", end, end, "", self.closes[0]))
            block.whole_text = not rest
            block.drafts[-1].at_end = not rest
        return None

    def _damaged(self, text: str, at: int, scan: JsonScan, block: Block) -> None:
        """The body is no JSON: it ends at the closer that stands outside of every string, else nowhere."""
        stop = len(text)
        if scan.stray >= 0:
            closing = self._closing.match(text, scan.stray)
            if closing or self._opening.match(text, scan.stray):
                stop = scan.stray
                block.end = closing.end() if closing else stop
                draft = read_envelope(text, at, stop, self.names, self.arguments) if text[at] == "{" else None
                if draft is not None and draft.fault is None:
                    draft.end = stop
                    draft.notes.append(Note("json_brace_added", stop, stop, "", "}"))
                    block.drafts.append(draft)
                    return
                block.drafts.append(Draft("", "", at, stop, fault=Fault("damaged_call")))
                return
            closing = self._closing.search(text, scan.stray)
            if closing:
                block.end = closing.end()
                block.drafts.append(Draft("", "", at, closing.start(), fault=Fault("damaged_call")))
                return
        name = read_envelope(text, at, stop, self.names, self.arguments).name if text[at] == "{" else ""
        block.end, block.whole_text = stop, True
        block.drafts.append(Draft(name, "", at, stop, fault=Fault("cut_off"), at_end=True))

    def _finish(self, block: Block, pos: int, text: str) -> Block:
        block.drafts = [draft for draft in block.drafts if draft.name not in self.sentinel or not draft.name]
        if block.drafts:
            block.drafts[0].start = pos
            block.drafts[-1].end = block.end
            block.drafts[0].notes[:0] = block.notes
            block.notes = []
        return block

    def misfit(self, text: str, at: int, pos: int, final: bool) -> Reading:
        """A marker without JSON: a broken call where its closer stands near and ends a line, else prose."""
        if not self.closes:
            return NOT_CALL
        closing = self._ends.search(text, at, at + MISFIT_REACH)
        if closing is None and not final and len(text) - at < MISFIT_REACH:
            return More(waker(self._ends, text))
        if closing is None or not self._closing.match(text, closing.start()):
            return NOT_CALL
        after = closing.end()
        while after < len(text) and text[after] in " \t":
            after += 1
        if after >= len(text) and not final:
            return More()
        if after < len(text) and text[after] not in "\r\n<[":
            return NOT_CALL
        draft = Draft("", "", pos, closing.end(), fault=Fault("no_body"))
        return Block(closing.end(), [draft])

    # -- writing ---------------------------------------------------------------------------------------------------

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        if self.opens[0] == NO_MARKER:
            return (Form("json", optional=True, repeat="one"),)
        return (
            Form(
                "keyed" if self.keyed else "envelope", self.opens[0].removesuffix("["),
                lead="\n" if self.newline else " " if self.repeat else "",
                close=("\n" if self.newline else "") + (self.closes[0] if self.closes else ""),
                between="" if self.as_list else "\n" if self.closes else "; ",
                repeat="block" if self.repeat else "call", listed=self.as_list,
                loose=not self.opens[0].endswith("["),
                keys=(self.names[0], self.arguments[0]),
                fixed=((self.id_key, _ID),) if self.id_key else (), may=self.may,
            ),
        )  # fmt: skip

    def write_calls(self, calls: tuple[Call, ...], tools: Toolset) -> str:
        objects = [self._object(index, call) for index, call in enumerate(calls)]
        open_, close = self.opens[0].removesuffix("["), self.closes[0] if self.closes else ""
        line = "\n" if self.newline else ""
        if self.as_list:
            return f"{open_}[{', '.join(objects)}]{close}"
        if self.repeat:
            return "\n".join(f"{open_}{line or ' '}{one}{line}{close}".rstrip() for one in objects)
        joint = "\n" if self.closes else "; "
        return f"{open_}{line}{joint.join(objects)}{line}{close}"

    def _object(self, index: int, call: Call) -> str:
        arguments, name = arguments_of(call.name, call.arguments), quote(call.name)
        if self.keyed:
            return escape_markers(f"{{{name}: {arguments}}}", self.literals)
        ident = f'"{self.id_key}": {quote(call.id or str(index))}, ' if self.id_key else ""
        text = f'{{{ident}"{self.names[0]}": {name}, "{self.arguments[0]}": {arguments}}}'
        return escape_markers(text, self.literals)

    def write_results(self, results: tuple[Result, ...]) -> str:
        return "\n".join(self.result.format(content=result.content, name=result.name or "") for result in results)

    def write_tools(self, tools: Toolset) -> str:
        return self.prompt.format(
            tools=tool_list(tools, self.literals), open=self.opens[0], close="".join(self.closes[:1])
        )
