"""Replaying an audit: what the model wrote, and the repairs, give the arguments; exactly and by nothing else."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import jiter

from onspec.audit import Json, Repair
from onspec.errors import InputError
from onspec.repair.rules import RULES

_RENAMES = frozenset({"alias_key", "key_case", "key_trim"})
_DROPS = frozenset({"drop_unknown_key", "drop_null_optional", "drop_empty_optional"})


def replay(raw: bytes, repairs: Sequence[Repair]) -> Json:
    """Apply an audit to what the model wrote.

    Args:
        raw: What the model wrote, as UTF-8.
        repairs: The audit of its outcome.

    Returns:
        The arguments.

    Raises:
        InputError: The audit does not belong to the text, or holds changes of the markup around the arguments.
    """
    foreign = [repair.rule for repair in repairs if repair.rule not in RULES]
    if foreign:
        raise InputError(
            f"{foreign[0]} changed the markup around the arguments; replay the repairs of the arguments only"
        )
    made = _edits(raw, repairs)
    try:
        value = jiter.from_json(_edited(raw, repairs[:made]))
        for repair in repairs[made:]:
            if RULES[repair.rule].cls not in ("reading", "name"):
                value = _apply(value, repair)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise InputError(f"the audit does not belong to this text: {error}") from None
    return value


def _edits(raw: bytes, repairs: Sequence[Repair]) -> int:
    """How many of the first repairs are edits of the text: what stood there is the very text at the span.

    Reading rules further back speak of what a string held, and are a part of its decoding.
    """
    for index, repair in enumerate(repairs):
        texts = isinstance(repair.before, str) and isinstance(repair.after, str)
        if repair.path or not texts or raw[slice(*repair.span)] != repair.before.encode("utf-8", "surrogatepass"):
            return index
    return len(repairs)


def _edited(raw: bytes, repairs: Sequence[Repair]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for repair in repairs:
        parts.append(raw[at : repair.span[0]])
        parts.append(repair.after.encode())
        at = repair.span[1]
    parts.append(raw[at:])
    return b"".join(parts)


def _apply(root: Json, repair: Repair) -> Json:
    path = [part.replace("~1", "/").replace("~0", "~") for part in repair.path.split("/")[1:]]
    if not path:
        return copy.deepcopy(repair.after)
    holder = _at(root, path[:-1])
    last: str | int = int(path[-1]) if isinstance(holder, list) else path[-1]
    if repair.rule in _RENAMES:
        renamed = {repair.after if key == repair.before else key: value for key, value in holder.items()}
        holder.clear()
        holder.update(renamed)
    elif repair.rule in _DROPS:
        del holder[last]
    elif repair.rule == "promote_numbered_item":
        for where in repair.before:
            steps = [part.replace("~1", "/").replace("~0", "~") for part in where.split("/")[1:]]
            del _at(root, steps[:-1])[steps[-1]]
        holder.insert(last, copy.deepcopy(repair.after))
    elif repair.rule == "lift_flat_item":
        for key in repair.before:
            del holder[key]
        holder.pop(last, None)
        holder[last] = copy.deepcopy(repair.after)
    else:
        holder[last] = copy.deepcopy(repair.after)
    return root


def _at(root: Json, path: Sequence[str]) -> Json:
    for part in path:
        root = root[int(part)] if isinstance(root, list) else root[part]
    return root
