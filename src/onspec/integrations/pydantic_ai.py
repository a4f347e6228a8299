"""pydantic-ai with tool calls that conform: a capability that checks arguments before they are validated."""

from __future__ import annotations

import json
from typing import Any

from onspec.check import Outcome, check
from onspec.contract.tool import Tool
from onspec.errors import MissingExtra, SchemaError
from onspec.repair.policy import Policy

try:
    from pydantic_ai import ModelRetry, RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import ToolDefinition
except ImportError as error:
    raise MissingExtra("pydantic-ai-slim", "integrations") from error


class Checked(AbstractCapability[Any]):
    """`Agent(..., capabilities=[Checked()])`: a broken call is mended, a call that cannot be is answered with feedback.

    The call in the message history is mended too, so that the model is not shown its own mistake.

    Args:
        policy: Which repairs may be made; `Policy.safe()` where none is given.
    """

    def __init__(self, policy: Policy | None = None) -> None:
        self.outcomes: list[Outcome] = []
        self._policy = Policy.given(policy)
        self._tools: dict[str, tuple[Any, Tool]] = {}

    async def before_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: str | dict[str, Any]
    ) -> str | dict[str, Any]:
        """Check the arguments of one call.

        Raises:
            ModelRetry: The call is refused; the message is the feedback.
        """
        tool = self._tool(tool_def)
        if tool is None:
            return args
        outcome = check(tool, args if args else "{}", self._policy)
        self.outcomes.append(outcome)
        if outcome.status == "refused":
            raise ModelRetry(outcome.feedback())
        if outcome.status == "repaired":
            call.args = outcome.json.decode() if isinstance(args, str) else outcome.arguments
            call.id = None
            return call.args
        return args

    def _tool(self, definition: ToolDefinition) -> Tool | None:
        known = self._tools.get(definition.name)
        schema = definition.parameters_json_schema
        if known is None or known[0] != schema:
            try:
                known = (json.loads(json.dumps(schema)), Tool(definition.name, schema))
            except SchemaError:
                return None
            self._tools[definition.name] = known
        return known[1]
