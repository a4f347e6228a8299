"""Requests to the provider: kept-alive connections, HTTP/2 where offered, faults in one word each."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

from onspec.errors import MissingExtra

try:
    import httpx2 as httpx
except ImportError as error:
    raise MissingExtra("httpx2", "gateway") from error

Headers = list[tuple[bytes, bytes]]

HOP = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"),
        *(b"te", b"trailer", b"upgrade", b"transfer-encoding"),
    }
)
"""Headers that belong to one connection (RFC 9110, 7.6.1)."""
ENCODINGS = (b"gzip", b"deflate", b"identity")
"""Content codings the gateway can read."""


class UpstreamError(Exception):
    """The provider could not be asked, or stopped answering. `status` is the HTTP status to tell the client."""

    def __init__(self, message: str, status: int = 502) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Answer:
    """A provider's answer, its body still to come."""

    status: int
    headers: Headers
    response: Any

    def header(self, name: bytes) -> str:
        """One header's value, or ""."""
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == name), "")

    async def raw(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come, still encoded.

        Raises:
            UpstreamError: The body stopped before its end.
        """
        try:
            async for chunk in self.response.stream:
                if chunk:
                    yield chunk
        except httpx.TimeoutException:
            raise UpstreamError("the provider went silent", 504) from None
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise UpstreamError(f"the provider broke off: {type(error).__name__}") from None

    async def decoded(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come, decoded.

        Raises:
            UpstreamError: The body stopped before its end, or is not coded as it says.
        """
        decoder = Decoder(self.header(b"content-encoding"))
        async for chunk in self.raw():
            data = decoder.feed(chunk)
            if data:
                yield data
        decoder.close()

    async def close(self) -> None:
        """Let the connection go; one whose body has not ended is closed."""
        await self.response.aclose()


class Client:
    """Asks the provider. One for a process."""

    def __init__(self, connect_seconds: float, read_seconds: float) -> None:
        timeout = httpx.Timeout(read_seconds, connect=connect_seconds, pool=connect_seconds, write=60.0)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=512, keepalive_expiry=30.0)
        self._timeout = timeout.as_dict()
        self._client = httpx.AsyncClient(http2=True, timeout=timeout, limits=limits, follow_redirects=False)

    async def send(self, method: str, url: str, headers: Headers, body: bytes) -> Answer:
        """Send a request and wait for the answer's head.

        Raises:
            UpstreamError: There was none.
        """
        request = httpx.Request(method, url, headers=headers, content=body, extensions={"timeout": self._timeout})
        try:
            response = await self._client.send(request, stream=True)
        except httpx.ConnectTimeout:
            raise UpstreamError("the provider did not take the connection in time", 504) from None
        except httpx.TimeoutException:
            raise UpstreamError("the provider did not answer in time", 504) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise UpstreamError(f"the provider cannot be reached: {type(error).__name__}") from None
        return Answer(response.status_code, response.headers.raw, response)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


class Decoder:
    """Takes a content coding off, piece by piece.

    Raises:
        UpstreamError: The coding is not known, or the data is not coded so or ends too soon.
    """

    def __init__(self, coding: str) -> None:
        coding = coding.strip().lower()
        if coding in ("", "identity"):
            self._pack = None
        elif coding in ("gzip", "x-gzip", "deflate"):
            self._pack = zlib.decompressobj(wbits=47 if coding != "deflate" else 15)
        else:
            raise UpstreamError(f"the provider's answer is coded as {coding[:40]}, which was not asked for")

    def feed(self, chunk: bytes) -> bytes:
        """The decoded bytes of the next piece."""
        if self._pack is None:
            return chunk
        try:
            return self._pack.decompress(chunk)
        except zlib.error:
            raise UpstreamError("the provider's answer is not compressed as it says") from None

    def close(self) -> None:
        """The data has ended."""
        if self._pack is not None and not self._pack.eof:
            raise UpstreamError("the provider's compressed answer ends too soon")


def forwarded(headers: Iterable[tuple[bytes, bytes]], drop: frozenset[bytes] = frozenset()) -> Headers:
    """The headers that go on to the other side: none of the connection's own, none that `Connection` names."""
    headers = list(headers)
    named = {
        token.strip().lower() for key, value in headers if key.lower() == b"connection" for token in value.split(b",")
    }
    return [(key, value) for key, value in headers if key.lower() not in HOP | drop and key.lower() not in named]


def readable(headers: Headers) -> Headers:
    """The same headers, asking only for codings that the gateway can take off."""
    asked = b",".join(value for key, value in headers if key.lower() == b"accept-encoding").lower()
    kept = [coding for coding in ENCODINGS if coding in asked] or [b"identity"]
    return [(key, value) for key, value in headers if key.lower() != b"accept-encoding"] + [
        (b"accept-encoding", b", ".join(kept))
    ]
