"""Reads NeMo Gym's rollouts: JSON Lines, each a Responses request, its answer's items and a reward."""

from __future__ import annotations

from collections.abc import Iterator

from onspec.audit import Json
from onspec.transcripts.session import Damage, Entry, Start, Tools, Turn
from onspec.transcripts.source import Source, get
from onspec.transcripts.wire import openai_usage, response_item, tool_list

NAME = "nemo-gym"


def sniff(head: bytes) -> bool:
    """Whether a file begins like a rollout."""
    return b'"responses_create_params"' in head


def entries(source: Source) -> Iterator[Entry]:
    """The rollouts' entries; each line is a session of its own, and only the answer's calls are the model's."""
    for line in source.lines():
        if isinstance(line, Damage):
            yield line
        elif not isinstance(get(line.value, "responses_create_params"), dict):
            yield Damage(line.number, "shape")
        else:
            yield from _rollout(line.value, line.number)


def _rollout(value: Json, number: int) -> Iterator[Entry]:
    asked, answer = value["responses_create_params"], value.get("response")
    model = get(answer, "model") or asked.get("model")
    framework = get(value, "metadata", "agent_framework")
    yield Start(
        f"nemo-gym/{framework}" if isinstance(framework, str) else NAME,
        None,
        f"line {number}",
        model if isinstance(model, str) else None,
        True,
    )
    tools = tool_list(asked.get("tools")) or tool_list(get(answer, "tools"))
    if tools:
        yield Tools(tools)
    given = asked.get("input")
    for item in given if isinstance(given, list) else ():
        turn = response_item(item, number) if isinstance(item, dict) else None
        if turn is not None and turn.role in ("system", "user", "developer"):
            yield turn
    usage = openai_usage(get(answer, "usage"))
    output = get(answer, "output")
    named = model if isinstance(model, str) else None
    reply = 0
    for item in output if isinstance(output, list) else ():
        turn = (
            response_item(item, number, model=named, message_id=f"{number}:{reply}") if isinstance(item, dict) else None
        )
        if turn is None:
            continue
        if turn.role != "assistant":
            reply += 1
        yield turn
    if usage is not None:
        yield Turn("assistant", (), None, None, None, named, usage, f"{number}:{reply}", line=number)
