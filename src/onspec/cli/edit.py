"""`onspec edit`: the edit engine from a shell."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from onspec.audit import Repair, Violation
from onspec.edits.answer import diff as unified
from onspec.edits.answer import refusal
from onspec.edits.tools import KINDS, Answer, FileTools
from onspec.edits.workspace import Done, Workspace
from onspec.errors import InputError

MARKS = (
    ("edits", "nested"),
    ("old_string", "flat"),
    ("command", "text_editor"),
    ("input", "patch"),
    ("content", "write"),
)
"""A key of the call, and the tool it is a call of."""

SHAPE = {"file_path": "flat", "oldText": "flat", "new_string": "flat", "operation": "patch_operation", "patch": "patch"}


def _options(command: Any) -> Any:
    for option in (
        click.option(
            "--root",
            default=".",
            type=click.Path(exists=True, file_okay=False),
            help="Folder of the files; else this one.",
        ),
        click.option(
            "--tool",
            "key",
            type=click.Choice([k for k in KINDS if k != "read"]),
            help="Kind of call; else told by its keys.",
        ),
        click.option("--encoding", help="Encoding of files that do not say theirs."),
        click.option("--exact", is_flag=True, help="Match exactly only; no looser rules."),
        click.option(
            "--state", type=click.Path(file_okay=False), help="Folder for the undo history; else the user's own."
        ),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
    ):
        command = option(command)
    return command


@click.group()
def edit() -> None:
    """Apply, preview or take back edits that cannot leave a file half changed.

    A call is the JSON that a model wrote for an edit tool, or a patch text (*** Begin Patch).

    Exit status: 0 when it was done, 1 when it was refused and nothing was changed, 2 when used wrongly.
    """


@edit.command()
@click.argument("call", type=click.File("rb"), default="-")
@_options
def apply(call: Any, **options: Any) -> None:
    """Do what CALL says: all of it or nothing. CALL is a file, or - for standard input."""
    _run(call.read(), dry_run=False, **options)


@edit.command()
@click.argument("call", type=click.File("rb"), default="-")
@_options
def diff(call: Any, **options: Any) -> None:
    """Print what CALL would do as a unified diff, and write nothing. CALL is a file, or - for standard input."""
    _run(call.read(), dry_run=True, **options)


@edit.command()
@click.argument("path", required=False)
@click.option(
    "--root", default=".", type=click.Path(exists=True, file_okay=False), help="Folder of the files; else this one."
)
@click.option("--list", "listed", is_flag=True, help="List what can be taken back, the newest first.")
@click.option("--state", type=click.Path(file_okay=False), help="Folder for the undo history; else the user's own.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def undo(path: str | None, root: str, listed: bool, state: str | None, as_json: bool) -> None:
    """Take back the last edit of PATH, or of all.

    It is taken back whole, and only where nothing changed since.
    """
    with Workspace(root, state=state) as workspace:
        if listed:
            _list(workspace, as_json)
            return
        done = workspace.undo(path)
    _say(Answer("", not done.ok, done.repairs, done.violations, done), as_json, dry_run=False)


def _run(
    written: bytes,
    dry_run: bool,
    root: str,
    key: str | None,
    encoding: str | None,
    exact: bool,
    state: str | None,
    as_json: bool,
) -> None:
    key = key or _told_by_keys(written)
    with Workspace(root, state=state, loose=not exact) as workspace:
        for problem in workspace.problems:
            click.echo(f"onspec: {problem}", err=True)
        tools = FileTools(workspace, [key], encoding=encoding)
        answer = tools.call(KINDS[key].tool.name, written, dry_run=dry_run)
    _say(answer, as_json, dry_run)


def _told_by_keys(written: bytes) -> str:
    text = written.decode("utf-8", "replace")
    if not text.strip():
        raise InputError("the call is empty")
    if not text.lstrip().startswith("{"):
        return "patch_text"
    try:
        value = json.loads(text)
    except ValueError:
        raise InputError("the call is not JSON; say with --tool what it is a call of") from None
    for mark, key in (*MARKS, *SHAPE.items()):
        if isinstance(value, dict) and mark in value:
            return key
    raise InputError("the call is of no tool that is known; say which with --tool")


def _say(answer: Answer, as_json: bool, dry_run: bool) -> None:
    done = answer.done or Done(violations=answer.violations)
    if as_json:
        click.echo(json.dumps(_document(answer, done, dry_run), indent=1))
    elif answer.is_error:
        click.echo(answer.text or refusal(answer.violations), err=True)
    else:
        for repair in answer.repairs:
            click.echo(f"onspec: {repair.rule} {repair.path}".rstrip(), err=True)
        for note in done.notes:
            click.echo(f"onspec: {note}", err=True)
        click.echo(_printable(unified(done.changes)), nl=False)
    if answer.is_error:
        sys.exit(1)


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _document(answer: Answer, done: Done, dry_run: bool) -> dict[str, Any]:
    return {
        "status": "refused" if answer.is_error else "would be done" if dry_run else "done",
        "files": [
            {
                "path": _printable(change.path),
                "action": _action(change.before, change.after),
                "version": (done.versions or {}).get(change.path),
            }
            for change in done.changes
        ],
        "repairs": [_plain(repair) for repair in answer.repairs],
        "violations": [_plain(violation) for violation in answer.violations],
        "notes": list(done.notes),
        "diff": _printable(unified(done.changes)),
        "undo": done.undo,
    }


def _plain(row: Repair | Violation) -> dict[str, Any]:
    return asdict(row)


def _action(before: bytes | None, after: bytes | None) -> str:
    return "create" if before is None else "delete" if after is None else "edit"


def _list(workspace: Workspace, as_json: bool) -> None:
    entries = workspace.history()
    if as_json:
        rows = [{"id": one.id, "when": one.when, "files": [_printable(f.path) for f in one.files]} for one in entries]
        click.echo(json.dumps(rows, indent=1))
        return
    for one in entries:
        when = datetime.fromtimestamp(one.when).astimezone().isoformat(" ", "seconds")
        click.echo(f"{when}  {', '.join(_printable(file.path) for file in one.files)}")
    if not entries:
        click.echo("nothing to take back", err=True)
