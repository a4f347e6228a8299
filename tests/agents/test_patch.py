"""Codex and its own patch tool: free text with a grammar, held to it by the gateway."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from onspec.gateway.config import Rules
from onspec.providers.script import Block, Turn
from tests.agents.fleet import AFTER, BEFORE, CODEX, PATCH, make_repo, run
from tests.agents.test_agents import ROOT
from tests.gateway.rig import Rig, rig

pytestmark = pytest.mark.skipif(ROOT is None, reason="ONSPEC_AGENTS is not set")


def play(tmp_path: Path, texts: list[str], rules: Rules) -> tuple[str, Rig, str]:
    """Codex, told to apply these patches one after another until one lands; returns the file as it is then."""
    repo = make_repo(tmp_path / "repo")
    turns = tuple(Turn((Block("custom_tool", text, name="apply_patch", chunk=7),)) for text in texts)
    assert ROOT is not None
    with rig([], rules) as r:
        r.provider.script = replace(r.provider.script, turns=turns, every=False)
        found = run(CODEX, Path(ROOT), r.url, repo, tmp_path / "home")
    return found.text, r, found.output


@pytest.mark.parametrize("hold", ["value", "call"])
def test_a_patch_of_the_grammar_lands(tmp_path: Path, hold: str) -> None:
    """Untouched, in one go."""
    text, r, output = play(tmp_path, [PATCH], Rules(hold=hold))  # type: ignore[arg-type]
    assert text == AFTER, output
    assert [record.outcome for record in r.gateway.recent] == ["accepted"]


@pytest.mark.parametrize("bad", [PATCH.replace("*** End Patch\n", ""), PATCH.replace("@@ def", "def")])
def test_a_patch_off_the_grammar_is_asked_for_again(tmp_path: Path, bad: str) -> None:
    """Without its end, or with a stray line: the gateway asks again and Codex sees the good one only."""
    text, r, output = play(tmp_path, [bad, PATCH], Rules(retry=1, hold="call"))
    assert text == AFTER, output
    assert [record.outcome for record in r.gateway.recent] == ["retried"]
    assert "apply_patch was not run" in str(r.provider.requests[1].body)


def test_a_patch_off_the_grammar_passes_without_retry(tmp_path: Path) -> None:
    """Codex refuses it itself, and its own next try lands."""
    text, r, output = play(tmp_path, [PATCH.replace("*** End Patch\n", ""), PATCH], Rules())
    assert text in (BEFORE, AFTER), output
    assert r.gateway.recent[0].outcome == "refused"
