"""One call against its contract: accepted, repaired with an audit, or refused with feedback."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

import jiter
import orjson

from onspec.audit import Json, Path, Repair, Violation
from onspec.contract import describe, feedback
from onspec.contract.schema import Schema
from onspec.contract.tool import Tool
from onspec.contract.view import Views
from onspec.repair.conform import Misfit, Search
from onspec.repair.garbage import misread
from onspec.repair.guard import leaked
from onspec.repair.policy import Policy
from onspec.repair.read import Reading, read, repairs_of
from onspec.repair.skeleton import endless, markless, plain, sound
from onspec.repair.spans import Origins, locate, numbers
from onspec.repair.step import Step

Status = Literal["accepted", "repaired", "refused"]

MAX_CHARACTERS: Final = 64 * 1024 * 1024
"""Longest call, in characters, that is looked at."""

CUT: Final = frozenset(
    {
        *("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length", "incomplete"),
        *("model_context_window_exceeded", "content_filter", "SAFETY", "RECITATION", "refusal", "error", "cancelled"),
    }
)
"""Stop reasons with which a provider says that it ended the output before the model did."""

_SMALL: Final = 8 * 1024
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_parse = partial(jiter.from_json, catch_duplicate_keys=True, allow_inf_nan=False, cache_mode="keys")

Written = str | bytes
"""What a model wrote, as it was received."""


class Outcome:
    """What became of one call.

    Attributes:
        tool: The tool whose contract was applied.
        status: `accepted` (untouched), `repaired` or `refused`.
        arguments: The arguments to run with; None where the call was refused.
        violations: Why it was refused; empty otherwise.
        written: What the model wrote, as it was received.
    """

    __slots__ = ("_audit", "arguments", "status", "tool", "violations", "written")

    def __init__(
        self,
        tool: Tool,
        status: Status,
        arguments: Any,
        written: Written,
        audit: tuple[Repair, ...] | Callable[[], tuple[Repair, ...]] = (),
        violations: tuple[Violation, ...] = (),
    ) -> None:
        self.tool = tool
        self.status = status
        self.arguments = arguments
        self.written = written
        self._audit = audit
        self.violations = violations

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """The audit: what was changed, in the order in which it applies (`onspec.repair.replay.replay`).

        The spans are looked up when this is first read.
        """
        if callable(self._audit):
            self._audit = self._audit()
        return self._audit

    @property
    def raw(self) -> bytes:
        """What the model wrote, as bytes of UTF-8; half of a surrogate pair stays as it is."""
        return self.written if isinstance(self.written, bytes) else self.written.encode("utf-8", "surrogatepass")

    @property
    def ok(self) -> bool:
        """Whether the call may run."""
        return self.status != "refused"

    @property
    def json(self) -> bytes:
        """The bytes to forward: for an accepted or refused call the very bytes received, else the arguments as JSON."""
        if self.status != "repaired":
            return self.raw
        try:
            return orjson.dumps(self.arguments)
        except TypeError:  # an integer of more than 64 bits
            return json.dumps(self.arguments, ensure_ascii=False, separators=(",", ":")).encode()

    def feedback(self, format: Literal["text", "json"] = "text") -> str:
        """What to tell the model about a refused call; "" where it was not refused. No payload is echoed.

        Args:
            format: `text` for a few lines, `json` for a document with every violation.
        """
        if self.status != "refused":
            return ""
        word = feedback.structured if format == "json" else feedback.plain
        return word(self.tool.name, self.violations)

    def undeclared(self) -> tuple[str, ...]:
        """JSON Pointers of keys the schema does not name, in open objects too, where they are forwarded as they are."""
        if not isinstance(self.arguments, dict) or self.tool.schema is None:
            return ()
        return describe.undeclared(self.tool.views, self.arguments)

    def to_dict(self) -> dict[str, Any]:
        """The outcome as `onspec check --json` prints it."""
        return {
            "status": self.status,
            "arguments": self.arguments,
            "repairs": [
                {"rule": r.rule, "path": r.path, "before": r.before, "after": r.after, "span": list(r.span)}
                for r in self.repairs
            ],
            "violations": [
                {
                    "code": v.code,
                    "path": v.path,
                    "message": v.message,
                    "expected": v.expected,
                    "found": v.found,
                    "hint": v.hint,
                }
                for v in self.violations
            ],
            "feedback": self.feedback() or None,
        }

    def __repr__(self) -> str:
        rules = ", ".join(repair.rule for repair in self.repairs)
        codes = ", ".join(violation.code for violation in self.violations)
        detail = f" ({rules or codes})" if rules or codes else ""
        return f"<Outcome {self.tool.name}: {self.status}{detail}>"


def check(
    tool: Tool,
    arguments: str | bytes | dict[str, Any],
    policy: Policy | None = None,
    finish_reason: str | None = None,
) -> Outcome:
    """Judge one call of a tool, and repair it where there is exactly one cheapest way to.

    Args:
        tool: The tool and its contract.
        arguments: What the model wrote, exactly: text, its UTF-8 bytes, or an already decoded object.
        policy: Which repairs may be made; `Policy.safe()` where none is given. A tool that writes, executes or has no
            known effect never gets more than `safe`.
        finish_reason: The provider's stop reason, where it is known. A call that the provider cut is refused.

    Returns:
        The outcome. Whatever the model wrote, nothing is raised.

    Raises:
        TypeError: `tool`, `arguments` or `policy` is of no kind listed above.
    """
    if not isinstance(tool, Tool):
        raise TypeError(f"the tool is a Tool, not {_kind(tool)}: Tool(name, schema), or Tool.from_json(definition)")
    if policy is not None:
        Policy.given(policy)
    if arguments.__class__ is str:
        text: Any = arguments
    elif arguments.__class__ is bytes:
        try:
            text = arguments.decode()
        except UnicodeDecodeError as error:
            return _not_text(tool, arguments, error, finish_reason)
    else:
        return _decoded(tool, arguments, policy, finish_reason)
    if finish_reason in CUT or tool.schema is None or len(text) > MAX_CHARACTERS:
        return _slow(tool, arguments, text, None, policy, finish_reason)
    short = len(text) < _SMALL
    try:
        value = _parse(text.encode()) if short else sound(text)
    except ValueError:
        value = None
    if (
        value.__class__ is dict
        and tool.is_valid(value)
        and (plain(value) if not tool.schema.rigid else _bare(text) if short else markless(value))
    ):
        return Outcome(tool, "accepted", value, arguments)
    return _slow(tool, arguments, text, value, policy, finish_reason)


def _bare(text: str) -> bool:
    """Whether a text holds no `<`, written as itself or as an escape, so that no string can hold markup."""
    return "<" not in text and "\\u003" not in text


def _kind(given: object) -> str:
    return f"the class {given.__name__}" if isinstance(given, type) else f"{type(given).__name__}"


def _decoded(tool: Tool, arguments: Any, policy: Policy | None, finish_reason: str | None) -> Outcome:
    """A call whose arguments were decoded by somebody else."""
    if isinstance(arguments, bytearray | memoryview):
        return check(tool, bytes(arguments), policy, finish_reason)
    if isinstance(arguments, str):
        return check(tool, str(arguments), policy, finish_reason)
    if not isinstance(arguments, dict | list) and arguments is not None:
        raise TypeError(f"arguments are text, bytes or a decoded object, not {_kind(arguments)}")
    try:
        text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return _refused(tool, b"", Violation("too_deep", "", "nested too deeply"))
    except ValueError:
        return _refused(tool, b"", Violation("not_json", "", "the value contains itself"))
    except TypeError as error:
        raise TypeError(f"the decoded arguments hold what JSON has not: {error}") from None
    return check(tool, text, policy, finish_reason)


def _slow(
    tool: Tool, written: Written, text: str, value: Json, policy: Policy | None, finish_reason: str | None
) -> Outcome:
    """Everything that is not plainly right."""
    if finish_reason in CUT:
        return _refused(tool, written, _cut_off())
    if len(text) > MAX_CHARACTERS:
        limit = f"at most {MAX_CHARACTERS} characters"
        return _refused(tool, written, Violation("too_large", "", "the call is too large", limit))
    if tool.schema is None:
        return _free_form(tool, written, text)
    reading = Reading(text, value) if value is not None and not endless(value) else read(text)
    try:
        return _Judgement(tool, tool.schema, written, text, reading, Policy.given(policy)).outcome()
    except RecursionError:
        return _refused(tool, written, Violation("too_deep", "", "nested too deeply"))


def _refused(tool: Tool, written: Written, violation: Violation) -> Outcome:
    return Outcome(tool, "refused", None, written, (), (violation,))


def _cut_off() -> Violation:
    message = "the provider ended the output before the call was complete"
    return Violation("cut_off", "", message, hint="send the whole call again, shorter if need be")


def _not_text(tool: Tool, written: Any, error: UnicodeDecodeError, finish_reason: str | None) -> Outcome:
    """Bytes that are not UTF-8."""
    if finish_reason in CUT:
        return _refused(tool, written, _cut_off())
    where = f"at byte {error.start}"
    if written[error.start : error.start + 1] == b"\xed":
        message = "the text holds half of a surrogate pair"
        return _refused(tool, written, Violation("lone_surrogate", "", message, found=where))
    return _refused(tool, written, Violation("invalid_utf8", "", "the text is not UTF-8", found=where))


def _free_form(tool: Tool, written: Written, text: str) -> Outcome:
    """A custom tool takes the texts of its grammar; without one, any text but none."""
    half = _HALF_PAIR.search(text)
    if half is not None:
        where = f"at character {half.start() + 1}"
        message = "the text holds half of a surrogate pair"
        return _refused(tool, written, Violation("lone_surrogate", "", message, found=where))
    off = tool.free_text.violation(text) if tool.free_text is not None else None
    judged = tool.free_text is not None and tool.free_text.unenforced is None
    if not text.strip() and (off is not None or not judged):
        expected = off.expected if off is not None else None
        return _refused(tool, written, Violation("empty", "", "the input is empty", expected))
    if off is not None:
        return _refused(tool, written, off)
    return Outcome(tool, "accepted", {"input": text}, written)


class _Judgement:
    """One call that is not plainly right, on its way to an outcome."""

    def __init__(
        self, tool: Tool, schema: Schema, written: Written, text: str, reading: Reading, policy: Policy
    ) -> None:
        self.tool = tool
        self.schema = schema
        self.written = written
        self.text = text
        self.reading = reading
        self.policy = policy
        self.views: Views = tool.views
        self.numbers: dict[Path, str] | None = None

    def outcome(self) -> Outcome:
        reading = self.reading
        if reading.problem is not None and reading.value is None:
            return self.refuse([reading.problem])
        stray = misread(self.text, reading.edits, self.tool.name, self.views.names)
        if stray is not None:
            return self.refuse([stray])
        writes = self.tool.effect != "read"
        search = Search(self.views, self.tool.name, self.tool.aliases, self.lexeme, reading.closed, writes)
        fit = search.run(reading.value)
        if isinstance(fit, Misfit):
            return self.refuse(self.misfit(fit))
        leak = leaked(fit.value, self.views, writes)
        if leak is not None:
            return self.refuse([leak])
        if not isinstance(fit.value, dict) or not self.tool.is_valid(fit.value):
            return self.refuse(describe.violations(self.schema, reading.value))
        if not reading.edits and not fit.steps:
            return Outcome(self.tool, "accepted", fit.value, self.written)
        made = [Repair(edit.rule, "", None, None) for edit in reading.edits]
        made += [Repair(step.rule, step.path, None, None) for step in fit.steps]
        forbidden = [r for r in made if not self.policy.allows(r, self.tool.name, self.tool.effect == "read")]
        if forbidden:
            return self.refuse(self.not_allowed(forbidden))
        steps = fit.steps
        return Outcome(self.tool, "repaired", fit.value, self.written, lambda: self.audit(steps))

    def refuse(self, violations: list[Violation]) -> Outcome:
        return Outcome(self.tool, "refused", None, self.written, (), tuple(violations))

    def audit(self, steps: list[Step]) -> tuple[Repair, ...]:
        return repairs_of(self.text, self.reading.edits) + self.located(steps)

    def misfit(self, misfit: Misfit) -> list[Violation]:
        """The judge's violations, with the search's own words where it knows more of a place."""
        if self.reading.problem is not None:
            return [self.reading.problem]
        required = list(dict.fromkeys(name for view in self.views.of(("",)) for name in view.required))
        if not self.text.strip(" \t\r\n\ufeff") or (self.reading.value == {} and required):
            return [Violation("empty", "", "the arguments are empty", describe.listed(required), "nothing")]
        known = {violation.path: violation for violation in misfit.violations}
        found = [v for v in describe.violations(self.schema, self.reading.value) if v.path not in known]
        merged = [*misfit.violations, *found]
        if not isinstance(self.reading.value, dict) and not merged:
            what = describe.found_word(self.reading.value)
            merged.append(Violation("wrong_type", "", "the arguments are not an object", "object", what))
        return merged or [Violation("invalid_value", "", "the call does not fit the schema")]

    def not_allowed(self, forbidden: list[Repair]) -> list[Violation]:
        """What stands against a call that could be repaired, but not under this policy."""
        if self.reading.problem is not None:
            return [self.reading.problem]
        found = describe.violations(self.schema, self.reading.value)
        if self.reading.edits:
            names = list(dict.fromkeys(edit.rule for edit in self.reading.edits))
            found.insert(0, Violation("not_json", "", f"the text is not JSON as it stands ({', '.join(names)})"))
        if not found:
            rules = ", ".join(dict.fromkeys(repair.rule for repair in forbidden))
            found.append(Violation("not_allowed", forbidden[0].path, f"the policy does not allow {rules}"))
        return found

    def lexeme(self, path: Path) -> str | None:
        """The source text of the value at a path of the text as read."""
        if self.numbers is None:
            self.numbers = numbers(self.reading.text)
        return self.numbers.get(path)

    def located(self, steps: list[Step]) -> tuple[Repair, ...]:
        """Steps as repairs, with their spans in the original bytes."""
        if not steps:
            return ()
        places = locate(self.reading.text, {step.origin.path for step in steps})
        origins = Origins(self.text, self.reading.edits)
        repairs: list[Repair] = []
        for step in steps:
            span = (0, len(self.text.encode("utf-8", "surrogatepass")))
            place = places.get(step.origin.path)
            if place is not None:
                keyed = step.rule in _KEY_RULES and not step.origin.inside
                start = place.key if keyed else place.start
                end = place.start if keyed and step.rule in _RENAMES else place.end
                span = (origins.byte(start), origins.byte(end))
            repairs.append(Repair(step.rule, step.path, step.before, step.after, span))
        return tuple(repairs)


_RENAMES = frozenset({"alias_key", "key_case", "key_trim"})
_KEY_RULES = _RENAMES | {"drop_unknown_key", "drop_null_optional", "drop_empty_optional"}
