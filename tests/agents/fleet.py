"""Real agents, each with the command that runs it headless, and the call with which it edits a file."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from onspec.providers.script import Block

BEFORE = "def add(a, b):\n    return a - b\n\n\ndef mul(a, b):\n    return a * b\n"
AFTER = BEFORE.replace("a - b", "a + b")
OLD, NEW = "    return a - b", "    return a + b"
PROMPT = "Fix add in calc.py: it subtracts instead of adding."
SED = "sed -i 's/a - b/a + b/' calc.py"
PATCH = f"*** Begin Patch\n*** Update File: calc.py\n@@ def add(a, b):\n-{OLD}\n+{NEW}\n*** End Patch\n"
SECONDS = 120

Setup = Callable[[Path, Path, str], None]


@dataclass(frozen=True)
class Agent:
    """One agent on one API.

    Attributes:
        command: Program and arguments; `{ROOT}` is where agents are installed, `{HOME}` its home, `{BASE}` the gateway.
        setup: Writes its settings into a home for a gateway's address.
        read: The tool with which it looks at the file, and its arguments.
        edit: The tool with which it edits, and its arguments.
        list_field: The argument that holds a list of edits, or "".
        flat: What stands for a value in another type, for tools that take no list.
        aliases: Other names for its arguments.
        plays: The cases it plays, all where empty; a slow one plays those that tell most.
    """

    name: str
    api: str
    command: tuple[str, ...]
    setup: Setup
    read: tuple[str, dict[str, Any]]
    edit: tuple[str, dict[str, Any]]
    list_field: str = ""
    flat: dict[str, Any] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    model: str = "fake-model"
    plays: tuple[str, ...] = ()

    def good(self) -> str:
        """The edit as it should be."""
        return json.dumps(self.edit[1])

    def broken(self, case: str) -> Block:
        """The edit with one of the faults (a) to (g), e2 and m."""
        name, right = self.edit
        text = self.good()
        value = json.loads(text)
        if case == "b":
            inner = value[self.list_field][0] if self.list_field else value
            inner["requireUnique"] = True
            text = json.dumps(value)
        elif case == "c":
            text = json.dumps(
                {**right, self.list_field: json.dumps(right[self.list_field])}
                if self.list_field
                else {**right, **self.flat}
            )
        elif case == "d":
            text = json.dumps(_renamed(value, self.aliases))
        elif case in ("e", "m"):
            text = text[: text.rindex("a + b") + 3]
        elif case == "e2":
            text = text.rstrip("]}")
        elif case == "f":
            text = text.replace("a + b", "a + b  # \\ud83d")
        elif case == "g":
            parameters = "".join(
                f'<parameter name="{key}">{item if isinstance(item, str) else json.dumps(item)}</parameter>\n'
                for key, item in right.items()
            )
            return Block("text", f'I will fix it now.\n\n<invoke name="{name}">\n{parameters}</invoke>\n')
        return Block("tool", text, name=name, chunk=7)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(item, names) for key, item in value.items()}
    return [_renamed(item, names) for item in value] if isinstance(value, list) else value


def _pi(api: str, package: str) -> Agent:
    def setup(home: Path, repo: Path, base: str) -> None:
        url = base if api == "anthropic-messages" else base + "/v1"
        model = {
            "id": "fake-model",
            "name": "fake",
            "reasoning": False,
            "input": ["text"],
            "contextWindow": 200_000,
            "maxTokens": 8192,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        }
        folder = home / ".pi" / "agent"
        folder.mkdir(parents=True)
        (folder / "models.json").write_text(
            json.dumps({"providers": {"fake": {"baseUrl": url, "api": api, "apiKey": "k", "models": [model]}}})
        )

    return Agent(
        f"{package}-{api}",
        {"anthropic-messages": "anthropic", "openai-completions": "chat", "openai-responses": "responses"}[api],
        (
            f"{{ROOT}}/{package}/node_modules/.bin/pi",
            "--provider",
            "fake",
            "--model",
            "fake-model",
            "--no-session",
            "-p",
            PROMPT,
        ),
        setup,
        ("read", {"path": "calc.py"}),
        ("edit", {"path": "calc.py", "edits": [{"oldText": OLD, "newText": NEW}]}),
        "edits",
        aliases={"path": "file_path", "oldText": "old_string", "newText": "new_string"},
        env={"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"},
    )


def _codex_setup(home: Path, repo: Path, base: str) -> None:
    folder = home / ".codex"
    folder.mkdir(parents=True)
    off = "\n".join(f"{name} = false" for name in ("plugins", "remote_plugin", "apps", "goals"))
    (folder / "config.toml").write_text(
        f'model = "gpt-5.5"\nmodel_provider = "fake"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
        f'check_for_update_on_startup = false\nweb_search = "disabled"\n'
        f"[features]\n{off}\n[agents]\nenabled = false\n[analytics]\nenabled = false\n"
        f'[model_providers.fake]\nname = "fake"\nbase_url = "{base}/v1"\nwire_api = "responses"\nenv_key = "FAKE_KEY"\n'
        f"request_max_retries = 1\nstream_max_retries = 1\nsupports_websockets = false\n"
    )


CODEX = Agent(
    "codex",
    "responses",
    ("{ROOT}/codex/node_modules/.bin/codex", "exec", "--skip-git-repo-check", "--ephemeral", PROMPT),
    _codex_setup,
    ("exec_command", {"cmd": "cat calc.py"}),
    ("exec_command", {"cmd": SED}),
    flat={"max_output_tokens": "2000", "login": "false"},
    aliases={"cmd": "command"},
    env={"FAKE_KEY": "k", "RUST_LOG": "warn"},
)


def _continue(provider: str) -> Agent:
    model = "claude-opus-4-6" if provider == "anthropic" else "fake-model"

    def setup(home: Path, repo: Path, base: str) -> None:
        folder = home / ".continue"
        folder.mkdir(parents=True)
        lines = [
            "name: fake",
            "version: 0.0.1",
            "schema: v1",
            "models:",
            "  - name: fake",
            f"    provider: {provider}",
            f"    model: {model}",
        ]
        lines += [
            f"    apiBase: {base}/v1/",
            "    apiKey: k",
            "    roles: [chat, edit, apply]",
            "    capabilities: [tool_use]",
            "",
        ]
        (folder / "config.yaml").write_text("\n".join(lines))

    change = {"old_string": OLD, "new_string": NEW}
    many = ("MultiEdit", {"file_path": "{REPO}/calc.py", "edits": [change]})
    one = ("Edit", {"file_path": "{REPO}/calc.py", **change})
    return Agent(
        f"continue-{provider}",
        "anthropic" if provider == "anthropic" else "chat",
        ("{ROOT}/cn/node_modules/.bin/cn", "--config", "{HOME}/.continue/config.yaml", "--auto", "-p", PROMPT),
        setup,
        ("Read", {"filepath": "calc.py"}),
        many if provider == "anthropic" else one,
        "edits" if provider == "anthropic" else "",
        flat={"replace_all": "false"},
        aliases={"file_path": "path", "old_string": "oldText", "new_string": "newText"},
        env={"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_METRICS_ENABLED": "0"},
        model=model,
    )


def _ai_sdk(kind: str) -> Agent:
    return Agent(
        f"aisdk-{kind}",
        kind,
        ("node", str(Path(__file__).with_name("ai_sdk.mjs")), "{ROOT}/aisdk", kind, "{BASE}"),
        lambda home, repo, base: None,
        ("read", {"path": "calc.py"}),
        ("edit", {"path": "calc.py", "edits": [{"oldText": OLD, "newText": NEW}]}),
        "edits",
        aliases={"path": "file_path", "oldText": "old_string", "newText": "new_string"},
    )


def _claude_code() -> Agent:
    change = {"file_path": "{REPO}/calc.py", "old_string": OLD, "new_string": NEW}
    return Agent(
        "claude-code",
        "anthropic",
        (
            "{ROOT}/claude/node_modules/.bin/claude",
            "-p",
            PROMPT,
            "--model",
            "claude-opus-4-6",
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Read,Edit,Write,Bash",
            "--output-format",
            "json",
            "--max-turns",
            "8",
        ),
        lambda home, repo, base: None,
        ("Read", {"file_path": "{REPO}/calc.py"}),
        ("Edit", change),
        flat={"replace_all": "false"},
        aliases={"old_string": "old_str", "new_string": "new_str", "file_path": "path"},
        env={
            "ANTHROPIC_BASE_URL": "{BASE}",
            "ANTHROPIC_API_KEY": "k",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
    )


def _qwen(kind: str) -> Agent:
    def setup(home: Path, repo: Path, base: str) -> None:
        folder = home / ".qwen"
        folder.mkdir(parents=True)
        off = {"telemetry": {"enabled": False}, "privacy": {"usageStatisticsEnabled": False}}
        (folder / "settings.json").write_text(json.dumps({**off, "general": {"enableAutoUpdate": False}}))

    return Agent(
        f"qwen-{kind}",
        {"openai": "chat", "anthropic": "anthropic", "openai-responses": "responses"}[kind],
        ("{ROOT}/qwen/node_modules/.bin/qwen", "--auth-type", kind, "-m", "fake-model", "-y", "-p", PROMPT),
        setup,
        ("read_file", {"file_path": "{REPO}/calc.py"}),
        ("edit", {"file_path": "{REPO}/calc.py", "old_string": OLD, "new_string": NEW}),
        flat={"replace_all": "false"},
        aliases={"file_path": "path", "old_string": "oldText", "new_string": "newText"},
        env={
            "OPENAI_API_KEY": "k",
            "OPENAI_BASE_URL": "{BASE}/v1",
            "OPENAI_MODEL": "fake-model",
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": "{BASE}",
            "ANTHROPIC_MODEL": "fake-model",
        },
        plays=("c", "e", "g", "wrapped e"),
    )


def _opencode(kind: str) -> Agent:
    package = {"anthropic": "anthropic", "chat": "openai-compatible", "responses": "openai"}[kind]

    def setup(home: Path, repo: Path, base: str) -> None:
        folder = home / ".config" / "opencode"
        folder.mkdir(parents=True)
        model = {"name": "fake", "tool_call": True, "limit": {"context": 200_000, "output": 8192}}
        provider = {
            "npm": f"@ai-sdk/{package}",
            "name": "fake",
            "options": {"baseURL": f"{base}/v1", "apiKey": "k"},
            "models": {"fake-model": model},
        }
        settings = {
            "autoupdate": False,
            "share": "disabled",
            "model": "fake/fake-model",
            "small_model": "fake/fake-model",
            "enabled_providers": ["fake"],
            "permission": {"*": "allow"},
            "provider": {"fake": provider},
        }
        (folder / "opencode.json").write_text(json.dumps(settings))

    off = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS", "CLAUDE_CODE")
    return Agent(
        f"opencode-{kind}",
        kind,
        ("{ROOT}/opencode/node_modules/.bin/opencode", "run", "--pure", "--format", "json", PROMPT),
        setup,
        ("read", {"filePath": "{REPO}/calc.py"}),
        ("edit", {"filePath": "{REPO}/calc.py", "oldString": OLD, "newString": NEW}),
        flat={"replaceAll": "false"},
        aliases={"filePath": "file_path", "oldString": "old_string", "newString": "new_string"},
        env={f"OPENCODE_DISABLE_{name}": "1" for name in off},
        plays=("d", "e", "wrapped e") if kind == "anthropic" else ("e",) if kind == "chat" else ("c",),
    )


def _cline(kind: str) -> Agent:
    provider, model = {"anthropic": ("anthropic", "claude-opus-4-6"), "chat": ("openai-compatible", "fake-model")}[kind]

    def setup(home: Path, repo: Path, base: str) -> None:
        folder = home / ".cline" / "data" / "settings"
        folder.mkdir(parents=True)
        settings = {"provider": provider, "apiKey": "k", "model": model, "baseUrl": f"{base}/v1"}
        entry = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
        written = {"version": 1, "lastUsedProvider": provider, "modes": {}, "providers": {provider: entry}}
        (folder / "providers.json").write_text(json.dumps(written))

    return Agent(
        f"cline-{kind}",
        kind,
        ("{ROOT}/cline/node_modules/.bin/cline", "--json", "--auto-approve", "true", "-t", "60", PROMPT),
        setup,
        ("read_files", {"files": [{"path": "{REPO}/calc.py"}]}),
        ("editor", {"path": "{REPO}/calc.py", "old_text": OLD, "new_text": NEW}),
        aliases={"path": "file_path", "old_text": "old_string", "new_text": "new_string"},
        # Without a hub of its own it leaves no process behind.
        env={"CLINE_TELEMETRY_DISABLED": "1", "CLINE_SESSION_BACKEND_MODE": "local"},
        model=model,
        plays=("b", "d", "e", "wrapped e"),
    )


FLEET = (
    _pi("anthropic-messages", "pi0803"),
    *(_pi(api, "pi") for api in ("anthropic-messages", "openai-completions", "openai-responses")),
    CODEX,
    _continue("anthropic"),
    _continue("openai"),
    *(_ai_sdk(kind) for kind in ("anthropic", "chat", "responses")),
    _claude_code(),
    *(_qwen(kind) for kind in ("openai", "anthropic", "openai-responses")),
    *(_opencode(kind) for kind in ("anthropic", "chat", "responses")),
    *(_cline(kind) for kind in ("anthropic", "chat")),
)


def playing(*cases: str) -> list[Any]:
    """Each agent with each of these cases that it plays, for pytest."""
    return [
        pytest.param(agent, case, id=f"{agent.name}-{case}")
        for agent in FLEET
        for case in cases
        if not agent.plays or case in agent.plays
    ]


@dataclass(frozen=True)
class Run:
    """What came of one run."""

    status: int | str
    text: str
    output: str


def filled(value: Any, repo: Path) -> Any:
    """A value with the repository's path in place of `{REPO}`."""
    return json.loads(json.dumps(value).replace("{REPO}", str(repo)))


def make_repo(path: Path) -> Path:
    """A repository with the file to be mended."""
    path.mkdir(parents=True)
    (path / "calc.py").write_text(BEFORE)
    who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-qm", "begin"]):
        subprocess.run(["git", *arguments], cwd=path, check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"})
    return path


def run(agent: Agent, root: Path, base: str, repo: Path, home: Path, wrap: tuple[str, ...] = ()) -> Run:
    """Run an agent on a repository against an address, and read the file afterwards."""
    home.mkdir(parents=True, exist_ok=True)
    agent.setup(home, repo, base)
    places = {"{ROOT}": str(root), "{HOME}": str(home), "{BASE}": base, "{REPO}": str(repo)}

    def fill(text: str) -> str:
        for name, value in places.items():
            text = text.replace(name, value)
        return text

    env = {
        "PATH": f"{root}/node24/node_modules/.bin:{os.environ['PATH']}",
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "XDG_STATE_HOME": f"{home}/.local/state",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "CI": "1",
        "NO_COLOR": "1",
        "NO_PROXY": "127.0.0.1,localhost",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        **{name: fill(value) for name, value in agent.env.items()},
    }
    process = subprocess.Popen(
        [*wrap, *map(fill, agent.command)],
        cwd=repo,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=SECONDS)
        status: int | str = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        output, _ = process.communicate()
        status = "timeout"
    return Run(status, (repo / "calc.py").read_text("utf-8", "replace"), output.decode("utf-8", "replace")[-3000:])
