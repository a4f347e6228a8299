"""How each agent we know is pointed at a gateway: the variables it reads, or a copy of its settings."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onspec.gateway.config import Upstream

ANTHROPIC = "https://api.anthropic.com"
OPENAI = "https://api.openai.com/v1"
LOOPBACK = "127.0.0.1,localhost,::1"


@dataclass(frozen=True, slots=True)
class Setting:
    """What an agent finds before it starts.

    Attributes:
        env: The environment it would have had.
        home: Its user's home folder.
        folder: An empty folder of its own, removed when it ends; settings are copied here, never changed in place.
        gateway: The gateway's address; "" while the upstreams are still being listed.
        command: Program and arguments.
    """

    env: Mapping[str, str]
    home: Path
    folder: Path
    command: tuple[str, ...]
    gateway: str = ""


@dataclass(slots=True)
class Pointed:
    """How to start an agent through the gateway: variables to set, the command, and the providers behind it."""

    env: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    upstreams: list[Upstream] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def point(setting: Setting) -> Pointed:
    """How to start a command through the gateway. An agent we do not know gets the variables that the SDKs read."""
    pointed = Pointed(command=list(setting.command))
    anthropic = _behind(setting, pointed, "anthropic", setting.env.get("ANTHROPIC_BASE_URL") or ANTHROPIC)
    openai = _behind(setting, pointed, "openai", setting.env.get("OPENAI_BASE_URL") or OPENAI)
    pointed.env = {
        "ANTHROPIC_BASE_URL": anthropic,
        "ANTHROPIC_API_BASE": anthropic,
        "OPENAI_BASE_URL": openai,
        "OPENAI_API_BASE": openai,
        "NO_PROXY": ",".join(filter(None, (setting.env.get("NO_PROXY") or setting.env.get("no_proxy"), LOOPBACK))),
    }
    pointed.env["no_proxy"] = pointed.env["NO_PROXY"]
    known = AGENTS.get(Path(setting.command[0]).name)
    if known is not None:
        known(setting, pointed)
    return pointed


def _behind(setting: Setting, pointed: Pointed, name: str, url: str) -> str:
    """Put a provider behind the gateway under a name; returns the base URL for the agent."""
    route = f"/to/{name}"
    if all(upstream.route != route for upstream in pointed.upstreams):
        pointed.upstreams.append(Upstream(url.rstrip("/"), route, name, strip=True))
    return setting.gateway + route


def _codex(setting: Setting, pointed: Pointed) -> None:
    text = json.dumps(pointed.env["OPENAI_BASE_URL"])
    pointed.command[1:1] = ["-c", f"openai_base_url={text}"]
    home = Path(setting.env.get("CODEX_HOME") or setting.home / ".codex")
    file = home / "config.toml"
    if not file.is_file():
        return
    written = file.read_text("utf-8")
    for match in re.finditer(r"^\[model_providers\.([\w-]+)\]([^\[]*)", written, re.MULTILINE):
        base = re.search(r"^\s*base_url\s*=\s*[\"']([^\"']+)[\"']", match[2], re.MULTILINE)
        if base is not None:
            text = json.dumps(_behind(setting, pointed, match[1], base[1]))
            pointed.command[1:1] = ["-c", f"model_providers.{match[1]}.base_url={text}"]


def _pi(setting: Setting, pointed: Pointed) -> None:
    own = Path(setting.env.get("PI_CODING_AGENT_DIR") or setting.home / ".pi" / "agent")
    models = _json(own / "models.json")
    providers = models.setdefault("providers", {})
    for name, given in providers.items():
        if isinstance(given, dict) and isinstance(given.get("baseUrl"), str):
            given["baseUrl"] = _behind(setting, pointed, name, given["baseUrl"])
    for name in ("anthropic", "openai"):
        if "baseUrl" not in providers.setdefault(name, {}):
            providers[name]["baseUrl"] = pointed.env[f"{name.upper()}_BASE_URL"]
    copy = setting.folder / "pi"
    _linked(own, copy, "models.json").write_text(json.dumps(models), "utf-8")
    pointed.env["PI_CODING_AGENT_DIR"] = str(copy)


def _opencode(setting: Setting, pointed: Pointed) -> None:
    settings = _json_text(setting.env.get("OPENCODE_CONFIG_CONTENT", ""))
    providers = settings.setdefault("provider", {})
    written = _json(setting.home / ".config" / "opencode" / "opencode.json").get("provider", {})
    for name, given in {"anthropic": {}, "openai": {}, **written}.items():
        base = given.get("options", {}).get("baseURL") if isinstance(given, dict) else None
        default = f"{ANTHROPIC}/v1" if name == "anthropic" else OPENAI
        if base or name in ("anthropic", "openai"):
            options = providers.setdefault(name, {}).setdefault("options", {})
            options["baseURL"] = _behind(setting, pointed, f"{name}-v1", base or default)
    pointed.env["OPENCODE_CONFIG_CONTENT"] = json.dumps(settings)


def _continue(setting: Setting, pointed: Pointed) -> None:
    own = Path(setting.env.get("CONTINUE_GLOBAL_DIR") or setting.home / ".continue")
    given = next((index + 1 for index, word in enumerate(pointed.command) if word == "--config"), None)
    file = Path(pointed.command[given]) if given is not None and given < len(pointed.command) else own / "config.yaml"
    if not file.is_file():
        pointed.notes.append(
            f"Continue has no {file}; give its models an apiBase to have them pass through the gateway"
        )
        return
    count = 0

    def replaced(match: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return f"{match[1]}{_behind(setting, pointed, f'continue-{count}', match[2])}/"

    text = re.sub(r"(?m)^(\s*(?:- )?apiBase:\s*)[\"']?([^\s\"'#]+)[\"']?", replaced, file.read_text("utf-8"))
    if not count:
        pointed.notes.append(f"no model in {file} has an apiBase; such models do not pass through the gateway")
    copy = setting.folder / "continue.yaml"
    copy.write_text(text, "utf-8")
    if given is not None:
        pointed.command[given] = str(copy)
    else:
        pointed.command[1:1] = ["--config", str(copy)]


def _cline(setting: Setting, pointed: Pointed) -> None:
    pointed.notes.append("Cline reads its base URL from its own settings only; set it there to the address above")


AGENTS: dict[str, Callable[[Setting, Pointed], None]] = {
    "codex": _codex,
    "pi": _pi,
    "opencode": _opencode,
    "cn": _continue,
    "cline": _cline,
}
"""What an agent needs beyond the variables; Claude Code, Qwen Code and the SDKs need nothing."""


def _linked(own: Path, copy: Path, without: str) -> Path:
    """A folder that shows another one's files by links, but for one, whose path is returned."""
    copy.mkdir(parents=True, exist_ok=True)
    for item in own.iterdir() if own.is_dir() else ():
        if item.name != without:
            try:
                (copy / item.name).symlink_to(item, target_is_directory=item.is_dir())
            except FileExistsError:
                continue
            except OSError:
                (shutil.copytree if item.is_dir() else shutil.copy2)(item, copy / item.name)
    return copy / without


def _json(path: Path) -> dict[str, Any]:
    try:
        return _json_text(path.read_text("utf-8"))
    except OSError:
        return {}


def _json_text(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
