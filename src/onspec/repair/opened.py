"""A container of a call that has begun to arrive and has not closed."""

from __future__ import annotations

import json

from onspec.audit import Json
from onspec.contract.view import View
from onspec.repair.shape import Shape


class Open:
    """An open container.

    Attributes:
        kind: `object` or `array`.
        shape: How its parts are judged.
        at: Where it stands in its parent.
        start: Where it begins in the text.
        done: An object's complete members that stay, each with where its value stands in the text.
        gone: Keys of the members that were left out; `unknown` of them are not declared.
        count: An array's items so far.
        lead: Whether members were left out before the first that stays.
        unread: Keys of complete members whose values have not been looked at for `read`.
        view: The one way to see it; None where there are several, or where it has not been looked up (`viewed`).
    """

    __slots__ = (
        *("at", "closers", "count", "done", "gone", "kind", "lead", "read"),
        *("shape", "start", "unknown", "unread", "view", "viewed"),
    )

    def __init__(self, kind: str, here: Shape, at: str | int, start: int) -> None:
        self.kind = kind
        self.shape = here
        self.at = at
        self.start = start
        self.done: dict[str, tuple[int, int]] = {}
        self.gone: set[str] = set()
        self.unknown = 0
        self.count = 0
        self.lead = False
        self.closers: set[str] = set()
        self.view: View | None = None
        self.viewed = False
        self.read: dict[str, Json] = {}
        self.unread: list[str] = []

    def finish(self, at: str | int, start: int, end: int) -> None:
        if self.kind == "object":
            self.done[str(at)] = start, end
            self.unread.append(str(at))
        else:
            self.count += 1


def members_left(value: dict[str, Json], done: set[str | int]) -> str:
    """What is left of an object of which some members are written, up to its end."""
    out = []
    written = bool(done)
    for key, member in value.items():
        if key not in done:
            name = json.dumps(key, ensure_ascii=False)
            out.append(f"{',' if written else ''}{name}:{json.dumps(member, ensure_ascii=False)}")
            written = True
    return "".join([*out, "}"])
