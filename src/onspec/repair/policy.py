"""Which rules of the table may be applied, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from types import MappingProxyType

from onspec.audit import Repair
from onspec.errors import PolicyError
from onspec.repair.rules import RULES

_SAFE = frozenset(name for name, rule in RULES.items() if rule.safe)
_ALL = frozenset(RULES)


@dataclass(frozen=True, slots=True)
class Policy:
    """A set of rules that may be applied.

    The search for a repair never looks at the policy: it finds the one cheapest repair under the whole table, and the
    policy then says whether the rules it took are allowed. So of two policies, the wider never changes what the
    narrower repaired.

    Attributes:
        name: For reports.
        rules: Names of the rules that may be applied.
        tools: Per tool name, another set of rules in place of `rules`.
        paths: Per JSON Pointer pattern (`fnmatch`: `/edits/*`), another set of rules for changes at or below that
            place; the last pattern that matches counts.

    Raises:
        PolicyError: A rule does not exist, or no place can match a pattern.
    """

    name: str
    rules: frozenset[str]
    tools: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    paths: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        for rules in (self.rules, *self.tools.values(), *self.paths.values()):
            unknown = sorted(set(rules) - _ALL)
            if unknown:
                raise PolicyError(f"no rule is named {', '.join(unknown)}; the rules are in docs/repairs.md")
        for pattern in self.paths:
            if pattern and pattern[0] not in "/*?[":
                raise PolicyError(f"a place begins with /, such as /edits/*/newText; {pattern!r} matches none")

    @classmethod
    def strict(cls) -> Policy:
        """Repairs nothing."""
        return _STRICT

    @classmethod
    def safe(cls) -> Policy:
        """Every rule that changes no content."""
        return _SAFE_POLICY

    @classmethod
    def lenient(cls) -> Policy:
        """Every rule. For a tool that writes or executes it is no wider than `safe`."""
        return _LENIENT

    @classmethod
    def named(cls, name: str) -> Policy:
        """The policy of this name: `strict`, `safe` or `lenient`.

        Raises:
            PolicyError: No policy has the name.
        """
        found = {"strict": _STRICT, "safe": _SAFE_POLICY, "lenient": _LENIENT}.get(name)
        if found is None:
            raise PolicyError(f"no policy is named {name!r}; there are strict, safe and lenient")
        return found

    @classmethod
    def given(cls, policy: Policy | None) -> Policy:
        """The policy that a caller gave, `safe` where that is None.

        Raises:
            TypeError: It is something else, such as a policy's name.
        """
        if policy is None:
            return _SAFE_POLICY
        if not isinstance(policy, Policy):
            raise TypeError(f"the policy is a Policy, such as Policy.named('safe'), not {type(policy).__name__}")
        return policy

    @classmethod
    def of(cls, *rules: str, name: str = "custom") -> Policy:
        """Just these rules."""
        return cls(name, frozenset(rules))

    def without(self, *rules: str) -> Policy:
        """This policy less some rules."""
        _known(rules)
        return replace(self, name="custom", rules=self.rules - set(rules))

    def with_(self, *rules: str) -> Policy:
        """This policy and some rules more."""
        return replace(self, name="custom", rules=self.rules | set(rules))

    def for_tool(self, name: str, rules: Iterable[str]) -> Policy:
        """This policy, with just these rules for one tool."""
        return replace(self, name="custom", tools=MappingProxyType({**self.tools, name: frozenset(rules)}))

    def for_path(self, pattern: str, rules: Iterable[str]) -> Policy:
        """This policy, with just these rules at or below the places that match a pattern.

        Raises:
            PolicyError: No place can match the pattern.
        """
        return replace(self, name="custom", paths=MappingProxyType({**self.paths, pattern: frozenset(rules)}))

    def allows(self, repair: Repair, tool: str, read_only: bool) -> bool:
        """Whether one change may be made to a call of a tool.

        Args:
            repair: The change.
            tool: Name of the tool.
            read_only: Whether the tool is known to only read; otherwise no rule of class `content` is ever allowed.
        """
        if not read_only and not RULES[repair.rule].safe:
            return False
        allowed = self.tools.get(tool, self.rules)
        for pattern, rules in self.paths.items():
            if fnmatchcase(repair.path, pattern) or fnmatchcase(repair.path, pattern.rstrip("/") + "/*"):
                allowed = rules
        return repair.rule in allowed


def _known(rules: Iterable[str]) -> None:
    Policy("custom", frozenset(rules))


_STRICT = Policy("strict", frozenset())
_SAFE_POLICY = Policy("safe", _SAFE)
_LENIENT = Policy("lenient", _ALL)
