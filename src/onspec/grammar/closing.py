"""The shortest way out of a half-written value: what to append so that a grammar is satisfied."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from onspec.grammar.llguidance import Matcher
from onspec.grammar.place import Open, Place
from onspec.grammar.rules import Pieces

MOST_STEPS = 4_000
"""Texts that are tried before the search gives up."""

MOST_LENGTH = 60_000
"""Bytes of the longest ending that is considered."""

_OVERLAP = 400
"""Bytes at the end of a text in which the beginning of a piece is looked for."""

_LOOSE = (6, 400, 10_000)
"""Single bytes that one ending may hold, round by round: most endings need none, and a search without a bound would
follow the first path that never ends."""

_REPEATS = (3, 8, 10_000)
"""How often one ending may hold the same piece, round by round, where the body is not JSON."""

_NUMBERED = re.compile(rb"\xff\[(\d+)\]")

_FIRST = b'"0}]\\u:,x'
_BYTES = tuple(
    bytes([code])
    for code in dict.fromkeys(_FIRST + bytes(range(0x21, 0x7F)) + bytes(range(0x80, 0xC0)) + bytes(range(0xC2, 0xF5)))
)


_QUOTES = (b'"', b"'")

_OUTSIDE = 3
"""How many brackets of a kind an ending may hold outside of what it knows to be open."""


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
        # What was appended so far: piece by piece, with all before it as text, and how often each piece stands in it.
        self._path: list[tuple[bytes, list[int], bool]] = []
        self._text = bytearray()
        self._used: Counter[bytes] = Counter()
        self._singles = 0
        self._outside = False
        self._quotes: tuple[bytes, ...] = _QUOTES[:1]
        self._start = Place()
        self._given = 0
        self._ids = {name.encode(): number for name, number in pieces.specials}
        names = sorted(self._ids, key=len, reverse=True)
        self._named = re.compile(b"(" + b"|".join(map(re.escape, names)) + b")") if names else None

    def run(self, written: bytes) -> Ending | None:
        self._given = len(written)
        self._text += written
        if not self._pieces.raw:
            self._start.feed(written)
        stack: list[tuple[int, bytes, bool]] = []
        while True:
            if self._matcher.accepting():
                tokens = tuple(token for _, found, _ in self._path for token in found)
                return Ending(bytes(self._text[self._given :]), tokens, any(made for _, _, made in self._path))
            if len(self._text) - self._given < MOST_LENGTH:
                ways = self._ways()
                if self._singles >= self._loose:
                    ways = [way for way in ways if len(way[0]) > 1 or not way[1] or way[0] in self._quotes]
                if self._pieces.raw or self._outside:
                    ways = self._unrepeated(ways)
                stack += [(len(self._path), part, made) for part, made in reversed(ways)]
            if not self._step(stack):
                return None

    def _unrepeated(self, ways: list[tuple[bytes, bool]]) -> list[tuple[bytes, bool]]:
        """Without white space alone, and without pieces that were used often: some may repeat for ever."""
        most = _REPEATS[_LOOSE.index(self._loose)]
        return [
            way for way in ways if not way[1] or (way[0].strip() and (len(way[0]) == 1 or self._used[way[0]] < most))
        ]

    def _step(self, stack: list[tuple[int, bytes, bool]]) -> bool:
        while stack and self._steps < MOST_STEPS:
            level, part, made = stack.pop()
            while len(self._path) > level:
                self._take_back()
            self._steps += 1
            tokens = self._tokens_of(part)
            if tokens and self._matcher.consume_all(tokens):
                self._path.append((part, tokens, made))
                self._text += part
                self._used[part] += 1
                self._singles += made and len(part) == 1
                return True
        return False

    def _take_back(self) -> None:
        part, tokens, made = self._path.pop()
        self._matcher.rewind(len(tokens))
        del self._text[len(self._text) - len(part) :]
        self._used[part] -= 1
        self._singles -= made and len(part) == 1

    def _tokens_of(self, part: bytes) -> list[int]:
        """The tokens of a text in which names of special tokens stand for them."""
        vocabulary = self._matcher.vocabulary
        if self._named is None:
            return vocabulary.tokens_of(part)
        pieces = self._named.split(part)
        return [
            token
            for piece in pieces
            for token in ([self._ids[piece]] if piece in self._ids else vocabulary.tokens_of(piece) if piece else [])
        ]

    def _ways(self) -> list[tuple[bytes, bool]]:
        """What may be appended next, the most wanted first, each with whether it invents content."""
        forced = self._matcher.forced()
        if forced:  # The engine writes a special token as its number.
            names = {number: name for name, number in self._ids.items()}
            return [(_NUMBERED.sub(lambda found: names.get(int(found[1]), found[0]), forced), False)]
        if not self._text and self._pieces.whole:
            # A grammar of calls alone begins after the trigger, which is part of the whole.
            raw = self._pieces.whole.encode()
            return [(raw[start:], True) for start in range(min(len(raw), _OVERLAP))]
        if self._pieces.raw:
            self._quotes = tuple(quote for quote in _QUOTES if self._ends_text(quote))
            ended = [(quote, True) for quote in self._quotes]
            return ended + self._overlapping() + [(byte, True) for byte in _BYTES]
        here = self._start.copy()
        here.feed(bytes(self._text[self._given :]))
        if here.word is not None:
            self._outside, self._quotes = False, _QUOTES[:1]
            return self._inside_string(here, bytes(here.word))
        ways: list[tuple[bytes, bool]] = [(b"}", False), (b"]", False)]
        self._outside = not here.stack
        self._quotes = () if self._outside else _QUOTES[:1]
        if self._outside:  # Markers may be half written there, and brackets be no end of anything.
            ways = self._overlapping() + [way for way in ways if self._used[way[0]] < _OUTSIDE]
        top = here.stack[-1] if here.stack else None
        leads = (b"",) if here.tail in b"{[,:\0" else (b",", b", ", b"")
        after_colon = here.tail == 0x3A
        texts = [value for _, value in self._members(top, top.key)] if after_colon and top is not None else []
        if top is not None and top.keys is not None and not after_colon:
            members = self._members(top, None)
            texts += [f"{key}:{value}" for key, value in members] + [f"{key}: {value}" for key, value in members]
        if top is None or top.keys is None or after_colon:
            texts += self._pieces.values
        ways += [(lead + word.encode(), True) for word in texts for lead in leads]
        return ways + [(byte, True) for byte in _BYTES]

    def _ends_text(self, quote: bytes) -> bool:
        """Whether a quote is allowed here, and no letter behind it: the one inside which the other kind is text."""
        vocabulary = self._matcher.vocabulary
        tokens = vocabulary.tokens_of(quote)
        if not self._matcher.consume_all(tokens):
            return False
        letter = vocabulary.tokens_of(b"x")
        follows = self._matcher.consume_all(letter)
        self._matcher.rewind(len(tokens) + (len(letter) if follows else 0))
        return not follows

    def _overlapping(self) -> list[tuple[bytes, bool]]:
        """What is left of pieces that the text has begun, the furthest begun first; then whole pieces."""
        tail = bytes(self._text[-_OVERLAP:])
        found: list[tuple[int, bytes]] = []
        for value in self._pieces.values:
            piece = value.encode()
            found += [(-size, piece[size:]) for size in range(len(piece)) if tail.endswith(piece[:size])]
        ranked = sorted(set(found), key=lambda part: (part[0], len(part[1])))
        begun = [part for size, part in ranked if part and size < -1]
        ends = [end.encode() for end in self._pieces.ends] + [b")", b"]", b"}"]
        whole = [lead + part for size, part in ranked if part and size >= -1 for lead in (b"", b",", b"\n")]
        return [(part, True) for part in dict.fromkeys(begun + ends + whole)]

    def _inside_string(self, here: Place, word: bytes) -> list[tuple[bytes, bool]]:
        ways = [(b'"', True)]
        members = self._members(here.stack[-1], None) if here.in_key else []
        texts = [f"{key}:{value}" for key, value in members] + [f"{key}: {value}" for key, value in members]
        strings = [value.encode() for value in self._pieces.values if value.startswith('"')]
        rest = [text.encode()[len(word) :] for text in texts if text.encode().startswith(word)]
        rest += [text[len(word) :] for text in strings if text.startswith(word)]
        if not here.in_key:  # A pattern may be met by its example put here, or by the rest of it.
            rest += [text[start:] for text in strings for start in (len(word), 1) if len(text) > start + 1]
        # A half-written key is best ended as the declared key it begins.
        found = [(part, True) for part in dict.fromkeys(rest) if part][:1000]
        ways = found + ways if here.in_key else ways + found
        if here.in_key:  # A key that must fit a pattern may do so with an example's rest, or with all of it.
            words = [text.encode() for text in texts]
            ways += [(text[start:], True) for text in words for start in (len(word), 1) if len(text) > start + 1][:1000]
        return ways + [(byte, True) for byte in _BYTES]

    def _members(self, top: Open, key: str | None) -> list[tuple[str, str]]:
        """Members that the object at hand may miss, or that have `key`; those of the likeliest kind of object first."""
        written = top.keys or set()
        ranked = sorted(
            self._pieces.objects,
            key=lambda kind: (top.under not in kind.under, -sum(word in kind.words for word in written)),
        )
        out: dict[tuple[str, str], None] = {}
        for kind in ranked:
            for word, value in kind.members:
                if (word == key) if key is not None else (word not in written):
                    out[word, value] = None
        return list(out)
