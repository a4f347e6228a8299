"""The V4A patch text (`*** Begin Patch`): files added, updated, moved and deleted, by context, not line numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from onspec.audit import Repair, Violation
from onspec.edits.edit import Create, Delete, Lines, Modify, Operation

MARKER = re.compile(r"\*{2,4}[ \t]*(Begin|End) Patch[ \t]*\**\Z", re.IGNORECASE)
HEADER = re.compile(r"\*\*\* (Add|Update|Delete) File: (.*\S)[ \t]*\Z")
MOVE = re.compile(r"\*\*\* Move to: (.*\S)[ \t]*\Z")
END_OF_FILE = re.compile(r"\*\*\* End of File[ \t]*\Z")
RANGE = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?(.*)\Z")
HEREDOC = re.compile(r"\s*(?:apply_patch\s+)?<<-?\s*(['\"]?)(\w+)\1[ \t]*\n(.*)\n[ \t]*\2\s*\Z", re.DOTALL)
FENCE = re.compile(r"\s*```[\w-]*[ \t]*\n(.*)\n[ \t]*```\s*\Z", re.DOTALL)
MOST_ANCHORS = 16
"""@@ lines that may follow one another, each inside the block of the one before."""

HEADERS = "*** Add File: PATH, *** Update File: PATH, *** Delete File: PATH"


@dataclass(frozen=True, slots=True)
class Patch:
    """What a patch says: operations and the trail, or a violation."""

    operations: tuple[Operation, ...] = ()
    repairs: tuple[Repair, ...] = ()
    violation: Violation | None = None


class _WrongError(Exception):
    """The text is not a patch; carries the violation."""

    def __init__(self, code: str, message: str, line: int | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        found = None if line is None else f"line {line} of the patch"
        self.violation = Violation(code, "", message, found=found, hint=hint)


@dataclass(slots=True)
class _Reader:
    """The lines of a patch, and where the reader is."""

    lines: list[str]
    at: str
    place: int = 0
    first: int = 1
    repairs: list[Repair] = field(default_factory=list)

    @property
    def more(self) -> bool:
        return self.place < len(self.lines)

    @property
    def line(self) -> str:
        return self.lines[self.place]

    @property
    def number(self) -> int:
        return self.place + self.first

    def repair(self, rule: str, before: str, after: str) -> None:
        self.repairs.append(Repair(rule, self.at, before, after))


def parse(text: str, at: str = "") -> Patch:
    """What a patch in its envelope says.

    Args:
        text: The patch.
        at: JSON Pointer to it in the call.

    Returns:
        Operations, one a file section; or a violation that names the line. A patch without its end is never used: it
        may have been cut off.
    """
    repairs: list[Repair] = []
    body = _unwrapped(text, at, repairs).replace("\r\n", "\n")
    reader = _Reader(body.split("\n"), at, repairs=repairs)
    try:
        _envelope(reader)
        operations: list[Operation] = []
        while reader.more:
            if not reader.line.strip():
                reader.place += 1
                continue
            operations.append(_section(reader, len(operations)))
        if not operations:
            raise _WrongError(
                "empty_patch", "the patch changes no file", hint=f"after *** Begin Patch comes one of {HEADERS}"
            )
    except _WrongError as error:
        return Patch(repairs=tuple(repairs), violation=_at(error.violation, at))
    return Patch(tuple(operations), tuple(repairs))


def parse_operation(kind: str, path: str, diff: str, at: str = "") -> Patch:
    """What one operation of the `apply_patch` built-in tool says.

    Args:
        kind: `create_file`, `update_file` or `delete_file`.
        path: The file.
        diff: V4A text without envelope and file header; for `delete_file` it is not read.
        at: JSON Pointer to the operation in the call.
    """
    reader = _Reader(diff.replace("\r\n", "\n").split("\n"), at)
    if reader.lines and not reader.lines[-1]:
        reader.lines.pop()
    try:
        if kind == "delete_file":
            return Patch((Delete(path, at),))
        if kind == "create_file":
            return Patch((Create(path, _added(reader), at),), tuple(reader.repairs))
        if kind == "update_file":
            return Patch((Modify(path, _chunks(reader, path, at), at=at),), tuple(reader.repairs))
        raise _WrongError("bad_operation", "the operation is not create_file, update_file or delete_file")
    except _WrongError as error:
        return Patch(violation=_at(error.violation, at))


def _at(violation: Violation, at: str) -> Violation:
    return Violation(violation.code, at, violation.message, violation.expected, violation.found, violation.hint)


def _unwrapped(text: str, at: str, repairs: list[Repair]) -> str:
    for pattern, group in ((HEREDOC, 3), (FENCE, 1), (HEREDOC, 3)):
        match = pattern.match(text)
        if match:
            repairs.append(Repair("patch_wrapper", at, text[: match.start(group)].strip()[:80], ""))
            text = match[group]
    return text


def _envelope(reader: _Reader) -> None:
    """Check the first and last line, and leave what is between them."""
    lines = reader.lines
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    last = next((n for n in range(len(lines) - 1, -1, -1) if lines[n].strip()), 0)
    begin, end = MARKER.match(lines[first].strip()), MARKER.match(lines[last].strip())
    if not begin or begin[1].lower() != "begin":
        raise _WrongError(
            "bad_patch", "the first line is not *** Begin Patch", first + 1, hint="begin with *** Begin Patch"
        )
    if first == last or not end or end[1].lower() != "end":
        raise _WrongError(
            "patch_cut", "the last line is not *** End Patch: the patch may have been cut off", hint="send it whole"
        )
    for line, marker in ((lines[first], "*** Begin Patch"), (lines[last], "*** End Patch")):
        if line.strip() != marker:
            reader.repair("patch_marker", line.strip(), marker)
    reader.lines, reader.first = lines[first + 1 : last], first + 2


def _section(reader: _Reader, number: int) -> Operation:
    header = HEADER.match(reader.line)
    if not header:
        raise _WrongError("bad_patch", "this line is no file header", reader.number, hint=f"headers are {HEADERS}")
    kind, path = header.groups()
    reader.place += 1
    if kind == "Delete":
        return Delete(path, reader.at)
    if kind == "Add":
        return Create(path, _added(reader), reader.at)
    to = None
    if reader.more and (move := MOVE.match(reader.line)):
        to = move[1]
        reader.place += 1
    changes = _chunks(reader, path, reader.at)
    if not changes and to is None:
        raise _WrongError("empty_patch", f"the update of {path} changes nothing", reader.number)
    return Modify(path, changes, to, reader.at)


def _is_header(line: str) -> bool:
    return line.startswith("*** ") and not END_OF_FILE.match(line)


def _added(reader: _Reader) -> str:
    rows: list[str] = []
    blank = 0
    while reader.more and not _is_header(reader.line):
        line = reader.line
        if line.startswith("+"):
            if blank:
                reader.repair("patch_blank_line", "", "+")
            rows += [""] * blank + [line[1:]]
            blank = 0
        elif not line.strip():
            blank += 1
        elif END_OF_FILE.match(line):
            pass
        else:
            raise _WrongError("bad_patch", "a line of a new file does not begin with +", reader.number)
        reader.place += 1
    return "".join(row + "\n" for row in rows)


@dataclass(slots=True)
class _Chunk:
    """A chunk that is being read."""

    after: tuple[str, ...] = ()
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    blank: int = 0
    at_end: bool = False


def _chunks(reader: _Reader, path: str, at: str) -> tuple[Lines, ...]:
    _skip_file_header(reader)
    found: list[Lines] = []
    chunk = _Chunk()
    anchors: list[str] = []
    while reader.more and not _is_header(reader.line):
        line = reader.line
        if line.startswith("@@"):
            _close(chunk, found, path, reader)
            if chunk.old or chunk.new:
                anchors = []
            anchor = _anchor(reader, line)
            if anchor:
                anchors.append(anchor)
            if len(anchors) > MOST_ANCHORS:
                raise _WrongError("bad_patch", f"more than {MOST_ANCHORS} @@ lines follow one another", reader.number)
            chunk = _Chunk(tuple(anchors))
        elif END_OF_FILE.match(line):
            chunk.at_end = True
            _close(chunk, found, path, reader)
            chunk, anchors = _Chunk(), []
        elif line.startswith("\\ No newline"):
            reader.repair("patch_end_note", line, "")
        elif not line.strip(" \t") and line[:1] != " ":
            chunk.blank += 1
        else:
            _take(chunk, line, reader)
        reader.place += 1
    _close(chunk, found, path, reader)
    return tuple(found)


def _skip_file_header(reader: _Reader) -> None:
    rows = reader.lines[reader.place : reader.place + 2]
    if len(rows) == 2 and rows[0].startswith("--- ") and rows[1].startswith("+++ "):
        reader.repair("patch_file_header", rows[0], "")
        reader.place += 2


def _anchor(reader: _Reader, line: str) -> str:
    match = RANGE.match(line)
    if match:
        reader.repair("patch_range", line, f"@@ {match[1]}".strip())
        return str(match[1])
    rest = line[2:].strip()
    if rest.endswith("@@"):
        reader.repair("patch_marker", line, f"@@ {rest[:-2].strip()}")
        rest = rest[:-2].strip()
    return rest


def _take(chunk: _Chunk, line: str, reader: _Reader) -> None:
    mark, text = line[0], line[1:]
    if mark not in " +-":
        raise _WrongError(
            "bad_patch",
            "a line of a chunk begins with none of space, + and -",
            reader.number,
            hint="context begins with a space",
        )
    if chunk.blank:
        reader.repair("patch_blank_line", "", " ")
        chunk.old += [""] * chunk.blank
        chunk.new += [""] * chunk.blank
        chunk.blank = 0
    if mark != "+":
        chunk.old.append(text)
    if mark != "-":
        chunk.new.append(text)


def _close(chunk: _Chunk, found: list[Lines], path: str, reader: _Reader) -> None:
    if not chunk.old and not chunk.new:
        return
    after = chunk.after
    if after and chunk.old and chunk.old[0].strip() == after[-1].strip():
        reader.repair("patch_anchor", f"@@ {after[-1]}"[:200], "")
        after = after[:-1]
    where = f"chunk {len(found) + 1} of {path if len(path) <= 80 else '...' + path[-77:]}"
    found.append(Lines(tuple(chunk.old), tuple(chunk.new), after, chunk.at_end, reader.at, where))


GRAMMAR = r"""start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?
hunk: add_file | delete_file | update_file
add_file: "*** Add File: " path LF add_line+
delete_file: "*** Delete File: " path LF
update_file: "*** Update File: " path LF move_to? changes?
move_to: "*** Move to: " path LF
changes: (context | line)+ end_of_file?
context: ("@@" | "@@ " /(.+)/) LF
line: ("+" | "-" | " ") /(.*)/ LF
add_line: "+" /(.*)/ LF
end_of_file: "*** End of File" LF
path: /(.+)/
%import common.LF
"""
"""What a decoder may emit for a patch, in the Lark dialect of constrained decoders."""


def written(operations: Sequence[Operation]) -> str:
    """Operations as a patch, for those that a patch can say: `Create`, `Delete`, and `Modify` with `Lines`.

    Raises:
        ValueError: A patch cannot say it.
    """
    rows = ["*** Begin Patch"]
    for operation in operations:
        if isinstance(operation, Create):
            rows.append(f"*** Add File: {operation.path}")
            rows += ["+" + line for line in operation.text.removesuffix("\n").split("\n")]
        elif isinstance(operation, Delete):
            rows.append(f"*** Delete File: {operation.path}")
        elif isinstance(operation, Modify) and all(isinstance(change, Lines) for change in operation.changes):
            rows.append(f"*** Update File: {operation.path}")
            rows += [f"*** Move to: {operation.to}"] if operation.to else []
            rows += [row for change in operation.changes if isinstance(change, Lines) for row in _rows(change)]
        else:
            raise ValueError("a patch cannot say this")
    return "\n".join([*rows, "*** End Patch", ""])


def _rows(change: Lines) -> list[str]:
    rows = [f"@@ {line}" for line in change.after] or ["@@"]
    old, new = list(change.old), list(change.new)
    front = 0
    while front < min(len(old), len(new)) and old[front] == new[front]:
        front += 1
    back = 0
    while back < min(len(old), len(new)) - front and old[-1 - back] == new[-1 - back]:
        back += 1
    rows += [" " + line for line in old[:front]]
    rows += ["-" + line for line in old[front : len(old) - back]]
    rows += ["+" + line for line in new[front : len(new) - back]]
    rows += [" " + line for line in old[len(old) - back :]]
    return rows + (["*** End of File"] if change.at_end else [])
