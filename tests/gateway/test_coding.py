"""Content codings: read for judging whatever the upstream or the client chose, passed on as they came."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable

import brotli
import httpx2
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from onspec.gateway.coding import Decoder, Undecodable, decoded, known
from onspec.gateway.config import Rules
from onspec.providers import PROVIDERS
from onspec.providers.script import Turn
from tests.gateway.rig import PATHS, call, request, rig, says
from tests.gateway.samples import encoded
from tests.gateway.test_rewrite import read

GOOD, BROKEN = '{"city": "Oslo", "days": 1}', '{"city": "Oslo", "days": "1"}'


def raw_deflate(data: bytes) -> bytes:
    """Deflate without its header, as some send it."""
    pack = zlib.compressobj(wbits=-15)
    return pack.compress(data) + pack.flush()


def gzipped(data: bytes) -> bytes:
    """The same bytes whatever the time."""
    return gzip.compress(data, mtime=0)


def two(pack: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """Data in two parts, each packed by itself."""
    return lambda data: pack(data[: len(data) // 2]) + pack(data[len(data) // 2 :])


CODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzipped),
    "gzip in two members": ("gzip", two(gzipped)),
    "gzip with padding": ("gzip", lambda data: gzipped(data) + b"\0" * 9),
    "deflate": ("deflate", zlib.compress),
    "deflate without header": ("deflate", raw_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("ZSTD", zstandard.ZstdCompressor().compress),
    "zstd in two frames": ("zstd", two(zstandard.ZstdCompressor().compress)),
    "one over the other": ("gzip, br", lambda data: brotli.compress(gzipped(data))),
    "none": ("identity", lambda data: data),
}


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(list(CODINGS)), st.integers(1, 50))
def test_the_cut_of_the_pieces_is_invisible(data: bytes, name: str, size: int) -> None:
    """Whole or in pieces of any size: the same bytes."""
    coding, pack = CODINGS[name]
    packed = pack(data)
    decoder = Decoder(coding)
    out = b"".join(piece for at in range(0, len(packed), size) for piece in decoder.feed(packed[at : at + size]))
    decoder.close()
    assert out == data == decoded(packed, coding, 1000)


@pytest.mark.parametrize("name", [name for name in CODINGS if name != "none"])
def test_what_stands_for_very_much_is_decoded_in_small_pieces(name: str) -> None:
    """A few bytes may stand for gigabytes; no more than some megabytes of them are ever made at once."""
    coding, pack = CODINGS[name]
    packed = pack(bytes(200_000_000))
    sizes = [len(piece) for piece in Decoder(coding).feed(packed)]
    assert sum(sizes) == 200_000_000
    assert max(sizes) < 10_000_000
    with pytest.raises(Undecodable, match="more than 1000 bytes"):
        decoded(packed, coding, 1000)


def test_codings_without_end_are_not_taken_off() -> None:
    """Each layer may stand for a thousand times as much as the one over it."""
    assert not known("br," * 9)
    with pytest.raises(Undecodable, match="more than 4 times"):
        decoded(b"x", "br," * 9, 1000)


@pytest.mark.parametrize("name", [name for name in CODINGS if name not in ("none", "gzip with padding")])
def test_a_body_that_is_cut_or_something_else_is_told(name: str) -> None:
    """Never a part of the body as if it were all of it."""
    coding, pack = CODINGS[name]
    packed = pack(b"some text, some more text" * 20)
    for data in (packed[:-3], b"this is no such thing at all", packed[:1]):
        with pytest.raises(Undecodable):
            decoded(data, coding, 1000)
    with pytest.raises(Undecodable, match="more than 100 bytes"):
        decoded(packed, coding, 100)
    assert known(coding)
    assert not known(coding + ", compress")


@pytest.mark.parametrize("name", ["gzip", "br", "zstd", "deflate without header", "one over the other"])
@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_coded_unasked_is_judged(name: str, api: str, stream: bool) -> None:
    """A good one is passed as it came (a stream unpacked), a broken one arrives mended."""
    coding, pack = CODINGS[name]
    turns, plain = [], []
    for text in (GOOD, BROKEN):
        turn = says(call("get_weather", text))
        whole = json.dumps(PROVIDERS[api].whole(turn, {"model": "m-1"}, "x")).encode()
        plain.append(encoded(api, turn) if stream else whole)
        kind = "text/event-stream" if stream else "application/json"
        headers = {"content-encoding": coding, "content-type": kind}
        turns.append(Turn(raw=pack(plain[-1]), headers=headers, chunk_bytes=11))
    with rig(turns) as r:
        asked = {"json": request(api, stream), "headers": {"accept-encoding": "identity"}, "timeout": 30}
        with httpx2.stream("POST", r.url + PATHS[api], **asked) as answer:
            raw = b"".join(answer.iter_raw())
        assert raw == (plain[0] if stream else pack(plain[0]))
        assert answer.headers.get("content-encoding") == (None if stream else coding)
        mended = httpx2.post(r.url + PATHS[api], **asked)
        assert "content-encoding" not in mended.headers
        assert [record.outcome for record in r.gateway.recent] == ["accepted", "repaired"]
        sent = r.provider.requests[0].headers["accept-encoding"]
    assert sent == "identity"
    if stream:
        assert [json.loads(text) for text in read(api, mended.content)[0].values()] == [json.loads(GOOD)]
    else:
        assert b'"1"' not in mended.content.replace(b"\\", b"")


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_under_an_unknown_coding_passes_unread(stream: bool) -> None:
    """Byte for byte, with its header; the client may know it."""
    headers = {"content-encoding": "x-own", "content-type": "text/event-stream" if stream else "application/json"}
    with (
        rig([Turn(raw=b"\1\2\3", headers=headers)]) as r,
        httpx2.stream("POST", r.url + PATHS["chat"], json=request("chat", stream)) as answer,
    ):
        assert b"".join(answer.iter_raw()) == b"\1\2\3"
        assert answer.headers["content-encoding"] == "x-own"


@pytest.mark.parametrize("name", ["gzip", "br", "zstd", "deflate", "one over the other"])
@pytest.mark.parametrize("strict", ["pass", "off"])
def test_a_coded_request_is_read_and_goes_up_as_it_came(name: str, strict: str) -> None:
    """Its contracts hold; the bytes and the header stay, unless the strict flags are taken off."""
    coding, pack = CODINGS[name]
    asked = request("responses")
    asked["tools"][0]["strict"] = True
    packed = pack(json.dumps(asked).encode())
    with rig([says(call("get_weather", BROKEN))], Rules(strict=strict)) as r:  # type: ignore[arg-type]
        httpx2.post(r.url + PATHS["responses"], content=packed, headers={"content-encoding": coding}, timeout=30)
        sent = r.provider.requests[0]
        assert [record.outcome for record in r.gateway.recent] == ["repaired"]
    if strict == "pass":
        assert (sent.raw, sent.headers["content-encoding"]) == (packed, coding)
    else:
        assert "content-encoding" not in sent.headers
        assert [tool.get("strict", False) for tool in sent.body["tools"]] == [False] * len(asked["tools"])


def test_a_coded_request_is_asked_again_in_plain() -> None:
    """The second request is the gateway's own, and says what it is."""
    coding, pack = CODINGS["zstd"]
    turns = [says(call("get_weather", '{"days": 1}')), says(call("get_weather", GOOD))]
    with rig(turns, Rules(retry=1, hold="call")) as r:
        packed = pack(json.dumps(request("responses")).encode())
        httpx2.post(r.url + PATHS["responses"], content=packed, headers={"content-encoding": coding}, timeout=30)
        assert [record.outcome for record in r.gateway.recent] == ["retried"]
        assert "content-encoding" not in r.provider.requests[1].headers
        assert r.provider.requests[1].body["model"] == "m-1"
