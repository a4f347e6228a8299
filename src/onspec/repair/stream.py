"""A call's arguments as they arrive: how far what has come is certain to stand, and how to go on from there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from onspec.audit import Json
from onspec.contract.tool import Tool
from onspec.repair.names import fold
from onspec.repair.shape import Place, Shape, shape

PLAIN = re.compile(r'[^"\\\x00-\x1f\ud800-\udfff]+')
"""Part of a key without escapes."""
RUN = re.compile(
    r'(?:[^"\\\x00-\x1f\ud800-\udfff]+|\\["\\/bfnrt]|\\u(?:[0-9a-ce-fA-CE-F][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2})+'
)
"""Part of a string with whole escapes; halves of surrogate pairs are looked at one by one."""
SPACE = " \t\n\r"
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
BEGUN = re.compile(r"<(?:/[^<>\"\\\s]{0,80})?\Z")
"""A closing tag that has begun and may become leaked call markup."""
CLOSER = re.compile(r"</([^<>\"\\\s]{1,80})>(?:\s|\\[nrt])*\Z")
"""A closing tag at the end of a string."""
MARKUP = re.compile(
    r"</?\s*(?:antml:|｜DSML｜)?(?:parameter|invoke|function_calls|function|tool_call|tool_calls|arg_value|arg_key)\b"
)
"""Call markup inside a string: the rest waits for the judge of the whole call."""
KEYS = re.compile(r'"([^"\\]{1,80})"\s*:')
TAGS = re.compile(r"</([^<>\"\\\s]{1,80})>")
LOOK_BACK = 160
MAX_DEPTH = 128


class _Open:
    """An open container: its shape, where it stands in its parent, and which members are complete."""

    __slots__ = ("at", "closers", "count", "done", "kind", "shape", "start")

    def __init__(self, kind: str, here: Shape, at: str | int, start: int) -> None:
        self.kind = kind
        self.shape = here
        self.at = at
        self.start = start
        self.done: dict[str, None] = {}
        self.count = 0
        self.closers: set[str] = set()

    def finish(self, at: str | int) -> None:
        if self.kind == "object":
            self.done[str(at)] = None
        else:
            self.count += 1


class ArgumentStream:
    """Watches one call's argument text arrive in pieces, cut anywhere.

    `certain` characters of the text stand whatever follows: a call that conforms keeps them, and so does every repair
    of a call whose first fault lies behind them. From the first doubtful value on nothing more is certain, and the
    whole call is for `onspec.check` to judge. Never raises; linear in the text.

    Args:
        tool: The contract. A tool without a schema takes any text, so all of it is certain.
        hold: Nothing is certain before the end.
    """

    def __init__(self, tool: Tool, hold: bool = False) -> None:
        self.certain = 0
        self.doubt = hold
        self.closed = False
        self._tool = tool
        self._document = tool.schema.document if tool.schema is not None else True
        self._free = tool.schema is None
        self._parts: list[str] = []
        self._length = 0
        self._stack: list[_Open] = []
        self._step: Callable[[str, int], int] = self._value
        self._at: str | int = ""
        self._place: Place = Place(self._document, "")
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
        """Everything that has come."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def feed(self, piece: str) -> int:
        """Take the next piece; returns how many characters, from the start, are certain."""
        self._base = self._length
        self._parts.append(piece)
        self._length += len(piece)
        if self._free and not self.doubt:
            self.certain = self._length
            return self.certain
        index, end = 0, len(piece)
        while index < end and not self.doubt:
            index = self._step(piece, index)
        return self.certain

    def tail(self, value: Json, sent: int, whole: str) -> str | None:
        """What to send after the first `sent` characters so that the whole reads as `value`.

        Args:
            value: The repaired arguments.
            sent: Characters already passed on; at most `certain`.
            whole: The repaired arguments as text.

        Returns:
            The text, or None where what was passed on cannot become `value`.
        """
        text = self.text
        before = text[:sent]
        if whole.startswith(before):
            return whole[sent:]
        try:
            rest = text[sent : self.certain] + self._continue(value)
            return rest if _same(json.loads(before + rest), value) else None
        except (ValueError, KeyError, IndexError, TypeError, RecursionError):
            return None

    def passed(self, sent: int) -> str:
        """What stands for the first `sent` characters, which are certain."""
        return self.text[:sent]

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
        out = [self.text[sent : self.certain], '"' if self._open_string is not None else ""]
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
            passed = json.loads(f'"{self.text[self._began : self.certain]}"')
            out.append(_dumps(string[len(passed) :])[1:])
            complete = self._open_string
        for frame, here in zip(reversed(self._stack), reversed(values), strict=True):
            if frame.kind == "object":
                done = {*frame.done, *([complete] if complete is not None else [])}
                for key, member in here.items():
                    if key not in done:
                        out.append(f"{',' if done else ''}{_dumps(key)}:{_dumps(member)}")
                        done.add(key)
                out.append("}")
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
        here = shape(self._document, self._place, char)
        if here is None or len(self._stack) >= MAX_DEPTH:
            return self._stop(index)
        start = self._base + index
        if here.kind in ("object", "array") or (here.kind == "any" and char in "{[" and not self._stack):
            if here.kind == "any":
                here = Shape(
                    "object" if char == "{" else "array", here.place, extra=Place(True, ""), item=Place(True, "")
                )
            self._stack.append(_Open(here.kind, here, self._at, start))
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
        self._began, self._token, self._depth, self._inside, self._escape = start, [], 0, False, ""
        self._place = here.place
        self._any = here.kind == "any"
        self._step = self._whole if char in '"{[' else self._scalar
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
            if self.certain != self._base + index:
                return self._stop(index)  # what may be leaked markup ends the string
            if (closer := CLOSER.search(self._tail)) is not None:
                for here in reversed(self._stack):
                    if here.kind == "object":
                        here.closers.add(_bare(closer[1]))
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
        window = self._tail + written
        self._tail = window[-LOOK_BACK:]
        if "<" in window:
            if MARKUP.search(window):
                self.doubt = True
                return
            if BEGUN.search(self._tail) or ((closer := CLOSER.search(self._tail)) and self._ours(closer[1])):
                return
        self.certain = self._base + index

    def _ours(self, tag: str) -> bool:
        """Whether a closing tag may be markup of this call: it is named as one of its keys, or as the tool."""
        if self._known is None:
            names = _property_names(self._document, 0) | {self._tool.name}
            self._known = frozenset(map(fold, names))
        return _bare(tag) in self._known

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
        if not self._judged(value):
            return self._stop(index)
        self.certain = self._base + index
        return self._complete(self._at, index)

    def _whole(self, piece: str, index: int) -> int:
        start = index
        while index < len(piece):
            char = piece[index]
            index += 1
            if self._inside:
                if self._escape:
                    self._escape = ""
                elif char == "\\":
                    self._escape = char
                elif char == '"':
                    self._inside = False
            elif char == '"':
                self._inside = True
            elif char in "{[":
                self._depth += 1
            elif char in "}]":
                self._depth -= 1
            if not self._inside and self._depth == 0:
                break
        else:
            self._token.append(piece[start:index])
            return index
        self._token.append(piece[start:index])
        text = "".join(self._token)
        try:
            value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
        except (ValueError, RecursionError):
            return self._stop(index)
        if "\\ud" in text.lower() or MARKUP.search(text) or _closes(text) or not self._judged(value):
            return self._stop(index)
        self.certain = self._base + index
        return self._complete(self._at, index)

    def _judged(self, value: Json) -> bool:
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
        place = here.shape.members.get(key, here.shape.extra)
        if place is None or key in here.done:
            return self._stop(index)
        self._at, self._place = key, place
        self._step = self._colon
        return index + 1

    def _colon(self, piece: str, index: int) -> int:
        if piece[index] in SPACE:
            return index + 1
        if piece[index] != ":":
            return self._stop(index)
        self._step = self._value
        return index + 1

    def _complete(self, at: str | int, index: int) -> int:
        self._open_string = None
        self._stack[-1].finish(at)
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
        if here.kind == "object" and not here.shape.required <= here.done.keys():
            return self._stop(index)
        if here.closers and not here.closers.isdisjoint(map(fold, here.done)):
            return self._stop(index)  # a value that ends in what may be markup of its own object
        if here.shape.counted:
            schema = self._tool.schema
            value = json.loads(self.text[here.start : self._base + index + 1])
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
        self._stack.pop()
        self.certain = self._base + index + 1
        return self._complete(here.at, index + 1)

    def _end(self, piece: str, index: int) -> int:
        if piece[index] in SPACE:
            self.certain = self._base + index + 1
            return index + 1
        return self._stop(index)

    def _stop(self, index: int) -> int:
        self.doubt = True
        return index


def _bare(tag: str) -> str:
    return fold(tag.rpartition(":")[2])


def _closes(text: str) -> bool:
    """Whether a value's text holds a closing tag that is named as one of its own keys."""
    if "</" not in text:
        return False
    keys = {fold(key) for key in KEYS.findall(text)}
    return any(_bare(tag) in keys for tag in TAGS.findall(text))


def _property_names(node: Json, depth: int) -> set[str]:
    if depth > MAX_DEPTH or not isinstance(node, dict | list):
        return set()
    names: set[str] = set()
    if isinstance(node, dict) and isinstance(node.get("properties"), dict):
        names.update(node["properties"])
    for sub in node.values() if isinstance(node, dict) else node:
        names |= _property_names(sub, depth + 1)
    return names


def _dumps(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


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
