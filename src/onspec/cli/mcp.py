"""`onspec mcp`: the edit tools for any agent that speaks MCP."""

from __future__ import annotations

import click

from onspec.edits import mcp as mcp_server
from onspec.edits.tools import DEFAULT, KINDS, FileTools
from onspec.edits.workspace import Workspace
from onspec.errors import InputError

FREE = ("patch_text",)
"""Kinds that take free text, which MCP cannot say."""


@click.command(
    epilog="Tools: " + ", ".join(f"{key} ({kind.tool.name})" for key, kind in KINDS.items() if key not in FREE)
)
@click.option(
    "--root",
    required=True,
    type=click.Path(exists=True, file_okay=False),
    help="The folder that may be read and edited; no path leads out of it.",
)
@click.option(
    "--tools", default=",".join(DEFAULT), show_default=True, help="Which tools to offer, by key, with commas."
)
@click.option("--http", "address", metavar="[HOST:]PORT", help="Serve streamable HTTP at /mcp instead of stdio.")
@click.option("--exact", is_flag=True, help="Match exactly only; no looser rules.")
@click.option("--require-read", is_flag=True, help="Refuse to change a file that the client has not read.")
@click.option("--encoding", help="Encoding of files that do not say theirs.")
@click.option("--state", type=click.Path(file_okay=False), help="Folder for the undo history.")
def mcp(
    root: str,
    tools: str,
    address: str | None,
    exact: bool,
    require_read: bool,
    encoding: str | None,
    state: str | None,
) -> None:
    """Serve the edit tools over MCP: on stdio, or over streamable HTTP on this machine.

    Every edit is all or nothing and survives a crash; old text must match exactly once; a file that was changed since
    the client read it is not edited. The client starts the server, for example with

        {"command": "onspec", "args": ["mcp", "--root", "/path/to/project"]}

    Exit status: 0 when the client went away, 2 when used wrongly.
    """
    keys = [key.strip() for key in tools.split(",") if key.strip()]
    if not keys:
        raise InputError("--tools names no tool")
    if any(key in FREE for key in keys):
        raise InputError("patch_text takes free text, which MCP cannot say; use patch")
    with Workspace(root, state=state, loose=not exact) as workspace:
        for problem in workspace.problems:
            click.echo(f"onspec: {problem}", err=True)

        def new_tools() -> FileTools:
            return FileTools(workspace, keys, require_read=require_read, encoding=encoding)

        new_tools()
        if address is None:
            mcp_server.serve_stdio(new_tools)
        else:
            host, port = _address(address)
            mcp_server.serve_http(new_tools, host, port, lambda url: click.echo(f"serving {root} at {url}", err=True))


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise InputError(f"{text} is not [HOST:]PORT")
    return host.strip("[]") or "127.0.0.1", int(port)
