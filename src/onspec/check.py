"""One call against its contract: accepted, repaired with an audit, or refused with feedback."""

from __future__ import annotations

import json
import math
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
from onspec.repair.guard import leaked
from onspec.repair.policy import Policy
from onspec.repair.read import Reading, read, repairs_of
from onspec.repair.skeleton import sound
from onspec.repair.spans import Origins, locate
from onspec.repair.step import Step

Status = Literal["accepted", "repaired", "refused"]

MAX_BYTES: Final = 64 * 1024 * 1024
"""Largest call, in bytes, that is looked at."""

CUT: Final = frozenset(
    {
        *("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length", "incomplete"),
        *("model_context_window_exceeded", "content_filter", "SAFETY", "RECITATION", "refusal", "error", "cancelled"),
    }
)
"""Stop reasons with which a provider says that it ended the output before the model did."""

_SMALL = 8 * 1024
_parse = partial(jiter.from_json, catch_duplicate_keys=True, allow_inf_nan=False, cache_mode="keys")
_INFINITE = (math.inf, -math.inf)


class Outcome:
    """What became of one call.

    Attributes:
        tool: The tool whose contract was applied.
        status: `accepted` (untouched), `repaired` or `refused`.
        arguments: The arguments to run with; None where the call was refused.
        repairs: The audit: what was changed, in the order in which it applies (`onspec.repair.replay.replay`).
        violations: Why it was refused; empty otherwise.
        raw: What the model wrote, as bytes of UTF-8.
    """

    __slots__ = ("arguments", "raw", "repairs", "status", "tool", "violations")

    def __init__(
        self,
        tool: Tool,
        status: Status,
        arguments: Any,
        raw: bytes,
        repairs: tuple[Repair, ...] = (),
        violations: tuple[Violation, ...] = (),
    ) -> None:
        self.tool = tool
        self.status = status
        self.arguments = arguments
        self.raw = raw
        self.repairs = repairs
        self.violations = violations

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
        TypeError: `arguments` is of no kind listed above.
    """
    if arguments.__class__ is str:
        try:
            raw = arguments.encode()
        except UnicodeEncodeError:
            raw = arguments.encode("utf-8", "surrogatepass")
    elif arguments.__class__ is bytes:
        raw = arguments
    else:
        return _decoded(tool, arguments, policy, finish_reason)
    if finish_reason in CUT or tool.schema is None or len(raw) > MAX_BYTES:
        return _slow(tool, raw, None, policy, finish_reason)
    try:
        value = _parse(raw) if len(raw) < _SMALL else sound(raw)
    except ValueError:
        value = None
    if value.__class__ is dict and tool.is_valid(value) and b"<" not in raw and not _odd(value):
        return Outcome(tool, "accepted", value, raw)
    return _slow(tool, raw, value, policy, finish_reason)


def _odd(value: dict[str, Any]) -> bool:
    """Whether a value holds a number without end, which JSON cannot write."""
    for item in value.values():
        kind = item.__class__
        if kind is str:
            continue
        if kind is float:
            if item in _INFINITE:
                return True
        elif (kind is list or kind is dict) and _odd_inside(item):
            return True
    return False


def _odd_inside(value: Any) -> bool:
    stack = [value]
    while stack:
        item = stack.pop()
        for inner in item.values() if item.__class__ is dict else item:
            kind = inner.__class__
            if kind is float:
                if inner in _INFINITE or inner != inner:
                    return True
            elif kind is dict or kind is list:
                stack.append(inner)
    return False


def _decoded(tool: Tool, arguments: Any, policy: Policy | None, finish_reason: str | None) -> Outcome:
    """A call whose arguments were decoded by somebody else."""
    if isinstance(arguments, bytearray | memoryview):
        return check(tool, bytes(arguments), policy, finish_reason)
    if isinstance(arguments, str):
        return check(tool, str(arguments), policy, finish_reason)
    if not isinstance(arguments, dict | list) and arguments is not None:
        raise TypeError(f"arguments are text, bytes or a decoded object, not {type(arguments).__name__}")
    try:
        text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return Outcome(tool, "refused", None, b"", (), (Violation("too_deep", "", "nested too deeply"),))
    except ValueError:
        return Outcome(tool, "refused", None, b"", (), (Violation("not_json", "", "the value contains itself"),))
    return check(tool, text, policy, finish_reason)


def _slow(tool: Tool, raw: bytes, value: Json, policy: Policy | None, finish_reason: str | None) -> Outcome:
    """Everything that is not plainly right."""
    if finish_reason in CUT:
        message = "the provider ended the output before the call was complete"
        violation = Violation("cut_off", "", message, hint="send the whole call again, shorter if need be")
        return Outcome(tool, "refused", None, raw, (), (violation,))
    if len(raw) > MAX_BYTES:
        limit = f"at most {MAX_BYTES} bytes"
        return Outcome(tool, "refused", None, raw, (), (Violation("too_large", "", "the call is too large", limit),))
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        code = "lone_surrogate" if raw[error.start : error.start + 1] == b"\xed" else "invalid_utf8"
        message = "the text holds half of a surrogate pair" if code == "lone_surrogate" else "the text is not UTF-8"
        return Outcome(tool, "refused", None, raw, (), (Violation(code, "", message, found=f"at byte {error.start}"),))
    if tool.schema is None:
        return _free_form(tool, raw, text)
    reading = Reading(text, value) if value is not None and not _infinite(value) else read(text)
    try:
        return _Judgement(tool, tool.schema, raw, text, reading, policy or Policy.safe()).outcome()
    except RecursionError:
        return Outcome(tool, "refused", None, raw, (), (Violation("too_deep", "", "nested too deeply"),))


def _infinite(value: Json) -> bool:
    return isinstance(value, dict | list) and _odd_inside([value])


def _free_form(tool: Tool, raw: bytes, text: str) -> Outcome:
    """A custom tool takes any text but none."""
    if not text.strip():
        return Outcome(tool, "refused", None, raw, (), (Violation("empty", "", "the input is empty"),))
    return Outcome(tool, "accepted", {"input": text}, raw)


class _Judgement:
    """One call that is not plainly right, on its way to an outcome."""

    def __init__(self, tool: Tool, schema: Schema, raw: bytes, text: str, reading: Reading, policy: Policy) -> None:
        self.tool = tool
        self.schema = schema
        self.raw = raw
        self.text = text
        self.reading = reading
        self.policy = policy
        self.views: Views = tool.views

    def outcome(self) -> Outcome:
        reading = self.reading
        if reading.problem is not None and reading.value is None:
            return self.refuse([reading.problem])
        search = Search(self.views, self.tool.name, self.tool.aliases, self.lexeme, reading.closed)
        fit = search.run(reading.value)
        if isinstance(fit, Misfit):
            return self.refuse(self.misfit(fit))
        leak = leaked(fit.value, self.views, self.tool.effect != "read")
        if leak is not None:
            return self.refuse([leak])
        if not isinstance(fit.value, dict) or not self.tool.is_valid(fit.value):
            return self.refuse(describe.violations(self.schema, reading.value))
        repairs = repairs_of(self.text, reading.edits) + self.located(fit.steps)
        if not repairs:
            return Outcome(self.tool, "accepted", fit.value, self.raw)
        forbidden = [r for r in repairs if not self.policy.allows(r, self.tool.name, self.tool.effect == "read")]
        if forbidden:
            return self.refuse(self.not_allowed(forbidden))
        return Outcome(self.tool, "repaired", fit.value, self.raw, repairs)

    def refuse(self, violations: list[Violation]) -> Outcome:
        return Outcome(self.tool, "refused", None, self.raw, (), tuple(violations))

    def misfit(self, misfit: Misfit) -> list[Violation]:
        """The judge's violations, with the search's own words where it knows more of a place."""
        if self.reading.problem is not None:
            return [self.reading.problem]
        if not self.text.strip():
            required = [name for view in self.views.of(("",)) for name in view.required]
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
        place = locate(self.reading.text, [path]).get(path)
        return self.reading.text[place.start : place.end] if place else None

    def located(self, steps: list[Step]) -> tuple[Repair, ...]:
        """Steps as repairs, with their spans in the original bytes."""
        if not steps:
            return ()
        places = locate(self.reading.text, {step.origin for step in steps})
        origins = Origins(self.text, self.reading.edits)
        repairs: list[Repair] = []
        for step in steps:
            span = (0, len(self.raw))
            place = places.get(step.origin)
            if place is not None:
                start = place.key if step.rule in _KEY_RULES else place.start
                end = place.start if step.rule in _RENAMES else place.end
                span = (origins.byte(start), origins.byte(end))
            repairs.append(Repair(step.rule, step.path, step.before, step.after, span))
        return tuple(repairs)


_RENAMES = frozenset({"alias_key", "key_case", "key_trim"})
_KEY_RULES = _RENAMES | {"drop_unknown_key", "drop_null_optional", "drop_empty_optional"}
