"""Tools of several shapes, each with calls drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmarks import payload

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
BOOLEAN = {"type": "boolean"}


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    """The schema of an object that takes no other keys."""
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def array(items: Any, **more: Any) -> dict[str, Any]:
    """The schema of an array."""
    return {"type": "array", "items": items, **more}


@dataclass(frozen=True, slots=True)
class Shape:
    """A tool with a source of valid calls.

    Attributes:
        name: Name of the tool.
        schema: Its schema, closed at every level.
        draw: Makes the arguments of a call of about so many bytes.
    """

    name: str
    schema: dict[str, Any]
    draw: Callable[[Random, int], dict[str, Any]]


def _nested(rng: Random, size: int) -> dict[str, Any]:
    count = rng.choice((1, 1, 2, 3))
    share = max(size // (2 * count), 8)
    edits = [{"oldText": payload.text(rng, share // 2), "newText": payload.text(rng, share)} for _ in range(count)]
    return {"path": payload.path(rng), "edits": edits}


def _flat(rng: Random, size: int) -> dict[str, Any]:
    call: dict[str, Any] = {"file_path": payload.path(rng), "old_string": payload.text(rng, size // 3)}
    call["new_string"] = payload.text(rng, size // 2)
    if rng.random() < 0.4:
        call["replace_all"] = rng.random() < 0.5
    return call


def _write(rng: Random, size: int) -> dict[str, Any]:
    return {"path": payload.path(rng), "content": payload.text(rng, size)}


def _run(rng: Random, size: int) -> dict[str, Any]:
    call: dict[str, Any] = {"command": payload.text(rng, size)}
    if rng.random() < 0.6:
        call["timeout"] = rng.randrange(1, 100_000)
    if rng.random() < 0.4:
        call["background"] = rng.random() < 0.5
    return call


def _tasks(rng: Random, size: int) -> dict[str, Any]:
    count = rng.randrange(1, 5)
    states = ("pending", "in_progress", "completed")
    tasks = [
        {"id": index + 1, "title": payload.text(rng, max(size // count, 8)), "state": rng.choice(states)}
        for index in range(count)
    ]
    return {"tasks": tasks}


def _search(rng: Random, size: int) -> dict[str, Any]:
    call: dict[str, Any] = {"pattern": payload.pattern(rng)}
    call["globs"] = [payload.path(rng) for _ in range(rng.randrange(1, 4))]
    if rng.random() < 0.7:
        call["limit"] = rng.randrange(1, 500)
    if rng.random() < 0.7:
        call["multiline"] = rng.random() < 0.5
    if rng.random() < 0.5:
        call["scale"] = rng.randrange(1, 1000) / 8
    call["note"] = payload.text(rng, size)
    return call


SHAPES = (
    Shape(
        "edit",
        closed(
            ["path", "edits"],
            path=STRING,
            edits=array(closed(["oldText", "newText"], oldText=STRING, newText=STRING), minItems=1),
        ),
        _nested,
    ),
    Shape(
        "replace",
        closed(
            ["file_path", "old_string", "new_string"],
            file_path=STRING,
            old_string=STRING,
            new_string=STRING,
            replace_all=BOOLEAN,
        ),
        _flat,
    ),
    Shape("write", closed(["path", "content"], path=STRING, content=STRING), _write),
    Shape("run", closed(["command"], command=STRING, timeout=INTEGER, background=BOOLEAN), _run),
    Shape(
        "plan",
        closed(
            ["tasks"],
            tasks=array(
                closed(
                    ["id", "title", "state"],
                    id=INTEGER,
                    title=STRING,
                    state={"type": "string", "enum": ["pending", "in_progress", "completed"]},
                )
            ),
        ),
        _tasks,
    ),
    Shape(
        "search",
        closed(
            ["pattern", "globs", "note"],
            pattern=STRING,
            globs=array(STRING),
            limit=INTEGER,
            multiline=BOOLEAN,
            scale={"type": "number"},
            note=STRING,
        ),
        _search,
    ),
)
"""The tools that mutants are made of."""
