"""Calls without any marker: they count only when they are the whole reply, and every name is declared."""

from __future__ import annotations

import re
from collections.abc import Callable

from onspec import possessive
from onspec.dialects.dialect import Context, Dialect
from onspec.dialects.draft import Block, Draft, Fault, More, NotCall, Note
from onspec.dialects.envelope import read_values
from onspec.dialects.pythonic import read_call_lines, read_call_list
from onspec.dialects.scan import SPACE, json_waker, scan_json

_BEGIN = re.compile(r"""[\[{\s]{1,60}""")
_JSON = re.compile(r"""\{\s{0,24}(?:\{\s{0,24})?["']|\[[\s\[]{0,48}\{""")
_TAIL = possessive.compile(r"(?:\s|</?[|a-z_]+>|<\|/?[a-z_]+\|>|\[/?TOOL_CALLS\])*+")
_MORE_LIST = re.compile(r"\s*+;\s*+(?=\{)")


def read_bare(dialect: Dialect, context: Context, text: str, pos: int, final: bool) -> Block | More | None:
    """Read a reply that begins at `pos` as a call without markers; None where it is none."""
    char = text[pos]
    if "header" in dialect.bare and char == "t" and not final and "to=".startswith(text[pos:]):
        return More()
    if char in "{[" and "json" in dialect.bare:
        if not final and _BEGIN.fullmatch(text, pos):
            return More()
        if _JSON.match(text, pos):
            return _json(dialect, context, text, pos, final)
    if char == "[" and "pythonic" in dialect.bare:
        return _only(read_call_list(text, pos, context, final), text, context, final)
    if "header" in dialect.bare and text.startswith("to=", pos):
        header = dialect.family.read(text, pos, None, context, final)
        return header if not isinstance(header, NotCall) else None
    if "lines" in dialect.bare and (char.isalpha() or char == "_"):
        reading = read_call_lines(text, pos, context, final)
        return reading if not isinstance(reading, NotCall) else None
    return None


def _only(reading: Block | More | NotCall, text: str, context: Context, final: bool) -> Block | More | None:
    if isinstance(reading, NotCall):
        return None
    if isinstance(reading, More):
        return reading
    end = _TAIL.match(text, reading.end).end()  # type: ignore[union-attr]
    if end < len(text):
        return None
    if not final:
        return More()
    if any(draft.fault or context.tool(draft.name) is None for draft in reading.drafts):
        return None
    reading.end = end
    reading.whole_text = True
    return reading


def _json(dialect: Dialect, context: Context, text: str, pos: int, final: bool) -> Block | More | None:
    drafts: list[Draft] = []
    notes: list[Note] = []
    at = pos
    while True:
        scan = scan_json(text, at)
        if scan.stray >= 0:
            return None
        if scan.end < 0:
            return None if final else More(json_waker(scan))
        found, more_notes = read_values(text, at, scan.end, arguments=("arguments", "parameters"))
        drafts += found
        notes += more_notes
        joined = _MORE_LIST.match(text, scan.end)
        if not joined:
            break
        at = joined.end()
    end = _TAIL.match(text, scan.end).end()  # type: ignore[union-attr]
    if end < len(text):
        return None
    if not final:
        return More()
    if not drafts or any(draft.fault or context.tool(draft.name) is None for draft in drafts):
        return None
    native = "json" in dialect.bare_native
    if dialect.name == "auto":
        native = text[pos] == "[" or '"parameters"' in text[pos : pos + 4096]
    if not native:
        drafts[0].notes.insert(0, Note("open_tag_inferred", pos, pos))
    return Block(end, drafts, notes, whole_text=True)


_CALLISH = re.compile(r"""\s*+(?:[{\[<]|[A-Za-z_][\w.-]*+\()""")
_INFO = re.compile(r"[^\n]*+\n")


def read_fence(
    text: str,
    pos: int,
    final: bool,
    accept: bool,
    parse: Callable[[str], list[Draft] | None],
) -> Block | More | NotCall | None:
    """Read a fence that opens a reply at `pos`: a call only if the reply is nothing else.

    Args:
        accept: Whether this dialect means such a fence as a call; else the call is refused as quoted.
        parse: Drafts in the fence's content, or None where it holds anything else.
    """
    run = re.compile(r"(`{3,}|~{3,})").match(text, pos)
    assert run is not None
    info = _INFO.match(text, run.end())
    if info is None:
        return None if final else More()
    begin = info.end()
    start = SPACE.match(text, begin).end()  # type: ignore[union-attr]
    if not final and len(text) - start < 64 and re.compile(r"[\w.-]*+").fullmatch(text, start):
        return More()
    if not _CALLISH.match(text, start):
        return None
    closer = re.compile(rf"(?:\A|\n)[ \t]*{re.escape(run[0][0])}{{{len(run[0])},}}[ \t]*(?=\n|\Z)").search(
        text, begin - 1
    )
    if closer is None and not final:
        return More(_fence_waker(run[0]))
    inner_end = closer.start() if closer else len(text)
    end = SPACE.match(text, closer.end()).end() if closer else len(text)  # type: ignore[union-attr]
    if end < len(text):
        return None
    if not final:
        return More()
    inner = text[begin:inner_end]
    drafts = parse(inner)
    if not drafts:
        return None
    shifted = [_shift(draft, begin) for draft in drafts]
    for draft in shifted:
        if accept:
            draft.notes.insert(0, Note("fence_stripped", pos, begin, text[pos:begin], ""))
        elif draft.fault is None:
            draft.fault = Fault("quoted_call")
    return Block(end, shifted, whole_text=True)


def _fence_waker(run: str) -> Callable[[str], bool]:
    edge = ""

    def wake(piece: str) -> bool:
        nonlocal edge
        window = edge + piece
        edge = window[-8:]
        return run[0] * 3 in window

    return wake


def _shift(draft: Draft, by: int) -> Draft:
    draft.start += by
    draft.end += by
    draft.notes = [Note(n.rule, n.start + by, n.end + by, n.before, n.after, n.path) for n in draft.notes]
    return draft
