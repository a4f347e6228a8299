"""The tolerant scan: nearly JSON to the text edits that make it JSON, or the reason why it has no one reading."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]  # not in the stubs

import jiter
import orjson

from onspec.audit import equal

MAX_DEPTH = 200
"""How deep arrays and objects may nest."""

MAX_DIGITS = 4000
"""Longest number, in characters, that is read."""

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_REST_OF_STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_COMMENT = re.compile(r"//[^\n]*\n|/\*.*?\*/", re.DOTALL)
_LITERALS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_QUOTES = {"'": "'", "“": "”", "”": "”", "„": "“”", "‘": "’"}
_CLOSING = frozenset("\"'”“’")
_NON_FINITE = frozenset({"NaN", "Infinity", "-Infinity", "nan", "inf"})
_SHORT = 2048
_WINDOW = 65536
_SEPARATES = frozenset(",:}]")


class Unreadable(Exception):
    """There is no one reading. Stays inside the reading pass.

    Attributes:
        code: Code of the violation.
        message: One sentence that echoes no payload.
        at: Offset in characters.
    """

    def __init__(self, code: str, message: str, at: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.at = at


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of text: the characters from `start` to `end` become `after`."""

    rule: str
    start: int
    end: int
    after: str


@dataclass(slots=True)
class _Frame:
    """An open container: where it stands, and for an object its members so far."""

    closer: str
    start: int
    members: dict[str, tuple[int, int]] = field(default_factory=dict)
    key: str = ""
    member: int = 0
    value: int = 0
    comma: int = -1


@dataclass(slots=True)
class Scan:
    """What one scan over one value found.

    Attributes:
        end: Offset behind the value, in characters.
        edits: The changes that make it JSON.
        strings: Start and end of each double-quoted string, the quotes included.
        suspects: Those strings that hold an escape JSON does not know.
        closed: Whether closers were added.
        big: Whether an integer may need more than 64 bits.
    """

    end: int
    edits: list[Edit]
    strings: list[tuple[int, int]]
    suspects: list[tuple[int, int]]
    closed: bool
    big: bool


def scan(text: str, start: int) -> Scan:
    """Scan the one value that begins at `start`.

    Time is linear in the length; nothing is recursive.

    Raises:
        Unreadable: There is no one reading.
    """
    return _Scanner(text, start).run()


class _Scanner:
    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.at = start
        self.edits: list[Edit] = []
        self.strings: list[tuple[int, int]] = []
        self.suspects: list[tuple[int, int]] = []
        self.stack: list[_Frame] = []
        self.closed = False
        self.big = False
        self.last = ""

    def run(self) -> Scan:
        self.value()
        while self.stack:
            frame = self.stack[-1]
            self.space()
            if self.at >= len(self.text):
                self.close_at_end()
                break
            char = self.text[self.at]
            if char in "}]":
                self.close(char)
            elif frame.closer == "}":
                self.member(frame, char)
            else:
                self.item(frame, char)
        return Scan(self.at, self.edits, self.strings, self.suspects, self.closed, self.big)

    # -- containers ----------------------------------------------------------------------------------------------

    def member(self, frame: _Frame, char: str) -> None:
        """One `"key": value` of an object, with the comma before it."""
        if self.last not in ("{", ","):
            if char != ",":
                self.unexpected()
            self.comma(frame)
            return
        if char == "," and self.last == ",":
            self.edits.append(Edit("trailing_comma", self.at, self.at + 1, ""))
            self.at += 1
            return
        frame.member = self.at
        frame.key = self.key(char)
        self.space()
        if self.at >= len(self.text):
            raise Unreadable("cut_off", "the text ends after a key", self.at)
        if self.text[self.at] != ":":
            raise Unreadable("not_json", "a key is not followed by a colon", self.at)
        self.at += 1
        self.space()
        frame.value = self.at
        depth = len(self.stack)
        self.value()
        if len(self.stack) == depth:
            self.finish(frame)

    def item(self, frame: _Frame, char: str) -> None:
        """One value of an array, with the comma before it."""
        if self.last not in ("[", ","):
            if char != ",":
                self.unexpected()
            self.comma(frame)
            return
        self.value()

    def comma(self, frame: _Frame) -> None:
        frame.comma = self.at
        self.at += 1
        self.last = ","

    def finish(self, frame: _Frame) -> None:
        """A member is complete: the same key twice is one member or no reading."""
        first = frame.members.get(frame.key)
        if first is None:
            frame.members[frame.key] = (frame.value, self.at)
            return
        if not self.same(first, (frame.value, self.at)):
            raise Unreadable("duplicate_key", "one key has two different values", frame.member)
        start = frame.comma if frame.comma >= 0 else frame.member
        while self.edits and self.edits[-1].start >= start:
            self.edits.pop()
        for spans in (self.strings, self.suspects):
            while spans and spans[-1][0] >= start:
                spans.pop()
        self.edits.append(Edit("collapse_identical_duplicate_key", start, self.at, ""))

    def same(self, one: tuple[int, int], two: tuple[int, int]) -> bool:
        left, right = self.text[one[0] : one[1]].strip(), self.text[two[0] : two[1]].strip()
        if left == right:
            return True
        try:
            return equal(jiter.from_json(left.encode()), jiter.from_json(right.encode()))
        except ValueError:
            return False

    def close(self, char: str) -> None:
        """A closer: of the top container, or of one below it whose inner ones were left open."""
        frame = self.stack[-1]
        if frame.closer != char:
            if len(self.stack) < 2 or self.stack[-2].closer != char:
                raise Unreadable("not_json", f"a closing {char} has no opener", self.at)
            if self.last == ",":
                raise Unreadable("not_json", "a closing bracket is missing after a comma", self.at)
            self.edits.append(Edit("close_containers", self.at, self.at, frame.closer))
            self.closed = True
            self.pop(self.at)
        elif self.last == ",":
            self.edits.append(Edit("trailing_comma", frame.comma, frame.comma + 1, ""))
        self.at += 1
        self.pop(self.at)

    def pop(self, end: int) -> None:
        self.stack.pop()
        self.last = "}"
        if self.stack and self.stack[-1].closer == "}":
            here = self.at
            self.at = end
            self.finish(self.stack[-1])
            self.at = here

    def close_at_end(self) -> None:
        if self.last == ",":
            raise Unreadable("cut_off", "the text ends after a comma, where more was to come", self.at)
        if self.last == "0":
            raise Unreadable("cut_off", "the text ends after a number that may be cut", self.at)
        if self.last in ("{", "["):
            raise Unreadable("cut_off", "the text ends behind an opening bracket, where more was to come", self.at)
        end = len(self.text)
        closers = "".join(frame.closer for frame in reversed(self.stack))
        while self.stack:
            self.pop(end)
        self.edits.append(Edit("close_containers", end, end, closers))
        self.closed = True
        self.at = end

    # -- tokens --------------------------------------------------------------------------------------------------

    def value(self) -> None:
        text, at = self.text, self.at
        if at >= len(text):
            raise Unreadable("cut_off", "the text ends where a value was to come", at)
        char = text[at]
        if char == '"':
            self.string()
            self.last = '"'
            self.follows()
        elif char in "{[":
            if len(self.stack) >= MAX_DEPTH:
                raise Unreadable("too_deep", f"nested deeper than {MAX_DEPTH}", at)
            self.stack.append(_Frame("}" if char == "{" else "]", at))
            self.at += 1
            self.last = char
        elif char in _QUOTES:
            self.quoted(char)
            self.last = '"'
            self.follows()
        else:
            self.scalar()

    def string(self) -> None:
        """A double-quoted string that is a value."""
        start = self.at
        quote = self.text.find('"', start + 1)
        if quote >= 0 and "\\" not in self.text[start:quote]:
            end = quote + 1
        else:
            end = _long_string_end(self.text, start) or self.decoded()[1]
        self.strings.append((start, end))
        self.at = end

    def decoded(self) -> tuple[str, int]:
        """What the string here decodes to ("" where an escape is unknown), and where it ends."""
        start = self.at
        decoded: str
        end: int
        try:
            decoded, end = scanstring(self.text, start + 1, False)
        except JSONDecodeError:
            match = _REST_OF_STRING.match(self.text, start + 1)
            if match is None:
                raise Unreadable("cut_off", "the text ends inside a string", start) from None
            decoded, end = "", match.end()
            self.suspects.append((start, end))
        return decoded, end

    def quoted(self, opener: str) -> str:
        """A string between single or typographic quotes, where its end is beyond doubt."""
        start = self.at
        closers = _QUOTES[opener]
        end = min((found for c in closers if (found := self.text.find(c, start + 1)) >= 0), default=-1)
        if end < 0:
            raise Unreadable("cut_off", "the text ends inside a string", start)
        content = self.text[start + 1 : end]
        if opener == "'":
            rule, forbidden = "single_quotes", ""
        else:
            rule, forbidden = "smart_quotes", '"“”„'
        if any(char in content for char in forbidden):
            raise Unreadable("unescaped_quote", "a quote inside the value may be unescaped", start)
        if "\0" in content:
            raise Unreadable("control_char", "a string holds a raw NUL", start)
        decoded = _unescape(content, start)
        self.edits.append(Edit(rule, start, end + 1, orjson.dumps(decoded).decode()))
        self.at = end + 1
        return decoded

    def follows(self) -> None:
        """After a string only a separator or the end may stand; else a quote inside it was left bare."""
        self.space()
        if self.at < len(self.text) and self.stack and self.text[self.at] not in _SEPARATES:
            raise Unreadable(
                "unescaped_quote", "a quote inside a value is not escaped; where the value ends is a guess", self.at
            )

    def key(self, char: str) -> str:
        if char == '"':
            start = self.at
            decoded, self.at = self.decoded()
            self.strings.append((start, self.at))
            return decoded if decoded or self.at == start + 2 else self.text[start : self.at]
        if char in _QUOTES:
            return self.quoted(char)
        word = _WORD.match(self.text, self.at)
        if word is None:
            raise Unreadable("not_json", "a key was expected", self.at)
        after = _SPACE.match(self.text, word.end())
        if after is not None and after.end() >= len(self.text):
            raise Unreadable("cut_off", "the text ends inside a key", self.at)
        self.edits.append(Edit("quote_keys", self.at, word.end(), f'"{word[0]}"'))
        self.at = word.end()
        return word[0]

    def scalar(self) -> None:
        text, at = self.text, self.at
        number = _NUMBER.match(text, at)
        if number is not None:
            end = number.end()
            if end < len(text) and (text[end].isalnum() or text[end] in "._+-"):
                raise Unreadable("not_json", "a number is not written as JSON writes numbers", at)
            if end - at > MAX_DIGITS:
                raise Unreadable("number_too_large", f"a number has more than {MAX_DIGITS} characters", at)
            self.big = self.big or end - at > 18
            self.at = end
            self.last = "0" if end == len(text) else "t"
            return
        word = _WORD.match(text, at + (text[at] in "+-"))
        name = word[0] if word else ""
        if name in _NON_FINITE:
            raise Unreadable("non_finite_number", "NaN and Infinity are not JSON", at)
        if name not in _LITERALS or text[at] in "+-":
            if word is not None and word.end() >= len(text):
                raise Unreadable("cut_off", "the text ends inside a value", at)
            raise Unreadable("bare_value", "a value is neither quoted nor a JSON word; where it ends is a guess", at)
        assert word is not None
        if _LITERALS[name] != name:
            self.edits.append(Edit("python_literals", at, word.end(), _LITERALS[name]))
        self.at = word.end()
        self.last = "t"

    def space(self) -> None:
        """White space and comments between tokens."""
        text = self.text
        while True:
            match = _SPACE.match(text, self.at)
            assert match is not None
            self.at = match.end()
            if not text.startswith("/", self.at):
                return
            comment = _COMMENT.match(text, self.at)
            if comment is None:
                if text.startswith(("//", "/*"), self.at):
                    raise Unreadable("cut_off", "the text ends inside a comment", self.at)
                return
            quote = text[max(0, self.at - _SHORT) : self.at].rstrip()[-1:] if self.last == '"' else ""
            if quote in _CLOSING and quote in comment[0]:
                raise Unreadable("unescaped_quote", "a quote inside a value may be unescaped", self.at)
            self.edits.append(Edit("json_comment", self.at, comment.end(), ""))
            self.at = comment.end()

    def unexpected(self) -> None:
        if self.last == '"':
            raise Unreadable(
                "unescaped_quote", "a quote inside a value is not escaped; where the value ends is a guess", self.at
            )
        raise Unreadable("not_json", "a comma or a closing bracket was expected", self.at)


def _long_string_end(text: str, start: int) -> int | None:
    """The end of a long string, by way of the fastest parser: given more than the string, it says where more begins.

    Newlines and tabs are blanked, as a raw one does not end a string. None where the string is short, or holds what
    strict JSON refuses.
    """
    if len(text) - start < _SHORT or _short_string(text, start):
        return None
    window = _WINDOW
    while True:
        piece = text[start : start + window].replace("\n", " ").replace("\t", " ").replace("\r", " ")
        try:
            orjson.loads(piece)
        except JSONDecodeError as error:
            if error.msg == "unexpected content after document":
                return start + len(piece[: error.pos].rstrip(" \t\n\r"))
            if error.msg != "unexpected end of data" or start + window >= len(text):
                return None
        else:
            return start + len(piece.rstrip(" \t\n\r"))
        window *= 8


def _short_string(text: str, start: int) -> bool:
    """Whether a string ends, or goes wrong, within the first `_SHORT` characters."""
    try:
        scanstring(text[start : start + _SHORT], 1, False)
    except JSONDecodeError as error:
        return not error.msg.startswith("Unterminated")
    return True


_PLAIN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.|\Z)", re.DOTALL)
_SHARED_ESCAPES: dict[str, str] = {"\\n": "\n", "\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f", "\\\\": "\\"}


def _unescape(content: str, at: int) -> str:
    """Decode the escapes that JSON, Python and JavaScript read alike; any other has no one reading."""
    if "\\" not in content:
        return content

    def one(match: re.Match[str]) -> str:
        found = _SHARED_ESCAPES.get(match[0])
        if found is None:
            raise Unreadable("invalid_escape", "an escape between single quotes has no one reading", at)
        return found

    return _PLAIN_ESCAPE.sub(one, content)


def strings_to_json(text: str, scan: Scan, thorough: bool) -> list[Edit]:
    """The edits inside double-quoted strings: raw control characters, and escapes that JSON does not know.

    Args:
        text: The text that was scanned.
        scan: What the scan found.
        thorough: Whether to look for every control character, not only newline, tab and return.

    Raises:
        Unreadable: An escape has no one reading, or a string holds NUL.
    """
    edits: list[Edit] = []
    for start, end in scan.suspects:
        edits.extend(_escapes(text, start, end))
    for start, end in scan.strings:
        if thorough:
            edits.extend(_control(m.start(), m[0]) for m in _CONTROL.finditer(text, start, end))
            continue
        for char in "\n\t\r":
            at = text.find(char, start, end)
            while at >= 0:
                edits.append(_control(at, char))
                at = text.find(char, at + 1, end)
    return edits


_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[\s\S])")
_AMBIGUOUS = re.compile(r"\\(?:x[0-9a-fA-F]{2}|'|u\{|u[0-9a-fA-F]{0,2}[0-9][0-9a-fA-F]{0,2}|U[0-9a-fA-F]{8})")
_LEGAL_LETTERS = frozenset("bfnrt")


def _control(at: int, char: str) -> Edit:
    if char == "\0":
        raise Unreadable("control_char", "a string holds a raw NUL", at)
    return Edit("escape_control_char", at, at + 1, orjson.dumps(char).decode()[1:-1])


def _escapes(text: str, start: int, end: int) -> list[Edit]:
    """The backslashes of one string that JSON does not know: all literal, or no one reading."""
    edits: list[Edit] = []
    legal = False
    for match in _ESCAPE.finditer(text, start + 1, end - 1):
        letter = match[0][1]
        if letter in _LEGAL_LETTERS:
            legal = True
        elif letter in '"\\/' or (letter == "u" and len(match[0]) == 6):
            continue
        elif _AMBIGUOUS.match(text, match.start()):
            raise Unreadable(
                "invalid_escape", "an escape is not JSON, and other languages read it as one character", match.start()
            )
        else:
            edits.append(Edit("fix_invalid_escape", match.start(), match.start() + 1, "\\\\"))
    if legal and edits:
        raise Unreadable(
            "invalid_escape", "a string mixes JSON escapes with backslashes that JSON cannot escape", edits[0].start
        )
    return edits


def apply(text: str, edits: list[Edit]) -> str:
    """The text with all edits made at once. They must not overlap; at one place they keep their order."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        parts.append(text[at : edit.start])
        parts.append(edit.after)
        at = edit.end
    parts.append(text[at:])
    return "".join(parts)
