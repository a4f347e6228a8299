"""Where a `$ref` leads inside one schema document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urljoin

from onspec.errors import SchemaError

_REMOTE = "is outside the schema; a remote $ref is never fetched"
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_DATA = frozenset({"const", "enum", "default", "examples", "example"})


class Places:
    """The subschemas of a document by pointer, anchor and `$id`. Nothing is read before the first `$ref`.

    Args:
        schema: The document.
    """

    def __init__(self, schema: Mapping[str, Any] | bool) -> None:
        self._schema = schema
        self._homes: dict[int, Mapping[str, Any]] | None = None
        self._bases: dict[int, str] = {}
        self._resources: dict[str, Any] = {}
        self._anchors: dict[tuple[int, str], Any] = {}

    def find(self, reference: str, part: Any) -> Any:
        """The schema that a `$ref` inside the schema `part` names.

        Raises:
            SchemaError: There is none in the document.
        """
        if self._homes is None:
            self._homes = {}
            if isinstance(self._schema, Mapping):
                self._walk()
        home: Any = self._homes.get(id(part), self._schema)
        address, _, fragment = reference.partition("#")
        if address:
            whole = urljoin(self._bases.get(id(home), ""), address)
            found = self._resources.get(whole, self._resources.get(address))
            if found is None:
                raise SchemaError(f"$ref {reference!r} {_REMOTE}")
            home = found
        if not fragment:
            return home
        if fragment.startswith("/"):
            return _step_by_step(home, reference, fragment)
        found = self._anchors.get((id(home), unquote(fragment)))
        if found is None:
            raise SchemaError(f"$ref {reference!r} names no anchor of the schema")
        return found

    def _walk(self) -> None:
        assert self._homes is not None
        todo: list[tuple[Any, Any, str]] = [(self._schema, self._schema, "")]
        while todo:
            here, home, base = todo.pop()
            if isinstance(here, list):
                todo += [(part, home, base) for part in here]
                continue
            if not isinstance(here, Mapping):
                continue
            name = here.get("$id", here.get("id"))
            if isinstance(name, str) and name.startswith("#"):
                self._anchors.setdefault((id(home), name[1:]), here)
            elif isinstance(name, str):
                home, base = here, urljoin(base, name.rstrip("#")) or name
                self._resources.setdefault(base, here)
                self._resources.setdefault(name.rstrip("#"), here)
            self._homes[id(here)] = home
            self._bases[id(home)] = base
            for word in ("$anchor", "$dynamicAnchor"):
                if isinstance(here.get(word), str):
                    self._anchors.setdefault((id(home), here[word]), here)
            for word, value in here.items():
                if word in _MAPS and isinstance(value, Mapping):
                    todo += [(part, home, base) for part in value.values()]
                elif word not in _DATA:
                    todo.append((value, home, base))


def _step_by_step(home: Any, reference: str, fragment: str) -> Any:
    here = home
    for raw in fragment[1:].split("/"):
        step = unquote(raw).replace("~1", "/").replace("~0", "~")
        try:
            here = here[int(step)] if isinstance(here, list) else here[step]
        except (KeyError, IndexError, ValueError, TypeError):
            raise SchemaError(f"$ref {reference!r} points at nothing in the schema") from None
    return here
