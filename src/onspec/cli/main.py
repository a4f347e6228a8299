"""The `onspec` command: a table of subcommands, each loaded only when it runs."""

from __future__ import annotations

import codecs
import json
import os
import sys
from importlib import import_module
from io import BytesIO, TextIOWrapper
from typing import Any

import click

from onspec.errors import OnspecError

COMMANDS: dict[str, tuple[str, str]] = {
    # name: (module:attribute, one line of help)
    "demo": ("onspec.cli.demo:demo", "Run broken calls through onspec and compare the outcome with other libraries."),
    "check": ("onspec.cli.check:check_command", "Check one call, or a file of calls, against its tool."),
    "parse": ("onspec.cli.parse:parse", "Read a model's reply: text, thinking, and calls that keep their contracts."),
    "edit": ("onspec.cli.edit:edit", "Apply, preview or take back edits that cannot leave a file half changed."),
    "mcp": ("onspec.cli.mcp:mcp", "Serve the edit tools over MCP, on stdio or HTTP."),
    "scan": ("onspec.cli.scan:scan", "Count off-schema calls in the session files of agents."),
    "pack": ("onspec.cli.pack:pack", "Turn one failed call of a session into a small, redacted reproduction."),
    "unpack": ("onspec.cli.pack:unpack", "Run a packed reproduction through check."),
    "heal": ("onspec.cli.heal:heal", "Rewrite a session that no provider accepts any more."),
    "serve": ("onspec.cli.serve:serve", "Run a gateway between an agent and its provider."),
    "wrap": ("onspec.cli.wrap:wrap", "Run an agent through a gateway of its own."),
    "report": ("onspec.cli.report:report", "Show what a gateway counted."),
    "pressure": ("onspec.cli.pressure:pressure", "Measure how likely a local model is to break a call, and where."),
    "generate": ("onspec.cli.generate:generate", "Chat with tools on a local model, constrained to their contracts."),
    "model": ("onspec.cli.model:model", "Add, list and locate local models."),
}

USAGE = 2
"""Exit status when the command was used wrongly."""


CLOSED = 141
"""Exit status when the reader of the output went away, as of a program that the signal ended."""


class Lazy(click.Group):
    """A group whose subcommands are imported on use, so that `--help` stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would make it a 1, which means a refusal here
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise SystemExit(CLOSED) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="onspec")
def app() -> None:
    """Makes every tool call of a language model keep its contract."""


def main() -> None:
    """Run the command line; a user's mistake is one clear line and exit status 2, never a traceback."""
    _take_any_streams()
    try:
        status = app(standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
        sys.exit(status if isinstance(status, int) else 0)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        click.echo("stopped", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(USAGE)
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # rich has made it a 1
            sys.exit(CLOSED)
        raise
    except (OnspecError, OSError) as error:
        click.echo(f"onspec: {_told(error)}", err=True)
        _flush_or_drop()
        sys.exit(USAGE)


def _take_any_streams() -> None:
    """A closed standard input is an empty one; what the terminal's encoding lacks is shown as an escape of JSON."""
    if sys.stdin is None:
        sys.stdin = TextIOWrapper(BytesIO())
    codecs.register_error("onspec.escape", _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="onspec.escape")


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _flush_or_drop() -> None:
    """Nothing is left to be written at the end: what a full disk did not take would be reported once more."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(error: Exception) -> str:
    """What went wrong; of a file by its name and the system's words, without the number."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror.lower()}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)


if __name__ == "__main__":
    main()
