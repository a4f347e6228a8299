"""The keys of one object: which are renamed, which go, and which cannot be dropped without losing what was meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import orjson

from onspec.audit import Json, Path, Violation, equal, pointer
from onspec.contract.view import Places, View, Views
from onspec.repair.names import (
    ENVELOPES,
    fold,
    garbled,
    is_payload,
    named_often,
    near,
    nearest,
    numbered,
    related,
    restrains,
    speaks_of_file,
    synonyms,
    trim,
)
from onspec.repair.step import Origin, Step

MAX_KEYS = 1000
"""Keys of one object above which no key is taken for another."""

MAX_UNKNOWN = 50
"""Undeclared keys of one object above which none is looked at by itself."""


@dataclass(frozen=True, slots=True)
class Level:
    """An object on the way down to the place at hand, and how it was viewed."""

    value: dict[str, Json]
    view: View


@dataclass(slots=True)
class Keys:
    """An object whose keys are being settled.

    Attributes:
        value: The object as it stands.
        origins: Key to the key it had in the text.
        steps: The changes so far.
        violations: Why a key can neither stay nor go.
    """

    value: dict[str, Json]
    origins: dict[str, str]
    steps: list[Step] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)


def rename(value: dict[str, Json], view: View, aliases: Mapping[str, str], path: Path, origin: Origin) -> Keys:
    """Give every key that plainly means a declared and absent one that name.

    In an open object only required keys are looked for; all else there is data.
    """
    keys = Keys(dict(value), {key: key for key in value})
    if len(value) > MAX_KEYS:
        return keys
    absent = [name for name in view.properties if name not in value and (view.closed or name in view.required)]
    folded: dict[str, list[str]] = {}
    for name in absent:
        folded.setdefault(fold(name), []).append(name)
    claims: dict[str, list[tuple[str, list[tuple[str, str, str]]]]] = {}
    for key in value:
        if view.places_of(key) is not None or len(key) > 256:
            continue
        found = _target(key, value, view, aliases, absent, folded)
        if found is not None:
            claims.setdefault(found[0], []).append((key, found[1]))
    for target, claimants in claims.items():
        key, steps = claimants[0]
        others = [other for other, _ in claimants[1:]]
        if any(not equal(value[key], value[other]) for other in others):
            names = ", ".join(other for other, _ in claimants)
            message = f"{len(claimants)} keys stand for one ({names}), with different values"
            keys.violations.append(Violation("ambiguous", pointer(path), message, expected=target, hint=target))
            continue
        for rule, old, new in steps:
            keys.steps.append(Step(rule, pointer((*path, old)), old, new, origin.at(key)))
        keys.origins[target] = key
        keys.value = {target if name == key else name: inner for name, inner in keys.value.items()}
    return keys


def _target(
    key: str,
    value: dict[str, Json],
    view: View,
    aliases: Mapping[str, str],
    absent: list[str],
    folded: Mapping[str, list[str]],
) -> tuple[str, list[tuple[str, str, str]]] | None:
    """The declared and absent key that a key means, with the steps that lead there."""
    if not absent:
        return None
    name, steps = key, []
    bare = trim(key)
    if bare != key and bare:
        steps.append(("key_trim", key, bare))
        name = bare
        if name in absent:
            return name, steps
        if name in view.properties:
            return None
    same = folded.get(fold(name), [])
    if len(same) == 1:
        return same[0], [*steps, ("key_case", name, same[0])]
    declared = aliases.get(name)
    if declared is not None:
        return (declared, [*steps, ("alias_key", name, declared)]) if declared in absent else None
    if not named_often(name):
        return None
    family = [other for other in absent if synonyms(name, other)]
    if len(family) == 1 and not any(synonyms(name, other) for other in view.properties if other in value):
        return family[0], [*steps, ("alias_key", name, family[0])]
    return None


def settle(
    keys: Keys,
    view: View,
    views: Views,
    levels: list[Level],
    path: Path,
    origin: Origin,
    wraps: Callable[[str, Path], bool],
    writes: bool,
) -> Keys:
    """Lift a missing array's item out of its keys, then drop what a closed object does not declare, or say why not."""
    unknown = [key for key in keys.value if view.places_of(key) is None]
    if not unknown or not view.closed or view.free:
        return keys
    if len(unknown) > MAX_UNKNOWN:
        message = f"{len(unknown)} keys are not declared"
        keys.violations.append(
            Violation("unknown_key", pointer(path), message, ", ".join(view.properties) or "no keys")
        )
        return keys
    unknown = _lift(keys, unknown, view, views, path, origin)
    known = [key for key in keys.value if key not in unknown]
    for key in unknown:
        value = keys.value[key]
        reason = None if inert(value) else _why_not(key, value, keys, view, views, levels, path, wraps, writes)
        if reason is None and not known and view.properties and not inert(value):
            reason = ("unknown_key", "not declared, and nothing would be left without it")
        if reason is not None:
            hint = nearest(key, view.properties)
            where = pointer((*path, key)) if len(key) <= 64 else pointer(path)
            expected = ", ".join(view.properties) or "no keys"
            keys.violations.append(Violation(reason[0], where, reason[1], expected, "a key that is not declared", hint))
            continue
        keys.steps.append(Step("drop_unknown_key", pointer((*path, key)), value, None, origin.at(key)))
        del keys.value[key]
    return keys


def inert(value: Json) -> bool:
    """Whether a value says nothing: null, an empty string, an empty array or an empty object."""
    return value is None or value == "" or value == [] or value == {}


def _why_not(
    key: str,
    value: Json,
    keys: Keys,
    view: View,
    views: Views,
    levels: list[Level],
    path: Path,
    wraps: Callable[[str, Path], bool],
    writes: bool,
) -> tuple[str, str] | None:
    """Why a key that is not declared may not be dropped, as code and message; None where it may."""
    inside = held(value)
    if garbled(key):
        return "unknown_key", "a key is text or markup, not a name"
    for name, other in keys.value.items():
        if name != key and name in view.properties and _twins(key, name) and equal(value, other):
            return None
    for name in view.properties:
        if fold(name) == fold(trim(key)) or synonyms(key, name):
            if name in view.defaults and equal(value, view.defaults[name]):
                return None
            return "conflicting_key", "stands for the same as a declared key, with another value"
    for name, places in view.properties.items():
        if near(key, name) and not (name in keys.value and _no_text(value) and _texts_only(views, places)):
            return "unknown_key", "not declared, but close to a declared key"
    if wraps(key, path) and isinstance(inside, dict | list):
        return "unknown_key", "a wrapper around arguments that do not fit"
    if _copied(key, value, levels):
        return None
    for name in view.properties:
        if related(key, name, isinstance(value, bool)):
            return "unknown_key", "not declared, but speaks of the same as a declared key"
    if (
        isinstance(value, str)
        and (speaks_of_file(key) or (fold(key) in ("source", "location") and "/" in value))
        and any(speaks_of_file(name) for level in levels for name in level.view.properties)
    ):
        return "unknown_key", "not declared, and names another file than the call does"
    twin = numbered(key)
    if any(fold(name) == fold(key) or (twin and fold(name) == fold(twin[0])) for name in views.names):
        return "misplaced_key", "declared at another place of the call, not here"
    if is_payload(key) and isinstance(value, str):
        return "unknown_key", "not declared; it may be another call merged into this one"
    if isinstance(value, dict | list) and any(
        (name in view.required or not scalars(value))
        and views.valid(value, places)
        and not views.valid([] if isinstance(value, dict) else {}, places)
        for name, places in view.properties.items()
        if name not in keys.value
    ):
        return "unknown_key", "not declared, but holds what a missing key takes"
    if isinstance(inside, dict | list) and holds_work(inside, views.names):
        return "unknown_key", "not declared, but holds keys that are"
    if writes and restrains(key, value, views.names):
        return "unknown_key", "not declared; without it the call would do more than was asked, or something else"
    if key in ENVELOPES and isinstance(inside, dict | list):
        return "unknown_key", "a wrapper around arguments that do not fit"
    return None


def holds_work(value: Json, names: frozenset[str]) -> bool:
    """Whether an undeclared container holds a key that the schema declares somewhere, or a synonym of one."""
    stack = [value]
    for _ in range(MAX_KEYS):
        if not stack:
            return False
        item = stack.pop()
        if isinstance(item, dict):
            if any(not inert(inner) and any(_same(key, name) for name in names) for key, inner in item.items()):
                return True
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return True


def held(value: Json) -> Json:
    """What a string holds that looks like JSON, or the value itself; an array where it cannot be read."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return orjson.loads(value)
    except ValueError:
        return [value]


def scalars(value: Json) -> bool:
    """Whether a container holds scalars only."""
    return not any(isinstance(item, dict | list) for item in (value.values() if isinstance(value, dict) else value))


def _no_text(value: Json) -> bool:
    """Whether a value is a flag or nought, and so carries no text: `newText_placeholder: true`."""
    return isinstance(value, bool) or (isinstance(value, int | float) and value == 0)


def _texts_only(views: Views, places: Places) -> bool:
    return all(view.types is not None and view.types <= {"string", "null"} for view in views.of(places))


def _same(key: str, name: str) -> bool:
    return fold(key) == fold(name) or synonyms(key, name)


def _twins(key: str, name: str) -> bool:
    return fold(trim(key)) == fold(name) or synonyms(key, name) or near(key, name)


def _copied(key: str, value: Json, levels: list[Level]) -> bool:
    """Whether a key repeats, with the same value, one that stands further out."""
    for level in levels:
        for name, other in level.value.items():
            if (
                fold(name) == fold(key) or synonyms(name, key) or (speaks_of_file(name) and speaks_of_file(key))
            ) and equal(value, other):
                return True
    return False


def _lift(keys: Keys, unknown: list[str], view: View, views: Views, path: Path, origin: Origin) -> list[str]:
    """Keys that are a whole item of one missing array become that item; answers the keys that are still unknown."""
    candidates: list[tuple[str, list[str]]] = []
    for name, places in view.properties.items():
        if not inert(keys.value.get(name)):
            continue
        for item in _item_views(views, places):
            members = {key: _member(key, item) for key in unknown}
            fitting = [key for key, target in members.items() if target is not None]
            targets = {members[key] for key in fitting}
            if item.required and set(item.required) <= targets and len(targets) == len(fitting):
                candidates.append((name, fitting))
                break
    if len(candidates) != 1:
        return unknown
    name, fitting = candidates[0]
    item_value = {key: keys.value[key] for key in fitting}
    keys.steps.append(Step("lift_flat_item", pointer((*path, name)), item_value, [item_value], origin))
    keys.value = {key: inner for key, inner in keys.value.items() if key not in fitting and key != name}
    keys.value[name] = [item_value]
    keys.origins.pop(name, None)
    return [key for key in unknown if key not in fitting]


def _item_views(views: Views, places: tuple[str, ...]) -> list[View]:
    return [
        item
        for view in views.of(places)
        if view.takes("array") and not view.takes("object")
        for item in views.of(view.item_places(0))
        if item.properties and item.takes("object")
    ]


def _member(key: str, item: View) -> str | None:
    """The declared key of an item that a key means."""
    if key in item.properties:
        return key
    same = [name for name in item.properties if fold(name) == fold(trim(key))]
    same = same or [name for name in item.properties if synonyms(key, name)]
    return same[0] if len(same) == 1 else None
