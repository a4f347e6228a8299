"""Call markup that leaked into visible text: recovered where it is complete and valid, left alone otherwise."""

from __future__ import annotations

import secrets

from onspec.check import Outcome
from onspec.contract.toolset import Toolset
from onspec.gateway.contracts import Contracts
from onspec.gateway.promote import Leaked, Recover, Recovered
from onspec.gateway.verdict import Verdict
from onspec.gateway.wire import Finish
from onspec.receive import receive
from onspec.repair.policy import Policy

NOT_MEANT = frozenset({"quoted_call", "unknown_tool"})
"""Codes of markup that is no call of a declared tool."""


def recover_with(policy: Policy) -> Recover:
    """Recovers leaked calls by the core's reader of dialects, under a policy.

    Nothing is recovered from a reply that was cut by length, or where any call in the text is refused.
    """

    def recover(text: str, contracts: Contracts, finish: Finish | None) -> Recovered | None:
        tools = contracts.tools.get("")
        if not tools or finish == "length":
            return None
        known = Toolset(tool for tool in tools.values() if tool.schema is not None)
        reply = receive(text, known, policy=policy)
        if not all(call.ok for call in reply.calls):
            codes = {violation.code for call in reply.calls for violation in call.outcome.violations}
            return None if codes & NOT_MEANT else Recovered(text, ())
        if not reply.calls:
            return None
        return Recovered(reply.text, tuple(_leaked(call.outcome, call.arguments) for call in reply.calls))

    return recover


def _leaked(outcome: Outcome, written: str) -> Leaked:
    text = outcome.json.decode()
    verdict = Verdict("repaired", outcome.tool.name, written, text, outcome.arguments, outcome.repairs)
    return Leaked(outcome.tool.name, text, secrets.token_hex(12), verdict)
