"""Content codings taken off (RFC 9110, 8.4): gzip, deflate, br and zstd, whole or piece by piece."""

from __future__ import annotations

import zlib
from collections.abc import Callable
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

PIECE = 64 * 1024
"""Bytes decoded at once where a whole body is decoded, so that one that grows without end is noticed."""


class Undecodable(Exception):
    """The data is not coded as it says, ends too soon, or grows beyond what was allowed."""


class _Layer(Protocol):
    def feed(self, data: bytes) -> bytes: ...

    @property
    def done(self) -> bool: ...


class _Zlib:
    """gzip, of one or several members, or deflate, with or without the header that it should have."""

    def __init__(self, gzip: bool) -> None:
        self._gzip = gzip
        self._pack = zlib.decompressobj(wbits=31 if gzip else 15)
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        out = []
        while data:
            if self._pack.eof:
                if not self._gzip or not data.strip(b"\0"):
                    break  # some pad what they have compressed
                self._pack = zlib.decompressobj(wbits=31)
            out.append(self._decompressed(data))
            data = self._pack.unused_data
        return b"".join(out)

    def _decompressed(self, data: bytes) -> bytes:
        begun, self._begun = self._begun, True
        try:
            return self._pack.decompress(data)
        except zlib.error:
            if begun or self._gzip:
                raise
            self._pack = zlib.decompressobj(wbits=-15)
            return self._pack.decompress(data)

    @property
    def done(self) -> bool:
        return self._pack.eof


class _Brotli:
    def __init__(self) -> None:
        self._pack = brotli.Decompressor()

    def feed(self, data: bytes) -> bytes:
        found: bytes = self._pack.process(data)
        return found

    @property
    def done(self) -> bool:
        return bool(self._pack.is_finished())


class _Zstd:
    """Frames of zstd, one after another."""

    def __init__(self) -> None:
        self._pack: Any = zstandard.ZstdDecompressor().decompressobj()

    def feed(self, data: bytes) -> bytes:
        out = []
        while data:
            if self._pack.eof:
                self._pack = zstandard.ZstdDecompressor().decompressobj()
            out.append(self._pack.decompress(data))
            data = self._pack.unused_data if self._pack.eof else b""
        return b"".join(out)

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
    return all(name in _LAYERS for name in _named(coding))


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
        self._layers = [_LAYERS[name]() for name in reversed(names)]
        self._any = False

    def feed(self, data: bytes) -> bytes:
        """The decoded bytes of the next piece.

        Raises:
            Undecodable: The data is not coded so.
        """
        self._any = self._any or bool(data)
        try:
            for layer in self._layers:
                data = layer.feed(data)
        except _FAULTS:
            raise Undecodable("the body is not compressed as it says") from None
        return data

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
    for at in range(0, len(data), PIECE):
        out += decoder.feed(data[at : at + PIECE])
        if len(out) > most:
            raise Undecodable(f"the body has more than {most} bytes when it is decompressed")
    decoder.close()
    return bytes(out)
