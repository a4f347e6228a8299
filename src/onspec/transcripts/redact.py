"""Takes out of texts what must not be shared, consistently: secrets, addresses, paths, names, and words at all."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

SECRETS = re.compile(
    r"""
    -----BEGIN[ A-Z]*PRIVATE[ ]KEY-----.*?(?:-----END[ A-Z]*PRIVATE[ ]KEY-----|\Z)
    | \b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{12,}
    | \bgh[opsur]_[A-Za-z0-9]{16,} | \bgithub_pat_\w{20,}
    | \bglpat-[\w-]{16,} | \bnpm_[A-Za-z0-9]{20,} | \bhf_[A-Za-z0-9]{16,}
    | \bxox[abeoprs]-[\w-]{10,} | \b(?:AKIA|ASIA)[0-9A-Z]{12,} | \bAIza[\w-]{20,}
    | \beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?
    | (?<=[Bb]earer\ )[\w.~+/=-]{8,}
    | (?<=://)[^\s/:@"']+:[^\s/@"']+(?=@)
    | (?i:(?<=password)|(?<=passwd)|(?<=secret)|(?<=token)|(?<=api_key)|(?<=apikey)|(?<=api-key))
      ["']?\s*[=:]\s*["']?[^\s"',;]{6,}
    """,
    re.VERBOSE | re.DOTALL,
)
_LONG = re.compile(r"(?<![A-Za-z0-9+/=_-])(?=[A-Za-z0-9+/=_-]*\d)(?=[A-Za-z0-9+/=_-]*[A-Za-z])[A-Za-z0-9+/=_-]{24,}")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}\b")
_HOST = re.compile(
    r"(?<=://)[\w.-]+|(?<![A-Za-z0-9.-])(?:[A-Za-z0-9-]+\.)+"
    r"(?:com|net|org|io|dev|ai|app|cloud|internal|local|lan|corp|edu|gov|de|uk|fr)\b"
)
_HOME = re.compile(r"(?P<root>/home/|/Users/|\\Users\\|\\\\Users\\\\|/root(?=/))(?P<user>[^/\\\s\"':]*)")
_WORD = re.compile(r"[^\W\d_]{3,}", re.UNICODE)
_NUMBER = re.compile(r"\d{5,}")

KEPT_WORDS = frozenset(
    [
        "true", "false", "null", "none", "yes", "off", "nan", "infinity", "undefined", "parameter", "parameters",
        "invoke", "function", "functions", "calls", "call", "tool", "tools", "use", "args", "arg", "key", "value",
        "name", "input", "output", "arguments", "json",
    ]
)  # fmt: skip
"""Words that stay, because faults hang on them and they tell nothing: literals, and markup of calls."""


class Redactor:
    """Replaces the same thing by the same stand-in, everywhere.

    Args:
        keep: Words that stay, such as those of the schema.
        words: Whether every other word of three letters or more is replaced as well; else only what is recognised as a
            secret, an address, a host, a path below a home, or a name met in one.
    """

    def __init__(self, keep: Iterable[str] = (), words: bool = True) -> None:
        self._keep = KEPT_WORDS | {word.lower() for text in keep for word in _WORD.findall(text)}
        self._words = words
        self._made: dict[tuple[str, str], str] = {}
        self._names: set[str] = set()

    def learn(self, texts: Iterable[str]) -> None:
        """Takes note of the user names in home paths, so that they are found elsewhere too."""
        for text in texts:
            for match in _HOME.finditer(text):
                if len(match["user"]) >= 3:
                    self._names.add(match["user"])

    def text(self, text: str) -> str:
        """The text with everything replaced; escapes, quotes, punctuation, spaces and short numbers stay."""
        self.learn((text,))
        text = SECRETS.sub(lambda match: self._stand_in("secret", match[0]), text)
        text = _EMAIL.sub(lambda match: self._stand_in("mail", match[0]), text)
        text = _LONG.sub(lambda match: self._long(match[0]), text)
        text = _ADDRESS.sub(lambda match: self._stand_in("address", match[0]), text)
        text = _HOME.sub(lambda match: f"{match['root']}user" if match["user"] else match[0], text)
        text = _HOST.sub(lambda match: self._stand_in("host", match[0]), text)
        for name in sorted(self._names, key=len, reverse=True):
            text = re.sub(re.escape(name), "user", text, flags=re.IGNORECASE)
        text = _NUMBER.sub(lambda match: self._number(match[0]), text)
        return self._replace_words(text) if self._words else text

    def _long(self, text: str) -> str:
        """A long run of letters and digits may be a key; a path or an identifier in words is not."""
        parts = re.split(r"[/_-]", text)
        wordy = all(len(part) < 20 and not re.search(r"\d{3}|[a-z][A-Z][a-z]?\d|\d[a-z]", part) for part in parts)
        return text if wordy else self._stand_in("secret", text)

    def _stand_in(self, kind: str, text: str) -> str:
        made = self._made.get((kind, text))
        if made is None:
            number = sum(1 for other, _ in self._made if other == kind) + 1
            made = _FORMS[kind].format(number)
            self._made[kind, text] = made
        return made

    def _number(self, text: str) -> str:
        made = self._made.get(("number", text))
        if made is None:
            number = sum(1 for other, _ in self._made if other == "number") + 1
            made = self._made["number", text] = str(number).rjust(len(text), "1")
        return made

    def _replace_words(self, text: str) -> str:
        def word(match: re.Match[str]) -> str:
            found = match[0]
            lower = found.lower()
            before = text[match.start() - 1] if match.start() else ""
            if lower in self._keep or (before == "\\" and found[0] in "bfnrtu") or _is_stand_in(lower):
                return found
            made = self._stand_in("word", lower)
            return made.capitalize() if found[0].isupper() and not found.isupper() else made

        return _WORD.sub(word, text)


_FORMS = {
    "secret": "SECRET{}",
    "mail": "user{}@example.com",
    "address": "192.0.2.{}",
    "host": "host{}.example.com",
    "word": "w{}",
}

_STAND_INS = frozenset(("secret", "user", "example", "host", "com", "home", "users"))


def _is_stand_in(word: str) -> bool:
    return word in _STAND_INS


def vocabulary(schema: object) -> Collection[str]:
    """The words of a schema that a fault may hang on: its keys, the declared names and enum values."""
    words: set[str] = set()
    stack: list[object] = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            words.update(str(key) for key in node)
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, str) and len(node) <= 80:
            words.add(node)
    return words


def bare_schema(schema: object) -> object:
    """A schema without its prose: descriptions, titles, comments and examples."""
    return _bare(schema, False)


def _bare(node: object, names: bool) -> object:
    if isinstance(node, dict):
        return {
            key: _bare(value, key in ("properties", "$defs", "definitions", "patternProperties") and not names)
            for key, value in node.items()
            if names or key not in ("description", "title", "$comment", "examples", "markdownDescription")
        }
    if isinstance(node, list):
        return [_bare(item, False) for item in node]
    return node
