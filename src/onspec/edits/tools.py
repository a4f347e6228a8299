"""The edit tools that agents use, each with its contract and with what it does: all of them over one engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from dataclasses import replace as with_
from types import MappingProxyType
from typing import Any

from onspec.audit import Json, Repair, Violation
from onspec.check import check
from onspec.contract.tool import Effect, Grammar, Tool
from onspec.contract.toolset import Toolset
from onspec.edits.answer import numbered, refusal, told
from onspec.edits.edit import Create, Delete, Insert, Modify, Operation, Replace, Request, Undo, View, Write
from onspec.edits.patch import GRAMMAR, parse, parse_operation
from onspec.edits.text import codec
from onspec.edits.workspace import Content, Done, Workspace
from onspec.errors import InputError
from onspec.repair.policy import Policy

MOST_LINES = 2_000
"""Lines that a look shows at most."""

MOST_CHARACTERS = 60_000
"""Characters that a look shows at most."""

Built = Request | Violation


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of edit tool.

    Attributes:
        tool: Its contract.
        request: From valid arguments to what they ask for.
        title: A short name for people.
        idempotent: Whether doing it twice is the same as doing it once.
    """

    tool: Tool
    request: Callable[[Any], tuple[Built, tuple[Repair, ...]]]
    title: str
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers to one call.

    Attributes:
        text: What the model is told.
        is_error: Whether nothing was done.
        repairs: What was mended in the call, and the looser rules that were used.
        violations: Why nothing was done.
        done: What was done, for an edit.
        version: Version of the file that was read or written, where it is one file.
    """

    text: str
    is_error: bool = False
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Violation, ...] = ()
    done: Done | None = None
    version: str | None = None


def _string(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _object(required: Iterable[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_PATH = _string("The file, relative to the root, or absolute inside it")

_PATHS = {"file_path": "path", "filePath": "path", "file": "path", "filename": "path", "filepath": "path"}
_TEXTS = {
    **dict.fromkeys(("old_string", "oldString", "old_str", "old_text", "old"), "oldText"),
    **dict.fromkeys(("new_string", "newString", "new_str", "new_text", "new"), "newText"),
}
_FLAT = {
    **dict.fromkeys(("path", "filePath", "file", "filename", "filepath"), "file_path"),
    **dict.fromkeys(("oldText", "oldString", "old_str", "old_text", "old"), "old_string"),
    **dict.fromkeys(("newText", "newString", "new_str", "new_text", "new"), "new_string"),
    "replaceAll": "replace_all",
}


def _nested(value: Json) -> tuple[Built, tuple[Repair, ...]]:
    changes = tuple(
        Replace(edit["oldText"], edit["newText"], at=f"/edits/{number}") for number, edit in enumerate(value["edits"])
    )
    return (Modify(value["path"], changes),), ()


def _flat(value: Json) -> tuple[Built, tuple[Repair, ...]]:
    change = Replace(value["old_string"], value["new_string"], bool(value.get("replace_all")))
    return (Modify(value["file_path"], (change,)),), ()


def _write(value: Json) -> tuple[Built, tuple[Repair, ...]]:
    return (Write(value["path"], value["content"]),), ()


def _read(value: Json) -> tuple[Built, tuple[Repair, ...]]:
    return View(value["path"], max(1, int(value.get("offset") or 1)), limit=int(value.get("limit") or MOST_LINES)), ()


def _patch(value: Json) -> tuple[Built, tuple[Repair, ...]]:
    if isinstance(value, Mapping):
        operation = value.get("operation")
        if isinstance(operation, Mapping):
            found = parse_operation(operation["type"], operation["path"], operation.get("diff", ""), "/operation")
        else:
            found = parse(value["input"], "/input")
        return found.violation or found.operations, found.repairs
    text, repairs = _out_of_json(value)
    found = parse(text)
    return found.violation or found.operations, (*repairs, *found.repairs)


def _out_of_json(text: str) -> tuple[str, tuple[Repair, ...]]:
    """A patch that was sent as a JSON object where free text was asked for."""
    if text.lstrip().startswith("{"):
        try:
            value = json.loads(text)
        except ValueError:
            return text, ()
        if isinstance(value, dict) and len(value) == 1:
            (key, inner), *_ = value.items()
            if key in ("input", "patch", "patchText") and isinstance(inner, str):
                return inner, (Repair("patch_wrapper", "", "{" + json.dumps(key) + ": ...}", ""),)
    return text, ()


def _editor(value: Json) -> tuple[Built, tuple[Repair, ...]]:
    command, path = value["command"], value["path"]
    needed = {"create": "file_text", "str_replace": "old_str", "insert": "insert_line"}.get(command)
    if needed and value.get(needed) is None:
        return Violation("missing_required", f"/{needed}", f"{command} needs {needed}"), ()
    if command == "view":
        return _view(path, value.get("view_range")), ()
    if command == "create":
        return (Create(path, value["file_text"]),), ()
    if command == "str_replace":
        return (Modify(path, (Replace(value["old_str"], value.get("new_str") or ""),)),), ()
    if command == "insert":
        text = value.get("insert_text")
        text = value.get("new_str") if text is None else text
        if text is None:
            return Violation("missing_required", "/insert_text", "insert needs insert_text"), ()
        return (Modify(path, (Insert(value["insert_line"], text),)),), ()
    return Undo(path), ()


def _view(path: str, lines: list[int] | None) -> Built:
    if lines is None:
        return View(path)
    first, last = lines
    if first < 1 or (last != -1 and last < first):
        return Violation(
            "out_of_range", "/view_range", "the range is not first and last line, counted from 1", found=str(lines)
        )
    return View(path, first, None if last == -1 else last)


def _kind(
    name: str,
    description: str,
    schema: dict[str, Any] | None,
    request: Callable[[Any], tuple[Built, tuple[Repair, ...]]],
    title: str,
    *,
    aliases: Mapping[str, str] | None = None,
    effect: Effect = "write",
    grammar: Grammar | None = None,
    idempotent: bool = False,
) -> Kind:
    tool = Tool(name, schema, description=description, aliases=aliases, effect=effect, grammar=grammar)
    return Kind(tool, request, title, idempotent)


_EDITOR_SCHEMA = _object(
    ("command", "path"),
    command={"type": "string", "enum": ["view", "create", "str_replace", "insert", "undo_edit"]},
    path=_PATH,
    view_range={
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 2,
        "maxItems": 2,
        "description": "For view: first and last line, counted from 1; -1 is the end of the file",
    },
    file_text=_string("For create: the text of the new file"),
    old_str=_string("For str_replace: text that stands exactly once in the file"),
    new_str=_string("For str_replace: what to put there; left out, the text is deleted"),
    insert_line={
        "type": "integer",
        "minimum": 0,
        "description": "For insert: the line after which to insert; 0 is the top",
    },
    insert_text=_string("For insert: the lines to insert"),
)

_EDITOR_HELP = (
    "View, create and edit text files. create makes a new file only. "
    "str_replace replaces text that must stand exactly once."
)

_PATCH_HELP = (
    "Change files with a patch: *** Begin Patch, then for every file *** Add File: PATH with lines that begin with +, "
    "*** Delete File: PATH, or *** Update File: PATH (with *** Move to: PATH to rename) and chunks of lines that begin "
    "with a space (context), - (old) or + (new), and *** End Patch. The context and old lines of a chunk must stand "
    "exactly once in the file, or once below the line named by @@ LINE. All files change or none."
)

KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "nested": _kind(
            "edit",
            "Replace text in one file. Every oldText must stand exactly once in the file as it is now, and edits must "
            "not overlap. All edits are done or none. Keep oldText short, but unique.",
            _object(
                ("path", "edits"),
                path=_PATH,
                edits={
                    "type": "array",
                    "minItems": 1,
                    "items": _object(
                        ("oldText", "newText"),
                        oldText=_string("Text that stands exactly once in the file"),
                        newText=_string("What to put there"),
                    ),
                },
            ),
            _nested,
            "Edit a file",
            aliases={**_PATHS, **_TEXTS},
        ),
        "flat": _kind(
            "Edit",
            "Replace text in a file. old_string must stand exactly once in it, unless replace_all is true.",
            _object(
                ("file_path", "old_string", "new_string"),
                file_path=_PATH,
                old_string=_string("The text to replace"),
                new_string=_string("What to put there"),
                replace_all={"type": "boolean", "default": False, "description": "Replace every match"},
            ),
            _flat,
            "Edit a file",
            aliases=_FLAT,
        ),
        "text_editor": _kind(
            "str_replace_based_edit_tool",
            _EDITOR_HELP,
            _EDITOR_SCHEMA,
            _editor,
            "View and edit a file",
            aliases={**_PATHS, "old_string": "old_str", "new_string": "new_str"},
        ),
        "text_editor_old": _kind("str_replace_editor", _EDITOR_HELP, _EDITOR_SCHEMA, _editor, "View and edit a file"),
        "patch": _kind(
            "apply_patch",
            _PATCH_HELP,
            _object(("input",), input=_string("The patch")),
            _patch,
            "Apply a patch",
            aliases={"patch": "input", "patchText": "input"},
        ),
        "patch_text": _kind(
            "apply_patch",
            _PATCH_HELP + " The input is the patch itself, not JSON.",
            None,
            _patch,
            "Apply a patch",
            grammar=Grammar("lark", GRAMMAR),
        ),
        "patch_operation": _kind(
            "apply_patch",
            "Create, update or delete one file with a diff in V4A form.",
            _object(
                ("operation",),
                operation=_object(
                    ("type", "path"),
                    type={"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
                    path=_PATH,
                    diff=_string("V4A lines without the envelope"),
                ),
            ),
            _patch,
            "Apply a patch",
        ),
        "write": _kind(
            "write",
            "Write a whole file. A new file is made with its folders; the text of an existing one is replaced, and its "
            "encoding and line ends are kept.",
            _object(("path", "content"), path=_PATH, content=_string("The whole text of the file")),
            _write,
            "Write a file",
            aliases={**_PATHS, "text": "content", "file_text": "content", "contents": "content"},
        ),
        "read": _kind(
            "read",
            "Read a text file with its line numbers, or list a folder. The numbers are not part of the file.",
            _object(
                ("path",),
                path=_PATH,
                offset={"type": "integer", "minimum": 0, "description": "First line to show, counted from 1"},
                limit={"type": "integer", "minimum": 1, "description": f"Most lines to show (at most {MOST_LINES})"},
            ),
            _read,
            "Read a file",
            aliases=_PATHS,
            effect="read",
            idempotent=True,
        ),
    }
)
"""Key -> kind of tool. The keys of `apply_patch` are its JSON form, its free form, and the built-in's operation."""

DEFAULT = ("nested", "flat", "text_editor", "patch", "write", "read")


class FileTools:
    """Edit tools on a workspace, for one conversation.

    The tools remember which version of a file this conversation has seen: a file that somebody else changed since is
    not edited until it is read again.

    Args:
        workspace: Where the files are.
        kinds: Keys of `KINDS`. No two of one name.
        policy: What may be mended in a call; `safe` where None.
        require_read: Whether a file that exists has to be read before it is changed.
        encoding: Encoding of the files, where the caller knows it and they do not say.

    Raises:
        InputError: A key is not one of `KINDS`, two tools have one name, or the encoding cannot be used for editing.
    """

    def __init__(
        self,
        workspace: Workspace,
        kinds: Iterable[str] = DEFAULT,
        *,
        policy: Policy | None = None,
        require_read: bool = False,
        encoding: str | None = None,
    ) -> None:
        if encoding is not None and not codec(encoding):
            raise InputError(f"files cannot be edited in the encoding {encoding!r}")
        self.workspace, self.policy, self.require_read, self.encoding = workspace, policy, require_read, encoding
        self.kinds: dict[str, Kind] = {}
        for key in kinds:
            kind = KINDS.get(key)
            if kind is None:
                raise InputError(f"there is no tool {key!r}; there are {', '.join(KINDS)}")
            if kind.tool.name in self.kinds:
                raise InputError(f"two of the tools have the name {kind.tool.name}")
            self.kinds[kind.tool.name] = kind
        self.toolset = Toolset(kind.tool for kind in self.kinds.values())
        self._seen: dict[str, str] = {}

    def call(
        self,
        name: str,
        arguments: str | bytes | dict[str, Any],
        finish_reason: str | None = None,
        *,
        dry_run: bool = False,
    ) -> Answer:
        """Do what a model asks for.

        Args:
            name: The tool's name as the model wrote it.
            arguments: The arguments exactly as the model wrote them; for a free-form tool the text.
            finish_reason: Why the model stopped, where it is known; a call cut off by the length limit is refused.
            dry_run: Find out what would be done, and write nothing.

        Returns:
            What to tell the model. Never raises for what a model wrote.
        """
        match = self.toolset.find(name)
        if match.tool is None:
            return _refused((match.violation,) if match.violation else ())
        kind = self.kinds[match.tool.name]
        value: Any = arguments
        repairs = match.repairs
        if kind.tool.schema is not None:
            outcome = check(kind.tool, arguments, self.policy, finish_reason)
            repairs += outcome.repairs
            if not outcome.ok:
                return Answer(outcome.feedback(), True, repairs, outcome.violations)
            value = outcome.arguments
        elif isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        request, mended = kind.request(value)
        return self._do(request, repairs + mended, dry_run)

    def _do(self, request: Built, repairs: tuple[Repair, ...], dry_run: bool) -> Answer:
        if isinstance(request, Violation):
            return _refused((request,), repairs)
        if isinstance(request, View):
            return self._look(request, repairs)
        if isinstance(request, Undo):
            if dry_run:
                return _refused((Violation("no_dry_run", "", "an undo cannot be tried"),), repairs)
            done = self.workspace.undo(request.path)
        else:
            operations = request if self.encoding is None else tuple(self._encoded(one) for one in request)
            unseen = not self.require_read
            done = self.workspace.apply(operations, dry_run=dry_run, seen=self._seen, unseen=unseen)
        if done.ok and not dry_run:
            for change in done.changes:
                self._seen.pop(change.path, None)
            self._seen |= done.versions or {}
        versions = list((done.versions or {}).values())
        return Answer(
            told(done, dry_run, repairs),
            not done.ok,
            repairs + done.repairs,
            done.violations,
            done,
            versions[0] if len(versions) == 1 else None,
        )

    def _encoded(self, operation: Operation) -> Operation:
        return operation if isinstance(operation, Delete) else with_(operation, encoding=self.encoding)

    def _look(self, view: View, repairs: tuple[Repair, ...]) -> Answer:
        content = self.workspace.read(view.path, self.encoding)
        if isinstance(content, Violation):
            names = self.workspace.names(view.path) if content.code == "not_a_file" else content
            if isinstance(names, Violation):
                return _refused((content,), repairs)
            listed = names[:MOST_LINES]
            more = [f"... {len(names) - len(listed)} more"] if len(names) > len(listed) else []
            return Answer("\n".join([f"{view.path}: {len(names)} entries", *listed, *more]), repairs=repairs)
        shown = _shown(content, view)
        if isinstance(shown, Violation):
            return _refused((shown,), repairs)
        self._seen[content.path] = content.version
        return Answer(shown, repairs=repairs, version=content.version)


def _shown(content: Content, view: View) -> str | Violation:
    text = content.text
    if b"\0" in text.view:
        return Violation("binary", "", "the file is not text", found=f"{len(text.data)} bytes")
    lines = text.view.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return f"{content.path} is empty (version {content.version})"
    if view.first > len(lines):
        return Violation("out_of_range", "", f"the file has {len(lines)} lines", found=f"line {view.first}")
    most = min(view.limit or MOST_LINES, MOST_LINES)
    last = min(len(lines), view.first - 1 + most, view.last or len(lines))
    rows, size = [], 0
    for row in numbered(lines, view.first - 1, last):
        size += len(row) + 1
        if size > MOST_CHARACTERS:
            break
        rows.append(row)
    last = view.first - 1 + len(rows)
    ends = "CRLF" if b"\r\n" in text.view else "LF"
    head = (
        f"{content.path}: lines {view.first}-{last} of {len(lines)}, {text.encoding}, {ends}, version {content.version}"
    )
    return "\n".join([head, *rows])


def _refused(violations: tuple[Violation, ...], repairs: tuple[Repair, ...] = ()) -> Answer:
    return Answer(refusal(violations), True, repairs, violations)
