"""What is to be done with one call: the core's judgement, in the words of a wire."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from onspec import possessive
from onspec.audit import Repair, Violation
from onspec.check import check
from onspec.contract.tool import Tool
from onspec.contract.toolset import Match
from onspec.gateway.wire import Finish
from onspec.repair.policy import Policy

Status = Literal["accepted", "repaired", "refused"]
CUT = frozenset({"cut_off"})
"""Codes of a call whose text stops before its end."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One call, judged.

    Attributes:
        tool: The tool's declared name, or the name as written where there is none.
        raw: The arguments as the model wrote them.
        text: The arguments to pass on; `raw` unless repaired.
        value: The arguments to pass on, decoded; None where refused.
        cut: Whether the text stops before its end.
        feedback: For the model, where refused.
        undeclared: JSON Pointers of keys that an open schema lets through though it does not name them.
        note: Why the contract could not be enforced, or "".
    """

    status: Status
    tool: str
    raw: str
    text: str
    value: Any = None
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Violation, ...] = ()
    cut: bool = False
    feedback: str = ""
    undeclared: tuple[str, ...] = ()
    note: str = ""


_ANY = Tool("unknown", True)
_STRING = possessive.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+("|\\?\Z)', re.DOTALL)
"""A string, or what came of one that does not end; found in one pass."""
log = logging.getLogger("onspec.gateway")

Judge = Callable[[Match, str, Finish | None], Verdict]


def judge_with(policy_for: Callable[[Tool], Policy], fault: Callable[[], None] = lambda: None) -> Judge:
    """A judge that asks the core under the policy of each tool.

    A fault of the core itself is logged without payload and told to `fault`; the call then goes on as it came.
    """

    def judge(match: Match, raw: str, finish: Finish | None) -> Verdict:
        try:
            return judged(match, raw, finish)
        except Exception as error:
            log.error("judging a call failed: %s", type(error).__name__)
            fault()
            return Verdict("accepted", match.tool.name if match.tool is not None else "", raw, raw)

    def judged(match: Match, raw: str, finish: Finish | None) -> Verdict:
        if match.tool is None:
            violation = match.violation
            feedback = _unknown(violation)
            return Verdict("refused", "", raw, raw, None, (), (violation,) if violation else (), False, feedback)
        tool = match.tool
        if tool.schema is None:
            return free_form(tool, raw, match.repairs)
        begun = finish == "length" and (not raw.strip() or open_ended(raw))
        reason = "length" if begun else None
        outcome = check(tool, whole_characters(raw), policy_for(tool), reason)
        if not outcome.ok:
            cut = (
                begun
                or any(violation.code in CUT for violation in outcome.violations)
                or (not is_json(raw) if finish == "length" else open_ended(raw))
            )
            return Verdict("refused", tool.name, raw, raw, None, (), outcome.violations, cut, outcome.feedback())
        repairs = (*match.repairs, *outcome.repairs)
        text = raw if outcome.status == "accepted" else outcome.json.decode("utf-8", "surrogatepass")
        return Verdict(
            "repaired" if repairs else "accepted",
            tool.name,
            raw,
            text,
            outcome.arguments,
            repairs,
            undeclared=outcome.undeclared(),
        )

    return judge


def free_form(tool: Tool, raw: str, repairs: tuple[Repair, ...]) -> Verdict:
    """The verdict on a custom tool's text: its grammar's, where it has one that can be used."""
    if tool.free_text is None:
        return Verdict("repaired" if repairs else "accepted", tool.name, raw, raw, raw, repairs)
    outcome = check(tool, whole_characters(raw))
    note = tool.free_text.unenforced or ""
    if not outcome.ok and not note:
        return Verdict("refused", tool.name, raw, raw, None, (), outcome.violations, False, outcome.feedback())
    return Verdict("repaired" if repairs else "accepted", tool.name, raw, raw, raw, repairs, note=note)


def cut_short(match: Match, raw: str) -> Verdict:
    """The verdict on a call inside which the reply ended, whatever its text looks like."""
    name = match.tool.name if match.tool is not None else ""
    outcome = check(match.tool or _ANY, raw.encode("utf-8", "surrogatepass"), finish_reason="length")
    return Verdict("refused", name, raw, raw, None, (), outcome.violations, True, outcome.feedback())


def whole_characters(text: str) -> bytes:
    """UTF-8 bytes; halves of a surrogate pair that came in two pieces are joined first, others stay as they are."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass").encode("utf-8", "surrogatepass")


def open_ended(text: str) -> bool:
    """Whether a JSON text stops inside a string or before its brackets are closed."""
    if is_json(text):
        return False
    bare = _STRING.sub(lambda string: "" if string[1] == '"' else '"', text)
    return '"' in bare or sum(map(bare.count, "{[")) > sum(map(bare.count, "}]"))


def is_json(text: str) -> bool:
    """Whether a text is one JSON value."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _unknown(violation: Violation | None) -> str:
    if violation is None:
        return "There is no such tool."
    near = f" Did you mean {violation.hint}?" if violation.hint else ""
    return f"There is no tool named {violation.found}.{near} The tools are: {violation.expected}."
