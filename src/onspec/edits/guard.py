"""What is never written to a file, because it is no text or was not meant as text."""

from __future__ import annotations

import re

from onspec.audit import Violation

WINDOW = 512
"""Characters at the end of a text that are looked at for closers."""

_CLOSERS = re.compile(
    r"(?:</(?:antml:)?(?P<name>parameter|invoke|function_calls|function|tool_call|tool_use|arg_value|"
    r"newText|oldText|new_string|old_string|new_str|old_str|file_text|insert_text|content|edits|path|file_path)>\s*)+\Z"
)
_SWALLOWED = re.compile(r"</(?:antml:)?(?:parameter|arg_value)>\s*<(?:antml:)?(?:parameter[ =]|arg_key)")
_OPENER = re.compile(r"<(?:antml:)?(parameter|invoke|arg_key|function)(?:=|[ \t]+name=|>)")
_MARKUP = (
    "parameter",
    "invoke",
    "function_calls",
    "function",
    "tool_call",
    "tool_use",
    "arg_value",
    "newText",
    "oldText",
)


def unwritable(text: str, at: str, old: str = "") -> Violation | None:
    """Why a text that a model wrote must not be written, or None.

    A lone surrogate is half a character. Closers of call markup at the end, or a closer followed by the opening of the
    next parameter, that have no opener in the text, have leaked from the call into the value, unless `old`, the text
    that this one replaces, has the same.
    """
    if not _is_whole(text):
        return Violation(
            "lone_surrogate",
            at,
            "the text has half a character (a lone surrogate)",
            found=_surrogate(text),
            hint="send it again",
        )
    if "</" not in text:
        return None
    tail = _CLOSERS.search(text, max(0, len(text.rstrip()) - WINDOW))
    if tail and tail.group().strip() not in old:
        names = re.findall(r"</(?:antml:)?(\w+)>", tail.group())
        opened = re.search(rf"<(?:antml:)?{names[0]}\b", text[: tail.start()])
        if not opened and any(name in _MARKUP for name in names):
            return _leaked(at)
    swallowed = _SWALLOWED.search(text)
    if swallowed and swallowed.group() not in old and not _OPENER.search(text[: swallowed.start()]):
        return _leaked(at)
    return None


def _is_whole(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _surrogate(text: str) -> str:
    match = re.search("[\ud800-\udfff]", text)
    return f"\\u{ord(match[0]):04x} at character {match.start() + 1}" if match else ""


def _leaked(at: str) -> Violation:
    return Violation(
        "call_markup",
        at,
        "the text holds call markup that closes what it never opened: the call leaked into the value",
        hint="send the value without the markup",
    )
