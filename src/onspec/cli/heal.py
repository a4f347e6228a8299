"""`onspec heal`: makes a session replayable again."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import click

from onspec.errors import InputError
from onspec.transcripts.heal import RULES, Healed
from onspec.transcripts.heal import heal as run_heal
from onspec.transcripts.session import dumps

FOUND = 1


@click.command(epilog="Exit status: 0 healed or nothing to heal, 1 --check found something, 2 used wrongly.")
@click.argument("session", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Where to write the healed session."
)
@click.option(
    "--in-place", is_flag=True, help="Replace the session; the original is kept beside it first (see --backup)."
)
@click.option(
    "--backup",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the original goes; else SESSION.bak, .bak2 ...",
)
@click.option("--check", is_flag=True, help="Change nothing; say what is wrong, and exit 1 if anything is.")
@click.option("--strip-thinking", is_flag=True, help="Leave out all thinking, as after a change of model.")
@click.option("--force", is_flag=True, help="Overwrite the output.")
@click.option("--json", "as_json", is_flag=True, help="Print what was changed as JSON.")
def heal(
    session: Path,
    output: Path | None,
    in_place: bool,
    backup: Path | None,
    check: bool,
    strip_thinking: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Rewrite a SESSION that providers refuse to take again.

    Mends calls whose arguments were unreadable, ids, names, calls and answers without their partner, unsigned thinking
    and lone surrogates, and nothing else. What was taken out is kept in OUTPUT.raw.jsonl. Writes to SESSION.healed
    where nothing else is said, never over the session without a backup. Pi, Claude Code, Codex, Cline and plain
    OpenAI or Anthropic messages.
    """
    if in_place and output is not None:
        raise InputError("--in-place and --output exclude each other")
    done = run_heal(str(session), strip_thinking=strip_thinking)
    _tell(done, as_json)
    if check:
        sys.exit(FOUND if done.changes else 0)
    if not done.changes:
        return
    target = session if in_place else output or session.with_name(session.name + ".healed")
    if target.exists() and not in_place and not force:
        raise InputError(f"{target} exists; name another file, or use --force")
    if not in_place and target.exists() and target.samefile(session):
        raise InputError("the output is the session itself; use --in-place, which keeps a backup")
    if in_place:
        kept = backup or _free(session)
        if kept.exists():
            raise InputError(f"{kept} exists; name another --backup")
        _write(kept, session.read_bytes())
        click.echo(f"backup: {kept}", err=as_json)
    aside = target.with_name(target.name + ".raw.jsonl")
    lines = "".join(dumps({"rule": c.rule, "line": c.line, "before": c.before}) + "\n" for c in done.changes)
    _write(aside, lines.encode())
    _write(target, done.data)
    click.echo(f"written: {target} (what was there before: {aside})", err=as_json)


def _tell(done: Healed, as_json: bool) -> None:
    if as_json:
        click.echo(dumps({"changes": [{"rule": change.rule, "line": change.line} for change in done.changes]}))
        return
    for rule, number in Counter(change.rule for change in done.changes).most_common():
        click.echo(f"{number} × {rule}: {RULES[rule]}")
    if not done.changes:
        click.echo("nothing to heal")


def _free(session: Path) -> Path:
    for number in range(1, 10_000):
        path = session.with_name(f"{session.name}.bak{'' if number == 1 else number}")
        if not path.exists():
            return path
    raise InputError("there are too many backups beside the session; name one with --backup")


def _write(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all; an existing one keeps its mode."""
    mode = path.stat().st_mode if path.exists() else None
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        if mode is not None:
            os.chmod(name, mode & 0o7777)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
