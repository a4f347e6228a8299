"""Bounds of numbers as regular expressions over decimal text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from onspec.grammar import lexemes

WORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
"""Keywords that bound a number."""

MOST_STEP = 10_000
"""Largest step of `multipleOf`, in units of its last decimal: the engine follows every remainder of it."""

MOST_BOUND = 2**53
"""Largest bound of a number that is followed: beyond, doubles are further apart than their decimal texts."""

LEAST_BOUND = 1e-40
"""Smallest bound but 0 that is followed: its text would be hundreds of digits."""

_TINY = "0{0,299}"
"""Noughts that may stand behind the point of a number above 0 that a double tells apart from it."""


def bounds_of(flat: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The tightest bounds, as 2020-12 writes them; None where they cannot be combined."""
    out: dict[str, Any] = {}
    for part in flat:
        own = {k: part[k] for k in WORDS if k in part}
        for word, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            flag = own.get(exclusive)
            if isinstance(flag, bool):  # Draft 4: a flag beside the bound.
                del own[exclusive]
                if flag and word in own:
                    own[exclusive] = own.pop(word)
        if "multipleOf" in own and out.get("multipleOf", own["multipleOf"]) != own["multipleOf"]:
            return None
        for word, value in own.items():
            if word in out and word != "multipleOf":
                value = max(value, out[word]) if "inimum" in word else min(value, out[word])
            out[word] = value
    return out


def whole_bounds(bounds: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The smallest and the largest whole number inside the bounds."""
    lows, highs = [], []
    if "minimum" in bounds:
        lows.append(-int(-bounds["minimum"] // 1))
    if "exclusiveMinimum" in bounds:
        lows.append(int(bounds["exclusiveMinimum"] // 1) + 1)
    if "maximum" in bounds:
        highs.append(int(bounds["maximum"] // 1))
    if "exclusiveMaximum" in bounds:
        highs.append(-int(-bounds["exclusiveMaximum"] // 1) - 1)
    return max(lows) if lows else None, min(highs) if highs else None


def nearest_zero(low: int | None, high: int | None) -> int:
    """The whole number nearest zero between two bounds."""
    if low is not None and low > 0:
        return low
    return high if high is not None and high < 0 else 0


def can_be_stepped(bounds: Mapping[str, Any]) -> bool:
    """Whether a `multipleOf` with its bounds is small enough for the engine."""
    step = _decimal(bounds["multipleOf"])
    digits = int(step.scaleb(max(-_exponent(step), 0)))
    return digits <= MOST_STEP and not far(bounds)


def every_whole(bounds: Mapping[str, Any]) -> bool:
    """Whether every whole number is a multiple of the step."""
    return Fraction(_decimal(bounds["multipleOf"])).numerator == 1


def far(bounds: Mapping[str, Any]) -> list[str]:
    """The bounds that are too large to be followed, or too close to 0."""
    known = [(word, abs(bounds[word])) for word in WORDS[:4] if word in bounds]
    return [word for word, value in known if value > MOST_BOUND or 0 < value < LEAST_BOUND]


def multiples(bounds: Mapping[str, Any], whole: bool) -> tuple[dict[str, Any], str] | None:
    """The same bounds, inclusive and themselves multiples, and the multiple nearest to 0 as decimal text.

    Args:
        bounds: With a `multipleOf`.
        whole: Whether the number must be whole.

    Returns:
        None where no multiple is inside.
    """
    step = Fraction(_decimal(bounds["multipleOf"]))
    step = Fraction(step.numerator) if whole else step
    low, low_open, high, high_open = _sides(bounds)
    first = last = None
    if low is not None:
        first = -int(-Fraction(low) / step // 1)
        first += low_open and first * step == low
    if high is not None:
        last = int(Fraction(high) / step // 1)
        last -= high_open and last * step == high
    if first is not None and last is not None and first > last:
        return None
    sides = {word: count * step for word, count in (("minimum", first), ("maximum", last)) if count is not None}
    near = nearest_zero(first, last) * step
    plain = {word: int(side) if side.denominator == 1 else float(side) for word, side in sides.items()}
    return {**plain, "multipleOf": bounds["multipleOf"]}, _text(Decimal(near.numerator) / Decimal(near.denominator))


def between(bounds: Mapping[str, Any]) -> tuple[str, str | None] | None:
    """A regular expression of the numbers inside the bounds, with a short one of them where it is plain.

    Bounds that are `far` are left out. Every other decimal text inside the bounds is matched, but beside an exclusive
    bound only as far as a double tells it apart from the bound; of texts with an exponent those that are certainly
    inside. None where no number is.
    """
    low, low_open, high, high_open = _sides(bounds)
    if low is not None and high is not None and (low > high or (low == high and (low_open or high_open))):
        return None
    example = _example(low, low_open, high, high_open)
    beyond = far(bounds)
    if beyond:
        near = {word: value for word, value in bounds.items() if word not in beyond}
        return (between(near) or ("", None))[0] if near else lexemes.NUMBER, example
    if low_open and low:
        low, low_open = Decimal(repr(math.nextafter(float(low), math.inf))), False
    if high_open and high:
        high, high_open = Decimal(repr(math.nextafter(float(high), -math.inf))), False
    if low is not None and high is not None and low > high:
        return None
    zero = Decimal(0)
    words = []
    if low is None or low < 0 or (low == 0 and not low_open):
        start = zero if high is None or high >= 0 else -high
        reach = None if low is None else -low
        words += [f"-{word}" for word in _magnitudes(start, high_open and high == 0, reach, low_open)]
    if high is None or high > 0 or (high == 0 and not high_open):
        start = zero if low is None or low < 0 else low
        words += _magnitudes(start, low_open and low == 0, high, high_open)
    return "|".join([*words, *_scientific(low, high)]), example


def _sides(bounds: Mapping[str, Any]) -> tuple[Decimal | None, bool, Decimal | None, bool]:
    """Lower and upper bound, each with whether it is itself outside."""
    lows = [(_decimal(bounds[w]), w != "minimum") for w in ("minimum", "exclusiveMinimum") if w in bounds]
    highs = [(_decimal(bounds[w]), w == "maximum") for w in ("maximum", "exclusiveMaximum") if w in bounds]
    low, low_open = max(lows, default=(None, False))
    high, inside = min(highs, default=(None, True))
    return low, low_open, high, not inside


def _decimal(value: float) -> Decimal:
    return Decimal(repr(value))


def _exponent(value: Decimal) -> int:
    found = value.normalize().as_tuple().exponent
    assert isinstance(found, int)  # Bounds are finite.
    return found


def _text(value: Decimal) -> str:
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _example(low: Decimal | None, low_open: bool, high: Decimal | None, high_open: bool) -> str | None:
    tries = [Decimal(0), *(value for value in (low, high) if value is not None)]
    if low is not None and high is not None:
        tries.append((low + high) / 2)
    tries += [value + step for value in tuple(tries) for step in (Decimal(1), Decimal(-1), value)]
    for value in tries:
        if (low is None or value > low or (value == low and not low_open)) and (
            high is None or value < high or (value == high and not high_open)
        ):
            return _text(value)
    return None


# --- decimal text without a sign ---


def _split(value: Decimal) -> tuple[str, str]:
    whole, _, fraction = format(value, "f").partition(".")
    return whole.lstrip("0") or "0", fraction.rstrip("0")


def _magnitudes(low: Decimal, low_open: bool, high: Decimal | None, high_open: bool) -> list[str]:
    """Decimal texts from `low` to `high`, neither below zero, and open only where they are zero."""
    if high is not None and (low > high or (low == high and (low_open or high_open))):
        return []
    whole, fraction = _split(low)
    tail = r"(\.[0-9]+)?"
    first = f"{whole}{_point(*_at_least(fraction, low_open))}"
    if high is None:
        return [first, f"({'|'.join(lexemes.digits_between(int(whole) + 1, None))}){tail}"]
    top, top_fraction = _split(high)
    if whole == top:
        return [f"{whole}{_point(*_inside(fraction, low_open, top_fraction))}"]
    out = [first, f"{top}{_point(*_at_most(top_fraction))}"]
    if int(whole) + 1 < int(top):
        out.append(f"({'|'.join(lexemes.digits_between(int(whole) + 1, int(top) - 1))}){tail}")
    return out


def _point(empty: bool, words: list[str]) -> str:
    return rf"(\.({'|'.join(words)})){'?' if empty else ''}" if words else ""


def _digit(low: int, high: int) -> str:
    return str(low) if low == high else f"[{low}-{high}]"


def _at_least(digits: str, is_open: bool) -> tuple[bool, list[str]]:
    """Digits behind the point that are at least `digits`: whether none will do, and which will."""
    if not digits:
        return (False, [f"{_TINY}[1-9][0-9]*"]) if is_open else (True, ["[0-9]+"])
    words = [digits[:place] + _digit(int(digit) + 1, 9) + "[0-9]*" for place, digit in enumerate(digits) if digit < "9"]
    return False, [*words, f"{digits}[0-9]*"]


def _at_most(digits: str) -> tuple[bool, list[str]]:
    """Digits behind the point that are at most `digits`."""
    if not digits:
        return True, ["0+"]
    words = [digits[:place] + _digit(0, int(digit) - 1) + "[0-9]*" for place, digit in enumerate(digits) if digit > "0"]
    return True, [*words, *(digits[:place] for place in range(1, len(digits))), f"{digits}0*"]


def _inside(low: str, low_open: bool, high: str) -> tuple[bool, list[str]]:
    """Digits behind the point from `low` to `high`."""
    if not low and not low_open:
        return _at_most(high)
    first, last = int(low[:1] or 0), int(high[0])
    if first == last:
        empty, words = _inside(low[1:], low_open, high[1:])
        return False, ([str(first)] if empty else []) + [f"{first}{word}" for word in words]
    out: list[str] = []
    for digit, (empty, words) in ((first, _at_least(low[1:], low_open)), (last, _at_most(high[1:]))):
        out += ([str(digit)] if empty else []) + [f"{digit}{word}" for word in words]
    return False, [*out, *([_digit(first + 1, last - 1) + "[0-9]*"] if first + 1 < last else [])]


def _scientific(low: Decimal | None, high: Decimal | None) -> list[str]:
    """Numbers with an exponent that are certainly inside the bounds: tiny ones around 0, huge ones on an open side."""
    tiny = r"[1-9](\.[0-9]+)?[eE]-0*([1-9]|[1-9][0-9]|[12][0-9]{2})"
    huge = r"[1-9](\.[0-9]+)?[eE]\+?0*([1-9][0-9]?|1[0-9]{2})"
    words = []
    if (low is None or low <= 0) and (high is None or high >= 1):
        words.append(tiny)
    if (high is None or high >= 0) and (low is None or low <= -1):
        words.append(f"-{tiny}")
    if high is None and (low is None or low < 10):
        words.append(huge)
    if low is None and (high is None or high > -10):
        words.append(f"-{huge}")
    return words
