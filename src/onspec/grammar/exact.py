"""A JSON Schema as an exact grammar: any key order, each key once, required keys complete, escapes as JSON has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from onspec.contract.schema import Schema
from onspec.errors import LimitError, SchemaError
from onspec.grammar import lexemes, numbers, patterns
from onspec.grammar.conjunction import ANNOTATIONS, TYPES, Conj, Document, constants_of, kind_of, kinds_of
from onspec.grammar.formats import pattern_of
from onspec.grammar.notation import JSON, Notation
from onspec.grammar.rules import (
    JSON_SPACING,
    TRACKED,
    Arr,
    Choice,
    Marks,
    Member,
    Obj,
    Pieces,
    Ref,
    Rules,
    Seq,
    Source,
    Spacing,
)

Order = Literal["any", "schema"]

LEFT_TO_JUDGE = frozenset(
    {
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "if",
        "then",
        "else",
        "dependentSchemas",
    }
)
"""Keywords that no grammar here follows; the values they refuse are left to `check`."""

MAX_ALTERNATIVES = 256
"""Alternatives that a product of `anyOf`s under one schema may grow to; further ones are left to the judge."""

MAX_SPELLED = 1_500
"""Characters of declared keys or constants in one place up to which every escaped spelling is offered."""

MOST_LENGTH = 20_000
"""Characters of a string up to which `minLength` and `maxLength` are followed."""

MAX_DEPTH = 200
"""Levels of subschemas inside one another."""

MOST_PATTERNS = 3
"""`patternProperties` of one object up to which a key that fits several gets the schemas of all."""


@dataclass(frozen=True, slots=True)
class Inexact:
    """A keyword that a grammar cannot follow exactly.

    Attributes:
        keyword: Its name.
        effect: `more`: the grammar admits some values that the schema refuses, and `check` must judge;
            `less`: the grammar refuses some rare spellings or values that the schema admits.
    """

    keyword: str
    effect: Literal["more", "less"]


@dataclass(frozen=True, slots=True)
class Options:
    """How exact, and in which form.

    Attributes:
        order: `any`: declared keys in any order, as JSON means it. `schema`: in the schema's order only.
        spacing: White space between the words of JSON.
        spellings: Whether keys and constants may be spelt with escapes (`"p\\u0061th"`). Off, they are written as
            serializers do, which leaves the engine more places with one choice.
        closed: Treat objects that do not say `additionalProperties` as closed.
        formats: Follow `format` where it is known. JSON Schema has it as a remark only, so by default it is none.
    """

    order: Order = "any"
    spacing: Spacing = JSON_SPACING
    spellings: bool = True
    closed: bool = False
    formats: bool = False


@dataclass(frozen=True, slots=True)
class Exact:
    """A schema, compiled.

    Attributes:
        lark: Rules and terminals, without a `start` rule.
        start: Name of the rule of the whole value.
        inexact: What could not be followed exactly, in the order met.
        shortest: A shortest text of the whole value, or None where it is not known.
        pieces: Words from which the end of a half-written value can be made.
    """

    lark: str
    start: str
    inexact: tuple[Inexact, ...]
    shortest: str | None = None
    pieces: Pieces = field(default_factory=Pieces)

    def grammar(self, edges: bool = True) -> str:
        """A whole Lark grammar of the value, with white space at its edges if `edges`."""
        gap = r"/[ \t\r\n]{0,128}/"
        return (
            f"start: {f'EDGE {self.start} EDGE' if edges else self.start}\n"
            + (f"EDGE: {gap}\n" if edges else "")
            + self.lark
        )


def compile_exact(
    schema: Mapping[str, Any] | bool, options: Options | None = None, *, root: str | None = None, prefix: str = ""
) -> Exact:
    """Compile `schema` to a grammar.

    Args:
        schema: A JSON Schema of any draft since 4.
        options: Key order, white space, spellings.
        root: The one type that the whole value may have (`object` for a tool's arguments), or None.
        prefix: Begins every rule name, lower case letters.

    Raises:
        SchemaError: The schema is no JSON Schema, points outside itself, or admits no value at all.
        LimitError: It needs more rules, or is nested more deeply, than documented.
    """
    options = options or Options()
    rules = Rules(options.spacing, prefix)
    compiler = SchemaRules(rules, options)
    start = compiler.add(schema, root)
    alive = rules.admitting()
    if start not in alive:
        raise SchemaError("the schema admits no value, so there is nothing a model could write")
    short = rules.shortest(alive)
    return Exact(
        rules.write([start], alive), start, compiler.inexact, short.get(start), rules.pieces(start, alive, short)
    )


@dataclass(frozen=True, slots=True)
class Shape:
    """What an object's schemas say of its declared keys.

    Attributes:
        values: Schemas of the value, by key; a key whose value admits nothing may not stand.
        required: Keys that must stand.
        needs: Pairs: where the first stands, the second must.
        low: Fewest entries.
        high: Most entries, or None.
    """

    values: Mapping[str, Conj]
    required: frozenset[str]
    needs: tuple[tuple[str, str], ...]
    low: int
    high: int | None


class SchemaRules:
    """Adds schemas to a set of rules."""

    def __init__(self, rules: Rules, options: Options, notation: Notation = JSON) -> None:
        self._rules = rules
        self._notation = notation
        self._scalars = {
            "string": (notation.string(), notation.example("")),
            "integer": (f"/{lexemes.INTEGER}/", "0"),
            "number": (f"/{lexemes.NUMBER}/", "0"),
            "boolean": (f"/{notation.words(True)}|{notation.words(False)}/", notation.true),
            "null": (f"/{notation.words(None)}/", notation.null),
        }
        self._options = options
        self._notes: dict[Inexact, None] = {}
        self._document = Document(True, self.note)
        self._memo: dict[tuple[int, ...], Ref] = {}
        self._keep: list[Document] = []
        self._wide: dict[str, Ref] = {}
        self._depth = 0

    @property
    def inexact(self) -> tuple[Inexact, ...]:
        """What could not be followed exactly so far."""
        return tuple(self._notes)

    def open(self, document: Mapping[str, Any] | bool, root: str | None = None) -> Conj:
        """Turn to another document; the answer is what its whole value must fit.

        Raises:
            SchemaError: It is no JSON Schema.
        """
        Schema(document if isinstance(document, bool) else dict(document))
        self._keep.append(self._document)
        self._document = Document(document, self.note)
        self._memo = {}
        return (document,) if root is None else (document, self._document.made({"type": root}))

    @property
    def document(self) -> Document:
        """The document at hand."""
        return self._document

    def add(self, document: Mapping[str, Any] | bool, root: str | None = None) -> Ref:
        """Add one schema document; the answer is the rule of its values."""
        conj = self.open(document, root)
        try:
            return self.place(conj)
        except RecursionError:
            raise LimitError("the schema is nested too deeply for a grammar") from None

    # --- what holds at one place ---

    def note(self, keyword: str, effect: Literal["more", "less"] = "more") -> None:
        self._notes[Inexact(keyword, effect)] = None

    def place(self, conj: Conj) -> Ref:
        plain = tuple(part for part in conj if part is not True and part != {})
        if len(plain) == 1 and isinstance(plain[0], dict):
            short = self._scalar(plain[0])
            if short is not None:
                return short
        key = tuple(dict.fromkeys(id(part) for part in plain))
        found = self._memo.get(key)
        if found is not None:
            return found
        name = self._rules.reserve()
        self._memo[key] = name
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise LimitError(f"the schema is nested more than {MAX_DEPTH} levels deep")
        self._define(name, plain)
        self._depth -= 1
        return name

    def _scalar(self, schema: Mapping[str, Any]) -> Ref | None:
        """The rule of a schema that is a bare scalar type, the commonest case by far."""
        kind = schema.get("type")
        if (
            not isinstance(kind, str)
            or kind in ("object", "array")
            or any(key != "type" and key not in ANNOTATIONS for key in schema)
        ):
            return None
        if kind == "integer":
            self._note_integer()
        if kind == "string":
            return self._marked(*self._scalars[kind])
        return self._rules.expression(*self._scalars[kind]) if kind in self._scalars else None

    def _marked(self, lark: str, shortest: str | None) -> Ref:
        """The rule of a string: a terminal; or one between special tokens, where those are the notation's marks."""
        known = self._notation
        if known.token is None:
            return self._rules.expression(lark, shortest)
        mark = self._rules.token(known.token, known.marks)
        inner = None if shortest is None else shortest[len(known.marks) : -len(known.marks)]
        return self._rules.add(Seq((mark, self._rules.expression(lark, inner), mark)))

    def _define(self, name: Ref, conj: Conj) -> None:
        flat, choices = self._document.flatten(conj)
        if flat is None:
            self._rules.define(name, None)
            return
        if choices:
            self._rules.define(name, self._choice(flat, choices))
            return
        parts = self.by_type(flat)
        self._rules.define(name, Choice(tuple(parts)) if parts else None)

    def _choice(self, flat: list[dict[str, Any]], choices: list[list[Any]]) -> Choice:
        base = [part for part in flat if any(key not in ANNOTATIONS for key in part)]
        first, later = choices[0], choices[1:]
        size = 1
        kept: list[Any] = []
        for choice in choices:
            size *= max(len(choice), 1)
        if size > MAX_ALTERNATIVES:
            self.note("anyOf (too many combinations)")
            later = []
        kept = [self._document.made({"anyOf": choice}) for choice in later]
        return Choice(tuple(self.place((*base, *kept, alternative)) for alternative in first))

    # --- one node for each type ---

    def by_type(self, flat: list[dict[str, Any]]) -> list[Ref]:
        for part in flat:
            for keyword in part:
                if keyword in LEFT_TO_JUDGE:
                    self.note(keyword)
        values = constants_of(flat)
        if values is not None:
            return self._values(flat, values)
        kinds = kinds_of(flat)
        whole = all(key in ANNOTATIONS or key == "type" for part in flat for key in part)
        if whole and kinds == set(TYPES):
            return [self.anything()]
        found: list[Ref | None] = []
        if "object" in kinds:
            found.append(self._object(flat))
        if "array" in kinds:
            found.append(self._array(flat))
        if "string" in kinds:
            found.append(self._string(flat))
        if "number" in kinds:
            found.append(self._number(flat, integer=False))
        elif "integer" in kinds:
            found.append(self._number(flat, integer=True))
        if "boolean" in kinds:
            found.append(self._rules.expression(*self._scalars["boolean"]))
        if "null" in kinds:
            found.append(self._rules.expression(*self._scalars["null"]))
        return [ref for ref in found if ref is not None]

    def anything(self) -> Ref:
        """The rule of any JSON value."""
        if "any" not in self._wide:
            rules = self._rules
            name = self._wide["any"] = rules.reserve()
            text = self._marked(*self._scalars["string"])
            key = rules.expression(self._notation.any_key(), self._notation.key_example("x"))
            obj = rules.add(Obj((), ((key, name),)))
            arr = rules.add(Arr((), name))
            known = self._notation
            word = rules.terminal("|".join(known.words(value) for value in (True, False, None)), known.null)
            rules.define(name, Choice((obj, arr, text, rules.expression(*self._scalars["number"]), word)))
        return self._wide["any"]

    def _values(self, flat: list[dict[str, Any]], values: list[Any]) -> list[Ref]:
        values = self.allowed(flat, values)
        texts = [value for value in values if isinstance(value, str)]
        every = self._options.spellings and sum(map(len, texts)) <= MAX_SPELLED
        if texts and self._options.spellings and not every:
            self.note("enum (escaped spellings of a large one)", "less")
        known = self._notation
        spelt = [known.spelled(value, every) for value in texts if _sound(value)]
        words = [] if known.token is not None else spelt
        for value in values:
            if value is None or isinstance(value, bool):
                words.append(known.words(value))
            elif isinstance(value, int | float) and _sound(value):
                self.note("number in enum or const (spellings with an exponent)", "less")
                words.append(_number_word(value))
        plain = [self._plain(value) for value in values if not isinstance(value, dict | list) and _sound(value)]
        for word in plain:
            self._rules.literal(word)
        refs = []
        if known.token is not None and spelt:
            quoted = [word for word in plain if word.startswith(known.marks)]
            refs.append(self._marked(f"/{'|'.join(dict.fromkeys(spelt))}/", min(quoted, key=len)))
            plain = [word for word in plain if word not in quoted]
        if words:
            refs.append(self._rules.terminal("|".join(dict.fromkeys(words)), min(plain, key=len)))
        for value in values:
            if isinstance(value, dict):
                own = {key: {"const": part} for key, part in value.items()}
                whole = {"type": "object", "properties": own, "required": list(value), "additionalProperties": False}
                refs.append(self.place((self._document.made(whole),)))
            elif isinstance(value, list):
                items = {"type": "array", "prefixItems": [{"const": v} for v in value], "items": False}
                refs.append(self.place((self._document.made({**items, "minItems": len(value)}),)))
        return refs

    def _plain(self, value: Any) -> str:
        if isinstance(value, str):
            return self._notation.example(value)
        if value is None or isinstance(value, bool):
            known = self._notation
            return known.null if value is None else known.true if value else known.false
        return orjson.dumps(value).decode()

    def allowed(self, flat: list[dict[str, Any]], values: list[Any]) -> list[Any]:
        """Those of `values` that fit all schemas of `flat`."""
        keywords = {key for part in flat for key in part} - ANNOTATIONS
        if keywords and keywords <= {"const", "enum"} and len(flat) == 1:
            return values
        if keywords <= {"const", "enum", "type"} and len(flat) == 1:
            kinds = kinds_of(flat)
            return [value for value in values if kind_of(value) & kinds]
        shared: dict[str, Any] = {}
        whole = self._document.schema
        if isinstance(whole, Mapping):
            shared = {k: whole[k] for k in ("$schema", "$defs", "definitions") if k in whole}
        try:
            judge = Schema({**shared, "allOf": flat}).judge
        except SchemaError:
            self.note("enum beside a $ref")
            return values
        return [value for value in values if judge.is_valid(value)]

    def _string(self, flat: list[dict[str, Any]]) -> Ref | None:
        low, high = self.lengths(flat)
        if high is not None and low > high:
            return None
        limited = bool(low or high is not None)
        shortest: str | None = (self._notation.limited_example if limited else self._notation.example)("x" * low)
        found = [part["pattern"] for part in flat if isinstance(part.get("pattern"), str)]
        found += self.formats(flat)
        terms: list[str] = []
        for pattern in dict.fromkeys(found):
            try:
                terms.append(self._notation.matching(pattern))
                example = patterns.shortest(pattern)
                if high is not None and len(example) > high:
                    return None
                fits = len(terms) == 1 and low <= len(example) and (high is None or len(example) <= high)
                shortest = self._notation.limited_example(example) if fits else None
            except patterns.Unsupported:
                self.note("pattern")
        if terms and low == 0 and high is None:
            return self._marked(" & ".join(terms), shortest)
        return self._marked(" & ".join([*terms, self._notation.string(low, high)]), shortest)

    def lengths(self, flat: list[dict[str, Any]]) -> tuple[int, int | None]:
        """Fewest and most characters, as far as they are followed: no automaton should count to a billion."""
        low = max((int(part.get("minLength", 0)) for part in flat), default=0)
        highs = [int(part["maxLength"]) for part in flat if "maxLength" in part]
        high = min(highs) if highs else None
        if low > MOST_LENGTH:
            self.note(f"minLength (beyond {MOST_LENGTH})")
            low = low if high is not None and low > high else MOST_LENGTH
        if high is not None and high > MOST_LENGTH:
            self.note(f"maxLength (beyond {MOST_LENGTH})")
            high = None
        return low, high

    def formats(self, flat: list[dict[str, Any]]) -> list[str]:
        """Patterns of the formats that are to be followed."""
        names = [part["format"] for part in flat if isinstance(part.get("format"), str)]
        known = [pattern for name in names if self._options.formats and (pattern := pattern_of(name)) is not None]
        if len(known) < len(names):
            self.note("format")
        return known

    def _note_integer(self) -> None:
        self.note("integer with an exponent", "less")
        if self._document.draft == 4:  # Where 1.0 is none.
            self.note("integer written as 1.0")

    def _number(self, flat: list[dict[str, Any]], integer: bool) -> Ref | None:
        bounds = numbers.bounds_of(flat)
        if bounds is None:
            self.note("number (unreadable bounds)")
            bounds = {}
        integer |= bounds.get("multipleOf") == 1
        if integer and "multipleOf" in bounds and numbers.every_whole(bounds):
            del bounds["multipleOf"]
        example: str | None = None
        stepped: dict[str, Any] = {}
        if "multipleOf" in bounds:
            found = numbers.multiples(bounds, integer)
            if found is None:
                return None
            stepped, example = found
            if not numbers.can_be_stepped(bounds):
                self.note("multipleOf (large)")
                del bounds["multipleOf"]
        if integer:
            self._note_integer()
        if not bounds:
            return self._rules.expression(*self._scalars["integer" if integer else "number"])
        if numbers.far(bounds):
            self.note("number (very large or small bounds)")
        if integer and "multipleOf" not in bounds:
            low, high = numbers.whole_bounds(bounds)
            regex = lexemes.integer_between(low, high)
            nearest = example or str(numbers.nearest_zero(low, high))
            return None if regex is None else self._rules.terminal(regex, nearest)
        self.note("bounded number (some spellings)", "less")
        if "multipleOf" not in bounds:
            span = numbers.between(bounds)
            return None if span is None else self._rules.terminal(span[0], example or span[1])
        leaf = {"type": "integer" if integer else "number", **stepped, "x-guidance": {"whitespace_flexible": False}}
        return self._rules.add(Source(f"%json {orjson.dumps(leaf).decode()}", example))

    def _array(self, flat: list[dict[str, Any]]) -> Ref:
        low = max((int(part.get("minItems", 0)) for part in flat), default=0)
        highs = [int(part["maxItems"]) for part in flat if "maxItems" in part]
        firsts: list[list[Any]] = []
        rests: list[Any] = []
        for part in flat:
            prefix, rest = part.get("prefixItems", []), part.get("items", True)
            if isinstance(rest, list):
                prefix, rest = rest, part.get("additionalItems", True)
            if rest is True and "unevaluatedItems" in part:
                rest = part["unevaluatedItems"]
            firsts.append(list(prefix))
            rests.append(rest)
        length = max((len(prefix) for prefix in firsts), default=0)
        first = [
            self.place(tuple(p[i] if i < len(p) else r for p, r in zip(firsts, rests, strict=True)))
            for i in range(length)
        ]
        rest = self.place(tuple(rests)) if False not in rests else None
        return self._rules.add(Arr(tuple(first), rest, low, min(highs) if highs else None))

    def _object(self, flat: list[dict[str, Any]]) -> Ref:
        shape = self.shape(flat)
        every = self._options.spellings and sum(map(len, shape.values)) <= MAX_SPELLED
        if shape.values and self._options.spellings and not every:
            self.note("properties (escaped spellings of very many keys)", "less")
        words = {key: self._notation.key(key, every) for key in shape.values if _sound(key)}
        members = [
            Member(
                self._rules.terminal(words[key], self._notation.key_example(key)),
                self.place(shape.values[key]),
                key in shape.required,
            )
            for key in words
        ]
        others = self._others(flat, words)
        return self.finish(shape, list(words), members, others)

    def shape(self, flat: list[dict[str, Any]]) -> Shape:
        """Declared keys with the schemas of their values, and which of them are needed when."""
        names: dict[str, None] = {}
        for part in flat:
            names.update(dict.fromkeys(part.get("properties", {})))
        required = dict.fromkeys(key for part in flat for key in _strings(part.get("required", ())))
        names.update(required)
        needs = [
            (key, other)
            for part in flat
            for word in ("dependentRequired", "dependencies")
            for key, found in part.get(word, {}).items()
            if isinstance(found, list)
            for other in found
        ]
        if any(isinstance(found, dict) for part in flat for found in part.get("dependencies", {}).values()):
            self.note("dependencies")
        names.update(dict.fromkeys(key for pair in needs for key in pair))
        low = max((int(part.get("minProperties", 0)) for part in flat), default=0)
        highs = [int(part["maxProperties"]) for part in flat if "maxProperties" in part]
        values = {key: self.value_of(flat, key) for key in names}
        return Shape(values, frozenset(required), tuple(needs), low, min(highs) if highs else None)

    def finish(
        self,
        shape: Shape,
        keys: list[str],
        members: list[Member],
        others: list[tuple[Ref | None, Ref]],
        marks: Marks | None = None,
    ) -> Ref:
        """The rule of an object with these members, of which `keys` are the names in order."""
        low, high = shape.low, shape.high
        required = len(shape.required)
        if high is not None and required > high:
            return self._rules.add(None)
        if members and others:
            if low > max(required, 1):
                self.note("minProperties")
                low = 1
            if high is not None:
                self.note("maxProperties")
                high = None
        if others:
            self.note("a repeated undeclared key")
        if len(members) > TRACKED:
            self.note(f"a repeated or missing key beyond the first {TRACKED}")
        index = {key: i for i, key in enumerate(keys)}
        needs = tuple((index[a], index[b]) for a, b in shape.needs if a in index and b in index)
        if needs and high is not None:
            self.note("maxProperties")
            high = None
        ordered = self._options.order == "schema"
        return self._rules.add(Obj(tuple(members), tuple(others), low, high, needs, ordered, marks))

    def value_of(self, flat: list[dict[str, Any]], key: str) -> Conj:
        """The schemas that the value of `key` must fit."""
        out: list[Any] = []
        for part in flat:
            own = part.get("properties", {})
            hit = key in own
            if hit:
                out.append(own[key])
            for pattern, schema in part.get("patternProperties", {}).items():
                if _found(pattern, key):
                    hit = True
                    out.append(schema)
            if not hit:
                out.append(self._rest(part))
            if "propertyNames" in part and not self._names_allow(part["propertyNames"], key):
                out.append(False)
        return tuple(out)

    def rest_of(self, flat: list[dict[str, Any]]) -> Conj:
        """The schemas that the value of a key must fit that is declared nowhere."""
        if any("patternProperties" in part or "propertyNames" in part for part in flat):
            self.note("patternProperties, propertyNames")
        return tuple(self._rest(part) for part in flat)

    def _rest(self, part: dict[str, Any]) -> Any:
        """The schema of keys that `part` declares nowhere."""
        if "additionalProperties" in part:
            return part["additionalProperties"]
        if "unevaluatedProperties" in part:
            return part["unevaluatedProperties"]
        return not (self._options.closed and "properties" in part)

    def _names_allow(self, schema: Any, key: str) -> bool:
        return bool(self.allowed([schema], [key])) if isinstance(schema, dict) else bool(schema)

    def _others(self, flat: list[dict[str, Any]], words: Mapping[str, str]) -> list[tuple[Ref | None, Ref]]:
        """Terminals of keys that are not declared, with the rules of their values."""
        found = list(dict.fromkeys(p for part in flat for p in part.get("patternProperties", {})))
        if not self._notation.is_json and (found or any("propertyNames" in part for part in flat)):
            self.note("patternProperties, propertyNames")
            found = []
        known: dict[str, str] = {}
        for pattern in found:
            try:
                known[pattern] = f'/"{patterns.containing(pattern)}"/'
            except patterns.Unsupported:
                self.note("patternProperties")
        loose = len(known) < len(found) or len(found) > MOST_PATTERNS
        if len(found) > MOST_PATTERNS:
            self.note(f"patternProperties (more than {MOST_PATTERNS} patterns)")
        base = [self._notation.any_key()]
        for part in flat:
            if "propertyNames" in part and self._notation.is_json:
                base += self._key_terms(part["propertyNames"])
        if words:
            base.append("~/(" + "|".join(words.values()) + ")/")
        if loose:
            ways = [schema for part in flat for schema in part.get("patternProperties", {}).values()]
            ways += [self._rest(part) for part in flat]
            key = self._rules.expression(" & ".join(base), None)
            return [(key, self._rules.add(Choice(tuple(self.place((way,)) for way in ways))))]
        out: list[tuple[Ref | None, Ref]] = []
        listed = list(known)
        for chosen in range(1 << len(listed)):
            inside = {pattern for i, pattern in enumerate(listed) if chosen >> i & 1}
            conj: list[Any] = []
            for part in flat:
                own = part.get("patternProperties", {})
                hits = [schema for pattern, schema in own.items() if pattern in inside]
                conj += hits or [self._rest(part)]
            if False in conj:
                continue
            terms = [*base, *(known[p] if p in inside else f"~{known[p]}" for p in listed)]
            example = self._key_example(flat, words, listed, inside)
            out.append((self._rules.expression(" & ".join(terms), example), self.place(tuple(conj))))
        return out

    def _key_example(
        self, flat: list[dict[str, Any]], words: Mapping[str, str], listed: list[str], inside: set[str]
    ) -> str | None:
        tries = [f"x{number or ''}" for number in range(20)]
        for pattern in inside:
            tries.insert(0, patterns.shortest(pattern))
        names = [part["propertyNames"] for part in flat if "propertyNames" in part]
        for key in tries:
            fits = all(_found(pattern, key) == (pattern in inside) for pattern in listed)
            if fits and key not in words and all(self._names_allow(schema, key) for schema in names):
                return self._notation.key_example(key)
        return None

    def _key_terms(self, schema: Any) -> list[str]:
        if schema is True or schema == {}:
            return []
        flat, choices = self._document.flatten((schema,))
        if flat is None or "string" not in kinds_of(flat):
            return ['/"/ & /x/']
        if any(LEFT_TO_JUDGE & part.keys() for part in flat):
            self.note("propertyNames")
        if choices or constants_of(flat) is not None:
            values = constants_of(flat)
            if not choices and values is not None:
                texts = [v for v in self.allowed(flat, values) if isinstance(v, str)]
                return ["/(" + "|".join(lexemes.spelled(text, True) for text in texts) + ")/"]
            self.note("propertyNames")
            return []
        low, high = self.lengths(flat)
        terms = [f"/{lexemes.string_of_length(low, high)}/"] if low or high is not None else []
        for part in flat:
            if isinstance(part.get("pattern"), str):
                try:
                    terms.append(f'/"{patterns.containing(part["pattern"])}"/')
                except patterns.Unsupported:
                    self.note("propertyNames")
        return terms


def _number_word(value: float) -> str:
    """The usual spellings of one number: as serializers write it, and in full."""
    forms = (repr(value), repr(value).replace("e+", "e"), orjson.dumps(value).decode())
    words = [lexemes.escape(form) for form in forms]
    if value == int(value):
        words.append(("-?" if value == 0 else "") + lexemes.escape(str(int(value))) + r"(\.0+)?")
    elif "e" not in repr(value):
        words.append(lexemes.escape(repr(value)) + "0*")
    return "|".join(dict.fromkeys(words))


def _sound(value: Any) -> bool:
    """Whether a scalar can stand in JSON text: no lone surrogate, no infinity."""
    if isinstance(value, str):
        return not any(0xD800 <= ord(char) <= 0xDFFF for char in value)
    return not isinstance(value, float) or value - value == 0


def _strings(values: Any) -> list[str]:
    # Draft 3 wrote `required: true` inside a property.
    return [value for value in values if isinstance(value, str)] if isinstance(values, list | tuple) else []


def _found(pattern: str, key: str) -> bool:
    try:
        return bool(Schema({"pattern": pattern}).judge.is_valid(key))
    except SchemaError:
        return False
