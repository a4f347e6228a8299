"""A report as plain data: what the JSON, the terminal and the page show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from onspec.errors import InputError
from onspec.scan.count import Spent, Tally
from onspec.scan.price import Prices
from onspec.scan.run import Report

BY = ("model", "tool", "harness", "day")
"""What `--by` takes."""

VERSION = 1
"""Version of the JSON's form."""

WASTE = ("waste_input", "waste_output", "waste_cache_read", "waste_cache_write")
SAVED = ("saved_input", "saved_output", "saved_cache_read", "saved_cache_write")


def interval(hits: int, total: int, z: float = 1.959964) -> tuple[float, float]:
    """The 95 % interval of a rate (Wilson's score interval, 1927); (0, 1) where there is nothing to go by."""
    if total <= 0:
        return 0.0, 1.0
    rate, square = hits / total, z * z / total
    middle = (rate + square / 2) / (1 + square)
    half = z * math.sqrt(rate * (1 - rate) / total + square / total / 4) / (1 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def split_by(text: str) -> tuple[str, ...]:
    """The names in `--by`.

    Raises:
        InputError: One of them is not in `BY`.
    """
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    wrong = [name for name in names if name not in BY]
    if wrong:
        raise InputError(f"--by takes {', '.join(BY)}, not {', '.join(wrong)}")
    return names


def by(report: Report, names: Sequence[str]) -> list[tuple[tuple[str, ...], Tally, dict[str, Tally]]]:
    """Counts by some of a group's names, most calls first; each with its part by model, for prices."""
    found: dict[tuple[str, ...], tuple[Tally, dict[str, Tally]]] = {}
    for group, tally in report.groups.items():
        key = tuple(getattr(group, name) for name in names)
        whole, models = found.setdefault(key, (Tally(), {}))
        whole.add(tally)
        models.setdefault(group.model, Tally()).add(tally)
    rows = [(key, whole, models) for key, (whole, models) in found.items()]
    if "day" in names:
        rows.sort(key=lambda row: row[0])
    else:
        rows.sort(key=lambda row: (-row[1].calls, row[0]))
    return rows


def tokens(tally: Tally, names: Sequence[str]) -> Spent:
    """The tokens in four of a tally's counts, in the order of `Spent`."""
    return Spent(*(getattr(tally, name) for name in names))


def cost(models: dict[str, Tally], names: Sequence[str], prices: Prices) -> float | None:
    """US dollars of the tokens in some counts, over models; None where no price is known for any of them."""
    known = [
        found for model, tally in models.items() if (found := prices.dollars(model, tokens(tally, names))) is not None
    ]
    return sum(known) if known else None


def counts(tally: Tally) -> dict[str, Any]:
    """A tally with its rates, under the names that the JSON uses."""
    low, high = interval(tally.off_schema, tally.calls)
    return {
        "calls": tally.calls,
        "of_subagents": tally.of_subagents,
        "results": tally.results,
        "error_results": tally.error_results,
        "rejected_for_arguments": tally.rejected,
        "rejected_by_kind": {
            "schema": tally.rejected_schema,
            "unparsable": tally.rejected_unparsable,
            "unknown_tool": tally.rejected_unknown_tool,
            "grammar": tally.rejected_grammar,
        },
        "rejected_though_it_fits": tally.rejected_fits,
        "rejections_without_a_call": tally.lost,
        "static_violations": tally.static,
        "unparsable": tally.unparsable,
        "invented_keys": tally.invented,
        "guarded": tally.guarded,
        "off_schema": tally.off_schema,
        "off_schema_rate": round(tally.off_schema / tally.calls, 6) if tally.calls else 0.0,
        "off_schema_interval": [round(low, 6), round(high, 6)],
        "silently_accepted": tally.silent,
        "judged": tally.judged,
        "judged_by_inferred_schema": tally.inferred,
        "collateral": tally.collateral,
        "unknown_names": tally.unknown_names,
        "safe": {
            "repaired": tally.safe_repaired,
            "refused": tally.safe_refused,
            "accepted": tally.safe_accepted,
            "cannot_tell": tally.unjudged,
        },
        "retries": {
            "made_good": tally.retries,
            "calls_until_good": tally.retry_calls,
            "never": tally.gave_up,
            "lost_replies": tally.failed_turns,
        },
        "wasted_tokens": tokens(tally, WASTE)._asdict(),
        "saved_by_safe_tokens": tokens(tally, SAVED)._asdict(),
    }


def summary(report: Report, names: Sequence[str], prices: Prices) -> dict[str, Any]:
    """The whole report as JSON data. It holds no payload of any call."""
    models = {row[0][0]: row[1] for row in by(report, ("model",))}
    total_cost = [found for model, spent in report.spent.items() if (found := prices.dollars(model, spent)) is not None]
    rows = []
    for key, tally, parts in by(report, names) if names else []:
        row = {**dict(zip(names, key, strict=True)), **counts(tally)}
        rows.append(
            {**row, "wasted_dollars": cost(parts, WASTE, prices), "saved_by_safe_dollars": cost(parts, SAVED, prices)}
        )
    return {
        "version": VERSION,
        "paths": list(report.paths),
        "interrupted": report.interrupted,
        "seconds": round(report.seconds, 3),
        "files": report.files,
        "files_of_other_kinds": report.other,
        "bytes": report.size,
        "formats": dict(report.formats.most_common()),
        "harness_versions": dict(report.versions.most_common(50)),
        **counts(report.total()),
        "wasted_dollars": cost(models, WASTE, prices),
        "saved_by_safe_dollars": cost(models, SAVED, prices),
        "spent_tokens": {model or "unknown": spent._asdict() for model, spent in sorted(report.spent.items())},
        "spent_dollars": sum(total_cost) if total_cost else None,
        "models_without_a_price": sorted(prices.unknown),
        "calls_with_estimated_output_tokens": report.guessed,
        "copies_left_out": report.copies,
        "schemas": dict(report.schemas.most_common()),
        "bad_schemas_in_files": report.bad_schemas,
        "tools_with_their_own_schema": dict(report.own_tools.most_common(50)),
        "by": rows,
        "invented": invented_rows(report),
        "violations": dict(report.codes.most_common()),
        "rules_of_repair": dict(report.rules.most_common()),
        "per_file": [
            {
                "path": line.path,
                "format": line.format,
                "bytes": line.size,
                **counts(line.tally),
                "schemas": dict(line.schemas),
            }
            for line in report.lines
        ],
        "findings": [
            {
                "path": path,
                "call": found.call,
                "number": f"#{found.number}",
                "line": found.line,
                "tool": found.tool,
                "model": found.model,
                "harness_said": found.verdict or "nothing",
                "problems": list(found.problems),
                "invented_keys": list(found.keys),
                "safe": found.safe or "cannot tell",
                "rules": list(found.rules),
                "made_good_by": found.fixed_by or None,
                "made_good_after_calls": found.fixed_after or None,
            }
            for path, found in report.findings
        ],
        "damage": dict(report.damage.most_common()),
        "records_of_unknown_kinds": report.unknown,
        "unreadable": [{"path": path, "why": why} for path, why in report.errors],
    }


def invented_rows(report: Report, limit: int = 200) -> list[dict[str, Any]]:
    """Invented keys, most frequent first: key, kind, tools, models, depth, place in their object, whether inert."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for (key, kind, depth, place, inert, tool, model), number in sorted(report.keys.items()):
        row = found.setdefault(
            (key, kind),
            {"key": key, "kind": kind, "times": 0, "inert": 0, "depths": {}, "places": {}, "tools": {}, "models": {}},
        )
        row["times"] += number
        row["inert"] += number if inert else 0
        for name, value in (("depths", str(depth)), ("places", place), ("tools", tool), ("models", model or "unknown")):
            row[name][value] = row[name].get(value, 0) + number
    return sorted(found.values(), key=lambda row: (-row["times"], row["key"]))[:limit]


def kinds(report: Report) -> dict[str, int]:
    """Invented keys by kind."""
    found: dict[str, int] = {}
    for place, number in report.keys.items():
        found[place[1]] = found.get(place[1], 0) + number
    return dict(sorted(found.items(), key=lambda item: -item[1]))
