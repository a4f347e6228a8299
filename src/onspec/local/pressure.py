"""The wish to leave: how likely a model is to break a call, where, how, and into which keys."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onspec.contract.tool import Tool
from onspec.errors import InputError
from onspec.grammar.build import Grammar, build
from onspec.grammar.llguidance import Matcher
from onspec.grammar.place import Place
from onspec.local.causes import Causes
from onspec.local.chance import Estimate, estimate
from onspec.local.runtime import Runtime, softmax
from onspec.local.sample import Draw

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

KEY_STEPS = 12
"""Evaluations that following undecided continuations may cost at one place."""

NAME_STEPS = 10
"""Evaluations that spelling out invented keys may cost at one place; they change no probability."""

SMALLEST = 1e-4
"""Probability below which a continuation is not followed."""

WORTH_NAMING = 5e-3
"""Probability of an invented key from which on it is spelt out."""


@dataclass(frozen=True, slots=True)
class Position:
    """One token of a call.

    Attributes:
        token: The token that the call has here.
        text: Its bytes.
        path: JSON text of the key whose value is being written, or "".
        probability: What the model gives this token.
        forbidden: Probability of all tokens that the exact grammar forbids here.
        causes: The same by cause.
        early_close: Probability of ending the open string here, legally, though the call's own string goes on.
        at_quote: Whether the call writes an escaped quote here: where ending early means that a quote inside the text
            was taken for its end.
    """

    token: int
    text: bytes
    path: str
    probability: float
    forbidden: float
    causes: dict[str, float]
    early_close: float
    at_quote: bool


@dataclass(frozen=True, slots=True)
class KeyChance:
    """What may follow where a value of an object has just been written.

    Attributes:
        after: JSON text of the key whose value ended.
        offset: Bytes from the start of the call to the value's last byte.
        close: Probability that the object is closed legally, given that the value ends here.
        invented: Probability of an undeclared key, given that. Exact up to `unknown`.
        declared: Probability of a further declared key.
        other: Probability of anything else: the value was not at its end after all, or the wrong bracket.
        unknown: Probability that was too small or too late to follow.
        keys: The likeliest invented keys, decoded, with their probability.
    """

    after: str
    offset: int
    close: float
    invented: float
    declared: float
    other: float
    unknown: float
    keys: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Pressure:
    """The pressure on one call after one history.

    Attributes:
        positions: Token by token.
        keys: At each place where an object could go on with another key.
        causes: Expected number of times that the model would leave, by cause: forbidden mass summed over positions.
        nats: -log of the probability that no token of this very call would have been swapped for a forbidden one.
        early_close: Expected number of early ends of strings, in all and at escaped quotes.
        valid: The probability of a valid call of any kind, or None if it was not asked for.
    """

    positions: tuple[Position, ...]
    keys: tuple[KeyChance, ...]
    causes: dict[str, float]
    nats: float
    early_close: tuple[float, float]
    valid: Estimate | None = None


class Meter:
    """Measures one model with one set of tools. Always under the exact grammar: any other would count valid calls as
    forbidden.

    Args:
        runtime: The model.
        tools: The tools that may be called.
        dialect: Must write arguments as JSON with the name inside (`hermes_json` and its like).
    """

    def __init__(self, runtime: Runtime, tools: Sequence[Tool], dialect: str = "hermes_json") -> None:
        self._runtime = runtime
        # The trigger has been written; markers are text, as a model without such a token writes them.
        self.grammar: Grammar = build(tools, dialect, "required", parallel=False, thinking="none")
        assert self.grammar.calls is not None
        self._start = runtime.vocabulary.matcher(self.grammar.calls)
        self._causes = Causes(runtime.pieces, list(runtime.specials.values()))
        self._name_key = "name"

    @property
    def start(self) -> Matcher:
        """A matcher just after the trigger."""
        return self._start.copy()

    def measure(
        self, prompt: Sequence[int], call: str, *, keys: bool = True, progress: Progress | None = None
    ) -> Pressure:
        """The pressure along a given, valid call.

        Args:
            prompt: Tokens up to the trigger, with it.
            call: What follows, to the end of the block.
            keys: Whether to compute the chance of an invented key at each place (a few evaluations each).
            progress: Told how far it is.

        Raises:
            InputError: The call does not keep its contract, so there is nothing to measure along.
            LimitError: History and call do not fit the context.
        """
        runtime = self._runtime
        tokens = runtime.tokenize(call)
        legal = self._start.allowed_length(tokens)
        if legal < len(tokens):
            raise InputError(
                "the call does not keep its contract from here on: "
                + repr(runtime.text(tokens[legal : legal + 12]).decode("utf-8", "replace"))
            )
        first = runtime.prime(prompt)
        if progress:
            progress("reading the history", 1, 1)
        rest = runtime.eval(tokens, every=True)
        rows = [first, *rest[:-1]]
        positions = self._positions(tokens, rows, progress)
        chances = tuple(self._key_chances(tuple(prompt), tokens, progress)) if keys else ()
        causes: dict[str, float] = {}
        for position in positions:
            for cause, mass in position.causes.items():
                causes[cause] = causes.get(cause, 0.0) + mass
        nats = -sum(math.log(max(1.0 - position.forbidden, 1e-300)) for position in positions)
        early = sum(position.early_close for position in positions)
        at_quotes = sum(position.early_close for position in positions if position.at_quote)
        ordered = dict(sorted(causes.items(), key=lambda pair: -pair[1]))
        return Pressure(tuple(positions), chances, ordered, nats, (early, at_quotes))

    def _positions(
        self, tokens: Sequence[int], rows: Sequence[NDArray[np.float32]], progress: Progress | None
    ) -> list[Position]:
        matcher, place, out = self._start.copy(), Place(), []
        for index, (token, row) in enumerate(zip(tokens, rows, strict=True)):
            chances = softmax(row)
            mask = matcher.mask()[: len(chances)]
            outside = np.where(mask, 0.0, chances)
            piece = self._runtime.pieces[token]
            early, at_quote = 0.0, False
            if place.word is not None and not place.in_key:
                closing = self._causes.closes(place)
                if not closing[token]:
                    early = float(chances[closing & mask].sum())
                    at_quote = piece.lstrip().startswith(b'\\"') or b'\\"' in piece
            out.append(
                Position(
                    token, piece, place.path, float(chances[token]), float(outside.sum()),
                    self._causes.split(place, outside, self._name_key), early, at_quote,
                )
            )  # fmt: skip
            matcher.consume(token)
            place.feed(piece)
            if progress and index % 64 == 0:
                progress("measuring", index, len(tokens))
        return out

    # --- keys ---

    def _key_chances(
        self, prompt: tuple[int, ...], tokens: Sequence[int], progress: Progress | None
    ) -> list[KeyChance]:
        text = self._runtime.text(tokens)
        out = []
        ends = _value_ends(text)
        for number, (offset, key) in enumerate(ends):
            if progress:
                progress("following keys", number, len(ends))
            out.append(self.key_chance(prompt, text[:offset], key))
        return out

    def key_chance(self, prompt: Sequence[int], written: bytes, after: str = "") -> KeyChance:
        """What follows a value that is complete but for its closing quote (or altogether, if it is no string).

        Exact marginalisation over bytes: every token that would end the value is taken apart at the quote, and every
        way on is followed, the likeliest first, until it is known for a closed object, an undeclared key, a declared
        key or something else.

        Args:
            prompt: Tokens up to the trigger.
            written: The call up to the value's last byte.
            after: JSON text of the value's key.
        """
        search = _KeySearch(self._runtime, self._causes, prompt, written, self._start)
        search.run()
        return search.result(after)

    # --- the probability of a valid call ---

    def valid(
        self,
        prompt: Sequence[int],
        rng: int | np.random.Generator,
        *,
        draws: int = 30,
        steps: int = 200,
        budget: int = 256,
        start: bytes = b"",
        progress: Progress | None = None,
    ) -> tuple[Estimate, tuple[Draw, ...]]:
        """The probability that the free model writes a valid call within `budget` tokens (`onspec.local.chance`).

        Args:
            prompt: Tokens up to the trigger.
            rng: Source of randomness, or its seed.
            draws: How many samples of what is not followed to its end.
            steps: Most evaluations spent on following.
            budget: Most tokens of one call, `start` not counted.
            start: What of the call is given already.
            progress: Told how far it is.

        Raises:
            InputError: `start` does not keep the contract.
        """
        matcher = self._start.copy()
        given = self._runtime.tokenize(start) if start else []
        if not matcher.consume_all(given):
            raise InputError("the given start of the call does not keep its contract")
        return estimate(
            self._runtime,
            (*prompt, *given),
            matcher,
            np.random.default_rng(rng),
            draws=draws,
            steps=steps,
            budget=budget,
            told=progress,
        )


_Entry = tuple[float, int, tuple[int, ...], bytes]


class _KeySearch:
    """Every way on from the end of a value, the likeliest first, until it is decided what it is.

    A token that the grammar forbids after a comma decides for an invented key at once; its spelling is then followed
    only to name the key.
    """

    def __init__(self, runtime: Runtime, causes: Causes, prompt: Sequence[int], written: bytes, start: Matcher) -> None:
        self._runtime = runtime
        self._causes = causes
        self._written = written
        self._base = (*prompt, *runtime.tokenize(written))
        self._matcher = start.copy()
        self._matcher.consume_bytes(written)
        self._place = Place()
        self._place.feed(written)
        self._inside = self._place.word is not None
        self._sums = {"close": 0.0, "invented": 0.0, "declared": 0.0, "other": 0.0, "unknown": 0.0}
        self._keys: dict[str, float] = {}
        self._open: list[_Entry] = [(-1.0, 0, (), b"")]
        self._unnamed: list[_Entry] = []
        self._count = 0
        self._total = 1.0

    def run(self) -> None:
        steps = 0
        while self._open:
            mass = -self._open[0][0]
            if steps >= KEY_STEPS or mass < SMALLEST:
                self._sums["unknown"] += sum(-entry[0] for entry in self._open)
                break
            steps += 1
            self._step(heapq.heappop(self._open), named=False)
        for _ in range(NAME_STEPS):
            if not self._unnamed or -self._unnamed[0][0] < WORTH_NAMING * self._total:
                break
            self._step(heapq.heappop(self._unnamed), named=True)

    def result(self, after: str) -> KeyChance:
        scale = self._total or 1.0
        shares = {kind: value / scale for kind, value in self._sums.items()}
        keys = sorted(((key, value / scale) for key, value in self._keys.items()), key=lambda pair: -pair[1])
        return KeyChance(
            after, len(self._written), shares["close"], shares["invented"], shares["declared"], shares["other"],
            shares["unknown"], tuple(keys[:12]),
        )  # fmt: skip

    def _step(self, entry: _Entry, named: bool) -> None:
        weight, _, path, tail = entry
        chances = softmax(self._runtime.prime((*self._base, *path))) * -weight
        mask = None
        if not named:
            matcher = self._matcher.copy()
            matcher.consume_all(path)
            mask = matcher.mask()[: len(chances)]
        if self._inside and not path:
            chances = np.where(self._causes.closes(self._place), chances, 0.0)
            self._total = float(chances.sum())
        whole = float(chances.sum())
        order = np.argsort(-chances)[:4096]
        followed = 0.0
        for token in map(int, order):
            share = float(chances[token])
            if share < 1e-9 * whole or share <= 0.0:
                break
            followed += share
            self._sort(token, share, path, tail, None if mask is None else bool(mask[token]))
        if not named:
            self._sums["unknown"] += max(whole - followed, 0.0)

    def _sort(self, token: int, share: float, path: tuple[int, ...], tail: bytes, legal: bool | None) -> None:
        runtime = self._runtime
        piece = runtime.pieces[token]
        special = token in runtime.card.ends or piece.decode("utf-8", "replace") in runtime.specials
        kind, key = ("other", "") if special else _way_on(self._place, tail + piece, self._inside)
        if legal is None:  # The mass is counted already; only the key's name is wanted.
            if kind == "key":
                self._keys[key] = self._keys.get(key, 0.0) + share
            elif kind == "comma":
                self._push(self._unnamed, share, (*path, token), tail + piece)
            return
        if kind in ("open", "comma") and legal:
            self._push(self._open, share, (*path, token), tail + piece)
        elif kind == "comma":
            self._sums["invented"] += share
            self._push(self._unnamed, share, (*path, token), tail + piece)
        elif kind == "key":
            self._sums["declared" if legal else "invented"] += share
            if not legal:
                self._keys[key] = self._keys.get(key, 0.0) + share
        else:
            self._sums["close" if kind == "close" and legal else "other"] += share

    def _push(self, heap: list[_Entry], share: float, path: tuple[int, ...], tail: bytes) -> None:
        self._count += 1
        heapq.heappush(heap, (-share, self._count, path, tail))


def _value_ends(text: bytes) -> list[tuple[int, str]]:
    """Offsets at which a value of an object ends, each with the key: before the closing quote of a string, after the
    last byte of anything else."""
    place, out = Place(), []
    for index in range(len(text)):
        before = place.copy()
        place.feed(text[index : index + 1])
        top = before.stack[-1] if before.stack else None
        if before.word is not None and place.word is None and not before.in_key and top is not None:
            if top.keys is not None:
                out.append((index, top.key))
        elif len(place.stack) < len(before.stack) and place.stack and place.stack[-1].keys is not None:
            out.append((index + 1, place.stack[-1].key))
    return out


def _string_end(text: bytes, start: int) -> int:
    index = start + 1
    while index < len(text):
        if text[index] == 0x5C:
            index += 2
            continue
        if text[index] == 0x22:
            return index + 1
        index += 1
    return len(text)


def _way_on(place: Place, tail: bytes, inside: bool) -> tuple[str, str]:
    """What `tail` does after a value: `open` while it is not known, `comma` once a comma is written and a key not yet
    whole, `close`, `key` with the key, or `other`."""
    rest = tail
    if inside:
        quote = _string_end(b'"' + tail, 0) - 1
        if quote > len(tail) or tail[quote - 1 : quote] != b'"':
            return "open", ""
        rest = tail[quote:]
    rest = rest.lstrip(b" \t\r\n")
    if not rest:
        return "open", ""
    top = place.stack[-1] if place.stack else None
    if rest[:1] == b"}" and top is not None and top.keys is not None:
        return "close", ""
    if rest[:1] != b",":
        return "other", ""
    rest = rest[1:].lstrip(b" \t\r\n")
    if not rest:
        return "comma", ""
    if rest[:1] != b'"':
        return "other", ""
    end = _string_end(rest, 0)
    if end <= 1 or rest[end - 1 : end] != b'"' or end == 1:
        return "comma", ""
    return "key", rest[1 : end - 1].decode("utf-8", "replace")
