"""Whatever breaks, the client gets a well-formed end, nothing hangs, and nothing is lost that could be kept."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from onspec.errors import InputError
from onspec.gateway import store
from onspec.gateway.config import Config, Rules, Upstream, load
from onspec.gateway.record import Record
from onspec.providers import anthropic
from onspec.providers.script import Block, Script, Turn
from tests.gateway.rig import PATHS, Rig, call, request, rig, says
from tests.gateway.test_rewrite import GOOD, frames, read

LONG = says(Block("text", "word " * 200, chunk=5), call("edit", GOOD), event_ms=10)


def ask(r: Rig, api: str, stream: bool = True, **more: Any) -> httpx2.Response:
    """One request through the gateway."""
    return httpx2.post(r.url + PATHS[api], json=request(api, stream, **more), timeout=30)


def failed(api: str, data: bytes) -> bool:
    """Whether a stream ends in an error that its reader raises, and holds whole events only."""
    found = frames(data)
    assert b"".join(frame.raw for frame in found) == data
    last = found[-1].json()
    if api == "responses":
        return bool(last["type"] in ("response.failed", "error"))
    return "error" in last


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_provider_that_is_not_there(api: str, stream: bool) -> None:
    """502, in the form of the API, at once."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        upstream = Upstream(f"http://127.0.0.1:{held.getsockname()[1]}")
        with rig([], upstreams=(upstream,)) as r:
            answer = ask(r, api, stream)
            assert answer.status_code == 502
            assert "onspec" in answer.json()["error"]["message"]
            assert httpx2.get(r.url + "/v1/models").status_code == 502


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize(
    "fault",
    [
        {"reset": True, "cut_after_bytes": 700},
        {"cut_after_bytes": 700},
        {"cut_after_events": 7},
        {"reset": True, "cut_after_events": 6},
        {"gzip": True, "cut_after_bytes": 250},
    ],
)
@pytest.mark.parametrize("hold", ["value", "call"])
def test_a_stream_that_breaks(api: str, fault: dict[str, Any], hold: Any) -> None:
    """Reset, closed, inside an event or between two, compressed or not: an error ends the reply."""
    turn = says(Block("text", "Some words first."), call("edit", GOOD), **fault)
    with rig([turn], Rules(hold=hold)) as r:
        answer = httpx2.post(r.url + PATHS[api], json=request(api), headers={"accept-encoding": "gzip"}, timeout=30)
        assert answer.status_code == 200
        assert failed(api, answer.content)


@pytest.mark.parametrize("api", PATHS)
def test_a_provider_that_goes_silent(api: str) -> None:
    """After the time set, an error; before the first byte a 504."""
    with rig([says(Block("text", "Hm"), stall=True, cut_after_events=2), says(delay_ms=3000)], read_seconds=0.4) as r:
        assert failed(api, ask(r, api).content)
        assert ask(r, api).status_code == 504


@pytest.mark.parametrize("api", PATHS)
def test_a_whole_reply_that_breaks(api: str) -> None:
    """A body cut short or not compressed as it says is a 502 in the form of the API."""
    body = says(call("edit", GOOD))
    turns = [
        Turn(body.blocks, cut_after_bytes=50),
        Turn(body.blocks, gzip=True, cut_after_bytes=50),
        Turn(body.blocks, headers={"content-encoding": "gzip"}),
    ]
    with rig(turns) as r:
        for _ in turns:
            answer = ask(r, api, stream=False)
            assert answer.status_code == 502
            assert answer.json()["error"]


def test_errors_pass_with_their_headers() -> None:
    """429 and 529 keep their body and their retry-after."""
    turns = [
        Turn(
            status=code,
            error={"type": "error", "error": {"type": "x", "message": str(code)}},
            headers={"retry-after": "7"},
        )
        for code in (400, 429, 529)
    ]
    with rig(turns) as r:
        for turn in turns:
            answer = ask(r, "anthropic")
            assert (answer.status_code, answer.json(), answer.headers["retry-after"]) == (turn.status, turn.error, "7")


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", "text/event-stream"])
def test_a_stream_under_another_content_type_is_a_stream(kind: str) -> None:
    """A reply to a request for a stream is read as one, whatever it calls itself."""
    broken = '{"path": "a", "edits": [{"oldText": "x", "newText": "y", "n": null}]}'
    with rig([says(call("edit", broken), headers={"content-type": kind})]) as r:
        answer = ask(r, "anthropic")
        assert answer.headers["content-type"] == kind
        assert json.loads(read("anthropic", answer.content)[0][0]) == {
            "path": "a",
            "edits": [{"oldText": "x", "newText": "y"}],
        }


@pytest.mark.parametrize(
    "data",
    [
        b"<html>busy</html>",
        b"",
        b"\xff\xfe\x00",
        b"data: \xff\xfe\n\n: x\n\ndata: [1,\n\n",
        b"event: a\r\ndata: {}\r\n\r\n",
        b"{" * 5000,
    ],
)
@pytest.mark.parametrize("api", PATHS)
def test_bytes_that_are_no_reply_pass_as_they_are(data: bytes, api: str) -> None:
    """What is not in the API's form is not ours to judge."""
    with rig([Turn(raw=data), Turn(raw=data)]) as r:
        assert ask(r, api, stream=False).content == data
        streamed = ask(r, api).content
        assert streamed == data or (failed(api, streamed) and not data.endswith(b"\n"))
        assert streamed  # an empty stream would leave the client without an end


def test_bad_utf8_in_a_call() -> None:
    """Text that is not UTF-8 passes outside of calls; inside of one the call is refused and passes as it came."""
    turn = says(Block("text", "T"), call("edit", GOOD.replace("a.py", "Q")))
    with rig([]) as r:
        for old, refused in ((b'"text": "T"', False), (b'\\"Q\\"', True)):
            with httpx2.stream("POST", r.provider.url + PATHS["anthropic"], json=request("anthropic")) as direct:
                direct.read()
            del r.provider.requests[:]
            from_wire = b"".join(frame for frame in _raw(turn))
            data = from_wire.replace(old, old.replace(b"T", b"\xff").replace(b"Q", b"\xff"))
            assert data != from_wire
            r.provider.script = Script((Turn(raw=data),), every=True, loop=True)
            out = ask(r, "anthropic").content
            assert b"\xff" in out
            assert (b": onspec refused" in out) == refused


def _raw(turn: Turn) -> list[bytes]:
    from_turn = []
    for name, data in anthropic.events(turn, {}, "x"):
        from_turn.append(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
    return from_turn


def wait(until: Any, seconds: float = 20.0) -> bool:
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if until():
            return True
        time.sleep(0.02)
    return bool(until())


@pytest.mark.parametrize("hold", ["value", "call"])
def test_a_client_that_leaves_takes_the_provider_with_it(hold: Any) -> None:
    """The provider's side is closed at once, in the middle of a stream and before its first byte."""
    with rig(Script((LONG,), every=True, loop=True), Rules(hold=hold)) as r:
        with httpx2.stream("POST", r.url + PATHS["anthropic"], json=request("anthropic")) as answer:
            next(answer.iter_raw())
        assert wait(lambda: r.provider.vanished == 1)
        assert wait(lambda: r.gateway.metrics.active == 0)
        r.provider.script = Script((says(delay_ms=20_000),), every=True, loop=True)
        with pytest.raises(httpx2.TimeoutException):
            httpx2.post(r.url + PATHS["chat"], json=request("chat"), timeout=0.3)
        assert wait(lambda: r.gateway.metrics.active == 0)
        assert ask_models(r) == 200


def ask_models(r: Rig) -> int:
    """Whether the gateway still answers."""
    return httpx2.get(r.url + "/v1/models").status_code


def test_two_thousand_clients_at_once() -> None:
    """Every one gets its whole, mended reply."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20_000), hard))
    count = 2000 if hard >= 12_000 else hard // 6
    broken = '{"path": "a", "edits": [{"oldText": "x", "newText": "y", "n": null}]}'
    payload = json.dumps(request("anthropic")).encode()
    head = (
        f"POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(payload)}\r\n\r\n".encode()
    )

    async def one(port: int, gate: asyncio.Event) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await gate.wait()
        writer.write(head + payload)
        data = await reader.read()
        writer.close()
        return data

    async def everyone(port: int) -> list[bytes]:
        gate = asyncio.Event()
        tasks = [asyncio.ensure_future(one(port, gate)) for _ in range(count)]
        await asyncio.sleep(1)
        gate.set()
        return await asyncio.gather(*tasks)

    try:
        with rig(Script((says(call("edit", broken, 30), event_ms=1),), every=True, loop=True)) as r:
            answers = asyncio.run(everyone(int(r.url.rsplit(":", 1)[1])))
            assert (
                sum(b"message_stop" in data and b"200 OK" in data and b'\\"n\\"' not in data for data in answers)
                == count
            )
            assert r.gateway.metrics.calls["m-1", "anthropic", "edit", "repaired"] == count
            assert wait(lambda: r.gateway.metrics.active == 0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(("drain", "whole"), [("20", True), ("0.3", False)])
def test_sigterm_lets_replies_end(tmp_path: Path, drain: str, whole: bool) -> None:
    """A reply under way ends by itself within the drain time, else with an error; new clients are turned away."""
    (tmp_path / "script.json").write_text(
        json.dumps(
            {
                "every": True,
                "loop": True,
                "turns": [
                    {
                        "event_ms": 20,
                        "blocks": [
                            {"type": "text", "text": "word " * 20, "chunk": 5},
                            {"type": "tool", "name": "edit", "args": GOOD},
                        ],
                    }
                ],
            }
        )
    )
    provider = _start(["serve", "--script", str(tmp_path / "script.json")])
    url = _url(provider)
    (tmp_path / "onspec.toml").write_text(f'[gateway]\ndrain_seconds = {drain}\ndatabase = "{tmp_path}/db.sqlite"\n')
    gateway = _start(["serve", "--upstream", url, "--config", str(tmp_path / "onspec.toml"), "--port", "0"])
    try:
        base = _url(gateway)
        with httpx2.stream("POST", base + PATHS["anthropic"], json=request("anthropic"), timeout=30) as answer:
            parts = []
            for chunk in answer.iter_raw():
                parts.append(chunk)
                if len(parts) == 3:
                    gateway.send_signal(signal.SIGTERM)
        data = b"".join(parts)
        assert (b"message_stop" in data) == whole
        assert failed("anthropic", data) != whole
        assert gateway.wait(20) in (0, -signal.SIGTERM)
        assert len(store.read(tmp_path / "db.sqlite")) == int(whole)
    finally:
        for process in (gateway, provider):
            process.kill()
            process.wait()


def _start(arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "onspec", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def _url(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    return next(word for word in line.split() if word.startswith("http"))


RECORD = Record(1.0, "m", "chat", "edit", "accepted")


def test_a_locked_database_costs_records_and_no_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process holds the file, replies go on; what could not be written is counted as lost."""
    monkeypatch.setattr(store, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr(store, "RETRY_SECONDS", 0.05)
    path = tmp_path / "db.sqlite"
    with rig(Script((says(call("edit", GOOD)),), every=True, loop=True), database=path) as r:
        locker = sqlite3.connect(path, isolation_level=None)
        locker.execute("BEGIN EXCLUSIVE")
        assert ask(r, "chat").status_code == 200
        assert wait(lambda: r.gateway.metrics.lost_records == 1)
        locker.execute("ROLLBACK")
        locker.close()
        assert ask(r, "chat").status_code == 200
        assert wait(lambda: len(store.read(path)) == 1)


def test_names_that_no_file_takes_are_kept_all_the_same(tmp_path: Path) -> None:
    """Half of a surrogate pair in a model's name or in a key costs neither the record nor those that follow."""
    path = tmp_path / "db.sqlite"
    text = '{"path": "a.py", "edits": [{"oldText": "x", "newText": "y", "requireUnique\\ud800": 1}]}'
    deep = '{"path": "a.py", "edits": [], "requireUnique": ' + "[" * 300 + "]" * 300 + "}"
    turns = [says(call("edit", text)), says(call("edit", deep)), says(call("edit", GOOD))]
    with rig(turns, database=path, keep_payloads=True) as r:
        for model in ("\ud800\0", "b", "c"):
            body = json.dumps(request("chat", model=model)).encode()
            assert httpx2.post(r.url + PATHS["chat"], content=body).status_code == 200
        assert wait(lambda: len(store.read(path)) == 3)
        assert r.gateway.metrics.lost_records == 0
        for page in ("state", "metrics"):
            assert httpx2.get(r.url + f"/onspec/{page}").status_code == 200


def test_the_record_of_a_call_with_very_many_faults_is_small() -> None:
    """All repairs are counted; only some are kept one by one."""
    item = '{"oldText": "x", "newText": "y", "requireUnique": true}'
    text = '{"path": "a.py", "edits": [' + ", ".join([item] * 3000) + "]}"
    with rig([says(call("edit", text, 0))], keep_payloads=True) as r:
        ask(r, "chat")
        record = r.gateway.recent[0]
        assert len(record.rules) == 3000
        assert len(record.audit) <= 201
        assert len(record.invented) <= 200


def kept(path: Path) -> int:
    """How many records a file holds; none while it is being made."""
    try:
        return len(store.read(path))
    except InputError:
        return 0


@pytest.mark.parametrize("harm", ["delete", "garbage", "folder"])
def test_a_database_that_is_deleted_or_destroyed(tmp_path: Path, harm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deleted file is made again; a destroyed one costs records and never a reply."""
    monkeypatch.setattr(store, "RETRY_SECONDS", 0.01)
    path = tmp_path / "in" / "db.sqlite"
    with rig(Script((says(call("edit", GOOD)),), every=True, loop=True), database=path) as r:
        assert ask(r, "chat").status_code == 200
        assert wait(lambda: len(store.read(path)) == 1)
        for file in path.parent.iterdir():
            file.unlink()
        if harm == "garbage":
            path.write_bytes(b"not a database" * 1000)
        if harm == "folder":
            path.mkdir()
        assert ask(r, "chat").status_code == 200
        if harm == "delete":
            assert wait(lambda: kept(path) == 1)
        else:
            assert wait(lambda: r.gateway.metrics.lost_records == 1)
        assert "onspec_records_lost_total" in httpx2.get(r.url + "/onspec/metrics").text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_costs_records(tmp_path: Path) -> None:
    """A database that may not grow gives up records, tells how many, and works again when there is room."""
    lost: list[int] = []
    kept = store.Store(tmp_path / "db.sqlite", lost.append)
    database = kept._database
    assert database is not None
    database.execute("PRAGMA max_page_count=1")
    kept._keep([Record(1.0, "m" * 80, "chat", "edit", "accepted", audit=({"x": "y" * 100_000},))])
    kept.close()
    assert sum(lost) in (0, 1)
    assert len(store.read(tmp_path / "db.sqlite")) + sum(lost) == 1


def test_the_file_must_be_ours(tmp_path: Path) -> None:
    """A file that is no gateway's database is refused at the start, and in a report."""
    path = tmp_path / "x"
    path.write_bytes(b"something else entirely, and long enough to be read as a header" * 99)
    with pytest.raises(InputError):
        store.Store(path)
    with pytest.raises(InputError):
        store.read(path)
    with pytest.raises(InputError):
        store.read(tmp_path / "missing")


def test_limits_and_tokens() -> None:
    """Large heads and bodies, missing tokens and unknown routes are turned away in the form of the API."""
    own = {"max_body": 4000, "max_header": 8000, "tokens": ("secret",)}
    with rig(Script((says(call("now", "{}")),), every=True, loop=True), **own) as r:
        token = {"x-onspec-token": "secret"}
        assert ask(r, "anthropic").status_code == 401
        assert httpx2.get(r.url + "/onspec/metrics").status_code == 401
        assert httpx2.get(r.url + "/onspec/state", headers=token).status_code == 200
        url = r.url + PATHS["anthropic"]
        assert httpx2.post(url, json=request("anthropic"), headers=token).status_code == 200
        assert "x-onspec-token" not in r.provider.requests[-1].headers
        assert httpx2.post(url, content=b"x" * 5000, headers=token).status_code == 413
        large = httpx2.post(url, json={}, headers={**token, "x-large": "y" * 7990})
        assert large.status_code == 431
        assert large.json()["type"] == "error"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", b""),
        (b"POST /v1/messages HTTP/1.1\r\nhost: x\r\n", b""),
        (b'POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{"model', b" 408 "),
    ],
)
def test_a_client_that_stands_still_is_let_go(sent: bytes, status: bytes) -> None:
    """Before its head, inside it, inside its body: the connection is closed, with a reason where one can be read."""
    with (
        rig([says()], request_seconds=0.3) as r,
        socket.create_connection(r.server.servers[0].sockets[0].getsockname()) as s,
    ):
        s.sendall(sent)
        s.settimeout(10)
        answer = b""
        while piece := s.recv(65536):
            answer += piece
        assert status in answer.split(b"\r\n")[0]
        assert (b"onspec: the request stood still" in answer) == bool(status)
        assert not r.provider.requests


def test_a_slow_upload_that_goes_on_is_read_to_its_end() -> None:
    """Only silence ends a request, however long it takes in all."""
    data = json.dumps(request("anthropic")).encode()

    def slowly() -> Any:
        for part in range(0, len(data), len(data) // 6):
            time.sleep(0.15)
            yield data[part : part + len(data) // 6]

    with rig([says()], request_seconds=0.6) as r:
        assert httpx2.post(r.url + PATHS["anthropic"], content=slowly()).status_code == 200


@pytest.mark.parametrize("pieces", [(b"x-a: ", b"a" * 100_000), (b"", b"x-a: b\r\n" * 10_000), (b"", b"a" * 100_000)])
def test_a_head_without_end_is_closed_before_it_fills_the_memory(pieces: tuple[bytes, bytes]) -> None:
    """One long header, many short ones, a long name: the connection is closed soon after the limit."""
    first, more = pieces
    with (
        rig([says()], max_header=8000) as r,
        socket.create_connection(r.server.servers[0].sockets[0].getsockname()) as s,
    ):
        s.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\n" + first)
        answer, sent = b"", 0
        s.settimeout(10)
        try:
            while sent < 50_000_000:
                s.sendall(more)
                sent += len(more)
            answer = s.recv(1000)
        except ConnectionError:
            pass
        assert sent < 30_000_000
        assert not answer or answer.startswith(b"HTTP/1.1 431")
        assert httpx2.get(r.url + "/onspec/health").status_code == 200


def test_a_request_nested_at_any_depth_is_carried() -> None:
    """Tools that nobody can read are left alone, and the request goes up as it came."""
    depths = (50, *range(880, 1000, 3), 5000)
    with rig([says()]) as r:
        for depth in depths:
            schema = '{"x":' * depth + "1" + "}" * depth
            body = f'{{"model": "m", "tools": [{{"name": "edit", "input_schema": {schema}}}]}}'.encode()
            assert httpx2.post(r.url + PATHS["anthropic"], content=body).status_code == 200
            assert r.provider.requests[-1].raw == body


def test_a_reply_nested_at_any_depth_passes() -> None:
    """Arguments that nobody can read go on as they came."""
    turns = []
    for depth in (50, 300, *range(900, 1000, 3), 5000):
        nested = "[" * depth + "]" * depth
        block = f'{{"type": "tool_use", "id": "t", "name": "now", "input": {{"a": {nested}}}}}'
        turns.append(Turn(raw=f'{{"content": [{block}], "stop_reason": "tool_use"}}'.encode(), headers=JSON))
    with rig(turns) as r:
        for turn in turns:
            answer = httpx2.post(r.url + PATHS["anthropic"], json=request("anthropic", False))
            assert (answer.status_code, answer.content) == (200, turn.raw)


JSON = {"content-type": "application/json"}


def test_safe_by_default(tmp_path: Path) -> None:
    """Beyond loopback only with tokens or on purpose; no upstream, no gateway; unknown settings are refused."""
    up = (Upstream("http://127.0.0.1:1"),)
    assert Config(upstreams=up).checked().host == "127.0.0.1"
    for config in (Config(), Config(upstreams=up, host="0.0.0.0"), Config(upstreams=(Upstream("file:///etc/passwd"),))):
        with pytest.raises(InputError):
            config.checked()
    assert Config(upstreams=up, host="0.0.0.0", tokens=("t",)).checked()
    path = tmp_path / "onspec.toml"
    path.write_text(
        '[gateway]\npolicy = "safe"\n[[upstream]]\nurl = "https://a"\n[[upstream]]\nurl = "https://b"\n'
        'route = "/v1/messages"\n[model."claude-*"]\nretry = 2\n[tool.edit]\npolicy = "strict"\n'
        'aliases = {file = "path"}\n'
    )
    config = load(path)
    assert config.route("/v1/messages").url == "https://b"  # type: ignore[union-attr]
    assert config.route("/v1/responses").url == "https://a"  # type: ignore[union-attr]
    assert (config.for_model("claude-x").retry, config.for_model("claude-x").hold, config.for_model("gpt").hold) == (
        2,
        "call",
        "value",
    )
    for text in (
        "[gateway]\npolicy = 'odd'",
        "[gateway]\nnope = 1",
        "[odd]",
        "x = [",
        "[[upstream]]\nname='a'",
        "[model.a]\nretry = -1",
    ):
        path.write_text(text)
        with pytest.raises(InputError):
            load(path)


def test_a_client_cannot_choose_the_upstream() -> None:
    """An absolute target, a Host header and dots in the path all lead to the configured provider."""
    with rig([]) as r:
        port = int(r.url.rsplit(":", 1)[1])
        for target in ("http://example.com/v1/models", "//example.com/v1/models", "/v1/../v1/models", "@example.com/"):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as wire:
                wire.sendall(f"GET {target} HTTP/1.1\r\nhost: example.com\r\nconnection: close\r\n\r\n".encode())
                answer = b""
                while chunk := wire.recv(65536):
                    answer += chunk
            assert answer.startswith(b"HTTP/1.1 ")
        assert all(seen.headers["host"] == r.provider.url.split("//")[1] for seen in r.provider.requests)


def test_keys_are_nowhere(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A client's key and a call's payload are in no metric, page, log or database."""
    text = GOOD.replace("x = 1", "PAYLOAD")
    broken = text.replace("newText", 'requireUnique": 1, "newText', 1)
    with rig([says(call("edit", broken)), says(call("edit", "{bad PAYLOAD"))], database=tmp_path / "db") as r:
        for _ in range(2):
            httpx2.post(
                r.url + PATHS["anthropic"],
                json=request("anthropic"),
                headers={"x-api-key": "KEY-1", "authorization": "Bearer KEY-1"},
            )
        shown = httpx2.get(r.url + "/onspec/metrics").text + httpx2.get(r.url + "/onspec/state").text + caplog.text
        assert wait(lambda: len(store.read(tmp_path / "db")) == 2)
    shown += "".join(file.read_bytes().decode("latin-1") for file in tmp_path.iterdir())
    assert "KEY-1" not in shown
    assert "PAYLOAD" not in shown
    assert "requireUnique" in shown
