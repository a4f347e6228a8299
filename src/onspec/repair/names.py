"""Names of keys: which spellings are one name, which are near, and which speak of the same thing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_NUMBERED = re.compile(r"(.*?[^\d_-])[_-]?(\d{1,3})\Z", re.DOTALL)
_STRAY = " \t\r\n\"'`“”:,;"
_FILE_WORDS = frozenset({"path", "file", "filename", "filepath", "dir", "directory", "folder", "paths", "files"})
MAX_KEY = 64
"""Longest key, in characters, that counts as a name; a longer one is text that slid into the key's place."""

_SAME: tuple[tuple[str, ...], ...] = (
    (
        "path",
        "file",
        "file_path",
        "filename",
        "file_name",
        "target_file",
        "absolute_path",
        "relative_path",
        "target_path",
    ),
    ("directory", "dir", "folder", "dir_path", "directory_path", "folder_path", "dirname"),
    ("command", "cmd", "shell_command", "bash_command", "command_line"),
    ("old_string", "old_str", "old_text", "old", "old_content", "search_text", "find_text"),
    ("new_string", "new_str", "new_text", "new", "new_content", "replace_text", "replacement_text"),
    ("content", "contents", "file_text", "file_content", "file_contents"),
    ("pattern", "regex", "regexp"),
    ("query", "search_query", "q", "search_term"),
    ("url", "uri", "link"),
    ("edits", "edit", "replacements", "changes", "modifications"),
    ("replace_all", "replace_all_occurrences"),
    ("description", "desc"),
    ("urls", "uris", "links"),
    ("paths", "files", "file_paths", "filenames"),
    ("commands", "cmds"),
    ("todos", "todo_list", "todo_items"),
    ("working_directory", "workdir", "work_dir", "cwd", "working_dir"),
)
"""Synonyms seen in the wild: one may stand for another of its family."""

_ABOUT: tuple[tuple[str, ...], ...] = (
    (
        *_SAME[0],
        *_SAME[1],
        *_SAME[13],
        *_SAME[16],
        "root",
        "base_path",
        "destination",
        "notebook_path",
    ),
    (*_SAME[2], *_SAME[14], "script", "shell", "bash", "argv", "args", "code"),
    (*_SAME[3], *_SAME[4], "find", "search", "replace", "replacement", "insert_text", "text", "before", "after"),
    (*_SAME[5], "text", "body", "data", "code", "source_code", "file", "new_file_contents"),
    (*_SAME[6], *_SAME[7], "search", "keyword", "keywords", "text", "glob", "include", "filter", "term"),
    ("glob", "include", "file_pattern", "filter", "type", "file_type", "exclude"),
    (
        *(
            "limit",
            "max",
            "count",
            "max_results",
            "max_count",
            "num",
            "num_results",
            "n",
            "top_k",
            "head_limit",
            "lines",
        ),
        *(
            "max_lines",
            "size",
            "page_size",
            "length",
            "line_count",
            "num_lines",
            "end",
            "end_line",
            "line_end",
            "to",
            "max_chars",
        ),
    ),
    (
        *(
            "offset",
            "start",
            "start_line",
            "line_start",
            "line",
            "line_number",
            "from",
            "skip",
            "begin",
            "page",
            "cursor",
        ),
        *("view_range", "range", "lines", "insert_line"),
    ),
    ("timeout", "timeout_ms", "timeout_seconds", "timeout_secs", "time_limit", "max_time", "deadline"),
    (
        *_SAME[10],
        "replace_every",
        "global",
        "all",
        "all_occurrences",
        "expected_replacements",
        "occurrences",
        "occurrence",
        "count",
    ),
    ("case_sensitive", "ignore_case", "case_insensitive", "match_case", "i"),
    ("recursive", "recurse", "depth", "max_depth"),
    ("dry_run", "confirm", "force", "preview", "check_only", "simulate"),
    (*_SAME[8], *_SAME[12], "href", "address", "website"),
    ("prompt", "message", "instructions", "question", "input", "task"),
    ("is_background", "background", "run_in_background", "detached", "async"),
    ("append", "overwrite", "mode", "create", "truncate"),
    ("labels", "tags", "label", "tag"),
    ("status", "state"),
)
"""Families whose names speak of one thing: dropping one beside a declared other may lose what was meant."""

_PAYLOAD = frozenset(name for row in (2, 3, 4, 5, 6) for name in _SAME[row]) | {
    "script",
    "code",
    "search",
    "replace",
    "diff",
    "patch",
}
"""Names that carry the work of some tool: under a tool that lacks them, two calls may have been merged."""

_RESTRAINS: dict[str, frozenset[str]] = {
    # names of things that hold a call back or send it elsewhere: the values under which they change nothing
    **dict.fromkeys(
        ("append", "dry_run", "preview", "simulate", "check_only", "read_only", "readonly"), frozenset({"false"})
    ),
    **dict.fromkeys(("requires_approval", "require_approval", "needs_approval", "ask_first"), frozenset({"false"})),
    **dict.fromkeys(("overwrite", "create", "create_dirs", "force"), frozenset({"true"})),
    **dict.fromkeys(("confirm", "confirmed", "approved"), frozenset({"true"})),
    **dict.fromkeys(("occurrence", "occurrences"), frozenset({"1"})),
    "encoding": frozenset({"utf-8", "utf8"}),
    "mode": frozenset({"w", "wt", "write", "overwrite", "replace", "edit"}),
    **dict.fromkeys(
        (
            *("position", "insert_at", "insert_line", "at_line", "after_line", "before_line", "where", "filter"),
            *("exclude", "except", "only", "unless", "condition", "if_exists", "if_match", "sandbox", "permissions"),
            *("host", "hostname", "server", "user", "env"),
            *("environment", "stdin", "branch", "database", "namespace", "region", "account", "target", "destination"),
            *("bcc", "cc", "recipients", "attachments", "reply_to", "send_at", "schedule", "scheduled_at", "delay"),
        ),
        frozenset(),
    ),
}
_LINES = ("start_line", "end_line", "line", "line_number", "lines", "range", "line_range", "line_start", "line_end")
_RESTRAINS_FOLDED = {re.sub(r"[\s_.\-]+", "", name).casefold(): values for name, values in _RESTRAINS.items()}


def restrains(name: str, value: object, beside: Iterable[str]) -> bool:
    """Whether a key holds a call back or sends it elsewhere, so that the call without it does more, or other things.

    Args:
        name: The key.
        value: Its value.
        beside: Every key that the tool declares. A line restrains what is written to a file, not an edit that finds its
            place by the old text; a folder to work in restrains commands and files.
    """
    own = fold(name)
    harmless = _RESTRAINS_FOLDED.get(own)
    if harmless is not None:
        return str(value).casefold() not in harmless
    if own in _LINE_NAMES:
        declared = {_FAMILY.get(fold(other)) for other in beside}
        return _OLD_TEXT not in declared and any(speaks_of_file(other) for other in beside)
    if _FAMILY.get(own) == _FOLDER_TO_WORK_IN:
        return any(speaks_of_file(other) or _FAMILY.get(fold(other)) in _COMMANDS for other in beside)
    return False


ENVELOPES = frozenset(
    {
        *("arguments", "args", "input", "inputs", "params", "parameters", "parameter", "kwargs", "_", "tool_input"),
        *(
            "tool_args",
            "tool_arguments",
            "function",
            "function_call",
            "tool_call",
            "call",
            "payload",
            "request",
            "item",
        ),
        *("properties", "json", "data", "body", "invoke", "object", "value"),
    }
)
"""Wrappers that models put around arguments."""

META: Mapping[str, frozenset[str] | None] = MappingProxyType(
    {
        "name": None,
        "tool": None,
        "tool_name": None,
        "function": None,
        "function_name": None,
        "recipient_name": None,
        "type": frozenset({"function", "tool_use", "tool_call", "function_call", "object"}),
        "id": frozenset(),
        "call_id": frozenset(),
        "tool_call_id": frozenset(),
    }
)
"""Keys that may stand beside a wrapper: None wants the tool's own name, an empty set any string."""


@lru_cache(maxsize=8192)
def fold(name: str) -> str:
    """A name without letter case and separators: `old_text`, `old-text` and `oldText` are one."""
    return re.sub(r"[\s_.\-]+", "", name).casefold()


@lru_cache(maxsize=8192)
def tokens(name: str) -> frozenset[str]:
    """The words of a name, in lower case."""
    return frozenset(word.casefold() for word in _TOKEN.findall(name))


def trim(name: str) -> str:
    """A name without stray blanks, quotes and separators around it."""
    return name.strip(_STRAY)


def numbered(name: str) -> tuple[str, int] | None:
    """The name and number of a numbered twin: `oldText2` is (`oldText`, 2)."""
    match = _NUMBERED.match(name) if len(name) <= MAX_KEY else None
    return (match[1], int(match[2])) if match else None


def garbled(name: str) -> bool:
    """Whether a key is text or markup rather than a name."""
    return len(name) > MAX_KEY or any(char in '<>{}\n"=' for char in name) or not name.strip() or " " in name.strip()


_FAMILY = {fold(name): index for index, family in enumerate(_SAME) for name in family}
_QUANTITIES = frozenset(index for index, family in enumerate(_ABOUT) if family[0] in ("limit", "offset", "timeout"))
_OLD_TEXT = _FAMILY["oldstring"]
_FOLDER_TO_WORK_IN = _FAMILY["cwd"]
_COMMANDS = frozenset({_FAMILY["command"], _FAMILY["commands"]})
_LINE_NAMES = frozenset(fold(name) for name in _LINES)
_TOPICS: dict[str, frozenset[int]] = {}
for _index, _family in enumerate(_ABOUT):
    for _name in _family:
        _TOPICS[fold(_name)] = _TOPICS.get(fold(_name), frozenset()) | {_index}


def synonyms(one: str, two: str) -> bool:
    """Whether one name may stand for the other."""
    family = _FAMILY.get(fold(one))
    return family is not None and family == _FAMILY.get(fold(two))


def named_often(name: str) -> bool:
    """Whether a name has synonyms."""
    return fold(name) in _FAMILY


def related(one: str, two: str, is_flag: bool = False) -> bool:
    """Whether two names speak of the same thing, so that one may have been meant for the other.

    Args:
        one, two: The names.
        is_flag: Whether the value is true or false, which is no quantity.
    """
    shared = _TOPICS.get(fold(one), frozenset()) & _TOPICS.get(fold(two), frozenset())
    return bool(shared - _QUANTITIES if is_flag else shared)


def is_payload(name: str) -> bool:
    """Whether a name carries the work of some tool."""
    return fold(name) in _PAYLOAD_FOLDED


_PAYLOAD_FOLDED = frozenset(fold(name) for name in _PAYLOAD)


def speaks_of_file(name: str) -> bool:
    """Whether a name speaks of a file or folder, and not of its type, size or the like."""
    words = [word.casefold() for word in _TOKEN.findall(name) if not word.isdigit()]
    return bool(words) and (words[-1] in _FILE_WORDS or words[-2:] == ["file", "name"])


_WORDS = frozenset(
    {
        *("context", "content", "contents", "contact", "model", "mode", "node", "code", "note", "notes", "version"),
        *(
            "date",
            "data",
            "cost",
            "host",
            "post",
            "port",
            "sort",
            "text",
            "test",
            "next",
            "name",
            "game",
            "path",
            "patch",
        ),
        *("page", "range", "image", "title", "file", "time", "type", "line", "link", "list", "unit", "session"),
        *("form", "from", "user", "uses", "role", "rule", "tool", "tools", "color", "count", "country", "county"),
        *("state", "status", "stats", "start", "task", "tags", "team", "term", "item", "head", "read", "load"),
        *("reason", "region", "section", "action", "option", "message", "messages"),
    }
)
"""Plain words that differ by a letter or two and are no slip of one another."""


def near(name: str, declared: str) -> bool:
    """Whether a name is a near miss of a declared one: a numbered twin, one name inside the other, or a typo."""
    twin = numbered(name)
    if twin is not None and fold(twin[0]) == fold(declared):
        return True
    mine, theirs = tokens(name), tokens(declared)
    if mine and theirs and (mine <= theirs or theirs <= mine):
        return True
    one, two = fold(name), fold(declared)
    if one in _WORDS and two in _WORDS:
        return one.removesuffix("s") == two.removesuffix("s")
    short = min(len(one), len(two))
    allowed = 0 if short < 4 else 1 if short < 8 else 2
    return abs(len(one) - len(two)) <= allowed and len(one) <= MAX_KEY and distance(one, two, allowed) <= allowed


def nearest(name: str, declared: Iterable[str]) -> str | None:
    """The declared name that was most likely meant, or None."""
    best: tuple[int, str] | None = None
    for other in declared:
        if fold(other) == fold(trim(name)):
            score = 0
        elif synonyms(name, other):
            score = 1
        elif near(name, other):
            score = 2
        elif related(name, other):
            score = 3
        else:
            continue
        if best is None or score < best[0]:
            best = (score, other)
    return best[1] if best else None


def distance(one: str, two: str, limit: int) -> int:
    """Edits (insert, delete, replace, swap neighbours) between two short names; `limit` + 1 where there are more."""
    before: list[int] = []
    row = list(range(len(two) + 1))
    for i, left in enumerate(one, 1):
        previous, row = row, [i]
        for j, right in enumerate(two, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (left != right))
            if i > 1 and j > 1 and left == two[j - 2] and right == one[i - 2]:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = previous
        if min(row) > limit:
            return limit + 1
    return row[-1]
