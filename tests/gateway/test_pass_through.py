"""What conforms passes byte for byte, and official clients read it as they would without the gateway."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from onspec.gateway import sse
from onspec.gateway.config import Rules
from onspec.providers.script import Script, Turn
from tests.gateway.rig import PATHS, Rig, call, request, rig, says, tools
from tests.gateway.samples import SAMPLES

COMMENT = re.compile(rb": onspec [^\n]*\n\n")
KEY = {"x-api-key": "k", "authorization": "Bearer k"}
CONFORM = [
    name
    for name, (_, data) in SAMPLES.items()
    if not any(word in name for word in ("cut", "not_json", "invalid", "mid_tool"))
]
CUT = [name for name in SAMPLES if "cut" in name or "mid_tool" in name]
"""Replies that end inside a call; what becomes of them is in `test_cut.py`."""


def ask(url: str, api: str, **more: Any) -> bytes:
    """The raw answer to a streamed request."""
    return httpx2.post(url + PATHS[api], json=request(api, **more), headers=KEY, timeout=30).content


@pytest.mark.parametrize("size", [0, 7, 1])
@pytest.mark.parametrize("shadow", [False, True])
def test_streams_pass_byte_for_byte(size: int, shadow: bool) -> None:
    """Every sample, in every chunking: the bytes that came; a refused call adds a comment and nothing else."""
    names = list(SAMPLES)
    with rig([Turn(raw=SAMPLES[name][1], chunk_bytes=size) for name in names], Rules(shadow=shadow)) as r:
        for name in names:
            api, data = SAMPLES[name]
            found = ask(r.url, api)
            if name in CONFORM or shadow:
                assert found == data, name
            elif name not in CUT:
                assert COMMENT.sub(b"", found) == data, name


ANTHROPIC = anthropic.Anthropic(api_key="k", max_retries=0)
OPENAI = openai.OpenAI(api_key="k", max_retries=0)


def read_anthropic(url: str) -> Any:
    client = ANTHROPIC.with_options(base_url=url)
    asked: dict[str, Any] = {
        "model": "m-1",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": tools("anthropic"),
    }
    raw = [event.to_dict() for event in client.messages.create(**asked, stream=True)]
    with client.messages.stream(**asked) as stream:
        seen = [event.type for event in stream]
        return raw, seen, stream.get_final_message().to_dict()


def read_chat(url: str) -> Any:
    client = OPENAI.with_options(base_url=url + "/v1")
    asked: dict[str, Any] = {"model": "m-1", "messages": [{"role": "user", "content": "hi"}], "tools": tools("chat")}
    raw = [chunk.to_dict() for chunk in client.chat.completions.create(**asked, stream=True)]
    with client.chat.completions.stream(**{**asked, "tools": asked["tools"][:1]}) as stream:
        seen = [event.type for event in stream]
        return raw, seen, stream.get_final_completion().to_dict()


def read_responses(url: str) -> Any:
    client = OPENAI.with_options(base_url=url + "/v1")
    asked: dict[str, Any] = {"model": "m-1", "input": "hi", "tools": tools("responses")}
    raw = [event.to_dict() for event in client.responses.create(**asked, stream=True)]
    with client.responses.stream(**asked) as stream:
        seen = [event.type for event in stream]
        return raw, seen, stream.get_final_response().to_dict()


READERS: dict[str, Callable[[str], Any]] = {"anthropic": read_anthropic, "chat": read_chat, "responses": read_responses}


def outcome(read: Callable[[str], Any], url: str) -> tuple[str, Any]:
    """What a client made of a reply, or the kind and words of what it raised."""
    try:
        return "read", read(url)
    except Exception as error:
        return type(error).__name__, re.sub(r"\s+", " ", str(error))[:200]


@pytest.mark.parametrize("size", [0, 7, 1])
def test_official_clients_read_the_same_with_and_without(size: int) -> None:
    """The stream helpers and the raw iterators of both SDKs see one and the same reply, or raise the same error."""
    with rig([]) as r:
        for name, (api, data) in SAMPLES.items():
            if name in CUT:
                continue
            r.provider.script = Script((Turn(raw=data, chunk_bytes=size),), every=True, loop=True)
            direct = outcome(READERS[api], r.provider.url)
            assert outcome(READERS[api], r.url) == direct, name


def test_other_requests_pass_byte_for_byte() -> None:
    """Any other method and path: the same body up and down, bad UTF-8 and query included."""
    with rig([]) as r:
        body = b'\xff\xfe{"not": "json"'
        answer = httpx2.post(r.url + "/echo?a=1&b=%20", content=body, headers={"content-type": "application/x-odd"})
        assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, body, "application/x-odd")
        assert r.provider.requests[-1].path == "/echo?a=1&b=%20"
        assert httpx2.get(r.url + "/v1/models").json()["data"]
        assert httpx2.post(r.url + "/v1/messages/count_tokens", json={"a": 1}).json() == {"input_tokens": 1}
        assert httpx2.delete(r.url + "/v1/files/7").status_code == 404
        assert r.provider.requests[-1].method == "DELETE"


def test_the_request_goes_up_as_it_came() -> None:
    """Headers and body are the client's own: a key, a lone surrogate and its number format among them."""
    body = (
        b'{"model":"m-1", "stream":true,"max_tokens":1e3,"messages":[{"role":"user","content":"\\ud83d"}],"tools":[]}'
    )
    with rig([says(call("now", "{}"))]) as r:
        httpx2.post(r.url + PATHS["anthropic"], content=body, headers={**KEY, "anthropic-beta": "x-1,y-2"})
        seen = r.provider.requests[-1]
        assert seen.raw == body
        assert seen.headers["x-api-key"] == "k"
        assert seen.headers["anthropic-beta"] == "x-1,y-2"
        assert seen.headers["host"] == r.provider.url.split("//")[1]


@pytest.mark.parametrize("api", PATHS)
def test_a_whole_reply_that_conforms_passes_byte_for_byte(api: str) -> None:
    """Not streamed, compressed or not: the very bytes of the provider."""
    turns = [says(call("get_weather", '{"city": "Oslo", "days": 1}'), gzip=packed) for packed in (False, True)]
    with rig(turns) as r:
        for packed in (False, True):
            with httpx2.stream(
                "POST", r.url + PATHS[api], json=request(api, stream=False), headers={"accept-encoding": "gzip"}
            ) as answer:
                raw = b"".join(answer.iter_raw())
            data = gzip.decompress(raw) if packed else raw
            assert json.loads(data)["id"].endswith(f"{packed + 1:06d}")
            assert answer.headers.get("content-encoding") == ("gzip" if packed else None)
            assert not [name for name in answer.headers if "onspec" in name]


def test_events_are_not_held_back() -> None:
    """Each event of a conforming reply reaches the client before the provider sends the next one."""
    turn = says(
        call("make_file", json.dumps({"filename": "a", "lines": ["some words to stream " * 5]}), 8), event_ms=15
    )
    with rig([turn]) as r:
        assert most_behind(r) <= 1


def most_behind(r: Rig) -> int:
    """How many frames, at most, a client was behind the provider at any time."""
    behind, got = 0, 0
    reader = sse.Reader()
    sent: list[int] = []
    r.provider.sent = sent.append
    with httpx2.stream("POST", r.url + PATHS["anthropic"], json=request("anthropic"), timeout=30) as answer:
        for chunk in answer.iter_raw():
            got += len(reader.feed(chunk))
            behind = max(behind, len(sent) - got)
    assert len(sent) == got > 10
    return behind


def test_compressed_streams_are_read() -> None:
    """A gzipped stream reaches the client unpacked and whole."""
    with rig([says(call("get_weather", '{"city":"Oslo"}'), gzip=True)]) as r:
        with httpx2.stream(
            "POST", r.url + PATHS["chat"], json=request("chat"), headers={"accept-encoding": "gzip, br, zstd"}
        ) as answer:
            raw = b"".join(answer.iter_raw())
        assert raw.endswith(b"data: [DONE]\n\n")
        assert r.provider.requests[-1].headers["accept-encoding"] == "gzip"
