"""One failed call of a session as a small, redacted reproduction, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onspec.audit import Json
from onspec.check import Outcome, check
from onspec.contract import Tool
from onspec.errors import InputError, OnspecError
from onspec.message import Text
from onspec.repair.policy import Policy
from onspec.scan.judge import Contracts, inferred_tools, raw_of
from onspec.scan.shrink import Budget, ddmin, shorten, shrink
from onspec.scan.taxonomy import printable
from onspec.transcripts.infer import Inferred
from onspec.transcripts.redact import Redactor, bare_schema, vocabulary
from onspec.transcripts.session import Session, ToolCall, ToolResult, Turn, dumps
from onspec.transcripts.source import decode
from onspec.transcripts.verdict import ACCEPTED, ARGUMENTS, verdict

VERSION = 1
MAX_ANSWER = 600
"""Characters of the harness's answer that go into a pack."""

HARNESS_WORDS = (
        "validation", "failed", "for", "must", "have", "not", "required", "property", "properties", "additional",
        "invalid", "arguments", "parameter", "expected", "received", "missing", "unexpected", "was", "provided", "type",
        "number", "string", "array", "object", "boolean", "integer", "error", "could", "not", "parsed", "JSON", "tool",
        "use", "InputValidationError", "SchemaError", "the", "following", "issue", "issues", "due", "called", "with",
        "input", "key", "rewrite", "satisfies", "schema", "list", "should", "unknown", "unsupported", "available",
        "found", "value", "enum", "than", "least", "most", "items", "integers", "two",
)  # fmt: skip
"""Words of harnesses' own error texts, which stay readable."""

MAX_PART = 4000
"""Characters of a part of the history that go into a pack."""

Shows = Callable[[dict[str, Json]], bool]


@dataclass(frozen=True, slots=True)
class Found:
    """A call in a session: its turn's index in `Session.turns`, its ordinal from 1, and its answer."""

    call: ToolCall
    turn: int
    ordinal: int
    result: ToolResult | None


def find(session: Session, wanted: str) -> Found:
    """The call with an id, or the n-th one for `#n`.

    Raises:
        InputError: There is none, or the id is not unique; then the message says which ordinals it has.
    """
    matches: list[tuple[int, int, ToolCall]] = []
    ordinal = 0
    for index, turn in enumerate(session.turns):
        for part in turn.parts:
            if isinstance(part, ToolCall):
                ordinal += 1
                if part.id == wanted or wanted == f"#{ordinal}":
                    matches.append((index, ordinal, part))
    if not matches:
        raise InputError(f"no call {wanted} among the {ordinal} calls of the session; take an id, or #n for the n-th")
    if len(matches) > 1:
        raise InputError(
            f"{len(matches)} calls have the id {wanted}; name one of {', '.join(f'#{n}' for _, n, _ in matches)}"
        )
    index, number, call = matches[0]
    return Found(call, index, number, _answer(session, index, call))


def pick(sessions: list[Session], wanted: str) -> tuple[Session, str]:
    """The conversation of a file that has a call, and the call's `#n` in it; `#n` of `wanted` counts over all of them.

    Raises:
        InputError: As `find`.
    """
    matches: list[tuple[Session, int, int]] = []
    total = 0
    for session in sessions:
        ordinal = 0
        for turn in session.turns:
            for part in turn.parts:
                if isinstance(part, ToolCall):
                    ordinal += 1
                    if part.id == wanted or wanted == f"#{total + ordinal}":
                        matches.append((session, ordinal, total + ordinal))
        total += ordinal
    if not matches:
        raise InputError(f"no call {wanted} among the {total} calls of the file; take an id, or #n for the n-th")
    if len(matches) > 1:
        numbers = ", ".join(f"#{number}" for _, _, number in matches[:20])
        raise InputError(f"{len(matches)} calls have the id {wanted}; name one of {numbers}")
    return matches[0][0], f"#{matches[0][1]}"


def _answer(session: Session, index: int, call: ToolCall) -> ToolResult | None:
    for turn in session.turns[index:]:
        for part in turn.parts:
            if isinstance(part, ToolResult) and part.call_id == call.id:
                return part
    return None


def contract_of(session: Session, call: ToolCall) -> tuple[Tool | None, str]:
    """The call's tool and where its schema is from: `file`, `table`, `inferred`, or `none`."""
    contracts = Contracts()
    contracts.start(session.harness, session.version, True)
    contracts.define(tuple(session.tools), True)
    contract = contracts.of(call.name)
    if contract.tools:
        raw = raw_of(call, call.arguments)
        return next((tool for tool in contract.tools if not check(tool, raw).ok), contract.tools[0]), contract.source
    answers = {
        part.call_id: verdict(session.harness, part)
        for turn in session.turns
        for part in turn.parts
        if isinstance(part, ToolResult)
    }
    seen = Inferred()
    for turn in session.turns:
        for part in turn.parts:
            if isinstance(part, ToolCall) and part.name == call.name and answers.get(part.id) == ACCEPTED:
                seen.add(part.arguments if part.text is None else decode(part.text.encode("utf-8", "surrogatepass"))[0])
    tool = inferred_tools({call.name: seen}).get(call.name)
    return tool, "inferred" if tool else "none"


def signature(outcome: Outcome) -> list[str]:
    """What makes two faults the same: the status, the violations with their places, the rules of the repair."""
    if outcome.status == "refused":
        return [outcome.status, *sorted({f"{v.code} {_shape(v.path)}" for v in outcome.violations})]
    return [
        outcome.status,
        *sorted({f"{r.rule} {_shape(r.path)}" for r in outcome.repairs}),
        *map(_shape, outcome.undeclared()),
    ]


def _shape(pointer: str) -> str:
    return "/".join("*" if step.isdigit() else printable(step) if step else "" for step in pointer.split("/"))


def pack(
    session: Session, wanted: str, *, keep_text: bool = False, turns: int = 0, still: Shows | None = None
) -> dict[str, Json]:
    """A reproduction of one call.

    The arguments are reduced as far as `check` still finds the same fault, and the history to what pairs the call with
    its answer; then secrets, addresses, paths, names and all words that the schema does not know are replaced.

    Args:
        session: The session.
        wanted: The call's id, or `#n`.
        keep_text: Whether words may stay, so that only what is recognised as private is replaced.
        turns: Turns before the call from which the history is reduced; 0 keeps the call and its answer only.
        still: A further test of whether a candidate still shows the fault, such as asking a model; called often.

    Returns:
        The pack, as JSON data.

    Raises:
        InputError: There is no such call, nothing is known of its tool's schema, its text is lost, or the fault does
            not survive redaction.
    """
    found = find(session, wanted)
    call = found.call
    tool, origin = contract_of(session, call)
    if tool is None:
        raise InputError(
            f"nothing is known of the schema of {printable(call.name)}; there is nothing to check it against"
        )
    if call.stand_in and call.text is None:
        raise InputError("the file holds only a part of what the model wrote; the fault cannot be shown from it")
    bare = _bare_tool(tool)
    raw = raw_of(call, {} if call.arguments is None else call.arguments).decode("utf-8", "surrogatepass")
    outcome = check(bare, raw, Policy.safe())
    fault = signature(outcome)
    if fault == ["accepted"] and (found.result is None or verdict(session.harness, found.result) not in ARGUMENTS):
        raise InputError("nothing is wrong with this call: it fits its schema and its harness took it")
    budget = Budget()
    small = _reduce(raw, lambda text: signature(check(bare, text, Policy.safe())) == fault, budget)
    schema = bare.schema.document if bare.schema is not None else None
    kept = [*vocabulary(schema), *_keys(small), bare.name, *HARNESS_WORDS]
    redacted, redactor = _redact(small, bare, fault, kept, keep_text, session)
    outcome = check(bare, redacted, Policy.safe())
    made: dict[str, Json] = {
        "format": "onspec-pack",
        "version": VERSION,
        "source": {
            "format": session.format,
            "harness": session.harness,
            "harness_version": session.version,
            "model": next((t.model for t in session.turns[found.turn :] if t.model), None),
        },
        "tool": {"name": bare.name, "schema": schema, "effect": bare.effect, "schema_from": origin},
        "arguments": redacted,
        "expected": {"policy": "safe", "signature": signature(outcome)},
        "harness_said": _said(found, session, redactor),
        "history": [],
    }
    made["history"] = _history(session, found, turns, redactor, made, still)
    return made


def _keys(raw: str) -> list[str]:
    """The keys of the arguments that may be shown, so that an invented key stays what it is."""
    names: list[str] = []
    stack = [decode(raw.encode("utf-8", "surrogatepass"))[0]]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            names.extend(key for key in node if printable(key) == key)
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return names


def _bare_tool(tool: Tool) -> Tool:
    schema: Any = tool.schema.document if tool.schema is not None else None
    return Tool(tool.name, bare_schema(schema), effect=tool.effect, aliases=tool.aliases)  # type: ignore[arg-type]  # the shape of a schema stays


def _reduce(raw: str, shows: Callable[[str], bool], budget: Budget) -> str:
    value, reason = decode(raw.encode("utf-8", "surrogatepass"))
    if not reason and shows(dumps(value)):
        return dumps(shrink(value, lambda smaller: shows(dumps(smaller)), budget))
    return shorten(raw, shows, budget)


def _redact(
    raw: str, tool: Tool, fault: list[str], words: Any, keep_text: bool, session: Session
) -> tuple[str, Redactor]:
    texts = [part.text for turn in session.turns[:20] for part in turn.parts if isinstance(part, Text)]
    for plain in (True,) if keep_text else (False, True):
        redactor = Redactor(words, words=not plain)
        redactor.learn([raw, *texts])
        redacted = redactor.text(raw)
        if signature(check(tool, redacted, Policy.safe())) == fault:
            if plain and not keep_text:
                raise InputError(
                    "the fault hangs on words of the call itself; pack it with --keep-text, and read it before sharing"
                )
            return redacted, redactor
    raise InputError("the fault does not survive redaction; it cannot be shared this way")


def _said(found: Found, session: Session, redactor: Redactor) -> dict[str, Json]:
    if found.result is None:
        return {"verdict": "nothing", "text": ""}
    text = found.result.content[:MAX_ANSWER].split("Received arguments:")[0].rstrip()
    return {"verdict": verdict(session.harness, found.result), "text": redactor.text(text)}


def _history(
    session: Session, found: Found, turns: int, redactor: Redactor, made: dict[str, Json], still: Shows | None
) -> list[Json]:
    if turns <= 0:
        return []
    before = session.turns[max(found.turn - turns, 0) : found.turn]
    while not _is_paired(before):  # It begins between a call and its answer.
        before = before[1:]

    def told(kept: list[Turn]) -> list[Json]:
        return [
            {"role": turn.role, "parts": [_part(part, redactor) for part in turn.parts]} for turn in kept if turn.parts
        ]

    def shows(kept: list[Turn]) -> bool:
        return _is_paired(kept) and (still is None or still({**made, "history": told(kept)}))

    if not shows(before):
        raise InputError("the test does not exit 0 for the whole history, so nothing can be reduced")
    return told(ddmin(before, shows, Budget(200)) if still is not None else before)


def _is_paired(turns: list[Turn]) -> bool:
    calls = {part.id for turn in turns for part in turn.parts if isinstance(part, ToolCall)}
    results = {part.call_id for turn in turns for part in turn.parts if isinstance(part, ToolResult)}
    return results <= calls


def _part(part: Any, redactor: Redactor) -> Json:
    if isinstance(part, ToolCall):
        return {"type": "call", "id": part.id, "name": part.name, "arguments": redactor.text(part.raw()[:MAX_PART])}
    if isinstance(part, ToolResult):
        return {
            "type": "result",
            "id": part.call_id,
            "content": redactor.text(part.content[:MAX_PART]),
            "is_error": part.is_error,
        }
    return {"type": "text" if isinstance(part, Text) else "thinking", "text": redactor.text(part.text[:MAX_PART])}


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A reproduction that was run: its outcome, and whether that is what the pack expects."""

    outcome: Outcome
    expected: list[str]
    found: list[str]

    @property
    def same(self) -> bool:
        """Whether the fault is the one that was packed."""
        return self.expected == self.found


def unpack(data: Json, policy: str | None = None) -> Unpacked:
    """Runs a reproduction through `check`.

    Args:
        data: A pack, as JSON data.
        policy: Another policy than the pack's; then nothing is expected of it.

    Raises:
        InputError: It is no pack, or of a later version.
    """
    if not isinstance(data, dict) or data.get("format") != "onspec-pack":
        raise InputError("this is no pack; onspec pack makes one")
    if data.get("version") != VERSION:
        raise InputError(f"the pack is of version {data.get('version')!r}; this onspec reads version {VERSION}")
    tool, raw, expected = data.get("tool"), data.get("arguments"), data.get("expected")
    if not isinstance(tool, dict) or not isinstance(raw, str) or not isinstance(expected, dict):
        raise InputError("the pack lacks its tool, arguments or expectation")
    try:
        made = Tool(tool.get("name") or "", tool.get("schema"), effect=tool.get("effect"))
    except (OnspecError, TypeError) as error:
        raise InputError(f"the pack's tool cannot be used: {error}") from None
    outcome = check(made, raw, Policy.named(policy or str(expected.get("policy"))))
    told = expected.get("signature")
    return Unpacked(outcome, [str(line) for line in told] if isinstance(told, list) else [], signature(outcome))
