"""Decompresses `.zst` session files, with the zstandard package."""

from __future__ import annotations

from typing import IO, cast

from onspec.errors import MissingExtra

try:
    import zstandard
except ImportError:
    raise MissingExtra("zstandard", "scan") from None

MAX_WINDOW = 1 << 27
"""Largest window, in bytes, that a file may ask for; `zstd --long` writes this much, more is refused."""


class _Frames:
    """A decompressing reader that turns the package's own errors into ValueError."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(
            raw, read_across_frames=True, closefd=False
        )

    def read(self, size: int = -1) -> bytes:
        try:
            return bytes(self._reader.read(size))
        except zstandard.ZstdError as error:
            raise ValueError(f"not zstandard data: {error}") from None

    def close(self) -> None:
        self._reader.close()  # type: ignore[no-untyped-call]  # the package has no type for it


def stream(raw: IO[bytes]) -> IO[bytes]:
    """The decompressed bytes of `raw`. Reading raises ValueError where the data is damaged."""
    return cast("IO[bytes]", _Frames(raw))
