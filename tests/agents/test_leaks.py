"""Real agents, and call markup that leaked into the model's text: with `promote` the edit lands all the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from onspec.gateway.config import Rules
from onspec.gateway.leak import recover_with
from onspec.providers.script import Turn
from tests.agents.fleet import AFTER, Agent, make_repo, playing, run
from tests.agents.test_agents import ROOT, block, turns
from tests.gateway.rig import rig

pytestmark = pytest.mark.skipif(ROOT is None, reason="ONSPEC_AGENTS is not set")


@pytest.mark.parametrize(("agent", "case"), playing("g"))
def test_a_leaked_call_lands(agent: Agent, case: str, tmp_path: Path) -> None:
    """Case (g): the markup leaves the text and becomes the call it was meant to be, once."""
    repo = make_repo(tmp_path / "repo")
    assert ROOT is not None
    bad = Turn((block(agent, repo, case),))
    with rig([], Rules(promote=True), recover=recover_with) as r:
        r.provider.script = replace(r.provider.script, turns=tuple(turns(agent, repo, bad)), every=False)
        found = run(agent, Path(ROOT), r.url, repo, tmp_path / "home")
    assert "promoted" in [record.outcome for record in r.gateway.recent], found.output
    assert found.text == AFTER, found.output
    assert [record.outcome for record in r.gateway.recent].count("promoted") == 1
