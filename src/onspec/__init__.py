"""onspec: every tool call of a language model keeps its contract."""

from onspec.audit import Repair, Violation
from onspec.check import Outcome, check
from onspec.contract.tool import Tool
from onspec.contract.toolset import Toolset
from onspec.repair.policy import Policy

__all__ = ["Outcome", "Policy", "Repair", "Tool", "Toolset", "Violation", "check"]
