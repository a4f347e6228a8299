"""`onspec parse`: a model's reply, read in its dialect."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

import click

from onspec.audit import Repair
from onspec.contract.known import known
from onspec.contract.toolset import Toolset
from onspec.dialects import DIALECTS
from onspec.errors import InputError
from onspec.message import Text, Thinking
from onspec.receive import Event, ReceivedCall, Receiver, Reply
from onspec.repair.policy import Policy

REFUSED = 1
"""Exit status when a call was refused."""

CHUNK = 64 * 1024
"""Bytes read at once; fewer where fewer are there, so that a pipe is shown as it is written."""


@click.command("parse")
@click.argument("reply", type=click.File("rb"), default="-", required=False)
@click.option(
    "-t",
    "--tools",
    "source",
    metavar="FILE|NAME",
    help="The declared tools: a JSON file (a tool, a list, or a whole request, in any provider's form), or known tools "
    "by name, such as pi/edit or claude-code/Edit,claude-code/Read.",
)
@click.option("-d", "--dialect", default="auto", show_default=True, metavar="NAME", help="See --list.")
@click.option("-m", "--model", metavar="NAME", help="The model's name, to choose the dialect by.")
@click.option("--policy", type=click.Choice(["strict", "safe", "lenient"]), default="safe", show_default=True)
@click.option(
    "--thinking",
    type=click.Choice(["open", "closed", "unknown"]),
    help="Whether the reply starts inside reasoning. While it is unknown nothing is certain before the end; say closed "
    "or open to see events early. Without this the dialect decides.",
)
@click.option("--tool-marker-ends-thinking", is_flag=True, help="A call's marker inside open reasoning ends it.")
@click.option("--finish-reason", help="The provider's stop reason; a call that it cut (length ...) is refused.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document; with --stream, one line an event.")
@click.option("--stream", is_flag=True, help="Print each event as soon as it is certain.")
@click.option("--list", "listed", is_flag=True, help="Print the dialects and leave.")
def parse(
    reply: IO[bytes],
    source: str | None,
    dialect: str,
    model: str | None,
    policy: str,
    thinking: Literal["open", "closed", "unknown"] | None,
    tool_marker_ends_thinking: bool,
    finish_reason: str | None,
    as_json: bool,
    stream: bool,
    listed: bool,
) -> None:
    """Read what a model wrote: visible text, thinking, and the calls in it, each held against its tool's contract.

    REPLY is a file with the reply exactly as the model wrote it; without it, it is read from stdin.

    \b
    Examples:
      onspec parse --tools tools.json reply.txt
      onspec parse --tools pi/read,pi/edit reply.txt
      curl ... | onspec parse --tools request.json --dialect harmony --stream --json
      onspec parse --list

    Exit status: 0 when no call was refused, 1 when one was, 2 used wrongly.
    """
    if listed:
        _list(as_json)
        return
    if source is None:
        raise click.UsageError("name the declared tools: --tools FILE, or known ones, such as --tools pi/edit")
    receiver = Receiver(
        _tools(source),
        dialect,
        Policy.named(policy),
        thinking=thinking,
        tool_marker_ends_thinking=tool_marker_ends_thinking or None,
        model=model,
    )
    if reply.isatty():
        click.echo("reading the reply from the terminal; end with Ctrl-D", err=True)
    for piece in _pieces(reply):
        _show(receiver.feed(piece), stream, as_json)
    _show(receiver.close(finish_reason), stream, as_json)
    whole = receiver.reply
    if not stream:
        click.echo(json.dumps(_document(whole), ensure_ascii=False) if as_json else _text(whole))
    elif as_json:
        _line({"event": "end", "status": whole.status, "trail": [_repair(repair) for repair in whole.trail]})
    sys.exit(REFUSED if whole.status == "refused" else 0)


def _pieces(reply: IO[bytes]) -> Iterator[bytes]:
    read = getattr(reply, "read1", reply.read)
    while piece := read(CHUNK):
        yield piece


def _tools(source: str) -> Toolset:
    path = Path(source)
    if not path.exists() and path.suffix != ".json" and len(path.parts) <= 2 * source.count(",") + 2:
        return Toolset(known(name.strip()) for name in source.split(","))
    try:
        definitions = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source} is not JSON: {error}") from None
    if not isinstance(definitions, list | dict):
        raise InputError(f"{source} holds no tool, no list of tools and no request")
    return Toolset.from_json(definitions if isinstance(definitions, list) or "tools" in definitions else [definitions])


def _list(as_json: bool) -> None:
    rows = [{"name": row.name, "models": row.models, "shape": row.shape} for row in DIALECTS.values()]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        click.echo(f"{row['name']:<{width}}  {row['models']}: {row['shape']}")


def _show(events: tuple[Event, ...], stream: bool, as_json: bool) -> None:
    if not stream:
        return
    for event in events:
        if as_json:
            _line(_event(event))
        elif isinstance(event, ReceivedCall):
            click.echo("\n" + _call(event))
        elif isinstance(event, Text):
            click.echo(event.text, nl=False)
        else:
            click.echo(click.style(event.text, dim=True), nl=False)
    sys.stdout.flush()


def _line(document: dict[str, Any]) -> None:
    click.echo(json.dumps(document, ensure_ascii=False))


def _event(event: Event) -> dict[str, Any]:
    if isinstance(event, ReceivedCall):
        return {"event": "call", **_received(event)}
    return {"event": "thinking" if isinstance(event, Thinking) else "text", "text": event.text}


def _received(call: ReceivedCall) -> dict[str, Any]:
    return {
        "name": call.name,
        "tool": call.outcome.tool.name,
        "id": call.id,
        "span": list(call.span),
        "written": call.arguments,
        **call.outcome.to_dict(),
    }


def _document(reply: Reply) -> dict[str, Any]:
    return {
        "status": reply.status,
        "text": reply.text,
        "thinking": reply.thinking,
        "calls": [_received(call) for call in reply.calls],
        "trail": [_repair(repair) for repair in reply.trail],
    }


def _repair(repair: Repair) -> dict[str, Any]:
    return {
        "rule": repair.rule,
        "path": repair.path,
        "before": repair.before,
        "after": repair.after,
        "span": list(repair.span),
    }


def _text(reply: Reply) -> str:
    parts = []
    if reply.thinking.strip():
        parts.append("thinking  " + reply.thinking.strip().replace("\n", "\n          "))
    if reply.text.strip():
        parts.append("text      " + reply.text.strip().replace("\n", "\n          "))
    parts += [_call(call) for call in reply.calls]
    rules = ", ".join(dict.fromkeys(repair.rule for repair in reply.trail))
    if rules:
        parts.append(f"trail     {rules}")
    return "\n".join(parts) or "text      (nothing)"


def _call(call: ReceivedCall) -> str:
    colour = {"accepted": "green", "repaired": "yellow", "refused": "red"}[call.outcome.status]
    head = f"call      {call.outcome.tool.name}  " + click.style(call.outcome.status, fg=colour)
    if call.ok:
        return head + "\n          " + json.dumps(call.outcome.arguments, ensure_ascii=False)
    return head + "\n          " + call.outcome.feedback().replace("\n", "\n          ")
