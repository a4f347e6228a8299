"""Custom tools: the grammar judges the whole text, says where it was left, and never refuses for its own faults."""

from __future__ import annotations

import time

import pytest

from onspec import Tool, check
from onspec.contract.known import known
from onspec.edits.patch import GRAMMAR, parse

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@ def add\n-x\n+y\n*** End Patch\n"


def custom(syntax: str, definition: str) -> Tool:
    """A custom tool as OpenAI Responses declares it."""
    form = {"type": "grammar", "syntax": syntax, "definition": definition}
    return Tool.from_json({"type": "custom", "name": "said", "format": form})


NUMBERED = 'start: line+\nline: NUMBER " " WORD "\\n"\nNUMBER: /[0-9]+/\nWORD: /[a-z]+/\n'

IN = [
    ("lark", GRAMMAR, PATCH),
    ("lark", GRAMMAR, PATCH.rstrip("\n")),
    ("lark", GRAMMAR, PATCH.replace("+y", "+ü\n+")),
    ("lark", NUMBERED, "1 one\n22 two\n"),
    ("lark", 'start: "a"*\n', ""),
    ("lark", 'start: A B\nA: "x"i\nB: /y/\n%ignore / +/\n', "X  y"),
    ("regex", r"\d{4}-\d{2}", "2026-11"),
    ("regex", r"a|bc", "bc"),
    ("regex", r"(?s:.*)", "any\ntext\n"),
    ("regex", r"^abc$", "abc"),
]
OUT = [
    ("lark", GRAMMAR, "Here it is:\n" + PATCH, "line 1, column 1", '"*** Begin Patch"'),
    ("lark", GRAMMAR, PATCH.replace("-x", "x"), "line 4, column 1", '"-"'),
    ("lark", GRAMMAR, PATCH.replace("*** End Patch\n", ""), "line 6, column 1", '"*** End Patch"'),
    ("lark", GRAMMAR, PATCH.replace("\n", "\r\n"), "line 1, column 16", "a line end (LF)"),
    ("lark", GRAMMAR, PATCH.replace("a.py\n", "é.py\nü"), "line 3, column 1", "a space"),
    ("lark", NUMBERED, "1 one\n22 Two\n", "line 2, column 4", "a lower-case letter"),
    ("regex", r"\d{4}-\d{2}", "2026-1x", "line 1, column 7", "a digit"),
    ("regex", r"\d{4}-\d{2}", "2026-11 ", "line 1, column 8", "the end of the text"),
    ("regex", r"\d{4}-\d{2}", "2026-1", "line 1, column 7", "a digit"),
    ("regex", r"a|bc", "b", "line 1, column 2", '"c"'),
]


@pytest.mark.parametrize(("syntax", "definition", "text"), IN)
def test_a_text_of_the_grammar_is_accepted_untouched(syntax: str, definition: str, text: str) -> None:
    """The whole text has to fit, and goes on as it is."""
    outcome = check(custom(syntax, definition), text)
    assert outcome.status == "accepted"
    assert outcome.json == text.encode()
    assert outcome.arguments == {"input": text}


@pytest.mark.parametrize(("syntax", "definition", "text", "place", "expected"), OUT)
def test_any_other_text_is_refused_with_the_place(
    syntax: str, definition: str, text: str, place: str, expected: str
) -> None:
    """Line and column in characters, and what could have come there; never the text itself."""
    outcome = check(custom(syntax, definition), text)
    assert [violation.code for violation in outcome.violations] == ["off_grammar"]
    assert f"(at {place})" in outcome.feedback()
    assert expected in outcome.feedback()
    assert len(outcome.feedback()) < 350


def test_every_prefix_of_a_patch_is_refused_at_its_end() -> None:
    """A text that is cut anywhere but before its last line end never passes, and the place is where it stops."""
    tool = custom("lark", GRAMMAR)
    for length in range(1, len(PATCH) - 1):
        (violation,) = check(tool, PATCH[:length]).violations
        line = PATCH[:length].count("\n") + 1
        assert violation.found == f"at line {line}, column {length - PATCH[:length].rfind(chr(10))}"
        assert violation.message == "the text ends before its grammar does"


def test_what_the_grammar_takes_the_patch_engine_takes() -> None:
    """The patch tool of Codex as it declares it: both agree on a good patch, and on one without its end."""
    tool = known("codex/apply_patch")
    assert tool.free_text is not None
    for text, good in ((PATCH, True), (PATCH.replace("*** End Patch\n", ""), False)):
        assert check(tool, text).ok is good
        assert (parse(text).violation is None) is good


@pytest.mark.parametrize(
    ("syntax", "definition"),
    [
        ("lark", "start: ("),
        ("lark", "begin: /x/"),
        ("lark", "start: /(?=x)y/"),
        ("lark", "start: a[max_tokens=3]\na: /b*/"),
        ("regex", "(?<=a)b"),
        ("regex", "("),
    ],
)
def test_a_grammar_that_cannot_be_used_refuses_nothing(syntax: str, definition: str) -> None:
    """The tool takes any text then, and says why."""
    tool = custom(syntax, definition)
    assert check(tool, "anything").status == "accepted"
    assert tool.free_text is not None
    assert tool.free_text.unenforced
    assert check(tool, "").status == "refused"


@pytest.mark.parametrize(
    "definition",
    ['start: s\ns: s s s | s s | "a"\n', 'start: (a|b)*\na: "a"+\nb: "a" "a"*\n', 'start: "a" start | "a"\n'],
)
def test_a_grammar_that_costs_too_much_refuses_nothing(definition: str) -> None:
    """An ambiguous grammar needs cubic time: it is given up after a moment, and costs nothing from then on."""
    tool = custom("lark", definition)
    started = time.monotonic()
    assert check(tool, "a" * 20_000).status == "accepted"
    assert tool.free_text is not None
    assert tool.free_text.unenforced
    for _ in range(100):
        assert check(tool, "a" * 20_000).ok
    assert time.monotonic() - started < 5


def test_a_text_of_a_megabyte_is_judged() -> None:
    """Time grows with the text and no faster."""
    tool = custom("lark", GRAMMAR)
    text = PATCH.replace("+y\n", "".join(f"+line {number} of a file\n" for number in range(50_000)))
    assert len(text) > 1_000_000
    assert check(tool, text).ok
    assert check(tool, text.replace("*** End", "*** And")).violations[0].code == "off_grammar"
    assert tool.free_text is not None
    assert tool.free_text.unenforced is None


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    """As in JSON, whether or not a grammar is there."""
    for tool in (custom("lark", GRAMMAR), Tool("said", None)):
        assert check(tool, "+ \ud83d").violations[0].code == "lone_surrogate"
