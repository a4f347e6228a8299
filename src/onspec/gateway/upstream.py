"""Requests to the provider: kept-alive connections, HTTP/2 where offered, faults in one word each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import cast
from urllib.request import getproxies, proxy_bypass

from onspec.errors import MissingExtra
from onspec.gateway import http1
from onspec.gateway.coding import Decoder, Undecodable

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
"""Content codings the gateway asks for. It can take off others too, which some send unasked."""


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
    chunks: AsyncIterator[bytes]
    end: Callable[[], Awaitable[None]]

    def header(self, name: bytes) -> str:
        """One header's value, or ""."""
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == name), "")

    async def raw(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come, still encoded.

        Raises:
            UpstreamError: The body stopped before its end.
        """
        try:
            async for chunk in self.chunks:
                if chunk:
                    yield chunk
        except (TimeoutError, httpx.TimeoutException):
            raise UpstreamError("the provider went silent", 504) from None
        except http1.Lost as error:
            raise UpstreamError(f"the provider broke off: {error}") from None
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise UpstreamError(f"the provider broke off: {type(error).__name__}") from None

    async def decoded(self) -> AsyncIterator[bytes]:
        """The body's bytes as they come, decoded.

        Raises:
            UpstreamError: The body stopped before its end, or is not coded as it says.
        """
        coding = self.header(b"content-encoding")
        if not coding:
            async for chunk in self.raw():
                yield chunk
            return
        try:
            decoder = Decoder(coding)
            async for chunk in self.raw():
                for data in decoder.feed(chunk):
                    yield data
            decoder.close()
        except Undecodable as error:
            raise UpstreamError(f"the provider's answer cannot be read: {error}") from None

    async def close(self) -> None:
        """Let the connection go; one whose body has not ended is closed."""
        await self.end()


class Client:
    """Asks the provider. One for a process.

    HTTP/1.1 goes straight over a socket; HTTP/2, where the provider offers it, proxies and HEAD go through httpx2.
    """

    def __init__(self, connect_seconds: float, read_seconds: float) -> None:
        timeout = httpx.Timeout(read_seconds, connect=connect_seconds, pool=connect_seconds, write=60.0)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=512, keepalive_expiry=30.0)
        self._timeout = timeout.as_dict()
        self._seconds = read_seconds
        self._client = httpx.AsyncClient(http2=True, timeout=timeout, limits=limits, follow_redirects=False)
        self._pool = http1.Pool(connect_seconds)
        self._plain: dict[str, bool] = {}

    async def send(self, method: str, url: str, headers: Headers, body: bytes) -> Answer:
        """Send a request and wait for the answer's head.

        Raises:
            UpstreamError: There was none.
        """
        origin, target = split(url)
        authority = url[: len(url) - len(target)]
        if method != "HEAD" and self._straight(authority, origin):
            try:
                return await self._send_plain(method, origin, target, headers, body)
            except http1.NeedsHttp2:
                self._plain[authority] = False
        return await self._send_httpx(method, url, headers, body)

    def _straight(self, authority: str, origin: http1.Origin) -> bool:
        """Whether an origin is spoken to without httpx2: no proxy stands before it, and it did not choose HTTP/2."""
        found = self._plain.get(authority)
        if found is None:
            proxied = ("https" if origin[0] else "http") in getproxies() and not proxy_bypass(origin[1])
            found = self._plain[authority] = not proxied
        return found

    async def _send_plain(
        self, method: str, origin: http1.Origin, target: str, headers: Headers, body: bytes
    ) -> Answer:
        lines = [f"{method} {target or '/'} HTTP/1.1\r\n".encode("latin-1")]
        lines += [key + b": " + value + b"\r\n" for key, value in headers]
        try:
            connection = await self._pool.send(origin, b"".join([*lines, b"\r\n", body]), self._seconds)
        except TimeoutError:
            raise UpstreamError("the provider did not answer in time", 504) from None
        except http1.Lost as error:
            raise UpstreamError(f"the provider cannot be reached: {error}") from None
        except OSError as error:
            raise UpstreamError(f"the provider cannot be reached: {type(error).__name__}") from None

        async def end() -> None:
            self._pool.give(origin, connection)

        return Answer(connection.status, connection.headers, connection.body(self._seconds), end)

    async def _send_httpx(self, method: str, url: str, headers: Headers, body: bytes) -> Answer:
        try:
            request = httpx.Request(method, url, headers=headers, content=body, extensions={"timeout": self._timeout})
            response = await self._client.send(request, stream=True)
        except httpx.ConnectTimeout:
            raise UpstreamError("the provider did not take the connection in time", 504) from None
        except httpx.TimeoutException:
            raise UpstreamError("the provider did not answer in time", 504) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise UpstreamError(f"the provider cannot be reached: {type(error).__name__}") from None
        return Answer(
            response.status_code,
            response.headers.raw,
            aiter(cast(httpx.AsyncByteStream, response.stream)),
            response.aclose,
        )

    async def close(self) -> None:
        """Close all connections."""
        self._pool.close()
        await self._client.aclose()


def split(url: str) -> tuple[http1.Origin, str]:
    """An address as its origin and its target (path and query)."""
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    secure = scheme == "https"
    place = place.rpartition("@")[2]
    host, colon, port = place.rpartition(":")
    if not colon or place.endswith("]"):
        host, port = place, ""
    return (secure, host.strip("[]"), int(port) if port else (443 if secure else 80)), slash + path


def forwarded(headers: Iterable[tuple[bytes, bytes]], drop: frozenset[bytes] = frozenset()) -> Headers:
    """The headers that go on to the other side: none of the connection's own, none that `Connection` names."""
    headers = list(headers)
    named = {
        token.strip().lower() for key, value in headers if key.lower() == b"connection" for token in value.split(b",")
    }
    return [(key, value) for key, value in headers if key.lower() not in HOP | drop and key.lower() not in named]


def readable(headers: Headers) -> Headers:
    """The same headers, asking for no coding that holds pieces of a stream back."""
    asked = b",".join(value for key, value in headers if key.lower() == b"accept-encoding").lower()
    kept = [coding for coding in ENCODINGS if coding in asked] or [b"identity"]
    return [(key, value) for key, value in headers if key.lower() != b"accept-encoding"] + [
        (b"accept-encoding", b", ".join(kept))
    ]
