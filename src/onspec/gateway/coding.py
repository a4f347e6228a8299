"""Content codings taken off (RFC 9110, 8.4): gzip, deflate, br and zstd, whole or piece by piece."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from onspec.errors import MissingExtra

try:
    import brotli
except ImportError as error:
    raise MissingExtra("brotli", "gateway") from error

try:
    import zstandard
except ImportError as error:
    raise MissingExtra("zstandard", "gateway") from error

PIECE = 1024 * 1024
"""Most bytes, about, that are decoded at once: a few coded bytes may stand for gigabytes."""
STEP = 64 * 1024
"""Coded bytes that are given to a decoder at once; what it does not take at once it copies."""
ZSTD_STEP = 256
"""Bytes of zstd that are decoded at once: four may stand for a block of 128 KiB."""
MAX_LAYERS = 4
"""Most codings, one over another, that are taken off."""


class Undecodable(Exception):
    """The data is not coded as it says, ends too soon, or grows beyond what was allowed."""


class _Layer(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]:
        """What the data stands for, in pieces of a bounded size."""

    @property
    def done(self) -> bool: ...


class _Zlib:
    """gzip, of one or several members, or deflate, with or without the header that it should have."""

    def __init__(self, gzip: bool) -> None:
        self._gzip = gzip
        self._pack = zlib.decompressobj(wbits=31 if gzip else 15)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._pack.eof:
                if not self._gzip or not data.strip(b"\0"):
                    break  # some pad what they have compressed
                self._pack = zlib.decompressobj(wbits=31)
            yield self._decompressed(data)
            data = self._pack.unconsumed_tail or self._pack.unused_data

    def _decompressed(self, data: bytes) -> bytes:
        begun, self._begun = self._begun, True
        try:
            return self._pack.decompress(data, PIECE)
        except zlib.error:
            if begun or self._gzip:
                raise
            self._pack = zlib.decompressobj(wbits=-15)
            return self._pack.decompress(data, PIECE)

    @property
    def done(self) -> bool:
        return self._pack.eof


class _Brotli:
    def __init__(self) -> None:
        self._pack = brotli.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        found: bytes = self._pack.process(data, output_buffer_limit=PIECE)
        yield found
        while not self.done and (len(found) >= PIECE or not self._pack.can_accept_more_data()):
            found = self._pack.process(b"", output_buffer_limit=PIECE)
            yield found

    @property
    def done(self) -> bool:
        return bool(self._pack.is_finished())


class _Zstd:
    """Frames of zstd, one after another."""

    def __init__(self) -> None:
        self._pack: Any = zstandard.ZstdDecompressor().decompressobj()

    def feed(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), ZSTD_STEP):
            step = data[at : at + ZSTD_STEP]
            while step:
                if self._pack.eof:
                    self._pack = zstandard.ZstdDecompressor().decompressobj()
                yield self._pack.decompress(step)
                step = self._pack.unused_data if self._pack.eof else b""

    @property
    def done(self) -> bool:
        return bool(self._pack.eof)


_LAYERS: dict[str, Callable[[], _Layer]] = {
    "gzip": lambda: _Zlib(True),
    "x-gzip": lambda: _Zlib(True),
    "deflate": lambda: _Zlib(False),
    "br": _Brotli,
    "zstd": _Zstd,
}
_FAULTS = (zlib.error, brotli.error, zstandard.ZstdError)


def _named(coding: str) -> list[str]:
    return [name for part in coding.lower().split(",") if (name := part.strip()) not in ("", "identity")]


def known(coding: str) -> bool:
    """Whether every coding that a `content-encoding` names can be taken off."""
    names = _named(coding)
    return len(names) <= MAX_LAYERS and all(name in _LAYERS for name in names)


class Decoder:
    """Takes content codings off, piece by piece.

    Args:
        coding: The header's value; several codings are taken off in turn, the last one first.

    Raises:
        Undecodable: A coding is not known.
    """

    def __init__(self, coding: str) -> None:
        names = _named(coding)
        unknown = [name for name in names if name not in _LAYERS]
        if unknown:
            raise Undecodable(f"the content coding {unknown[0][:40]} is not known")
        if len(names) > MAX_LAYERS:
            raise Undecodable(f"it is coded more than {MAX_LAYERS} times")
        self._layers = [_LAYERS[name]() for name in reversed(names)]
        self._any = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The decoded bytes of the next piece, in pieces that are never much larger than `PIECE`.

        Raises:
            Undecodable: The data is not coded so.
        """
        self._any = self._any or bool(data)
        try:
            for at in range(0, len(data), STEP):
                yield from filter(None, self._through(0, data[at : at + STEP]))
        except _FAULTS:
            raise Undecodable("the body is not compressed as it says") from None

    def _through(self, layer: int, data: bytes) -> Iterator[bytes]:
        if layer == len(self._layers):
            yield data
            return
        for piece in self._layers[layer].feed(data):
            yield from self._through(layer + 1, piece)

    def close(self) -> None:
        """The data has ended.

        Raises:
            Undecodable: It ended too soon.
        """
        if self._any and not all(layer.done for layer in self._layers):
            raise Undecodable("the compressed body ends too soon")


def decoded(data: bytes, coding: str, most: int) -> bytes:
    """A whole body with its codings taken off.

    Args:
        data: The body as it came.
        coding: The value of `content-encoding`, or "".
        most: Bytes that may come of it.

    Raises:
        Undecodable: It is not coded so, ends too soon, or is larger.
    """
    if not _named(coding):
        return data
    decoder = Decoder(coding)
    out = bytearray()
    for piece in decoder.feed(data):
        out += piece
        if len(out) > most:
            raise Undecodable(f"the body has more than {most} bytes when it is decompressed")
    decoder.close()
    return bytes(out)
