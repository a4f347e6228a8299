"""LangChain with tool calls that conform: a step that comes after the model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from onspec.check import Outcome, check
from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset
from onspec.errors import MissingExtra
from onspec.repair.policy import Policy

try:
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.tools import BaseTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
except ImportError as error:
    raise MissingExtra("langchain-core", "integrations") from error


class Checked(Runnable[AIMessage, AIMessage]):
    """`model.bind_tools(tools) | Checked(tools)`: broken calls are mended, unmendable ones say why.

    A call that LangChain could not read (`invalid_tool_calls`) becomes a tool call where it can be mended; one that is
    refused stands in `invalid_tool_calls` with the feedback for the model as its `error`.

    Args:
        tools: LangChain tools, functions, pydantic models or definitions, as `bind_tools` takes them.
        policy: Which repairs may be made; `Policy.safe()` where none is given.
    """

    def __init__(
        self, tools: Sequence[BaseTool | type | Mapping[str, Any] | Any], policy: Policy | None = None
    ) -> None:
        self._tools = Toolset(Tool.from_json(convert_to_openai_tool(tool)) for tool in tools)
        self._policy = policy or Policy.safe()

    def invoke(self, input: AIMessage, config: RunnableConfig | None = None, **kwargs: Any) -> AIMessage:
        """The message with its calls checked; the same message where all of them conform."""
        good: list[dict[str, Any]] = []
        bad: list[dict[str, Any]] = []
        changed = False
        for call in [*input.tool_calls, *input.invalid_tool_calls]:
            name, raw = call.get("name") or "", call.get("args")
            match = self._tools.find(name)
            if match.tool is None:
                found: Outcome | None = None
                feedback = f"There is no tool named {name!r}. The tools are: {', '.join(self._tools)}."
            else:
                found = check(match.tool, raw if isinstance(raw, str | dict) else "", self._policy)
                feedback = found.feedback()
            if found is not None and found.ok and match.tool is not None:
                changed |= found.status == "repaired" or call in input.invalid_tool_calls or bool(match.repairs)
                good.append(
                    {"name": match.tool.name, "args": found.arguments, "id": call.get("id"), "type": "tool_call"}
                )
            else:
                changed |= call in input.tool_calls or call.get("error") != feedback
                text = raw if isinstance(raw, str) else json.dumps(raw)
                bad.append(
                    {"name": name, "args": text, "id": call.get("id"), "error": feedback, "type": "invalid_tool_call"}
                )
        if not changed:
            return input
        return input.model_copy(update={"tool_calls": good, "invalid_tool_calls": bad})
