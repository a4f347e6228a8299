"""Real agents behind the gateway: the edit the model meant lands, or its next try does; no file is ever damaged.

Needs the agents that `tests/agents/install.py` installs; `ONSPEC_AGENTS` names their folder (`make test-agents`).
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from onspec.gateway.config import Rules
from onspec.providers.script import Block, Turn
from tests.agents.fleet import AFTER, BEFORE, Agent, filled, make_repo, playing, run
from tests.gateway.rig import Rig, rig

ROOT = os.environ.get("ONSPEC_AGENTS")
pytestmark = pytest.mark.skipif(ROOT is None, reason="ONSPEC_AGENTS is not set")
MENDED = ("a", "b", "c", "d", "e2")
ASKED_AGAIN = ("e", "f", "m")


def turns(agent: Agent, repo: Path, bad: Turn) -> list[Turn]:
    """A look at the file, the turn under test, and the right edit for whoever asks again."""
    look = Turn((Block("text", "Reading."), Block("tool", _text(agent.read[1], repo), name=agent.read[0])))
    good = Turn((Block("tool", _text(agent.edit[1], repo), name=agent.edit[0]),))
    return [look, bad, good]


def _text(value: object, repo: Path) -> str:
    return json.dumps(filled(value, repo))


def block(agent: Agent, repo: Path, case: str) -> Block:
    """The broken edit, with the repository's path in it."""
    found = agent.broken(case)
    return replace(found, text=found.text.replace("{REPO}", str(repo)))


def play(agent: Agent, tmp_path: Path, bad: Turn, rules: Rules) -> tuple[str, Rig, str]:
    """Run an agent through a gateway against these turns; returns the file as it is then."""
    repo = make_repo(tmp_path / "repo")
    assert ROOT is not None
    with rig([], rules) as r:
        r.provider.script = replace(r.provider.script, turns=tuple(turns(agent, repo, bad)), every=False)
        found = run(agent, Path(ROOT), r.url, repo, tmp_path / "home")
    assert found.status != "timeout", found.output
    return found.text, r, found.output


@pytest.mark.parametrize(("agent", "case"), playing(*MENDED))
def test_a_call_that_can_be_mended_lands(agent: Agent, tmp_path: Path, case: str) -> None:
    """Right, extra key, stringified, aliased, brackets missing: the edit lands in one go."""
    text, r, output = play(
        agent, tmp_path, Turn((Block("text", "Now."), block(agent, tmp_path / "repo", case))), Rules()
    )
    assert text == AFTER, output
    outcome = [record.outcome for record in r.gateway.recent][1]
    assert outcome in (("accepted",) if case == "a" else ("repaired", "accepted") if case == "b" else ("repaired",))


@pytest.mark.parametrize(("agent", "case"), playing(*ASKED_AGAIN))
def test_a_call_that_cannot_be_mended_lands_at_the_next_try(agent: Agent, tmp_path: Path, case: str) -> None:
    """Cut inside a string, half a surrogate pair, out of tokens: the gateway asks again and the edit lands."""
    stop = "max_tokens" if case == "m" else None
    text, r, output = play(
        agent, tmp_path, Turn((block(agent, tmp_path / "repo", case),), stop=stop), Rules(retry=1, hold="call")
    )
    assert "retried" in [record.outcome for record in r.gateway.recent], output
    assert text == AFTER, output


@pytest.mark.parametrize(("agent", "case"), playing("e", "m"))
def test_a_cut_call_is_never_run(agent: Agent, tmp_path: Path, case: str) -> None:
    """Without asking again: no agent runs what came, each is told, and the model's own next try lands.

    Codex ends its run where a reply ran out of tokens, as it does without a gateway.
    """
    stop = "max_tokens" if case == "m" else None
    text, _, output = play(agent, tmp_path, Turn((block(agent, tmp_path / "repo", case),), stop=stop), Rules())
    gives_up = case == "m" and agent.name.startswith("codex")
    assert text == (BEFORE if gives_up else AFTER), output


@pytest.mark.parametrize(("agent", "case"), playing("e"))
def test_a_cut_call_that_was_held_is_never_run(agent: Agent, tmp_path: Path, case: str) -> None:
    """The same where each call is held to its end."""
    text, _, output = play(agent, tmp_path, Turn((block(agent, tmp_path / "repo", case),)), Rules(hold="call"))
    assert text == AFTER, output


@pytest.mark.parametrize(("agent", "wire"), playing("one_delta", "keepalives"))
def test_other_wires(agent: Agent, tmp_path: Path, wire: str) -> None:
    """All arguments in one piece, comments before the first event: the edit lands."""
    found = block(agent, tmp_path / "repo", "b")
    turn = Turn((replace(found, chunk=0),)) if wire == "one_delta" else Turn((found,), keepalives=10)
    text, _, output = play(agent, tmp_path, turn, Rules())
    assert text == AFTER, output


@pytest.mark.parametrize(("agent", "wire"), playing("overloaded", "cut"))
def test_faults_of_the_provider(agent: Agent, tmp_path: Path, wire: str) -> None:
    """An error status, or a stream cut inside a call: the agent tries again or gives up; the file is never damaged."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    found = block(agent, tmp_path / "repo", "a")
    turn = (
        Turn((found,), status=529, error=error)
        if wire == "overloaded"
        else Turn((found,), cut_after_events=7, reset=True)
    )
    text, _, output = play(agent, tmp_path, turn, Rules())
    assert text in (BEFORE, AFTER), output
