"""A gateway and a scripted provider, both running, for tests that speak to them over a socket."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onspec.gateway.app import Gateway
from onspec.gateway.config import Config, Rules, Upstream
from onspec.gateway.server import Server, serving
from onspec.local.history import EDIT_SCHEMA as EDIT
from onspec.providers.script import Block, Script, Turn
from onspec.providers.scripted import Scripted

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
LINES = {
    "type": "object",
    "properties": {"filename": {"type": "string"}, "lines": {"type": "array", "items": {"type": "string"}}},
    "required": ["filename", "lines"],
}
NONE: dict[str, Any] = {"type": "object", "properties": {}}
SCHEMAS = {"get_weather": WEATHER, "edit": EDIT, "make_file": LINES, "now": NONE, "list_files": NONE}


def tools(api: str, schemas: dict[str, Any] = SCHEMAS) -> list[dict[str, Any]]:
    """Tool definitions in the form of one API."""
    if api == "anthropic":
        return [{"name": name, "description": name, "input_schema": schema} for name, schema in schemas.items()]
    made = [{"name": name, "description": name, "parameters": schema} for name, schema in schemas.items()]
    if api == "chat":
        return [{"type": "function", "function": one} for one in made] + [
            {"type": "custom", "custom": {"name": "code_exec"}}
        ]
    return [{"type": "function", "strict": False, **one} for one in made] + [{"type": "custom", "name": "apply_patch"}]


PATHS = {"anthropic": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}


def request(api: str, stream: bool = True, **more: Any) -> dict[str, Any]:
    """A request in the form of one API."""
    said = {"input": "hi"} if api == "responses" else {"messages": [{"role": "user", "content": "hi"}]}
    size = {"max_tokens": 1000} if api == "anthropic" else {}
    return {"model": "m-1", "stream": stream, "tools": tools(api), **said, **size, **more}


def call(name: str, arguments: str, chunk: int = 9, **more: Any) -> Block:
    """A call of a tool with just this text."""
    return Block("tool", arguments, name=name, chunk=chunk, **more)


def says(*blocks: Block, **more: Any) -> Turn:
    """A turn of these blocks."""
    return Turn(tuple(blocks), **more)


@dataclass
class Rig:
    """Both servers, in an event loop of their own."""

    provider: Scripted
    gateway: Gateway
    server: Server
    loop: asyncio.AbstractEventLoop
    task: Any = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The gateway's address."""
        return self.server.url

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the servers' loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)


@contextmanager
def rig(
    script: Script | list[Turn], rules: Rules | None = None, database: Path | None = None, **own: Any
) -> Iterator[Rig]:
    """A gateway before a provider that plays these turns."""
    played = script if isinstance(script, Script) else Script(tuple(script), every=True)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> Rig:
        provider = await Scripted(played).__aenter__()
        upstreams = own.pop("upstreams", (Upstream(provider.url),))
        recover = own.pop("recover", None)
        config = Config(upstreams=upstreams, port=0, rules=rules or Rules(), database=database, **own)
        gateway = Gateway(config, recover)
        server, task = await serving(gateway)
        return Rig(provider, gateway, server, loop, task)

    made = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    try:
        yield made
    finally:

        async def stop() -> None:
            made.server.should_exit = True
            await asyncio.wait_for(made.task, 30)
            await made.provider.__aexit__()

        asyncio.run_coroutine_threadsafe(stop(), loop).result(40)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()
