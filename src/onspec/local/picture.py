"""A measured call as a picture: every token in the colour of the pressure on it, in a terminal or in HTML."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass

from onspec.local.causes import MEANING
from onspec.local.chance import CONFIDENCE
from onspec.local.pressure import Pressure

STEPS: tuple[tuple[float, str, str], ...] = (
    (0.5, "red", "#e03131"),
    (0.2, "bright_red", "#ff8787"),
    (0.05, "yellow", "#ffd43b"),
    (0.01, "green", "#b2f2bb"),
)
"""Forbidden mass from which on a token gets a colour: terminal name, HTML colour."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One measured history.

    Attributes:
        name: What is special about it.
        pressure: What was measured.
    """

    name: str
    pressure: Pressure


def shade(mass: float) -> tuple[str, str] | None:
    """Terminal and HTML colour of a forbidden mass, or None where it is small."""
    return next(((name, colour) for least, name, colour in STEPS if mass >= least), None)


def marked(pressure: Pressure) -> list[tuple[str, str | None]]:
    """The call as pieces of text, each with its terminal colour. A character cut by a token boundary is shown whole
    with the token that ends it."""
    out: list[tuple[str, str | None]] = []
    held, worst = b"", 0.0
    for position in pressure.positions:
        held += position.text
        worst = max(worst, position.forbidden)
        try:
            text = held.decode()
        except UnicodeDecodeError:
            continue
        colours = shade(worst)
        out.append((text, colours[0] if colours else None))
        held, worst = b"", 0.0
    if held:
        out.append((held.decode("utf-8", "replace"), None))
    return out


def page(arms: Sequence[Arm], title: str) -> str:
    """A self-contained HTML page of several arms. Hovering over a token tells its causes."""
    parts = [_HEAD.format(title=html.escape(title))]
    for arm in arms:
        pressure = arm.pressure
        parts.append(f"<h2>{html.escape(arm.name)}</h2><pre>")
        for position in pressure.positions:
            text = html.escape(position.text.decode("utf-8", "replace"))
            colours = shade(position.forbidden)
            causes = ", ".join(f"{cause} {mass:.3f}" for cause, mass in position.causes.items() if mass >= 0.001)
            tip = html.escape(f"forbidden {position.forbidden:.4f}; {causes}", quote=True)
            style = f' style="background:{colours[1]}"' if colours else ""
            parts.append(f'<span title="{tip}"{style}>{text}</span>')
        parts.append("</pre><table><tr><th>cause</th><th>expected times</th><th></th></tr>")
        for cause, mass in pressure.causes.items():
            width = min(int(mass * 120), 360)
            parts.append(
                f"<tr><td>{cause}</td><td>{mass:.3f}</td><td><i style='width:{width}px'></i>"
                f"{html.escape(MEANING[cause])}</td></tr>"
            )
        parts.append("</table>")
        rows = [chance for chance in pressure.keys if chance.invented >= 0.001]
        if rows:
            parts.append("<table><tr><th>after</th><th>invented key</th><th>which</th></tr>")
            for chance in rows:
                keys = ", ".join(f"{html.escape(key)} {share:.3f}" for key, share in chance.keys[:5])
                parts.append(
                    f"<tr><td>{html.escape(chance.after)}</td><td>{chance.invented:.3f}</td><td>{keys}</td></tr>"
                )
            parts.append("</table>")
    return "".join(parts) + "</body></html>\n"


_HEAD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body{{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}
pre{{white-space:pre-wrap;overflow-wrap:anywhere;background:#f8f9fa;padding:1rem;border-radius:6px}}
td,th{{text-align:left;padding:.15rem .8rem .15rem 0;vertical-align:top}}
i{{display:inline-block;height:.7em;background:#4dabf7;margin-right:.5rem}}
@media (prefers-color-scheme:dark){{body{{background:#1a1b1e;color:#e9ecef}}pre{{background:#25262b}}
span[style]{{color:#111}}}}
</style></head><body><h1>{title}</h1>
<p>Each token is coloured by the probability that the model, left to itself, would have written something there that
breaks the call's contract.</p>
"""


def document(arms: Sequence[Arm]) -> str:
    """All arms as JSON."""
    return json.dumps([{"arm": arm.name, **_numbers(arm.pressure)} for arm in arms], ensure_ascii=False, indent=1)


def _numbers(pressure: Pressure) -> dict[str, object]:
    valid = pressure.valid
    return {
        "nats": round(pressure.nats, 6),
        "causes": {cause: round(mass, 6) for cause, mass in pressure.causes.items()},
        "early_close": {"all": round(pressure.early_close[0], 6), "at_quotes": round(pressure.early_close[1], 6)},
        "keys": [
            {
                "after": json.loads(chance.after) if chance.after else "",
                "offset": chance.offset,
                "close": round(chance.close, 6),
                "invented": round(chance.invented, 6),
                "declared": round(chance.declared, 6),
                "other": round(chance.other, 6),
                "unknown": round(chance.unknown, 6),
                "which": {key: round(share, 6) for key, share in chance.keys},
            }
            for chance in pressure.keys
        ],
        "valid": None
        if valid is None
        else {
            "probability": valid.value,
            "at_least": valid.lower,
            "at_most": valid.upper,
            "confidence": CONFIDENCE,
            "followed": valid.known,
            "open": valid.open,
            "steps": valid.steps,
            "effective": valid.effective,
            "draws": valid.draws,
        },
        "positions": [
            {
                "text": position.text.decode("utf-8", "replace"),
                "probability": round(position.probability, 6),
                "forbidden": round(position.forbidden, 6),
                "causes": {cause: round(mass, 6) for cause, mass in position.causes.items() if mass >= 1e-6},
                "early_close": round(position.early_close, 6),
            }
            for position in pressure.positions
        ],
    }
