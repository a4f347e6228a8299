"""Prices of models, from the genai-prices package, which Pydantic maintains."""

from __future__ import annotations

from onspec.errors import MissingExtra
from onspec.scan.count import Spent

try:
    import genai_prices
except ImportError:
    raise MissingExtra("genai-prices", "scan") from None


def dollars(model: str, tokens: Spent) -> float | None:
    """What tokens cost in US dollars, by the package's bundled list; None where it does not know the model."""
    usage = genai_prices.Usage(
        input_tokens=tokens.input + tokens.cache_read + tokens.cache_write,
        output_tokens=tokens.output,
        cache_read_tokens=tokens.cache_read,
        cache_write_tokens=tokens.cache_write,
    )
    for name in dict.fromkeys((model, model.rpartition("/")[2])):
        try:
            return float(genai_prices.calc_price(usage, name).total_price)
        except (LookupError, ValueError):
            continue
    return None
