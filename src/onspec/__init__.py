"""onspec: every tool call of a language model keeps its contract.

The names below are loaded when they are first used, so that `import onspec` costs next to nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onspec.audit import Repair, Violation
    from onspec.check import Outcome, check
    from onspec.contract.tool import Tool
    from onspec.contract.toolset import Toolset
    from onspec.receive import Receiver, Reply, receive
    from onspec.repair.policy import Policy

__all__ = ["Outcome", "Policy", "Receiver", "Repair", "Reply", "Tool", "Toolset", "Violation", "check", "receive"]

_HOMES = {
    "Outcome": "onspec.check",
    "Policy": "onspec.repair.policy",
    "Receiver": "onspec.receive",
    "Repair": "onspec.audit",
    "Reply": "onspec.receive",
    "Tool": "onspec.contract.tool",
    "Toolset": "onspec.contract.toolset",
    "Violation": "onspec.audit",
    "check": "onspec.check",
    "receive": "onspec.receive",
}


class _Face(ModuleType):
    """The package's face: its functions win over the modules of the same name, whichever is loaded first."""

    def __getattr__(self, name: str) -> Any:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'onspec' has no attribute {name!r}")
        found = getattr(import_module(home), name)
        setattr(self, name, found)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Face
