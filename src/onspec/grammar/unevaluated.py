"""Which keys of an object the schemas at one place speak of, for `unevaluatedProperties`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onspec.grammar.places import Places

_ALWAYS = ("allOf",)
_MAYBE = ("anyOf", "oneOf", "if", "then", "else", "dependentSchemas")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

APPLICATORS = frozenset((*_ALWAYS, *_MAYBE, *_REFERENCES))
"""Keywords that apply other schemas to the same value (JSON Schema 2020-12 core, section 10.2)."""


class Evaluated:
    """Keys that are spoken of.

    Args:
        places: Of the document, for `$ref`.

    Attributes:
        names: Declared keys.
        patterns: Patterns of keys.
        everything: Whether every key is spoken of.
        sure: Whether that holds for every value; else some schemas apply to some values only, and all are counted.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self._seen: set[int] = set()
        self.names: dict[str, None] = {}
        self.patterns: dict[str, None] = {}
        self.everything = False
        self.sure = True

    def add(self, schema: Any, top: bool = False) -> None:
        """Count the keys of one schema, and of those that it applies to the same value."""
        todo = [(schema, top)]
        while todo:
            part, own = todo.pop()
            if not isinstance(part, Mapping) or id(part) in self._seen:
                continue
            self._seen.add(id(part))
            self.names.update(dict.fromkeys(part.get("properties", ())))
            self.patterns.update(dict.fromkeys(part.get("patternProperties", ())))
            self.everything |= "additionalProperties" in part or (not own and "unevaluatedProperties" in part)
            for word in _REFERENCES:
                if isinstance(part.get(word), str):
                    todo.append((self._places.find(part[word], part), False))
            todo += [(other, False) for other in part.get("allOf", ())]
            for word in _MAYBE:
                if word in part:
                    self.sure = False
                    found = part[word]
                    found = found.values() if word == "dependentSchemas" else found
                    todo += [(other, False) for other in ([found] if isinstance(found, Mapping | bool) else found)]
