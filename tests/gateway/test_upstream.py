"""The provider's side: TLS, HTTP/2 where it is offered, proxies, HEAD, connections that are kept and that die."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h2.config
import h2.connection
import h2.events
import httpx2
import pytest

from onspec.errors import InputError
from onspec.gateway.config import Config, Upstream
from onspec.gateway.upstream import Client, UpstreamError, split
from onspec.providers.script import Script
from tests.gateway.rig import PATHS, call, request, rig, says
from tests.gateway.samples import encoded
from tests.gateway.test_rewrite import GOOD, read

REPLY = encoded("anthropic", says(call("edit", GOOD)))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost, with its key in the same file."""
    folder = tmp_path_factory.mktemp("tls")
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "cert")]
    subprocess.run([*made, *names, *files], check=True, capture_output=True)
    (folder / "both").write_text((folder / "key").read_text() + (folder / "cert").read_text())
    return folder / "both"


@asynccontextmanager
async def tls_server(certificate: Path, protocols: list[str], seen: list[str]) -> AsyncIterator[int]:
    """A provider on TLS that speaks what was agreed on, and streams one reply in small pieces."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        agreed = writer.get_extra_info("ssl_object").selected_alpn_protocol() or "none"
        seen.append(agreed)
        await (_http2(reader, writer) if agreed == "h2" else _http1(reader, writer))
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(protocols)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _http1(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while head := await reader.readuntil(b"\r\n\r\n"):
        size = next(
            (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")), 0
        )
        await reader.readexactly(size)
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(REPLY) + REPLY
        )
        await writer.drain()


async def _http2(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    wire = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    wire.initiate_connection()
    writer.write(wire.data_to_send())
    while data := await reader.read(65536):
        for event in wire.receive_data(data):
            if isinstance(event, h2.events.StreamEnded):
                assert event.stream_id is not None
                wire.send_headers(event.stream_id, [(":status", "200"), ("content-type", "text/event-stream")])
                for index in range(0, len(REPLY), 100):
                    wire.send_data(event.stream_id, REPLY[index : index + 100])
                wire.end_stream(event.stream_id)
        writer.write(wire.data_to_send())


@pytest.mark.parametrize("protocols", [["h2", "http/1.1"], ["http/1.1"], []])
def test_tls_and_what_it_agrees_on(certificate: Path, protocols: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP/2 where the provider offers it, else HTTP/1.1; the same reply, and connections are kept."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    seen: list[str] = []

    async def ask() -> list[bytes]:
        async with tls_server(certificate, protocols, seen) as port:
            client = Client(5, 5)
            got = []
            for _ in range(3):
                head = [(b"host", b"localhost"), (b"content-length", b"2")]
                answer = await client.send("POST", f"https://localhost:{port}/v1/messages", head, b"{}")
                got.append(b"".join([chunk async for chunk in answer.decoded()]))
                await answer.close()
            await client.close()
            return got

    assert asyncio.run(ask()) == [REPLY] * 3
    expected = protocols[0] if protocols else "none"
    assert set(seen) == {expected}
    assert len(seen) == (2 if expected == "h2" else 1)  # the first one only asked what is spoken


def test_a_certificate_nobody_knows_is_refused(certificate: Path) -> None:
    """An unknown certificate is a provider that cannot be reached, on either protocol."""

    async def ask() -> None:
        async with tls_server(certificate, ["http/1.1"], []) as port:
            client = Client(5, 5)
            try:
                await client.send("POST", f"https://localhost:{port}/", [(b"host", b"localhost")], b"")
            finally:
                await client.close()

    with pytest.raises(UpstreamError):
        asyncio.run(ask())


def test_proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the environment names a proxy, the provider is asked through it."""
    with rig([]) as proxy:
        proxy.provider.script = Script((says(call("edit", GOOD)),), every=True, loop=True)
        monkeypatch.setenv("HTTP_PROXY", proxy.provider.url)
        monkeypatch.setenv("http_proxy", proxy.provider.url)
        monkeypatch.setenv("NO_PROXY", "")
        monkeypatch.setenv("no_proxy", "")
        with rig([], upstreams=(Upstream("http://provider.invalid"),)) as r, httpx2.Client(trust_env=False) as client:
            answer = client.post(r.url + PATHS["anthropic"], json=request("anthropic"))
            assert list(read("anthropic", answer.content)[0].values()) == [GOOD]
        assert proxy.provider.requests[-1].path == "http://provider.invalid/v1/messages"


def test_head_and_odd_answers() -> None:
    """HEAD has no body; a compressed request is understood; connections are used again."""
    with rig(Script((says(call("edit", '{"path": "a", "edits": [], "n": null}')),), every=True, loop=True)) as r:
        assert httpx2.head(r.url + "/v1/models").status_code == 200
        packed = gzip.compress(json.dumps(request("chat")).encode())
        with httpx2.Client() as client:
            for _ in range(5):
                answer = client.post(r.url + PATHS["chat"], content=packed, headers={"content-encoding": "gzip"})
                assert answer.status_code == 200
        assert r.provider.requests[-1].raw == packed
        assert r.provider.most_open <= 2


def test_a_kept_connection_that_died_is_replaced() -> None:
    """The provider closed an idle connection: the next request goes out on a new one and is answered."""
    with rig(Script((says(call("now", "{}")),), every=True, loop=True)) as r:
        for _ in range(3):
            assert httpx2.post(r.url + PATHS["chat"], json=request("chat")).status_code == 200

            async def drop() -> None:
                for task in tuple(r.provider._tasks):
                    task.cancel()

            r.run(drop())


EVENT = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + STREAM + b"\r\n" + EVENT, 200, EVENT),
        (STREAM + b"\r\n" + EVENT, 200, EVENT),
        (b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + EVENT, 200, EVENT),
        (STREAM + b"transfer-encoding: chunked\r\n\r\nzz\r\n", 200, b"error"),
        (STREAM + b"x: " + b"a" * 400_000 + b"\r\n\r\n", 502, b"error"),
        (STREAM + b"".join(b"x%d: a\r\n" % number for number in range(2000)) + b"\r\n", 502, b"error"),
        (STREAM + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello", 502, b"error"),
        (b"\x00\xff garbage\r\n\r\n", 502, b"error"),
        (b"", 502, b"error"),
        (b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n", 502, b"error"),
        (b"HTTP/1.1 302 Found\r\nlocation: http://elsewhere.invalid/\r\ncontent-length: 0\r\n\r\n", 302, b""),
        (
            STREAM
            + b"content-length: %d\r\n\r\n" % len(EVENT)
            + EVENT
            + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
            200,
            EVENT,
        ),
    ],
)
def test_answers_of_every_kind(answer: bytes, status: int, body: bytes) -> None:
    """Hints before it, no length, two lengths, a huge head, garbage, more than was asked for: well read or refused."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    with rig([]) as r:
        server = r.run(asyncio.start_server(serve, "127.0.0.1", 0))
        port = server.sockets[0].getsockname()[1]
        r.gateway.config = Config(upstreams=(Upstream(f"http://127.0.0.1:{port}"),))
        found = httpx2.post(r.url + PATHS["anthropic"], json=request("anthropic"), timeout=10)
        server.close()
    assert found.status_code == status
    assert body in found.content
    assert b"evil" not in found.content
    assert found.content == body or body == b"error"


@pytest.mark.parametrize(
    ("url", "origin", "target"),
    [
        ("http://a", (False, "a", 80), ""),
        ("https://a/b/c?d=/e", (True, "a", 443), "/b/c?d=/e"),
        ("http://[::1]:8/x", (False, "::1", 8), "/x"),
        ("https://[::1]/x", (True, "::1", 443), "/x"),
        ("http://user:pw@a:9/x", (False, "a", 9), "/x"),
    ],
)
def test_addresses(url: str, origin: Any, target: str) -> None:
    """An address is split into its origin and its target."""
    assert split(url) == (origin, target)


ADDRESSES = [
    ("https://a", "/v1/messages?x=/v1/", "https://a/v1/messages?x=/v1/"),
    ("https://a/", "/v1/messages", "https://a/v1/messages"),
    ("https://a/v1", "/v1/messages", "https://a/v1/messages"),
    ("https://a/v1/", "/v1/chat/completions", "https://a/v1/chat/completions"),
    ("https://a/v1", "/chat/completions", "https://a/v1/chat/completions"),
    ("https://a/api/v1", "/v1/responses", "https://a/api/v1/responses"),
    ("https://a/v1", "/v1beta/models", "https://a/v1/v1beta/models"),
]


@pytest.mark.parametrize(("url", "target", "address"), ADDRESSES)
def test_the_version_in_address_and_path_is_meant_once(url: str, target: str, address: str) -> None:
    """Whether or not the operator writes the `/v1` that the client sends."""
    assert Upstream(url).address(target) == address


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions/", "/responses"])
def test_an_upstream_is_no_path_of_an_api(path: str) -> None:
    """Clients add it; twice it would lead nowhere."""
    with pytest.raises(InputError, match="clients add that"):
        Config(upstreams=(Upstream("https://a" + path),)).checked()


def test_a_route_is_taken_off() -> None:
    """`strip` takes the route off the path, and only there."""
    with rig([], upstreams=()) as r:
        r.gateway.config = Config(
            upstreams=(Upstream(r.provider.url, "/a", strip=True), Upstream(r.provider.url + "/base", "/b"))
        )
        for path in ("/a/echo?x=1", "/a", "/a?y", "/b/echo"):
            httpx2.get(r.url + path)
        assert [seen.path for seen in r.provider.requests] == ["/echo?x=1", "/", "/?y", "/base/b/echo"]
        for path in ("/c", "/ab", "/"):
            assert httpx2.get(r.url + path).status_code == 404
