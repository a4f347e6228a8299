"""Real agents started by `onspec wrap`: pointed at the gateway by the command alone, and mended."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from onspec.providers.script import Turn
from tests.agents.fleet import AFTER, FLEET, Agent, make_repo, playing, run
from tests.agents.test_agents import ROOT, block, turns
from tests.gateway.rig import rig

pytestmark = pytest.mark.skipif(ROOT is None, reason="ONSPEC_AGENTS is not set")
WRAP = (sys.executable, "-m", "onspec", "wrap", "--")


def play(agent: Agent, tmp_path: Path, case: str) -> None:
    """Run a wrapped agent that knows only the provider: the edit lands, and the summary says so."""
    repo = make_repo(tmp_path / "repo")
    assert ROOT is not None
    with rig([]) as r:
        bad = Turn((block(agent, repo, case),))
        r.provider.script = replace(r.provider.script, turns=tuple(turns(agent, repo, bad)), every=False)
        found = run(agent, Path(ROOT), r.provider.url, repo, tmp_path / "home", WRAP)
    assert found.text == AFTER, found.output
    assert "tool calls" in found.output
    assert agent.edit[0] in found.output


@pytest.mark.parametrize(("agent", "case"), playing("wrapped b", "wrapped e"))
def test_an_agent_that_is_wrapped(agent: Agent, tmp_path: Path, case: str) -> None:
    """Its settings name the provider; the calls come mended, or at the next try, and its settings stay as they are."""
    if agent.name.startswith("aisdk"):
        pytest.skip("a library; its program takes the address from the command line")
    play(agent, tmp_path, case.removeprefix("wrapped "))


def _qwen_models(home: Path, repo: Path, base: str) -> None:
    model = {"id": "fake-model", "name": "x", "baseUrl": base + "/v1", "envKey": "OWN_KEY"}
    folder = home / ".qwen"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps({"modelProviders": {"openai": [model]}}))


def _qwen_env_file(home: Path, repo: Path, base: str) -> None:
    (home / ".qwen").mkdir(parents=True)
    (home / ".qwen" / ".env").write_text(f"OPENAI_API_KEY=k\nOPENAI_BASE_URL={base}/v1\n")


def _nothing(home: Path, repo: Path, base: str) -> None:
    pass


BY_NAME = {agent.name: agent for agent in FLEET}
QWEN, CLINE = BY_NAME["qwen-openai"], BY_NAME["cline-anthropic"]
ELSEWHERE = {
    "Qwen Code, in its list of models": replace(QWEN, setup=_qwen_models, env={"OWN_KEY": "k"}),
    "Qwen Code, in a .env file": replace(QWEN, setup=_qwen_env_file, env={}),
    "Cline, by its command line": replace(
        CLINE,
        setup=_nothing,
        env={**CLINE.env, "ANTHROPIC_BASE_URL": "{BASE}"},
        command=(*CLINE.command[:-1], "-P", "anthropic", "-k", "k", "-m", CLINE.model, CLINE.command[-1]),
    ),
}


@pytest.mark.parametrize("agent", ELSEWHERE.values(), ids=ELSEWHERE)
def test_an_agent_that_is_set_up_elsewhere(agent: Agent, tmp_path: Path) -> None:
    """Wherever its address stands, the calls pass through the gateway."""
    play(agent, tmp_path, "e")
