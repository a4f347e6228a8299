"""One change of a value on its way to fit, with the place it had in the text."""

from __future__ import annotations

from dataclasses import dataclass

from onspec.audit import Json, Path


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value stood in the text as it was read.

    Attributes:
        path: Its path there; for what a string held, the path of that string.
        inside: Whether it was held by a string, so that its own characters are not in the text as they are.
    """

    path: Path = ()
    inside: bool = False

    def at(self, part: str | int | None) -> Origin:
        """The origin of a member or item; None for a value that the search made."""
        if part is None:
            return Origin(self.path, True)
        return self if self.inside else Origin((*self.path, part))

    def held(self) -> Origin:
        """The origin of what the string here holds."""
        return Origin(self.path, True)


@dataclass(frozen=True, slots=True)
class Step:
    """A repair whose span is not known yet.

    Attributes:
        rule, path, before, after: As in `onspec.audit.Repair`.
        origin: Where the changed value stood in the text as read.
    """

    rule: str
    path: str
    before: Json
    after: Json
    origin: Origin
