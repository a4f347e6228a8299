"""The live page in a real browser, the metrics as Prometheus reads them, and the reports."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from onspec.gateway.config import Rules
from onspec.providers.script import Script, Turn
from tests.gateway.chromium import BROWSER, Chromium
from tests.gateway.rig import PATHS, Rig, call, request, rig, says
from tests.gateway.test_faults import wait

TOTALS = ("accepted", "repaired", "refused", "saved")
BROKEN = '{"path": "a<b>.py", "edits": [{"oldText": "x", "newText": "SECRET", "requireUnique": true}]}'
WRONG = '{"path": {"a": 1}, "edits": []}'
GOOD = '{"path": "a.py", "edits": []}'


def feed(r: Rig, *turns: Turn) -> None:
    """Send one request for each turn through the gateway."""
    r.provider.script = Script(turns, every=True)
    r.provider._next = 0
    for _ in turns:
        httpx2.post(r.url + PATHS["anthropic"], json=request("anthropic") | {"model": "m<1>"}).raise_for_status()


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("keep", [False, True])
def test_the_page_in_a_browser(tmp_path: Path, keep: bool) -> None:
    """It connects, shows totals, rules, faults, keys and the last calls as they come; payloads only where kept."""
    with rig([], keep_payloads=keep) as r, Chromium(tmp_path, r.url + "/onspec/") as page:
        assert page.wait("document.getElementById('link') && document.getElementById('link').textContent == 'live'")
        turns = [says(call("edit", text)) for text in (BROKEN, WRONG, GOOD, GOOD)]
        feed(r, *turns)
        assert page.wait("document.getElementById('calls').textContent == '4'")
        shown = {name: page.evaluate(f"document.getElementById('{name}').textContent") for name in TOTALS}
        assert shown == {"accepted": "2", "repaired": "1", "refused": "1", "saved": str(len(BROKEN) // 4)}
        text = page.evaluate("document.body.innerText")
        for word in ("drop_unknown_key", "wrong_type", "requireUnique", "/edits/0/requireUnique", "m<1>"):
            assert word in text
        assert ("SECRET" in text) == keep
        assert page.evaluate("document.querySelectorAll('#recent tr').length") == 4
        feed(r, says(call("edit", GOOD)))
        assert page.wait("document.getElementById('calls').textContent == '5'")


def test_the_page_is_live() -> None:
    """Who watches gets the state at once and again after every call, and never more than that."""
    with rig([]) as r:
        with httpx2.stream("GET", r.url + "/onspec/events", timeout=20) as answer:
            lines = (line for line in answer.iter_lines() if line.startswith("data: "))
            assert json.loads(next(lines)[6:])["calls"] == 0
            feed(r, says(call("edit", GOOD)))
            assert json.loads(next(lines)[6:])["calls"] == 1
        assert wait(lambda: not r.gateway.live._watchers)


def test_the_page_loads_nothing_from_elsewhere() -> None:
    """One document, no foreign address in it, and a policy that allows none."""
    with rig([]) as r:
        answer = httpx2.get(r.url + "/onspec")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert not re.search(r"https?://", answer.text)


def test_metrics_are_what_prometheus_reads() -> None:
    """Every line is a comment or a sample with escaped labels; counters add up to the calls made."""
    with rig([]) as r:
        feed(r, says(call("edit", BROKEN)), says(call("edit", WRONG)), says(call("edit", GOOD)))
        answer = httpx2.get(r.url + "/onspec/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    label = r'[a-z_]+="(?:[^"\\\n]|\\.)*"'
    sample = re.compile(rf"[a-z_]+(?:\{{{label}(?:,{label})*\}})? [0-9.e+-]+")
    for line in answer.text.splitlines():
        assert line.startswith("# ") or sample.fullmatch(line), line
    calls = [line for line in answer.text.splitlines() if line.startswith("onspec_calls_total{")]
    assert sum(float(line.rsplit(" ", 1)[1]) for line in calls) == 3
    assert 'onspec_repairs_total{model="m<1>",tool="edit",rule="drop_unknown_key"} 1' in answer.text


def test_names_from_clients_do_not_fill_the_memory() -> None:
    """Models and tools are named by clients: beyond a bound they share one label."""
    with rig([], Rules()) as r:
        counts = r.gateway.metrics.calls
        counts.update({(str(number), "chat", "t", "accepted"): 1 for number in range(5000)})
        feed(r, says(call("edit", GOOD)))
        assert counts["(other)", "(other)", "(other)", "(other)"] == 1


def test_a_report_of_the_database(tmp_path: Path) -> None:
    """`onspec report --gateway` adds up what the gateway wrote, as a table and as JSON."""
    path = tmp_path / "db.sqlite"
    with rig([], database=path) as r:
        feed(r, says(call("edit", BROKEN)), says(call("edit", WRONG)), says(call("edit", GOOD)))
    command = [sys.executable, "-m", "onspec", "report", "--gateway", str(path)]
    found = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    report = json.loads(found.stdout)
    assert (report["calls"], report["outcomes"]) == (3, {"repaired": 1, "refused": 1, "accepted": 1})
    assert report["rules"] == {"drop_unknown_key": 1}
    assert report["invented"] == {"requireUnique": 1}
    table = subprocess.run([*command, "--since", "1h"], capture_output=True, text=True, check=False)
    assert "3 tool calls" in table.stdout
    missing = subprocess.run([*command[:-1], str(tmp_path / "none")], capture_output=True, text=True, check=False)
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
