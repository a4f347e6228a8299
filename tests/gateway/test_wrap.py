"""`onspec wrap`: each agent is pointed at the gateway, its own files stay as they are, its exit status is kept."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from onspec.errors import InputError
from onspec.gateway.agents import Setting, point
from onspec.gateway.config import Upstream
from onspec.providers.script import Block, Script
from tests.gateway.rig import PATHS, call, request, rig, says

GATEWAY = "http://127.0.0.1:9"
AGENT = """
import anthropic, json, openai, sys
text = {"type": "string"}
tool = {"type": "object", "properties": {"path": text}, "required": ["path"], "additionalProperties": False}
message = anthropic.Anthropic(api_key="k").messages.create(
    model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}],
    tools=[{"name": "edit", "input_schema": tool}])
print(json.dumps(message.content[0].input))
call = openai.OpenAI(api_key="k").chat.completions.create(
    model="m", messages=[{"role": "user", "content": "x"}],
    tools=[{"type": "function", "function": {"name": "edit", "parameters": tool}}]).choices[0].message.tool_calls[0]
print(call.function.arguments)
sys.exit(int(sys.argv[1]))
"""


def setting(tmp_path: Path, *command: str, gateway: str = GATEWAY, **env: str) -> Setting:
    """A setting with an empty home."""
    for name in ("home", "own"):
        (tmp_path / name).mkdir(exist_ok=True)
    return Setting(env, tmp_path / "home", tmp_path / "own", command, gateway)


def routes(upstreams: list[Upstream]) -> dict[str, str]:
    """Where each route leads."""
    return {upstream.route: upstream.url for upstream in upstreams}


@pytest.mark.parametrize(
    ("env", "newer", "older"),
    [
        ({"OPENAI_API_BASE": "http://own/v1"}, "http://own/v1", "http://own/v1"),
        ({"OPENAI_BASE_URL": "http://own/v1"}, "http://own/v1", "http://own/v1"),
        ({"OPENAI_BASE_URL": "http://a/v1", "OPENAI_API_BASE": "http://b/v1"}, "http://a/v1", "http://b/v1"),
        ({"OPENAI_BASE_URL": "", "OPENAI_API_BASE": "http://b/v1"}, "http://b/v1", "http://b/v1"),
    ],
)
def test_the_older_names_of_the_variables_lead_where_they_led(
    tmp_path: Path, env: dict[str, str], newer: str, older: str
) -> None:
    """A key for one's own provider never goes to another one."""
    pointed = point(setting(tmp_path, "python", **env))
    led = routes(pointed.upstreams)
    assert led[pointed.env["OPENAI_BASE_URL"].removeprefix(GATEWAY)] == newer
    assert led[pointed.env["OPENAI_API_BASE"].removeprefix(GATEWAY)] == older


@pytest.mark.parametrize("name", ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE", "OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_a_variable_without_an_address_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is not an http or https address: 'localhost:1'"):
        point(setting(tmp_path, "python", **{name: "localhost:1"}))


def test_the_sdks_get_variables(tmp_path: Path) -> None:
    """Base URLs in the environment become upstreams; without any, the providers' own addresses do."""
    pointed = point(setting(tmp_path, "python", "x.py"))
    assert pointed.env["ANTHROPIC_BASE_URL"] == f"{GATEWAY}/to/anthropic"
    assert routes(pointed.upstreams) == {
        "/to/anthropic": "https://api.anthropic.com",
        "/to/openai": "https://api.openai.com/v1",
    }
    pointed = point(
        setting(tmp_path, "python", ANTHROPIC_BASE_URL="http://a/x/", OPENAI_BASE_URL="http://b/v3", NO_PROXY="c")
    )
    assert routes(pointed.upstreams) == {"/to/anthropic": "http://a/x", "/to/openai": "http://b/v3"}
    assert pointed.env["NO_PROXY"].startswith("c,127.0.0.1")
    assert pointed.upstreams[1].address("/to/openai/responses?x=1") == "http://b/v3/responses?x=1"


def test_codex(tmp_path: Path) -> None:
    """The built-in provider and every one of the user's own, by overrides on the command line."""
    (tmp_path / "home" / ".codex").mkdir(parents=True)
    config = tmp_path / "home" / ".codex" / "config.toml"
    config.write_text(
        'model_provider = "own"\n[model_providers.own]\nname = "own"\nbase_url = "http://own/v1"\n[other]\nbase_url = "http://no"\n'
    )
    before = config.read_text()
    pointed = point(setting(tmp_path, "/usr/bin/codex", "exec", "do it"))
    assert pointed.command[0] == "/usr/bin/codex"
    assert pointed.command[-2:] == ["exec", "do it"]
    assert f'model_providers.own.base_url="{GATEWAY}/to/own"' in pointed.command
    assert f'openai_base_url="{GATEWAY}/to/openai"' in pointed.command
    assert routes(pointed.upstreams)["/to/own"] == "http://own/v1"
    assert config.read_text() == before


def test_pi(tmp_path: Path) -> None:
    """Its folder is shown by links, but for the models, whose addresses are the gateway's."""
    own = tmp_path / "home" / ".pi" / "agent"
    own.mkdir(parents=True)
    (own / "auth.json").write_text("{}")
    (own / "models.json").write_text(
        json.dumps({"providers": {"local": {"baseUrl": "http://local/v1", "api": "openai-completions"}}})
    )
    pointed = point(setting(tmp_path, "pi", "-p", "x"))
    copy = Path(pointed.env["PI_CODING_AGENT_DIR"])
    providers = json.loads((copy / "models.json").read_text())["providers"]
    assert providers["local"] == {"baseUrl": f"{GATEWAY}/to/local", "api": "openai-completions"}
    assert providers["anthropic"]["baseUrl"] == f"{GATEWAY}/to/anthropic"
    assert (copy / "auth.json").resolve() == (own / "auth.json").resolve()
    assert routes(pointed.upstreams)["/to/local"] == "http://local/v1"
    assert "local/v1" in (own / "models.json").read_text()


def test_opencode_and_continue(tmp_path: Path) -> None:
    """Settings in a variable, and a copied file."""
    pointed = point(setting(tmp_path, "opencode", "run", OPENCODE_CONFIG_CONTENT='{"model": "x"}'))
    content = json.loads(pointed.env["OPENCODE_CONFIG_CONTENT"])
    assert content["model"] == "x"
    assert content["provider"]["anthropic"]["options"]["baseURL"] == f"{GATEWAY}/to/anthropic-v1"
    assert routes(pointed.upstreams)["/to/anthropic-v1"] == "https://api.anthropic.com/v1"
    file = tmp_path / "c.yaml"
    file.write_text(
        "models:\n  - name: a\n    apiBase: http://a/v1/\n  - name: b\n    apiBase: 'http://b/v1'  # mine\n"
    )
    pointed = point(setting(tmp_path, "cn", "--config", str(file), "-p", "x"))
    written = Path(pointed.command[2]).read_text()
    assert re.findall(r"apiBase: (\S+)", written) == [f"{GATEWAY}/to/continue-1/", f"{GATEWAY}/to/continue-2/"]
    assert {routes(pointed.upstreams)[f"/to/continue-{number}"] for number in (1, 2)} == {"http://a/v1", "http://b/v1"}
    assert point(setting(tmp_path, "cn")).notes


def test_names_that_are_taken(tmp_path: Path) -> None:
    """A provider called like one that is there, but at another address, gets a route of its own."""
    own = tmp_path / "home" / ".pi" / "agent"
    own.mkdir(parents=True)
    providers = {"anthropic": {"baseUrl": "http://mine"}, "openai": {"baseUrl": "https://api.openai.com/v1/"}}
    (own / "models.json").write_text(json.dumps({"providers": providers}))
    pointed = point(setting(tmp_path, "pi"))
    written = json.loads((Path(pointed.env["PI_CODING_AGENT_DIR"]) / "models.json").read_text())["providers"]
    assert written["anthropic"]["baseUrl"] == f"{GATEWAY}/to/anthropic-1"
    assert written["openai"]["baseUrl"] == f"{GATEWAY}/to/openai"
    assert routes(pointed.upstreams)["/to/anthropic-1"] == "http://mine"
    assert routes(pointed.upstreams)["/to/anthropic"] == "https://api.anthropic.com"


def test_cline(tmp_path: Path) -> None:
    """Its file of providers is copied; those that have no address are told of."""
    file = tmp_path / "home" / ".cline" / "data" / "settings" / "providers.json"
    file.parent.mkdir(parents=True)
    given = {"provider": "openai-compatible", "baseUrl": "http://own/v1", "apiKey": "k"}
    file.write_text(json.dumps({"lastUsedProvider": "openai-compatible", "providers": {"own": {"settings": given}}}))
    pointed = point(setting(tmp_path, "cline", "-P", "own", "do it", ANTHROPIC_BASE_URL="http://a"))
    written = json.loads(Path(pointed.env["CLINE_PROVIDER_SETTINGS_PATH"]).read_text())["providers"]
    assert written["own"]["settings"] == {**given, "baseUrl": f"{GATEWAY}/to/own"}
    assert routes(pointed.upstreams)["/to/own"] == "http://own/v1"
    anthropic = written["anthropic"]["settings"]["baseUrl"].removeprefix(GATEWAY)
    assert routes(pointed.upstreams)[anthropic] == "http://a/v1"
    assert json.loads(file.read_text())["providers"]["own"]["settings"] == given
    assert not pointed.notes
    assert "cline has no base URL" in point(setting(tmp_path, "cline", "-P", "cline")).notes[0]


def test_qwen(tmp_path: Path) -> None:
    """Models of its settings, its `.env` files, its login and its option, in the order in which it reads them."""
    home = tmp_path / "home" / ".qwen"
    home.mkdir(parents=True)
    settings = {
        "security": {"auth": {"selectedType": "openai", "baseUrl": "http://login/v1"}},
        "modelProviders": {"openai": [{"id": "m", "baseUrl": "http://model/v1"}, {"id": "n"}]},
    }
    (home / "settings.json").write_text(json.dumps(settings))
    pointed = point(setting(tmp_path, "qwen", "--openai-base-url", "http://word/v1", "-p", "x"))
    assert pointed.command == ["qwen", f"--openai-base-url={GATEWAY}/to/openai-given", "-p", "x"]
    assert routes(pointed.upstreams)["/to/openai-given"] == "http://word/v1"
    assert routes(pointed.upstreams)["/to/openai"] == "http://login/v1"
    models = json.loads(Path(pointed.env["QWEN_CODE_SYSTEM_SETTINGS_PATH"]).read_text())["modelProviders"]["openai"]
    assert models == [{"id": "m", "baseUrl": f"{GATEWAY}/to/qwen-1"}, {"id": "n"}]
    (home / "settings.json").unlink()
    (home / ".env").write_text('export ANTHROPIC_BASE_URL="http://file"\n')
    pointed = point(setting(tmp_path, "qwen", OPENAI_BASE_URL="http://env/v1"))
    assert routes(pointed.upstreams) == {"/to/anthropic": "http://file", "/to/openai": "http://env/v1"}
    assert "QWEN_CODE_SYSTEM_SETTINGS_PATH" not in pointed.env


def test_an_agent_through_the_command(tmp_path: Path) -> None:
    """A program on both SDKs gets mended calls, its exit status is ours, and the summary says what was done."""
    (tmp_path / "agent.py").write_text(AGENT)
    broken = says(call("edit", '{"file_path": "a.py", "x": null}'))
    with rig(Script((broken,), every=True, loop=True)) as r:
        env = {**os.environ, "ANTHROPIC_BASE_URL": r.provider.url, "OPENAI_BASE_URL": r.provider.url + "/v1"}
        command = [
            sys.executable,
            "-m",
            "onspec",
            "wrap",
            "--db",
            str(tmp_path / "db"),
            "--",
            sys.executable,
            str(tmp_path / "agent.py"),
            "7",
        ]
        found = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 7, found.stderr
    assert [json.loads(line) for line in found.stdout.splitlines()] == [{"path": "a.py"}] * 2
    assert "2 tool calls" in found.stderr
    assert "alias_key 2" in found.stderr
    assert (tmp_path / "db").is_file()


def test_what_goes_wrong(tmp_path: Path) -> None:
    """A command that does not exist is one line and status 2; an agent killed by a signal ends as a shell says it."""
    wrap = [sys.executable, "-m", "onspec", "wrap"]
    found = subprocess.run([*wrap, "--", "no-such-agent"], capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stderr.count("\n")) == (2, 1)
    killed = subprocess.run(
        [*wrap, "--quiet", "--", "sh", "-c", "kill -9 $$"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (killed.returncode, killed.stderr) == (137, "")


def test_an_interrupt_is_the_agents(tmp_path: Path) -> None:
    """Ctrl-C reaches the agent, and the gateway outlives it to sum up."""
    script = (
        "import signal, sys, time\nsignal.signal(signal.SIGINT, lambda *_: sys.exit(5))\n"
        "print('ready', flush=True)\ntime.sleep(60)"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "onspec", "wrap", "--", sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 5
    assert "No tool calls yet" in errors


def test_spans_with_genai_attributes() -> None:
    """With an exporter configured, one span a request: model, tokens, outcomes; no payload."""
    trace = pytest.importorskip("opentelemetry.trace")
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter").InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(memory))
    trace.set_tracer_provider(provider)
    broken = '{"path": "SECRET", "edits": [], "n": null}'
    with rig([says(Block("text", "x"), call("edit", broken))], otel=True) as r:
        httpx2.post(r.url + PATHS["anthropic"], json=request("anthropic"))
        httpx2.get(r.url + "/v1/models")
    (span,) = memory.get_finished_spans()
    attributes = dict(span.attributes)
    assert span.name == "chat m-1"
    assert attributes["gen_ai.provider.name"] == "anthropic"
    assert attributes["gen_ai.request.model"] == "m-1"
    assert attributes["gen_ai.usage.output_tokens"] == 42
    assert attributes["onspec.calls.repaired"] == 1
    assert "SECRET" not in str(attributes)
