"""Asking the provider again for a refused call, with what was wrong as the call's result."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from onspec.gateway import sse
from onspec.gateway.config import Rules
from onspec.gateway.contracts import Contracts
from onspec.gateway.rewrite import Live, Rewriter
from onspec.gateway.upstream import Answer, UpstreamError
from onspec.gateway.usage import Tokens, spent, together
from onspec.gateway.verdict import Judge, Verdict
from onspec.gateway.wire import Api, Delta, Finish, Key, Rejected, Start, Stopped, Usage

SAME = " This is the same call as before, word for word; change it as said, or do something else."
NO_CALL = (
    "Your reply ended as if it called a tool, but there is no tool call in it. "
    "Make the call now, as a tool call and not as text."
)
MAX_ANSWER = 32 * 1024 * 1024

Ask = Callable[[bytes], Awaitable[Answer]]
"""Sends a body to where the first request went, under the same headers."""


@dataclass(slots=True)
class Tries:
    """What asking again came to."""

    verdict: Verdict
    asked: int = 0
    usage: Tokens = field(default_factory=dict)


def rejected(api: Api, rewriter: Rewriter, live: Live, judge: Judge) -> tuple[Rejected, Verdict]:
    """A call that waits in a rewriter, as it is to be asked for again, and the verdict that it has now."""
    first = judge(live.match, live.stream.text, live.finish)
    before = api.before(rewriter.history[: live.frames_before], live.key)
    start = live.start
    call = Rejected(live.name, start.call_id, live.stream.text, first.feedback, before, start.namespace, start.custom)
    return call, first


@dataclass(slots=True)
class _Said:
    name: str = ""
    namespace: str | None = None
    raw: str = ""
    finish: Finish = "other"
    usage: Tokens = field(default_factory=dict)


async def ask_again(
    api: Api,
    request: dict[str, Any],
    call: Rejected,
    first: Verdict,
    contracts: Contracts,
    judge: Judge,
    rules: Rules,
    ask: Ask,
) -> Tries:
    """Ask until a call is not refused, at most `rules.retry` times and `rules.retry_tokens` output tokens.

    The same call twice ends it. Whatever goes wrong on the way leaves the first verdict. Never raises.
    """
    tries = Tries(first)
    feedback, raw = call.feedback, call.raw
    known = contracts.find(call.name, call.namespace)
    exists = known is not None and known.tool is not None
    strict, pin = rules.retry_strict and rules.strict != "off" and not call.custom, exists
    while tries.asked < rules.retry and spent(tries.usage) < rules.retry_tokens:
        tries.asked += 1
        try:
            bad = replace(call, raw=raw, feedback=feedback)
            said = await _ask(api, api.again(request, bad, strict and exists, pin), ask)
            if said is None and (strict or pin):
                strict = pin = False  # the provider does not take these for this request
                said = await _ask(api, api.again(request, bad, False, False), ask)
        except UpstreamError:
            break
        if said is None:
            break
        tries.usage = together(tries.usage, said.usage)
        match = contracts.find(said.name, said.namespace) if said.name else None
        if match is None or (match.tool is not None and (match.tool.schema is None) != call.custom):
            break  # a call of the other kind, JSON for free text, cannot take the place of this one
        verdict = judge(match, said.raw, said.finish)
        if verdict.status != "refused" and match.tool is not None and match.tool.name == verdict.tool:
            tries.verdict = verdict
            break
        if said.raw == raw and said.name == call.name:
            if SAME in feedback:
                break
            feedback = verdict.feedback + SAME
        else:
            feedback = verdict.feedback
        raw = said.raw
    return tries


async def ask_for_call(
    api: Api,
    request: dict[str, Any],
    said: tuple[Any, ...],
    contracts: Contracts,
    judge: Judge,
    rules: Rules,
    ask: Ask,
) -> Tries:
    """Ask once for the call that a reply ended for and did not hold. Never raises.

    Args:
        said: What the reply said instead, in the API's own form.
    """
    tries = Tries(Verdict("refused", "", "", ""))
    if rules.retry < 1 or rules.retry_tokens <= 0:
        return tries
    tries.asked = 1
    try:
        found = await _ask(api, api.urged(request, said, NO_CALL, True), ask)
        if found is None:
            found = await _ask(api, api.urged(request, said, NO_CALL, False), ask)
    except UpstreamError:
        return tries
    if found is None:
        return tries
    tries.usage = found.usage
    match = contracts.find(found.name, found.namespace) if found.name else None
    if match is not None and match.tool is not None and match.tool.schema is not None:
        verdict = judge(match, found.raw, found.finish)
        tries.verdict = verdict if verdict.status != "refused" else tries.verdict
    return tries


async def _ask(api: Api, request: dict[str, Any], ask: Ask) -> _Said | None:
    """The first call of the answer; None where the provider refuses the request."""
    answer = await ask(json.dumps(request).encode())
    try:
        if answer.status >= 400:
            return None
        if "event-stream" in answer.header(b"content-type"):
            return await _streamed(api, answer)
        body = bytearray()
        async for chunk in answer.decoded():
            body += chunk
            if len(body) > MAX_ANSWER:
                raise UpstreamError("the provider's answer is too large")
        return _whole(api, bytes(body))
    finally:
        await answer.close()


def _whole(api: Api, body: bytes) -> _Said:
    try:
        found = json.loads(body.decode("utf-8", "surrogateescape"))
    except ValueError:
        raise UpstreamError("the provider's answer is not JSON") from None
    said = _Said(finish=api.finish(found), usage=api.usage(found))
    calls = api.calls(found)
    if calls:
        said.name, said.namespace = calls[0].name, calls[0].namespace
        given = calls[0].arguments
        said.raw = given if isinstance(given, str) else json.dumps(given)
    return said


async def _streamed(api: Api, answer: Answer) -> _Said:
    said, first, stopped = _Said(), None, False
    reader, wire = sse.Reader(), api.stream()
    raw: list[str] = []
    key: Key = None
    async for chunk in answer.decoded():
        for frame in reader.feed(chunk):
            for mark in wire.read(frame):
                if isinstance(mark, Start) and first is None:
                    first, key = mark, mark.key
                    said.name, said.namespace = mark.name, mark.namespace
                elif isinstance(mark, Delta) and first is not None and mark.key == key:
                    raw.append(mark.text)
                elif isinstance(mark, Stopped):
                    said.finish, stopped = mark.reason, True
                elif isinstance(mark, Usage):
                    said.usage = {**said.usage, **mark.found}
    if not stopped:
        raise UpstreamError("the provider's stream ended before the reply did")
    said.raw = "".join(raw)
    return said
