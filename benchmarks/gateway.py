"""Speed of the gateway beside a bare byte pipe and LiteLLM's proxy, in one run.

    python -m benchmarks.gateway [--quick] [--litellm PATH_TO_LITELLM] [--json FILE]

Everything runs on this machine: a provider that writes the time into every event, the server under test in a process of
its own, and clients that read the clock again. The clock is CLOCK_MONOTONIC, one for all processes. LiteLLM is measured
where `--litellm` names its program, in an environment of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import random
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onspec import Policy, Tool
from onspec.gateway import chat, sse
from onspec.gateway.contracts import ContractCache
from onspec.gateway.rewrite import Rewriter
from onspec.gateway.verdict import judge_with

TOOL = {
    "type": "function",
    "function": {
        "name": "write",
        "description": "Write a file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
            "required": ["path", "text"],
            "additionalProperties": False,
        },
    },
}
STAMP = re.compile(rb"@(\d+)@")
HEAD = (
    "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\n"
    "authorization: Bearer sk-bench\r\ncontent-type: application/json\r\n"
)


# The provider


def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
    """One event of Chat Completions."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    event = {"id": "chatcmpl-b", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [choice]}
    return b"data: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n"


def piece(text: str) -> bytes:
    """A piece of the call's arguments."""
    return chunk({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})


FIRST = chunk({"role": "assistant", "content": ""}) + chunk(
    {"tool_calls": [{"index": 0, "id": "call_b", "type": "function", "function": {"name": "write", "arguments": ""}}]}
)
OPEN, CLOSE = piece('{"path": "a.py", "text": "'), piece('"}')
LAST = chunk({}, "tool_calls") + b"data: [DONE]\n\n"
WHOLE = json.dumps(
    {
        "id": "chatcmpl-b",
        "object": "chat.completion",
        "created": 1,
        "model": "bench",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_b",
                            "type": "function",
                            "function": {"name": "write", "arguments": '{"path": "a.py", "text": "x = 1"}'},
                        }
                    ],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
    }
).encode()
BEFORE, AFTER = piece("#").split(b"#")


async def provider(port: int) -> None:
    """Answers as the model's name says: `bench-EVENTS-MILLISECONDS`, an event about so often with the time in it."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(re.search(rb"(?i)content-length: (\d+)", head)[1])  # type: ignore[index]
                body = json.loads(await reader.readexactly(size))
                if not body.get("stream"):
                    writer.write(
                        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(WHOLE)
                        + WHOLE
                    )
                    await writer.drain()
                    continue
                _, events, milliseconds = body["model"].rsplit("/", 1)[-1].split("-")
                await answer(writer, int(events), int(milliseconds) / 1000)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=4096)
    async with server:
        await server.serve_forever()


async def answer(writer: asyncio.StreamWriter, events: int, pause: float) -> None:
    """One stream."""

    def write(data: bytes) -> None:
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))

    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
    write(FIRST + OPEN)
    for _ in range(events):
        if pause:
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
        write(BEFORE + b"some text @%d@ " % time.monotonic_ns() + AFTER)
        await writer.drain()
    write(CLOSE + LAST)
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def pipe(port: int, target: int) -> None:
    """The least that can stand in between: bytes in, bytes out."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(copy(reader, up_writer), copy(up_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=4096)
    async with server:
        await server.serve_forever()


# The clients


def payload(model: str, stream: bool) -> bytes:
    """A whole request."""
    body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": "write"}], "tools": [TOOL]}
    data = json.dumps(body).encode()
    return f"{HEAD}content-length: {len(data)}\r\n\r\n".encode() + data


async def one_stream(port: int, model: str, late: list[float]) -> bool:
    """Read one stream; how late each event came, in seconds, is added to `late`. Whether it came whole."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
    writer.write(payload(model, True))
    tail = b""
    seen = 0
    try:
        while data := await reader.read(2**20):
            now = time.monotonic_ns()
            tail += data
            last = 0
            for match in STAMP.finditer(tail):
                late.append((now - int(match[1])) / 1e9)
                last = match.end()
                seen += 1
            tail = tail[last:][-65536:]
            if b"[DONE]" in tail:
                return seen == int(model.split("-")[1])
    finally:
        writer.close()
    return False


async def streams(port: int, count: int, model: str) -> tuple[list[float], int]:
    """Many streams at once: how late their events came, and how many did not come whole."""
    late: list[float] = []
    done = await asyncio.gather(*(one_stream(port, model, late) for _ in range(count)), return_exceptions=True)
    return late, sum(result is not True for result in done)


async def requests(port: int, clients: int, seconds: float) -> float:
    """Requests a second, not streamed, over kept-alive connections."""
    data, end, count = payload("bench-0-0", False), time.monotonic() + seconds, 0

    async def client() -> None:
        nonlocal count
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < end:
            writer.write(data)
            head = await reader.readuntil(b"\r\n\r\n")
            size = re.search(rb"(?i)content-length: (\d+)", head)
            if size is not None:
                await reader.readexactly(int(size[1]))
            else:
                while await reader.readuntil(b"\r\n") != b"0\r\n":
                    pass
                await reader.readuntil(b"\r\n")
            if b" 200 " not in head[:20]:
                raise RuntimeError(head.decode("latin-1"))
            count += 1
        writer.close()

    started = time.monotonic()
    await asyncio.gather(*(client() for _ in range(clients)))
    return count / (time.monotonic() - started)


# The servers


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@contextlib.contextmanager
def running(command: list[str], port: int, seconds: float = 90, core: int | None = None) -> Iterator[int]:
    """A server in a process of its own; gives its process id once it listens."""
    pin = ["taskset", "-c", str(core)] if core is not None else []
    process = subprocess.Popen([*pin, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            if process.poll() is not None:
                raise RuntimeError(f"{command[0]} ended with {process.returncode}")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def resident(pid: int) -> float:
    """Resident memory of a process, in MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]


@dataclass
class Speed:
    """One server's figures. Seconds are milliseconds here."""

    name: str
    p50: float = 0.0
    p99: float = 0.0
    failed: int = 0
    requests: float = 0.0
    failed_500: int | None = None
    memory: list[float] = field(default_factory=list)


def percentile(values: list[float], share: float) -> float:
    """A percentile, in milliseconds."""
    return 1000 * sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def measure(name: str, port: int, args: argparse.Namespace) -> Speed:
    """Latency at 50 streams, and requests a second."""
    speed = Speed(name)
    asyncio.run(streams(port, 5, "bench-20-5"))
    late, speed.failed = asyncio.run(streams(port, 50, f"bench-{args.events}-{args.pause}"))
    speed.p50, speed.p99 = percentile(late, 0.5), percentile(late, 0.99)
    asyncio.run(requests(port, 8, 1.0))
    speed.requests = statistics.median(asyncio.run(requests(port, 16, args.seconds)) for _ in range(3))
    return speed


def repair_cost(size: int = 1_000_000, step: int = 1000) -> tuple[float, float]:
    """What a streamed call of a megabyte costs the rewriter in all, conforming and broken, in milliseconds."""
    contracts = ContractCache().of({"tools": [TOOL]})
    text = 'word \\n \\"x\\" ' * (size // 13)
    found = []

    def safe(tool: Tool) -> Policy:
        return Policy.safe()

    for extra in ("", ', "overwrite": null'):
        raw = '{"path": "a.py"' + extra + ', "text": "' + text + '"}'
        data = FIRST + b"".join(piece(raw[index : index + step]) for index in range(0, len(raw), step)) + LAST
        frames = sse.Reader().feed(data)
        costs = []
        for _ in range(8):
            rewriter = Rewriter(chat, contracts, judge_with(safe), policy=safe)  # type: ignore[arg-type]
            started = time.perf_counter()
            out = b"".join([rewriter.feed(frame) for frame in frames]) + rewriter.close(False)
            costs.append(1000 * (time.perf_counter() - started))
            assert (out == data) == (not extra)
        found.append(statistics.median(costs[1:]))
    return found[0], found[1]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--litellm", help="LiteLLM's program, in its own environment")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--target", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role:
        return asyncio.run(provider(args.port) if args.role == "provider" else pipe(args.port, args.target))
    args.events, args.pause, args.seconds = (50, 20, 1.0) if args.quick else (250, 20, 4.0)
    hour = 18_000 if args.quick else 180_000
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    me = [sys.executable, "-m", "benchmarks.gateway"]
    up, port = free_port(), free_port()
    found: list[Speed] = []
    with running([*me, "--role", "provider", "--port", str(up)], up):
        found.append(measure("provider", up, args))
        with running([*me, "--role", "pipe", "--port", str(port), "--target", str(up)], port):
            found.append(measure("byte pipe", port, args))
        port = free_port()
        gateway = [sys.executable, "-m", "onspec", "serve", "--upstream", f"http://127.0.0.1:{up}", "--port", str(port)]
        with tempfile.TemporaryDirectory() as folder, running([*gateway, "--db", f"{folder}/db"], port, core=0) as pid:
            speed = measure("onspec", port, args)
            _, speed.failed_500 = asyncio.run(streams(port, 500, f"bench-{args.events // 5}-100"))
            speed.memory.append(resident(pid))
            for _ in range(4):
                asyncio.run(streams(port, 1, f"bench-{hour // 4}-0"))
                speed.memory.append(resident(pid))
            found.append(speed)
        if args.litellm:
            found.append(litellm(args, up))
    conforming, broken = repair_cost()
    show(found, conforming, broken)
    if args.json:
        figures = {
            "servers": [asdict(speed) for speed in found],
            "megabyte_ms": {"conforming": conforming, "broken": broken},
        }
        args.json.write_text(json.dumps(figures, indent=1) + "\n")


def litellm(args: argparse.Namespace, up: int) -> Speed:
    """LiteLLM's proxy before the same provider."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(
            'model_list:\n  - model_name: "*"\n    litellm_params:\n      model: "openai/*"\n'
            f"      api_base: http://127.0.0.1:{up}/v1\n      api_key: sk-bench\n"
        )
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        os.environ["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"
        with running(
            [args.litellm, "--config", str(config), "--port", str(port), "--host", "127.0.0.1"], port, 180, core=0
        ):
            time.sleep(5)
            return measure("LiteLLM", port, args)


def show(found: list[Speed], conforming: float, broken: float) -> None:
    """Print the figures as a table."""
    base = next(speed for speed in found if speed.name == "byte pipe")
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"{'':10} {'p50 ms':>9} {'p99 ms':>9} {'added p50':>10} {'added p99':>10} {'failed':>7} {'requests/s':>11}")
    for speed in found:
        row = f"{speed.name:10} {speed.p50:9.3f} {speed.p99:9.3f}"
        if speed.name == "provider":
            row += f" {'':10} {'':10}"
        else:
            row += f" {speed.p50 - base.p50:10.3f} {speed.p99 - base.p99:10.3f}"
        print(f"{row} {speed.failed:7} {speed.requests:11.0f}")
    for speed in found:
        if speed.failed_500 is not None:
            memory = ", ".join(f"{size:.1f}" for size in speed.memory)
            print(f"{speed.name}: 500 streams at once on one core, {speed.failed_500} failed")
            print(f"{speed.name}: memory over an hour's events {memory} MiB")
    print(f"a call of 1 MB in 1 kB pieces: {conforming:.1f} ms conforming, {broken:.1f} ms broken, in all")


if __name__ == "__main__":
    main()
