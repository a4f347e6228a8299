"""One streamed reply on its way through: frames in, bytes out, with only broken calls changed."""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from onspec.audit import Violation
from onspec.contract.tool import Tool
from onspec.contract.toolset import Match
from onspec.gateway import sse
from onspec.gateway.contracts import Contracts
from onspec.gateway.cut import CUT_OFF, spoiled
from onspec.gateway.promote import Leaked, Leaks, Recover
from onspec.gateway.splice import Edit, splice
from onspec.gateway.usage import Tokens, together
from onspec.gateway.verdict import Judge, Verdict, cut_short, is_json, open_ended
from onspec.gateway.wire import (
    Api,
    Closed,
    Copy,
    Delta,
    End,
    Finish,
    Key,
    Mark,
    Prose,
    Start,
    Stopped,
    Stream,
    TextCopy,
    Usage,
)
from onspec.repair.policy import Policy
from onspec.repair.stream import ArgumentStream

Hold = Literal["value", "call"]


@dataclass(slots=True)
class Live:
    """A call under way."""

    key: Key
    start: Start
    match: Match
    stream: ArgumentStream
    frames_before: int
    sent: int = 0
    fed: int = 0
    given: str = ""
    """The arguments where the wire told them all at once; they count where no piece of them came."""
    begun: bool = False
    """Whether its first event has gone on."""
    ended: bool = False
    """Whether the wire has said that its arguments are complete."""
    over: bool = False
    """Whether its end has gone on."""
    incomplete: bool = False
    """Whether the wire says of this very call that it was cut."""
    last: bool = False
    """Whether it was the last one when the reply stopped."""
    asked: bool = False
    verdict: Verdict | None = None
    tail: str | None = None
    """What is still to be sent in place of the held pieces; None where they go on as they came."""
    tail_sent: bool = False
    finish: Finish | None = None
    tries: int = 0
    promoted: bool = False

    @property
    def name(self) -> str:
        if self.verdict is not None and self.verdict.status != "refused":
            return self.verdict.tool or self.start.name
        found = self.match.tool
        return found.name if found is not None else self.start.name


@dataclass(slots=True)
class _Held:
    frame: sse.Frame
    marks: tuple[Mark, ...]
    number: int | None = None
    ends: list[tuple[Live, int] | None] = field(default_factory=list)
    """Of each piece of a call, the call and how far it reaches; None where the call is left alone."""
    prose: list[tuple[Key, int]] = field(default_factory=list)


class Rewriter:
    """Passes a reply's frames on, each as soon as it is certain, and changes only what a broken call needs.

    Args:
        api: The foreign API.
        contracts: The request's contracts.
        judge: Decides over a complete call.
        hold: `value` holds a doubtful value only; `call` holds each call to its end.
        retry: Refused calls wait in `waiting` for `settle` instead of being passed on.
        report: Told of each call once, when it is decided.
        recover: Finds calls in text into which their markup leaked; None leaves text alone.
        policy: Under which repairs are made while a call streams; None makes none before its end.
    """

    def __init__(
        self,
        api: Api,
        contracts: Contracts,
        judge: Judge,
        hold: Hold = "value",
        retry: bool = False,
        report: Callable[[Live], None] | None = None,
        recover: Recover | None = None,
        policy: Callable[[Tool], Policy] | None = None,
    ) -> None:
        self.wire: Stream = api.stream()
        self.waiting: list[Live] = []
        self.ended = False
        self.failed: str | None = None
        self.missing = False
        """Whether the reply ended for a call and holds none; `supply` says what is to be done."""
        self.usage: Tokens = {}
        self.history: list[sse.Frame] = []
        self._api = api
        self._contracts = contracts
        self._leaks = Leaks(recover, contracts) if recover is not None and contracts else None
        self.wire.prose = self._leaks is not None
        self._leaked: tuple[Leaked, ...] = ()
        self._judge = judge
        self._hold = hold
        self._retry = retry
        self._policy = policy
        self._report = report or (lambda live: None)
        self._calls: dict[Key, Live] = {}
        self._queue: deque[_Held] = deque()
        self._stopped: Finish | None = None
        self._closed = False
        self._known = False
        self._fed = False
        self._resumed = False
        self._numbered = -1
        self._extra: Tokens = {}

    @property
    def calls(self) -> tuple[Live, ...]:
        """Every call so far, in the order in which they began."""
        return tuple(self._calls.values())

    @property
    def cost(self) -> Tokens:
        """What the reply cost, with all that was asked again."""
        return together(self.usage, self._extra)

    def feed(self, frame: sse.Frame) -> bytes:
        """Take one frame; returns the bytes that may go on now."""
        if self.ended:
            return b""
        self._fed = True
        marks = self.wire.read(frame)
        number: int | None = getattr(self.wire, "number", None)
        if self._retry:
            self.history.append(frame)
        if not marks and not self._queue and (number is None or number > self._numbered):
            self._numbered = number if number is not None else self._numbered
            return frame.raw
        held = _Held(frame, marks, number)
        for mark in marks:
            self._take(mark, held)
        if not self._queue and self._ready(held):
            return self._emit(held)
        self._queue.append(held)
        return self._flush()

    def close(self, cut: bool, left: sse.Frame | None = None) -> bytes:
        """The upstream has ended; returns the bytes that make a well-formed end.

        Args:
            cut: It ended by a fault and not of itself.
            left: What stood after the last whole frame.
        """
        if self.ended:
            return b""
        out = b""
        half = False
        if left is not None:
            if left.data is not None or not left.raw.strip() or left.raw.lstrip().startswith(b":"):
                out += self.feed(left)
            else:
                half = True
        if self.ended:
            return out
        if not self._closed and self._stopped is None and (cut or half or self._known or not self._fed):
            return out + self.fail("the provider's stream ended before the reply did")
        for live in self._calls.values():
            self._end(live)
        if cut and self.missing:
            self._let_go(False)
        for live in list(self.waiting) if cut else ():
            self.waiting.remove(live)
            self._decide(live, self._judge(live.match, live.stream.text, live.finish))
        out += self._flush()
        if (cut or half) and not (self._closed or self._queue or self.ended):
            self._closed = True
            out += self.wire.ending()
        return out

    def fail(self, message: str) -> bytes:
        """End the reply with an error, in the wire's own form; what was held is dropped.

        A call under way is first made one that nobody can run: some clients run what they have when a reply breaks off.
        """
        self.ended = True
        self.failed = message
        self._queue.clear()
        out = b""
        for live in self._calls.values():
            if live.begun and not live.over and (live.tail is None or not live.tail_sent):
                if live.sent > live.stream.certain:  # it is decided, and part of what was held has gone on as it came
                    rest: str | None = live.stream.text[live.sent :]
                else:
                    rest = spoiled(live.match.tool, live.stream, live.sent)
                out += self._inserted(live, rest) if rest else b""
        if getattr(self.wire, "last", None) is not None:
            self.wire.last = max(self._numbered, -1)  # type: ignore[attr-defined]
        return out + self.wire.failure(f"onspec: {message}")

    def supply(self, verdict: Verdict, extra: Tokens, tries: int) -> bytes:
        """The answer where the reply was `missing` its call: a verdict on the call that came, or a refusal."""
        self._extra = together(self._extra, extra)
        came = verdict.status != "refused"
        self._let_go(came)
        if came:
            leaked = Leaked(verdict.tool, verdict.text, secrets.token_hex(12), verdict)
            self._leaked = (leaked,)
            self._report(self._added_live(0, leaked, tries))
        return self._flush()

    def _let_go(self, came: bool) -> None:
        """The text that waited for the missing call goes on, without its markup where the call `came`."""
        self.missing = False
        if self._leaks is not None:
            self._leaks.release(without=came)

    def settle(self, live: Live, verdict: Verdict, extra: Tokens) -> bytes:
        """The answer for a call in `waiting`: a verdict on a new call, or the old one where no try was better."""
        self.waiting.remove(live)
        self._extra = together(self._extra, extra)
        if verdict.status != "refused" and self._stopped == "length":
            self._resumed = True
        self._decide(live, verdict)
        return self._flush()

    # Marks

    def _take(self, mark: Mark, held: _Held) -> None:
        self._known = True
        if isinstance(mark, Start):
            known = self._calls.get(mark.key)
            match = self._contracts.find(mark.name, mark.namespace) if known is None or known.over else None
            if match is not None:
                tool = match.tool or _NO_TOOL
                early = self._policy(tool) if self._policy is not None and not self._retry else None
                stream = ArgumentStream(tool, self._holds(match), early)
                self._calls.pop(mark.key, None)
                self._calls[mark.key] = Live(mark.key, mark, match, stream, len(self.history), given=mark.given)
        elif isinstance(mark, Prose):
            if self._leaks is not None:
                held.prose.append((mark.key, self._leaks.block(mark.key).feed(mark.text)))
        elif isinstance(mark, Delta):
            live = self._calls.get(mark.key)
            if live is not None:
                live.stream.feed(mark.text)
                live.fed += len(mark.text)
            held.ends.append((live, live.fed) if live is not None else None)
        elif isinstance(mark, End):
            live = self._calls.get(mark.key)
            if live is not None:
                live.ended = True
                live.incomplete = mark.incomplete
                live.given = mark.given or live.given
                self._whole(live)
                if not self._waits(live):
                    self._end(live)
        elif isinstance(mark, Stopped):
            self._stopped = mark.reason
            for live in self._stopping(mark):
                live.ended = live.ended or mark.keys is not None
                self._whole(live)
                self._end(live)
            self._look_for_leaks()
        elif isinstance(mark, Usage):
            self.usage = {**self.usage, **mark.found}
        elif isinstance(mark, Closed):
            self._closed = True
            if self._leaks is not None and not self.missing:
                self._leaks.release()  # a reply that says no reason for its end, or breaks off, goes on as it came
            for live in self._calls.values():
                if not mark.failed:
                    self._end(live)
                elif live.verdict is None and live not in self.waiting:
                    self._decide(live, cut_short(live.match, live.stream.text))

    def _stopping(self, mark: Stopped) -> list[Live]:
        """The calls that end with this stop."""
        keys = self._calls.keys() if mark.keys is None else mark.keys
        found = [self._calls[key] for key in keys if key in self._calls]
        if found:
            found[-1].last = True
        return found

    def _whole(self, live: Live) -> None:
        """The arguments that the wire told all at once, where it sent them in no other way."""
        if live.given and live.verdict is None and not live.stream.text.strip():
            live.stream.feed(live.given)

    def _look_for_leaks(self) -> None:
        if self._leaks is not None and not self._leaked:
            self._leaked = self._leaks.resolve(self._stopped)
            for number, leaked in enumerate(self._leaked):
                self._report(self._added_live(number, leaked))
        if self._retry and self._contracts and not self._leaked and not self.wire.called:
            begun = self._leaks is not None and self._leaks.meant and not self._api.tells_tool
            self.missing = self._stopped == "tool" or (begun and self._stopped == "stop")
        if not self.missing and self._leaks is not None:
            self._leaks.release()

    def _added_live(self, number: int, leaked: Leaked, tries: int = 0) -> Live:
        """A call that did not come as one: it stood in the text, or was asked for."""
        tool = next(tools[leaked.name] for tools in self._contracts.tools.values() if leaked.name in tools)
        start = Start(("leaked", number), leaked.name, ())
        live = Live(start.key, start, Match(tool), ArgumentStream(tool), 0, verdict=leaked.verdict)
        live.promoted, live.tries = not tries, tries
        return live

    def _holds(self, match: Match) -> bool:
        if match.tool is None:
            return True
        return self._hold == "call" and (match.tool.schema is not None or match.tool.free_text is not None)

    def _end(self, live: Live) -> None:
        """The call is complete: judge it, unless that has been done."""
        if live.verdict is not None or live in self.waiting:
            return
        raw = live.stream.text
        live.finish = self._stopped
        if self._cut(live):
            verdict = cut_short(live.match, raw)
        elif (
            not raw.strip()
            and self._api.empty_means_object
            and live.match.tool is not None
            and live.match.tool.is_valid({})
        ):
            self._decide(live, Verdict("accepted", live.name, raw, raw, {}))
            return
        else:
            verdict = self._judge(live.match, raw, self._stopped)
        if verdict.status == "refused" and self._retry:
            live.verdict = None
            self.waiting.append(live)
            return
        self._decide(live, verdict)

    def _decide(self, live: Live, verdict: Verdict) -> None:
        live.verdict = verdict
        changed = live.stream.changed(0, live.sent)
        if verdict.status != "refused" and (changed or verdict.text != live.stream.text):
            live.tail = live.stream.tail(verdict.value, live.sent, verdict.text)
            if live.tail is None:
                late = Violation("mended_too_late", "", "mended only after parts of it had gone on as they were")
                verdict = live.verdict = replace(verdict, status="refused", violations=(late,))
                self._spoil(live, reason(verdict))
        elif verdict.status == "refused" and live.match.tool is not None:
            if verdict.cut:
                self._spoil(live, CUT_OFF)
            elif changed:
                self._spoil(live, f"not run: {reason(verdict)}")
        self._report(live)

    def _spoil(self, live: Live, why: str) -> None:
        """Nobody is to run what was sent of the call; where its tool takes anything, the reply ends with an error."""
        live.tail = spoiled(live.match.tool, live.stream, live.sent, why)
        if live.tail is None:
            self.failed = f"the model's call of {live.name}: {why}"

    def _cut(self, live: Live) -> bool:
        """Whether the provider ended the output inside a call that does not show it: free text, or no text at all."""
        if live.match.tool is None or (live.match.tool.schema is not None and live.stream.text.strip()):
            return False
        if live.incomplete or self._stopped != "length":
            return live.incomplete
        return not live.ended or (not self._api.ends_calls and live.last)

    def _waits(self, live: Live) -> bool:
        """Whether only the reason for the stop tells what the call is: its text is no JSON, and cut or careless."""
        if live.match.tool is None or live.match.tool.schema is None or live.stream.closed:
            return False
        text = live.stream.text
        if not text.strip():
            return not self._api.empty_means_object
        if not live.stream.doubt:
            return True
        if is_json(text):
            return False
        return open_ended(text) or self._judge(live.match, text, None).status == "refused"

    # Emission

    def _flush(self) -> bytes:
        out: list[bytes] = []
        while self._queue and not self.ended:
            if self.failed is not None:
                out.append(self.fail(self.failed))
            elif self._ready(self._queue[0]):
                out.append(self._emit(self._queue.popleft()))
            else:
                break
        return b"".join(out)

    def _ready(self, held: _Held) -> bool:
        for piece in held.ends:
            if piece is not None and piece[0].verdict is None and piece[0].stream.certain < piece[1]:
                return False
        if self._leaks is not None and any(self._leaks.block(key).certain < end for key, end in held.prose):
            return False
        for mark in held.marks:
            if isinstance(mark, Stopped | Closed) and (self.waiting or self.missing):
                return False
            if isinstance(mark, Start | End | Copy):
                live = self._calls.get(mark.key)
                if live is None or live.verdict is not None:
                    continue
                if not isinstance(mark, Start) or self._holds(live.match):
                    return False
        return self.failed is None

    def _emit(self, held: _Held) -> bytes:
        edits: list[Edit] = []
        out = b""
        drop = 0
        name: str | None = None
        ends = iter(held.ends)
        prose = iter(held.prose)
        for mark in held.marks:
            if isinstance(mark, Start):
                live = self._calls.get(mark.key)
                if live is not None:
                    live.begun = True
                if live is not None and live.name != mark.name:
                    edits.append((mark.path, live.name))
            elif isinstance(mark, Delta):
                written = self._written(next(ends))
                if written is not None:
                    drop += mark.alone and not written
                    edits.append((mark.path, written))
            elif isinstance(mark, End | Stopped | Closed):
                out += self._rest(mark)
                if isinstance(mark, Stopped):
                    out += self._added()
                    if self._resumed or self._leaked:
                        edits += mark.whole
                        name = mark.name
            elif isinstance(mark, Copy):
                edits += self._copied(mark)
            elif isinstance(mark, TextCopy) and self._leaks is not None:
                whole = self._leaks.whole(mark.key)
                edits += [(mark.path, whole)] if whole is not None else []
            elif isinstance(mark, Prose) and held.prose:
                written = self._said(*next(prose))
                if written is not None:
                    drop += not written
                    edits.append((mark.path, written))
        if self._leaked and any(isinstance(mark, Stopped) for mark in held.marks):
            edits = self._with_items(held.frame, edits)
        if drop and drop == len(held.marks):
            return out
        if self._extra:
            edits += [(mark.path, self._summed(mark)) for mark in held.marks if isinstance(mark, Usage)]
        return out + _renamed(self._numbers(held, edits), name)

    def _written(self, piece: tuple[Live, int] | None) -> str | None:
        """What goes out in place of a piece of a call; None where it goes as it came."""
        if piece is None:
            return None
        live, end = piece
        if live.tail is not None:
            rest = "" if live.tail_sent else live.tail
            live.tail_sent = True  # the first held piece carries what is left of the call
            return rest
        sent, live.sent = live.sent, end
        changed = live.verdict is None and live.stream.changed(sent, end)
        return live.stream.piece(sent, end) if changed else None

    def _said(self, key: Key, end: int) -> str | None:
        """What goes out in place of a piece of text; None where it goes as it came."""
        assert self._leaks is not None
        block, rest = self._leaks.block(key), self._leaks.rest(key)
        if rest is None:
            block.sent = end
            return None
        if block.suspect:
            block.suspect = False  # the first held piece carries what is left of the text
            return rest
        return ""

    def _added(self) -> bytes:
        """The calls that stood in the text, as calls."""
        out: list[bytes] = []
        for leaked in self._leaked:
            last = getattr(self.wire, "last", None)
            if last is not None:
                self.wire.last = self._numbered + 1  # type: ignore[attr-defined]
            out.append(self.wire.call(leaked.made, leaked.name, leaked.arguments))
            if last is not None:
                self._numbered = self.wire.last  # type: ignore[attr-defined]
                self.wire.last = last  # type: ignore[attr-defined]
        return b"".join(out)

    def _with_items(self, frame: sse.Frame, edits: list[Edit]) -> list[Edit]:
        """The last frame's changes, with the added calls among what it repeats."""
        event = frame.json()
        changed = sse.Frame(b"", "", splice(frame.data or b"", edits))
        added = self.wire.ended_with(changed)
        places = {path for path, _ in added}
        kept = [(path, value) for path, value in edits if not any(path[: len(place)] == place for place in places)]
        return kept + added if event is not None else edits

    def _rest(self, mark: End | Stopped | Closed) -> bytes:
        """What a decided call still has to say before its end goes on."""
        out: list[bytes] = []
        if isinstance(mark, End):
            lives = [self._calls[mark.key]] if mark.key in self._calls else []
        else:
            lives = self._stopping(mark) if isinstance(mark, Stopped) else list(self._calls.values())
        for live in lives:
            verdict = live.verdict
            if live.tail and not live.tail_sent:
                live.tail_sent = True
                out.append(self._inserted(live, live.tail))
            live.over = True
            if isinstance(mark, Stopped) and not live.ended and live.tail is not None:
                live.ended = True
                out.append(self.wire.call_end(live.key))
            if verdict is not None and verdict.status == "refused" and not live.asked:
                live.asked = True
                out.append(sse.comment(f"onspec refused {live.name}: {reason(verdict)}"))
        return b"".join(out)

    def _inserted(self, live: Live, text: str) -> bytes:
        if getattr(self.wire, "last", None) is not None:
            self._numbered += 1
            self.wire.last, last = self._numbered, self.wire.last  # type: ignore[attr-defined]
            made = self.wire.delta(live.key, text)
            self.wire.last = last  # type: ignore[attr-defined]
            return made
        return self.wire.delta(live.key, text)

    def _copied(self, mark: Copy) -> list[Edit]:
        live = self._calls.get(mark.key)
        if live is None or live.verdict is None:
            return []
        edits: list[Edit] = []
        if mark.path is not None and live.tail is not None:
            edits.append((mark.path, live.stream.passed(live.sent) + live.tail))
        if live.tries and live.verdict.status != "refused":
            edits += mark.whole
        if mark.name_path is not None and live.name != live.start.name:
            edits.append((mark.name_path, live.name))
        return edits

    def _numbers(self, held: _Held, edits: list[Edit]) -> bytes:
        frame = held.frame
        if held.number is not None:
            number = max(held.number, self._numbered + 1)
            if number != held.number:
                edits.append((("sequence_number",), number))
            self._numbered = number
        if not edits:
            return frame.raw
        assert frame.data is not None
        return sse.with_data(frame, splice(frame.data, edits))

    def _summed(self, mark: Usage) -> Tokens:
        """What the frame reports, and every count of the whole reply with what was asked again.

        Counts that Anthropic reported at the beginning stand here once more: the last report is of the whole.
        """
        numbers = {name: value for name, value in self.cost.items() if isinstance(value, int | dict)}
        return {**mark.found, **numbers}


_NO_TOOL = Tool("unknown", True)
"""Stands for the contract of a call whose tool does not exist; such a call is held to its end."""


def _renamed(data: bytes, name: str | None) -> bytes:
    """A frame with another event name."""
    return re.sub(rb"(?m)^event:[^\r\n]*", b"event: " + name.encode(), data, count=1) if name else data


def reason(verdict: Verdict) -> str:
    """A refusal in one line, without payload."""
    found = "; ".join(
        f"{violation.path or '/'}: {violation.message}"
        + (f" ({violation.found})" if (violation.found or "").startswith("at ") else "")
        for violation in verdict.violations[:3]
    )
    return found or "not valid"
