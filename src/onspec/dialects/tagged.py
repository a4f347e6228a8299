"""Dialects that write every argument in a tag of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from onspec import possessive
from onspec.contract.toolset import Toolset
from onspec.dialects.dialect import Context
from onspec.dialects.draft import NOT_CALL, Block, Draft, Fault, Kind, More, Note, Pair, Reading
from onspec.dialects.form import Form, Repeat
from onspec.dialects.scan import JsonScan, json_waker, scan_json, waker
from onspec.dialects.tags import RESULTS, Tags
from onspec.dialects.values import is_text
from onspec.dialects.write import arguments_of, pairs_of, tool_list
from onspec.errors import InputError
from onspec.message import Call, Result

_EMPTY = re.compile(r"/>\Z")
_WRONG = re.compile(r"</([A-Za-z_][\w:.-]{0,39})>\s*\Z")
_CDATA = re.compile(r"\s*<!\[CDATA\[(.*?)\]\]>\s*\Z", re.DOTALL)
_SAID = re.compile(r"""(?:string|type)\s*=\s*["'](\w+)["']""")
HEADER = 400
"""Longest opening tag, in characters."""


@dataclass(slots=True)
class Open:
    """An envelope that is still open."""

    wrapped: bool
    first: bool = False


@dataclass(frozen=True)
class Tagged:
    """Reader and writer of tagged arguments.

    Attributes:
        tags: How the tags are spelt.
        literals: Markers spelt out.
        firsts: Characters with which they begin.
        write: Templates: wrapper open, wrapper close, call open (`{name}`), call close, argument (`{key}`, `{value}`,
            and for a typed wire `{string}`).
        newline_frame: Whether one newline on each side of a value is framing.
        missing_wrapper: Rule noted where a call stands without its envelope; "" where there is none to miss.
        exact_wrapper: Spellings of the wrapper that are taken without a note; empty: all that match.
        exact_prefix: Pattern of the tag's start that is native; another is noted as `namespace_normalised`.
        cdata: Whether a CDATA section around a value is framing.
        wrapper_each: Whether the envelope holds one call.
        implied_close: Whether a lost wrapper close is noted too where its opener is lost.
    """

    tags: Tags
    literals: tuple[str, ...]
    firsts: str
    write: tuple[str, str, str, str, str]
    newline_frame: bool = False
    missing_wrapper: str = "wrapper_missing"
    exact_wrapper: tuple[str, ...] = ()
    exact_prefix: str = ""
    cdata: bool = False
    wrapper_each: bool = False
    implied_close: bool = False
    typed: bool = False
    tag_end: str = ">"
    result: str = RESULTS
    prompt: str = ""

    # -- patterns --------------------------------------------------------------------------------------------------

    @cached_property
    def _any(self) -> re.Pattern[str]:
        """Every tag that may stand in or after a value."""
        tags = self.tags
        parts = [
            f"(?P<po>{tags.param})",
            f"(?P<pc>{tags.param_close})",
            f"(?P<co>{tags.call})",
            f"(?P<cc>{tags.call_close})",
            f"(?P<bp>{tags.bare_param})",
        ]
        if tags.wrapper:
            parts += [f"(?P<wc>{tags.wrapper_close})", f"(?P<wo>{tags.wrapper})"]
        return possessive.compile("|".join(parts))

    @cached_property
    def _skip(self) -> re.Pattern[str]:
        """Text up to the next tag, gone over without leaving the regular expression."""
        return possessive.compile(rf"[^<]*+(?:(?!{_unnamed(self._any.pattern)})<[^<]*+)*+")

    def _each(self, text: str, pos: int) -> Iterator[re.Match[str]]:
        """Every tag from `pos` on."""
        while True:
            tag = self._any.match(text, self._skip.match(text, pos).end())  # type: ignore[union-attr]
            if tag is None:
                return
            yield tag
            pos = tag.end() if tag.end() > pos else pos + 1

    @cached_property
    def _call(self) -> re.Pattern[str]:
        return possessive.compile(self.tags.call)

    @cached_property
    def _garbled(self) -> re.Pattern[str]:
        return possessive.compile(self.tags.garbled or r"(?!)")

    @cached_property
    def _wrapper(self) -> re.Pattern[str]:
        return possessive.compile(self.tags.wrapper or r"(?!)")

    @cached_property
    def _wrapper_close(self) -> re.Pattern[str]:
        return possessive.compile(self.tags.wrapper_close or r"(?!)")

    @cached_property
    def _call_close(self) -> re.Pattern[str]:
        return possessive.compile(self.tags.call_close)

    @cached_property
    def _ends(self) -> re.Pattern[str]:
        """A closer of a call or of the envelope."""
        closers = [self.tags.call_close] + ([self.tags.wrapper_close] if self.tags.wrapper else [])
        return possessive.compile(_unnamed("|".join(closers)))

    @cached_property
    def _stops(self) -> re.Pattern[str]:
        """Where the search for a lost call's end stops: a closer, or the next opener."""
        opens = [self.tags.call_start or self.tags.call] + ([self.tags.wrapper] if self.tags.wrapper else [])
        return possessive.compile("|".join((self._ends.pattern, *(_unnamed(pattern) for pattern in opens))))

    @cached_property
    def _param(self) -> re.Pattern[str]:
        return possessive.compile(self.tags.param)

    @cached_property
    def _param_close(self) -> re.Pattern[str]:
        return possessive.compile(self.tags.param_close)

    @cached_property
    def _gap(self) -> re.Pattern[str]:
        return possessive.compile(rf"(?:\s|{self.tags.filler})*+" if self.tags.filler else r"\s*+")

    @cached_property
    def _wakes(self) -> re.Pattern[str]:
        tags = self.tags
        ends = [tags.call_close, tags.call]
        if tags.wrapper:
            ends.append(tags.wrapper_close)
        return possessive.compile(_unnamed("|".join(ends)))

    def opener(self, names: tuple[str, ...]) -> str:
        tags = self.tags
        parts = [tags.wrapper] if tags.wrapper else []
        parts += [tags.call_start or tags.call]
        if tags.garbled and names:
            known = "|".join(re.escape(name) for name in names)
            parts.append(tags.garbled.replace("NAMES", known))
        if tags.param_start:
            parts.append(tags.param_start)
        if tags.filler:
            parts.append(tags.filler)
        return _unnamed("|".join(parts))

    @property
    def hold(self) -> str:
        """An opener that is known only by the tag that follows it."""
        return _GARBLED_HOLD if self.tags.garbled else ""

    def orphans(self) -> str:
        tags = self.tags
        closers = [tags.call_close, tags.param_close]
        if tags.wrapper:
            closers.insert(0, tags.wrapper_close)
        return _unnamed("|".join(closers))

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, text: str, pos: int, inside: object | None, context: Context, final: bool) -> Reading:
        at, notes, wrapped = pos, list[Note](), False
        if isinstance(inside, Open):
            at, wrapped = self._gap.match(text, pos).end(), inside.wrapped  # type: ignore[union-attr]
            if self._undecided(text, at, final):
                return More()
            closing = self._wrapper_close.match(text, at)
            if closing:
                return Block(closing.end())
            if not self._starts_call(text, at, context):
                if not final and len(text) - at < HEADER and (text[at] in self.firsts or text[pos:at].strip()):
                    return More()
                if at >= len(text):
                    return Block(len(text), notes=[Note("close_tag_added", pos, pos)], whole_text=True)
                return Block(pos, notes=[Note("close_tag_added", pos, pos)])
        else:
            opening = self._wrapper.match(text, pos)
            if opening:
                wrapped = True
                at = opening.end()
                if self.exact_wrapper and opening[0] not in self.exact_wrapper:
                    rule = "tag_name_fixed"
                    notes.append(Note(rule, pos, at, opening[0], self.exact_wrapper[0]))
            at = self._gap.match(text, at).end()  # type: ignore[union-attr]
            if self._undecided(text, at, final):
                return More()
            if at >= len(text):
                return NOT_CALL
        head = self._head(text, at, context)
        if head is None:
            if not final and len(text) - at < HEADER and inside is None:
                return More()
            if possessive.compile(_unnamed(self.tags.call_start)).match(text, at) if self.tags.call_start else False:
                return self._headless(text, pos, at, final, wrapped, context)
            if inside is None and not wrapped and self._near_param(text, at):
                return self._nameless(text, pos, at, final)
            return NOT_CALL
        name, begin, head_notes = head
        if inside is None and not wrapped and context.tool(name) is None and not self._closes_later(text, begin):
            if not final and len(text) - begin < HEADER * 10:
                return More(waker(self._wakes, text))
            return NOT_CALL
        notes += head_notes
        draft = Draft(name, [], at if isinstance(inside, Open) else pos, at, notes)
        end = begin if _EMPTY.search(text, at, begin) else self._body(text, begin, draft, context, final, wrapped)
        if isinstance(end, More):
            return end
        draft.end = end
        block = Block(end, [draft], whole_text=draft.at_end, raw=self)
        if wrapped and not draft.at_end:
            block.inside = Open(True)
            if self.wrapper_each and not isinstance(inside, Open):
                return self._shut(text, block, draft, final)
            if self.wrapper_each:
                return self._shut(text, block, draft, final)
        elif not wrapped and self.missing_wrapper:
            draft.notes.append(Note(self.missing_wrapper, draft.start, draft.start))
            return self._unwrapped_end(text, block, draft, final)
        return block

    def _shut(self, text: str, block: Block, draft: Draft, final: bool) -> Reading:
        """The envelope of one call: its closer belongs to the call."""
        at = self._gap.match(text, block.end).end()  # type: ignore[union-attr]
        if self._undecided(text, at, final):
            return More()
        closing = self._wrapper_close.match(text, at)
        if closing:
            block.end, block.inside = closing.end(), None
        elif not self._starts_call(text, at, None):
            draft.notes.append(Note("close_tag_added", block.end, block.end))
            block.inside = None
            block.whole_text = at >= len(text)
            draft.at_end = False
        return block

    def _unwrapped_end(self, text: str, block: Block, draft: Draft, final: bool) -> Reading:
        """A call without its envelope: the envelope's closer may still stand there."""
        at = self._gap.match(text, block.end).end()  # type: ignore[union-attr]
        if self.tags.wrapper:
            if self._undecided(text, at, final):
                return More()
            closing = self._wrapper_close.match(text, at)
            if closing:
                block.end = closing.end()
            elif self.implied_close:
                draft.notes.append(Note("close_tag_added", block.end, block.end))
        return block

    def _undecided(self, text: str, at: int, final: bool) -> bool:
        """Whether more text may change which tag stands at `at`."""
        if final:
            return False
        if at >= len(text):
            return True
        if len(text) - at >= HEADER or text[at] not in self.firsts:
            return False
        rest = text[at + 1 :]
        return self.tag_end not in rest and "\n" not in rest

    def _starts_call(self, text: str, at: int, context: Context | None) -> bool:
        return (
            self._call.match(text, at) is not None
            or self._garbled_name(text, at, context) is not None
            or (
                bool(self.tags.call_start)
                and possessive.compile(_unnamed(self.tags.call_start)).match(text, at) is not None
            )
        )

    def _garbled_name(self, text: str, at: int, context: Context | None) -> re.Match[str] | None:
        if not self.tags.garbled:
            return None
        match = possessive.compile(self.tags.garbled.replace("NAMES", r"[^\"'<>]{1,200}?")).match(text, at)
        return match if match and (context is None or context.tool(match["gname"]) is not None) else None

    def _head(self, text: str, at: int, context: Context) -> tuple[str, int, list[Note]] | None:
        """Name of the call that opens at `at`, where its body begins, and what was lenient."""
        match = self._call.match(text, at)
        if match is None:
            garbled = self._garbled_name(text, at, context)
            if garbled is None:
                return None
            return garbled["gname"], garbled.end(), [Note("tag_name_fixed", at, garbled.end(), garbled[0], None)]
        notes = []
        groups = match.groupdict()
        written = groups["name"]
        name = written if context.tool(written) else written.removesuffix("/").strip().strip("\"'")
        if groups.get("odd"):
            notes.append(Note("tag_name_fixed", at, match.end(), match[0]))
        if self.exact_prefix and not re.compile(self.exact_prefix).match(text, at):
            notes.append(Note("namespace_normalised", at, match.end(), match[0]))
        return name, match.end(), notes

    def _closes_later(self, text: str, begin: int) -> bool:
        """Whether a call whose name is not declared is at least written as one: arguments or a closer follow."""
        at = self._gap.match(text, begin).end()  # type: ignore[union-attr]
        return self._param.match(text, at) is not None or self._call_close.match(text, at) is not None

    def _headless(self, text: str, pos: int, at: int, final: bool, wrapped: bool, context: Context) -> Reading:
        """An opener of a call that is never finished: refused, up to the next tag that ends a call."""
        closing = self._stops.search(text, at + 1, at + HEADER * 10)
        if closing is None and not final and len(text) - at < HEADER * 10:
            return More(waker(self._stops, text))
        line = text.find("\n", at, at + HEADER)
        near = text[at : line if line >= 0 else at + HEADER]
        if not wrapped and ">" in near:
            return NOT_CALL
        if closing is not None and not self._ends.match(text, closing.start()):
            if not wrapped:
                return NOT_CALL
            draft = Draft("", "", pos, closing.start(), fault=Fault("no_name"))
            return Block(closing.start(), [draft], inside=Open(True))
        if closing is None and len(text) - at >= HEADER * 10 and not wrapped:
            return NOT_CALL
        end = closing.end() if closing else len(text)
        fault = Fault("no_name") if closing else Fault("cut_off")
        draft = Draft("", "", pos, end, fault=fault, at_end=closing is None)
        still = Open(True) if wrapped and closing and not self._wrapper_close.match(text, closing.start()) else None
        return Block(end, [draft], inside=still, whole_text=closing is None)

    def _nameless(self, text: str, pos: int, at: int, final: bool) -> Reading:
        """Arguments without the call they belong to."""
        closing = self._stops.search(text, at, at + HEADER * 10)
        if closing is None and not final and len(text) - at < HEADER * 10:
            return More(waker(self._stops, text))
        if closing is None or not self._call_close.match(text, closing.start()):
            return NOT_CALL
        return Block(closing.end(), [Draft("", "", pos, closing.end(), fault=Fault("no_name"))])

    def _body(self, text: str, begin: int, draft: Draft, context: Context, final: bool, wrapped: bool) -> int | More:
        """Read the arguments up to the call's end; where it ends."""
        pairs: list[Pair] = []
        draft.body = pairs
        at, balanced = begin, True
        while True:
            gap = self._gap.match(text, at).end()  # type: ignore[union-attr]
            if self._undecided(text, gap, final):
                return More(waker(self._wakes, text))
            if gap >= len(text):
                if not pairs:
                    draft.fault = Fault("cut_off")
                else:
                    draft.notes.append(Note("close_tag_added", at, at))
                draft.at_end = True
                return gap
            param = self._param.match(text, gap)
            if param is not None:
                value = self._value(text, param, draft, context, final, balanced, {pair.key for pair in pairs})
                if isinstance(value, More):
                    return value
                if value is None:
                    draft.fault, draft.at_end = Fault("cut_off"), True
                    return len(text)
                pair, at, balanced = value
                pairs.append(pair)
                continue
            closing = self._call_close.match(text, gap)
            if closing:
                if closing.groupdict().get("cbad"):
                    draft.notes.append(Note("close_tag_fixed", gap, closing.end(), closing[0]))
                return closing.end()
            ended = self._wrapper_close.match(text, gap) or self._starts_call(text, gap, context)
            if ended and (pairs or wrapped):
                draft.notes.append(Note("close_tag_added", at, at))
                return at
            if text[gap] == "{" and not pairs:
                return self._json_body(text, gap, draft, final)
            fixed = self._fixed_param(text, gap, draft, context, final)
            if isinstance(fixed, More):
                return fixed
            if fixed is not None:
                pair, at = fixed
                pairs.append(pair)
                continue
            return self._lost(text, gap, draft, final)

    def _lost(self, text: str, at: int, draft: Draft, final: bool) -> int | More:
        """What stands here is no argument: the call is refused, up to its closer."""
        closing = self._ends.search(text, at)
        if closing is None and not final:
            return More(waker(self._wakes, text))
        draft.fault = Fault("nameless_parameter" if self._near_param(text, at) else "no_body")
        draft.at_end = closing is None
        return closing.end() if closing else len(text)

    def _near_param(self, text: str, at: int) -> bool:
        return bool(self.tags.param_start) and possessive.compile(self.tags.param_start).match(text, at) is not None

    def _json_body(self, text: str, at: int, draft: Draft, final: bool) -> int | More:
        """A JSON object in place of argument tags."""
        scan: JsonScan = scan_json(text, at)
        if scan.end < 0:
            if scan.stray < 0 and not final:
                return More(json_waker(scan))
            stop = scan.stray if scan.stray >= 0 else len(text)
            closing = self._call_close.match(text, stop)
            if closing is None:
                draft.fault, draft.at_end = Fault("cut_off"), True
                return len(text)
            draft.body = text[at:stop].rstrip()
            return closing.end()
        draft.body = text[at : scan.end]
        gap = self._gap.match(text, scan.end).end()  # type: ignore[union-attr]
        if self._undecided(text, gap, final):
            return More()
        closing = self._call_close.match(text, gap)
        if closing:
            return closing.end()
        draft.notes.append(Note("close_tag_added", scan.end, scan.end))
        draft.at_end = gap >= len(text)
        return scan.end

    def unmatched(self, text: str, pos: int, alone: bool = False) -> int:
        """Where, at or after `pos`, a value's closer stands that nothing opened; -1: nowhere.

        Args:
            alone: Whether it counts also where no closer of a call follows, at the end of a line.
        """
        params = 0
        for tag in self._each(text, pos):
            if tag.lastgroup in ("po", "bp"):
                params += 1
            elif tag.lastgroup == "pc":
                if params:
                    params -= 1
                    continue
                if alone:
                    return tag.start()
                closing = self._call_close.match(text, self._gap.match(text, tag.end()).end())  # type: ignore[union-attr]
                if closing and not self.goes_on(text, closing.end()):
                    return tag.start()
        return -1

    def opens_call(self, text: str, start: int, end: int) -> bool:
        """Whether a call opens between two places."""
        return any(tag.lastgroup == "co" for tag in takewhile(lambda tag: tag.start() < end, self._each(text, start)))

    def is_end(self, first: str, second: str) -> bool:
        """Whether two tags are the closers of a value and of its call."""
        return self._param_close.fullmatch(first) is not None and self._call_close.fullmatch(second) is not None

    def goes_on(self, text: str, pos: int) -> bool:
        """Whether text stands on the same line behind the end of a call at `pos` and its envelope's closer."""
        shut = self._wrapper_close.match(text, self._gap.match(text, pos).end())  # type: ignore[union-attr]
        at = shut.end() if shut else pos
        while at < len(text) and text[at] in " \t":
            at += 1
        if at >= len(text) or text[at] in "\r\n":
            return False
        return self._wrapper.match(text, at) is None and self._call.match(text, at) is None

    # -- values ----------------------------------------------------------------------------------------------------

    def _value(
        self,
        text: str,
        param: re.Match[str],
        draft: Draft,
        context: Context,
        final: bool,
        balanced: bool,
        seen: set[str],
    ) -> tuple[Pair, int, bool] | More | None:
        """The argument that `param` opens, where it ends, and whether nesting still tells where values end.

        Two readings. First: tags of the same kind inside the value are in balance, and the value's own closer is the
        one on level one that is followed by another argument, the call's end or the end of the text. Where that fails
        before the call ends, the value was not closed properly: it ends at the first structural sign of an end.
        """
        begin = param.end()
        place: tuple[int, int, list[Note]] | More | None = None
        if balanced:
            place = self._balanced(text, begin, final, context.content)
            if isinstance(place, More):
                return place
            balanced = place is not None
        if place is None:
            place = self._structural(text, begin, draft, context, final, seen)
        if place is None or isinstance(place, More):
            return place
        end, after, notes = place
        draft.last_value = begin
        draft.notes += notes
        groups = param.groupdict()
        key = groups["key"].strip().strip("\"'") if not context.declares(draft.name, groups["key"]) else groups["key"]
        if groups.get("podd"):
            draft.notes.append(Note("param_header_fixed", param.start(), begin, param[0]))
        value = text[begin:end]
        repaired = any(note.rule in ("close_tag_added", "mismatched_close_tag") for note in notes)
        return Pair(key, self._framed(value, repaired), self._kind(groups)), after, balanced

    @staticmethod
    def _kind(groups: dict[str, str | None]) -> Kind:
        """How the tag itself says that the value is to be read."""
        said = _SAID.search(groups.get("attrs") or "")
        if said is None:
            return "schema"
        return "string" if said[1] in ("true", "string") else "json"

    def _framed(self, value: str, loose: bool) -> str:
        """The value without what frames it."""
        if self.cdata:
            match = _CDATA.match(value)
            if match:
                return match[1]
        if self.newline_frame:
            value = value[1:] if value.startswith("\n") else value[2:] if value.startswith("\r\n") else value
            value = value[:-1] if value.endswith("\n") else value
            return value[:-1] if value.endswith("\r") else value
        return value[:-1] if loose and value.endswith("\n") else value

    def _balanced(
        self, text: str, begin: int, final: bool, content: tuple[int, int]
    ) -> tuple[int, int, list[Note]] | More | None:
        params, calls, wrappers = 1, 0, 0
        for tag in self._each(text, begin):
            kind = tag.lastgroup
            if content[0] <= tag.start() < content[1]:
                continue
            if kind in ("po", "bp"):
                params += 1
            elif kind == "co":
                calls += 1
            elif kind == "wo":
                wrappers += 1
            elif kind == "pc":
                if params > 1:
                    params -= 1
                    continue
                if calls or wrappers:
                    continue
                ending = self._after(text, tag.end(), final)
                if isinstance(ending, type):
                    return More(waker(self._wakes, text))
                if ending is not None:
                    notes = [Note("close_tag_fixed", tag.start(), tag.end(), tag[0])] if _bad(tag) else []
                    if ending > tag.end():
                        notes.append(Note("extra_close_dropped", tag.end(), ending, text[tag.end() : ending].strip()))
                    return tag.start(), ending, notes
            elif kind == "cc":
                if calls:
                    calls -= 1
                    continue
                verdict = self._ends_call(text, tag.end(), final)
                if isinstance(verdict, type):
                    return More(waker(self._wakes, text))
                if verdict:
                    return None
            elif kind == "wc":
                if wrappers:
                    wrappers -= 1
                    continue
                verdict = self._ends_call(text, tag.end(), final)
                if isinstance(verdict, type):
                    return More(waker(self._wakes, text))
                if verdict:
                    return None
        return None if final else More(waker(self._wakes, text))

    def _after(self, text: str, end: int, final: bool) -> int | type[More] | None:
        """Where the value's closers end if what follows is structural; None if not, `More` if it can't be told yet."""
        first = end
        for _ in range(4):
            gap = self._gap.match(text, end).end()  # type: ignore[union-attr]
            if gap >= len(text):
                return (first if end == first else end) if final else More
            if self._undecided(text, gap, final):
                return More
            if self._param.match(text, gap) or self._near_param(text, gap):
                return end
            closing = self._call_close.match(text, gap)
            if closing:
                return self._closes_value(text, end, closing.end(), final)
            if end == first and (self._wrapper_close.match(text, gap) or self._call.match(text, gap)):
                return end
            again = self._param_close.match(text, gap)
            if again is None:
                return None
            end = again.end()
        return None

    def _closes_value(self, text: str, end: int, after: int, final: bool) -> int | type[More] | None:
        """`end` if a value's closer with a call's closer behind it is real: no other value's closer follows at once."""
        gap = self._gap.match(text, after).end()  # type: ignore[union-attr]
        if self._undecided(text, gap, final):
            return More
        return None if self._param_close.match(text, gap) else end

    def _ends_call(self, text: str, end: int, final: bool) -> bool | type[More]:
        """Whether a closer of a call or an envelope, met in an open value, ends the call.

        It does where a call, the envelope's closer or the end follows, and else unless the very next tag is a value's
        closer in its place: then what stands between is part of the value. `More` if it can't be told yet.
        """
        gap = self._gap.match(text, end).end()  # type: ignore[union-attr]
        if self._undecided(text, gap, final):
            return More
        if gap >= len(text) or self._wrapper_close.match(text, gap) or self._call.match(text, gap):
            return True
        following = next(self._each(text, gap), None)
        if following is None:
            return True if final else More
        if following.lastgroup != "pc":
            return True
        ending = self._after(text, following.end(), final)
        return ending if isinstance(ending, type) else ending is None

    @staticmethod
    def _own_line(text: str, start: int) -> bool:
        line = text.rfind("\n", max(0, start - 80), start)
        return not text[line + 1 : start].strip() if line >= 0 else start > 0 and text[start - 1] == ">"

    def _structural(
        self, text: str, begin: int, draft: Draft, context: Context, final: bool, seen: set[str]
    ) -> tuple[int, int, list[Note]] | More | None:
        for tag in self._each(text, begin):
            kind, start, end = tag.lastgroup, tag.start(), tag.end()
            if context.content[0] <= start < context.content[1]:
                continue
            if kind == "pc":
                ending = self._after(text, end, final)
                if isinstance(ending, type):
                    return More(waker(self._wakes, text))
                if ending is not None:
                    notes = [Note("close_tag_fixed", start, end, tag[0])] if _bad(tag) else []
                    if ending > end:
                        notes.append(Note("extra_close_dropped", end, ending, text[end:ending].strip()))
                    return start, ending, notes
                continue
            if kind not in ("po", "cc", "wc"):
                continue
            wrong = self._wrong_closer(text, begin, start)
            if kind == "po":
                key = tag["key"].strip().strip("\"'")
                if key in seen or not context.declares(draft.name, key) or key == draft.name:
                    continue
                if wrong is None and not self._own_line(text, start):
                    continue
            elif kind == "wc" and wrong is None and not self._own_line(text, start):
                continue
            else:
                verdict = self._ends_call(text, end, final)
                if isinstance(verdict, type):
                    return More(waker(self._wakes, text))
                if not verdict:
                    continue
            if wrong is not None:
                return wrong, start, [Note("mismatched_close_tag", wrong, start, text[wrong:start].strip())]
            return start, start, [Note("close_tag_added", start, start)]
        return None if final else More(waker(self._wakes, text))

    @staticmethod
    def _wrong_closer(text: str, begin: int, start: int) -> int | None:
        """Where a closer begins that ends just before `start` and closes nothing that the value opened."""
        match = _WRONG.search(text, max(begin, start - 80), start)
        if match is None or re.search(rf"<{re.escape(match[1])}[\s>]", text[begin : match.start()]):
            return None
        return match.start()

    def _fixed_param(
        self, text: str, at: int, draft: Draft, context: Context, final: bool
    ) -> tuple[Pair, int] | More | None:
        """An argument whose opening tag was never finished, where its name is declared and its place is plain."""
        if not self.tags.param_start:
            return None
        start = possessive.compile(self.tags.param_start).match(text, at)
        if start is None:
            return None
        header = re.compile(r"""[=\s]*(?:name\s*=\s*)?["']?([\w.-]{1,100})["']?\s*(:|\n)[ \t]*""").match(
            text, start.end()
        )
        closing = possessive.compile(self.tags.param_close).search(text, at)
        if closing is None:
            return None if final else More(waker(self._wakes, text))
        if header is None or header.end() > closing.start() or not context.declares(draft.name, header[1]):
            return None
        if self._param.search(text, header.end(), closing.start()):
            return None
        value = text[header.end() : closing.start()]
        value = value[:-1] if value.endswith("\n") else value
        draft.notes.append(Note("param_header_fixed", at, header.end(), text[at : header.end()].strip()))
        return Pair(header[1], value), closing.end()

    # -- writing ---------------------------------------------------------------------------------------------------

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        open_, close, call_open, call_close, argument = self.write
        tag, tag_end = argument.split("{value}")
        trigger, lead = open_.rstrip(), open_[len(open_.rstrip()) :]
        if not trigger:
            trigger, _, name = call_open.partition("{name}")
            call_open = "{name}" + name
        end, close = (call_close, close) if open_ else ("", call_close)
        repeat: Repeat = "block" if self.wrapper_each or not open_ else "call"
        form = Form(
            "tags", trigger, lead=lead, call=call_open, end=end, close=close, repeat=repeat, tag=tag, tag_end=tag_end,
            framed=self.newline_frame, cdata=self.cdata,
        )  # fmt: skip
        others = [word for word in self.exact_wrapper if word != trigger]
        return form, *(replace(form, trigger=word, close=word.replace("<", "</", 1)) for word in others)

    def write_calls(self, calls: tuple[Call, ...], tools: Toolset) -> str:
        open_, close, call_open, call_close, _ = self.write
        parts = [] if self.wrapper_each else [open_]
        for index, call in enumerate(calls, 1):
            body = "".join(
                self._argument(call, tools, *pair) for pair in pairs_of(arguments_of(call.name, call.arguments))
            )
            one = call_open.format(name=call.name, index=index) + body + call_close
            parts.append(open_ + one + close if self.wrapper_each else one)
            if self.wrapper_each and index < len(calls):
                parts.append("\n")
        if not self.wrapper_each:
            parts.append(close)
        return "".join(parts)

    def _argument(self, call: Call, tools: Toolset, key: str, value: str, string: bool) -> str:
        if re.search(r"[<>\"\n]", key):
            raise InputError(f"the key {key!r} of a call to {call.name!r} cannot be written in this dialect")
        if string and not self.typed and not is_text(tools.find(call.name).tool, key):
            value = _quoted(value)
        kind = "true" if string else "false"
        if self.newline_frame and "\n{value}\n" not in self.write[4] and value != value.strip("\r\n"):
            value = f"\n{value}\n"
        if self.cdata and string and re.search(r"[<>&]", value):
            value = f"<![CDATA[{value}]]>"
        return self.write[4].format(key=key, value=value, string=kind, type=_json_type(value, string))

    def write_results(self, results: tuple[Result, ...]) -> str:
        return "\n".join(self.result.format(name=result.name or "", content=result.content) for result in results)

    def write_tools(self, tools: Toolset) -> str:
        return self.prompt.format(tools=tool_list(tools), example=self._example())

    def _example(self) -> str:
        open_, close, call_open, call_close, argument = self.write
        body = argument.format(key="parameter_name", value="value", string="true", type="string")
        return open_ + call_open.format(name="tool_name", index=1) + body + call_close + close


_GARBLED_HOLD = r"""<[\w:｜|.-]{1,40}(?:\s+name\s*)?=\s*"?[^"<>\n]{1,60}"?\s?>\s{0,20}(?:<[^<>\n]{0,80})?"""


def _bad(tag: re.Match[str]) -> bool:
    groups = tag.groupdict()
    return bool(groups.get("pbad")) or groups.get("pcut") is not None


def _unnamed(pattern: str) -> str:
    return re.sub(r"\?P<[a-z]+>", "?:", pattern)


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _json_type(value: str, string: bool) -> str:
    if string:
        return "string"
    return {"{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}.get(value[:1], "number")
