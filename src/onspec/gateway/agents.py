"""How each agent we know is pointed at a gateway: the variables it reads, or a copy of its settings."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onspec.errors import InputError
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
        command: Program and arguments.
        gateway: The gateway's address; "" while the upstreams are still being listed.
        cwd: Where it starts.
    """

    env: Mapping[str, str]
    home: Path
    folder: Path
    command: tuple[str, ...]
    gateway: str = ""
    cwd: Path = field(default_factory=Path.cwd)


@dataclass(slots=True)
class Pointed:
    """How to start an agent through the gateway: variables to set, the command, and the providers behind it."""

    env: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    upstreams: list[Upstream] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def point(setting: Setting) -> Pointed:
    """How to start a command through the gateway. An agent we do not know gets the variables that the SDKs read.

    Raises:
        InputError: A variable that says where a provider is holds no address.
    """
    pointed = Pointed(command=list(setting.command))
    pointed.env = {
        **_variables(setting, pointed, "anthropic", ANTHROPIC),
        **_variables(setting, pointed, "openai", OPENAI),
        "NO_PROXY": ",".join(filter(None, (setting.env.get("NO_PROXY") or setting.env.get("no_proxy"), LOOPBACK))),
    }
    pointed.env["no_proxy"] = pointed.env["NO_PROXY"]
    known = AGENTS.get(Path(setting.command[0]).name)
    if known is not None:
        known(setting, pointed)
    return pointed


def _variables(setting: Setting, pointed: Pointed, name: str, usual: str) -> dict[str, str]:
    """The variables that say where a provider is, its older one too, each with what was in it behind the gateway."""
    newer, older = f"{name.upper()}_BASE_URL", f"{name.upper()}_API_BASE"
    for variable in (newer, older):
        value = setting.env.get(variable)
        if value and not value.startswith(("http://", "https://")):
            raise InputError(f"{variable} is not an http or https address: {value!r}")
    first = setting.env.get(newer) or setting.env.get(older) or usual
    return {
        newer: _behind(setting, pointed, name, first),
        older: _behind(setting, pointed, name, setting.env.get(older) or first),
    }


def _behind(setting: Setting, pointed: Pointed, name: str, url: str) -> str:
    """Put a provider behind the gateway under a name, or a like one where that is taken; returns its base URL."""
    url = url.rstrip("/")
    known = {upstream.route: upstream.url for upstream in pointed.upstreams}
    routes = (f"/to/{name}" + (f"-{number}" if number else "") for number in range(len(known) + 1))
    route = next(route for route in routes if known.get(route, url) == url)
    if route not in known:
        pointed.upstreams.append(Upstream(url, route, name, strip=True))
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


def _qwen(setting: Setting, pointed: Pointed) -> None:
    for name, variable in (("anthropic", "ANTHROPIC_BASE_URL"), ("openai", "OPENAI_BASE_URL")):
        written = setting.env.get(variable) or _env_file(setting, variable)
        if written:
            _behind_instead(pointed, name, written)
    own = _json(Path(setting.env.get("QWEN_HOME") or setting.home / ".qwen") / "settings.json")
    here = _json(setting.cwd / ".qwen" / "settings.json")
    signed = {**_at(own, "security", "auth"), **_at(here, "security", "auth")}
    if isinstance(signed.get("baseUrl"), str) and not setting.env.get("OPENAI_BASE_URL"):
        _behind_instead(pointed, "openai", signed["baseUrl"])
    if "oauth" in str(signed.get("selectedType")):
        pointed.notes.append(
            "Qwen Code is signed in by OAuth; it takes that address from its login, not through the gateway"
        )
    given = next((place for place, word in enumerate(pointed.command) if word.startswith("--openai-base-url")), None)
    if given is not None:
        word, equals, url = pointed.command[given].partition("=")
        if not equals and given + 1 < len(pointed.command):
            url = pointed.command.pop(given + 1)
        pointed.command[given] = f"{word}={_behind(setting, pointed, 'openai-given', url)}"
    declared = {**_at(own, "modelProviders"), **_at(here, "modelProviders")}
    count = 0
    for models in declared.values():
        for model in models if isinstance(models, list) else []:
            if isinstance(model, dict) and isinstance(model.get("baseUrl"), str):
                count += 1
                model["baseUrl"] = _behind(setting, pointed, f"qwen-{count}", model["baseUrl"])
    if count:
        # A file of the system stands above the user's and the project's; what it says else is kept.
        system = Path(setting.env.get("QWEN_CODE_SYSTEM_SETTINGS_PATH") or "/etc/qwen-code/settings.json")
        copy = setting.folder / "qwen.json"
        copy.write_text(json.dumps({**_json(system), "modelProviders": declared}), "utf-8")
        pointed.env["QWEN_CODE_SYSTEM_SETTINGS_PATH"] = str(copy)


def _cline(setting: Setting, pointed: Pointed) -> None:
    words = dict(zip(pointed.command, pointed.command[1:], strict=False))
    own = setting.env.get("CLINE_DIR") or words.get("--config") or str(setting.home / ".cline")
    data = words.get("--data-dir") or setting.env.get("CLINE_DATA_DIR") or str(Path(own) / "data")
    file = Path(setting.env.get("CLINE_PROVIDER_SETTINGS_PATH") or Path(data) / "settings" / "providers.json")
    settings = _json(file)
    providers = settings.setdefault("providers", {})
    for name, entry in providers.items():
        given = _at(entry, "settings")
        if isinstance(given.get("baseUrl"), str) and given["baseUrl"]:
            given["baseUrl"] = _behind(setting, pointed, name, given["baseUrl"])
    for name, kind in (("anthropic", "ANTHROPIC"), ("openai-native", "OPENAI")):
        entry = providers.setdefault(
            name, {"settings": {"provider": name}, "updatedAt": NEVER, "tokenSource": "manual"}
        )
        given = _at(entry, "settings")
        if given and not given.get("baseUrl"):
            base = setting.env.get(f"{kind}_BASE_URL", "").rstrip("/")
            url = (f"{base or ANTHROPIC}/v1") if kind == "ANTHROPIC" else base or OPENAI
            given["baseUrl"] = _behind(setting, pointed, name, url)
    used = words.get("-P") or words.get("--provider") or settings.get("lastUsedProvider") or "cline"
    if not _at(providers.get(used), "settings").get("baseUrl"):
        pointed.notes.append(f"Cline's provider {used} has no base URL; its calls do not pass through the gateway")
    copy = setting.folder / "cline-providers.json"
    copy.write_text(json.dumps({"version": 1, "modes": {}, **settings}), "utf-8")
    pointed.env["CLINE_PROVIDER_SETTINGS_PATH"] = str(copy)
    # A hub that is already running would use its own settings.
    pointed.env["CLINE_SESSION_BACKEND_MODE"] = "local"


AGENTS: dict[str, Callable[[Setting, Pointed], None]] = {
    "codex": _codex,
    "pi": _pi,
    "opencode": _opencode,
    "qwen": _qwen,
    "cn": _continue,
    "cline": _cline,
}
"""What an agent needs beyond the variables; Claude Code and the SDKs need nothing."""
NEVER = "1970-01-01T00:00:00.000Z"


def _behind_instead(pointed: Pointed, name: str, url: str) -> None:
    """Put another provider behind a route that is already there."""
    route = f"/to/{name}"
    pointed.upstreams = [
        Upstream(url.rstrip("/"), route, name, strip=True) if upstream.route == route else upstream
        for upstream in pointed.upstreams
    ]


def _env_file(setting: Setting, variable: str) -> str:
    """What a `.env` file of Qwen Code sets: the nearest one upwards from here, else those at home."""
    folders = [setting.cwd, *setting.cwd.parents]
    files = [folder / place for folder in folders for place in (".qwen/.env", ".env")]
    home = Path(setting.env.get("QWEN_HOME") or setting.home / ".qwen")
    for file in (*files, home / ".env", setting.home / ".qwen" / ".env", setting.home / ".env"):
        try:
            written = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        found = re.search(rf"(?m)^\s*(?:export\s+)?{variable}\s*=\s*[\"']?([^\s\"'#]+)", written)
        if found is not None:
            return found[1]
    return ""


def _at(value: Any, *names: str) -> dict[str, Any]:
    """The object at a place, itself and no copy; an empty one where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


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
