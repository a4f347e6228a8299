"""The engine under every dialect: text in pieces in; visible text, thinking and drafts of calls out."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Literal

from onspec.dialects.bare import read_bare, read_fence
from onspec.dialects.dialect import Context, Dialect
from onspec.dialects.draft import Block, Draft, Fault, More, NotCall, Note, RawValues
from onspec.dialects.items import Found, Item, Opening, Remark, Shown, Thought, size
from onspec.dialects.patterns import REACH, fence_closer, half, is_stray, patterns, stray_from
from onspec.dialects.quoting import Line, is_mention, may_mention
from onspec.dialects.scan import SPACE

MAX_WHOLE_TEXT_READS = 16
"""Blocks that only the end of the text could decide; beyond them the rest is refused as one, for linear time."""

LONE_REACH = 60
"""Characters within which inline code must end for a lone token in it to be only mentioned."""

SPARE_WORK = 256 * 1024
"""Characters that may be read again while a reader waits, besides eight times the text. Beyond that a call becomes
certain later than it could, never otherwise than it would."""

MAX_REREADS = 4
"""Times that a reply is read anew because a value went on beyond a closer."""


_GUESSED = frozenset({"close_tag_added", "mismatched_close_tag"})
"""Rules with which a value is ended without its own closer."""


class Suspect:
    """A call whose raw values may have been ended early, with everything after it, until the reply ends.

    A closer inside a value that is not escaped looks like the real one. What tells is the rest of the reply: where
    closers are left over that nothing opened, the value may have gone on to them. If there is one call before them, and
    text goes on behind it on the same line, it did: the call is read again to there. Else it may also be prose that
    speaks of closers, or any of several calls may have been part of a value: a tie, and all of them are refused.

    Attributes:
        family: The reader.
        inside: The envelope's state before the call.
        at: Where the call begins, in bytes.
        held: What had been held back before the call, because it was not known whether it was reasoning.
        length: The call's length in characters.
        last_value: Where its last value begins, in characters from there.
        text: The reply from the call's first character on, in pieces.
        items: What was read since, the call first.
    """

    __slots__ = ("at", "family", "held", "inside", "items", "last_value", "length", "text")

    def __init__(
        self, family: RawValues, inside: object | None, at: int, held: list[Item] | None, draft: Draft
    ) -> None:
        self.family = family
        self.inside = inside
        self.at = at
        self.held = held
        self.length = draft.end - draft.start
        self.last_value = draft.last_value - draft.start
        self.text: list[str] = []
        self.items: list[Item] = []

    def settle(self, machine: Machine) -> list[Item]:
        """What the reply holds from this call on."""
        items = self.items
        before = self.held or []
        text = "".join(self.text)
        lost = self.family.unmatched(text, self.length)
        place = self.at + size(text[:lost]) if lost >= 0 else self._orphaned(text)
        if place < 0:
            return [*before, *items]
        calls = [item for item in items if isinstance(item, Found) and item.span[0] < place]
        if lost >= 0 and len(calls) == 1 and self.last_value > 0 and self.family.goes_on(text, self.length):
            again = self._again(text, lost, machine)
            if again is not None:
                return [*before, *again]
        for call in items:
            if isinstance(call, Found) and call.draft.fault is None:
                call.draft.fault = Fault("ambiguous_call", "closers are left over after it")
        return [*before, *items]

    def _orphaned(self, text: str) -> int:
        """Where closers were left over that only the machine's reading shows, in bytes; -1: nowhere.

        They are the closers of a value and of a call, one behind the other; or, after a call one of whose values had no
        closer of its own, any closer of a value.
        """
        for item, following in pairwise(self.items):
            if not isinstance(item, Remark) or not isinstance(following, Remark):
                continue
            if self.family.is_end(item.note.before, following.note.before):
                return item.span[0]
        for item in self.items:
            if isinstance(item, Found) and any(note.rule in _GUESSED for note in item.draft.notes):
                passed = text.encode("utf-8", "surrogatepass")[: item.span[1] - self.at].decode(errors="ignore")
                if self.family.unmatched(text, len(passed), alone=True) >= 0:
                    return item.span[1]
        return -1

    def _again(self, text: str, lost: int, machine: Machine) -> list[Item] | None:
        """The call read once more, its value reaching to the closers at `lost`; then the rest of the reply."""
        if machine.depth >= MAX_REREADS or self.family.opens_call(text, self.length, lost):
            return None
        inside = self.inside[1] if isinstance(self.inside, tuple) else self.inside
        context = Context(machine.context.tools, (self.last_value, lost))
        block = self.family.read(text, 0, inside, context, True)
        if not isinstance(block, Block) or len(block.drafts) != 1 or block.drafts[0].fault is not None:
            return None
        several: object = machine.dialect.family
        if block.inside is not None and several is not self.family:
            block.inside = (self.family, block.inside)
        rest = Machine(machine.dialect, machine.context, depth=machine.depth + 1)
        rest.resume(text, block, self.at)
        return rest.close()


class Machine:
    """Reads one reply in one dialect.

    Args:
        dialect: The row.
        context: The declared tools.
        opening: Whether the reply starts outside reasoning, inside it, or it is not known; where it is not known
            nothing is certain until a closer or the end is seen.
        marker_ends_thinking: Whether an opener of a call ends open reasoning.
    """

    def __init__(
        self,
        dialect: Dialect,
        context: Context,
        opening: Opening = "closed",
        marker_ends_thinking: bool = False,
        depth: int = 0,
    ) -> None:
        self.dialect = dialect
        self.context = context
        self._marker_ends = marker_ends_thinking
        self._patterns = patterns(dialect, context.names)
        self._buf = ""
        self._pos = 0
        self._bytes = 0  # bytes before self._buf[self._pos]
        self._held: list[str] = []  # pieces that arrived while the reader waits
        self._wake: Callable[[str], bool] | None = None
        self._waiting = False
        self._work = 0
        self._total = 0
        self._reads = 0
        self._state: Literal["text", "thinking", "fence"] = "thinking" if opening == "open" else "text"
        self._queue: list[Item] | None = [] if opening == "unknown" else None
        self._out: list[Item] = []
        self._inside: object | None = None
        self._suspect: Suspect | None = None
        self.depth = depth
        self._line = Line()
        self._fence = ""
        self._fresh = True  # nothing visible and no call yet
        self._after_block = False
        self._pad: list[str] = []  # white space, or a word in place of an opener, not yet shown
        self._pad_stray = ""
        self._limit = -1  # where the buffer's end begins that may still become a marker
        self._reach = 500 if dialect.family.hold else REACH

    # -- feeding ---------------------------------------------------------------------------------------------------

    def feed(self, piece: str) -> list[Item]:
        """Take the next piece and return what became certain."""
        if not piece:
            return []
        self._total += len(piece)
        if self._suspect is not None:
            self._suspect.text.append(piece)
        if self._waiting:
            self._held.append(piece)
            if self._wake is not None and not self._wake(piece):
                return []
            if self._work > SPARE_WORK + 8 * self._total:
                return []
            self._buf = "".join((self._buf, *self._held))
            self._held.clear()
            self._work += len(self._buf)
        else:
            self._buf = self._buf[self._pos :] + piece
            self._pos = 0
        return self._run(False)

    def close(self) -> list[Item]:
        """The reply is over: return the rest."""
        if self._held:
            self._buf = "".join((self._buf, *self._held))
            self._held.clear()
        out = self._run(True)
        self._settle()
        if self._queue:
            out += self._queue
            self._queue = None
        out += self._out
        self._out = []
        if self._suspect is not None:
            out += self._suspect.settle(self)
        return out

    def resume(self, text: str, block: Block, at: int) -> None:
        """Start with a block that was read already, at `at` bytes."""
        self._buf, self._bytes, self._total = text, at, len(text)
        self._take(block, 0)

    def _run(self, final: bool) -> list[Item]:
        self._waiting, self._wake, self._limit = False, None, -1
        while self._step(final):
            pass
        out, self._out = self._out, []
        return out

    def _wait(self, more: More | None = None) -> bool:
        self._waiting = more is not None
        self._wake = more.wake if more is not None else None
        return False

    def _emit(self, item: Item) -> None:
        if self._suspect is not None:
            self._suspect.items.append(item)
        elif self._queue is not None:
            self._queue.append(item)
        else:
            self._out.append(item)

    def _advance(self, end: int) -> tuple[int, int]:
        """Move to `end`, and return the span in bytes of what was passed."""
        start = self._bytes
        self._bytes += size(self._buf[self._pos : end])
        self._pos = end
        return start, self._bytes

    # -- states ----------------------------------------------------------------------------------------------------

    def _step(self, final: bool) -> bool:
        if self._inside is not None:
            return self._block(self._pos, final)
        if self._state == "thinking":
            return self._thinking(final)
        if self._state == "fence":
            return self._in_fence(final)
        if self._fresh and self.dialect.bare:
            done = self._whole(final)
            if done is not None:
                return done
        return self._text(final)

    def _whole(self, final: bool) -> bool | None:
        """Try the forms that have no marker and count only as the whole reply."""
        buf = self._buf
        start = SPACE.match(buf, self._pos).end()  # type: ignore[union-attr]
        if start >= len(buf):
            self._show(len(buf))
            return False
        reading = read_bare(self.dialect, self.context, buf, start, final)
        if reading is None:
            return None
        if isinstance(reading, More):
            return self._wait(reading)
        assert isinstance(reading, Block)
        self._take(reading, start)
        return True

    def _text(self, final: bool) -> bool:
        buf, pos = self._buf, self._pos
        limit = len(buf)
        if pos >= limit:
            return False
        if not final:
            limit = self._certain(pos)
        found = self._patterns.skip.match(buf, pos).end()  # type: ignore[union-attr]
        if found >= limit:
            if final:
                self._last(limit)
                return False
            self._show(limit)
            return self._wait()
        if found > pos:
            self._show(found)
        match = self._patterns.at.match(buf, found)
        assert match is not None
        kind = match.lastgroup
        if kind == "tick":
            return self._tick(match, final)
        return self._marker(str(kind), match, final)

    def _certain(self, pos: int) -> int:
        """Where, at or after `pos`, the end of the buffer begins that may still become a marker."""
        if self._limit < pos:
            tail = self._patterns.hold.search(self._buf, max(pos, len(self._buf) - self._reach))
            self._limit = tail.start() if tail else len(self._buf)
        return self._limit

    def _last(self, end: int) -> None:
        """The end of the text: a marker that was cut there is hidden."""
        tail = self._buf[max(self._pos, end - REACH) : end]
        cut = max((half(tail, literal) for literal in self._patterns.literals), default=0)
        self._show(end - cut)
        if cut:
            span = self._advance(end)
            self._removed()
            self._emit(Remark(Note("half_marker_dropped", end - cut, end, self._buf[end - cut : end], ""), span))

    def _tick(self, match: re.Match[str], final: bool) -> bool:
        if not final and match.end() == len(self._buf):
            return self._wait()
        run = match[0]
        if len(run) >= 3 and self._line.may_open_fence():
            if self._fresh:
                accept = self.dialect.fence_is_call
                reading = read_fence(self._buf, match.start(), final, accept, self._parse_fenced)
                if isinstance(reading, More):
                    return self._wait(reading)
                if isinstance(reading, Block):
                    self._take(reading, match.start())
                    return True
            self._show(match.end())
            self._state, self._fence = "fence", run
            return True
        self._show(match.end())
        if run[0] == "`":
            self._line.tick(len(run))
        return True

    def _parse_fenced(self, inner: str) -> list[Draft] | None:
        """Drafts in the content of a fence, or None where it holds anything else."""
        machine = Machine(self.dialect, self.context)
        items = [*machine.feed(inner), *machine.close()]
        if any((isinstance(item, Shown) and item.text.strip()) or isinstance(item, Thought) for item in items):
            return None
        drafts = [item.draft for item in items if isinstance(item, Found)]
        return drafts if all(self.context.tool(draft.name) is not None for draft in drafts) else None

    def _in_fence(self, final: bool) -> bool:
        buf, pos = self._buf, self._pos
        closer = fence_closer(self._fence, final).search(buf, pos)
        if closer:
            self._show(closer.end())
            self._state = "text"
            return True
        if final:
            self._show(len(buf))
            return False
        keep = buf.rfind("\n", pos)
        if keep < 0 or buf[keep:].strip(" \t\n>`~"):
            keep = len(buf)
        self._show(keep)
        return self._wait()

    def _thinking(self, final: bool) -> bool:
        buf, pos = self._buf, self._pos
        limit = len(buf)
        if not final:
            limit = self._certain(pos)
            if limit > pos and may_mention(buf, limit):
                limit -= 1
        at = pos
        while True:
            closer = self._patterns.thinking.search(buf, at)
            if self._marker_ends:
                opener = self._seek_open(at, min(limit, closer.start() if closer else limit))
                if opener is not None:
                    return self._opener_in_thinking(opener, final)
            if closer is None:
                self._think(limit)
                return False if final else self._wait()
            if may_mention(buf, closer.start()):
                if closer.end() >= len(buf) and not final:
                    self._think(max(pos, closer.start() - 1))
                    return self._wait()
                if is_mention(buf, closer.start(), closer.end()):
                    at = closer.end()
                    continue
            self._think(closer.start())
            self._advance(closer.end())
            self._state = "text"
            self._removed()
            return True

    def _seek_open(self, pos: int, limit: int) -> re.Match[str] | None:
        """The first opener of a call between `pos` and `limit`."""
        buf = self._buf
        while pos < limit:
            pos = self._patterns.skip.match(buf, pos).end()  # type: ignore[union-attr]
            if pos >= limit:
                return None
            match = self._patterns.at.match(buf, pos)
            assert match is not None
            if match.lastgroup == "open":
                return match
            pos = match.end()
        return None

    def _opener_in_thinking(self, opener: re.Match[str], final: bool) -> bool:
        reading = self.dialect.family.read(self._buf, opener.start(), None, self.context, final)
        if isinstance(reading, More):
            self._think(opener.start())
            return self._wait(reading)
        if isinstance(reading, NotCall) or not reading.drafts:
            self._think(opener.end())
            return True
        self._think(opener.start())
        reading.drafts[0].notes.insert(0, Note("think_closed", opener.start(), opener.start()))
        self._state = "text"
        self._take(reading, opener.start())
        return True

    # -- markers ---------------------------------------------------------------------------------------------------

    def _marker(self, kind: str, match: re.Match[str], final: bool) -> bool:
        reach = LONE_REACH if kind == "drop" else None
        verdict = self._line.code_end(self._buf, match.start(), match.end(), final, reach)
        if verdict is None:
            return self._wait(More())
        if verdict:
            self._show(verdict)
            return True
        if kind == "open":
            return self._block(match.start(), final, match)
        if kind == "think":
            if self._line.mid_sentence() or self._line.in_quotes():
                self._show(match.end())
                return True
            self._advance(match.end())
            self._removed()
            self._state = "thinking"
            self._settle_queue()
            return True
        prose = self._line.in_sentence(self._buf, match.end(), final, token=True)
        if prose is None:
            return self._wait(More())
        if prose:
            self._show(match.end())
            return True
        if kind == "unthink" and (self._queue is not None or (self._suspect and self._suspect.held is not None)):
            self._rethink()
        span = self._advance(match.end())
        self._removed()
        if kind == "drop" and match[0] not in self.dialect.controls:
            self._emit(Remark(Note("orphan_marker_dropped", match.start(), match.end(), match[0], ""), span))
        return True

    def _settle_queue(self) -> None:
        """What was held is certain after all."""
        if self._suspect is not None and self._suspect.held is not None:
            self._out += self._suspect.held
            self._suspect.held = None
        if self._queue is not None:
            self._out += self._queue
            self._queue = None

    def _rethink(self) -> None:
        """A closer without an opener: everything so far was reasoning."""
        self._flush_pad(True)
        items = self._queue or []
        if self._suspect is not None:
            items = [*(self._suspect.held or []), *self._suspect.items]
        for item in items:
            if isinstance(item, Shown):
                self._out.append(Thought(item.text, item.at))
            elif isinstance(item, Found):
                self._out.append(Thought(item.raw, item.span[0]))
            elif isinstance(item, Thought):
                self._out.append(item)
        self._queue = self._suspect = None
        self._fresh = True

    def _block(self, start: int, final: bool, match: re.Match[str] | None = None) -> bool:
        if self._reads >= MAX_WHOLE_TEXT_READS and final:
            self._refuse_rest(start)
            return True
        family, buf = self.dialect.family, self._buf
        reading = family.read(buf, start, self._inside, self.context, final)
        if isinstance(reading, More):
            return self._wait(reading)
        if isinstance(reading, NotCall):
            if match is None:
                self._inside = None
                return True
            return self._not_call(match, final)
        if match is not None and not reading.mode:
            end, whole = reading.end, reading
            if self._line.mid_sentence() or self._line.in_quotes():
                while whole.inside is not None:
                    rest = family.read(buf, end, whole.inside, self.context, final)
                    if isinstance(rest, More):
                        return self._wait(rest)
                    if isinstance(rest, NotCall):
                        whole.inside = None
                        break
                    whole.drafts += rest.drafts
                    whole.notes += rest.notes
                    whole.inside, whole.end, end = rest.inside, rest.end, rest.end
                    whole.whole_text |= rest.whole_text
                prose = self._line.in_sentence(buf, end, final)
                if prose is None:
                    return self._wait(More())
                if prose:
                    self._show(end)
                    return True
        self._take(reading, start)
        return True

    def _not_call(self, match: re.Match[str], final: bool) -> bool:
        """A marker that opens nothing: prose where it stands in a line of prose, else hidden."""
        prose = self._line.has_prose(self._buf, match.end(), final)
        if prose is None:
            return self._wait(More())
        literal = match[0] in self._patterns.literals
        if prose or not literal:
            self._show(match.end())
            return True
        span = self._advance(match.end())
        self._removed()
        self._emit(Remark(Note("orphan_marker_dropped", match.start(), match.end(), match[0], ""), span))
        return True

    def _refuse_rest(self, start: int) -> None:
        end = len(self._buf)
        draft = Draft("", "", start, end, fault=Fault("too_tangled"), at_end=True)
        self._inside = None
        self._take(Block(end, [draft]), start)

    def _take(self, block: Block, start: int) -> None:
        """Hand out what a block holds."""
        if block.whole_text:
            self._reads += 1
        if block.mode is not None or (self._inside is None and start > self._pos):
            self._pad_or_skip(start)
        if block.bare and not self._fresh and block.drafts:
            block.drafts[0].notes.append(Note("prefix_text_split", block.drafts[0].start, block.drafts[0].start))
        stray = self._pad_stray if block.drafts and self._inside is None else ""
        stray = stray if is_stray(stray) else ""
        places = sorted(
            {start, block.end}
            | {at for note in block.notes for at in (note.start, note.end)}
            | {at for draft in block.drafts for at in (draft.start, draft.end)}
            | {at for draft in block.drafts for note in draft.notes for at in (note.start, note.end)}
        )
        where: dict[int, int] = {}
        before, at = self._bytes, self._pos
        for place in places:
            if place > at:
                before += size(self._buf[at:place])
                at = place
            where[place] = before
        for draft in block.drafts:
            if stray and any(note.rule in ("wrapper_missing", "open_tag_inferred") for note in draft.notes):
                self._pad_stray = ""
                self._pad.clear()
                draft.notes.append(Note("stray_lead_token_dropped", draft.start, draft.start, stray, ""))
            stray = ""
            notes = tuple((note, (where[note.start], where[note.end])) for note in draft.notes)
            span = (where[draft.start], where[draft.end])
            self._settle_pad()
            if block.raw is not None and self._suspect is None:
                held, self._queue = self._queue, None
                self._suspect = Suspect(block.raw, self._inside, span[0], held, draft)
                self._suspect.text.append(self._buf[draft.start :])
            self._emit(Found(draft, span, notes, self._buf[draft.start : draft.end]))
        for note in block.notes:
            self._emit(Remark(note, (where[note.start], where[note.end])))
        self._bytes = where[block.end]
        self._pos = block.end
        self._inside = block.inside
        self._removed()
        if block.drafts:
            self._fresh = False
        if block.mode == "thinking":
            self._state = "thinking"
        elif block.mode == "text":
            self._state = "text"

    def _pad_or_skip(self, start: int) -> None:
        if start > self._pos:
            self._pad.append(self._buf[self._pos : start])
            self._advance(start)

    # -- output ----------------------------------------------------------------------------------------------------

    def _removed(self) -> None:
        """Markup was taken out here: what follows stands on a line of its own."""
        self._line.reset()
        self._after_block = True

    def _show(self, end: int) -> None:
        """Everything up to `end` is visible text."""
        if end <= self._pos:
            return
        piece = self._buf[self._pos : end]
        self._advance(end)
        starts_line = self._line.at_start()
        self._line.add(piece)
        if piece.isspace() and not self._pad_stray:
            self._pad.append(piece)
            return
        piece = "".join((*self._pad, self._pad_stray, piece)) if self._pad or self._pad_stray else piece
        whole_line = starts_line or bool(self._pad) or bool(self._pad_stray)
        self._pad.clear()
        self._pad_stray = ""
        body = piece.rstrip()
        if self.dialect.stray:
            cut = stray_from(body, whole_line and not self._inside)
            if cut >= 0:
                self._pad_stray = piece[cut:]
                piece = piece[:cut]
                body = piece.rstrip()
        if len(body) < len(piece):
            self._pad.append(piece[len(body) :])
        if body:
            self._visible(body)

    def _visible(self, text: str) -> None:
        if self._fresh or self._after_block:
            if self._fresh and self._after_block:
                text = text.lstrip()
            self._fresh = False
            self._after_block = False
        self._emit(Shown(text, self._bytes - size(text)))

    def _settle_pad(self) -> None:
        """A held word turned out to be prose: show it before the call that follows."""
        if self._pad_stray:
            word, self._pad_stray = self._pad_stray, ""
            body = word.rstrip()
            self._visible("".join(self._pad) + body)
            self._pad = [word[len(body) :]]

    def _flush_pad(self, as_is: bool) -> None:
        text = "".join((*self._pad, self._pad_stray))
        self._pad.clear()
        self._pad_stray = ""
        if text and (as_is or text.strip()):
            self._visible(text)

    def _settle(self) -> None:
        """The end: a half-written marker is hidden, trailing space stays only where nothing was taken out."""
        self._flush_pad(not self._after_block)

    def _think(self, end: int) -> None:
        if end > self._pos:
            piece = self._buf[self._pos : end]
            span = self._advance(end)
            self._emit(Thought(piece, span[0]))
