"""What an operator sets: policies by tool and model, aliases, strict flags, routes."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from onspec.gateway.config import Rules, ToolRules
from onspec.providers.script import Script
from tests.gateway.rig import PATHS, Rig, call, request, rig, says, tools
from tests.gateway.test_rewrite import read

EXTRA = '{"path": "a", "edits": [], "why": null}'
ALIAS = '{"target": "a", "edits": []}'


def written(r: Rig, text: str, model: str = "m-1", api: str = "anthropic", **more: Any) -> str:
    """The arguments a client reads of a call with this text."""
    r.provider.script = Script((says(call("edit", text)),), every=True, loop=True)
    answer = httpx2.post(r.url + PATHS[api], json={**request(api), "model": model, **more})
    return next(iter(read(api, answer.content)[0].values()))


def test_a_policy_for_a_tool_and_for_models() -> None:
    """A tool's own policy comes before the rules of its request; a model's rules before the general ones."""
    with rig([], Rules()) as r:
        assert json.loads(written(r, EXTRA)) == {"path": "a", "edits": []}
    with rig([], Rules(), tools={"edit": ToolRules(policy="strict")}) as r:
        assert written(r, EXTRA) == EXTRA
    with rig(
        [], Rules(policy="strict"), models=(("claude-*", {"policy": "safe"}), ("*-shadow", {"shadow": True}))
    ) as r:
        assert written(r, EXTRA, "gpt") == EXTRA
        assert json.loads(written(r, EXTRA, "claude-5")) == {"path": "a", "edits": []}
        assert written(r, EXTRA, "claude-shadow") == EXTRA
        assert [record.outcome for record in r.gateway.recent] == ["refused", "repaired", "repaired"]


def test_aliases_of_the_operator() -> None:
    """Another spelling of a key, declared in the settings."""
    with rig([], Rules()) as r:
        assert written(r, ALIAS) == ALIAS
    with rig([], Rules(), tools={"edit": ToolRules(aliases={"target": "path"})}) as r:
        assert json.loads(written(r, ALIAS)) == {"path": "a", "edits": []}


@pytest.mark.parametrize("api", PATHS)
def test_strict_flags(api: str) -> None:
    """`off` takes the tools' strict flags away and nothing else; `pass` sends the very bytes."""
    given = [
        {**tool, "strict": True}
        if api != "chat"
        else {**tool, "function": {**tool.get("function", {}), "strict": True}}
        for tool in tools(api)[:2]
    ]
    for mode in ("pass", "off"):
        with rig([], Rules(strict=mode)) as r:  # type: ignore[arg-type]
            written(r, EXTRA, api=api, tools=given)
            body = r.provider.requests[-1].body
        flags = [(tool.get("function") or tool)["strict"] for tool in body["tools"]]
        assert flags == [mode == "pass"] * 2
        assert json.loads(json.dumps(body["tools"]).replace("false", "true")) == json.loads(
            json.dumps(given).replace("false", "true")
        )
