"""What tokens cost: by the user's own prices, else by a maintained list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module

from onspec.errors import InputError, MissingExtra
from onspec.scan.count import Spent

LIST = "onspec.scan.genai_prices:dollars"
"""The maintained list, as `module:function`; loaded on use, because the package is optional and slow to import."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens of models whose name fits a pattern (`fnmatch`)."""

    pattern: str
    input: float
    output: float
    cache_read: float
    cache_write: float

    @classmethod
    def parse(cls, text: str) -> Price:
        """A price from `MODEL=IN,OUT[,CACHE_READ[,CACHE_WRITE]]`; what is missing costs as much as `IN`.

        Raises:
            InputError: It is not of that form.
        """
        pattern, _, numbers = text.rpartition("=")
        try:
            given = [float(number) for number in numbers.split(",")]
        except ValueError:
            given = []
        if not pattern or not 2 <= len(given) <= 4 or any(not 0 <= number < 1e6 for number in given):
            raise InputError(
                f"--price {text!r} is not MODEL=IN,OUT[,CACHE_READ[,CACHE_WRITE]] in dollars per million tokens"
            )
        fresh, output, *cached = given
        read = cached[0] if cached else fresh
        return cls(pattern, fresh, output, read, cached[1] if len(cached) > 1 else fresh)

    def dollars(self, tokens: Spent) -> float:
        """What tokens cost."""
        parts = (
            tokens.input * self.input,
            tokens.output * self.output,
            tokens.cache_read * self.cache_read,
            tokens.cache_write * self.cache_write,
        )
        return sum(parts) / 1e6


class Prices:
    """Prices by model.

    Args:
        own: The user's own prices; the first that fits counts.
    """

    def __init__(self, own: Iterable[Price] = ()) -> None:
        self._own = tuple(own)
        self._list: Callable[[str, Spent], float | None] | None = None
        self.unknown: set[str] = set()
        self.missing = ""

    def dollars(self, model: str, tokens: Spent) -> float | None:
        """What tokens of a model cost in US dollars; None where no price is known, which is then in `unknown`."""
        if not any(tokens):
            return 0.0
        for price in self._own:
            if fnmatchcase(model, price.pattern):
                return price.dollars(tokens)
        cost = self._listed(model, tokens)
        if cost is None:
            self.unknown.add(model)
        return cost

    def _listed(self, model: str, tokens: Spent) -> float | None:
        if self._list is None:
            module, attribute = LIST.split(":")
            try:
                self._list = getattr(import_module(module), attribute)
            except MissingExtra as error:
                self.missing = str(error)
                self._list = _none
        return self._list(model, tokens) if self._list is not None and model else None


def _none(model: str, tokens: Spent) -> float | None:
    return None
