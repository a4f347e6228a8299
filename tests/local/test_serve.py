"""A local model on a port: the official client, streamed and not; a client that goes away; behind a gateway."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from click.testing import CliRunner
from openai import BadRequestError, OpenAI

from onspec.cli.serve import serve
from onspec.gateway.app import Gateway
from onspec.gateway.config import Config, Upstream
from onspec.local.chat import Chat
from onspec.local.endpoint import Endpoint
from onspec.local.runtime import Runtime

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "read",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    },
}
MESSAGES: Any = [{"role": "user", "content": "Read a.py"}]


class _Running:
    """An ASGI application on a free port, in a thread."""

    def __init__(self, application: Any) -> None:
        config = uvicorn.Config(application, port=0, log_level="error", ws="none", lifespan="on")
        self.server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self.server.run, daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        while not self.server.started:
            time.sleep(0.01)
        host, port = self.server.servers[0].sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self._thread.join(10)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("times", [1, 2])
def test_being_stopped_is_no_fault(tiny_path: Path, number: int, times: int) -> None:
    """Exit status 0, and one line on standard output: where it listens."""
    command = [sys.executable, "-m", "onspec", "serve", "--local", str(tiny_path), "--port", "0", "--context", "512"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert "http://127.0.0.1:" in running.stdout.readline()
    for _ in range(times):
        running.send_signal(number)
        time.sleep(0.01)
    assert running.communicate(timeout=30) == ("", "")
    assert running.returncode == 0


@pytest.fixture(scope="module")
def chat(fast: Runtime) -> Chat:
    return Chat(fast)


@pytest.fixture(scope="module")
def address(chat: Chat) -> Iterator[str]:
    with _Running(Endpoint(chat, "tiny")) as url:
        yield url


@pytest.fixture(scope="module", params=["alone", "behind a gateway"])
def client(request: pytest.FixtureRequest, address: str) -> Iterator[OpenAI]:
    """The official client, at the model itself and at a gateway before it."""
    if request.param == "alone":
        yield OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
        return
    with _Running(Gateway(Config(upstreams=(Upstream(address),)))) as url:
        yield OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def test_the_models_are_listed(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["tiny"]


def test_a_call_keeps_its_contract(client: OpenAI) -> None:
    done = client.chat.completions.create(
        model="tiny", messages=MESSAGES, tools=[TOOL], tool_choice="required", max_tokens=90, seed=3
    )
    (call,) = done.choices[0].message.tool_calls or []
    assert call.type == "function"
    assert set(json.loads(call.function.arguments)) == {"path"}
    assert done.choices[0].finish_reason in ("tool_calls", "length")
    assert done.usage is not None
    assert done.usage.completion_tokens > 5


def test_a_stream_comes_token_by_token_and_holds_the_same(client: OpenAI) -> None:
    wanted: Any = {"model": "tiny", "messages": MESSAGES, "tools": [TOOL], "tool_choice": "required", "max_tokens": 90,
                   "seed": 3}  # fmt: skip
    whole = client.chat.completions.create(**wanted).choices[0].message
    pieces: list[str] = []
    names: list[str] = []
    for chunk in client.chat.completions.create(**wanted, stream=True):
        for call in (chunk.choices[0].delta.tool_calls or []) if chunk.choices else []:
            assert call.function is not None
            names += [call.function.name] if call.function.name else []
            pieces += [call.function.arguments] if call.function.arguments else []
    assert names == ["read"]
    assert len(pieces) > 5
    assert whole.tool_calls is not None
    assert "".join(pieces) == whole.tool_calls[0].function.arguments  # type: ignore[union-attr]


def test_text_is_streamed_as_it_is_written(client: OpenAI) -> None:
    chunks = client.chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=20, seed=5, stream=True)
    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert len(texts) > 3


def test_a_wrong_request_is_refused_with_a_reason(client: OpenAI) -> None:
    with pytest.raises(BadRequestError, match="does not fit the context"):
        client.chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=100_000, stream=True)
    with pytest.raises(BadRequestError, match="no tool is called"):
        client.chat.completions.create(
            model="tiny", messages=MESSAGES, tools=[TOOL], max_tokens=20,
            tool_choice={"type": "function", "function": {"name": "nope"}},
        )  # fmt: skip


class _Slow:
    """A runtime whose every step takes a while."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.steps = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    def eval(self, tokens: Any, *, every: bool = False) -> Any:
        self.steps += 1
        time.sleep(0.02)
        return self._runtime.eval(tokens, every=every)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_stops_the_model(fast: Runtime, stream: bool) -> None:
    slow: Any = _Slow(fast)
    body = json.dumps({"messages": MESSAGES, "max_tokens": 400, "seed": 1, "stream": stream})
    with _Running(Endpoint(Chat(slow), "tiny")) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as line:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            line.sendall((head + body).encode())
            while slow.steps < 3:
                time.sleep(0.01)
        time.sleep(0.3)
        reached = slow.steps
        time.sleep(0.3)
        assert slow.steps == reached < 100


def test_the_command_says_what_is_wrong() -> None:
    both = CliRunner().invoke(serve, ["--local", "smollm2", "--upstream", "http://127.0.0.1:1"])
    assert both.exit_code == 2
    assert "--local is a provider" in both.output
