"""`onspec pressure`: the wish of a local model to break a call, token by token."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from onspec.cli.heat import show, show_story
from onspec.cli.history import last_messages, read_history
from onspec.cli.page import look
from onspec.local.arms import ARMS
from onspec.local.demo import run
from onspec.local.models import DEFAULT, open_model
from onspec.local.picture import Arm, document, page
from onspec.local.pressure import Meter, Pressure
from onspec.local.prompt import DIALECT
from onspec.local.quoted import prompt_tokens, quoted
from onspec.local.speech import measured as measured_speech

_SHORT = {"thinking": "without thinking", "failures": "without failed calls"}


@click.command()
@click.argument("history", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-t", "--tools", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Tool definitions.")
@click.option("-n", "--call", "number", default=-1, show_default=True, help="Which call; 0 is the first, -1 the last.")
@click.option("--turns", type=click.IntRange(0), help="Keep only so many messages before the call.")
@click.option("-m", "--model", default=DEFAULT, show_default=True, help="A model by name, or a GGUF file.")
@click.option(
    "--runtime", type=click.Choice(["auto", "xllamacpp", "llama_cpp", "gguf", "transformers"]), default="auto"
)
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(list(_SHORT)),
    help="Measure a second time without the thinking, or without failed calls. Repeatable.",
)
@click.option(
    "--draws",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Also estimate P(valid call) from this many samples.",
)
@click.option("--max-tokens", type=click.IntRange(1), default=256, show_default=True, help="Tokens of one sample.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--context", type=click.IntRange(64), default=4096, show_default=True, help="Tokens of context.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True)
@click.option("--html", "picture", type=click.Path(dir_okay=False, path_type=Path), help="Also write a page.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--demo", "story", is_flag=True, help="Run on a bundled history instead.")
def pressure(
    history: Path | None,
    tools: Path | None,
    number: int,
    turns: int | None,
    model: str,
    runtime: Any,
    without: tuple[str, ...],
    draws: int,
    max_tokens: int,
    seed: int,
    context: int,
    threads: int,
    picture: Path | None,
    as_json: bool,
    story: bool,
) -> None:
    """Measure how likely a local model is to break a call, where, and how.

    HISTORY is a JSON file, a list of messages as OpenAI or Anthropic write them or a whole request with `messages` and
    `tools`; or a session file of an agent, in any format that `onspec scan` reads, whose tools are those recorded in it
    or, for a known agent, those that it calls.

    The model is led along one call of it; at each token the probability of everything that the tool's exact grammar
    forbids there is summed, by cause. At each place where an object could go on, the chance of an invented key is
    computed, and which keys.

    \b
    Examples:
      onspec pressure --demo
      onspec pressure request.json
      onspec pressure request.json --without failures --html pressure.html
      onspec pressure messages.json --tools tools.json --call 2 --draws 30 --json
      onspec pressure session.jsonl --call 4 --turns 6

    Exit status: 0 measured, 2 used wrongly (also where the call itself does not keep its contract).
    """
    console = Console(stderr=False, highlight=False)
    notes = Console(stderr=True, highlight=False)
    if history is None and not story:
        raise click.UsageError("give a HISTORY, or --demo")
    look(picture)
    loaded = None if story or history is None else read_history(history, tools, number)
    with notes.status("opening the model") as status:
        opened = open_model(model, runtime=runtime, capacity=context, threads=threads, told=status.update)
        if loaded is None or history is None:
            result = run(opened, seed=seed, told=lambda line: status.update(line))
            arms = list(result.arms)
        else:
            result = None
            speech = measured_speech(opened)
            notes.print(f"prompt: {speech.how}", style="dim")
            if speech.dialect != DIALECT:
                loaded = read_history(history, tools, number, speech.dialect)
            whole, found = loaded
            cut = last_messages(whole, turns)
            meter = Meter(opened, found, speech.dialect)
            arms = []
            for name in ("as it is", *(_SHORT[word] for word in without)):
                said = quoted(ARMS[name](cut.messages), opened.specials)
                prompt = prompt_tokens(opened, speech.prompt(said, found))

                def progress(what: str, done: int, of: int, name: str = name) -> None:
                    status.update(f"{name}: {what} {done}/{of}")

                measured: Pressure = meter.measure(prompt, cut.call, progress=progress)
                if draws:
                    estimate, _ = meter.valid(prompt, seed, draws=draws, budget=max_tokens, progress=progress)
                    measured = replace(measured, valid=estimate)
                arms.append(Arm(name, measured))
    if picture is not None:
        picture.write_text(page(arms, f"Pressure on a call ({opened.card.name})"), encoding="utf-8")
    if as_json:
        click.echo(document(arms))
    elif result is not None:
        show_story(console, result)
    else:
        for arm in arms:
            show(console, arm)
