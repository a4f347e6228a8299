"""Possessive groups mean the same under every Python that onspec runs on."""

from __future__ import annotations

import random
import re
import subprocess
import sys

import pytest

from onspec import possessive

GROUPS = [
    (r"(?:(?!b)a)*+", "aab", 2),
    (r"(?:[^<]++|(?!<t)<)*+", "a <b> <t", 6),
    (r"(?:</?[a-z]+>|\s)*+", "</a> <b", 5),
    (r'"(?:[^"\\]++|\\.|"(?!""))*+"""', '"ab"c"""', 8),
    (r"(?:ab|ac){1,2}+", "abacab", 4),
    (r"[^]*)[]++(?:\[\)*\])?+", "ab[)]", 5),
    (r"\((?:a(?:b)?+)++\)", "(aba)", 5),
]

# Every pattern that the package compiles, had Python been an older one; those that hold a possessive group are shown.
COMPILED = """
import importlib, pkgutil, re, sys
from functools import cached_property
import onspec
from onspec import errors, possessive

possessive.SOUND = False
compile, found = re.compile, []

def look(pattern, flags=0):
    ours = sys._getframe(1).f_globals["__name__"].startswith("onspec")
    if ours and isinstance(pattern, str | bytes) and possessive.atomic(pattern) != pattern:
        found.append(pattern)
    return compile(pattern, flags)

re.compile = look
for module in pkgutil.walk_packages(onspec.__path__, "onspec."):
    try:
        if module.name != "onspec.__main__":
            importlib.import_module(module.name)
    except (errors.MissingExtra, ImportError):
        pass
from onspec.dialects import DIALECTS
from onspec.dialects.patterns import patterns
for dialect in DIALECTS.values():
    patterns(dialect, ("edit",))
    kind = type(dialect.family)
    for name in dir(kind):
        if isinstance(getattr(kind, name, None), cached_property):
            getattr(dialect.family, name)
print(found)
"""


@pytest.mark.parametrize(("pattern", "text", "end"), GROUPS)
def test_the_other_way_of_saying_it(pattern: str, text: str, end: int) -> None:
    for spelling in (pattern, pattern.encode()):
        written = possessive.atomic(spelling)
        assert written != spelling
        assert possessive.atomic(written) == written
        match = re.match(possessive.atomic(pattern), text)
        assert match is not None
        assert match.end() == end
        compiled = possessive.compile(pattern).match(text)
        assert compiled is not None
        assert compiled.end() == end


@pytest.mark.parametrize("pattern", [r"a*+b", r"\)*+", r"[)]*+", r"(?:a)*b+", r"(?P<n>x)+y"])
def test_what_repeats_no_group_possessively_stays(pattern: str) -> None:
    assert possessive.atomic(pattern) == pattern


@pytest.mark.skipif(not possessive.SOUND, reason="this Python misreads the patterns to compare with")
def test_drawn_patterns_match_alike() -> None:
    drawn = random.Random(3)
    for _ in range(2000):
        pattern = _draw(drawn, 4)
        text = "".join(drawn.choice("aab(\\] ") for _ in range(drawn.randrange(9)))
        one, other = re.match(pattern, text), re.match(possessive.atomic(pattern), text)
        assert (one and one.span()) == (other and other.span()), (pattern, text)


def test_every_pattern_of_the_package_is_compiled_safely() -> None:
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stdout + done.stderr


def _draw(drawn: random.Random, depth: int) -> str:
    kind = drawn.randrange(8) if depth else 0
    if kind < 2:
        return drawn.choice(["a", "b", "[ab]", "[^b]", r"\\.", ".", "ab", r"[^a\\]*+", "[]a]", r"\(", r"\s*+"])
    one, other = _draw(drawn, depth - 1), _draw(drawn, depth - 1)
    if kind < 5:
        return f"(?:{one}|{other}){drawn.choice(['*+', '++', '?+', '{1,2}+', '*', '?'])}"
    return {5: f"(?!{one}){other}", 6: f"(?={one}){other}", 7: one + other}[kind]
