"""`onspec wrap`: runs an agent with a gateway between it and its provider."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from onspec.cli.report import show
from onspec.errors import InputError
from onspec.gateway import config as settings
from onspec.gateway.agents import Setting, point
from onspec.gateway.app import Gateway
from onspec.gateway.config import Config
from onspec.gateway.leak import recover_with
from onspec.gateway.record import Record
from onspec.gateway.server import Server, serving
from onspec.gateway.summary import summarise

START_SECONDS = 30


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--config", "file", type=click.Path(path_type=Path), help="Settings, such as onspec.toml.")
@click.option("--policy", type=click.Choice(["strict", "safe", "lenient"]), help="Which repairs are made (safe).")
@click.option("--hold", type=click.Choice(["value", "call"]), help="What is held until it is decided (call).")
@click.option("--retry", type=click.IntRange(0, 10), help="Ask again for a refused call, at most so often (1).")
@click.option("--shadow", is_flag=True, help="Change nothing; only record what would have been done.")
@click.option("--promote", is_flag=True, help="Make a call of call markup that leaked into the text.")
@click.option("--db", type=click.Path(path_type=Path), help="Keep counts in this SQLite file.")
@click.option("--quiet", is_flag=True, help="No summary at the end.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def wrap(command: tuple[str, ...], file: Path | None, quiet: bool, **given: Any) -> None:
    """Run an agent through a gateway of its own.

    \b
    onspec wrap -- claude
    onspec wrap --retry 2 -- codex exec "fix the tests"
    onspec wrap -- python my_agent.py

    Known agents (Claude Code, Codex, Pi, OpenCode, Qwen Code, Cline, Continue) and what is built on the anthropic and
    openai SDKs are pointed at the gateway by variables and copied settings; their own files stay as they are. The exit
    status is the agent's. The summary goes to standard error.
    """
    program = shutil.which(command[0])
    if program is None:
        raise InputError(f"there is no command {command[0]!r}")
    config = settings.load(file) if file is not None else Config()
    rules = replace(config.rules, hold=given["hold"] or "call", retry=1 if given["retry"] is None else given["retry"])
    rules = replace(rules, shadow=rules.shadow or given["shadow"], promote=rules.promote or given["promote"])
    if given["policy"]:
        rules = replace(rules, policy=given["policy"])
    config = replace(config, rules=rules, port=0, host="127.0.0.1", drain_seconds=0)
    config = replace(config, database=given["db"] or config.database)
    with tempfile.TemporaryDirectory(prefix="onspec-wrap-") as folder:
        sys.exit(_run(config, (program, *command[1:]), Path(folder), quiet))


def _run(config: Config, command: tuple[str, ...], folder: Path, quiet: bool) -> int:
    setting = Setting(os.environ, Path.home(), folder, command)
    running = _Running(replace(config, upstreams=tuple(point(setting).upstreams)))
    try:
        pointed = point(replace(setting, gateway=running.url))
        for note in pointed.notes:
            click.echo(f"onspec: {note} ({running.url})", err=True)
        status = _agent(pointed.command, {**os.environ, **pointed.env})
    finally:
        running.stop()
    if not quiet:
        show(summarise(running.records), Console(stderr=True))
    return status


def _agent(command: list[str], env: dict[str, str]) -> int:
    """Run the agent in the foreground. Signals go to it too; it decides when to end."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        agent = subprocess.Popen(command, env=env, preexec_fn=_interruptible if os.name == "posix" else None)
        ending = signal.signal(signal.SIGTERM, lambda *_: agent.terminate())
        try:
            status = agent.wait()
        finally:
            signal.signal(signal.SIGTERM, ending)
    finally:
        signal.signal(signal.SIGINT, before)
    return status if status >= 0 else 128 - status


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class _Running:
    """A gateway in a thread of its own."""

    def __init__(self, config: Config) -> None:
        self.records: list[Record] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="onspec-gateway", daemon=True)
        self._thread.start()
        self._server, self._task = self._in_loop(self._start(config))
        self.url = self._server.url

    async def _start(self, config: Config) -> tuple[Server, asyncio.Task[Any]]:
        gateway = Gateway(config, recover_with)
        gateway.watch.watchers.append(self.records.append)
        return await serving(gateway)

    def _in_loop(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_SECONDS)

    def stop(self) -> None:
        """End it; what is under way is cut short."""

        async def end() -> None:
            self._server.should_exit = True
            await asyncio.wait({self._task}, timeout=8)

        self._in_loop(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
