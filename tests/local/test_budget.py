"""A call whose shortest form is long still fits the smallest budget that holds it."""

from __future__ import annotations

import numpy as np
import pytest

from onspec.contract.tool import Tool
from onspec.grammar.build import build
from onspec.local.closeout import Closeout
from onspec.local.runtime import Runtime
from onspec.local.sample import constrained
from onspec.receive import receive

LONG = Tool(
    "write",
    {
        "type": "object",
        "properties": {
            **{f"parameter_{number}": {"enum": [f"a rather long value {number}"]} for number in range(3)},
            "note": {"type": "string"},
        },
        "required": ["parameter_0", "parameter_1", "parameter_2", "note"],
        "additionalProperties": False,
    },
)


@pytest.mark.parametrize("dialect", ["qwen3_coder_xml", "glm45"])
def test_the_smallest_budget_is_never_overdrawn(fast: Runtime, dialect: str) -> None:
    """White space that a call may begin with, and every free choice, are paid from the same budget."""
    grammar = build([LONG], dialect, "required", parallel=False, thinking="none", specials=fast.specials)
    inside = grammar.lark if grammar.calls is None else grammar.calls
    matcher = fast.vocabulary.matcher(inside)
    least = Closeout(1, grammar.pieces).shortest(matcher)
    assert least is not None
    for seed in range(8):
        budget = least + seed % 2
        rng = np.random.default_rng(seed)
        draw = constrained(fast, fast.prompt("x"), matcher, rng, pieces=grammar.pieces, budget=budget)
        assert len(draw.tokens) <= budget
        text = ("" if grammar.calls is None else grammar.trigger) + draw.text.decode("utf-8", "replace")
        (call,) = receive(text, [LONG], dialect).calls
        assert call.outcome.ok
