"""Dialects that write the tool's name in a header of tokens, and then one JSON value: DeepSeek, Kimi, Mistral."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from onspec.contract.toolset import Toolset
from onspec.dialects.dialect import Context
from onspec.dialects.draft import NOT_CALL, Block, Draft, Fault, More, Note, Reading
from onspec.dialects.envelope import fence_start
from onspec.dialects.form import Form
from onspec.dialects.scan import SPACE, json_waker, scan_json, waker
from onspec.dialects.write import arguments_of, escape_markers, tool_list
from onspec.errors import InputError
from onspec.message import Call, Result

HEADER = 300
"""Longest header of a call, in characters."""

_FENCE_END = re.compile(r"\s*+```")


@dataclass(slots=True)
class Section:
    """An open section of calls."""

    calls: int = 0


@dataclass(frozen=True)
class Headed:
    """Reader and writer of `[SECTION] CALL name SEP json CALL_END [SECTION_END]`.

    Attributes:
        call: Opener of a call.
        name: What may stand between it and the separator, with the group `name` and optionally `id`.
        separator: What stands between name and JSON.
        call_end: Closer of a call; "" where the JSON value's end is the end.
        section, section_end: The envelope; "" where there is none.
        exact_section: Spellings taken without a note; empty: all.
        literals: Markers spelt out.
        firsts: Characters with which they begin.
        write: Templates: section, call (`{name}`, `{index}`, `{id}`, `{call_id}`,
            `{arguments}`), joint between calls, section end.
        name_pattern: What a name may be made of, as written.
    """

    call: str
    name: str
    separator: str
    literals: tuple[str, ...]
    firsts: str
    write: tuple[str, str, str, str]
    call_end: str = ""
    section: str = ""
    section_end: str = ""
    exact_section: tuple[str, ...] = ()
    missing_section: str = "wrapper_missing"
    result: str = "{content}"
    prompt: str = ""

    @property
    def hold(self) -> str:
        return ""

    def opener(self, names: tuple[str, ...]) -> str:
        return "|".join(part for part in (self.section, self.call) if part)

    def orphans(self) -> str:
        return "|".join(part for part in (self.section_end, self.call_end) if part)

    @cached_property
    def _section(self) -> re.Pattern[str]:
        return re.compile(self.section or r"(?!)")

    @cached_property
    def _section_end(self) -> re.Pattern[str]:
        return re.compile(self.section_end or r"(?!)")

    @cached_property
    def _call(self) -> re.Pattern[str]:
        return re.compile(self.call)

    @cached_property
    def _call_end(self) -> re.Pattern[str]:
        return re.compile(self.call_end or r"(?!)")

    @cached_property
    def _separator(self) -> re.Pattern[str]:
        return re.compile(self.separator)

    @cached_property
    def _name(self) -> re.Pattern[str]:
        return re.compile(self.name)

    @cached_property
    def _ends(self) -> re.Pattern[str]:
        return re.compile("|".join(part for part in (self.section_end, self.call_end, self.call) if part))

    def read(self, text: str, pos: int, inside: object | None, context: Context, final: bool) -> Reading:
        at, notes = pos, list[Note]()
        if not isinstance(inside, Section):
            section = self._section.match(text, pos)
            if section:
                at = section.end()
                if self.exact_section and section[0] not in self.exact_section:
                    notes.append(Note("tag_name_fixed", pos, at, section[0], self.exact_section[0]))
            opened = section is not None
        else:
            opened = True
        at = SPACE.match(text, at).end()  # type: ignore[union-attr]
        if not final and self._short(text, at):
            return More()
        if isinstance(inside, Section):
            ended = self._section_end.match(text, at)
            if ended:
                return Block(ended.end())
            if at >= len(text):
                return Block(at, notes=[Note("close_tag_added", pos, pos)], whole_text=True)
        call = self._call.match(text, at)
        begin = call.end() if call else at
        if call is None:
            if not opened:
                return NOT_CALL
            if isinstance(inside, Section) and not self._header_here(text, at):
                return Block(pos, notes=[Note("close_tag_added", pos, pos)])
            if self.section_end and self._section_end.match(text, at):
                return Block(self._section_end.match(text, at).end(), quiet=True)  # type: ignore[union-attr]
        draft = Draft("", "", at if isinstance(inside, Section) else pos, at, notes)
        if call is None and self.section:
            draft.notes.append(Note("open_tag_inferred", at, at))
        end = self._header(text, begin, draft, context, final)
        if isinstance(end, More):
            return end
        if end is None:
            if not opened or not isinstance(inside, Section):
                return self._misfit(text, pos, begin, final)
            return Block(pos, notes=[Note("close_tag_added", pos, pos)])
        draft.end = end
        block = Block(end, [draft], whole_text=draft.at_end)
        if opened and self.section_end and not draft.at_end:
            block.inside = Section()
        elif not opened and self.section:
            draft.notes.append(Note(self.missing_section, draft.start, draft.start))
            after = SPACE.match(text, end).end()  # type: ignore[union-attr]
            if not final and self._short(text, after):
                return More()
            ended = self._section_end.match(text, after)
            if ended:
                block.end = ended.end()
        return block

    def _short(self, text: str, at: int) -> bool:
        """Whether the text ends where a marker may be unfinished."""
        rest = text[at : at + 64]
        return not rest or (len(text) - at < 64 and any(word.startswith(rest) for word in self.literals))

    def _header_here(self, text: str, at: int) -> bool:
        end = self._separator.search(text, at, at + HEADER)
        return end is not None and "\n" not in text[at : end.start()]

    def _header(self, text: str, begin: int, draft: Draft, context: Context, final: bool) -> int | More | None:
        """Read name, separator and body; where the call ends. None: this is no call at all."""
        limit = min(len(text), begin + HEADER)
        separator = self._separator.search(text, begin, limit)
        ends = self._ends.search(text, begin, limit)
        brace = text.find("{", begin, limit)
        if separator and ends and ends.start() < separator.start() and ends.end() <= separator.start():
            separator = None
        if separator is None and brace < 0 and ends is None and not final and len(text) - begin < HEADER:
            return More()
        if separator is not None and (brace < 0 or separator.start() < brace):
            stop, body, inferred = separator.start(), separator.end(), False
            if not final and body >= len(text):
                return More()
        elif brace >= 0 and (ends is None or brace < ends.start()):
            stop, body, inferred = brace, brace, True
        else:
            return None
        header = self._name.fullmatch(text[begin:stop].strip())
        if header is None:
            return None
        groups = header.groupdict()
        draft.name = groups["name"].strip()
        draft.id = groups.get("id")
        if inferred:
            if context.tool(draft.name) is None:
                return None
            draft.notes.append(Note("separator_inferred", stop, stop))
        return self._json(text, body, draft, final)

    def _json(self, text: str, body: int, draft: Draft, final: bool) -> int | More:
        start = SPACE.match(text, fence_start(text, body)).end()  # type: ignore[union-attr]
        if not final and (start >= len(text) or (text[start] == "`" and len(text) - start < 16)):
            return More()
        if text[start : start + 1] not in ("{", "[") or start >= len(text):
            ended = self._ends.search(text, start)
            if ended is None and not final:
                return More(waker(self._ends, text))
            stop = ended.start() if ended else len(text)
            draft.body, draft.freeform = text[start:stop].strip(), True
            if ended and not draft.body:
                draft.body, draft.freeform = "{}", False
                draft.notes.append(Note("arguments_inferred", start, stop, "", "{}"))
            draft.at_end = ended is None
            return self._end(text, stop, draft, final)
        scan = scan_json(text, start)
        if scan.end < 0 and scan.stray < 0:
            if not final:
                return More(json_waker(scan))
            draft.fault, draft.at_end = Fault("cut_off"), True
            return len(text)
        if scan.end < 0:
            ended = self._ends.match(text, scan.stray)
            draft.body = text[start : scan.stray].rstrip()
            if ended is None:
                draft.fault = Fault("damaged_call")
                ended = self._ends.search(text, scan.stray)
                if ended is None and not final:
                    return More(waker(self._ends, text))
            draft.at_end = ended is None
            return self._end(text, ended.start() if ended else len(text), draft, final)
        draft.body = text[start : scan.end]
        end = scan.end
        if start > body and text[body:start].strip().startswith("```"):
            fence = _FENCE_END.match(text, end)
            if fence is None and not final and len(text) - end < 8:
                return More()
            end = fence.end() if fence else end
        return self._end(text, end, draft, final)

    def _end(self, text: str, end: int, draft: Draft, final: bool) -> int | More:
        if not self.call_end:
            return end
        at = end
        while at < len(text) and (text[at].isspace() or text[at] in "}]"):
            at += 1
        if not final and self._short(text, at):
            return More()
        ended = self._call_end.match(text, at)
        if ended:
            if text[end:at].strip():
                draft.notes.append(Note("trailing_markup_dropped", end, at, text[end:at].strip(), ""))
            return ended.end()
        if draft.fault is None and not (self.section_end and self._opens_inferred(draft)):
            draft.notes.append(Note("close_tag_added", end, end))
        draft.at_end = draft.at_end or at >= len(text)
        return end

    @staticmethod
    def _opens_inferred(draft: Draft) -> bool:
        return any(note.rule == "open_tag_inferred" for note in draft.notes)

    def _misfit(self, text: str, pos: int, begin: int, final: bool) -> Reading:
        """A marker with no header behind it: a broken call where a closer stands near, else prose."""
        ended = self._ends.search(text, begin, begin + 4000)
        if ended is None:
            if not final and len(text) - begin < 4000:
                return More(waker(self._ends, text))
            return NOT_CALL
        if not (self._section_end.match(text, ended.start()) or self._call_end.match(text, ended.start())):
            return NOT_CALL
        return Block(ended.end(), [Draft("", "", pos, ended.end(), fault=Fault("no_body"))])

    # -- writing ---------------------------------------------------------------------------------------------------

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        section, one, joint, close = self.write
        call, end = one.split("{arguments}")
        if section:
            free = bool(end) and not end.startswith("\n")
            return (Form("json", section, call=call, end=end, close=close, between=joint, loose=free, free=free),)
        trigger, _, rest = call.partition("{name}")
        return (Form("json", trigger, call="{name}" + rest, repeat="block"),)

    def write_calls(self, calls: tuple[Call, ...], tools: Toolset) -> str:
        open_, one, joint, close = self.write
        parts = []
        for index, call in enumerate(calls):
            if any(mark in call.name for mark in self.literals) or self._name.fullmatch(call.name) is None:
                raise InputError(f"the tool name {call.name!r} cannot be written in this dialect")
            body = escape_markers(arguments_of(call.name, call.arguments), self.literals)
            parts.append(
                one.replace("{name}", call.name)
                .replace("{index}", str(index))
                .replace("{id}", call.id or f"call{index:05d}")
                .replace("{call_id}", "")
                .replace("{arguments}", body)
            )
        return open_ + joint.join(parts) + close

    def write_results(self, results: tuple[Result, ...]) -> str:
        return "".join(
            self.result.replace("{name}", result.name or "")
            .replace("{id}", result.call_id or "")
            .replace("{content}", result.content)
            for result in results
        )

    def write_tools(self, tools: Toolset) -> str:
        return self.prompt.replace("{tools}", tool_list(tools, self.literals))
