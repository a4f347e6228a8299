"""One recorded call against its tool's schema: what breaks it, what is invented in it, what `safe` makes of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson

from onspec.audit import Json
from onspec.check import Outcome, check
from onspec.contract import Tool
from onspec.contract.describe import undeclared
from onspec.contract.toolset import PREFIXES
from onspec.errors import OnspecError
from onspec.repair.policy import Policy
from onspec.scan.taxonomy import Invented, invented, printable
from onspec.transcripts.infer import Inferred
from onspec.transcripts.known import Agent, agent
from onspec.transcripts.session import ToolCall, dumps, tool_name
from onspec.transcripts.source import decode, get

STRICT: Final = Policy.strict()
SAFE: Final = Policy.safe()

_MARKUP = re.compile(rb'<(?:[\w.-]+:)?(?:param|arg)|</[\w:.-]+>(?:\\[nrt]|\s)*"')
"""What a value must hold for `check` to find leaked markup in it."""

MAX_PROBLEMS = 5
"""Violations of one call that are kept."""

MAX_POINTER = 80
"""Characters of a JSON Pointer that are shown."""


@dataclass(frozen=True, slots=True)
class Contract:
    """What a session's tool accepts.

    Attributes:
        tools: The definitions of the name; any of them may be meant. () where none is known.
        source: `file`, `table`, or `none`.
        flat: Declared top-level keys where none of them holds objects with declared keys, else None.
    """

    tools: tuple[Tool, ...]
    source: str
    flat: frozenset[str] | None = None


NO_CONTRACT: Final = Contract((), "none")


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is wrong with a call, before its harness is heard.

    Attributes:
        value: The decoded arguments, or None.
        static: Whether they break the schema as it is declared.
        unparsable: Whether the text is not JSON, or is recorded as having been none.
        undeclared: JSON Pointers of invented keys.
        guarded: Whether the value fits, and `strict` refuses it all the same.
    """

    value: Json = None
    static: bool = False
    unparsable: bool = False
    undeclared: tuple[str, ...] = ()
    guarded: bool = False

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.static or self.unparsable or self.undeclared or self.guarded)


FREE: Final = Judgement()


class Contracts:
    """The tools of one session, as far as they are known; its methods never raise for what a file holds."""

    def __init__(self) -> None:
        self.bad = 0
        self._agent: Agent | None = None
        self._version: str | None = None
        self._file: dict[str, list[bytes]] = {}
        self._found: dict[str, Contract] = {}

    @property
    def agent(self) -> Agent | None:
        """What is known of the session's agent."""
        return self._agent

    def start(self, harness: str, version: str | None, fresh: bool) -> None:
        """The harness and its version from here on; `fresh` forgets the tools of the session before."""
        self._agent, self._version = agent(harness), version
        self._found.clear()
        if fresh:
            self._file.clear()

    def define(self, definitions: tuple[Json, ...], replace: bool, removed: tuple[str, ...] = ()) -> None:
        """Takes in definitions that the file holds."""
        if replace:
            self._file.clear()
        for gone in removed:
            self._file.pop(gone, None)
        fresh: dict[str, list[bytes]] = {}
        for definition in definitions:
            name, schema = tool_name(definition), schema_of(definition)
            if name and isinstance(schema, dict):
                fresh.setdefault(name, []).append(dumps(schema).encode("utf-8", "surrogatepass"))
        self._file.update(fresh)
        self._found.clear()

    def of(self, name: str) -> Contract:
        """The contract of a tool by the name a model wrote."""
        found = self._found.get(name)
        if found is None:
            found = self._find(name)
            if len(self._found) > 2000:
                self._found.clear()
            self._found[name] = found
        return found

    def _find(self, name: str) -> Contract:
        spellings = [name, *(name[len(prefix) :] for prefix in PREFIXES if name.startswith(prefix))]
        for spelling in spellings:
            if spelling in self._file:
                tools = [tool for raw in self._file[spelling] if (tool := compiled(spelling, raw)) is not None]
                self.bad += len(self._file[spelling]) - len(tools)
                return Contract(tuple(tools), "file", _flat(tools)) if tools else NO_CONTRACT
        if self._agent is not None and not self._file.keys() & set(self._agent.names()):
            tool = self._agent.tool(name, self._version)
            if tool is not None and tool.schema is not None:
                return Contract((tool,), "table", _flat([tool]))
        return NO_CONTRACT


def schema_of(definition: Json) -> Json:
    """The schema of the arguments in a tool definition of any provider's form, or None."""
    inner = get(definition, "function") if isinstance(get(definition, "function"), dict) else definition
    for key in ("input_schema", "parameters", "inputSchema", "parametersJsonSchema"):
        schema = get(inner, key)
        if isinstance(schema, dict):
            return schema
    return None


@lru_cache(maxsize=1024)
def compiled(name: str, schema: bytes) -> Tool | None:
    """The tool of a recorded schema, or None where that is no JSON Schema."""
    value, reason = decode(schema)
    if reason:
        return None
    try:
        return Tool(name, value)
    except (OnspecError, TypeError):
        return None


def judge(call: ToolCall, contract: Contract) -> Judgement:
    """What is wrong with a call by itself."""
    if call.custom or call.changed:
        return FREE
    if call.stand_in:
        return Judgement(unparsable=True)
    value, text = call.arguments, call.text
    if text is not None:
        value, reason = decode(text.encode("utf-8", "surrogatepass"))
        if reason:
            return Judgement(None, static=bool(contract.tools), unparsable=True)
    elif value is None:
        value = {}
    if not contract.tools:
        return Judgement(value)
    tool = next((one for one in contract.tools if one.is_valid(value)), None)
    static = tool is None
    tool = tool or contract.tools[0]
    extra: tuple[str, ...] = ()
    if isinstance(value, dict) and (contract.flat is None or not value.keys() <= contract.flat):
        extra = undeclared(tool.views, value)
    guarded = False
    if not static:
        raw = raw_of(call, value)
        guarded = (text is not None or _MARKUP.search(raw) is not None) and not check(tool, raw, STRICT).ok
        guarded = guarded or b"\\ud" in raw
    return Judgement(value, static, False, extra, guarded)


def raw_of(call: ToolCall, value: Json) -> bytes:
    """The argument text as bytes: the model's own where it is there."""
    if call.text is not None:
        return call.text.encode("utf-8", "surrogatepass")
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return dumps(value).encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class Remedy:
    """What the policies make of an off-schema call.

    Attributes:
        status: `repaired`, `refused` or `accepted` under `safe`; "" where nothing can be said.
        rules: Rules of the repair.
        problems: Codes and places of the violations that `strict` finds, safe to print.
        codes: The codes alone.
    """

    status: str = ""
    rules: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()


def remedy(call: ToolCall, tools: tuple[Tool, ...]) -> Remedy:
    """What `strict` finds wrong, and what `safe` makes of it."""
    if not tools or call.custom or call.changed or (call.stand_in and call.text is None):
        return Remedy()
    raw = raw_of(call, {} if call.arguments is None else call.arguments)
    found: list[Outcome] = [check(tool, raw, SAFE) for tool in tools]
    rank = {"accepted": 0, "repaired": 1, "refused": 2}
    best = min(found, key=lambda outcome: rank[outcome.status])
    violations = best.violations
    if best.status == "repaired":
        violations = check(best.tool, raw, STRICT).violations
    rules = tuple(dict.fromkeys(repair.rule for repair in best.repairs))
    problems = tuple(f"{v.code} {shown_pointer(v.path)}".rstrip() for v in violations[:MAX_PROBLEMS])
    return Remedy(best.status, rules, problems, tuple(dict.fromkeys(v.code for v in violations)))


def inventions(judgement: Judgement, contract: Contract) -> list[Invented]:
    """The invented keys of a call, classified; at most a hundred."""
    tool = next((one for one in contract.tools if one.is_valid(judgement.value)), contract.tools[0])
    return [invented(pointer, judgement.value, tool.views) for pointer in judgement.undeclared[:100]]


def only_top_level(judgement: Judgement, tool: Tool) -> bool:
    """Whether undeclared keys of the top level are all that breaks the schema."""
    value = judgement.value
    if not isinstance(value, dict):
        return False
    declared = {name for view in tool.views.of(("",)) for name in view.properties}
    return tool.is_valid({key: inner for key, inner in value.items() if key in declared})


def shown_pointer(pointer: str) -> str:
    """A JSON Pointer with what a model wrote made safe to print."""
    steps = pointer.split("/")[1:]
    shown = "".join(f"/{step if step.isdigit() and len(step) < 6 else printable(step)}" for step in steps)
    return shown if len(shown) <= MAX_POINTER else shown[:MAX_POINTER] + "..."


def inferred_tools(seen: Mapping[str, Inferred]) -> dict[str, Tool]:
    """The tools that a session's accepted calls are enough to infer."""
    found: dict[str, Tool] = {}
    for name, one in seen.items():
        try:
            tool = one.tool(name)
        except OnspecError:
            continue
        if tool is not None:
            found[name] = tool
    return found


def _flat(tools: list[Tool]) -> frozenset[str] | None:
    names: set[str] | None = None
    for tool in tools:
        views = tool.views.of(("",))
        if len(views) != 1 or views[0].patterns or views[0].free:
            return None
        schema: Any = tool.schema.document if tool.schema is not None else {}
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if not isinstance(properties, dict) or any(
            b'"properties"' in orjson.dumps(inner) for inner in properties.values()
        ):
            return None
        if "$defs" in schema or "definitions" in schema:
            return None
        names = set(properties) if names is None else names & set(properties)
    return frozenset(names) if names is not None else None
