"""Transports for httpx2 that mend the tool calls in what a provider answers; the official SDKs run on them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast, get_args

from onspec.contract.tool import Tool
from onspec.errors import InputError, MissingExtra
from onspec.gateway import body, sse
from onspec.gateway.again import Ask, Tries, ask_again, ask_for_call, rejected
from onspec.gateway.apis import api_of
from onspec.gateway.coding import Decoder, Undecodable, known
from onspec.gateway.config import Rules
from onspec.gateway.contracts import ContractCache, Contracts
from onspec.gateway.rewrite import Hold, Live, Rewriter
from onspec.gateway.upstream import Answer, UpstreamError
from onspec.gateway.verdict import Judge, Verdict, judge_with
from onspec.gateway.wire import Api, Rejected
from onspec.repair.policy import Policy

try:
    import httpx2
except ImportError as error:
    raise MissingExtra("httpx2", "integrations") from error

T = TypeVar("T")
OnCall = Callable[[Verdict], None]
"""Told of every judged call."""
MOST_RETRIES = 10
TOKENS = Rules().retry_tokens


@dataclass(frozen=True, slots=True)
class Asked:
    """A request whose reply may hold tool calls: its API, its contracts and itself, decoded."""

    api: Api
    contracts: Contracts
    request: dict[str, Any]


class Mending:
    """What both transports share: contracts from the request, bytes through the rewriter, refused calls asked again.

    Args:
        policy: Which repairs may be made; `Policy.safe()` where none is given.
        hold: `value` holds doubtful values of a stream only, `call` each call to its end.
        on_call: Told of every judged call, in the order in which they are decided.
        aliases: By tool name, other spellings of its keys.
        retries: How often, at most, the provider is asked again for a refused call, with what was wrong as the call's
            result. Above 0 each call is held to its end.
        tokens: Output tokens that all tries for one call may cost together.

    Raises:
        InputError: `retries` is not between 0 and 10, or `tokens` is negative.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        hold: Hold = "value",
        on_call: OnCall | None = None,
        aliases: dict[str, dict[str, str]] | None = None,
        retries: int = 0,
        tokens: int = TOKENS,
    ) -> None:
        if not 0 <= retries <= MOST_RETRIES or tokens < 0:
            raise InputError(f"retries is a number from 0 to {MOST_RETRIES}, tokens a number from 0")
        if hold not in get_args(Hold):
            raise InputError(f"hold is one of {', '.join(get_args(Hold))}, not {hold!r}")
        self._policy = Policy.given(policy)
        self._rules = Rules(hold="call" if retries else hold, retry=retries, retry_tokens=tokens)
        self._on_call = on_call or (lambda verdict: None)
        self._aliases = aliases or {}
        self._cache = ContractCache()

    def asked(self, path: str, method: str, data: bytes) -> Asked | None:
        """The API and the contracts of a request; None for one that makes no tool calls."""
        api = api_of(method, path)
        if api is None:
            return None
        try:
            found = json.loads(data.decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError):
            return None
        contracts = self._cache.of(found, self._aliases)
        return Asked(api, contracts, found) if contracts else None

    async def stream(self, asked: Asked, chunks: AsyncIterator[bytes], ask: Ask) -> AsyncIterator[bytes]:
        """A streamed reply, mended; refused calls are asked for again when it has ended."""
        judge = self._judge()
        retries = self._rules.retry > 0
        rewriter = Rewriter(
            asked.api, asked.contracts, judge, self._rules.hold, retries, self._report, policy=self._permitted
        )
        reader = sse.Reader()
        async for chunk in chunks:
            yield b"".join([rewriter.feed(frame) for frame in reader.feed(chunk)])
            if rewriter.ended:
                return
        left = reader.close()
        async for data in self._settled(asked, rewriter, judge, ask):
            yield data
        yield rewriter.close(False, left)
        async for data in self._settled(asked, rewriter, judge, ask):
            yield data

    async def whole(self, asked: Asked, data: bytes, ask: Ask) -> bytes:
        """A reply that was not streamed, mended.

        Raises:
            httpx2.RemoteProtocolError: A call in it was cut, and nothing can stand in its place.
        """
        judge = self._judge()

        async def again(call: Rejected, first: Verdict) -> Tries:
            return await self._again(asked, call, first, judge, ask)

        async def urge(said: tuple[Any, ...]) -> Tries:
            return await self._urge(asked, said, judge, ask)

        retries = self._rules.retry > 0
        try:
            made, judged = await body.mend(
                data,
                asked.api,
                asked.contracts,
                judge,
                again if retries else None,
                urge=urge if retries else None,
            )
        except UpstreamError as error:
            raise httpx2.RemoteProtocolError(str(error)) from None
        for one in judged:
            self._on_call(one.verdict)
        return made

    async def _settled(self, asked: Asked, rewriter: Rewriter, judge: Judge, ask: Ask) -> AsyncIterator[bytes]:
        if rewriter.missing and not rewriter.ended:
            tries = await self._urge(asked, asked.api.said(rewriter.history), judge, ask)
            yield rewriter.supply(tries.verdict, tries.usage, tries.asked)
        while rewriter.waiting and not rewriter.ended:
            live = rewriter.waiting[0]
            call, first = rejected(asked.api, rewriter, live, judge)
            tries = await self._again(asked, call, first, judge, ask)
            live.tries = tries.asked
            yield rewriter.settle(live, tries.verdict, tries.usage)

    async def _again(self, asked: Asked, call: Rejected, first: Verdict, judge: Judge, ask: Ask) -> Tries:
        return await ask_again(asked.api, asked.request, call, first, asked.contracts, judge, self._rules, ask)

    async def _urge(self, asked: Asked, said: tuple[Any, ...], judge: Judge, ask: Ask) -> Tries:
        return await ask_for_call(asked.api, asked.request, said, asked.contracts, judge, self._rules, ask)

    def _judge(self) -> Judge:
        return judge_with(self._permitted)

    def _permitted(self, tool: Tool) -> Policy:
        return self._policy

    def _report(self, live: Live) -> None:
        if live.verdict is not None:
            self._on_call(live.verdict)


class Transport(httpx2.BaseTransport):
    """A transport that mends what another one brings.

    Args:
        inner: The transport that speaks to the provider; a new one where none is given.
        mending: What is mended, and how.
    """

    def __init__(self, inner: httpx2.BaseTransport | None = None, mending: Mending | None = None) -> None:
        self._inner = inner or httpx2.HTTPTransport()
        self._mending = mending or Mending()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        asked = self._mending.asked(request.url.path, request.method, request.read())
        if asked is None:
            return self._inner.handle_request(request)
        request.headers["accept-encoding"] = "identity"
        response = self._inner.handle_request(request)

        async def ask(data: bytes) -> Answer:
            with _asking():
                found = self._inner.handle_request(_with_content(request, data))

            async def end() -> None:
                found.close()

            return Answer(found.status_code, found.headers.raw, _waiting_for_nothing(_stream(found)), end)

        if _streams(response):
            chunks = _decoded(_waiting_for_nothing(_stream(response)), response)
            return _with(response, stream=_Mended(self._mending.stream(asked, chunks, ask), response))
        if _whole(response):
            return _with(response, content=_now(self._mending.whole(asked, response.read(), ask)))
        return response

    def close(self) -> None:
        self._inner.close()


class AsyncTransport(httpx2.AsyncBaseTransport):
    """The same for asynchronous clients."""

    def __init__(self, inner: httpx2.AsyncBaseTransport | None = None, mending: Mending | None = None) -> None:
        self._inner = inner or httpx2.AsyncHTTPTransport()
        self._mending = mending or Mending()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        asked = self._mending.asked(request.url.path, request.method, await request.aread())
        if asked is None:
            return await self._inner.handle_async_request(request)
        request.headers["accept-encoding"] = "identity"
        response = await self._inner.handle_async_request(request)

        async def ask(data: bytes) -> Answer:
            with _asking():
                found = await self._inner.handle_async_request(_with_content(request, data))
            return Answer(found.status_code, found.headers.raw, aiter(_async_stream(found)), found.aclose)

        if _streams(response):
            chunks = _decoded(aiter(_async_stream(response)), response)
            return _with(response, stream=_MendedAsync(self._mending.stream(asked, chunks, ask), response))
        if _whole(response):
            return _with(response, content=await self._mending.whole(asked, await response.aread(), ask))
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class Through(httpx2.BaseTransport):
    """The transports of a client, its proxies and certificates with them; closing this leaves them open."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return self._client._transport_for_url(request.url).handle_request(request)


class AsyncThrough(httpx2.AsyncBaseTransport):
    """The same for asynchronous clients."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._client._transport_for_url(request.url).handle_async_request(request)


class _Mended(httpx2.SyncByteStream):
    """A mended stream for a client that does not wait: every step of it ends at once."""

    def __init__(self, mended: AsyncIterator[bytes], response: httpx2.Response) -> None:
        self._mended = mended
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        while True:
            try:
                data = _now(anext(self._mended))
            except StopAsyncIteration:
                return
            yield data

    def close(self) -> None:
        self._response.close()


class _MendedAsync(httpx2.AsyncByteStream):
    def __init__(self, mended: AsyncIterator[bytes], response: httpx2.Response) -> None:
        self._mended = mended
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._mended

    async def aclose(self) -> None:
        await self._response.aclose()


@contextmanager
def _asking() -> Iterator[None]:
    """Says a fault of the transport in the words of the gateway, which then leaves the call as it was."""
    try:
        yield
    except httpx2.TransportError as fault:
        raise UpstreamError(f"the provider cannot be reached: {type(fault).__name__}") from None


def _streams(response: httpx2.Response) -> bool:
    return _readable(response) and "event-stream" in response.headers.get("content-type", "")


def _whole(response: httpx2.Response) -> bool:
    return _readable(response) and "json" in response.headers.get("content-type", "")


def _readable(response: httpx2.Response) -> bool:
    return response.status_code == 200 and known(response.headers.get("content-encoding", ""))


def _stream(response: httpx2.Response) -> httpx2.SyncByteStream:
    return cast(httpx2.SyncByteStream, response.stream)


def _async_stream(response: httpx2.Response) -> httpx2.AsyncByteStream:
    return cast(httpx2.AsyncByteStream, response.stream)


async def _waiting_for_nothing(chunks: httpx2.SyncByteStream) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def _decoded(chunks: AsyncIterator[bytes], response: httpx2.Response) -> AsyncIterator[bytes]:
    """The pieces of a body with its content coding taken off."""
    decoder = Decoder(response.headers.get("content-encoding", ""))
    try:
        async for chunk in chunks:
            for piece in decoder.feed(chunk):
                yield piece
        decoder.close()
    except Undecodable as error:
        raise httpx2.DecodingError(str(error)) from None


def _with_content(request: httpx2.Request, data: bytes) -> httpx2.Request:
    """The same request with another body."""
    headers = [(key, value) for key, value in request.headers.multi_items() if key.lower() != "content-length"]
    return httpx2.Request(request.method, request.url, headers=headers, content=data, extensions=request.extensions)


def _with(response: httpx2.Response, **given: Any) -> httpx2.Response:
    """The same response with another body."""
    dropped = ("content-length", "content-encoding")
    headers = [(key, value) for key, value in response.headers.multi_items() if key.lower() not in dropped]
    return httpx2.Response(response.status_code, headers=headers, extensions=response.extensions, **given)


def _now(work: Awaitable[T]) -> T:
    """The result of work that waits for nothing."""
    try:
        work.__await__().send(None)
    except StopIteration as ended:
        return cast(T, ended.value)
    raise asyncio.InvalidStateError("mending waits for nothing")
