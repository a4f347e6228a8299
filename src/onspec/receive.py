"""A model's reply in, visible text, thinking, and calls that keep their contracts out."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from onspec.audit import Repair, Violation
from onspec.check import Outcome, check
from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset
from onspec.dialects import Dialect, dialect_of, named
from onspec.dialects.dialect import Context
from onspec.dialects.draft import Draft, Fault, Note
from onspec.dialects.items import Found, Item, Opening, Remark, Shown, Thought, size
from onspec.dialects.machine import Machine
from onspec.dialects.rules import FAULTS
from onspec.dialects.values import drop_markup, join
from onspec.errors import InputError
from onspec.message import Text, Thinking
from onspec.repair.policy import Policy

Tools = Toolset | Iterable[Tool] | Iterable[Mapping[str, Any]] | Mapping[str, Any]
"""Tools in any form: a set, tools, definitions of any provider, or a whole request with `tools`."""

_COMMANDS = re.compile(
    r"(?:^|[_.-])(?:shell|bash|exec|execute|command|cmd|terminal|powershell|sh)(?:$|[_.-])", re.IGNORECASE
)
_FORGED = re.compile(
    r"</(output|result|results|function_results|tool_result|tool_response|tool_output|function_response|stdout|stderr)>"
)


@dataclass(frozen=True, slots=True)
class ReceivedCall:
    """One call found in a reply.

    Attributes:
        name: The tool's name as the model wrote it.
        arguments: The arguments' text: JSON as written, or, where the dialect writes tags, put together by the schema.
        outcome: What became of it; run it only if `outcome.ok`. Its `repairs` begin with those of the markup (rules of
            `onspec.dialects.rules`), then those of the arguments (rules of `onspec.repair.rules`).
        span: Where it stands in the reply, in bytes.
        id: The call's id where the dialect writes one.
    """

    name: str
    arguments: str
    outcome: Outcome
    span: tuple[int, int]
    id: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the call may run."""
        return self.outcome.ok


Event = Text | Thinking | ReceivedCall
"""What becomes certain while a reply is read: a piece of text, a piece of thinking, or a whole call."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply, read to its end.

    Attributes:
        text: What the user may see; no markup.
        thinking: The reasoning.
        calls: The calls, in order, refused ones too.
        trail: Every leniency that was taken, in order; spans in bytes of the reply.
    """

    text: str
    thinking: str
    calls: tuple[ReceivedCall, ...]
    trail: tuple[Repair, ...]

    @property
    def status(self) -> str:
        """`refused` if any call was, else `repaired` or `accepted`, or `text` where there is no call."""
        if not self.calls:
            return "text"
        if not all(call.ok for call in self.calls):
            return "refused"
        return "repaired" if self.trail else "accepted"


class Receiver:
    """Reads a reply as it arrives. However it is cut into pieces, the reply and its trail come out the same.

    Args:
        tools: The tools of the request.
        dialect: A dialect, its name, or `auto`: decided by the model's name if one is given, else by the markers seen.
        policy: Which repairs may be made; `Policy.safe()` if None. `Policy.strict()` allows none, of markup neither.
        thinking: Where the reply starts: `closed` (outside reasoning), `open` (the prompt opened it), or `unknown`.
            None takes what the dialect says. While it is `unknown` no event is certain before a closer of reasoning or
            the end, so nothing is returned before; say `closed` or `open` where the prompt tells, to have text at once.
        tool_marker_ends_thinking: Whether a call's marker inside open reasoning ends it. None: as the dialect says.
        model: Name of the model, for `dialect="auto"`.

    Raises:
        InputError: There is no such dialect, or `thinking` is none of the words above.
    """

    def __init__(
        self,
        tools: Tools,
        dialect: str | Dialect = "auto",
        policy: Policy | None = None,
        *,
        thinking: Opening | None = None,
        tool_marker_ends_thinking: bool | None = None,
        model: str | None = None,
    ) -> None:
        if thinking not in (None, "open", "closed", "unknown"):
            raise InputError(f"thinking is open, closed or unknown, not {thinking!r}")
        if dialect == "auto" and model is not None:
            dialect = dialect_of(model)
        row = named(dialect) if isinstance(dialect, str) else dialect
        self.dialect = row
        self.tools = toolset(tools)
        self._policy = Policy.given(policy)
        self._context = Context(self.tools)
        marker_ends = row.tool_marker_ends_thinking if tool_marker_ends_thinking is None else tool_marker_ends_thinking
        self._marker_ends = marker_ends
        opening: Opening = thinking or ("unknown" if row.prefilled else "closed")
        self._machine = Machine(row, self._context, opening, marker_ends)
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._whole: list[str] | None = [] if row.name == "json_args" else None
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._places: list[tuple[int, str]] = []
        self._calls: list[ReceivedCall] = []
        self._trail: list[Repair] = []
        self._reply: Reply | None = None
        self._finish: str | None = None

    def feed(self, piece: str | bytes) -> tuple[Event, ...]:
        """Take the next piece, text or bytes of UTF-8 cut anywhere, and return what became certain.

        Raises:
            InputError: The reply was already closed.
            TypeError: The piece is neither text nor bytes.
        """
        if self._reply is not None:
            raise InputError("the reply is closed; make a new Receiver")
        if not isinstance(piece, str | bytes):
            raise TypeError(f"a reply is text or bytes, not {type(piece).__name__}")
        text = self._decoder.decode(piece) if isinstance(piece, bytes) else piece
        if self._whole is not None:
            self._whole.append(text)
            return ()
        return self._events(self._machine.feed(text))

    def close(self, finish_reason: str | None = None) -> tuple[Event, ...]:
        """The reply is over: return the rest. `reply` is there afterwards.

        Args:
            finish_reason: The provider's stop reason. Where it says that the provider cut the output, a call that ran
                into the end is refused.
        """
        if self._reply is not None:
            return ()
        self._finish = finish_reason
        rest = self._decoder.decode(b"", True)
        if self._whole is not None:
            events = self._arguments("".join((*self._whole, rest)))
        else:
            items = self._machine.feed(rest) if rest else []
            events = self._events([*items, *self._machine.close()])
            events += self._thought_calls()
        text = "".join(self._text)
        self._reply = Reply(text, "".join(self._thinking), tuple(self._calls), tuple(self._trail))
        return events

    @property
    def reply(self) -> Reply:
        """The whole reply.

        Raises:
            InputError: It was not closed yet.
        """
        if self._reply is None:
            raise InputError("the reply is not closed yet")
        return self._reply

    # -- events ----------------------------------------------------------------------------------------------------

    def _events(self, items: list[Item]) -> tuple[Event, ...]:
        events: list[Event] = []
        for item in items:
            if isinstance(item, Shown):
                text = showable(item.text)
                self._text.append(text)
                events.append(Text(text))
            elif isinstance(item, Thought):
                text = showable(item.text)
                self._thinking.append(text)
                self._places.append((item.at, item.text))
                events.append(Thinking(text))
            elif isinstance(item, Remark):
                self._trail.append(_repair(item.note, item.span))
            else:
                events.append(self._call(item))
        return tuple(events)

    def _call(self, found: Found) -> ReceivedCall:
        call = judge(found, self.tools, self._policy, self._finish)
        self._calls.append(call)
        self._trail += call.outcome.repairs
        return call

    def _thought_calls(self) -> tuple[Event, ...]:
        """Calls in the reasoning of a reply that has neither text nor calls: refused, so that the model hears of it."""
        if self._calls or "".join(self._text).strip():
            return ()
        events: list[Event] = []
        for at, text in _joined(self._places):
            machine = Machine(self.dialect, self._context)
            for item in [*machine.feed(text), *machine.close()]:
                if not isinstance(item, Found) or item.draft.fault or self._context.tool(item.draft.name) is None:
                    continue
                item.draft.fault = Fault("call_in_thinking")
                start, end = item.span
                moved = Found(item.draft, (at + start, at + end), (), item.raw)
                events.append(self._call(moved))
        return tuple(events)

    def _arguments(self, text: str) -> tuple[Event, ...]:
        """The text is the arguments of a call to the one tool there is."""
        if len(self.tools) != 1:
            raise InputError("the dialect json_args needs exactly one tool")
        name = next(iter(self.tools))
        draft = Draft(name, text, 0, len(text), at_end=True)
        return (self._call(Found(draft, (0, size(text)), (), text)),)


def receive(
    text: str | bytes,
    tools: Tools,
    dialect: str | Dialect = "auto",
    policy: Policy | None = None,
    *,
    thinking: Opening | None = None,
    tool_marker_ends_thinking: bool | None = None,
    finish_reason: str | None = None,
    model: str | None = None,
) -> Reply:
    """Read a whole reply: visible text, thinking, and every call with its outcome.

    Args:
        text: What the model wrote.
        tools, dialect, policy, thinking, tool_marker_ends_thinking, model: As for `Receiver`.
        finish_reason: As for `Receiver.close`.

    Returns:
        The reply. Whatever the model wrote, nothing is raised.

    Raises:
        InputError: There is no such dialect.
        ToolFormatError, SchemaError: The tools cannot be used.
    """
    receiver = Receiver(
        tools,
        dialect,
        policy,
        thinking=thinking,
        tool_marker_ends_thinking=tool_marker_ends_thinking,
        model=model,
    )
    receiver.feed(text)
    receiver.close(finish_reason)
    return receiver.reply


def toolset(tools: Tools) -> Toolset:
    """The tools as a set, whatever form they came in."""
    if isinstance(tools, Toolset):
        return tools
    if isinstance(tools, Mapping):
        return Toolset.from_json(tools)
    if isinstance(tools, Tool):
        raise TypeError("tools are a Toolset or a list; put the one tool into a list")
    listed = list(tools)
    if all(isinstance(tool, Tool) for tool in listed):
        return Toolset(tool for tool in listed if isinstance(tool, Tool))
    return Toolset.from_json(listed)


def judge(found: Found, tools: Toolset, policy: Policy, finish_reason: str | None) -> ReceivedCall:
    """One draft against its contract."""
    draft = found.draft
    match = tools.find(draft.name)
    tool = match.tool
    spans = {id(note): span for note, span in found.notes}
    arguments = join(draft, tool) if draft.fault is None else draft.body if isinstance(draft.body, str) else ""
    if tool is not None and tool.schema is None and not draft.freeform and draft.fault is None:
        arguments = _custom_text(arguments)
    notes = tuple(_repair(note, spans.get(id(note), found.span)) for note in draft.notes)
    repairs = (*notes, *match.repairs)
    outcome = _outcome(draft, arguments, tool, match.violation, repairs, policy, finish_reason)
    return ReceivedCall(draft.name, arguments, outcome, found.span, draft.id)


def _custom_text(arguments: str) -> str:
    """The text of a custom tool that a dialect without free text carries as `{"input": text}`; else as it stands."""
    try:
        value = orjson.loads(arguments)
    except ValueError:
        return arguments
    wrapped = isinstance(value, dict) and len(value) == 1 and isinstance(value.get("input"), str)
    return str(value["input"]) if wrapped else arguments


def _outcome(
    draft: Draft,
    arguments: str,
    tool: Tool | None,
    unknown: Violation | None,
    repairs: tuple[Repair, ...],
    policy: Policy,
    finish_reason: str | None,
) -> Outcome:
    if draft.fault is not None:
        return _refused(tool or _stand_in(draft.name), arguments, _violation(draft.fault))
    if tool is None:
        assert unknown is not None
        return _refused(_stand_in(draft.name), arguments, unknown)
    if repairs and not policy.rules:
        names = ", ".join(dict.fromkeys(repair.rule for repair in repairs))
        return _refused(tool, arguments, _violation(Fault("not_permitted", names)))
    if forged(draft, tool, arguments):
        return _refused(tool, arguments, _violation(Fault("forged_result")))
    outcome = check(tool, arguments, policy, finish_reason if draft.at_end else None)
    if not outcome.ok and policy.rules and tool.schema is not None:
        shorter = drop_markup(arguments, tool)
        if shorter is not None:
            second = check(tool, shorter, policy, finish_reason if draft.at_end else None)
            if second.ok:
                outcome = second
                repairs = (*repairs, Repair("trailing_markup_dropped", "", None, None))
    if not outcome.ok or (not repairs and outcome.status == "accepted"):
        return outcome
    made = outcome.repairs
    if isinstance(draft.body, list) and policy.name != "lenient":
        dropped = next(
            (repair for repair in made if repair.rule == "drop_unknown_key" and repair.path.count("/") == 1), None
        )
        if dropped is not None:
            return _refused(tool, arguments, _violation(Fault("undeclared_parameter"), dropped.path))
    return Outcome(tool, "repaired", outcome.arguments, outcome.written, (*repairs, *made))


def forged(draft: Draft, tool: Tool, arguments: str) -> bool:
    """Whether a value that would be executed holds the end of a tool result that nothing in it began."""
    if "</" not in arguments:
        return False
    runs = tool.effect == "exec" or (tool.effect is None and _COMMANDS.search(tool.name) is not None)
    if not runs:
        return False
    values = [pair.value for pair in draft.body] if isinstance(draft.body, list) else [arguments]
    for value in values:
        for closer in _FORGED.finditer(value):
            if f"<{closer[1]}" not in value[: closer.start()]:
                return True
    return False


def showable(text: str) -> str:
    """Text that can be written as UTF-8: a byte that was none becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udfff]", "\ufffd", text)
    return text


def _joined(places: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Pieces that follow one another as one."""
    segments: list[tuple[int, list[str], int]] = []
    for at, text in places:
        if segments and segments[-1][2] == at:
            start, parts, _ = segments[-1]
            parts.append(text)
            segments[-1] = (start, parts, at + size(text))
        else:
            segments.append((at, [text], at + size(text)))
    return [(start, "".join(parts)) for start, parts, _ in segments]


def _repair(note: Note, span: tuple[int, int]) -> Repair:
    return Repair(note.rule, note.path, note.before or None, note.after, span)


def _violation(fault: Fault, path: str = "") -> Violation:
    return Violation(fault.code, path, FAULTS[fault.code], found=fault.found)


def _refused(tool: Tool, written: str, violation: Violation) -> Outcome:
    return Outcome(tool, "refused", None, written, (), (violation,))


def _stand_in(name: str) -> Tool:
    """A tool for the outcome of a call whose name is not declared."""
    return Tool(name.strip()[:200] or "unnamed", True)


__all__ = ["Event", "ReceivedCall", "Receiver", "Reply", "receive"]
