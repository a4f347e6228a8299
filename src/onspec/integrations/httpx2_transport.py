"""Transports for httpx2 that mend the tool calls in what a provider answers; the official SDKs run on them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from types import ModuleType
from typing import Any, cast

from onspec.contract.tool import Tool
from onspec.errors import MissingExtra
from onspec.gateway import anthropic, body, chat, responses, sse
from onspec.gateway.contracts import ContractCache, Contracts
from onspec.gateway.rewrite import Hold, Live, Rewriter
from onspec.gateway.upstream import UpstreamError
from onspec.gateway.verdict import Judge, Verdict, judge_with
from onspec.gateway.wire import Api
from onspec.repair.policy import Policy

try:
    import httpx2
except ImportError as error:
    raise MissingExtra("httpx2", "integrations") from error

APIS: dict[str, ModuleType] = {"/messages": anthropic, "/chat/completions": chat, "/responses": responses}
OnCall = Callable[[Verdict], None]
"""Told of every judged call."""


class Mending:
    """What both transports share: contracts from the request, bytes through the rewriter.

    Args:
        policy: Which repairs may be made; `Policy.safe()` where none is given.
        hold: `value` holds doubtful values of a stream only, `call` each call to its end.
        on_call: Told of every judged call, in the order in which they are decided.
        aliases: By tool name, other spellings of its keys.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        hold: Hold = "value",
        on_call: OnCall | None = None,
        aliases: dict[str, dict[str, str]] | None = None,
    ) -> None:
        self._policy = policy or Policy.safe()
        self._hold: Hold = hold
        self._on_call = on_call or (lambda verdict: None)
        self._aliases = aliases or {}
        self._cache = ContractCache()

    def asked(self, path: str, method: str, data: bytes) -> tuple[Api, Contracts] | None:
        """The API and the contracts of a request; None for one that makes no tool calls."""
        api = next((api for end, api in APIS.items() if path.rstrip("/").endswith(end)), None)
        if method != "POST" or api is None:
            return None
        try:
            found = json.loads(data.decode("utf-8", "surrogateescape"))
        except (ValueError, RecursionError):
            return None
        contracts = self._cache.of(found, self._aliases)
        return (cast(Api, api), contracts) if contracts else None

    def judge(self) -> Judge:
        """The judge of one reply."""

        def policy(tool: Tool) -> Policy:
            return self._policy

        return judge_with(policy)

    def rewriter(self, api: Api, contracts: Contracts) -> Rewriter:
        """The rewriter of one streamed reply."""

        def report(live: Live) -> None:
            if live.verdict is not None:
                self._on_call(live.verdict)

        return Rewriter(api, contracts, self.judge(), self._hold, False, report, policy=lambda tool: self._policy)

    async def whole(self, api: Api, contracts: Contracts, data: bytes) -> bytes:
        """A reply that was not streamed, mended.

        Raises:
            httpx2.RemoteProtocolError: A call in it was cut, and nothing can stand in its place.
        """
        try:
            made, judged = await body.mend(data, api, contracts, self.judge(), None)
        except UpstreamError as error:
            raise httpx2.RemoteProtocolError(str(error)) from None
        for one in judged:
            self._on_call(one.verdict)
        return made


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
        kind = response.headers.get("content-type", "")
        if response.status_code != 200 or "content-encoding" in response.headers:
            return response
        if "event-stream" in kind:
            rewriter = self._mending.rewriter(*asked)
            return _with(response, stream=_Mended(cast(httpx2.SyncByteStream, response.stream), rewriter))
        if "json" in kind:
            return _with(response, content=_now(self._mending.whole(*asked, response.read())))
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
        kind = response.headers.get("content-type", "")
        if response.status_code != 200 or "content-encoding" in response.headers:
            return response
        if "event-stream" in kind:
            rewriter = self._mending.rewriter(*asked)
            return _with(response, stream=_MendedAsync(cast(httpx2.AsyncByteStream, response.stream), rewriter))
        if "json" in kind:
            return _with(response, content=await self._mending.whole(*asked, await response.aread()))
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Mended(httpx2.SyncByteStream):
    def __init__(self, inner: httpx2.SyncByteStream, rewriter: Rewriter) -> None:
        self._inner = inner
        self._rewriter = rewriter

    def __iter__(self) -> Iterator[bytes]:
        reader = sse.Reader()
        for chunk in self._inner:
            yield b"".join([self._rewriter.feed(frame) for frame in reader.feed(chunk)])
            if self._rewriter.ended:
                return
        yield self._rewriter.close(False, reader.close())

    def close(self) -> None:
        self._inner.close()


class _MendedAsync(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, rewriter: Rewriter) -> None:
        self._inner = inner
        self._rewriter = rewriter

    async def __aiter__(self) -> AsyncIterator[bytes]:
        reader = sse.Reader()
        async for chunk in self._inner:
            yield b"".join([self._rewriter.feed(frame) for frame in reader.feed(chunk)])
            if self._rewriter.ended:
                return
        yield self._rewriter.close(False, reader.close())

    async def aclose(self) -> None:
        await self._inner.aclose()


def _with(response: httpx2.Response, **given: Any) -> httpx2.Response:
    """The same response with another body."""
    headers = [(key, value) for key, value in response.headers.multi_items() if key.lower() != "content-length"]
    return httpx2.Response(response.status_code, headers=headers, extensions=response.extensions, **given)


def _now(work: Any) -> bytes:
    """The result of work that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as ended:
        return cast(bytes, ended.value)
    raise asyncio.InvalidStateError("mending a whole reply waits for nothing")
