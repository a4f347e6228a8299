"""Reading: text to value, blind to the schema, by the one tolerant reading or the reason why there is none."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass

import jiter
import orjson

from onspec.audit import Json, Repair, Violation, equal, pointer
from onspec.repair.tolerant import MAX_DEPTH, Edit, Scan, Unreadable, apply, scan, strings_to_json

_FENCE = re.compile(r"\s*(`{3,}|~{3,})[^\S\n]*[\w+-]*[^\S\n]*\r?\n(.*?)\r?\n?[^\S\n]*\1[`~]*\s*\Z", re.DOTALL)
_LEAD = re.compile(
    r"(?:\s|﻿|<\|[^|<>]{1,80}\|>|<｜[^｜<>]{1,80}｜>|\[/?[A-Z_]{2,24}\]|</?[A-Za-z][\w:.-]*>|<function=[\w.-]+>|`{3,}[\w+-]*|[^{}\[\]\"<>])*"
)
_TAIL = re.compile(
    r"(?:\s|[\]}),;]|﻿|<\|[^|<>]{1,80}\|>|<｜[^｜<>]{1,80}｜>|\[/?[A-Z_]{2,24}\]|</[A-Za-z][\w:.-]*\s*>|<(?:end_[a-z_]+|eos|eot|endoftext)>|`{3,})*"
)
_SCALAR_START = re.compile(r"[-+0-9]|(?:true|false|null|True|False|None|NaN|Infinity)\b|['“„]")
_CONTROL_TOKEN = re.compile(r"\[/?[A-Z_]{2,24}\]")
_UNSAFE = re.compile(r"[\"“”{]|\A(?:\.\.\.|…)")
_STARTS_MEMBER = "[':=(…"
_OPENER = re.compile(r"<[A-Za-z]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(
    r"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text was read as.

    Attributes:
        text: Strict JSON that decodes to `value`; what the model wrote where no edit was needed.
        value: The decoded value; None where `problem` is set.
        edits: The changes that lead from what the model wrote to `text`, in the order of the text.
        problem: Why there is no one reading, or None.
        closed: Whether closers were added, so that a later key may stand deeper than it was meant to.
    """

    text: str
    value: Json = None
    edits: tuple[Edit, ...] = ()
    problem: Violation | None = None
    closed: bool = False


def read(text: str) -> Reading:
    """Read a text as one JSON value. Never raises; time and memory are linear in the length."""
    try:
        text.encode()
        return _read(text)
    except UnicodeEncodeError as error:
        message = "the text holds half of a surrogate pair"
        return Reading(text, problem=Violation("lone_surrogate", "", message, found=f"at character {error.start}"))
    except Unreadable as reason:
        return Reading(text, problem=Violation(reason.code, "", reason.message, found=f"at character {reason.at}"))
    except RecursionError:
        return Reading(text, problem=_too_deep())


def strict(text: str) -> Json:
    """Decode strict JSON: no key twice, no NaN, no infinity, no lone surrogate, integers of any size exact.

    Raises:
        ValueError: It is not strict JSON, or nests deeper than 200.
    """
    raw = text.encode()
    orjson.loads(raw)
    return jiter.from_json(raw, catch_duplicate_keys=True, cache_mode="keys")


def _read(text: str) -> Reading:
    if not text.strip(" \t\r\n﻿"):
        return Reading("{}", {}, (Edit("empty_to_object", 0, len(text), "{}"),))
    start, edits = _start(text)
    try:
        found = scan(text, start)
    except Unreadable:
        other = _encoded(text)
        if other is None:
            raise
        return other
    start, found, more = _one_of_several(text, start, found)
    edits.extend(more)
    edits.extend(_tail(text, found.end))
    if any(edit.rule == "single_quotes" for edit in found.edits) and "'" in text[found.end :]:
        raise Unreadable("unescaped_quote", "a quote inside a value may be unescaped", found.end)
    edits.extend(found.edits)
    return _finish(text, found, [edit for edit in edits if edit.end > edit.start or edit.after])


def _finish(text: str, found: Scan, edits: list[Edit]) -> Reading:
    """Make the edits; only where JSON still complains, look for every control character."""
    problem: Exception | None = None
    for thorough in (False, True):
        made = edits + strings_to_json(text, found, thorough)
        patched = apply(text, made) if made else text
        try:
            value = orjson.loads(patched)
            if found.big:
                value = jiter.from_json(patched.encode())
        except ValueError as error:
            problem = error
            continue
        ordered = tuple(sorted(made, key=lambda edit: (edit.start, edit.end)))
        return Reading(patched, value, ordered, closed=found.closed)
    return _unread(apply(text, made), made, problem, found)


def _unread(text: str, edits: list[Edit], problem: Exception | None, found: Scan) -> Reading:
    """Name what strict JSON refuses: a lone surrogate, depth, a number out of range, or else the parser's word."""
    if _SURROGATE.search(text):
        return Reading(text, problem=Violation("lone_surrogate", "", "the text holds half of a surrogate pair"))
    halves = [m for m in _SURROGATE_ESCAPE.finditer(text) if len(m[2]) == 6]
    if halves:
        mended = _SURROGATE_ESCAPE.sub(lambda m: m[0] if len(m[2]) == 12 else m[1] + "\\ufffd", text)
        place = _surrogate_place(text)
        violation = Violation(
            "lone_surrogate", place, "a string holds half of a surrogate pair", hint="write the whole character"
        )
        try:
            value = strict(mended)
        except ValueError:
            return Reading(text, problem=violation)
        if edits:
            return Reading(text, problem=violation)
        content = tuple(Edit("replace_lone_surrogate", m.start(2), m.end(2), "\\ufffd") for m in halves)
        return Reading(mended, value, content, problem=violation, closed=found.closed)
    message = str(problem)
    if "recursion" in message:
        return Reading(text, problem=_too_deep())
    if "infinity" in message or "out of range" in message:
        return Reading(text, problem=Violation("number_too_large", "", "a number is too large"))
    if "uplicate key" in message:
        return Reading(text, problem=Violation("duplicate_key", "", "one key has two different values"))
    return Reading(text, problem=Violation("not_json", "", "the text is not JSON"))


def _surrogate_place(text: str) -> str:
    stack: list[tuple[tuple[str | int, ...], Json]] = [((), json.loads(text))]
    while stack:
        path, value = stack.pop()
        if isinstance(value, str):
            if _SURROGATE.search(value):
                return pointer(path)
        elif isinstance(value, dict):
            stack.extend(((*path, key), item) for key, item in value.items())
        elif isinstance(value, list):
            stack.extend(((*path, index), item) for index, item in enumerate(value))
    return ""


def _too_deep() -> Violation:
    return Violation("too_deep", "", f"nested deeper than {MAX_DEPTH}")


# -- around the value ------------------------------------------------------------------------------------------------


def _start(text: str) -> tuple[int, list[Edit]]:
    """Where the value begins, and the edits that take off what stands before it."""
    fence = _FENCE.match(text)
    if fence is not None:
        body = fence.start(2) + len(fence[2]) - len(fence[2].lstrip())
        return body, [Edit("strip_fence", 0, body, "")]
    at = len(text) - len(text.lstrip(" \t\r\n"))
    if text[at] in "{[\"'“„" and not _CONTROL_TOKEN.match(text, at):
        return at, []
    lead = _LEAD.match(text)
    assert lead is not None
    start = lead.end()
    if start >= len(text) or text[start] != "{" or re.search(r"<(?:parameter|arg_key|arg_value)\b", text[:start]):
        if start >= len(text) and not _SCALAR_START.match(text, at):
            raise Unreadable("prose", "the text holds no JSON", at)
        return at, []
    rule = (
        "strip_fence"
        if re.search(r"`{3,}[\w+-]*\s*\Z", text[:start]) and not text[:start].strip("`\\w+- \r\n\t")
        else "strip_leading_garbage"
    )
    return start, [Edit(rule, 0, start, "")]


def _one_of_several(text: str, start: int, found: Scan) -> tuple[int, Scan, list[Edit]]:
    """Several objects in a row: an empty one first, or the same one again, are one; others are two calls."""
    edits: list[Edit] = []
    while True:
        rest = re.compile(r"[\s,;]*").match(text, found.end)
        assert rest is not None
        at = rest.end()
        if at >= len(text) or text[at] != "{" or text[start] != "{":
            return start, found, edits
        second = scan(text, at)
        if not text[start + 1 : found.end - 1].strip():
            edits.append(Edit("drop_leading_empty_object", start, at, ""))
            start, found = at, second
        elif _same_text(text[start : found.end], text[at : second.end]):
            edits.append(Edit("collapse_identical_objects", found.end, second.end, ""))
            found = Scan(second.end, found.edits, found.strings, found.suspects, found.closed, found.big)
        else:
            raise Unreadable("two_values", "two different objects stand in a row; they may be two calls", at)


def _same_text(one: str, two: str) -> bool:
    if one == two:
        return True
    try:
        return equal(strict(one), strict(two))
    except ValueError:
        return False


def _tail(text: str, end: int) -> list[Edit]:
    """The edit that takes off what stands behind the value, where it cannot be a part of the call."""
    tail = text[end:]
    if not tail.strip(" \t\r\n"):
        return []
    match = _TAIL.match(tail)
    assert match is not None
    rest = tail[match.end() :]
    if rest and (_OPENER.search(rest) or _UNSAFE.search(rest) or rest[0] in _STARTS_MEMBER or "," in match[0]):
        raise Unreadable(
            "trailing_text", "text that may belong to the call follows the complete value", end + match.end()
        )
    fence_only = not tail.strip(" \t\r\n`~")
    return [Edit("strip_fence" if fence_only else "strip_trailing_garbage", end, len(text), "")]


def _encoded(text: str) -> Reading | None:
    """Text that is a whole object after one decode: over-escaped without the outer quotes, or with HTML entities."""
    body = text.strip()
    start = text.index(body)
    if re.match(r'\{\s*\\"', body):
        try:
            inner = strict('"' + body.replace("\n", "\\n") + '"')
            value = strict(inner)
        except ValueError:
            return None
        return (
            Reading(inner, value, (Edit("decode_double_encoded", 0, len(text), inner),))
            if isinstance(value, dict)
            else None
        )
    if body.startswith("{") and '"' not in body and "&quot;" in body:
        inner = html.unescape(body)
        try:
            value = strict(inner)
        except ValueError:
            return None
        return Reading(inner, value, (Edit("decode_html_entities", start, start + len(body), inner),))
    return None


def repairs_of(text: str, edits: tuple[Edit, ...]) -> tuple[Repair, ...]:
    """The audit of reading: each edit with its text before and after, and its span in bytes of the UTF-8 text."""
    repairs: list[Repair] = []
    chars = offset = 0
    for edit in edits:
        offset += len(text[chars : edit.start].encode("utf-8", "surrogatepass"))
        before = text[edit.start : edit.end]
        size = len(before.encode("utf-8", "surrogatepass"))
        repairs.append(Repair(edit.rule, "", before, edit.after, (offset, offset + size)))
        chars, offset = edit.start, offset
    return tuple(repairs)
