"""`onspec serve`: a gateway between any agent and any provider, or a scripted provider for tests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from onspec.errors import InputError
from onspec.gateway import config as settings
from onspec.gateway.app import Gateway
from onspec.gateway.config import Config, Upstream
from onspec.gateway.leak import recover_with
from onspec.gateway.server import run, unheard
from onspec.providers import script as scripts
from onspec.providers.scripted import Request, Scripted

DEFAULT_CONFIG = Path("onspec.toml")
SECRET = ("authorization", "x-api-key", "api-key", "cookie", "proxy-authorization", "x-goog-api-key", "x-onspec-token")

OWNERS = {
    "host": ("a gateway", "--local"),
    **dict.fromkeys(("context", "dialect"), ("--local",)),
    **dict.fromkeys(("log", "variables"), ("--script",)),
}
"""What an option goes with, where that is not a gateway alone."""


@click.command()
@click.option("--upstream", metavar="URL", help="The provider's address, without a path such as /v1/messages.")
@click.option("--config", "file", type=click.Path(path_type=Path), help="Settings (onspec.toml here).")
@click.option("--host", help="Address to listen on (127.0.0.1). Anything else needs client tokens in the config.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on (8484); 0 takes a free one.")
@click.option("--policy", type=click.Choice(["strict", "safe", "lenient"]), help="Which repairs are made (safe).")
@click.option("--hold", type=click.Choice(["value", "call"]), help="Hold doubtful values only (value), or whole calls.")
@click.option("--retry", type=click.IntRange(0, 10), help="Ask again for a refused call, at most so often (0).")
@click.option("--shadow", is_flag=True, help="Forward everything untouched and record what would have been done.")
@click.option("--promote", is_flag=True, help="Make a call of call markup that leaked into the text.")
@click.option("--strict", type=click.Choice(["off", "pass"]), help="Remove the tools' strict flags, or pass them.")
@click.option("--db", type=click.Path(path_type=Path), help="Keep counts in this SQLite file.")
@click.option("--keep-payloads", is_flag=True, help="Keep what stood before and after each repair, too.")
@click.option("--otel", is_flag=True, help="Write OpenTelemetry spans.")
@click.option("--local", "model", is_flag=False, flag_value="", help="Be a local model: a name, or a GGUF file.")
@click.option("--context", type=click.IntRange(64), default=8192, help="With --local: tokens of context (8192).")
@click.option("--dialect", help="With --local: the dialect of its calls, where its chat template does not tell.")
@click.option("--script", type=click.Path(path_type=Path), help="Be a scripted provider instead, for tests.")
@click.option("--log", type=click.Path(path_type=Path), help="With --script: append every request to this file.")
@click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="With --script: {{NAME}}.")
def serve(
    file: Path | None, script: Path | None, log: Path | None, variables: tuple[str, ...], port: int | None,
    model: str | None, context: int, dialect: str | None, **given: Any,
) -> None:  # fmt: skip
    """Run a gateway: every tool call that passes keeps its contract.

    Point an agent's base URL at it and change nothing else. The page is at /onspec/, the metrics at /onspec/metrics.

    \b
    onspec serve --upstream https://api.anthropic.com
    ANTHROPIC_BASE_URL=http://127.0.0.1:8484 claude
    onspec serve --local smollm2 --port 8485
    onspec serve --upstream http://127.0.0.1:8485

    Exit status: 0 when it was stopped, 2 when used wrongly, also where the port is taken.
    """
    _refuse_strays(script is not None, model is not None)
    if script is not None:
        return _play(script, port or 0, log, variables)
    if model is not None:
        local = import_module("onspec.cli.serve_local")  # Needs onspec[local], which a gateway does not.
        local.serve_model(model, given["host"] or "127.0.0.1", port, context, dialect)
        return
    run(Gateway(_config(file, port, given), recover_with), _started)


def _refuse_strays(script: bool, local: bool) -> None:
    """An option that means nothing beside the others is a mistake, and not passed over."""
    if script and local:
        raise click.UsageError("--script and --local are two providers: choose one")
    kind = "--script" if script else "--local" if local else "a gateway"
    context = click.get_current_context()
    for option in context.command.params:
        name = str(option.name)
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE or name in ("script", "model", "port"):
            continue
        owners = OWNERS.get(name, ("a gateway",))
        if kind not in owners:
            if owners == ("a gateway",):
                raise click.UsageError(f"{kind} is a provider, not a gateway: give {option.opts[0]} to another one")
            raise click.UsageError(f"{option.opts[0]} goes with {' or '.join(owners)}")


def _started(url: str) -> None:
    click.echo(f"onspec gateway on {url}   page: {url}/onspec/   metrics: {url}/onspec/metrics")


def _config(file: Path | None, port: int | None, given: dict[str, Any]) -> Config:
    if file is None and DEFAULT_CONFIG.is_file():
        file = DEFAULT_CONFIG
    config = settings.load(file) if file is not None else Config()
    if given["upstream"]:
        config = replace(config, upstreams=(Upstream(given["upstream"]),))
    rules = {name: given[name] for name in ("policy", "hold", "retry", "strict") if given[name] is not None}
    rules |= {name: True for name in ("shadow", "promote") if given[name]}
    own: dict[str, Any] = {name: True for name in ("keep_payloads", "otel") if given[name]}
    if given["host"]:
        own["host"] = given["host"]
    if given["db"]:
        own["database"] = given["db"]
    if port is not None:
        own["port"] = port
    return replace(config, rules=replace(config.rules, **rules), **own).checked()


def _play(path: Path, port: int, log: Path | None, variables: tuple[str, ...]) -> None:
    values = {}
    for pair in variables:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--var takes NAME=VALUE, not {pair!r}")
        values[name] = value
    provider = Scripted(scripts.load(path, values), port, _logger(log) if log is not None else None)
    try:
        asyncio.run(_until_signal(provider))
    except OSError as error:
        raise unheard("127.0.0.1", port, error) from None


async def _until_signal(provider: Scripted) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, ended.set)
    async with provider:
        click.echo(f"scripted provider on {provider.url}")
        await ended.wait()


def _logger(path: Path) -> Callable[[Request], None]:
    """Appends requests to a file as lines of JSON, without keys."""

    def write(request: Request) -> None:
        headers = {name: "(removed)" if name in SECRET else value for name, value in request.headers.items()}
        body = request.body if request.body is not None else request.raw.decode("utf-8", "replace")
        line = {"method": request.method, "path": request.path, "headers": headers, "turn": request.turn, "body": body}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    return write
