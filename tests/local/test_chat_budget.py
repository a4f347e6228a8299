"""Whatever budget and dialect, a required call of a chat keeps within it, is found in time, and cannot run cut."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from onspec.contract.tool import Tool
from onspec.errors import LimitError
from onspec.grammar.forms import FORMS
from onspec.local.chat import Chat
from onspec.local.runtime import Runtime
from onspec.message import Message, Text

WRITE = Tool(
    "write",
    {
        "type": "object",
        "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
        "required": ["path", "text"],
        "additionalProperties": False,
    },
)
MOST_SECONDS = 8.0
"""CPU time of eight replies; measured ones take under 1, and took up to 60 where an ending could not be found."""


@pytest.fixture(scope="module")
def roomy(tiny_path: Path) -> Any:
    module: Any = pytest.importorskip("onspec.local.xllamacpp")
    runtime: Runtime = module.open_model(tiny_path, 2048)
    yield runtime
    runtime.close()


@pytest.mark.parametrize("dialect", FORMS)
def test_a_required_call_keeps_to_its_budget(roomy: Runtime, dialect: str) -> None:
    """From the least that holds a call: never over it, always a call, refused where the budget ended it early."""
    chat = Chat(roomy, dialect)
    asked = [Message("user", (Text("hi"),))]
    with pytest.raises(LimitError) as refused:
        chat.reply(asked, [WRITE], "required", budget=1, seed=0)
    found = re.search(r"(\d+) tokens", str(refused.value))
    assert found is not None
    started = time.process_time()
    for more in (0, 1, 3, 30):
        for seed in range(2):
            budget = int(found[1]) + more
            reply = chat.reply(asked, [WRITE], "required", budget=budget, seed=seed)
            assert reply.tokens <= budget
            assert [call.name for call in reply.calls] == ["write"]
            assert reply.outcomes[0].ok == (reply.finish_reason != "length")
    assert time.process_time() - started < MOST_SECONDS
