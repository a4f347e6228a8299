"""A call's arguments as they arrive: what may be passed on already, and how to go on from there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from onspec import possessive
from onspec.audit import Json, Path
from onspec.contract.tool import Tool
from onspec.contract.view import View
from onspec.repair.arrived import Arrived
from onspec.repair.conform import GONE
from onspec.repair.early import Early, text_of
from onspec.repair.keys import MAX_UNKNOWN, Level
from onspec.repair.markup import BEGUN, CLOSER, MARKUP, TAGS, bare, closes, property_names
from onspec.repair.names import fold
from onspec.repair.opened import Open, members_left
from onspec.repair.policy import Policy
from onspec.repair.shape import Place, Shape, shape

PLAIN = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]+')
"""Part of a key without escapes."""
RUN = re.compile(
    r'(?:[^"\\\x00-\x1f\ud800-\udfff]+|\\["\\/bfnrt]|\\u(?:[0-9a-ce-fA-CE-F][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2})+'
)
"""Part of a string with whole escapes; halves of surrogate pairs are looked at one by one."""
HALF = re.compile(r"[\ud800-\udfff]|\\u[dD]")
"""What may be half of a surrogate pair."""
SPACE = " \t\n\r"
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
LOOK_BACK = 160
MAX_DEPTH = 128
INSIDE = possessive.compile(r'(?:[^"\\]+|\\.)*+', re.DOTALL)
"""Part of a string up to its end, or to a backslash at the end of the piece."""
OUTSIDE = re.compile(r'[^"{}\[\]]*+')
"""Part of a value between its strings and brackets."""
MAX_REPEATED = 4096
"""Longest value, in characters, that is remembered to see whether a key further in repeats it."""


class ArgumentStream:
    """Watches one call's argument text arrive in pieces, cut anywhere.

    The first `certain` characters are decided: `passed` is what stands for them, and may be passed on now.
    That is what came, but for what a repair is certain to change: a key that a closed object is certain to lose is left
    out while it streams; a value that is certain to be mended (an array in a string, a number in quotes, an item with
    renamed keys) is held until it closes, and what `onspec.check` makes of it stands in its place. From the first
    thing that can be neither, nothing more is certain, and the whole call is for `onspec.check` to judge.

    What was passed on is the beginning of a text that reads as what `onspec.check` makes of the whole call, but for a
    call that is refused. Never raises; linear in the text.

    Args:
        tool: The contract. A tool without a schema takes any text, so all of it is certain.
        hold: Nothing is certain before the end.
        policy: Which repairs may be made before the end; none where it is None, or has rules for single tools or paths.
    """

    def __init__(self, tool: Tool, hold: bool = False, policy: Policy | None = None) -> None:
        self.certain = 0
        self.doubt = hold
        self.closed = False
        self._tool = tool
        self._document = tool.schema.document if tool.schema is not None else True
        self._free = tool.schema is None
        self._arrived = Arrived()
        self._early = None if hold else Early.of(tool, policy)
        self._junk = False
        self._start = 0
        self._stack: list[Open] = []
        self._step: Callable[[str, int], int] = self._value
        self._at: str | int = ""
        self._place: Place | None = Place(self._document, "")
        self._token: list[str] = []
        self._open_string: str | int | None = None
        self._tail = ""
        self._escape = ""
        self._depth = 0
        self._inside = False
        self._any = False
        self._began = 0
        self._base = 0
        self._known: frozenset[str] | None = None

    @property
    def text(self) -> str:
        """Everything that has come, as it came."""
        return self._arrived.text

    def feed(self, piece: str) -> int:
        """Take the next piece; returns how many characters, from the start, are certain."""
        self._base = self._arrived.length
        self._arrived.append(piece)
        if self._free and not self.doubt:
            self.certain = self._arrived.length
            return self.certain
        index, end = 0, len(piece)
        try:
            while index < end and not self.doubt:
                index = self._step(piece, index)
        except RecursionError:  # a value that is nested too deeply to be looked at before the end
            self.doubt = True
        return self.certain

    def tail(self, value: Json, sent: int, whole: str) -> str | None:
        """What to send after the first `sent` characters so that the whole reads as `value`.

        Args:
            value: The repaired arguments.
            sent: Characters for which `passed` has been passed on; at most `certain`.
            whole: The repaired arguments as text.

        Returns:
            The text, or None where what was passed on cannot become `value`.
        """
        before = self.passed(sent)
        if whole.startswith(before):
            return whole[len(before) :]
        try:
            rest = self._arrived.standing(sent, self.certain) + self._continue(value)
            return rest if _same(json.loads(before + rest), value) else None
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            return None

    def passed(self, sent: int) -> str:
        """What stands for the first `sent` characters, which are certain."""
        return self._arrived.standing(0, sent)

    def piece(self, start: int, end: int) -> str:
        """What stands for the characters from `start` to `end`, which are certain."""
        return self._arrived.standing(start, end)

    def changed(self, start: int, end: int) -> bool:
        """Whether anything else stands for these characters than what came."""
        return self._arrived.changed(start, end)

    def members(self) -> list[str]:
        """The keys of the arguments whose values are certain, in part or as a whole."""
        if not self._stack or self._stack[0].kind != "object":
            return []
        root = self._stack[0]
        inside = self._stack[1].at if len(self._stack) > 1 else self._open_string
        return [*root.done, *([str(inside)] if inside is not None and inside not in root.done else [])]

    def closing(self, sent: int, more: dict[str, Json]) -> str | None:
        """What to send after the first `sent` characters so that the whole is JSON, with these members at its end.

        Returns:
            The text, or None where the arguments are no open object.
        """
        if not self._stack or self._stack[0].kind != "object":
            return None
        out = [self._arrived.standing(sent, self.certain), '"' if self._open_string is not None else ""]
        out += ["}" if frame.kind == "object" else "]" for frame in reversed(self._stack[1:])]
        members = [f"{_dumps(key)}:{_dumps(value)}" for key, value in more.items()]
        return "".join([*out, "," if self.members() and members else "", ",".join(members), "}"])

    # Continuing from the last certain character

    def _continue(self, value: Json) -> str:
        if not self._stack:
            return ""
        values = [value]
        for frame in self._stack[1:]:
            values.append(values[-1][frame.at])
        out: list[str] = []
        complete: str | int | None = None
        if self._open_string is not None:
            string = values[-1][self._open_string]
            passed = json.loads(f'"{self._arrived.slice(self._began, self.certain)}"')
            out.append(_dumps(string[len(passed) :])[1:])
            complete = self._open_string
        for frame, here in zip(reversed(self._stack), reversed(values), strict=True):
            if frame.kind == "object":
                out.append(members_left(here, {*frame.done, *([complete] if complete is not None else [])}))
            else:
                count = frame.count + (complete is not None)
                for member in here[count:]:
                    out.append(f"{',' if count else ''}{_dumps(member)}")
                    count += 1
                out.append("]")
            complete = frame.at
        return "".join(out)

    # The scanner: one method a state; each takes a piece and an index and returns the next index

    def _value(self, piece: str, index: int) -> int:
        char = piece[index]
        if char in SPACE:
            return index + 1
        if (
            char == "]"
            and self._stack
            and self._stack[-1].kind == "array"
            and not self._stack[-1].count
            and self._at == 0
        ):
            return self._close(piece, index)
        start = self._start = self._base + index
        if self._junk:
            return self._unknown(char, index)
        if not self._stack and char != "{":  # arguments are an object, whatever the schema takes
            return self._stop(index)
        here = shape(self._document, self._place, char) if self._place is not None else None
        if len(self._stack) >= MAX_DEPTH or (here is None and (self._early is None or not self._stack)):
            return self._stop(index)
        if here is None:  # of a type that is not taken here, and perhaps mended when it is complete
            return self._hold(char, index, None)
        if here.kind in ("object", "array") or (here.kind == "any" and char in "{[" and not self._stack):
            if here.kind == "any":
                here = Shape(
                    "object" if char == "{" else "array", here.place, extra=Place(True, ""), item=Place(True, "")
                )
            self._stack.append(Open(here.kind, here, self._at, start))
            self.certain = start + 1
            if here.kind == "object":
                self._step = self._key_start
            else:
                self._at, self._place = 0, here.item or Place(True, "")
            return index + 1
        if not self._stack:
            return self._stop(index)
        if char == '"' and here.kind in ("string", "any"):
            self._open_string, self._began, self._tail, self._escape = self._at, start + 1, "", ""
            self.certain = start + 1
            self._step = self._string
            return index + 1
        self._any = here.kind == "any"
        return self._hold(char, index, here.place)

    def _hold(self, char: str, index: int, place: Place | None) -> int:
        """A value that is judged when it is complete begins."""
        self._token, self._depth, self._inside, self._escape = [], 0, False, ""
        self._place = place
        self._step = self._whole if char in '"{[' else self._scalar
        return index

    def _unknown(self, char: str, index: int) -> int:
        """The value of a key that will go begins."""
        if char != '"':
            return self._hold(char, index, None)
        self._step = self._unknown_text
        return index + 1

    def _unknown_text(self, piece: str, index: int) -> int:
        """The string of a key that will go: held where it may hold JSON, left out as it comes otherwise."""
        char = piece[index]
        if char == '"':
            return self._leave_out(index + 1)
        if char == "\\" or char in "{[" or char.isspace():
            self._hold('"', index, None)
            self._token, self._inside = ['"'], True
            return index
        self._tail, self._escape = "", ""
        self._skip(index)
        self._step = self._string
        return index

    def _string(self, piece: str, index: int) -> int:
        if self._escape:
            return self._escaped(piece, index)
        run = RUN.match(piece, index)
        if run is not None:
            self._passed(run.group(), run.end())
            return run.end()
        char = piece[index]
        if char == '"':
            if self._junk:
                return self._leave_out(index + 1)
            if self.certain != self._base + index:
                return self._stop(index)  # what may be leaked markup ends the string
            if (closer := CLOSER.search(self._tail)) is not None:
                for here in reversed(self._stack):
                    if here.kind == "object":
                        here.closers.add(bare(closer[1]))
                        break
            self.certain = self._base + index + 1
            return self._complete(self._open_string if self._open_string is not None else self._at, index + 1)
        if char == "\\":
            self._escape = char
            return index + 1
        return self._stop(index)

    def _escaped(self, piece: str, index: int) -> int:
        self._escape += piece[index]
        written = self._escape
        index += 1
        if written[1] != "u":
            if written[1] not in '"\\/bfnrt':
                return self._stop(index)
        else:
            if len(written) < 6:
                return index
            try:
                code = int(written[2:6], 16)
            except ValueError:
                return self._stop(index)
            if 0xDC00 <= code < 0xE000 or not written[2:6].isalnum():
                return self._stop(index)
            if 0xD800 <= code < 0xDC00:
                if len(written) < 12:
                    if "\\u"[: len(written) - 6] != written[6:8]:
                        return self._stop(index)
                    return index
                try:
                    low = int(written[8:12], 16)
                except ValueError:
                    return self._stop(index)
                if not 0xDC00 <= low < 0xE000 or not written[8:12].isalnum():
                    return self._stop(index)
        self._escape = ""
        self._passed(written, index)
        return index

    def _passed(self, written: str, index: int) -> None:
        """Part of a string's content has been read; it is certain unless leaked markup may have begun."""
        if self._junk:
            return self._skip(index)
        window = self._tail + written
        self._tail = window[-LOOK_BACK:]
        if "<" in window:
            if MARKUP.search(window):
                self.doubt = True
                return None
            if BEGUN.search(self._tail) or ((closer := CLOSER.search(self._tail)) and self._ours(closer[1])):
                return None
        self.certain = self._base + index
        return None

    def _ours(self, tag: str) -> bool:
        """Whether a closing tag may be markup of this call: it is named as one of its keys, or as the tool."""
        if self._known is None:
            names = property_names(self._document, 0) | {self._tool.name}
            self._known = frozenset(map(fold, names))
        return bare(tag) in self._known

    def _scalar(self, piece: str, index: int) -> int:
        start = index
        while index < len(piece) and piece[index] not in ",]} \t\n\r":
            index += 1
        self._token.append(piece[start:index])
        if index == len(piece):
            return index
        text = "".join(self._token)
        if text not in ("true", "false", "null") and not NUMBER.match(text):
            return self._stop(index)
        try:
            value = json.loads(text)
        except ValueError:  # more digits than Python reads
            return self._stop(index)
        return self._settled(text, value, index)

    def _whole(self, piece: str, index: int) -> int:
        end, closed = self._skim(piece, index)
        self._token.append(piece[index:end])
        if not closed:
            return end
        text = "".join(self._token)
        try:
            value = _strict(text)
        except (ValueError, RecursionError):
            return self._stop(end)
        if _half(text) or MARKUP.search(text) or closes(text):
            return self._stop(end)
        return self._settled(text, value, end)

    def _skim(self, piece: str, index: int) -> tuple[int, bool]:
        """Read on until the value, or the container at hand, is closed; returns where that is and whether it is."""
        end = len(piece)
        while index < end:
            if self._escape:
                self._escape = ""
                index += 1
            elif self._inside:
                index = INSIDE.match(piece, index).end()  # type: ignore[union-attr]
                if index < end:
                    self._inside = piece[index] != '"'
                    self._escape = "\\" if self._inside else ""
                    index += 1
                    if not self._inside and not self._depth:
                        return index, True
            else:
                index = OUTSIDE.match(piece, index).end()  # type: ignore[union-attr]
                if index < end:
                    char = piece[index]
                    index += 1
                    if char == '"':
                        self._inside = True
                        continue
                    self._depth += 1 if char in "{[" else -1
                    if not self._depth:
                        return index, True
        return index, False

    def _settled(self, text: str, value: Json, index: int) -> int:
        """A value that was held is complete: it stands, or goes, or is mended, or all waits for the end."""
        if self._junk:
            here = self._stack[-1]
            assert self._early is not None
            assert here.view is not None
            if self._early.drops(str(self._at), value, here.view, here.at, here.done):
                return self._leave_out(index)
            return self._aside(index)
        if self._judged(value):
            self.certain = self._base + index
            return self._complete(self._at, index)
        return self._mended(text, value, index)

    def _judged(self, value: Json) -> bool:
        if self._place is None:
            return False
        if self._any or self._place.node is True:
            return True
        schema = self._tool.schema
        return schema is not None and bool(schema.judge_at(self._place.pointer).is_valid(value))

    def _key_start(self, piece: str, index: int) -> int:
        char = piece[index]
        if char in SPACE:
            return index + 1
        if char == "}" and not self._stack[-1].done:
            return self._close(piece, index)
        if char != '"':
            return self._stop(index)
        self._token = []
        self._start = self._base + index
        self._step = self._key
        return index + 1

    def _key(self, piece: str, index: int) -> int:
        run = PLAIN.match(piece, index)
        if run is not None:
            self._token.append(run.group())
            return run.end()
        if piece[index] != '"':
            return self._stop(index)
        key = "".join(self._token)
        here = self._stack[-1]
        if key in here.done or key in here.gone:
            return self._stop(index)
        place = here.shape.members.get(key) or self._undeclared(key, here)
        if place is None and not self._junk:
            return self._aside(index + 1)
        if here.lead and not here.done and not self._junk:  # the first member that stays, behind some that go
            self._arrived.replace(here.start + 1, self._start, "")
            self.certain = self._start
        self._at, self._place = key, place
        self._step = self._colon
        return index + 1

    def _undeclared(self, key: str, here: Open) -> Place | None:
        """Where the value of an undeclared key is judged; None where the key is no plain data, or will go (`_junk`)."""
        if not here.shape.members:
            return here.shape.extra
        view = self._view()
        if self._early is None or view is None:
            return None
        if here.shape.extra is not None:
            return here.shape.extra if self._early.is_data(key, view, here.at, here.done) else None
        self._junk = self._early.junk(key, view)
        return None

    # What is decided before the end

    def _view(self) -> View | None:
        """The one way to see the innermost container, or None."""
        if self._early is None:
            return None
        above: View | None = None
        for depth, frame in enumerate(self._stack):
            if not frame.viewed:
                frame.viewed = True
                frame.view = self._early.inner(above, frame.at, frame.kind) if depth else self._early.root()
            above = frame.view
        return above

    def _levels(self, frames: list[Open]) -> list[Level]:
        """The objects among these containers, with those members that are complete and short."""
        levels = []
        for frame in frames:
            if frame.kind == "object" and frame.view is not None:
                for key in frame.unread:
                    start, end = frame.done[key]
                    if end - start <= MAX_REPEATED:
                        frame.read[key] = json.loads(self._arrived.standing(start, end))
                frame.unread.clear()
                levels.append(Level(frame.read, frame.view))
        return levels

    def _skip(self, index: int) -> None:
        """Part of a member that will go has been read."""
        if self._stack[-1].done:
            self._arrived.replace(self.certain, self._base + index, "")
            self.certain = self._base + index

    def _leave_out(self, index: int) -> int:
        """A member that goes is complete."""
        here = self._stack[-1]
        self._skip(index)
        here.lead = here.lead or not here.done
        here.gone.add(str(self._at))
        here.unknown += self._junk
        self._junk = False
        if here.unknown > MAX_UNKNOWN:
            return self._stop(index)
        self._step = self._after
        return index

    def _mended(self, text: str, value: Json, index: int) -> int:
        """A value that its place does not take is complete: what is made of it stands in its place."""
        view, here = self._view(), self._stack[-1]
        if self._early is None or view is None:
            return self._stop(index)
        path = (*self._path(), self._at)
        levels = self._levels(self._stack)
        if here.kind == "array":
            items = self._early.items(value, text, path, view, levels)
            if not items:
                return self._stop(index)
            made = ",".join(map(text_of, items))
            here.count += len(items) - 1
        else:
            member = self._early.member(value, text, path, view, levels)
            if member is GONE:
                return self._leave_out(index)
            if member is None:
                return self._aside(index)
            made = text_of(member)
        self._arrived.replace(self._start, self._base + index, made)
        self.certain = self._base + index
        return self._complete(self._at, index)

    def _path(self) -> Path:
        return tuple(frame.at for frame in self._stack[1:])

    def _aside(self, index: int) -> int:
        """A key or value that cannot be judged by itself: the object that holds it waits until it closes."""
        self._junk = False
        if self._early is None or len(self._stack) < 2 or self._stack[-1].kind != "object" or self._view() is None:
            return self._stop(index)
        self._depth, self._inside, self._escape = 1, False, ""
        self._step = self._rest
        return index

    def _rest(self, piece: str, index: int) -> int:
        end, closed = self._skim(piece, index)
        return self._closed_aside(end) if closed else end

    def _closed_aside(self, index: int) -> int:
        """An object that waited is complete: what is made of it goes on from what was passed on."""
        *above, parent, here = self._stack
        end = self._base + index
        text = self._arrived.slice(here.start, end)
        try:
            value = _strict(text)
        except (ValueError, RecursionError):
            return self._stop(index)
        if _half(text) or MARKUP.search(text) or any(self._ours(tag) for tag in TAGS.findall(text)):
            return self._stop(index)
        assert self._early is not None
        assert parent.view is not None
        levels = self._levels([*above, parent])
        if parent.kind == "array":
            items = self._early.items(value, text, self._path(), parent.view, levels)
        else:
            member = self._early.member(value, text, self._path(), parent.view, levels)
            items = None if member is None or member is GONE else [member]
        if not items or not isinstance(items[0], dict):
            return self._stop(index)
        if len(items) == 1 and _same(items[0], value):  # it fits as it came
            self.certain = end
            return self._popped(index, 1)
        first = members_left(items[0], set(here.done))
        if not _same(json.loads(self._arrived.standing(here.start, self.certain) + first), items[0]):
            return self._stop(index)
        self._arrived.replace(self.certain, end, ",".join([first, *map(text_of, items[1:])]))
        self.certain = end
        return self._popped(index, len(items))

    def _popped(self, index: int, items: int) -> int:
        """The innermost container is closed, and stands as so many items where an array holds it."""
        here = self._stack.pop()
        if self._stack[-1].kind == "array":
            self._stack[-1].count += items - 1
        self._start = here.start
        return self._complete(here.at, index)

    def _colon(self, piece: str, index: int) -> int:
        if piece[index] in SPACE:
            return index + 1
        if piece[index] != ":":
            return self._stop(index)
        self._step = self._value
        return index + 1

    def _complete(self, at: str | int, index: int) -> int:
        self._open_string = None
        self._stack[-1].finish(at, self._start, self._base + index)
        self._step = self._after
        return index

    def _after(self, piece: str, index: int) -> int:
        char = piece[index]
        if char in SPACE:
            return index + 1
        here = self._stack[-1]
        if char == ",":
            if here.kind == "object":
                self._step = self._key_start_again
            else:
                self._at, self._place = here.count, here.shape.item or Place(True, "")
                self._step = self._value
            return index + 1
        if char == ("}" if here.kind == "object" else "]"):
            return self._close(piece, index)
        return self._stop(index)

    def _key_start_again(self, piece: str, index: int) -> int:
        if piece[index] == "}":
            return self._stop(index)
        return self._key_start(piece, index)

    def _close(self, piece: str, index: int) -> int:
        here = self._stack[-1]
        if here.kind == "object" and (not here.shape.required <= here.done.keys() or (here.lead and not here.done)):
            return self._stop(index)
        if here.closers and not here.closers.isdisjoint(map(fold, here.done)):
            return self._stop(index)  # a value that ends in what may be markup of its own object
        if here.shape.counted:
            schema = self._tool.schema
            value = json.loads(self._arrived.standing(here.start, self._base + index + 1))
            if schema is None or not schema.judge_at(here.shape.place.pointer).is_valid(value):
                return self._stop(index)
        if len(self._stack) == 1:
            if here.kind == "object" and not here.done:
                return self._stop(index)  # a leading {} may be dropped for what follows
            self._stack.pop()
            self.certain = self._base + index + 1
            self.closed = True
            self._step = self._end
            return index + 1
        self.certain = self._base + index + 1
        return self._popped(index + 1, 1)

    def _end(self, piece: str, index: int) -> int:
        if piece[index] in SPACE:
            self.certain = self._base + index + 1
            return index + 1
        return self._stop(index)

    def _stop(self, index: int) -> int:
        self.doubt = True
        return index


def _dumps(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _strict(text: str) -> Json:
    """A text as JSON in which no key stands twice."""
    return json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)


def _half(text: str) -> bool:
    """Whether a text may hold half of a surrogate pair, as itself or as an escape."""
    return HALF.search(text) is not None


def _refuse(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _same(left: Json, right: Json) -> bool:
    """Equality in which 1, 1.0 and true are three values, and the order of keys is none."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)
