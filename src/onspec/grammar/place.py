"""Where a half-written JSON text stands: inside which string, which key, which object."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Open:
    """A bracket that is still open.

    Attributes:
        keys: JSON texts of the keys written so far; None for an array.
        under: JSON text of the key under which it stands; "" for the whole value.
        key: JSON text of the last key.
        expects_key: Whether a string that begins now would be a key.
    """

    keys: set[str] | None
    under: str
    key: str = ""
    expects_key: bool = False


@dataclass(slots=True)
class Place:
    """Follows a JSON text that is known to be well formed as far as it goes.

    Attributes:
        stack: Open brackets, the innermost last.
        word: Bytes of the string that is open, from its quote on, or None outside of strings.
        in_key: Whether that string is a key.
        escaped: Whether a backslash has just been written inside it.
        tail: The last byte that is not white space, outside of strings; 0 at the start.
        scalar: Bytes of the number or word that is being written, or b"".
    """

    stack: list[Open] = field(default_factory=list)
    word: bytearray | None = None
    in_key: bool = False
    escaped: bool = False
    tail: int = 0
    scalar: bytes = b""

    def feed(self, text: bytes) -> None:
        """Follow `text`."""
        for code in text:
            if self.word is not None:
                self._inside(code)
            else:
                self._outside(code)

    def copy(self) -> Place:
        """Another one at the same place."""
        stack = [Open(None if o.keys is None else set(o.keys), o.under, o.key, o.expects_key) for o in self.stack]
        word = None if self.word is None else bytearray(self.word)
        return Place(stack, word, self.in_key, self.escaped, self.tail, self.scalar)

    @property
    def path(self) -> str:
        """JSON text of the key whose value is being written, "" where there is none."""
        if not self.stack:
            return ""
        top = self.stack[-1]
        return top.key if top.keys is not None else top.under

    def _inside(self, code: int) -> None:
        assert self.word is not None
        self.word.append(code)
        if self.escaped:
            self.escaped = False
        elif code == 0x5C:
            self.escaped = True
        elif code == 0x22:
            if self.in_key:
                top = self.stack[-1]
                top.key = bytes(self.word).decode("utf-8", "replace")
                assert top.keys is not None
                top.keys.add(top.key)
                top.expects_key = False
            self.word, self.tail = None, 0x22

    def _outside(self, code: int) -> None:
        if code in b" \t\r\n":
            self.scalar = b""
            return
        if code == 0x22:
            top = self.stack[-1] if self.stack else None
            self.word, self.escaped = bytearray(b'"'), False
            self.in_key = top is not None and top.keys is not None and top.expects_key
            return
        if code in b"{[":
            self.stack.append(Open(set() if code == 0x7B else None, self.path, expects_key=code == 0x7B))
        elif code in b"}]" and self.stack:
            self.stack.pop()
        elif code == 0x2C and self.stack:
            self.stack[-1].expects_key = True
        self.scalar = b"" if code in b"{}[],:" else self.scalar + bytes([code])
        self.tail = code
