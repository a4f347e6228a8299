"""Conforming: the search for the cheapest set of rules that makes a value fit its schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from onspec.audit import Json, Path, Violation, equal, pointer
from onspec.contract.view import Places, View, Views
from onspec.repair.closers import misplaced
from onspec.repair.keys import Level, inert, rename, settle
from onspec.repair.names import ENVELOPES, META, fold
from onspec.repair.numbered import promote
from onspec.repair.read import read
from onspec.repair.rules import RULES
from onspec.repair.step import Origin, Step

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NOTHING = frozenset({"", "null", "none", "undefined", "nil"})
_SEVERAL = re.compile(r"[^\s,;]{1,64}(?:(?:[,;]\s?|\r?\n)[^\s,;]{1,64}){1,1000}\s*")
"""Words with commas or line ends between: one item as well as several."""

_LINES = re.compile(r"^[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t].*\n[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]", re.MULTILINE)
"""Two lines of a written list."""

_TAGS = re.compile(r"</[A-Za-z][\w:.-]*\s*>|<\|[^|<>]*\|>")
_WORDS = re.compile(r"\w")

_LISTS = frozenset({"items", "list", "array", "values", "elements", "entries"})
"""Wrappers that models put around an array."""

_STEPS = 20_000
"""How many times a search may try a rule on one call before it gives up and refuses."""

_DECODES = 3
"""How often a string inside a string is decoded."""


@dataclass(slots=True)
class Fit:
    """A value that fits, what it cost, and the changes in the order in which they apply."""

    value: Json
    cost: int = 0
    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class Misfit:
    """Why a value cannot be made to fit; `firm` where a reading exists but would be a guess."""

    violations: list[Violation]
    firm: bool = False


class Search:
    """One search over one call.

    Args:
        views: The tool's schema.
        tool: Name of the tool.
        aliases: Declared aliases, alias to key.
        lexeme: Answers the source text of the value at a path of the value as it was read.
        closed: Whether reading added closers.
        writes: Whether the tool writes, executes or has no known effect.
    """

    def __init__(
        self,
        views: Views,
        tool: str,
        aliases: Mapping[str, str],
        lexeme: Callable[[Path], str | None],
        closed: bool,
        writes: bool,
    ) -> None:
        self.views = views
        self.tool = tool
        self.aliases = aliases
        self.lexeme = lexeme
        self.closed = closed
        self.writes = writes
        self.budget = _STEPS
        self.levels: list[Level] = []

    def run(self, value: Json) -> Fit | Misfit:
        """The cheapest fit of a whole call, or why there is none. Never raises for what a model wrote."""
        fit = self.fit(value, ("",), (), Origin())
        if self.closed and isinstance(fit, Fit):
            stray = misplaced(fit.value, self.views) or _unwrapped(fit.steps)
            if stray is not None:
                return Misfit([stray], firm=True)
        return fit

    # -- one place ------------------------------------------------------------------------------------------------

    def fit(self, value: Json, places: Places, path: Path, origin: Origin) -> Fit | Misfit:
        """Fit a value to the places that judge it.

        Args:
            value: The value as it stands.
            places: Where it is judged.
            path: Where it stands after the changes made so far.
            origin: Where it stood in the text as read.
        """
        if self.fits(value, places, path):
            return Fit(value)
        views = _told_apart(self.views.of(places), value, self.views)
        self.budget -= 1 + len(views) // 2
        if self.budget < 0:
            return Misfit([Violation("too_many_faults", pointer(path), "too many faults to search for a repair")])
        fits: list[Fit] = []
        misfit: Misfit | None = None
        for view in views:
            for attempt in self.attempts(value, view, places, path, origin):
                if isinstance(attempt, Misfit):
                    if misfit is None or (attempt.firm and not misfit.firm):
                        misfit = attempt
                elif self.fits(attempt.value, places, path):
                    fits.append(attempt)
        if misfit is not None and misfit.firm and not fits:
            return misfit
        return self.cheapest(fits, path) or misfit or Misfit([])

    def fits(self, value: Json, places: Places, path: Path) -> bool:
        """Whether a value is valid; arguments are an object, whether or not the schema says so."""
        return (bool(path) or isinstance(value, dict)) and self.views.valid(value, places)

    def cheapest(self, fits: list[Fit], path: Path) -> Fit | Misfit | None:
        if not fits:
            return None
        best = min(fits, key=lambda fit: fit.cost)
        for other in fits:
            if other is not best and other.cost == best.cost and not equal(other.value, best.value):
                rules = sorted({step.rule for step in (*best.steps, *other.steps)})
                found = f"two repairs are equally likely ({', '.join(rules)})"
                return Misfit(
                    [Violation("ambiguous", pointer(path), "it can be read in two ways", found=found)], firm=True
                )
        return best

    def attempts(self, value: Json, view: View, places: Places, path: Path, origin: Origin) -> list[Fit | Misfit]:
        """Every rule that could make this value fit one view, tried."""
        found: list[Fit | Misfit] = []
        if isinstance(value, dict):
            if view.takes("object"):
                found.append(self.object(value, view, path, origin))
                found.extend(self.envelope(value, view, places, path, origin))
            if view.takes("array") and not view.takes("object"):
                found.extend(self.named_list(value, places, path, origin))
        elif isinstance(value, list):
            if view.takes("array"):
                found.append(self.array(value, view, path, origin))
            if not view.takes("array") and len(value) == 1:
                found.append(self.unwrap(value, places, path, origin))
        elif isinstance(value, str):
            found.extend(self.string(value, view, places, path, origin))
        else:
            found.extend(self.scalar(value, view, path, origin))
        if view.takes("array") and not isinstance(value, list) and value is not None:
            found.append(self.wrap(value, view, path, origin))
        if not path and view.takes("object") and (value is None or value == "" or value == []):
            found.append(_made("empty_to_object", path, value, {}, origin))
        return found

    # -- shapes ---------------------------------------------------------------------------------------------------

    def wrap(self, value: Json, view: View, path: Path, origin: Origin) -> Fit | Misfit:
        """One item where an array is wanted."""
        if path and isinstance(path[-1], int):
            return Misfit([])  # [1, 2] for a list of lists may be one inner list as well as two
        if isinstance(value, str) and (value.lstrip()[:1] in ("[", "{") or value.strip().casefold() in _NOTHING):
            return Misfit([])
        if isinstance(value, str) and (_LINES.search(value) or (_SEVERAL.fullmatch(value) and "://" not in value)):
            message = "one string that may be a list"
            return Misfit(
                [Violation("ambiguous", pointer(path), message, "array", "a string", "send an array")], firm=True
            )
        if isinstance(value, bool) and not any(v.takes("boolean") for v in self.views.of(view.item_places(0))):
            return Misfit([])  # a flag where a list is wanted is no word for it
        inner = self.array([value], view, path, origin, wrapped=True)
        return _after("wrap_single_to_array", path, value, [value], inner, origin)

    def unwrap(self, value: list[Json], places: Places, path: Path, origin: Origin) -> Fit | Misfit:
        """An array of one where no array is wanted."""
        inner = self.fit(value[0], places, path, origin.at(0))
        return _after("unwrap_single_array", path, value, value[0], inner, origin)

    def named_list(self, value: dict[str, Json], places: Places, path: Path, origin: Origin) -> list[Fit | Misfit]:
        """An object whose one key repeats the name of the array it stands for, or is a known wrapper."""
        if len(value) != 1:
            return []
        key, inner = next(iter(value.items()))
        own = path[-1] if path and isinstance(path[-1], str) else ""
        named = fold(key) in (fold(own), fold(own).removesuffix("s"))
        if not isinstance(inner, list) or not (named or key in ENVELOPES or key in _LISTS):
            return []
        if any(key in item.properties for view in self.views.of(places) for item in self.views.of(view.item_places(0))):
            return []
        inside = self.fit(inner, places, path, origin.at(key))
        return [_after("unwrap_envelope", path, value, inner, inside, origin)]

    def envelope(
        self, value: dict[str, Json], view: View, places: Places, path: Path, origin: Origin
    ) -> list[Fit | Misfit]:
        """A known wrapper around the object."""
        wrappers = [key for key in value if view.places_of(key) is None and self.wraps(key, path)]
        for key in wrappers:
            inner = value[key]
            others = [other for other in value if other != key]
            if not isinstance(inner, dict | str) or not inner or not all(self.beside(o, value[o]) for o in others):
                continue
            if isinstance(inner, str) and not inner.lstrip().startswith("{"):
                continue
            if any(view.places_of(other) is not None for other in others):
                continue
            inside = self.fit(inner, places, path, origin.at(key))
            return [_after("unwrap_envelope", path, value, inner, inside, origin)]
        return []

    def wraps(self, key: str, path: Path) -> bool:
        own = path[-1] if path and isinstance(path[-1], str) else self.tool
        return key in ENVELOPES or fold(key) == fold(own)

    def beside(self, key: str, value: Json) -> bool:
        """Whether a key may stand beside a wrapper: it repeats the tool's name, or is an id or a type."""
        if key not in META:
            return False
        allowed = META[key]
        if allowed is None:
            return bool(value == self.tool or (isinstance(value, str) and value.rsplit(".", 1)[-1] == self.tool))
        return isinstance(value, str) and (not allowed or value in allowed)

    def decode(self, value: str, places: Places, path: Path, origin: Origin) -> list[Fit | Misfit]:
        """A string that holds the JSON text of an object or array."""
        rule = "decode_stringified" if origin.path else "decode_double_encoded"
        if not path and not value.strip():
            return []
        start = value.lstrip()[:1]
        if start not in ("[", "{", '"') and not (start == "\\" or value.lstrip().startswith("```")):
            return []
        steps: list[Step] = []
        inner: Json = value
        for turn in range(_DECODES):
            reading = read(inner)
            if reading.problem is not None:
                problem = reading.problem
                message = f"the string should hold JSON, but {problem.message}"
                return [Misfit([Violation(problem.code, pointer(path), message, found="a string")], firm=True)]
            if any(edit.rule == "strip_leading_garbage" for edit in reading.edits):
                return []
            tail = "".join(inner[e.start : e.end] for e in reading.edits if e.rule == "strip_trailing_garbage")
            if _WORDS.search(tail if self.writes else _TAGS.sub("", tail)):
                message = "the string should hold JSON, but words or markup follow it"
                return [Misfit([Violation("trailing_text", pointer(path), message, found="a string")], firm=True)]
            first = "decode_double_encoded" if turn else rule
            at = origin.held()
            steps.append(Step(first, pointer(path), inner, reading.value, at))
            steps.extend(Step(e.rule, pointer(path), inner[e.start : e.end], e.after, at) for e in reading.edits)
            self.closed = self.closed or reading.closed
            inner = reading.value
            if isinstance(inner, dict | list):
                return [_with(steps, self.fit(inner, places, path, origin.held()))]
            if not isinstance(inner, str):
                return []
        return []

    # -- containers -----------------------------------------------------------------------------------------------

    def object(self, value: dict[str, Json], view: View, path: Path, origin: Origin) -> Fit | Misfit:
        """The keys of an object, then its values."""
        named = rename(value, view, self.aliases, path, origin)
        settled = settle(named, view, self.views, self.levels, path, origin, self.wraps, self.writes)
        if self.closed and any(not level.view.closed for level in self.levels):
            settled.violations.extend(_astray(settled.steps))
        level = Level(settled.value, view)
        steps = list(settled.steps)
        violations = list(settled.violations)
        firm = bool(violations)
        self.levels.append(level)
        for key in list(settled.value):
            places = view.places_of(key)
            if places is None:
                places = view.free
            if not places:
                continue
            was = origin.at(settled.origins.get(key))
            child = self.member(settled.value[key], key, key in view.required, places, path, was)
            if isinstance(child, Misfit):
                violations.extend(child.violations)
                firm = firm or child.firm
            elif child.steps:
                steps.extend(child.steps)
                if child.value is GONE:
                    del settled.value[key]
                else:
                    settled.value[key] = child.value
        self.levels.pop()
        lacks = [key for key in view.required if key not in settled.value]
        if origin.inside:  # what stands in a string, the judge of the whole never sees
            violations.extend(self.missing(key, view, path) for key in lacks)
        if violations or lacks:
            return Misfit(violations, firm)
        return Fit(settled.value, _cost(steps), steps)

    def missing(self, key: str, view: View, path: Path) -> Violation:
        """A required key that is not there."""
        types = sorted({kind for sub in self.views.of(view.properties.get(key, ())) for kind in sub.types or ()})
        expected = ", ".join(types) or None
        return Violation("missing_required", pointer((*path, key)), "a required key is missing", expected, "nothing")

    def member(self, value: Json, key: str, required: bool, places: Places, path: Path, origin: Origin) -> Fit | Misfit:
        """One declared value: as it is, or gone where it is optional and empty, or made to fit."""
        here = (*path, key)
        if not required and not self.views.valid(value, places):
            if value is None:
                return _made("drop_null_optional", here, value, GONE, origin)
            if value == "" or value == [] or value == {}:
                return _made("drop_empty_optional", here, value, GONE, origin)
        return self.fit(value, places, here, origin)

    def array(self, value: list[Json], view: View, path: Path, origin: Origin, wrapped: bool = False) -> Fit | Misfit:
        """The items of an array, after numbered twins in them became items of their own."""
        promoted = promote(value, partial(self.item_view, view), path, origin)
        items = list(promoted.items)
        steps = list(promoted.steps)
        violations: list[Violation] = []
        firm = False
        for index, item in enumerate(items):
            places = view.item_places(index)
            if not places:
                continue
            at = origin if wrapped else origin.at(promoted.origins[index])
            child = self.fit(item, places, (*path, index), at)
            if isinstance(child, Misfit):
                violations.extend(child.violations)
                firm = firm or child.firm
                if len(violations) >= 50:
                    break
            elif child.steps:
                steps.extend(child.steps)
                items[index] = child.value
        if violations:
            return Misfit(violations, firm)
        return Fit(items, _cost(steps), steps)

    def item_view(self, view: View, index: int) -> View | None:
        """The view of an array's item where it is one kind of object."""
        found = [v for v in self.views.of(view.item_places(index)) if v.properties]
        return found[0] if len(found) == 1 else None

    # -- scalars --------------------------------------------------------------------------------------------------

    def string(self, value: str, view: View, places: Places, path: Path, origin: Origin) -> list[Fit | Misfit]:
        found: list[Fit | Misfit] = []
        if view.takes("string"):
            if view.enum is not None:
                same = [m for m in view.enum if isinstance(m, str) and m.casefold() == value.casefold()]
                if len(same) == 1:
                    found.append(_made("enum_case", path, value, same[0], origin))
                elif len(same) > 1:
                    violation = Violation(
                        "ambiguous", pointer(path), "two members of the enum differ only in letter case"
                    )
                    found.append(Misfit([violation], firm=True))
            return found
        numeric = view.types is not None and (view.takes("number") or view.takes("integer"))
        if numeric and len(value) <= 400 and _NUMBER.fullmatch(value):
            found.append(_made("coerce_string_to_number", path, value, _number(value), origin))
        if view.takes("boolean") and view.types is not None and value.lower() in ("true", "false"):
            found.append(_made("coerce_string_to_bool", path, value, value.lower() == "true", origin))
        if view.takes("object") or view.takes("array"):
            found.extend(self.decode(value, places, path, origin))
        return found

    def scalar(self, value: Json, view: View, path: Path, origin: Origin) -> list[Fit | Misfit]:
        found: list[Fit | Misfit] = []
        if view.types is None:
            return found
        if isinstance(value, bool):
            if view.takes("string"):
                found.append(_made("coerce_bool_to_string", path, value, "true" if value else "false", origin))
        elif isinstance(value, int | float):
            source = None if origin.inside else self.lexeme(origin.path)
            if view.takes("boolean") and isinstance(value, int) and value in (0, 1):
                found.append(_made("coerce_number_to_bool", path, value, bool(value), origin))
            if view.takes("string"):
                text = source if source is not None else str(value) if isinstance(value, int) else None
                if text is not None:
                    found.append(_made("coerce_number_to_string", path, value, text, origin))
        return found


def _told_apart(views: list[View], value: Json, known: Views) -> list[View]:
    """The arms of a union that the value itself names: where a key with fixed values has one of them, as `kind` does.

    An arm is left out only where another has the very values that it lacks.
    """
    if len(views) < 2 or not isinstance(value, dict):
        return views
    verdicts = [_named(view, value, known) for view in views]
    if not any(verdict is True for verdict in verdicts):
        return views
    return [view for view, verdict in zip(views, verdicts, strict=True) if verdict is not False]


def _named(view: View, value: dict[str, Json], known: Views) -> bool | None:
    """Whether the keys of fixed values all have one of theirs; None where none of them stands."""
    verdict: bool | None = None
    for key, places in view.properties.items():
        item = value.get(key)
        if not isinstance(item, str) or not item:
            continue
        allowed = [v.enum for v in known.of(places) if v.enum is not None]
        if not allowed:
            continue
        if not any(item in enum for enum in allowed):
            return False
        verdict = True
    return verdict


class _Gone:
    """Marks a member that is to go."""


GONE = _Gone()


def _astray(steps: list[Step]) -> list[Violation]:
    """Keys to be dropped that may belong further out, where any key may stand, as a closing bracket was missing."""
    message = "a closing bracket is missing, and this key may belong further out"
    dropped = [step for step in steps if step.rule == "drop_unknown_key" and not inert(step.before)]
    return [Violation("ambiguous", step.path, message) for step in dropped]


def _unwrapped(steps: list[Step]) -> Violation | None:
    """An array of one that was unwrapped inside the call, though brackets are missing: it may have held more."""
    for step in steps:
        if step.rule == "unwrap_single_array" and step.path:
            return Violation(
                "ambiguous", step.path, "a closing bracket is missing, and where this array ends is a guess"
            )
    return None


def _made(rule: str, path: Path, before: Json, after: Json, origin: Origin) -> Fit:
    shown = None if after is GONE else after
    return Fit(after, RULES[rule].cost, [Step(rule, pointer(path), before, shown, origin)])


def _after(rule: str, path: Path, before: Json, after: Json, inner: Fit | Misfit, origin: Origin) -> Fit | Misfit:
    return _with([Step(rule, pointer(path), before, after, origin)], inner)


def _with(steps: list[Step], inner: Fit | Misfit) -> Fit | Misfit:
    if isinstance(inner, Misfit):
        return inner
    return Fit(inner.value, _cost(steps) + inner.cost, steps + inner.steps)


def _cost(steps: list[Step]) -> int:
    return sum(RULES[step.rule].cost for step in steps)


def _number(text: str) -> int | float:
    return float(text) if any(char in text for char in ".eE") else int(text)
