"""Grammar rules while they are being built: what each admits, pruned of what can never end, and written as Lark."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onspec.errors import LimitError
from onspec.grammar import lexemes

MAX_RULES = 50_000
"""Rules in one grammar; a schema that needs more is refused."""

TRACKED = 62
"""Keys of one object whose presence is followed: llguidance gives a rule 64 bits, one of which marks other keys."""

MOST_PIECE = 20_000
"""Characters of the longest shortest text that is put together."""

MARK = 63
"""The bit that says that an undeclared key was written."""

MOST_LITERALS = 2_000
"""Constants that are remembered as pieces for closing."""

EMPTY = '""'
"""Nothing, in Lark."""

Ref = str
"""Name of a terminal (upper case) or of a rule (lower case)."""


@dataclass(frozen=True, slots=True)
class Spacing:
    """Where white space may stand between the words of JSON.

    Attributes:
        between: Most white-space characters in a row. 0: none but those of `comma` and `colon`.
        comma: What separates members where `between` is 0.
        colon: What separates a key from its value where `between` is 0.
    """

    between: int = 128
    comma: str = ","
    colon: str = ":"


JSON_SPACING = Spacing()
"""White space as JSON allows it, bounded so that it cannot go on for ever."""

PYTHON_SPACING = Spacing(0, ", ", ": ")
"""As `json.dumps` writes: the form most models were trained on."""

COMPACT_SPACING = Spacing(0, ",", ":")
"""No white space at all."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several rules."""

    parts: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A rule body already in Lark, with a shortest text that it admits, or None where that is not known."""

    lark: str
    shortest: str | None = None


@dataclass(frozen=True, slots=True)
class Seq:
    """Several rules one after the other."""

    parts: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Many:
    """A rule repeated, with a separator between."""

    part: Ref
    between: Ref | None = None
    low: int = 0


@dataclass(frozen=True, slots=True)
class Marks:
    """What stands around and between the members of an object; None is nothing."""

    opened: Ref | None
    closed: Ref | None
    comma: Ref | None
    colon: Ref | None


@dataclass(frozen=True, slots=True)
class Member:
    """A declared key of an object, and the rule of its value; the value holds the key where `key` is None."""

    key: Ref | None
    value: Ref
    required: bool


@dataclass(frozen=True, slots=True)
class Obj:
    """A JSON object.

    Attributes:
        members: Declared keys, in the schema's order.
        others: Terminals of undeclared keys, each with the rule of its value, which holds the key where that is None.
        low: Fewest entries.
        high: Most entries, or None.
        needs: Pairs of indexes: where the first key stands, the second must.
        ordered: Whether declared keys come in the schema's order only, before undeclared ones.
        marks: What stands around and between members; None for JSON's own.
    """

    members: tuple[Member, ...]
    others: tuple[tuple[Ref | None, Ref], ...]
    low: int = 0
    high: int | None = None
    needs: tuple[tuple[int, int], ...] = ()
    ordered: bool = False
    marks: Marks | None = None


@dataclass(frozen=True, slots=True)
class Arr:
    """A JSON array.

    Attributes:
        first: Rules of the first items.
        rest: Rule of all further items, or None where there may be none.
        low: Fewest items.
        high: Most items, or None.
    """

    first: tuple[Ref, ...]
    rest: Ref | None
    low: int = 0
    high: int | None = None


@dataclass(frozen=True, slots=True)
class ObjectPieces:
    """One kind of object, as far as ending it needs.

    Attributes:
        under: JSON texts of the keys under which it stands; "" is the whole value, "*" any undeclared key.
        members: Members that may be needed: JSON text of the key, and of a shortest value.
        words: JSON texts of all declared keys.
    """

    under: frozenset[str]
    members: tuple[tuple[str, str], ...]
    words: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pieces:
    """Words from which the end of a half-written value can be made.

    Attributes:
        objects: Members that objects may miss.
        values: Short whole values.
        raw: Whether the text is not JSON, so that quotes and brackets mean nothing.
        ends: Texts that close a raw string.
        whole: A shortest text of everything, or None.
        specials: Names of the special tokens that the grammar uses, each with its id: in all these texts they stand for
            the token.
    """

    objects: tuple[ObjectPieces, ...] = ()
    values: tuple[str, ...] = ()
    raw: bool = False
    ends: tuple[str, ...] = ()
    whole: str | None = None
    specials: tuple[tuple[str, int], ...] = ()


Node = Choice | Source | Seq | Many | Obj | Arr


class Rules:
    """The rules and terminals of one grammar.

    Args:
        spacing: White space between the words of JSON.
        prefix: Begins every name, so that several grammars can be put into one text.
    """

    def __init__(self, spacing: Spacing = JSON_SPACING, prefix: str = "") -> None:
        self.spacing = spacing
        self._prefix = prefix
        self._nodes: dict[Ref, Node | None] = {}
        self._terminals: dict[str, Ref] = {}
        self._alias: dict[Ref, Ref] = {}
        self._examples: dict[Ref, str] = {}
        self._literals: dict[str, None] = {}
        self._tokens: set[Ref] = set()
        self._specials: dict[str, int] = {}
        self._lazy: set[Ref] = set()
        self._marks()

    # --- collecting ---

    def terminal(self, regex: str, shortest: str | None = None) -> Ref:
        """The terminal that matches `regex`, with a shortest text of it where one is known."""
        return self.expression(f"/{regex}/", shortest)

    def expression(self, lark: str, shortest: str | None) -> Ref:
        """The terminal of a Lark terminal expression, with a shortest text of it where one is known."""
        found = self._terminals.get(lark)
        if found is None:
            found = self._terminals[lark] = f"{self._prefix.upper()}T{len(self._terminals)}"
            if shortest is not None:
                self._examples[found] = shortest
        return found

    def lazy(self, lark: str, shortest: str | None) -> Ref:
        """A rule that matches as little as a terminal expression allows: text up to the first of something."""
        name = self.add(Seq((self.expression(lark, shortest),)))
        self._lazy.add(name)
        return name

    def token(self, number: int, name: str) -> Ref:
        """The special token with this id and name."""
        found = f"<[{number}]>"
        self._tokens.add(found)
        self._examples[found] = name
        self._specials[name] = number
        return found

    def words(self, text: str, specials: Mapping[str, int]) -> tuple[Ref, ...]:
        """A fixed text: its special tokens where the vocabulary has them, terminals for the rest."""
        if not text:
            return ()
        known = sorted((name for name in specials if name and name in text), key=len, reverse=True)
        pieces = re.split("(" + "|".join(map(re.escape, known)) + ")", text) if known else [text]
        return tuple(
            self.token(specials[piece], piece) if piece in specials else self.terminal(lexemes.escape(piece), piece)
            for piece in pieces
            if piece
        )

    def literal(self, text: str) -> None:
        """Make known a constant that the grammar admits somewhere."""
        if len(self._literals) < MOST_LITERALS:
            self._literals[text] = None

    def reserve(self) -> Ref:
        """A name for a rule whose body is not known yet, so that it may speak of itself.

        Raises:
            LimitError: The grammar has `MAX_RULES` rules already.
        """
        if len(self._nodes) >= MAX_RULES:
            raise LimitError(f"the tools need more than {MAX_RULES} grammar rules; use fewer or simpler schemas")
        name = f"{self._prefix}r{len(self._nodes)}"
        self._nodes[name] = None
        return name

    def define(self, name: Ref, node: Node | None) -> None:
        """Give a reserved rule its body; None admits nothing."""
        self._nodes[name] = node

    def add(self, node: Node | None) -> Ref:
        """A new rule."""
        name = self.reserve()
        self._nodes[name] = node
        return name

    def node_of(self, name: Ref) -> Node | None:
        """The body of a rule, for writers of other grammar languages."""
        return self._nodes.get(name)

    def lark_of(self, name: Ref) -> str | None:
        """The Lark expression of a terminal, or None where `name` is a rule."""
        return next((lark for lark, terminal in self._terminals.items() if terminal == name), None)

    # --- what admits something ---

    def admitting(self) -> set[Ref]:
        """The rules that admit at least one text: a least fixed point, so recursion without an end is left out."""
        alive: set[Ref] = set(self._terminals.values()) | self._tokens
        users: dict[Ref, list[Ref]] = {}
        for name, node in self._nodes.items():
            for part in _parts(node):
                users.setdefault(part, []).append(name)
        todo = OrderedDict.fromkeys(self._nodes)  # each waits once, and is not read anew for each of its parts
        while todo:
            name, _ = todo.popitem(last=False)
            if name not in alive and _admits(self._nodes[name], alive):
                alive.add(name)
                todo.update((user, None) for user in users.get(name, ()) if user not in alive)
        return alive

    # --- shortest texts ---

    def shortest(self, alive: set[Ref]) -> dict[Ref, str]:
        """A short text for each rule where one can be put together: the shortest found when nothing improves."""
        known = dict(self._examples)
        users: dict[Ref, list[Ref]] = {}
        for name, node in self._nodes.items():
            for part in _parts(node):
                users.setdefault(part, []).append(name)
        todo = OrderedDict.fromkeys(name for name in self._nodes if name in alive)
        while todo:
            name, _ = todo.popitem(last=False)
            node = self._nodes[name]
            text = self._short(node, known, alive) if node is not None else None
            if text is not None and len(text) <= MOST_PIECE and (name not in known or len(text) < len(known[name])):
                known[name] = text
                todo.update((user, None) for user in users.get(name, ()) if user in alive)
        return known

    def _short(self, node: Node, known: dict[Ref, str], alive: set[Ref]) -> str | None:
        if isinstance(node, Source):
            return node.shortest
        if isinstance(node, Choice):
            texts = [known[part] for part in node.parts if part in known]
            return min(texts, key=len) if texts else None
        if isinstance(node, Seq):
            parts = [known.get(part) for part in node.parts]
            return None if None in parts else "".join(part for part in parts if part is not None)
        if isinstance(node, Many):
            return known.get(node.part) if node.low else ""
        comma, colon = self._joints()
        if isinstance(node, Arr):
            if node.low > MOST_PIECE:
                return None
            wanted = [*node.first, *([node.rest or ""] * max(node.low - len(node.first), 0))][: node.low]
            if any(part not in known for part in wanted):
                return None
            return "[" + comma.join(known[part] for part in wanted) + "]"
        chosen = [member for member in node.members if member.required]
        for member in node.members:
            if len(chosen) < node.low and not member.required and member.value in known:
                chosen.append(member)
        chosen = _with_needed(node, chosen)
        if any(member.value not in known for member in chosen):
            return None
        if node.ordered:
            place = _places(node)
            chosen.sort(key=lambda member: place[id(member)])
        if node.marks is not None:
            opened, closed, comma, colon = (known.get(mark, "") for mark in self._object_marks(node))
            words = [_joined_text(known.get(m.key or ""), colon, known[m.value]) for m in chosen]
            return opened + comma.join(words) + closed
        entries = [f"{known[m.key]}{colon}{known[m.value]}" for m in chosen if m.key is not None]
        entries += [f"{key}{colon}{value}" for key, value in _undeclared(node, known)[: node.low - len(chosen)]]
        return "{" + comma.join(entries) + "}" if len(entries) >= node.low else None

    def pieces(self, start: Ref, alive: set[Ref], short: dict[Ref, str]) -> Pieces:
        """What `onspec.grammar.closing` needs to end a half-written value of rule `start`."""
        under: dict[Ref, set[str]] = {}
        todo: list[tuple[Ref, str]] = [(start, "")]
        seen: set[tuple[Ref, str]] = set()
        while todo:
            name, via = todo.pop()
            if (name, via) in seen or name not in alive:
                continue
            seen.add((name, via))
            node = self._nodes.get(name)
            if isinstance(node, Obj):
                under.setdefault(name, set()).add(via)
                todo += [(member.value, short.get(member.key or "", "")) for member in node.members]
                todo += [(value, "*") for _, value in node.others]
            else:
                todo += [(part, via) for part in _parts(node)]
        objects = []
        for name, keys in under.items():
            node = self._nodes[name]
            assert isinstance(node, Obj)
            wanted = [m for m in node.members if m.required or node.low or node.needs]
            found = [(short[m.key], short[m.value]) for m in wanted if m.key and m.key in short and m.value in short]
            found += _undeclared(node, short)[: max(node.low, len(node.others))]
            words = tuple(short[m.key] for m in node.members if m.key and m.key in short)
            if found:
                objects.append(ObjectPieces(frozenset(keys), tuple(found), frozenset(words)))
        entries = {
            f"{short[m.key]}{colon}{short[m.value]}"
            for node in self._nodes.values()
            if isinstance(node, Obj) and node.marks is not None
            for colon in [short.get(node.marks.colon or "", "")]
            for m in node.members
            if m.key is not None and m.key in short and m.value in short
        }
        used = {part for name in self._nodes if name in alive for part in _parts(self._nodes[name])} | {start}
        values = sorted(
            {short[name] for name in used & set(short) if name in alive} | entries | set(self._literals), key=len
        )
        return Pieces(
            tuple(objects), tuple(text for text in values if len(text) <= MOST_PIECE), whole=short.get(start),
            specials=tuple(self._specials.items()),
        )  # fmt: skip

    def _joints(self) -> tuple[str, str]:
        return (",", ":") if self.spacing.between else (self.spacing.comma, self.spacing.colon)

    # --- writing ---

    def write(self, starts: Iterable[Ref], alive: set[Ref]) -> str:
        """Lark text of all rules that `starts` reach, without those that are not `alive`."""
        lines: list[str] = []
        self._alias = self._aliases(alive)
        wanted = list(starts)
        written: set[Ref] = set()
        terminals = {name: lark for lark, name in self._terminals.items()}
        used: set[Ref] = set()
        while wanted:
            name = wanted.pop()
            if name in written or name not in alive:
                continue
            written.add(name)
            if name in terminals:
                used.add(name)
                continue
            if name in self._tokens:
                continue
            node = self._nodes[name]
            assert node is not None
            body, needed = self._body(name, node, alive)
            lines.append(body)
            wanted += [self._alias.get(ref, ref) for ref in needed]
        # Terminals may be named in the expressions of others.
        for name in list(used):
            self._close(name, terminals, used)
        for name in self._marks():
            self._close(name, terminals, used)
        return "\n".join(lines + [f"{name}: {terminals[name]}" for name in terminals if name in used]) + "\n"

    def _aliases(self, alive: set[Ref]) -> dict[Ref, Ref]:
        """Rules that are nothing but another name of one rule, each with that rule."""
        direct: dict[Ref, Ref] = {}
        for name, node in self._nodes.items():
            if isinstance(node, Choice) and name in alive:
                parts = {part for part in node.parts if part in alive}
                if len(parts) == 1:
                    direct[name] = parts.pop()
        out: dict[Ref, Ref] = {}
        for name in direct:
            end, seen = name, {name}
            while end in direct and direct[end] not in seen:
                end = direct[end]
                seen.add(end)
            out[name] = end
        return out

    def _close(self, name: Ref, terminals: dict[Ref, str], used: set[Ref]) -> None:
        used.add(name)
        if "/" not in terminals[name][:1]:
            for other in terminals:
                if other not in used and other in terminals[name].split():
                    self._close(other, terminals, used)

    def _marks(self) -> tuple[Ref, Ref, Ref, Ref, Ref, Ref]:
        limit = self.spacing.between
        gap = rf"[ \t\r\n]{{0,{limit}}}" if limit else ""
        comma = f"{gap},{gap}" if limit else lexemes.escape(self.spacing.comma)
        colon = f"{gap}:{gap}" if limit else lexemes.escape(self.spacing.colon)
        forms = (rf"\{{{gap}", rf"{gap}\}}", rf"\[{gap}", rf"{gap}\]", comma, colon)
        found = [self.terminal(form) for form in forms]
        return found[0], found[1], found[2], found[3], found[4], found[5]

    def _body(self, name: Ref, node: Node, alive: set[Ref]) -> tuple[str, list[Ref]]:
        if isinstance(node, Source):
            return f"{name}: {node.lark}", []
        if isinstance(node, Choice):
            parts = list(dict.fromkeys(self._alias.get(part, part) for part in node.parts if part in alive))
            return f"{name}: {' | '.join(parts)}", parts
        if isinstance(node, Seq):
            parts = [self._alias.get(part, part) for part in node.parts]
            return f"{name}{'[lazy]' if name in self._lazy else ''}: {' '.join(parts) or EMPTY}", parts
        if isinstance(node, Many):
            part = self._alias.get(node.part, node.part)
            if node.between is None:
                return f"{name}: {part}{'+' if node.low else '*'}", [part]
            body = f"{part} ({node.between} {part})*"
            return f"{name}: {body if node.low else f'({body})?'}", [part, node.between]
        if isinstance(node, Arr):
            return self._array(name, node, alive)
        return self._object(name, node, alive)

    def _array(self, name: Ref, node: Arr, alive: set[Ref]) -> tuple[str, list[Ref]]:
        _, _, opened, closed, comma, _ = self._marks()
        first: list[Ref] = []
        for part in node.first:
            if part not in alive:
                break
            first.append(part)
        first = [self._alias.get(part, part) for part in first]
        rest = node.rest if node.rest in alive and len(first) == len(node.first) else None
        rest = self._alias.get(rest, rest) if rest is not None else None
        high = node.high
        if rest is None:
            high = len(first) if high is None else min(high, len(first))
        first = first[: high if high is not None else len(first)]
        low = node.low
        many = ""
        if rest is not None and (high is None or high > len(first)):
            fewest = max(low - len(first), 0)
            most = None if high is None else high - len(first)
            if first:
                many = _repeat(f"({comma} {rest})", fewest, most)
            else:
                inner = f"{rest} {_repeat(f'({comma} {rest})', fewest - 1, None if most is None else most - 1)}"
                many = inner if fewest else f"({inner})?"
        # Prefix items nest from the back: what may be absent takes all that follows with it.
        for index in range(len(first) - 1, -1, -1):
            lead = f"{comma} {first[index]}" if index else first[index]
            whole = f"{lead} {many}".strip()
            many = whole if index < low else f"({whole})?"
        needed = [*first, *([rest] if rest is not None else [])]
        return f"{name}: {opened} {many} {closed}", needed

    def _object(self, name: Ref, node: Obj, alive: set[Ref]) -> tuple[str, list[Ref]]:
        opened, closed, comma, colon = self._object_marks(node)
        members = [member for member in node.members if member.value in alive]
        others = [(key, self._alias.get(value, value)) for key, value in node.others if value in alive]
        needed = [ref for member in members for ref in (member.key, member.value) if ref is not None]
        needed += [ref for pair in others for ref in pair if ref is not None]
        if node.marks is not None:
            marks = (node.marks.opened, node.marks.closed, node.marks.comma, node.marks.colon)
            needed += [ref for ref in marks if ref is not None]
        if not members:
            return self._map(name, node, others, needed)
        # Required keys take the first bits, so that "all there" is one comparison.
        ranked = sorted(range(len(members)), key=lambda i: (not members[i].required, i))
        bits = {index: rank for rank, index in enumerate(ranked) if rank < TRACKED}
        required = sum(member.required for member in members)
        tracked_required = min(required, TRACKED)
        places = _places(node)
        place = {places[id(member)]: i for i, member in enumerate(members)}
        end = self._end_condition(node, tracked_required, place, bits)
        first_lines: list[str] = []
        next_lines = [f"{closed or EMPTY}{_when(end)}"]
        last_required: int | None = None
        for index, member in enumerate(members):
            bit = bits.get(index)
            value = self._alias.get(member.value, member.value)
            entry = _joined(member.key, colon if member.key else "", value)
            step = f"{name}n::set_bit({bit})" if bit is not None else f"{name}n::_"
            if node.ordered and bit is not None:
                tests = [f"bit_clear({bits[i]})" for i in range(index, len(members)) if i in bits]
                tests.append(f"bit_clear({MARK})")
                if last_required is not None:
                    tests.append(f"bit_set({last_required})")
                start_allowed = last_required is None
            else:
                tests = [f"bit_clear({bit})"] if bit is not None else []
                start_allowed = True
            if node.high is not None and not member.required:
                room = node.high - required
                tests.append(f"bit_count_lt([{tracked_required}:64], {room})")
                start_allowed = start_allowed and room > 0
            if start_allowed:
                first_lines.append(f"{entry} {step}")
            next_lines.append(_joined(comma, entry, step) + _when(tests))
            if member.required and bit is not None:
                last_required = bit
        for key, value in others:
            step = f"{name}n::set_bit({MARK})"
            tests = [f"bit_set({last_required})"] if node.ordered and last_required is not None else []
            entry = _joined(key, colon if key else "", value)
            if not tests:
                first_lines.append(_joined(entry, step))
            next_lines.append(_joined(comma, entry, step) + _when(tests))
        empty = f" | {_joined(opened, closed) or EMPTY}" if required == 0 and node.low == 0 else ""
        return (
            f"{name}: {_joined(opened, f'{name}f::0')}{empty}\n"
            f"{name}f::_: " + "\n  | ".join(first_lines) + f"\n{name}n::_: " + "\n  | ".join(next_lines),
            needed,
        )

    def _end_condition(self, node: Obj, required: int, place: dict[int, int], bits: dict[int, int]) -> list[str]:
        tests = []
        if required == 1:
            tests.append("bit_set(0)")
        elif required:
            tests.append(f"is_ones([0:{required}])")
        if node.low > max(required, 1):
            tests.append(f"bit_count_ge(_, {node.low})")
        for first, second in node.needs:
            one, other = bits.get(place.get(first, -1)), bits.get(place.get(second, -1))
            if one is None or first == second:
                continue
            tests.append(f"bit_clear({one})" if other is None else f"or(bit_clear({one}), bit_set({other}))")
        return list(dict.fromkeys(tests))

    def _map(
        self, name: Ref, node: Obj, others: list[tuple[Ref | None, Ref]], needed: list[Ref]
    ) -> tuple[str, list[Ref]]:
        opened, closed, comma, colon = self._object_marks(node)
        if not others or node.high == 0:
            return f"{name}: {_joined(opened, closed) or EMPTY}", needed
        entry = " | ".join(_joined(key, colon if key else "", value) for key, value in others)
        pair = f"({entry})" if len(others) > 1 else entry
        most = None if node.high is None else node.high - 1
        body = f"{pair} {_repeat(f'({_joined(comma, pair)})', node.low - 1, most)}"
        return f"{name}: {_joined(opened, body if node.low else f'({body})?', closed)}", needed

    def _object_marks(self, node: Obj) -> tuple[Ref, Ref, Ref, Ref]:
        if node.marks is None:
            opened, closed, _, _, comma, colon = self._marks()
            return opened, closed, comma, colon
        marks = node.marks
        return marks.opened or "", marks.closed or "", marks.comma or "", marks.colon or ""


def _with_needed(node: Obj, chosen: list[Member]) -> list[Member]:
    """`chosen`, and the members that they need, and those that these need."""
    if not node.needs:
        return chosen
    needed: dict[int, list[int]] = {}
    for first, second in node.needs:
        needed.setdefault(first, []).append(second)
    places = {id(member): index for index, member in enumerate(node.members)}
    todo = [places[id(member)] for member in chosen]
    found = dict.fromkeys(todo)
    while todo:
        for index in needed.get(todo.pop(), ()):
            if index not in found:
                found[index] = None
                todo.append(index)
    return [node.members[index] for index in found]


def _joined_text(key: str | None, colon: str, value: str) -> str:
    return value if key is None else f"{key}{colon}{value}"


def _joined(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)


def _undeclared(node: Obj, known: dict[Ref, str]) -> list[tuple[str, str]]:
    """Undeclared entries that may fill an object up to its fewest, with keys that differ."""
    out: list[tuple[str, str]] = []
    for key, value in node.others:
        if key is not None and key in known and value in known:
            out.append((known[key], known[value]))
            if known[key] == '"x"':
                out += [(f'"x-{number}"', known[value]) for number in range(min(node.low, 1_000) - 1)]
    return out


def _repeat(part: str, low: int, high: int | None) -> str:
    low = max(low, 0)
    if high == 0:
        return ""
    if high is None:
        return f"{part}*" if low == 0 else f"{part}{{{low},}}"
    return f"{part}{{{low},{high}}}"


def _when(tests: list[str]) -> str:
    if not tests:
        return ""
    whole = tests[-1]
    for test in reversed(tests[:-1]):
        whole = f"and({test}, {whole})"
    return f" %if {whole}"


def _places(node: Obj) -> dict[int, int]:
    """Where each member of an object stands, by its identity."""
    return {id(member): index for index, member in enumerate(node.members)}


def _parts(node: Node | None) -> list[Ref]:
    if isinstance(node, Choice | Seq):
        return list(node.parts)
    if isinstance(node, Many):
        return [node.part]
    if isinstance(node, Obj):
        return [member.value for member in node.members] + [value for _, value in node.others]
    if isinstance(node, Arr):
        return [*node.first, *([node.rest] if node.rest is not None else [])]
    return []


def _admits(node: Node | None, alive: set[Ref]) -> bool:
    if node is None:
        return False
    if isinstance(node, Source):
        return True
    if isinstance(node, Seq):
        return all(part in alive for part in node.parts)
    if isinstance(node, Many):
        return node.low == 0 or node.part in alive
    if isinstance(node, Choice):
        return any(part in alive for part in node.parts)
    if isinstance(node, Arr):
        reach = 0
        for part in node.first:
            if part not in alive:
                break
            reach += 1
        else:
            if node.rest is not None and node.rest in alive:
                return node.high is None or node.low <= node.high
        return node.low <= (reach if node.high is None else min(reach, node.high))
    required = sum(member.required for member in node.members)
    if any(member.required and member.value not in alive for member in node.members):
        return False
    if node.high is not None and (required > node.high or node.low > node.high):
        return False
    keys = sum(member.value in alive for member in node.members)
    return bool(any(value in alive for _, value in node.others)) or keys >= node.low
