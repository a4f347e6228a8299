"""One request and its answer, on their way through the gateway."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from onspec.gateway import again, body, sse
from onspec.gateway.coding import Undecodable, decoded, known
from onspec.gateway.config import POLICIES, Config, Rules, Upstream
from onspec.gateway.contracts import ContractCache, Contracts
from onspec.gateway.metrics import Metrics
from onspec.gateway.promote import Recover, RecoverUnder
from onspec.gateway.record import Watch
from onspec.gateway.rewrite import Live, Rewriter
from onspec.gateway.upstream import Answer, Client, Headers, UpstreamError, forwarded, readable
from onspec.gateway.usage import counts, spent
from onspec.gateway.verdict import Judge, Verdict, judge_with
from onspec.gateway.wire import Api, Rejected, listed

Send = Callable[[dict[str, Any]], Awaitable[None]]
PING_SECONDS = 10.0
MAX_WHOLE = 64 * 1024 * 1024
"""Largest answer, in bytes, that is read whole; a larger one is passed on unread."""
MAX_DECODED = 256 * 1024 * 1024
"""Largest answer, in bytes, once it is decompressed."""
log = logging.getLogger("onspec.gateway")
OWN = frozenset({b"host", b"content-length", b"x-onspec-token"})


@dataclass(slots=True)
class Asked:
    """A request as the client sent it, read as far as the gateway needs."""

    method: str
    target: str
    headers: Headers
    data: bytes
    upstream: Upstream
    api: Api | None = None
    body: Any = None
    contracts: Contracts | None = None
    rules: Rules | None = None
    model: str = ""


class Exchange:
    """Carries one request to the provider and its answer back.

    `stop` ends it from outside with a well-formed end; cancelling it cancels the provider's side at once.
    """

    def __init__(
        self,
        asked: Asked,
        config: Config,
        client: Client,
        watch: Watch,
        metrics: Metrics,
        send: Send,
        recover: RecoverUnder | None = None,
    ) -> None:
        self.asked = asked
        self.status = 0
        self.outcome = "passed"
        self.calls: dict[str, int] = {}
        self.usage: dict[str, int] = {}
        self._metrics = metrics
        self._recover = recover
        self._config = config
        self._client = client
        self._watch = watch
        self._send = send
        self._started = False
        self._spent = 0
        self._why: str | None = None
        self._task: asyncio.Task[Any] | None = None

    def stop(self, why: str) -> None:
        """End the reply now, in a form that tells the client why."""
        self._why = why
        if self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """The whole exchange. Every fault of the provider becomes a well-formed answer."""
        self._task = asyncio.current_task()
        try:
            answer = await self._ask(self.asked.data)
        except UpstreamError as error:
            return await self._error(error.status, str(error))
        except asyncio.CancelledError:
            if self._why is None:
                raise
            self._resume()
            return await self._error(503, self._why)
        try:
            await self._pass(answer)
        finally:
            await answer.close()

    async def _ask(self, data: bytes) -> Answer:
        asked = self.asked
        headers = forwarded(asked.headers, OWN)
        if asked.api is not None:
            headers = readable(headers)
        if data is not asked.data:
            headers = [(key, value) for key, value in headers if key.lower() != b"content-encoding"]
        if data or asked.method in ("POST", "PUT", "PATCH"):
            headers.append((b"content-length", str(len(data)).encode()))
        url = asked.upstream.address(asked.target)
        authority = url.split("://", 1)[1].split("/", 1)[0].rpartition("@")[2]
        return await self._client.send(asked.method, url, [(b"host", authority.encode()), *headers], data)

    async def _pass(self, answer: Answer) -> None:
        self.status = answer.status
        asked = self.asked
        kind = answer.header(b"content-type").lower()
        if asked.api is None or answer.status >= 300 or answer.status < 200:
            return await self._through(answer)
        if not known(answer.header(b"content-encoding")):
            log.warning("an answer under an unknown content coding passes unread")
            return await self._through(answer)
        streams = isinstance(asked.body, dict) and asked.body.get("stream") is True
        if "event-stream" in kind or (streams and "json" not in kind and "html" not in kind):
            return await self._stream(answer, asked.api)
        if "json" in kind and asked.contracts:
            return await self._whole(answer, asked.api)
        return await self._through(answer)

    # Untouched

    async def _through(self, answer: Answer) -> None:
        await self._start(answer.status, forwarded(answer.headers))
        try:
            async for chunk in answer.raw():
                await self._write(chunk)
        except UpstreamError:
            # The length or the framing already promised cannot be kept; an unfinished answer says so by itself.
            self.outcome = "broken"
            raise Broken from None
        await self._finish()

    # Streamed

    async def _stream(self, answer: Answer, api: Api) -> None:
        asked = self.asked
        rules = asked.rules or Rules()
        retry = rules.retry > 0 and not rules.shadow
        judge = self._judge(rules)
        rewriter = Rewriter(
            api,
            asked.contracts or Contracts({}),
            judge,
            rules.hold,
            retry,
            lambda live: self._told(live, api, rules),
            self._recovery(rules),
            lambda tool: self._config.policy(rules, tool),
        )
        headers = forwarded(answer.headers, frozenset({b"content-length", b"content-encoding"}))
        if not answer.header(b"content-type"):
            headers.append((b"content-type", b"text/event-stream"))
        await self._start(answer.status, headers)
        try:
            await (
                self._shadowed(answer, rewriter)
                if rules.shadow
                else self._rewritten(answer, rewriter, api, rules, judge)
            )
        except asyncio.CancelledError:
            if self._why is None:
                raise
            self._resume()
            self.outcome = "stopped"
            await self._write(rewriter.fail(self._why))
        await self._finish()

    async def _rewritten(self, answer: Answer, rewriter: Rewriter, api: Api, rules: Rules, judge: Judge) -> None:
        reader = sse.Reader()
        cut = False
        try:
            async for chunk in answer.decoded():
                await self._write(b"".join([rewriter.feed(frame) for frame in reader.feed(chunk)]))
                if rewriter.ended:
                    break
        except UpstreamError:
            cut = True
            self.outcome = "broken"
        left = reader.close()
        if not cut:
            await self._settle(rewriter, api, rules, judge)
        await self._write(rewriter.close(cut, left))
        if not cut:
            await self._settle(rewriter, api, rules, judge)
        self.usage = counts(rewriter.cost)
        if rewriter.failed is not None:
            self.outcome = "failed"

    async def _shadowed(self, answer: Answer, rewriter: Rewriter) -> None:
        """Everything goes on as it came; the rewriter only looks."""
        reader = sse.Reader()
        try:
            async for chunk in answer.decoded():
                await self._write(chunk)
                for frame in reader.feed(chunk):
                    rewriter.feed(frame)
        except UpstreamError:
            self.outcome = "broken"
            raise Broken from None
        rewriter.close(False, reader.close())

    async def _settle(self, rewriter: Rewriter, api: Api, rules: Rules, judge: Judge) -> None:
        """Ask again for every call that waits, and let it and what stands behind it go on."""
        if rewriter.missing and not rewriter.ended:
            tries = await self._meanwhile(self._urge(api, api.said(rewriter.history), rules, judge))
            await self._write(rewriter.supply(tries.verdict, tries.usage, tries.asked))
        while rewriter.waiting and not rewriter.ended:
            live = rewriter.waiting[0]
            call, first = again.rejected(api, rewriter, live, judge)
            tries = await self._meanwhile(self._again(api, call, first, rules, judge))
            live.tries = tries.asked
            await self._write(rewriter.settle(live, tries.verdict, tries.usage))

    async def _meanwhile(self, asks: Coroutine[Any, Any, again.Tries]) -> again.Tries:
        """What asking comes to; the client is told from time to time that it goes on."""
        asking = asyncio.ensure_future(asks)
        try:
            while not (await asyncio.wait({asking}, timeout=PING_SECONDS))[0]:
                await self._write(sse.comment("onspec asks the model again"))
        finally:
            asking.cancel()
        return asking.result()

    async def _urge(self, api: Api, said: tuple[Any, ...], rules: Rules, judge: Judge) -> again.Tries:
        asked = self.asked
        return self._paid(
            await again.ask_for_call(
                api, asked.body, said, asked.contracts or Contracts({}), judge, self._left(rules), self._ask
            )
        )

    async def _again(self, api: Api, call: Rejected, first: Verdict, rules: Rules, judge: Judge) -> again.Tries:
        asked = self.asked
        return self._paid(
            await again.ask_again(
                api, asked.body, call, first, asked.contracts or Contracts({}), judge, self._left(rules), self._ask
            )
        )

    def _left(self, rules: Rules) -> Rules:
        """The rules with those tokens that the tries of this reply have left."""
        return replace(rules, retry_tokens=max(0, rules.retry_tokens - self._spent))

    def _paid(self, tries: again.Tries) -> again.Tries:
        self._spent += spent(tries.usage)
        return tries

    def _told(self, live: Live, api: Api, rules: Rules) -> None:
        assert live.verdict is not None
        outcome = (
            "promoted"
            if live.promoted
            else "retried"
            if live.tries and live.verdict.status != "refused"
            else live.verdict.status
        )
        self._tell(live.verdict, api, rules, outcome, live.tries)

    def _tell(self, verdict: Verdict, api: Api, rules: Rules, outcome: str, tries: int) -> None:
        self.calls[outcome] = self.calls.get(outcome, 0) + 1
        made = self._watch.record(
            verdict, model=self.asked.model, api=api.name, outcome=outcome, tries=tries, shadow=rules.shadow
        )
        self._watch.tell(made)

    # Whole

    async def _whole(self, answer: Answer, api: Api) -> None:
        rules = self.asked.rules or Rules()
        raw = bytearray()
        coded = answer.header(b"content-encoding")
        try:
            async for chunk in answer.raw():
                raw += chunk
                if len(raw) > MAX_WHOLE:
                    raise UpstreamError("the provider's answer is too large")
            data = decoded(bytes(raw), coded, MAX_DECODED)
        except Undecodable as error:
            return await self._error(502, f"the provider's answer cannot be read: {error}")
        except UpstreamError as error:
            return await self._error(error.status, str(error))
        except asyncio.CancelledError:
            if self._why is None:
                raise
            self._resume()
            return await self._error(503, self._why)
        judge = self._judge(rules)
        ask = None
        urge = None
        if rules.retry and not rules.shadow:

            async def ask(call: Rejected, first: Verdict) -> again.Tries:
                return await self._again(api, call, first, rules, judge)

            async def urge(said: tuple[Any, ...]) -> again.Tries:
                return await self._urge(api, said, rules, judge)

        try:
            made, judged = await body.mend(
                data, api, self.asked.contracts or Contracts({}), judge, ask, self._recovery(rules), urge
            )
        except UpstreamError as error:
            if not rules.shadow:
                return await self._error(error.status, str(error))
            made, judged = data, []
        for one in judged:
            self._tell(one.verdict, api, rules, one.outcome, one.tries)
        if rules.shadow or made is data or made == data:
            told = [] if rules.shadow else body.headers(judged)
            await self._start(
                answer.status, [*forwarded(answer.headers, frozenset({b"content-length"})), *told, _length(raw)]
            )
            return await self._finish(bytes(raw))
        kept = forwarded(answer.headers, frozenset({b"content-length", b"content-encoding"}))
        await self._start(answer.status, [*kept, *body.headers(judged), _length(made)])
        await self._finish(made)

    def _recovery(self, rules: Rules) -> Recover | None:
        return self._recover(POLICIES[rules.policy]()) if rules.promote and self._recover is not None else None

    def _judge(self, rules: Rules) -> Judge:
        return judge_with(lambda tool: self._config.policy(rules, tool), self._fault)

    def _fault(self) -> None:
        self._metrics.internal_errors += 1

    # Sending

    async def _start(self, status: int, headers: Headers) -> None:
        self._started = True
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _write(self, data: bytes) -> None:
        if data:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _finish(self, data: bytes = b"") -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    async def _error(self, status: int, message: str) -> None:
        self.outcome = "failed"
        await answer_error(self._send, self.asked.api, status, message)
        self.status = status

    def _resume(self) -> None:
        """The cancellation was ours and has been answered."""
        if self._task is not None:
            self._task.uncancel()


class Broken(Exception):
    """The answer cannot be finished as promised; the connection must be closed without its end."""


async def answer_error(send: Send, api: Api | None, status: int, message: str, *, closing: bool = False) -> None:
    """A whole error answer, in the API's own form where there is one; the connection ends with it where `closing`."""
    text = f"onspec: {message}"
    data = api.error(status, text) if api is not None else json.dumps({"error": {"message": text}}).encode()
    headers = [(b"content-type", b"application/json"), _length(data)]
    if closing:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data, "more_body": False})


def read_request(
    method: str,
    target: str,
    headers: Headers,
    data: bytes,
    upstream: Upstream,
    api: Api | None,
    config: Config,
    cache: ContractCache,
) -> Asked:
    """The request with its contracts and rules; one that cannot be read is passed on as it is."""
    asked = Asked(method, target, headers, data, upstream)
    if api is None:
        return asked
    coding = next((value for key, value in headers if key.lower() == b"content-encoding"), b"").decode("latin-1")
    try:
        asked.body = json.loads(decoded(data, coding, config.max_body).decode("utf-8", "surrogateescape"))
        contracts = cache.of(asked.body, config.aliases())
    except (ValueError, RecursionError, Undecodable):  # nested too deeply, too
        return asked
    if not isinstance(asked.body, dict):
        return asked
    asked.api, asked.contracts = api, contracts
    model = asked.body.get("model")
    asked.model = model if isinstance(model, str) else ""
    asked.rules = config.for_model(asked.model)
    if asked.rules.strict == "off":
        asked.data = without_strict(asked.body, data)
        if asked.data is not data:
            asked.headers = [(key, value) for key, value in headers if key.lower() != b"content-encoding"]
    return asked


def without_strict(request: dict[str, Any], data: bytes) -> bytes:
    """The request without the tools' strict flags; the same bytes where there are none."""
    changed = False
    tools = []
    for tool in listed(request.get("tools")):
        inner = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(tool, dict) and tool.get("strict"):
            tool = {**tool, "strict": False}
            changed = True
        elif isinstance(inner, dict) and inner.get("strict"):
            tool = {**tool, "function": {**inner, "strict": False}}
            changed = True
        tools.append(tool)
    if not changed:
        return data
    request["tools"] = tools
    return json.dumps(request).encode()


def _length(data: bytes | bytearray) -> tuple[bytes, bytes]:
    return b"content-length", str(len(data)).encode()
