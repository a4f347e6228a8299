"""Case files: calls with their right outcome, and the judgement of what became of one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from onspec.audit import Json
from onspec.contract.tool import Tool
from onspec.errors import InputError

Right = Literal["accept", "repair", "refuse"]
Verdict = Literal["right", "refused", "wrong"]
"""`right`; `refused` where it could have been executed; `wrong`: executed with other arguments, or at all."""


@dataclass(frozen=True, slots=True)
class Case:
    """One call and what is right for it.

    Attributes:
        id: Name of the row.
        failure: Kind of defect.
        tool: Name of the tool.
        schema: Its JSON Schema.
        emitted: What the model wrote.
        outcome: The right outcome.
        arguments: The right arguments; None where the call is refused.
        repairs: Rules that repair it.
        why: What makes this outcome right, or "".
        acceptable: Other outcomes that are no failure, each with `outcome` and, where it is executed, `arguments`.
        finish_reason: Why the provider says that the text ended, or None.
    """

    id: str
    failure: str
    tool: str
    schema: dict[str, Any]
    emitted: str
    outcome: Right
    arguments: Json = None
    repairs: tuple[str, ...] = ()
    why: str = ""
    acceptable: tuple[dict[str, Any], ...] = ()
    finish_reason: str | None = None

    def contract(self) -> Tool:
        """The tool that is called."""
        return Tool(self.tool, self.schema)

    def judge(self, executed: bool, arguments: Json) -> Verdict:
        """Whether it was right to execute the call with `arguments`, or not to execute it."""
        wanted = [{"outcome": self.outcome, "arguments": self.arguments}, *self.acceptable]
        if not executed:
            return "right" if any(one["outcome"] == "refuse" for one in wanted) else "refused"
        return "right" if any(self._allows(one, arguments) for one in wanted) else "wrong"

    def _allows(self, wanted: dict[str, Any], arguments: Json) -> bool:
        if wanted["outcome"] == "refuse":
            return False
        if "arguments" in wanted:
            return same(wanted["arguments"], arguments)
        return wanted["outcome"] == "accept" and same(json.loads(self.emitted), arguments)


def same(left: Json, right: Json) -> bool:
    """Whether two JSON values are equal: numbers by value, booleans only to booleans, keys in any order."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    return type(left) is type(right) and bool(left == right)


def read(lines: Iterable[str | bytes], source: str = "case file") -> Iterator[Case]:
    """The cases of a JSON Lines text.

    Raises:
        InputError: A line is not a case; the message says which line and why.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            expected = row["expected"]
            yield Case(
                id=row["id"],
                failure=row["failure"],
                tool=row["tool"],
                schema=row["schema"],
                emitted=row["emitted"],
                outcome=expected["outcome"],
                arguments=expected.get("arguments"),
                repairs=tuple(expected.get("repairs", ())),
                why=expected.get("why", ""),
                acceptable=tuple(row.get("acceptable", ())),
                finish_reason=row.get("context", {}).get("finish_reason"),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{source}, line {number}: not a case: {type(error).__name__}: {error}") from None


def bundled(name: Literal["article", "cases"]) -> list[Case]:
    """The cases that come with onspec: the article's calls of one edit tool, or the project's own case file."""
    path = files("onspec").joinpath("data", f"{name}.jsonl")
    return list(read(path.read_bytes().split(b"\n"), f"{name}.jsonl"))
