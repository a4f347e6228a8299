"""The shortest way out of a half-written value: what to append so that a grammar is satisfied."""

from __future__ import annotations

from dataclasses import dataclass, field

from onspec.grammar.llguidance import Matcher
from onspec.grammar.rules import Pieces

MOST_STEPS = 20_000
"""Texts that are tried before the search gives up."""

MOST_LENGTH = 60_000
"""Bytes of the longest ending that is considered."""

_LOOSE = (6, 400, 10_000)
"""Single bytes that one ending may hold, round by round: most endings need none, and a search without a bound would
follow the first path that never ends."""

_FIRST = b'"0}]\\u:,x'
_BYTES = tuple(bytes([code]) for code in dict.fromkeys(_FIRST + bytes(range(0x21, 0x7F)) + bytes(range(0x80, 0xC0))))


@dataclass(frozen=True, slots=True)
class Ending:
    """What was appended.

    Attributes:
        text: The bytes, a whole ending.
        tokens: The same as tokens.
        invented: Whether more than brackets and forced text was needed: a string was ended early, or a missing
            value was made up. The call is then valid in form and cut in meaning.
    """

    text: bytes
    tokens: tuple[int, ...]
    invented: bool


def close(matcher: Matcher, written: bytes, pieces: Pieces) -> Ending | None:
    """Find a short text after which `matcher` accepts, without changing `matcher`.

    A search in depth that tries brackets first, then missing members and values made of `pieces`, then single bytes.
    None where nothing was found in `MOST_STEPS` tries: the value needs what no list of words has, such as a long
    text that fits two patterns at once.

    Args:
        matcher: Where the text stands.
        written: What was written so far inside the grammar; it tells half-written words and keys already there.
        pieces: Words from which an ending can be made (`onspec.grammar.exact.Exact.pieces`).
    """
    for loose in _LOOSE:
        found = _Search(matcher.copy(), pieces, loose).run(written)
        if found is not None:
            return found
    return None


class _Search:
    def __init__(self, matcher: Matcher, pieces: Pieces, loose: int) -> None:
        self._loose = loose
        self._matcher = matcher
        self._pieces = pieces
        self._steps = 0

    def run(self, written: bytes) -> Ending | None:
        path: list[tuple[bytes, list[int], bool]] = []
        stack: list[tuple[int, bytes, bool]] = []
        while True:
            if self._matcher.accepting():
                text = b"".join(part for part, _, _ in path)
                tokens = tuple(token for _, found, _ in path for token in found)
                return Ending(text, tokens, any(made for _, _, made in path))
            text = written + b"".join(part for part, _, _ in path)
            if len(text) - len(written) < MOST_LENGTH:
                ways = self._ways(text)
                if sum(len(part) == 1 for part, _, made in path if made) >= self._loose:
                    ways = [way for way in ways if len(way[0]) > 1 or not way[1] or way[0] == b'"']
                stack += [(len(path), part, made) for part, made in reversed(ways)]
            if not self._step(path, stack):
                return None

    def _step(self, path: list[tuple[bytes, list[int], bool]], stack: list[tuple[int, bytes, bool]]) -> bool:
        while stack and self._steps < MOST_STEPS:
            level, part, made = stack.pop()
            while len(path) > level:
                self._matcher.rewind(len(path.pop()[1]))
            self._steps += 1
            tokens = self._matcher.vocabulary.tokens_of(part)
            if tokens and self._matcher.consume_all(tokens):
                path.append((part, tokens, made))
                return True
        return False

    def _ways(self, text: bytes) -> list[tuple[bytes, bool]]:
        """What may be appended next, the most wanted first, each with whether it invents content."""
        forced = self._matcher.forced()
        if forced:
            return [(forced, False)]
        here = _scan(text)
        if here.word is not None:
            return self._inside_string(here)
        ways: list[tuple[bytes, bool]] = [(b"}", False), (b"]", False)]
        tail = text.rstrip()[-1:]
        leads = (b"",) if tail in (b"{", b"[", b",", b":", b"") else (b",", b", ", b"")
        texts = [value for _, value in self._members(here, here.via)] if tail == b":" else []
        if here.depth and here.keys is not None and tail != b":":
            texts += [f"{key}:{value}" for key, value in self._members(here, None)]
            texts += [f"{key}: {value}" for key, value in self._members(here, None)]
        texts += [value for value in self._pieces.values if here.keys is None or tail == b":"]
        ways += [(lead + word.encode(), True) for word in texts for lead in leads]
        return ways + [(byte, True) for byte in _BYTES]

    def _inside_string(self, here: _Place) -> list[tuple[bytes, bool]]:
        word = here.word
        assert word is not None
        ways = [(b'"', True)]
        texts = [f"{key}:{value}" for key, value in self._members(here, None)] if here.in_key else []
        texts += [f"{key}: {value}" for key, value in self._members(here, None)] if here.in_key else []
        strings = [value.encode() for value in self._pieces.values if value.startswith('"')]
        rest = [text.encode()[len(word) :] for text in texts if text.encode().startswith(word)]
        rest += [text[len(word) :] for text in strings if text.startswith(word)]
        if not here.in_key:  # A pattern may be met by its example put here, or by the rest of it.
            rest += [text[start:] for text in strings for start in (len(word), 1) if len(text) > start + 1]
        # A half-written key is best ended as the declared key it begins.
        found = [(part, True) for part in dict.fromkeys(rest) if part][:1000]
        ways = found + ways if here.in_key else ways + found
        return ways + [(byte, True) for byte in _BYTES]

    def _members(self, here: _Place, key: str | None) -> list[tuple[str, str]]:
        """Members that the object at hand may miss, those of the likeliest kind of object first."""
        ranked = sorted(
            self._pieces.objects,
            key=lambda kind: (
                here.outer not in kind.under,
                -sum(word in kind.words for word in here.keys or ()),
            ),
        )
        out: dict[tuple[str, str], None] = {}
        for kind in ranked:
            for word, value in kind.members:
                if (word == key) if key is not None else (word not in (here.keys or ())):
                    out[word, value] = None
        return list(out)


@dataclass(slots=True)
class _Place:
    """Where a text stands: inside which string, object and key."""

    depth: int = 0
    keys: set[str] | None = None
    outer: str = ""
    via: str = ""
    word: bytes | None = None
    in_key: bool = False


@dataclass(slots=True)
class _Open:
    keys: set[str] | None
    outer: str
    key: str = ""
    wants_key: bool = field(default=False)


def _scan(text: bytes) -> _Place:
    """Follow the JSON of `text`, which is known to be well formed as far as it goes."""
    stack: list[_Open] = []
    index, size = 0, len(text)
    while index < size:
        code = text[index]
        if code == 0x22:
            end = _string_end(text, index)
            top = stack[-1] if stack else None
            in_key = top is not None and top.keys is not None and top.wants_key
            if end is None:
                return _place(stack, text[index:], in_key)
            if in_key and top is not None and top.keys is not None:
                top.key = text[index:end].decode("utf-8", "replace")
                top.keys.add(top.key)
                top.wants_key = False
            index = end
            continue
        if code in b"{[":
            outer = (stack[-1].key if stack[-1].keys is not None else stack[-1].outer) if stack else ""
            stack.append(_Open(set() if code == 0x7B else None, outer, wants_key=code == 0x7B))
        elif code in b"}]" and stack:
            stack.pop()
        elif code == 0x2C and stack:
            stack[-1].wants_key = True
        index += 1
    return _place(stack, None, False)


def _place(stack: list[_Open], word: bytes | None, in_key: bool) -> _Place:
    if not stack:
        return _Place(word=word)
    top = stack[-1]
    return _Place(len(stack), top.keys, top.outer, top.key, word, in_key)


def _string_end(text: bytes, start: int) -> int | None:
    index = start + 1
    while index < len(text):
        code = text[index]
        if code == 0x5C:
            index += 2
            continue
        if code == 0x22:
            return index + 1
        index += 1
    return None
