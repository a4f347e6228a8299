"""The report as one page that needs nothing else: tables and plots, no script, no request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from onspec.scan.count import Tally
from onspec.scan.run import Report
from onspec.scan.summary import by, interval, kinds

STYLE = files("onspec.scan").joinpath("page.css").read_text(encoding="utf-8")

MAX_BARS = 20
MAX_DAYS = 120
MAX_ROWS = 300


def page(data: dict[str, Any], report: Report, names: Sequence[str]) -> str:
    """The page, as a whole HTML document.

    Args:
        data: What `summary` made of the report.
        report: The report.
        names: What the table of counts is grouped by.
    """
    sections = [
        _cards(data),
        _section(
            "Off-schema calls by model", _rates(by(report, ("model",))), "Share of all calls, with its 95 % interval."
        ),
        _section(
            "Off-schema calls by tool",
            _rates(_worst(by(report, ("tool",)))),
            "The tools with the most off-schema calls.",
        ),
        _section("By day", _days(by(report, ("day",))), "Bars are calls, the darker part is off schema; days are UTC."),
        _section("Counts", _groups(data, names)),
        _section("Keys that models invented, by kind", _kinds(report)),
        _section("The keys", _keys(data)),
        _section("What the safe policy would have done", _safe(data)),
        _section("Off-schema calls", _findings(data), "The first ones, without their payload."),
        _section("Files", _files(data)),
        _section("What could not be read", _trouble(data)),
    ]
    note = "interrupted: the counts are those until then · " if data["interrupted"] else ""
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>onspec scan</title><style>{STYLE}</style></head><body><h1>Tool calls against their contracts</h1>"
        f"<p>{note}{data['files']} session files · {data['bytes'] / 1e6:.1f} MB · made by onspec scan</p>"
        f"{''.join(sections)}</body></html>\n"
    )


def _section(title: str, body: str, note: str = "") -> str:
    if not body:
        return ""
    return f"<section><h2>{escape(title)}</h2>{f'<p>{escape(note)}</p>' if note else ''}{body}</section>"


def _cards(data: dict[str, Any]) -> str:
    wasted, saved = sum(data["wasted_tokens"].values()), sum(data["saved_by_safe_tokens"].values())
    low, high = data["off_schema_interval"]
    cards = [
        (f"{data['calls']:,}", "calls"),
        (f"{data['off_schema_rate']:.2%}", f"off schema ({low:.2%} to {high:.2%})"),
        (f"{data['rejected_for_arguments']:,}", "rejected by the harness"),
        (f"{data['silently_accepted']:,}", "off schema, silently accepted"),
        (f"{data['safe']['repaired']:,}", "would have been repaired by safe"),
        (_dollars(data["wasted_dollars"]) or f"{wasted:,}", f"wasted on retries ({wasted:,} tokens)"),
        (_dollars(data["saved_by_safe_dollars"]) or f"{saved:,}", f"safe would have saved ({saved:,} tokens)"),
    ]
    inner = "".join(f"<div class=card><b>{escape(value)}</b><span>{escape(what)}</span></div>" for value, what in cards)
    return f"<div class=cards>{inner}</div>"


Rows = list[tuple[tuple[str, ...], Tally, dict[str, Tally]]]


def _worst(rows: Rows) -> Rows:
    return sorted((row for row in rows if row[1].off_schema), key=lambda row: -row[1].off_schema)


def _rates(rows: Rows) -> str:
    shown = [(key[0] or "unknown", tally) for key, tally, _ in rows[:MAX_BARS] if tally.calls]
    if not shown:
        return ""
    bounds = [interval(tally.off_schema, tally.calls) for _, tally in shown]
    top = max(
        min(high, 3 * max(tally.off_schema / tally.calls, 0.005))
        for (_, high), (_, tally) in zip(bounds, shown, strict=True)
    )
    width, left, height = 760, 260, 24
    parts = []
    for index, ((name, tally), (low, high)) in enumerate(zip(shown, bounds, strict=True)):
        y = index * height
        rate = tally.off_schema / tally.calls
        scale = (width - left - 150) / top
        parts.append(f"<text x={left - 8} y={y + 16} text-anchor=end>{escape(_short(name, 32))}</text>")
        parts.append(f"<rect class=bad x={left} y={y + 5} width='{rate * scale:.1f}' height=14 />")
        x1, x2 = left + low * scale, left + min(high, top) * scale
        parts.append(f"<line class=whisker x1='{x1:.1f}' x2='{x2:.1f}' y1={y + 12} y2={y + 12} />")
        parts.append(f"<text class=soft x={width - 142} y={y + 16}>{rate:.2%} of {tally.calls:,}</text>")
    return _svg(width, len(shown) * height, parts, "Off-schema rate")


def _days(rows: Rows) -> str:
    shown = [(key[0], tally) for key, tally, _ in rows if key[0]][-MAX_DAYS:]
    if not shown:
        return ""
    top = max(tally.calls for _, tally in shown)
    width, height = 960, 150
    step = (width - 60) / len(shown)
    parts = [
        f"<line class=axis x1=50 x2={width} y1={height} y2={height} />",
        f"<text class=soft x=0 y=12>{top:,}</text>",
    ]
    for index, (day, tally) in enumerate(shown):
        x, high = 50 + index * step, tally.calls / top * (height - 10)
        off = max(tally.off_schema / top * (height - 10), 1 if tally.off_schema else 0)
        wide = max(step - 1, 1)
        parts.append(
            f"<g><title>{escape(day)}: {tally.calls} calls, {tally.off_schema} off schema</title>"
            f"<rect class=bar x='{x:.1f}' y='{height - high:.1f}' width='{wide:.1f}' height='{high:.1f}' />"
            f"<rect class=bad x='{x:.1f}' y='{height - off:.1f}' width='{wide:.1f}' height='{off:.1f}' /></g>"
        )
    for index in dict.fromkeys((0, len(shown) // 2, len(shown) - 1)):
        anchor = "start" if index == 0 else "end" if index == len(shown) - 1 else "middle"
        x = 50 + (index + (index > 0)) * step
        day = escape(shown[index][0])
        parts.append(f"<text class=soft x='{x:.1f}' y={height + 16} text-anchor={anchor}>{day}</text>")
    return _svg(width, height + 22, parts, "Calls by day")


def _kinds(report: Report) -> str:
    found = kinds(report)
    return _bars([(name.replace("_", " "), number) for name, number in found.items()], "bar")


def _bars(rows: list[tuple[str, int]], style: str) -> str:
    rows = [row for row in rows if row[1]][:MAX_BARS]
    if not rows:
        return ""
    top = max(number for _, number in rows)
    parts = []
    for index, (name, number) in enumerate(rows):
        y = index * 24
        parts.append(f"<text x=252 y={y + 16} text-anchor=end>{escape(_short(name, 32))}</text>")
        parts.append(f"<rect class={style} x=260 y={y + 5} width='{number / top * 380:.1f}' height=14 />")
        parts.append(f"<text class=soft x=650 y={y + 16}>{number:,}</text>")
    return _svg(760, len(rows) * 24, parts, "Counts")


def _safe(data: dict[str, Any]) -> str:
    safe = data["safe"]
    rows = [
        ("repaired", safe["repaired"]),
        ("refused", safe["refused"]),
        ("let pass", safe["accepted"]),
        ("cannot tell", safe["cannot_tell"]),
    ]
    rules = [(name, number) for name, number in data["rules_of_repair"].items()]
    bars = _bars(rows, "good")
    return bars and bars + (f"<h2>Rules of these repairs</h2>{_bars(rules, 'good')}" if rules else "")


def _groups(data: dict[str, Any], names: Sequence[str]) -> str:
    head = [
        *names,
        "calls",
        "errors",
        "rejected",
        "static",
        "off schema",
        "rate",
        "silent",
        "safe repairs",
        "wasted",
        "cost",
    ]
    rows = [
        [
            *(row[name] or "unknown" for name in names),
            row["calls"],
            row["error_results"],
            row["rejected_for_arguments"],
            row["static_violations"],
            row["off_schema"],
            f"{row['off_schema_rate']:.2%}",
            row["silently_accepted"],
            row["safe"]["repaired"],
            sum(row["wasted_tokens"].values()),
            _dollars(row["wasted_dollars"]) or "-",
        ]
        for row in data["by"][:MAX_ROWS]
    ]
    return _table(head, rows, len(names))


def _keys(data: dict[str, Any]) -> str:
    rows = [
        [
            row["key"],
            row["kind"].replace("_", " "),
            ", ".join(row["tools"]),
            ", ".join(row["models"]),
            _most(row["places"]),
            _most(row["depths"]),
            row["times"],
            row["inert"],
        ]
        for row in data["invented"][:MAX_ROWS]
    ]
    return _table(["key", "kind", "tools", "models", "place", "depth", "times", "inert"], rows, 6)


def _findings(data: dict[str, Any]) -> str:
    rows = [
        [
            found["tool"],
            found["model"],
            found["harness_said"],
            "; ".join(found["problems"]) or ", ".join(found["invented_keys"]),
            found["safe"] + (f" ({', '.join(found['rules'])})" if found["rules"] else ""),
            f"{found['path']}:{found['line']}",
            found["call"],
        ]
        for found in data["findings"][:MAX_ROWS]
    ]
    return _table(["tool", "model", "harness", "problem", "safe", "where", "call"], rows, 7)


def _files(data: dict[str, Any]) -> str:
    rows = [
        [
            row["path"],
            row["format"],
            row["bytes"],
            row["calls"],
            row["error_results"],
            row["rejected_for_arguments"],
            row["static_violations"],
            row["off_schema"],
        ]
        for row in data["per_file"][:MAX_ROWS]
        if row["calls"]
    ]
    return _table(["file", "format", "bytes", "calls", "errors", "rejected", "static", "off schema"], rows, 2)


def _trouble(data: dict[str, Any]) -> str:
    rows = [[row["path"], row["why"]] for row in data["unreadable"]]
    rows += [[f"{number} × {reason}", "passed over"] for reason, number in data["damage"].items()]
    return _table(["what", "why"], rows, 2)


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]], texts: int) -> str:
    body = "".join(
        "<tr>"
        + "".join(
            f"<td>{escape(str(cell))}</td>" if index < texts else f"<td class=n>{_number(cell)}</td>"
            for index, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    if not body:
        return ""
    top = "".join(f"<th{'' if index < texts else ' class=n'}>{escape(name)}</th>" for index, name in enumerate(head))
    return f"<div class=scroll><table><tr>{top}</tr>{body}</table></div>"


def _svg(width: int, height: int, parts: Iterable[str], label: str) -> str:
    head = f"<svg viewBox='0 0 {width} {height}' width={width} role=img aria-label='{escape(label)}'>"
    return f"{head}{''.join(parts)}</svg>"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def _most(counts: dict[str, int]) -> str:
    return max(counts, key=lambda name: counts[name]) if counts else ""


def _dollars(value: float | None) -> str:
    return "" if not value else f"${value:,.2f}"


def _short(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
