"""Another library in the place of `onspec.check`: text and schema in, arguments out, or it raises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

Parse = Callable[[str], Any]


class Refused(Exception):
    """The library gave a value that the schema does not allow, so it would not be executed."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One way to use another library.

    Attributes:
        name: The library, and how it is used where there are several ways.
        distribution: The package that is measured.
        make: The parser for one schema. It raises whatever the library raises; that counts as a refusal.
    """

    name: str
    distribution: str
    make: Callable[[dict[str, Any]], Parse]


def validated(parse: Parse) -> Callable[[dict[str, Any]], Parse]:
    """A parser that knows no schema, followed by a validator: what is not valid is not executed."""

    def make(schema: dict[str, Any]) -> Parse:
        valid = jsonschema_rs.validator_for(schema).is_valid

        def run(text: str) -> Any:
            value = parse(text)
            if not valid(value):
                raise Refused
            return value

        return run

    return make
