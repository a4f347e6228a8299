"""Counts one session file, streaming."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b

from onspec.contract import Tool
from onspec.errors import OnspecError
from onspec.scan.count import FileReport, Finding, Group, Spent, Tally
from onspec.scan.follow import Follower, Reply
from onspec.scan.identities import Identities
from onspec.scan.judge import (
    FREE,
    NO_CONTRACT,
    Contract,
    Contracts,
    Judgement,
    Remedy,
    inferred_tools,
    inventions,
    judge,
    only_top_level,
    remedy,
)
from onspec.scan.taxonomy import Invented, tool_label
from onspec.transcripts.infer import Inferred
from onspec.transcripts.known import version_of
from onspec.transcripts.reader import detect
from onspec.transcripts.session import Damage, Start, ToolCall, ToolResult, Tools, Turn
from onspec.transcripts.source import Source
from onspec.transcripts.verdict import ACCEPTED, ARGUMENTS, ERROR, verdict

MAX_PENDING = 20_000
"""Calls that may wait for their answers at once."""

MAX_FINDINGS = 200
"""Findings of one file that are kept; the counts go on."""

MAX_HELD = 200
"""Rejected calls without a known schema that are held until one can be inferred."""

MAX_HELD_BYTES = 64 * 1024
"""Longest arguments that are held for that."""

FORK_CALLS = 3
"""Accepted calls off a known schema from which on a session may be believed to have a tool of its own."""

MAX_GROUPS = 20_000
"""Groups of one file; what comes after counts under `OTHERS`."""

OTHERS = Group("(others)", "", "(others)", "")

MAX_KEYS = 20_000
"""Invented keys of one file that are told apart."""

MAX_TOOLS = 2000
"""Tools of one file for which a schema is inferred."""

BYTES_PER_TOKEN = 4
"""What a token of arguments is taken to be, where the count is known to be wrong."""

USAGE_RELIABLE = (2, 1, 200)
"""The version of Claude Code from which its files hold final output tokens instead of those at the stream's start."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is counted.

    Attributes:
        since: Unix seconds; calls recorded before are left out. Calls without a time count.
        infer: Whether schemas are inferred where none is known.
    """

    since: float | None = None
    infer: bool = True


@dataclass(slots=True)
class _Sink:
    """Where what is wrong with calls is counted: the report itself, or aside until a tool's schema is believed."""

    groups: dict[Group, Tally]
    keys: Counter[tuple[str, str, int, str, bool, str, str]]
    rules: Counter[str]
    codes: Counter[str]
    findings: list[Finding]


@dataclass(slots=True)
class _Open:
    """A call that waits for its answer."""

    call: ToolCall
    contract: Contract
    judgement: Judgement
    reply: Reply
    group: Group
    tally: Tally
    ordinal: int
    line: int
    harness: str
    follower: Follower


def identity(key: str) -> int:
    """A key as a number of 64 bits, the same in every process."""
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def scan_file(path: str, options: Options | None = None, known: Collection[int] = ()) -> FileReport:
    """Counts one file.

    Args:
        path: A local path, or a URL that fsspec knows.
        options: What to count.
        known: Identities of calls that other files hold; they are left out as copies.

    Returns:
        The counts. What is wrong with the file is in `damage` and `error`; nothing is raised for it.
    """
    report = FileReport(path)
    source = Source(path)
    try:
        if "://" not in path:
            report.size = os.stat(path).st_size
        found = detect(source)
        if found is None:
            return report
        report.format = found.name
        counter = _Counter(report, options or Options(), found.name, known)
        for entry in found.entries(source):
            if entry.__class__ is Turn:
                counter.turn(entry)
            elif isinstance(entry, Damage):
                report.damage[entry.reason] += 1
            elif isinstance(entry, Start):
                counter.start(entry)
            elif isinstance(entry, Tools):
                counter.contracts.define(entry.definitions, entry.replace, entry.removed)
            else:
                report.unknown += 1
        counter.finish()
    except (OSError, OnspecError) as error:
        report.error = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    except (TypeError, ValueError, LookupError, AttributeError, RecursionError, MemoryError) as error:
        # One file of a shape that no test has thought of must not end the counting of a thousand others.
        report.error = f"not understood from some point on ({type(error).__name__})"
    report.identities = type(report.identities)("Q", sorted(report.identities))
    return report


class _Counter:
    """Takes entries in their order and counts them."""

    def __init__(self, report: FileReport, options: Options, format_name: str, known: Collection[int]) -> None:
        self.report = report
        self.options = options
        self.known = known
        self.harness = format_name
        self.version: str | None = None
        self.guesses = False
        self.model = ""
        self.contracts = Contracts()
        self.contracts.start(format_name, None, True)
        self.pending: dict[str | None, deque[_Open]] = {}
        self.waiting = 0
        self.ordinal = 0
        self.seen = Identities()
        self.shown: dict[str, str] = {}
        self.skipped: dict[str, int] = {}
        self.inferred: dict[str, Inferred] = {}
        self.held: list[tuple[_Open, int | None]] = []
        self.followers = (self._follower(), self._follower())
        self.days: dict[int, str] = {}
        self.main = _Sink(report.groups, report.keys, report.rules, report.codes, report.findings)
        self.aside: dict[str, _Sink] = {}

    def _follower(self) -> Follower:
        return Follower(self._spend, self._mark)

    def _spend(self, model: str, more: Spent) -> None:
        if model not in self.report.spent and len(self.report.spent) >= MAX_TOOLS:
            model = "(others)"
        spent = self.report.spent.get(model)
        self.report.spent[model] = more if spent is None else spent.plus(more)

    def _mark(self, index: int, call: str, tries: int) -> None:
        findings = self.report.findings
        findings[index] = replace(findings[index], fixed_by=call, fixed_after=tries)

    def start(self, start: Start) -> None:
        """A new session, or more about the one that is being read."""
        if start.fresh:
            self._flush()
        self.harness = start.harness
        self.version = start.version or (None if start.fresh else self.version)
        self.model = start.model or ("" if start.fresh else self.model)
        self.guesses = not reliable_usage(self.harness, self.version)
        self.contracts.start(self.harness, self.version, start.fresh)

    def turn(self, turn: Turn) -> None:
        """Calls, or answers, or neither."""
        if turn.role == "assistant":
            model = turn.model or self.model
            follower = self.followers[turn.side]
            if self._before(turn.time):
                self.ordinal += sum(part.__class__ is ToolCall for part in turn.parts)
                return
            usage = turn.usage
            reply = follower.reply(turn.message_id or turn.id, model, usage)
            for part in turn.parts:
                if part.__class__ is ToolCall:
                    self._call(part, turn, model, reply, follower)
                elif part.__class__ is ToolResult:
                    self._result(part, turn)
        elif turn.role == "tool":
            for part in turn.parts:
                if part.__class__ is ToolResult:
                    self._result(part, turn)

    def _before(self, moment: float | None) -> bool:
        return self.options.since is not None and moment is not None and moment < self.options.since

    def _call(self, call: ToolCall, turn: Turn, model: str, reply: Reply, follower: Follower) -> None:
        self.ordinal += 1
        if call.key is not None:
            number = identity(call.key)
            if number in self.known or not self.seen.add(number):
                self.report.copies += 1
                if call.id is not None and len(self.skipped) < MAX_PENDING:
                    self.skipped[call.id] = self.skipped.get(call.id, 0) + 1
                return
            self.report.identities.append(number)
        group = Group(self.harness, model, self._label(call.name), self._day(turn.time))
        tally = self.report.groups.get(group)
        if tally is None:
            if len(self.report.groups) >= MAX_GROUPS:
                group = OTHERS
            tally = self.report.groups.setdefault(group, Tally())
        tally.calls += 1
        reply.calls += 1
        if turn.side:
            tally.of_subagents += 1
        if self.guesses:
            reply.guess += len(call.raw()) // BYTES_PER_TOKEN
            self.report.guessed += 1
        if self.version and (self.version in self.report.versions or len(self.report.versions) < MAX_TOOLS):
            self.report.versions[self.version] += 1
        contract = self.contracts.of(call.name)
        found = judge(call, contract)
        if contract.tools and found is not FREE:
            tally.judged += 1
        self.report.schemas["free" if call.custom else contract.source] += 1
        waiting = _Open(call, contract, found, reply, group, tally, self.ordinal, turn.line, self.harness, follower)
        queue = self.pending.get(call.id)
        if queue is None:
            self.pending[call.id] = deque((waiting,))
        else:
            queue.append(waiting)
        self.waiting += 1
        if self.waiting > MAX_PENDING:
            self._drop_oldest()

    def _result(self, result: ToolResult, turn: Turn) -> None:
        queue = self.pending.get(result.call_id)
        if not queue:
            self._stray(result, turn)
            return
        waiting = queue.popleft()
        if not queue:
            del self.pending[result.call_id]
        self.waiting -= 1
        waiting.tally.results += 1
        if result.is_error:
            waiting.tally.error_results += 1
        self._close(waiting, verdict(waiting.harness, result))

    def _stray(self, result: ToolResult, turn: Turn) -> None:
        """An answer without a call: some harnesses throw the call away that they could not read."""
        if self._before(turn.time):
            return
        if result.call_id in self.skipped:
            left = self.skipped.pop(result.call_id) - 1
            if left:
                self.skipped[result.call_id] = left
            return
        said = verdict(self.harness, result)
        if not result.is_error and said not in ARGUMENTS:
            return
        group = Group(self.harness, self.model, self._label(result.name or ""), self._day(turn.time))
        tally = self.report.groups.setdefault(group, Tally())
        if result.is_error:
            tally.error_results += 1
        if said in ARGUMENTS:
            tally.lost += 1
            _count_rejection(tally, said)
            self.followers[0].rejected(None, tally, result.name or "", False, None)

    def _drop_oldest(self) -> None:
        key = next(iter(self.pending))
        queue = self.pending[key]
        self._close(queue.popleft(), "")
        if not queue:
            del self.pending[key]
        self.waiting -= 1

    def _close(self, waiting: _Open, said: str) -> None:
        """The harness has spoken, or never will: then `said` is ""."""
        tally, found, call = waiting.tally, waiting.judgement, waiting.call
        taken = said in (ACCEPTED, ERROR)
        if taken:
            waiting.follower.accepted(call.name, call.id or f"#{waiting.ordinal}")
            if found.clean:
                if waiting.contract is NO_CONTRACT and self.options.infer and not call.custom:
                    self._learn(call.name, found)
                return
            found = self._with_drift(waiting, found)
        rejected = said in ARGUMENTS
        if rejected:
            _count_rejection(tally, said)
        elif said == "collateral":
            tally.collateral += 1
        elif said == "unknown_name":
            tally.unknown_names += 1
        if found.clean and not rejected:
            return
        self._off_schema(waiting, found, said, taken, rejected)

    def _with_drift(self, waiting: _Open, found: Judgement) -> Judgement:
        """Without what only says that the table is behind the agent, which took a key that it always refuses."""
        known = self.contracts.agent
        contract = waiting.contract
        if contract.source != "table" or known is None or not known.rejects_unknown_keys or not found.static:
            return found
        if not only_top_level(found, contract.tools[0]):
            return found
        self.report.own_tools.add(tool_label(waiting.call.name))
        kept = tuple(pointer for pointer in found.undeclared if pointer.count("/") > 1)
        return Judgement(found.value, False, found.unparsable, kept, found.guarded)

    def _off_schema(self, waiting: _Open, found: Judgement, said: str, taken: bool, rejected: bool) -> None:
        call, sink = waiting.call, self.main
        if taken and waiting.contract.source == "table":
            sink = self._aside(call.name)
        tally = sink.groups.setdefault(waiting.group, Tally())
        tally.off_schema += 1
        tally.static += found.static
        tally.unparsable += found.unparsable or said == "unparsable"
        tally.guarded += found.guarded
        tally.silent += taken
        tally.rejected_fits += rejected and found.clean and bool(waiting.contract.tools) and found is not FREE
        keys: list[Invented] = []
        if found.undeclared:
            tally.invented += 1
            keys = inventions(found, waiting.contract)
            for key in keys:
                place = (key.key, key.kind, key.depth, key.place, key.inert, tool_label(call.name), waiting.group.model)
                if place in sink.keys or len(sink.keys) < MAX_KEYS:
                    sink.keys[place] += 1
        cure = remedy(call, waiting.contract.tools)
        _count_remedy(sink, tally, cure)
        index = _finding(sink, waiting, said, keys, cure)
        if rejected:
            waiting.follower.rejected(waiting.reply, tally, call.name, cure.status == "repaired", index)
        small = len(call.text or "") <= MAX_HELD_BYTES
        if not cure.status and not waiting.contract.tools and small and len(self.held) < MAX_HELD:
            self.held.append((waiting, index))

    def _aside(self, name: str) -> _Sink:
        sink = self.aside.get(name)
        if sink is None:
            sink = self.aside[name] = _Sink({}, Counter(), Counter(), Counter(), [])
        return sink

    def _learn(self, name: str, found: Judgement) -> None:
        one = self.inferred.get(name)
        if one is None:
            if len(self.inferred) >= MAX_TOOLS:
                return
            one = self.inferred[name] = Inferred()
        one.add(found.value)

    def _flush(self) -> None:
        """Calls that were never answered, at the end of a conversation."""
        for queue in self.pending.values():
            for waiting in queue:
                self._close(waiting, "")
        self.pending.clear()
        self.skipped.clear()
        self.waiting = 0
        for follower in self.followers:
            follower.end()

    def finish(self) -> None:
        """The file is read."""
        self._flush()
        self.report.bad_schemas = self.contracts.bad
        self._judge_held(inferred_tools(self.inferred) if self.held else {})
        self._settle_aside()

    def _judge_held(self, tools: dict[str, Tool]) -> None:
        for waiting, index in self.held:
            tool = tools.get(waiting.call.name)
            cure = remedy(waiting.call, (tool,)) if tool is not None else Remedy()
            if not cure.status:
                continue
            tally = self.report.groups[waiting.group]
            tally.inferred += 1
            tally.unjudged -= 1
            _count_remedy(self.main, tally, cure)
            if index is not None:
                findings = self.report.findings
                findings[index] = replace(
                    findings[index], problems=cure.problems, safe=f"{cure.status} (inferred)", rules=cure.rules
                )

    def _settle_aside(self) -> None:
        """Decides of each known tool whether its schema is this session's.

        Where most of the calls that the harness took do not fit it, the session has a tool of its own by that name,
        and nothing is held against its calls; else they count like the rest.
        """
        for name, sink in self.aside.items():
            silent = sum(tally.silent for tally in sink.groups.values())
            label = tool_label(name)
            tallies = [tally for group, tally in self.report.groups.items() if group.tool == label]
            taken = sum(tally.results - tally.rejected + tally.lost for tally in tallies)
            if silent >= FORK_CALLS and silent * 2 > taken:
                self.report.own_tools.add(label)
                continue
            for group, tally in sink.groups.items():
                self.report.groups[group].add(tally)
            self.report.keys.update(sink.keys)
            self.report.rules.update(sink.rules)
            self.report.codes.update(sink.codes)
            self.report.findings.extend(sink.findings)
        self.report.findings.sort(key=lambda finding: finding.line)
        del self.report.findings[MAX_FINDINGS:]

    def _label(self, name: str) -> str:
        label = self.shown.get(name)
        if label is None:
            if len(self.shown) > MAX_TOOLS:
                self.shown.clear()
            label = self.shown[name] = tool_label(name)
        return label

    def _day(self, moment: float | None) -> str:
        if moment is None:
            return ""
        number = int(moment // 86400)
        day = self.days.get(number)
        if day is None:
            if len(self.days) > MAX_TOOLS:
                self.days.clear()
            day = self.days[number] = datetime.fromtimestamp(number * 86400, UTC).strftime("%Y-%m-%d")
        return day


def _count_remedy(sink: _Sink, tally: Tally, cure: Remedy) -> None:
    if cure.status == "repaired":
        tally.safe_repaired += 1
        sink.rules.update(cure.rules)
    elif cure.status == "refused":
        tally.safe_refused += 1
    elif cure.status == "accepted":
        tally.safe_accepted += 1
    else:
        tally.unjudged += 1
    sink.codes.update(cure.codes)


def _finding(sink: _Sink, waiting: _Open, said: str, keys: list[Invented], cure: Remedy) -> int | None:
    if len(sink.findings) >= MAX_FINDINGS:
        return None
    sink.findings.append(
        Finding(
            waiting.call.id or f"#{waiting.ordinal}",
            waiting.ordinal,
            waiting.line,
            tool_label(waiting.call.name),
            waiting.group.model,
            said,
            cure.problems,
            tuple(key.key for key in keys[:5]),
            cure.status,
            cure.rules,
        )
    )
    return len(sink.findings) - 1


def _count_rejection(tally: Tally, said: str) -> None:
    tally.rejected += 1
    name = f"rejected_{said}"
    setattr(tally, name, getattr(tally, name) + 1)


def reliable_usage(harness: str, version: str | None) -> bool:
    """Whether a harness's files of a version hold the output tokens that were billed."""
    return harness != "claude-code" or not version or version_of(version) >= USAGE_RELIABLE
