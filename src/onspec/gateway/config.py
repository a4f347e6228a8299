"""What an operator may set: the gateway's own settings, upstreams by route, rules by tool and by model."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args

from onspec.contract.tool import Tool
from onspec.errors import InputError
from onspec.gateway.rewrite import Hold
from onspec.providers import spoken_at
from onspec.repair.policy import Policy

StrictMode = Literal["off", "pass"]
PolicyName = Literal["strict", "safe", "lenient"]
LOOPBACK = ("127.0.0.1", "::1", "localhost")

POLICIES = {"strict": Policy.strict, "safe": Policy.safe, "lenient": Policy.lenient}


@dataclass(frozen=True, slots=True)
class Upstream:
    """A provider: requests whose path begins with `route` go to `url` plus their path, less the route where `strip`.

    A `/v1` that stands at the end of `url` and at the beginning of the path is meant once.
    """

    url: str
    route: str = "/"
    name: str = "upstream"
    strip: bool = False

    def address(self, target: str) -> str:
        """Where a request for a target (path and query) goes."""
        rest = target[len(self.route.rstrip("/")) :] if self.strip else target
        url = self.url.rstrip("/")
        if url.endswith("/v1") and rest.startswith("/v1/"):
            rest = rest[len("/v1") :]
        return url + ("/" + rest if rest and not rest.startswith("/") else rest)

    def takes(self, path: str) -> bool:
        """Whether the route is the path, or a whole beginning of it."""
        route = self.route.rstrip("/")
        return path == route or path.startswith(route + "/")


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for the calls of one request.

    Attributes:
        policy: Which repairs are allowed.
        hold: `value` holds a doubtful value only, `call` each call to its end.
        retry: How often, at most, the provider is asked again for a refused call. Above 0 calls are held to their end.
        retry_tokens: Output tokens that all tries of one reply may cost together.
        shadow: Forward everything untouched and only record what would have been done.
        promote: Call markup that leaked into visible text becomes a call where it is complete and valid.
        strict: `pass` leaves the tools' strict flags as the client set them, `off` removes them.
        retry_strict: Ask for the provider's strict mode in a retry.
    """

    policy: PolicyName = "safe"
    hold: Hold = "value"
    retry: int = 0
    retry_tokens: int = 16_000
    shadow: bool = False
    promote: bool = False
    strict: StrictMode = "pass"
    retry_strict: bool = True


@dataclass(frozen=True, slots=True)
class ToolRules:
    """What holds for one tool's calls, wherever it is declared."""

    policy: PolicyName | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """Everything an operator may set.

    Attributes:
        host: Address to listen on. Anything but loopback needs `tokens` or `open_to_all`.
        tokens: Client tokens; where there are any, a client must send one as `x-onspec-token`.
        max_body: Largest request in bytes.
        max_header: Largest request head in bytes.
        request_seconds: Longest silence of a client inside a request, and longest time for its head.
        connect_seconds: Until the upstream must have taken the connection.
        read_seconds: Longest silence of the upstream; models think long.
        drain_seconds: After a SIGTERM, how long running replies may go on.
        database: File for the counts; None keeps them in memory only.
        keep_payloads: Store what stood before and after each repair.
        otel: Write OpenTelemetry spans.
    """

    upstreams: tuple[Upstream, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8484
    tokens: tuple[str, ...] = ()
    open_to_all: bool = False
    max_body: int = 64 * 1024 * 1024
    max_header: int = 64 * 1024
    request_seconds: float = 60.0
    connect_seconds: float = 15.0
    read_seconds: float = 900.0
    drain_seconds: float = 30.0
    database: Path | None = None
    keep_payloads: bool = False
    otel: bool = False
    rules: Rules = Rules()
    tools: Mapping[str, ToolRules] = field(default_factory=dict)
    models: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    def for_model(self, model: str) -> Rules:
        """The rules for a model: those of every pattern that fits it, later ones over earlier ones."""
        rules = self.rules
        for pattern, changes in self.models:
            if fnmatchcase(model, pattern):
                rules = replace(rules, **changes)
        return replace(rules, hold="call") if rules.retry else rules

    @property
    def promotes(self) -> bool:
        """Whether any rule makes calls of leaked markup."""
        return self.rules.promote or any(changes.get("promote") for _, changes in self.models)

    def policy(self, rules: Rules, tool: Tool) -> Policy:
        """The policy for one tool under these rules."""
        own = self.tools.get(tool.name)
        return POLICIES[own.policy if own is not None and own.policy is not None else rules.policy]()

    def aliases(self) -> dict[str, dict[str, str]]:
        """Aliases by tool."""
        return {name: dict(own.aliases) for name, own in self.tools.items() if own.aliases}

    def route(self, path: str) -> Upstream | None:
        """The upstream with the longest route that begins the path."""
        fitting = [upstream for upstream in self.upstreams if upstream.takes(path)]
        return max(fitting, key=lambda upstream: len(upstream.route)) if fitting else None

    def checked(self) -> Config:
        """The same, once it is safe to run.

        Raises:
            InputError: It listens beyond loopback without saying who may use it, or has no upstream.
        """
        if not self.upstreams:
            raise InputError("no upstream: give --upstream URL or an [[upstream]] in onspec.toml")
        for upstream in self.upstreams:
            if not upstream.url.startswith(("http://", "https://")):
                raise InputError(f"upstream {upstream.url!r} is not an http or https address")
            if spoken_at("POST", upstream.url) is not None:
                raise InputError(f"upstream {upstream.url!r} ends in the path of an API; clients add that")
        if self.host not in LOOPBACK and not self.tokens and not self.open_to_all:
            raise InputError(
                f"{self.host} is not loopback: list client tokens in onspec.toml ([gateway] tokens), "
                "or set open_to_all = true to let anyone in"
            )
        return self


KINDS: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
RULE_FIELDS = {item.name: item.type for item in fields(Rules)}
CHOICES: dict[str, tuple[str, ...]] = {
    "policy": get_args(PolicyName),
    "hold": get_args(Hold),
    "strict": get_args(StrictMode),
}


def load(path: Path) -> Config:
    """The configuration of a TOML file.

    `[gateway]` holds the fields of `Config` and `Rules`, each `[[upstream]]` one of `Upstream`, `[tool.NAME]` a
    `ToolRules` and `[model."PATTERN"]` fields of `Rules` for the models whose name fits the shell pattern.

    Raises:
        InputError: The file cannot be read, or a key or value is not one of these.
    """
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    try:
        return _config(found)
    except (InputError, TypeError) as error:
        raise InputError(f"{path}: {error}") from None


def _config(found: dict[str, Any]) -> Config:
    _known(found, {"gateway", "upstream", "tool", "model"}, "the file")
    own = dict(found.get("gateway", {}))
    names = {item.name for item in fields(Config)} - {"rules", "tools", "models", "upstreams"}
    _known(own, names | RULE_FIELDS.keys(), "[gateway]")
    _own(own)
    rules = _rules({name: own.pop(name) for name in tuple(own) if name in RULE_FIELDS}, "[gateway]")
    if "database" in own:
        own["database"] = Path(own["database"]).expanduser()
    if "tokens" in own:
        own["tokens"] = tuple(map(str, own["tokens"]))
    tools = {}
    for name, given in found.get("tool", {}).items():
        _known(given, {"policy", "aliases"}, f"[tool.{name}]")
        _rules({key: value for key, value in given.items() if key == "policy"}, f"[tool.{name}]")
        tools[name] = ToolRules(**given)
    models = []
    for pattern, given in found.get("model", {}).items():
        _known(given, RULE_FIELDS.keys(), f'[model."{pattern}"]')
        models.append((pattern, _rules(given, f'[model."{pattern}"]')))
    upstreams = []
    listed = found.get("upstream", [])
    if not isinstance(listed, list):
        raise InputError("an upstream is written [[upstream]], in two pairs of brackets")
    for given in listed:
        _known(given, {"url", "route", "name", "strip"}, "[[upstream]]")
        if "url" not in given:
            raise InputError("[[upstream]] has no url")
        upstreams.append(Upstream(**given))
    return Config(upstreams=tuple(upstreams), rules=Rules(**rules), tools=tools, models=tuple(models), **own)


def _own(given: dict[str, Any]) -> None:
    for item in fields(Config):
        kind = type(item.default)
        if item.name in given and kind in KINDS:
            _of_kind(given[item.name], kind, item.name)
    tokens = given.get("tokens", [])
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise InputError("[gateway] tokens is a list of texts")
    if not isinstance(given.get("database", ""), str):
        raise InputError(f"[gateway] database is the path of a file, not {given['database']!r}")


def _of_kind(value: Any, kind: type, name: str) -> None:
    takes, size = (int, float) if kind is float else kind, value
    if not isinstance(value, takes) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"[gateway] {name} is {KINDS[kind]}, not {value!r}")
    if kind in (int, float) and (size < 0 or (name == "port" and size > 65535)):
        raise InputError(f"[gateway] {name} cannot be {value}")


def _rules(given: dict[str, Any], place: str) -> dict[str, Any]:
    for name, value in given.items():
        if name in CHOICES and value not in CHOICES[name]:
            raise InputError(f"{place} {name} is one of {', '.join(CHOICES[name])}, not {value!r}")
        if name in ("retry", "retry_tokens") and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            raise InputError(f"{place} {name} is a number from 0 up, not {value!r}")
        if name in ("shadow", "promote", "retry_strict") and not isinstance(value, bool):
            raise InputError(f"{place} {name} is true or false, not {value!r}")
    return given


def _known(given: Any, names: Any, place: str) -> None:
    if not isinstance(given, dict):
        raise InputError(f"{place} is not a table")
    unknown = sorted(given.keys() - set(names))
    if unknown:
        raise InputError(f"{place} has no {', '.join(unknown)}; it may have {', '.join(sorted(names))}")
