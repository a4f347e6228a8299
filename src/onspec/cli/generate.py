"""`onspec generate`: one turn of a local model, with tools."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import IO, Any

import click

from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset
from onspec.errors import InputError
from onspec.local.chat import Chat, Reply
from onspec.local.models import DEFAULT, open_model
from onspec.local.prompt import messages_of
from onspec.message import Message, Text


@click.command()
@click.argument("prompt", required=False)
@click.option("--messages", type=click.File("rb"), help="A conversation: a list of messages, or a whole request.")
@click.option("-t", "--tools", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Tool definitions.")
@click.option("-c", "--choice", default="auto", show_default=True, help="auto, required, none, or a tool's name.")
@click.option("-m", "--model", default=DEFAULT, show_default=True, help="A model by name, or a GGUF file.")
@click.option(
    "--runtime", type=click.Choice(["auto", "xllamacpp", "llama_cpp", "gguf", "transformers"]), default="auto"
)
@click.option("--dialect", help="The dialect of the model's calls, where its chat template does not tell.")
@click.option("--free", is_flag=True, help="Do not constrain calls: see what the model would write by itself.")
@click.option("--max-tokens", type=click.IntRange(1), default=256, show_default=True)
@click.option("--temperature", type=click.FloatRange(0), default=0.7, show_default=True)
@click.option("--seed", type=click.IntRange(0), help="Makes the answer repeatable.")
@click.option("--context", type=click.IntRange(64), default=4096, show_default=True, help="Tokens of context.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def generate(
    prompt: str | None,
    messages: IO[bytes] | None,
    tools: Path | None,
    choice: str,
    model: str,
    runtime: Any,
    dialect: str | None,
    free: bool,
    max_tokens: int,
    temperature: float,
    seed: int | None,
    context: int,
    threads: int,
    as_json: bool,
) -> None:
    """One turn of a local model; its tool calls keep their contracts.

    PROMPT is what the user says; or give a whole conversation with --messages.

    \b
    Examples:
      onspec model add smollm2
      onspec generate "Read src/app.py" --tools tools.json --choice required
      onspec generate "Read src/app.py" --tools tools.json --choice required --free

    Exit status: 0 an answer whose calls are all accepted, 1 a call was refused or did not come, 2 used wrongly.
    """
    if (prompt is None) == (messages is None):
        raise click.UsageError("give either a PROMPT or --messages")
    found = load_tools(tools) if tools else []
    history = [Message("user", (Text(prompt),))] if prompt is not None else _read(messages, found)
    chat = Chat(open_model(model, runtime=runtime, capacity=context, threads=threads), dialect)
    reply = chat.reply(
        history, found, choice, budget=max_tokens, temperature=temperature, seed=seed, constrain=not free
    )
    click.echo(json.dumps(_document(reply), ensure_ascii=False, indent=1) if as_json else _told(reply))
    if choice not in ("auto", "none") and not reply.calls:
        click.echo("a call was required, and the model made none", err=True)
        sys.exit(1)
    names = {tool.name for tool in found}
    sys.exit(0 if all(o.ok for o in reply.outcomes) and all(call.name in names for call in reply.calls) else 1)


def load_tools(path: Path) -> list[Tool]:
    """The tools of a file.

    Raises:
        InputError: The file is not JSON.
        ToolFormatError: It holds no tools.
    """
    try:
        return list(Toolset.from_json(json.loads(path.read_bytes())).values())
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
            raise InputError(f"{path} is not JSON: {error}") from None
        raise


def _read(file: IO[bytes] | None, tools: list[Tool]) -> list[Message]:
    assert file is not None
    try:
        document = json.loads(file.read())
    except ValueError as error:
        raise InputError(f"the conversation is not JSON: {error}") from None
    if isinstance(document, dict):
        if not tools and document.get("tools"):
            tools += list(Toolset.from_json(document["tools"]).values())
        document = document.get("messages")
    if not document:
        raise InputError("the conversation holds no message")
    return messages_of(document)


def _told(reply: Reply) -> str:
    lines = [reply.text] if reply.text else []
    for call, outcome in zip(reply.calls, reply.outcomes, strict=False):
        lines.append(f"{call.name} {call.arguments}")
        lines.append(f"  {outcome.status}" + ("" if outcome.ok else f": {outcome.feedback()}"))
    speed = reply.tokens / reply.seconds if reply.seconds else 0.0
    lines.append(f"[{reply.tokens} tokens, {reply.skipped} of them forced, {speed:.0f} a second]")
    return "\n".join(lines)


def _document(reply: Reply) -> dict[str, Any]:
    return {
        "text": reply.text,
        "calls": [
            {"name": call.name, "arguments": call.arguments, "status": outcome.status}
            for call, outcome in zip(reply.calls, reply.outcomes, strict=False)
        ],
        "finish_reason": reply.finish_reason,
        "tokens": reply.tokens,
        "forced": reply.skipped,
        "seconds": round(reply.seconds, 3),
    }
