"""The edit tools as an MCP server, over stdio or streamable HTTP, on the official SDK."""

from __future__ import annotations

import json
import socket
from collections import OrderedDict
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from onspec.contract.tool import Tool
from onspec.edits.tools import Answer, FileTools, Kind
from onspec.errors import InputError, MissingExtra

try:
    import anyio
    import uvicorn
    from anyio import to_thread
    from mcp import types
    from mcp.server import Server, ServerRequestContext
    from mcp.server.stdio import stdio_server
except ImportError as error:
    raise MissingExtra("mcp", "mcp") from error

MOST_SESSIONS = 256
"""Conversations over HTTP whose seen files are remembered; the longest unused goes first."""

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Hosts on which the server may listen: it has no authentication of its own."""

INSTRUCTIONS = (
    "Read and edit files under one folder. Edits are all or nothing, old text must match exactly once, and a refusal "
    "says where to look. A file that was changed by somebody else since you read it has to be read again."
)


def server(new_tools: Callable[[], FileTools]) -> Server[Any]:
    """An MCP server of edit tools.

    Args:
        new_tools: Makes the tools for one conversation. Over stdio there is one; over HTTP one for each session id, and
            one for all calls without.

    Raises:
        InputError: One of the tools takes free text, which MCP cannot say.
    """
    sessions: OrderedDict[str, FileTools] = OrderedDict()
    first = new_tools()
    described = [_described(kind) for kind in first.kinds.values()]

    async def list_tools(
        context: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=described)

    async def call_tool(
        context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tools = _of_session(sessions, first, new_tools, context)
        arguments = json.dumps(params.arguments or {})
        answer: Answer = await to_thread.run_sync(tools.call, params.name, arguments)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=_sendable(answer.text))],
            is_error=answer.is_error,
        )

    return Server(
        "onspec",
        version=version("onspec"),
        title="onspec edit tools",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _of_session(
    sessions: OrderedDict[str, FileTools],
    first: FileTools,
    new_tools: Callable[[], FileTools],
    context: ServerRequestContext[Any, Any],
) -> FileTools:
    headers = getattr(context.request, "headers", None)
    name = headers.get("mcp-session-id") if headers is not None else None
    if name is None:
        return first
    tools = sessions.pop(name, None) or new_tools()
    sessions[name] = tools
    if len(sessions) > MOST_SESSIONS:
        sessions.popitem(last=False)
    return tools


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _described(kind: Kind) -> types.Tool:
    tool: Tool = kind.tool
    if tool.schema is None or not isinstance(tool.schema.document, dict):
        raise InputError(f"{tool.name} takes free text, which MCP cannot say; use its JSON form")
    reads = tool.effect == "read"
    return types.Tool(
        name=tool.name,
        title=kind.title,
        description=tool.description,
        input_schema=tool.schema.document,
        annotations=types.ToolAnnotations(
            title=kind.title,
            read_only_hint=reads,
            destructive_hint=not reads,
            idempotent_hint=kind.idempotent,
            open_world_hint=False,
        ),
    )


def serve_stdio(new_tools: Callable[[], FileTools]) -> None:
    """Serve one client over standard input and output, until it closes them."""

    async def run() -> None:
        made = server(new_tools)
        async with stdio_server() as (reading, writing):
            await made.run(reading, writing, made.create_initialization_options())

    anyio.run(run)


def serve_http(
    new_tools: Callable[[], FileTools], host: str, port: int, announce: Callable[[str], None] = lambda url: None
) -> None:
    """Serve clients over streamable HTTP, until stopped.

    Args:
        new_tools: Makes the tools for one conversation.
        host: This machine, by one of the names in `LOOPBACK`.
        port: The port; 0 is any that is free.
        announce: Told the address once clients can connect to it.

    Raises:
        InputError: The host is not this machine: the server has no authentication. Or the port is in use.
    """
    if host not in LOOPBACK:
        raise InputError(f"{host} is not this machine; the server has no authentication, so put a proxy before it")
    app = server(new_tools).streamable_http_app(host=host)
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise InputError(f"cannot listen at {host}:{port}: {error.strerror}") from None
    with listening:
        shown = f"[{host}]" if ":" in host else host
        announce(f"http://{shown}:{listening.getsockname()[1]}/mcp")
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
