"""`onspec pack` and `onspec unpack`: one failed call as a small, redacted reproduction, and the way back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import orjson

from onspec.audit import Json
from onspec.errors import InputError
from onspec.scan.pack import pack as make_pack
from onspec.scan.pack import pick
from onspec.scan.pack import unpack as run_pack
from onspec.transcripts.reader import load_all
from onspec.transcripts.session import dumps
from onspec.transcripts.source import MAX_DOCUMENT, decode

DIFFERS = 1


@click.command(epilog="Exit status: 0 packed, 2 used wrongly or not to be packed.")
@click.argument("session", type=click.Path())
@click.argument("call")
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Where to write it; else it is printed."
)
@click.option(
    "--keep-text",
    is_flag=True,
    help="Keep words; only what is recognised as private is replaced. Read it before sharing.",
)
@click.option(
    "--history", type=click.IntRange(0, 10_000), default=0, help="Turns before the call to reduce the history from."
)
@click.option(
    "--test",
    "test",
    metavar="COMMAND",
    help="A shell command that gets a candidate on stdin and exits 0 while the fault shows.",
)
@click.option("--force", is_flag=True, help="Overwrite the output.")
def pack(
    session: str, call: str, output: Path | None, keep_text: bool, history: int, test: str | None, force: bool
) -> None:
    """Turn one failed CALL of a SESSION into a small, redacted reproduction.

    CALL is the call's id, or #n for the n-th call of the file, as `onspec scan --json` prints them. The arguments are
    reduced as long as check finds the same fault; paths, names, secrets and words are replaced, the same one always by
    the same stand-in.
    """
    still = None if test is None else _asking(test)
    made = make_pack(*pick(load_all(session), call), keep_text=keep_text, turns=history, still=still)
    text = orjson.dumps(made, option=orjson.OPT_INDENT_2).decode() if _is_plain(made) else dumps(made)
    if output is None:
        click.echo(text)
        return
    if output.exists() and not force:
        raise InputError(f"{output} exists; name another file, or use --force")
    output.write_text(text + "\n", encoding="utf-8")
    click.echo(f"written: {output} ({len(text)} characters; read it before sharing)")


@click.command(epilog="Exit status: 0 the packed fault shows, 1 it does not, 2 used wrongly.")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@click.option(
    "--policy",
    type=click.Choice(["strict", "safe", "lenient"]),
    help="Judge under another policy; nothing is compared then.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def unpack(file: str, policy: str | None, as_json: bool) -> None:
    """Run a packed reproduction through check, and compare with what the pack expects."""
    with click.open_file(file, "rb") as stream:
        raw = stream.read(MAX_DOCUMENT + 1)
    value, reason = decode(raw) if len(raw) <= MAX_DOCUMENT else (None, "too_large")
    if reason:
        raise InputError(f"{file} is no pack: {reason.replace('_', ' ')}")
    ran = run_pack(value, policy)
    if as_json:
        told = {**ran.outcome.to_dict(), "expected": ran.expected, "found": ran.found, "same": ran.same}
        click.echo(dumps(told))
    else:
        click.echo(f"{ran.outcome.status}: {', '.join(ran.found[1:]) or 'nothing to say'}")
        feedback = ran.outcome.feedback()
        if feedback:
            click.echo(feedback)
        if policy is None:
            click.echo("as packed" if ran.same else f"not as packed: {', '.join(ran.expected)}")
    if policy is None and not ran.same:
        sys.exit(DIFFERS)


def _asking(command: str) -> Callable[[dict[str, Json]], bool]:
    """A test that runs the user's command."""

    def still(candidate: dict[str, Json]) -> bool:
        ran = subprocess.run(
            command, shell=True, input=dumps(candidate).encode(), stdout=subprocess.DEVNULL, check=False
        )
        return ran.returncode == 0

    return still


def _is_plain(value: Json) -> bool:
    try:
        orjson.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
