"""Contracts: what a tool accepts."""

from onspec.contract.tool import Effect, Tool
from onspec.contract.toolset import Match, Toolset

__all__ = ["Effect", "Match", "Tool", "Toolset"]
