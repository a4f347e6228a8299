"""Counts: per group of calls, and per file."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import NamedTuple


class Group(NamedTuple):
    """What calls are counted together: everything that `--by` can ask for, but the file."""

    harness: str
    model: str
    tool: str
    day: str


@dataclass(slots=True)
class Tally:
    """Counts of calls; all are numbers of calls where nothing else is said.

    Attributes:
        calls: All calls.
        of_subagents: Of these, calls of sub-agents.
        results: Calls with an answer.
        error_results: Answers that the file flags as errors, of whatever kind.
        rejected: Calls that the harness rejected for what the model wrote: arguments that break the schema, no JSON, a
            tool that does not exist, free text that breaks its grammar. Includes rejections whose call the file lost.
        rejected_schema: Of these, for the schema.
        rejected_unparsable: Of these, for not being JSON.
        rejected_unknown_tool: Of these, for a tool that does not exist.
        rejected_grammar: Of these, for free text that breaks its grammar.
        rejected_fits: Of these, calls whose arguments fit the schema that is known: the harness asks more than it says.
        lost: Rejections whose call is not in the file.
        collateral: Calls cancelled because a neighbour failed.
        unknown_names: Calls that name something (a skill, an agent) from a list that no schema holds.
        judged: Calls whose arguments could be held against a schema, from the file or from the table.
        inferred: Calls for which there was only a schema inferred from the session's accepted calls.
        static: Calls whose recorded arguments break the schema as it is declared.
        unparsable: Calls whose text is not JSON, or is recorded as having been none.
        invented: Calls with a key that the schema names nowhere at its place, open objects included.
        guarded: Valid calls that `strict` refuses all the same: leaked markup, lone surrogates, two values for a key.
        off_schema: Calls that are any of rejected (but not lost), static, unparsable, invented, guarded.
        silent: Of these, calls that the harness accepted.
        safe_repaired: Of `off_schema`, calls that `safe` would have repaired.
        safe_refused: Of `off_schema`, calls that `safe` refuses.
        safe_accepted: Of `off_schema`, calls that `safe` lets pass as they are.
        unjudged: Of `off_schema`, calls of which nothing is left to repair, or for which no schema is known.
        failed_turns: Model replies that were lost to rejected calls.
        retries: Rejected calls that a later call of the same tool made good.
        retry_calls: How many calls that took, in all.
        gave_up: Rejected calls that no later call of the tool made good.
        waste_output: Output tokens of replies with rejected calls, the rejected share.
        waste_input: Uncached input tokens of the reply after each lost one.
        waste_cache_read: Cached input tokens read for it.
        waste_cache_write: Input tokens written to the cache for it.
        saved_output: The part of `waste_output` whose calls `safe` would have repaired.
        saved_input: The same of `waste_input`.
        saved_cache_read: The same of `waste_cache_read`.
        saved_cache_write: The same of `waste_cache_write`.
    """

    calls: int = 0
    of_subagents: int = 0
    results: int = 0
    error_results: int = 0
    rejected: int = 0
    rejected_schema: int = 0
    rejected_unparsable: int = 0
    rejected_unknown_tool: int = 0
    rejected_grammar: int = 0
    rejected_fits: int = 0
    lost: int = 0
    collateral: int = 0
    unknown_names: int = 0
    judged: int = 0
    inferred: int = 0
    static: int = 0
    unparsable: int = 0
    invented: int = 0
    guarded: int = 0
    off_schema: int = 0
    silent: int = 0
    safe_repaired: int = 0
    safe_refused: int = 0
    safe_accepted: int = 0
    unjudged: int = 0
    failed_turns: int = 0
    retries: int = 0
    retry_calls: int = 0
    gave_up: int = 0
    waste_output: int = 0
    waste_input: int = 0
    waste_cache_read: int = 0
    waste_cache_write: int = 0
    saved_output: int = 0
    saved_input: int = 0
    saved_cache_read: int = 0
    saved_cache_write: int = 0

    def add(self, other: Tally) -> None:
        """Adds another's counts to these."""
        for name in NAMES:
            value = getattr(other, name)
            if value:
                setattr(self, name, getattr(self, name) + value)

    def to_dict(self) -> dict[str, int]:
        """All counts by name."""
        return {name: getattr(self, name) for name in NAMES}


NAMES: tuple[str, ...] = tuple(field.name for field in fields(Tally))


class Spent(NamedTuple):
    """Tokens that a model used in all, in the words of `Usage`."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def plus(self, other: Spent) -> Spent:
        """The sum of both."""
        return Spent(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """One off-schema call, without its payload.

    Attributes:
        call: The call's id, or `#n` for the n-th call of the file; `onspec pack` takes either.
        number: Which call of the file it is, from 1.
        line: Line or index in the file.
        tool: The tool's name, safe to print.
        model: The model, or "".
        verdict: What the harness made of it.
        problems: Codes of violations with their JSON Pointers, at most five.
        keys: Invented keys, safe to print.
        safe: What `safe` makes of it: `repaired`, `refused`, `accepted`, or "" where it cannot be told.
        rules: Rules that the repair would take.
        fixed_by: The later call of the tool that made it good, as in `call`; "" where none did.
        fixed_after: How many calls of the tool that took.
    """

    call: str
    number: int
    line: int
    tool: str
    model: str
    verdict: str
    problems: tuple[str, ...]
    keys: tuple[str, ...]
    safe: str
    rules: tuple[str, ...]
    fixed_by: str = ""
    fixed_after: int = 0


@dataclass(slots=True)
class FileReport:
    """What was counted in one file.

    Attributes:
        path: Where it is.
        format: Its format, or "" where it is none or could not be opened.
        size: Bytes on disk, or read from a URL.
        groups: Counts by group.
        keys: Invented keys: how often, by (key, kind, depth, place, inert, tool, model).
        rules: How often `safe` would have applied each rule.
        codes: How often each kind of violation was met.
        spent: All tokens by model.
        findings: The first off-schema calls.
        damage: How often each kind of damage was met.
        unknown: How many records were of unknown kinds.
        identities: Identities of all calls that have one, as 64-bit hashes, sorted; for counting copies once.
        own_tools: Tools with a known name whose accepted calls do not fit the known schema: the session has its own.
        schemas: How many calls were judged by a schema from `file`, `table`, `inferred` or `none`.
        guessed: Calls whose output tokens are estimated, because the file's own count is known to be wrong.
        bad_schemas: Tool definitions in the file that are no JSON Schema.
        copies: Calls left out because another file, or an earlier line, holds the same.
        versions: Versions of the harness, with numbers of calls.
        error: Why it could not be read, or "".
    """

    path: str
    format: str = ""
    size: int = 0
    groups: dict[Group, Tally] = field(default_factory=dict)
    keys: Counter[tuple[str, str, int, str, bool, str, str]] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    spent: dict[str, Spent] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    damage: Counter[str] = field(default_factory=Counter)
    unknown: int = 0
    identities: array[int] = field(default_factory=lambda: array("Q"))
    own_tools: set[str] = field(default_factory=set)
    schemas: Counter[str] = field(default_factory=Counter)
    guessed: int = 0
    bad_schemas: int = 0
    copies: int = 0
    versions: Counter[str] = field(default_factory=Counter)
    error: str = ""

    def total(self) -> Tally:
        """All groups together."""
        total = Tally()
        for tally in self.groups.values():
            total.add(tally)
        return total
