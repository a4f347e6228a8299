"""Real agents started by `onspec wrap`: pointed at the gateway by the command alone, and mended."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from onspec.providers.script import Turn
from tests.agents.fleet import AFTER, FLEET, Agent, make_repo, run
from tests.agents.test_agents import ROOT, block, turns
from tests.gateway.rig import rig

pytestmark = pytest.mark.skipif(ROOT is None, reason="ONSPEC_AGENTS is not set")
WRAPPED = [agent for agent in FLEET if not agent.name.startswith("aisdk")]


@pytest.mark.parametrize("case", ["b", "e"])
@pytest.mark.parametrize("agent", WRAPPED, ids=[agent.name for agent in WRAPPED])
def test_an_agent_that_is_wrapped(agent: Agent, tmp_path: Path, case: str) -> None:
    """Its settings name the provider; the calls come mended, or at the next try, and its settings stay as they are."""
    repo = make_repo(tmp_path / "repo")
    wrap = (sys.executable, "-m", "onspec", "wrap", "--")
    assert ROOT is not None
    with rig([]) as r:
        bad = Turn((block(agent, repo, case),))
        r.provider.script = replace(r.provider.script, turns=tuple(turns(agent, repo, bad)), every=False)
        found = run(agent, Path(ROOT), r.provider.url, repo, tmp_path / "home", wrap)
    assert found.text == AFTER, found.output
    assert "tool calls" in found.output
    assert agent.edit[0] in found.output
