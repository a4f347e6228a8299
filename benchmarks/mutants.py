"""Broken tool calls with known truth: valid calls, each spoilt by one defect or two, and what is right for them.

`mutants(seed, count)` draws calls of several tools with code-heavy texts and spoils each by a kind from `KINDS`. The
same seed gives the same mutants.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from benchmarks import text_defects, value_defects
from benchmarks.defects import TEXT_KINDS, VALUE_KINDS, Call, Spoilt, write
from benchmarks.shapes import SHAPES

from onspec.cli.cases import Case, Right

REFUSE: dict[str, Any] = {"outcome": "refuse"}
SOURCES = (value_defects, text_defects)
"""The modules that fill the tables of kinds."""

KINDS = (*VALUE_KINDS, *TEXT_KINDS, "composed")
"""Every kind of defect; `composed` is one of the value and one of the text at once."""


def mutants(seed: int, count: int, smallest: int = 100, largest: int = 1_000_000) -> Iterator[Case]:
    """`count` mutants, kinds in turn, sizes of the sound call spread evenly on a logarithmic scale.

    Args:
        seed: The same seed gives the same mutants.
        count: How many.
        smallest: Least size of the payload, in bytes.
        largest: Greatest size of the payload, in bytes.
    """
    number = 0
    while number < count:
        kind = KINDS[number % len(KINDS)]
        rng = Random(f"{seed}/{number}")
        made = None
        while made is None:
            shape = rng.choice(SHAPES)
            size = round(math.exp(rng.uniform(math.log(smallest), math.log(largest))))
            arguments = shape.draw(rng, size)
            made = _made(kind, Call(shape, arguments, write(arguments, rng)), rng)
        yield replace(made, id=f"m{seed}-{number:05}")
        number += 1


def _made(kind: str, call: Call, rng: Random) -> Case | None:
    if kind != "composed":
        spoilt = (VALUE_KINDS.get(kind) or TEXT_KINDS[kind])(call, rng)
        return None if spoilt is None else _case(kind, call, spoilt, rng)
    first = VALUE_KINDS[rng.choice(list(VALUE_KINDS))](call, rng)
    if first is None or first.outcome != "repair" or not isinstance(first.value, dict):
        return None
    middle = Call(call.shape, first.value, write(first.value, rng))
    second = TEXT_KINDS[rng.choice(list(TEXT_KINDS))](middle, rng)
    if second is None or second.outcome == "accept":
        return None
    truth = first.truth if first.truth is not None else call.arguments
    also = (truth,) if second.also or second.outcome == "repair" else ()
    outcome: Right = "repair" if second.outcome == "repair" else "refuse"
    both = replace(second, outcome=outcome, truth=truth, cautious=True, also=also)
    return _case(kind, call, both, rng)


def _case(kind: str, call: Call, spoilt: Spoilt, rng: Random) -> Case:
    truth = spoilt.truth if spoilt.truth is not None else call.arguments
    acceptable = [{"outcome": "repair", "arguments": one} for one in spoilt.also]
    if spoilt.cautious and spoilt.outcome != "refuse":
        acceptable.append(REFUSE)
    return Case(
        id="",
        failure=kind,
        tool=call.shape.name,
        schema=call.shape.schema,
        emitted=spoilt.text if spoilt.text is not None else write(spoilt.value, rng),
        outcome=spoilt.outcome,
        arguments=None if spoilt.outcome == "refuse" else truth,
        acceptable=tuple(acceptable),
        finish_reason=spoilt.ending,
    )
