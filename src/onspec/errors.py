"""What a developer or user gets wrong. What a model writes never raises: it becomes a Violation.

OnspecError
├── SchemaError       a tool's schema is not JSON Schema, points outside itself, or cannot be compiled
├── ToolFormatError   a tool definition is in none of the known formats
├── PolicyError       a policy names a rule that does not exist
├── InputError        a file or an argument of the caller cannot be used
├── LimitError        a caller's own request is larger than a documented limit
└── MissingExtra      an optional package is not installed; the message names the extra
"""

from __future__ import annotations


class OnspecError(Exception):
    """Root of everything onspec raises on purpose. The message says what to do."""


class SchemaError(OnspecError, ValueError):
    """A tool's schema is not JSON Schema, points outside itself, or cannot be compiled."""


class ToolFormatError(OnspecError, ValueError):
    """A tool definition is in none of the known formats."""


class PolicyError(OnspecError, ValueError):
    """A policy names a rule that does not exist."""


class InputError(OnspecError, ValueError):
    """A file or an argument of the caller cannot be used."""


class LimitError(OnspecError, ValueError):
    """A caller's own request is larger than a documented limit."""


class MissingExtra(OnspecError, ImportError):
    """An optional package is not installed.

    Args:
        package: The distribution that is missing.
        extra: The onspec extra that installs it; None where none does.
    """

    def __init__(self, package: str, extra: str | None) -> None:
        wanted = package if extra is None else f"'onspec[{extra}]'"
        super().__init__(f"{package} is not installed; run: pip install {wanted}")
        self.package = package
        self.extra = extra
