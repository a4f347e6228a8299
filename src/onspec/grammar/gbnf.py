"""GBNF with a lazy trigger: what a llama.cpp server takes to constrain calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import orjson

from onspec.contract.tool import Tool
from onspec.errors import InputError
from onspec.grammar import lexemes
from onspec.grammar.exact import Inexact, Options, Order, SchemaRules
from onspec.grammar.forms import form_of
from onspec.grammar.free import FREE_TEXT
from onspec.grammar.notation import JSON
from onspec.grammar.rules import Arr, Choice, Member, Node, Obj, Ref, Rules, Seq, Spacing

WORD = 1
"""`COMMON_GRAMMAR_TRIGGER_TYPE_WORD` of llama.cpp's server."""

_NOTHING = '""'

MOST_FREE = 6
"""Keys of one object up to which any order is offered: a rule is needed for each set of them."""

MOST_REPEATS = 2_000
"""Largest bound of a repetition that llama.cpp reads (`MAX_REPETITION_THRESHOLD`); larger ones are left open."""

MOST_WRITTEN_OUT = 64
"""Largest bound of a repeated group that stands in its place."""

_REPEATED = re.compile(r"(?<!\\)\{(\d+),(\d*)\}")

_GAP = "[ \\t\\n]{0,20}"


@dataclass(frozen=True, slots=True)
class Gbnf:
    """A grammar for llama.cpp.

    Attributes:
        grammar: GBNF text; its root begins with the trigger, as lazy grammars do.
        trigger: What switches it on.
        inexact: What could not be followed exactly. Undeclared keys beside declared ones are refused, since GBNF cannot
            exclude names; objects of many keys have them in the schema's order only, and it says so here.
    """

    grammar: str
    trigger: str
    inexact: tuple[Inexact, ...]

    def request(self) -> dict[str, Any]:
        """Fields for the server's `/completion` and `/v1/chat/completions`."""
        if not self.trigger:
            return {"grammar": self.grammar}
        triggers = [{"type": WORD, "value": self.trigger}]
        return {"grammar": self.grammar, "grammar_lazy": True, "grammar_triggers": triggers}


def gbnf(tools: Sequence[Tool], dialect: str, choice: str = "auto", *, order: Order = "any") -> Gbnf:
    """The grammar of one call in a dialect whose body is a JSON object.

    Args:
        tools: The tools that may be called.
        dialect: Any whose calls are JSON, with the name inside or in a header.
        choice: `auto`, `required`, or the name of one tool.
        order: `any`: keys in any order, in objects of up to `MOST_FREE` keys. `schema`: in the schema's order only.

    Raises:
        InputError: The dialect is unknown or writes no JSON, or no tool is called so.
        SchemaError: A tool's schema admits nothing.
    """
    form = form_of(dialect)
    if form.style not in ("json", "envelope", "keyed", "harmony"):
        raise InputError(f"GBNF is written for dialects whose call body is JSON, not for {dialect!r}")
    chosen = [tool for tool in tools if choice in ("auto", "required", tool.name)]
    if not chosen:
        raise InputError(f"no tool is called {choice!r}" if tools else "there is no tool")
    rules = Rules(Spacing(20))
    schemas = SchemaRules(rules, Options(order=order, spellings=False))
    calls: list[Ref] = []
    for tool in chosen:
        body = schemas.add(tool.schema.document if tool.schema is not None else FREE_TEXT, "object")
        if form.style in ("envelope", "keyed"):
            name = rules.terminal(JSON.spelled(tool.name, False))
            fixed = [(key, schemas.add(orjson.loads(schema))) for key, schema in form.fixed]
            pairs = [(form.keys[0], name), *fixed, (form.keys[1], body)]
            if form.style == "keyed":
                pairs = [(tool.name, body)]
            members = tuple(Member(rules.terminal(JSON.spelled(key, False)), value, True) for key, value in pairs)
            calls.append(rules.add(Obj(members, (), ordered=order == "schema")))
        else:
            head = form.call.replace("{name}", tool.name).replace("{index}", "0").replace("{call_id}", "")
            head += " <|constrain|>json<|message|>" if form.style == "harmony" else ""
            calls.append(rules.add(Seq((*rules.words(head, {}), body))))
    call = rules.add(Choice(tuple(calls)))
    writer = _Writer(rules)
    lines = writer.write(call)
    opened, closed = ('"[" ', ' "]"') if form.listed else ("", "")
    gap = f"{_GAP} " if form.loose else ""
    end = _quoted((form.end + form.close).strip()) if form.loose else _quoted(form.end + form.close)
    root = f"root ::= {_quoted(form.word)} {gap}{opened}{writer.name(call)}{closed} {gap}{end}".rstrip()
    ordered = (Inexact("key order", "less"),) if order == "schema" else ()
    notes = (*schemas.inexact, *ordered, *writer.notes)
    return Gbnf("\n".join([root, *lines]) + "\n", form.word, tuple(dict.fromkeys(notes)))


class _Writer:
    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._alive = rules.admitting()
        self.notes: list[Inexact] = []
        self._groups: dict[str, str] = {}

    def _named(self, body: str) -> str:
        return self._groups.setdefault(body, f"group{len(self._groups)}")

    def name(self, ref: Ref) -> str:
        return ref.lower()

    def write(self, start: Ref) -> list[str]:
        lines: list[str] = []
        todo, seen = [start], set()
        while todo:
            ref = todo.pop()
            if ref in seen:
                continue
            seen.add(ref)
            lark = self._rules.lark_of(ref)
            if lark is not None:
                lines.append(f"{self.name(ref)} ::= {self._terminal(lark)}")
                continue
            node = self._rules.node_of(ref)
            body, needed = self._node(ref, node)
            lines.append(body)
            todo += needed
        return lines + [f"{name} ::= {body}" for body, name in self._groups.items()]

    def _terminal(self, lark: str) -> str:
        if " & " in lark or "~" in lark:
            self.notes.append(Inexact("pattern", "more"))
            return _converted(lexemes.STRING, self._named)
        return _converted(_REPEATED.sub(lambda found: self._count(int(found[1]), found[2]), lark[1:-1]), self._named)

    def _count(self, low: int, high: str | int | None = "") -> str:
        """A repetition, as large as llama.cpp takes one."""
        most = int(high) if high not in ("", None) else None
        if low > MOST_REPEATS or (most is not None and most > MOST_REPEATS):
            self.notes.append(Inexact(f"a repetition beyond {MOST_REPEATS}", "more"))
            low, most = min(low, MOST_REPEATS), None if most is None or most > MOST_REPEATS else most
        if most is None:
            return "*" if low == 0 else f"{{{low},}}"
        return f"{{{low},{most}}}"

    def _node(self, ref: Ref, node: Node | None) -> tuple[str, list[Ref]]:
        name = self.name(ref)
        if isinstance(node, Choice):
            parts = [part for part in dict.fromkeys(node.parts) if part in self._alive]
            return f"{name} ::= {' | '.join(map(self.name, parts))}", parts
        if isinstance(node, Seq):
            return f"{name} ::= {' '.join(map(self.name, node.parts))}", list(node.parts)
        if isinstance(node, Arr):
            return self._array(name, node)
        if isinstance(node, Obj):
            return self._object(name, node)
        self.notes.append(Inexact("number (bounds)", "more"))
        return f"{name} ::= {_converted(lexemes.NUMBER, self._named)}", []

    def _array(self, name: str, node: Arr) -> tuple[str, list[Ref]]:
        first = list(takewhile(self._alive.__contains__, node.first))
        rest = node.rest if node.rest in self._alive and len(first) == len(node.first) else None
        many, comma = "", f'{_GAP} "," {_GAP}'
        if rest is not None and (node.high is None or node.high > len(first)):
            low = max(node.low - len(first), 0)
            most = None if node.high is None else node.high - len(first)
            further = self._named(f"{comma} {self.name(rest)}")
            if first:
                many = f"{further}{self._count(low, most)}"
            else:
                less = None if most is None else most - 1
                inner = f"{self.name(rest)} {further}{self._count(max(low - 1, 0), less)}"
                many = inner if low else f"({inner})?"
        for index in range(len(first) - 1, -1, -1):
            lead = f"{comma} {self.name(first[index])}" if index else self.name(first[index])
            whole = f"{lead} {many}".strip()
            many = whole if index < node.low else f"({whole})?"
        needed = [*first, *([rest] if rest is not None else [])]
        return f'{name} ::= "[" {_GAP} {many} {_GAP} "]"', needed

    def _object(self, name: str, node: Obj) -> tuple[str, list[Ref]]:
        members = [member for member in node.members if member.value in self._alive and member.key is not None]
        comma, colon = f'{_GAP} "," {_GAP}', f'{_GAP} ":" {_GAP}'
        others = [] if members else [(key, value) for key, value in node.others if value in self._alive]
        if node.others and not others:
            self.notes.append(Inexact("undeclared keys", "less"))
        needed = [ref for member in members for ref in (member.key or "", member.value)]
        if not members:
            plain = [(key, value) for key, value in others if key and "~" not in (self._rules.lark_of(key) or "~")]
            if not plain or node.high == 0:
                return f'{name} ::= "{{" {_GAP} "}}"', []
            pair = " | ".join(f"{self.name(key)} {colon} {self.name(value)}" for key, value in plain if key)
            most = None if node.high is None else node.high - 1
            body = f"({pair}) {self._named(f'{comma} ({pair})')}{self._count(max(node.low - 1, 0), most)}"
            inside = body if node.low else f"({body})?"
            return f'{name} ::= "{{" {_GAP} {inside} {_GAP} "}}"', [r for k, v in plain for r in (k or "", v)]
        if not node.ordered and len(members) <= MOST_FREE:
            return self._free(name, node, members), needed
        if not node.ordered and len(members) > 1:
            self.notes.append(Inexact(f"key order (of more than {MOST_FREE} keys)", "less"))
        if node.low > sum(member.required for member in members):
            self.notes.append(Inexact("minProperties", "more"))
        if node.high is not None:
            self.notes.append(Inexact("maxProperties", "more"))
        if node.needs:
            self.notes.append(Inexact("dependentRequired", "more"))
        # Two chains of rules: `s` while nothing is written yet, `m` once a comma is needed.
        lines = [f'{name} ::= "{{" {_GAP} {name}-s0 {_GAP} "}}"']
        count = len(members)
        for index, member in enumerate(members):
            entry = f"{self.name(member.key or '')} {colon} {self.name(member.value)}"
            following = f"{name}-m{index + 1}" if index + 1 < count else ""
            skip = f" | {name}-s{index + 1}" if index + 1 < count else ' | ""'
            lines.append(f"{name}-s{index} ::= {entry} {following}{'' if member.required else skip}")
            more = f"{comma} {entry}" if member.required else f"({comma} {entry})?"
            lines.append(f"{name}-m{index} ::= {more} {following}")
        return "\n".join(lines), needed

    def _free(self, name: str, node: Obj, members: list[Member]) -> str:
        """Any key order: one rule for each set of keys already written."""
        comma, colon = f'{_GAP} "," {_GAP}', f'{_GAP} ":" {_GAP}'
        sets = range(1 << len(members))
        place = {node.members.index(member): index for index, member in enumerate(members)}
        required = sum(1 << index for index, member in enumerate(members) if member.required)
        needs = [(1 << place[a], 1 << place[b] if b in place else 0) for a, b in node.needs if a in place]

        def whole(written: int) -> bool:
            met = all(not written & one or written & other for one, other in needs)
            return met and written & required == required and written.bit_count() >= node.low

        def following(written: int) -> list[int]:
            full = node.high is not None and written.bit_count() >= node.high
            return [] if full else [index for index in range(len(members)) if not written >> index & 1]

        good: set[int] = set()  # Sets from which the object can be completed.
        for written in reversed(sets):
            if whole(written) or any(written | 1 << index in good for index in following(written)):
                good.add(written)
        lines = [f'{name} ::= "{{" {_GAP} {name}-k0 {_GAP} "}}"']
        for written in sorted(good):
            lead = f"{comma} " if written else ""
            ways = [
                f"{lead}{self.name(members[index].key or '')} {colon} {self.name(members[index].value)} "
                f"{name}-k{written | 1 << index}"
                for index in following(written)
                if written | 1 << index in good
            ]
            lines.append(f"{name}-k{written} ::= {' | '.join([*ways, *([_NOTHING] if whole(written) else [])])}")
        return "\n".join(lines)


_TOKEN = re.compile(
    r"\(\?s:\.\*\)|\[(?:[^\]\\]|\\.)*\]|\{\d*,?\d*\}|\\x[0-9a-fA-F]{2}|\\u\{[0-9a-f]+\}|\\.|[()|*+?]|.", re.DOTALL
)


def _converted(regex: str, named: Callable[[str], str]) -> str:
    """A regular expression, of the kind that `onspec.grammar.lexemes` writes, as GBNF.

    A group that is repeated often becomes a rule, whose name `named` gives: llama.cpp writes out a repeated group, and
    refuses a grammar that grows too large by that.
    """
    out: list[str] = []
    begun: list[int] = []
    group = -1
    for token in _TOKEN.findall(regex):
        if token == "(?s:.*)":
            out.append("[^\\x00]*")
        elif token[0] == "[" and len(token) > 1:
            out.append("[" + re.sub(r"\\u\{([0-9a-f]+)\}|\\x..|\\.|.", _in_class, token[1:-1], flags=re.DOTALL) + "]")
        elif token == "(":
            begun.append(len(out))
            out.append(token)
        elif token == ")":
            group = begun.pop()
            out.append(token)
        elif token == "|" or (token[0] in "{*+?" and (len(token) > 1 or token != "{")):
            if token[0] == "{" and out[-1] == ")" and _often(token, out[group:]):
                out[group:] = [f" {named(_tidied(out[group:]))} "]
            out.append(f" {token} " if token == "|" else token)
        else:
            out.append(" " + _quoted(_plain(token)) + " ")
    return _tidied(out)


def _often(count: str, group: list[str]) -> bool:
    """Whether a group that is repeated should be a rule: for the count, or for a group in it that is one already."""
    return max(map(int, re.findall(r"\d+", count))) > MOST_WRITTEN_OUT or any(" group" in part for part in group)


def _tidied(parts: list[str]) -> str:
    return re.sub(r"\s+([*+?{])", r"\1", "".join(parts)).strip()


def _plain(token: str) -> str:
    if token.startswith("\\u{"):
        return chr(int(token[3:-1], 16))
    if token.startswith("\\x"):
        return chr(int(token[2:], 16))
    if token.startswith("\\"):
        return {"t": "\t", "n": "\n", "r": "\r"}.get(token[1], token[1])
    return token


def _in_class(match: re.Match[str]) -> str:
    text = match[0]
    if text.startswith("\\u{"):
        return f"\\U{int(text[3:-1], 16):08X}"
    if text.startswith("\\x") or text in ("\\t", "\\n", "\\r", "\\\\", "\\]"):
        return text
    if text.startswith("\\"):
        return {"-": "\\x2D", "[": "\\x5B", "^": "\\x5E"}.get(text[1], text[1])
    return text


def _quoted(text: str) -> str:
    if not text:
        return ""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(char, char if char.isprintable() else _escaped(char)) for char in text) + '"'


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02X}" if code < 0x80 else f"\\U{code:08X}"
