"""A reply that was not streamed: its calls judged, and only the broken ones changed."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from onspec.contract.tool import Tool
from onspec.gateway.again import Tries
from onspec.gateway.contracts import Contracts
from onspec.gateway.cut import marked
from onspec.gateway.promote import MARKER, Leaked, Recover
from onspec.gateway.rewrite import reason
from onspec.gateway.splice import Edit, splice
from onspec.gateway.upstream import UpstreamError
from onspec.gateway.usage import Tokens, together
from onspec.gateway.verdict import Judge, Verdict, cut_short
from onspec.gateway.wire import Api, Finish, Path, Rejected, Whole

Again = Callable[[Rejected, Verdict], Awaitable[Tries]]
Urge = Callable[[tuple[Any, ...]], Awaitable[Tries]]
"""Asks for a call that a reply ended for and did not hold; takes what the reply said."""
MAX_HEADER = 400


@dataclass(frozen=True, slots=True)
class Judged:
    """One call of a body: the verdict, and how often it was asked for again."""

    verdict: Verdict
    tries: int = 0
    promoted: bool = False

    @property
    def outcome(self) -> str:
        """In one word."""
        if self.promoted:
            return "promoted"
        return "retried" if self.tries and self.verdict.status != "refused" else self.verdict.status


async def mend(
    data: bytes,
    api: Api,
    contracts: Contracts,
    judge: Judge,
    again: Again | None,
    recover: Recover | None = None,
    urge: Urge | None = None,
) -> tuple[bytes, list[Judged]]:
    """The body with its broken calls mended; the very same bytes where nothing was to be done.

    A body that is no JSON, or is nested too deeply, is left alone.

    Raises:
        UpstreamError: A call was cut, and its tool takes anything, so that nothing can stand in its place.
    """
    try:
        return await _mended(data, api, contracts, judge, again, recover, urge)
    except RecursionError:
        return data, []


async def _mended(
    data: bytes,
    api: Api,
    contracts: Contracts,
    judge: Judge,
    again: Again | None,
    recover: Recover | None,
    urge: Urge | None,
) -> tuple[bytes, list[Judged]]:
    try:
        body = json.loads(data.decode("utf-8", "surrogateescape"))
    except ValueError:
        return data, []
    edits: list[Edit] = []
    judged: list[Judged] = []
    extra: Tokens = {}
    finish = api.finish(body)
    for call in api.calls(body):
        match = contracts.find(call.name, call.namespace)
        if match is None:
            continue
        raw = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        why = call.finish or finish
        cut = why == "length" and call.last and match.tool is not None and not _shows_its_end(call, match.tool)
        if not raw.strip() and api.empty_means_object:
            raw = "{}"
        verdict, tries = cut_short(match, raw) if cut else judge(match, raw, why), 0
        if verdict.status == "refused" and again is not None:
            before = api.before_in(body, call)
            rejected = Rejected(call.name, call.call_id, raw, verdict.feedback, before, call.namespace, call.custom)
            found = await again(rejected, verdict)
            verdict, tries = found.verdict, found.asked
            extra = together(extra, found.usage)
        judged.append(Judged(verdict, tries))
        edits += _edits(call, raw, verdict, match.tool)
    if finish == "length" and any(one.outcome == "retried" for one in judged):
        edits += api.whole(body)
    texts, calls, meant = _leaked(body, api, contracts, recover, finish)
    if not calls and urge is not None and contracts and not api.calls(body) and not api.called(body):
        if finish == "tool" or (meant and finish == "stop" and not api.tells_tool):
            came = await urge(api.said_in(body))
            extra = together(extra, came.usage)
            if came.verdict.status != "refused":
                calls = [Leaked(came.verdict.tool, came.verdict.text, secrets.token_hex(12), came.verdict)]
                texts = meant
                judged.append(Judged(came.verdict, came.asked))
    elif calls:
        judged += [Judged(call.verdict, promoted=True) for call in calls]
    if extra and api.usage(body):
        edits.append((("usage",), together(api.usage(body), extra)))
    made = splice(data, edits) if edits else data
    if calls:
        body = json.loads(made.decode("utf-8", "surrogateescape"))
        made = splice(made, api.with_calls(body, texts, [(call.made, call.name, call.arguments) for call in calls]))
    return made, judged


def _leaked(
    body: Any, api: Api, contracts: Contracts, recover: Recover | None, finish: Finish
) -> tuple[dict[Path, str], list[Leaked], dict[Path, str]]:
    """The texts without what leaked into them, the calls that did, and the texts in which a call was only begun."""
    texts: dict[Path, str] = {}
    calls: list[Leaked] = []
    meant: dict[Path, str] = {}
    for path, text in api.texts(body) if recover is not None and contracts else ():
        marker = MARKER.search(text)
        found = recover(text, contracts, finish) if recover is not None and marker is not None else None
        if found is not None and found.calls:
            texts[path] = found.text
            calls += found.calls
        elif found is not None and marker is not None:
            meant[path] = text[: marker.start()]
    return texts, calls, meant


def _shows_its_end(call: Whole, tool: Tool) -> bool:
    """Whether a call's text says by itself that it is complete; a decoded object and free text do not."""
    return isinstance(call.arguments, str) and tool.schema is not None


def _edits(call: Whole, raw: str, verdict: Verdict, tool: Tool | None) -> list[Edit]:
    edits: list[Edit] = []
    textual = isinstance(call.arguments, str)
    if verdict.status != "refused":
        if verdict.tool != call.name:
            edits.append((call.name_path, verdict.tool))
        if verdict.text != raw:
            edits.append((call.path, verdict.text if textual else verdict.value))
    elif verdict.cut and tool is not None:
        kept = marked(tool, raw)
        if kept is None:
            raise UpstreamError(f"the model's call of {call.name} was cut off")
        edits.append((call.path, json.dumps(kept) if textual else kept))
    return edits


def headers(judged: list[Judged]) -> list[tuple[bytes, bytes]]:
    """What the client is told in the response's head."""
    made = []
    repaired = sum(one.verdict.status == "repaired" for one in judged)
    refused = [f"{one.verdict.tool or '?'} {reason(one.verdict)}" for one in judged if one.verdict.status == "refused"]
    if repaired:
        made.append((b"x-onspec-repaired", str(repaired).encode()))
    if refused:
        text = "; ".join(refused)[:MAX_HEADER]
        made.append((b"x-onspec-refused", "".join(c if " " <= c <= "~" else "?" for c in text).encode()))
    return made
