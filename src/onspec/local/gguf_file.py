"""The head of a GGUF file: what it says of itself, and where its tensors lie."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onspec.errors import InputError

_HEADED = 8
"""Bytes that every GGUF file has at least."""

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
"""Types of values, from ggml's `docs/gguf.md`."""

_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor lies.

    Attributes:
        shape: Its sizes, the slowest first, as numpy has them.
        kind: Number of its type (`ggml_type`).
        offset: Bytes from the start of the file.
    """

    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a file.

    Attributes:
        fields: Its values by name, lists left out.
        tensors: Its tensors by name.
    """

    fields: dict[str, Any]
    tensors: dict[str, Place]


def check_gguf(path: Path) -> None:
    """Refuse what is certainly no GGUF file, before native code sees it.

    Raises:
        InputError: There is no such file, or it does not begin as GGUF does.
    """
    try:
        with path.open("rb") as file:
            head = file.read(_HEADED)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if head[:4] != b"GGUF" or len(head) < _HEADED:
        raise InputError(f"{path} is not a GGUF model")


def head_of(path: Path) -> Head:
    """Read the head of a GGUF file of version 2 or 3.

    Raises:
        InputError: The file is no GGUF file, of another version, or damaged.
    """
    check_gguf(path)
    with path.open("rb") as file:
        cursor = _Cursor(file)
        try:
            _, version, tensors, values = cursor.take("<IIQQ")
            if version not in (2, 3):
                raise InputError(f"{path} is GGUF of version {version}; versions 2 and 3 are known")
            fields = {}
            for _ in range(values):
                name, kind = cursor.text(), cursor.take("<I")[0]
                value = cursor.value(kind)
                if value is not None:
                    fields[name] = value
            places = []
            for _ in range(tensors):
                name, count = cursor.text(), cursor.take("<I")[0]
                sizes = cursor.take(f"<{count}Q")
                places.append((name, sizes[::-1], *cursor.take("<IQ")))
        except (struct.error, UnicodeDecodeError, KeyError, OverflowError, MemoryError) as error:
            raise InputError(f"{path} is damaged: {error}") from None
        aligned = int(fields.get("general.alignment", _ALIGNMENT))
        start = -(-file.tell() // aligned) * aligned
    return Head(fields, {name: Place(shape, kind, start + offset) for name, shape, kind, offset in places})


class _Cursor:
    def __init__(self, file: Any) -> None:
        self._file = file

    def take(self, form: str) -> tuple[Any, ...]:
        size = struct.calcsize(form)
        return struct.unpack(form, self._file.read(size))

    def text(self) -> str:
        length = self.take("<Q")[0]
        return self._bytes(length).decode()

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.take("<" + _SCALARS[kind])[0]
        inner, count = self.take("<IQ")
        if inner in _SCALARS:
            self._bytes(count * struct.calcsize(_SCALARS[inner]))
        else:
            for _ in range(count):
                if inner == _STRING:
                    self._bytes(self.take("<Q")[0])
                else:
                    self.value(inner)
        return None

    def _bytes(self, length: int) -> bytes:
        found: bytes = self._file.read(length)
        if len(found) < length:
            raise struct.error("it ends too early")
        return found
