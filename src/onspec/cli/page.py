"""The page that a command also writes: that it can be written is known before the work is done."""

from __future__ import annotations

from pathlib import Path

from onspec.errors import InputError


def look(path: Path | None) -> None:
    """Look whether a page can be written there.

    Raises:
        InputError: Its folder does not exist.
    """
    if path is not None and not path.parent.is_dir():
        raise InputError(f"{path.parent}: no such folder")
