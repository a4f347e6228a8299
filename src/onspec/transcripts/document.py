"""One long array inside a JSON document, element by element, with bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from onspec import possessive
from onspec.audit import Json
from onspec.transcripts.session import Damage
from onspec.transcripts.source import CHUNK, MAX_DOCUMENT, MAX_LINE, Bomb, Source, decode, get

_TOKEN = possessive.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\],]', re.DOTALL)
_OPEN_STRING = possessive.compile(rb'"(?:[^"\\]++|\\.)*+\\?\Z', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Frame:
    """The document around the array: whole where the document was small, else what stands before the array."""

    value: Json


@dataclass(frozen=True, slots=True)
class Element:
    """One element of the array: its index from 0, and its decoded JSON."""

    index: int
    value: Json


def elements(source: Source, *keys: str) -> Iterator[Frame | Element | Damage]:
    """The frame of a document, then the elements of its array at the first of `keys` that it has.

    A document that is itself an array has the frame None. A document of more than `MAX_DOCUMENT` bytes is split
    without being decoded whole; an element of more than `MAX_LINE` bytes ends the reading as a Damage.
    """
    whole, damage = source.document()
    if damage is None:
        array = whole if isinstance(whole, list) else None
        if array is None:
            array = next((get(whole, key) for key in keys if isinstance(get(whole, key), list)), [])
        yield Frame(None if isinstance(whole, list) else whole)
        for index, value in enumerate(array):
            yield Element(index, value)
    elif damage.reason in ("too_large", "too_dense", "not_json"):
        yield from _split(source, keys)
    else:
        yield damage


def _split(source: Source, keys: tuple[str, ...]) -> Iterator[Frame | Element | Damage]:
    marks = re.compile(rb'"(?:' + b"|".join(re.escape(key.encode()) for key in keys) + rb')"\s*:\s*\[')
    try:
        with source.open() as stream:
            head = b""
            while True:
                chunk = stream.read(CHUNK)
                head += chunk
                found = re.compile(rb"\s*\[").match(head) or marks.search(head)
                if found:
                    break
                if not chunk or len(head) > MAX_DOCUMENT:
                    yield Damage(0, "not_json")
                    return
            prefix = head[: found.start()].rstrip().rstrip(b",")
            if prefix:
                frame, reason = decode(prefix + b"}")
                yield Frame(frame if not reason else {})
            else:
                yield Frame(None)
            yield from _elements(stream.read, head[found.end() :])
    except Bomb:
        yield Damage(0, "bomb")
    except (OSError, EOFError, ValueError):
        yield Damage(0, "unreadable")


def _elements(read: object, held: bytes) -> Iterator[Element | Damage]:
    assert callable(read)
    index = depth = start = at = 0
    while True:
        token = _TOKEN.search(held, at)
        # A quote that opens a string whose end has not been read yet must not be passed over for a later token.
        if token is None or _OPEN_STRING.match(held, held.find(b'"', at, token.start() + 1)):
            chunk: bytes = read(CHUNK)
            if not chunk:
                yield Damage(index, "cut")
                return
            held, at, start = held[start:] + chunk, max(at - start, 0), 0
            if len(held) > MAX_LINE:
                yield Damage(index, "too_long")
                return
            continue
        char, at = token[0], token.end()
        if char in (b"{", b"["):
            depth += 1
        elif char == b"}" or (char == b"]" and depth):
            depth -= 1
        elif depth == 0 and char in (b",", b"]"):
            raw = held[start : token.start()].strip()
            start = at
            if raw:
                value, reason = decode(raw)
                yield Damage(index, reason) if reason else Element(index, value)
                index += 1
            if char == b"]":
                return
