"""Tools, values and replies that the tests of the dialects share."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from onspec import Tool, Toolset
from onspec.dialects import DIALECTS, Dialect
from onspec.dialects.render import markers_of
from onspec.message import Call

IN_BAND = tuple(row for row in DIALECTS.values() if row.name != "json_args")
"""Every dialect that is written inside text."""

WRITE = Tool(
    "write_file",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "content": {"type": "string"},
            "mode": {"type": "integer"},
            "ratio": {"type": "number"},
            "force": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "meta": {"type": "object"},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    effect="read",
)
JOBS = Tool("list_jobs", {"type": "object", "properties": {}, "additionalProperties": False}, effect="read")
WEATHER = Tool(
    "get_weather",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
SHELL = Tool(
    "run_shell",
    {
        "type": "object",
        "properties": {"command": {"type": "string"}, "timeout_ms": {"type": "integer"}},
        "required": ["command"],
        "additionalProperties": False,
    },
    effect="exec",
)
READ = Tool(
    "read_file",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"], "additionalProperties": False},
)
TOOLS = Toolset([WRITE, JOBS, WEATHER, SHELL, READ])

MARKERS = tuple(sorted({marker for row in IN_BAND for marker in markers_of(row)}))
"""Every marker of every dialect."""

_PIECES = (*MARKERS, "\n", "\n\n", " ", "x", "é", "𝄞", '"', "'", "\\", "`", "```", "{", "}", "[", "]", "true", "null")
_WORDS = (
    "<",
    "a < b",
    "&amp;",
    "12",
    "00712",
    "end.",
    "<body>",
    "</body>",
    "]]>",
    "\t",
    "  ",
    ":",
    "=",
    ",",
    "|",
    "｜",
)

marked_text = st.lists(st.sampled_from((*_PIECES, *_WORDS)), max_size=7).map("".join)
"""Strings of markers, quotes, brackets and words."""

plain_text = st.text(alphabet="abc é\n.,", max_size=30)


@st.composite
def arguments(draw: st.DrawFn, strings: st.SearchStrategy[str] = marked_text) -> dict[str, Any]:
    """Arguments of `write_file` that fit its schema."""
    value: dict[str, Any] = {"path": draw(strings)}
    extra = {
        "content": strings,
        "mode": st.integers(-(2**40), 2**40),
        "ratio": st.sampled_from([0.5, -2.25, 1e-3, 12.0]),
        "force": st.booleans(),
        "tags": st.lists(strings, max_size=3),
        "meta": st.dictionaries(
            st.sampled_from(["a", "b_c", "k"]), st.none() | st.integers(0, 9) | strings, max_size=2
        ),
    }
    for key, strategy in extra.items():
        if draw(st.booleans()):
            value[key] = draw(strategy)
    return value


@st.composite
def calls(draw: st.DrawFn, strings: st.SearchStrategy[str] = marked_text, most: int = 3) -> tuple[Call, ...]:
    """One to `most` calls of declared tools."""
    made = []
    for _ in range(draw(st.integers(1, most))):
        if draw(st.integers(0, 4)):
            made.append(Call("write_file", json.dumps(draw(arguments(strings)), ensure_ascii=False)))
        else:
            made.append(Call("list_jobs", "{}"))
    return tuple(made)


def closers_of(row: Dialect) -> tuple[str, ...]:
    """Markers of a dialect that can end something."""
    return tuple(marker for marker in markers_of(row) if "/" in marker or "close" in marker)
