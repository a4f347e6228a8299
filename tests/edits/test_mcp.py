"""The MCP server, spoken to by the official client over stdio, streamable HTTP and in one process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult

from onspec.cli.mcp import mcp as command
from onspec.edits.mcp import serve_http, server
from onspec.edits.tools import DEFAULT, KINDS, FileTools
from onspec.edits.workspace import Workspace
from onspec.errors import InputError

CALC = b"def add(a, b):\n    return a - b\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "calc.py").write_bytes(CALC)
    return folder


def said(result: Any) -> str:
    assert isinstance(result, CallToolResult)
    (part,) = result.content
    assert part.type == "text"
    return part.text


async def converse(client: Client, root: Path) -> None:
    """One conversation: list, read, mend, refuse, notice a change from outside."""
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(listed) == {KINDS[key].tool.name for key in DEFAULT}
    for name, tool in listed.items():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint == (name == "read")
        assert tool.annotations.open_world_hint is False
        assert tool.input_schema["type"] == "object"
    assert "return a - b" in said(await client.call_tool("read", {"path": "calc.py"}))
    call = {"path": "calc.py", "edits": '[{"oldText":"a - b","newText":"a + b","requireUnique":true}]'}
    done = await client.call_tool("edit", call)
    assert "+    return a + b" in said(done)
    assert not done.is_error
    refused = await client.call_tool("edit", {"path": "../calc.py", "edits": [{"oldText": "a", "newText": "b"}]})
    assert refused.is_error
    assert "out of the root" in said(refused)
    (root / "calc.py").write_bytes(b"# new\n" + CALC)
    stale = await client.call_tool("Edit", {"file_path": "calc.py", "old_string": "a - b", "new_string": "x"})
    assert "changed since" in said(stale)
    half = await client.call_tool("write", {"path": "calc.py", "content": "\\ud83d is text"})
    assert half.is_error
    unknown = await client.call_tool("nope", {})
    assert unknown.is_error
    assert "no tool has this name" in said(unknown)
    assert (root / "calc.py").read_bytes() == b"# new\n" + CALC


def test_stdio(root: Path) -> None:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "onspec", "mcp", "--root", str(root), "--state", str(root.parent / "state")],
    )

    async def run() -> None:
        async with Client(parameters) as client:
            await converse(client, root)

    anyio.run(run)


@pytest.fixture
def address(root: Path) -> Iterator[str]:
    arguments = [sys.executable, "-m", "onspec", "mcp", "--root", str(root), "--http", "0"]
    with subprocess.Popen(
        [*arguments, "--state", str(root.parent / "state")], stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            match = re.search(r"http://\S+/mcp", line)
            assert match, line + process.stderr.read()
            yield match[0]
        finally:
            process.terminate()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_streamable_http(root: Path, address: str, mode: str) -> None:
    async def run() -> None:
        async with Client(address, mode=mode) as client:
            await converse(client, root)

    anyio.run(run)


def test_in_one_process(root: Path) -> None:
    async def run() -> None:
        with Workspace(root, state=root.parent / "state") as workspace:
            async with Client(server(lambda: FileTools(workspace))) as client:
                await converse(client, root)

    anyio.run(run)


def test_free_text_cannot_be_said(root: Path) -> None:
    with Workspace(root, state=root.parent / "state") as workspace, pytest.raises(InputError):
        server(lambda: FileTools(workspace, ["patch_text"]))


def test_only_this_machine_is_served(root: Path) -> None:
    with Workspace(root, state=root.parent / "state") as workspace, pytest.raises(InputError):
        serve_http(lambda: FileTools(workspace), "0.0.0.0", 0)


@pytest.mark.parametrize(
    "arguments",
    [["--tools", "nope"], ["--tools", "patch_text"], ["--tools", ","], ["--http", "x:y"], ["--http", "0.0.0.0:1"]],
)
def test_wrong_use_is_a_clear_line(root: Path, arguments: list[str]) -> None:
    result = CliRunner().invoke(command, ["--root", str(root), *arguments])
    assert isinstance(result.exception, InputError)
