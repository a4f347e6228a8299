"""Opens and lists files by URL (`s3://`, `https://`, `memory://` ...), with the fsspec package."""

from __future__ import annotations

from typing import IO, cast

from onspec.errors import InputError, MissingExtra

try:
    import fsspec  # type: ignore[import-untyped]  # the package has no types
except ImportError:
    raise MissingExtra("fsspec", "scan") from None


def stream(url: str) -> IO[bytes]:
    """The bytes at a URL.

    Raises:
        InputError: fsspec cannot open it: an unknown scheme, a missing package for it, or no such file.
    """
    try:
        return cast("IO[bytes]", fsspec.open(url, "rb").open())
    except (ValueError, ImportError, OSError) as error:
        raise InputError(f"{url}: {error}") from None


def listing(url: str) -> list[str]:
    """The URLs of all files below `url`, sorted; `url` itself where it is a file.

    Raises:
        InputError: fsspec cannot list it.
    """
    try:
        system, path = fsspec.core.url_to_fs(url)
        if system.isfile(path):
            return [url]
        return sorted(system.unstrip_protocol(name) for name in system.find(path))
    except (ValueError, ImportError, OSError) as error:
        raise InputError(f"{url}: {error}") from None
