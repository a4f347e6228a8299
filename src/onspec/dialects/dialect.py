"""A dialect: one row that says how a model family writes calls inside text, and what surrounds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset
from onspec.dialects.draft import Reading
from onspec.dialects.form import Form
from onspec.message import Call, Result


class Context:
    """What a reader may ask about the request: which names and parameters are declared.

    Attributes:
        content: Tags that begin in this range are known to be part of a value.
    """

    __slots__ = ("_known", "content", "names", "tools")

    def __init__(self, tools: Toolset, content: tuple[int, int] = (0, 0)) -> None:
        self.tools = tools
        self.content = content
        self.names = tuple(tools)
        self._known: dict[str, Tool | None] = {}

    def tool(self, name: str) -> Tool | None:
        """The declared tool that a written name means, or None."""
        if name not in self._known:
            if len(self._known) > 4096:
                self._known.clear()
            self._known[name] = self.tools.find(name).tool
        return self._known[name]

    def declares(self, name: str, key: str) -> bool:
        """Whether the tool of that name declares the parameter `key`."""
        return key in properties(self.tool(name))


def properties(tool: Tool | None) -> Mapping[str, Any]:
    """The declared parameters of a tool; empty where there is none or it has no object schema."""
    if tool is None or tool.schema is None or not isinstance(tool.schema.document, dict):
        return {}
    found = tool.schema.document.get("properties")
    return found if isinstance(found, dict) else {}


class Family(Protocol):
    """The way of writing that several dialects share: how to read it, how to write it.

    Attributes:
        firsts: Every character with which an opener, orphan or literal can begin.
        literals: Markers spelt out, for holding back and hiding a half-written one.
    """

    @property
    def firsts(self) -> str: ...

    @property
    def hold(self) -> str:
        """Regular expression of what, at the end of the text so far, may still become a marker."""
        ...

    @property
    def literals(self) -> tuple[str, ...]: ...

    def opener(self, names: tuple[str, ...]) -> str:
        """Regular expression (no named groups) of where a block may begin; it never matches an empty text."""
        ...

    def orphans(self) -> str:
        """Regular expression of closers that may stand alone; "" for none."""
        ...

    def read(self, text: str, pos: int, inside: object | None, context: Context, final: bool) -> Reading:
        """Read one call (or an envelope's end) at `pos`. `final`: nothing follows `text`."""
        ...

    @property
    def forms(self) -> tuple[Form, ...]:
        """The ways in which models of this family write calls of their own accord, that of `write_calls` first."""
        ...

    def write_calls(self, calls: tuple[Call, ...], tools: Toolset) -> str:
        """The calls as a model of this family writes them."""
        ...

    def write_results(self, results: tuple[Result, ...]) -> str:
        """Tool results as the family's prompt carries them."""
        ...

    def write_tools(self, tools: Toolset) -> str:
        """The part of the prompt that tells the model which tools there are, and how to call them."""
        ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """One row of the table of dialects.

    Attributes:
        name: Its name, as in `receive(dialect=...)`.
        models: Who writes it.
        family: Its reader and writer.
        example: One call, as a model writes it.
        think: Pairs of opener and closer of reasoning.
        controls: Tokens that are never text: ends of turns and the like.
        prefilled: Whether the prompt may already have opened the reasoning, so that only its closer is seen.
        tool_marker_ends_thinking: Whether a call's opener inside open reasoning ends the reasoning.
        fence_is_call: Whether a reply that is one fenced call is meant as a call.
        bare: Forms without any marker that count when they are the whole reply: `json`, `pythonic`, `lines`.
        bare_native: Those of `bare` that are this dialect's own way, not a lost marker.
        stray: Whether a lone word may stand in place of a lost envelope opener.
        thinking_end: Further pattern of where reasoning ends; where it is zero-width, the next marker stands there.
        shape: The markers, for people.
        recovers: What is recovered, for people.
    """

    name: str
    models: str
    family: Family = field(repr=False)
    example: str = field(repr=False)
    think: tuple[tuple[str, str], ...] = field(
        default=(("<think>", "</think>"), ("<thinking>", "</thinking>")), repr=False
    )
    controls: tuple[str, ...] = field(default=(), repr=False)
    prefilled: bool = field(default=False, repr=False)
    tool_marker_ends_thinking: bool = field(default=False, repr=False)
    fence_is_call: bool = field(default=False, repr=False)
    bare: tuple[str, ...] = field(default=("json",), repr=False)
    bare_native: tuple[str, ...] = field(default=(), repr=False)
    stray: bool = field(default=False, repr=False)
    thinking_end: str = field(default="", repr=False)
    shape: str = field(default="", repr=False)
    recovers: tuple[str, ...] = field(default=(), repr=False)
