"""`onspec check`: one call, or a file of calls, against the tool it is for."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import click

from onspec.check import Outcome, check
from onspec.cli.explain import explain
from onspec.contract.known import known
from onspec.contract.tool import EFFECTS, Effect, Tool
from onspec.contract.toolset import Toolset
from onspec.errors import InputError
from onspec.repair.policy import Policy

REFUSED = 1
"""Exit status when a call was refused."""

USED_WRONGLY = 2
"""Exit status when the command, or a line of a batch, cannot be used."""


@click.command("check")
@click.argument("call", type=click.File("rb"), default="-", required=False)
@click.option(
    "-t",
    "--tool",
    "source",
    metavar="FILE|NAME",
    help="The tool: a JSON file (Anthropic, OpenAI Chat, OpenAI Responses, Gemini, MCP, a bare JSON Schema, a list or "
    "a whole request), or a known tool such as pi/edit or claude-code/Edit.",
)
@click.option("-n", "--name", help="Which tool, where the file declares several; found as a model would write it.")
@click.option("--batch", type=click.File("rb"), help='JSON Lines, each {"tool", "schema", "emitted"}; "-" reads stdin.')
@click.option("--policy", type=click.Choice(["strict", "safe", "lenient"]), default="safe", show_default=True)
@click.option("--effect", type=click.Choice(EFFECTS), help="What the tool does, where its definition does not say.")
@click.option("--alias", "aliases", multiple=True, metavar="OTHER=KEY", help="Another spelling of a key. Repeatable.")
@click.option("--finish-reason", help="The provider's stop reason; a call that it cut (length ...) is refused.")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON (with --batch, a line each).")
@click.option("--explain", "explained", is_flag=True, help="Show what was changed, marked in what the model wrote.")
def check_command(
    call: IO[bytes],
    source: str | None,
    name: str | None,
    batch: IO[bytes] | None,
    policy: str,
    effect: Effect | None,
    aliases: tuple[str, ...],
    finish_reason: str | None,
    as_json: bool,
    explained: bool,
) -> None:
    """Check one call of a tool: accepted, repaired with an audit, or refused with feedback for the model.

    CALL is a file with the arguments exactly as the model wrote them; without it they are read from stdin.

    \b
    Examples:
      onspec check --tool edit.json call.json
      echo '{"file_path": "a.py"}' | onspec check --tool pi/read --explain
      onspec check --tool request.json --name edit --json < call.txt
      onspec check --batch calls.jsonl --json

    Exit status: 0 accepted or repaired, 1 refused, 2 used wrongly. With --batch: 0 when no call was refused, 1 when one
    was, 2 when a line could not be used.
    """
    chosen = Policy.named(policy)
    options = _options(effect, aliases)
    if batch is not None:
        if source is not None:
            raise click.UsageError("--batch lines carry their own tool; leave out --tool")
        sys.exit(_batch(batch, chosen, options, as_json))
    if source is None:
        raise click.UsageError("name the tool: --tool FILE or a known one, such as --tool pi/edit")
    tool = _tool(source, name, options)
    if call.isatty():
        click.echo("reading the call from the terminal; end with Ctrl-D", err=True)
    outcome = check(tool, _without_last_newline(call.read()), chosen, finish_reason)
    if as_json:
        click.echo(_document(outcome))
    elif explained:
        explain(outcome)
    else:
        _print(outcome)
    if not outcome.ok:
        sys.exit(REFUSED)


def _options(effect: Effect | None, aliases: tuple[str, ...]) -> dict[str, Any]:
    pairs = dict(alias.partition("=")[::2] for alias in aliases)
    if not all(other and key for other, key in pairs.items()):
        raise click.UsageError("--alias takes OTHER=KEY, such as --alias file=path")
    return {**({"effect": effect} if effect else {}), **({"aliases": pairs} if pairs else {})}


def _without_last_newline(raw: bytes) -> bytes:
    """The call without the one line end that editors and `echo` add behind it."""
    return raw.removesuffix(b"\n").removesuffix(b"\r")


def _tool(source: str, name: str | None, options: dict[str, Any]) -> Tool:
    path = Path(source)
    if not path.exists():
        if path.suffix == ".json" or (len(path.parts) > 2):
            raise InputError(f"{source}: no such file")
        return known(source, **options)
    if path.is_dir():
        raise InputError(f"{source} is a folder, not a file with a tool")
    try:
        definition = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{source} is not JSON: {error}") from None
    if _is_schema(definition):
        return Tool(name or path.stem, definition, **options)
    tools = Toolset.from_json(definition, **options)
    if name is not None:
        match = tools.find(name)
        if match.tool is None:
            raise InputError(f"{source} declares no tool {name!r}; it declares {', '.join(tools) or 'none'}")
        return match.tool
    if not tools:
        raise InputError(f"{source} declares no tool")
    if len(tools) != 1:
        raise InputError(f"{source} declares {len(tools)} tools; choose one with --name: {', '.join(tools)}")
    return next(iter(tools.values()))


def _is_schema(definition: Any) -> bool:
    return isinstance(definition, dict) and definition.get("type") == "object" and "name" not in definition


def _document(outcome: Outcome, **more: Any) -> str:
    return json.dumps({**more, **outcome.to_dict()}, ensure_ascii=True)


def _print(outcome: Outcome) -> None:
    """The outcome in a few lines: arguments on stdout, what was done on stderr."""
    if outcome.ok:
        click.echo(outcome.json)
        click.echo(click.style(outcome.status, fg="green" if outcome.status == "accepted" else "cyan"), err=True)
        for rule, count in Counter(repair.rule for repair in outcome.repairs).items():
            places = [repair.path for repair in outcome.repairs if repair.rule == rule and repair.path]
            times = f" x{count}" if count > 1 else ""
            click.echo(f"  {rule}{times}{' ' + places[0] if places else ''}", err=True)
        return
    click.echo(click.style(outcome.status, fg="yellow"), err=True)
    click.echo(outcome.feedback())


def _batch(lines: IO[bytes], policy: Policy, options: dict[str, Any], as_json: bool) -> int:
    counts: Counter[str] = Counter()
    tools: dict[str, Tool] = {}
    for number, row, problem in _rows(lines):
        outcome = None
        if problem is None:
            try:
                outcome = _judge(row, policy, options, tools)
            except (ValueError, KeyError, TypeError) as error:
                problem = (
                    f"lacks {error}; a row needs tool, schema and emitted"
                    if isinstance(error, KeyError)
                    else str(error)
                )
        if outcome is None:
            counts["unusable"] += 1
            click.echo(f"line {number}: {problem}", err=True)
            continue
        counts[outcome.status] += 1
        label = row.get("id", number)
        if as_json:
            click.echo(_document(outcome, line=number, **({"id": row["id"]} if "id" in row else {})))
        else:
            detail = ", ".join(dict.fromkeys(r.rule for r in outcome.repairs)) or outcome.feedback().replace("\n", " ")
            click.echo(f"{label}  {outcome.status}  {detail}".rstrip())
    total = sum(counts.values())
    click.echo(f"{total} calls: " + ", ".join(f"{counts[k]} {k}" for k in counts) if total else "no calls", err=True)
    return USED_WRONGLY if counts["unusable"] else REFUSED if counts["refused"] else 0


def _rows(lines: IO[bytes]) -> Iterator[tuple[int, dict[str, Any], str | None]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield number, {}, f"not JSON: {error}"
            continue
        if isinstance(row, dict):
            yield number, row, None
        else:
            yield number, {}, "not an object"


def _judge(row: dict[str, Any], policy: Policy, options: dict[str, Any], tools: dict[str, Tool]) -> Outcome:
    key = json.dumps([row["tool"], row["schema"]], sort_keys=True)
    if key not in tools:
        tools[key] = Tool(row["tool"], row["schema"], **options)
    context = row.get("context")
    reason = row.get("finish_reason") or (context.get("finish_reason") if isinstance(context, dict) else None)
    return check(tools[key], row["emitted"], policy, reason)
