"""What one file looks like after edits: every looser match by its rule, every refusal with its reason."""

from __future__ import annotations

import pytest

from onspec.edits.edit import Change, Insert, Lines, Replace
from onspec.edits.replace import Replaced, replace
from onspec.edits.text import Text, read


def run(data: bytes, *changes: Change, encoding: str | None = None) -> Replaced:
    text = read(data, encoding)
    assert isinstance(text, Text)
    return replace(text, changes)


DONE = [
    # name, file, old, new, after, rules
    ("exact", b"a\nb\nc\n", "b", "B", b"a\nB\nc\n", ()),
    ("part of a word", b"foobar", "oba", "-", b"fo-r", ()),
    ("crlf kept", b"a\r\nb\r\nc\r\n", "a\nb", "a\nB\nb2", b"a\r\nB\r\nb2\r\nc\r\n", ("line_endings",)),
    ("crlf in new text only", b"a\r\nb\r\n", "a", "a\nx", b"a\r\nx\r\nb\r\n", ("line_endings",)),
    ("crlf written, lf file", b"a\nb\nc\n", "a\r\nb", "a\r\nB", b"a\nB\nc\n", ("line_endings",)),
    ("a line end is never split", b"a\r\nb\r\n", "\nb", "\nc", b"a\r\nc\r\n", ("line_endings",)),
    ("nor in a mixed file", b"x\na\r\nb\r\n", "\nb", "", b"x\na\r\n", ("line_endings",)),
    ("mixed ends", b"a\r\nb\nc\r\n", "b\nc", "b\nX\nc", b"a\r\nb\nX\nc\r\n", ()),
    ("old mac", b"a\rb\rc", "a\nb", "a\nB", b"a\rB\rc", ("line_endings",)),
    ("no final newline", b"a\nb", "b", "c", b"a\nc", ()),
    ("bom stays", b"\xef\xbb\xbfimport x\n", "import x", "import y", b"\xef\xbb\xbfimport y\n", ()),
    (
        "bom written too",
        b"\xef\xbb\xbfimport x\n",
        "\ufeffimport x",
        "\ufeffimport y",
        b"\xef\xbb\xbfimport y\n",
        ("byte_order_mark",),
    ),
    ("trailing blanks", b"a  \nb\t\nc\n", "a\nb\nc", "a\nB\nc", b"a  \nB\t\nc\n", ("trailing_whitespace",)),
    ("trailing blanks written", b"a\nb\nc\n", "a \nb  \n", "a\nB\n", b"a\nB\nc\n", ("trailing_whitespace",)),
    (
        "smart quotes kept",
        "say(“hi”, “you”)  # ½\n".encode(),
        'say("hi"',
        'say("ho"',
        "say(“ho”, “you”)  # ½\n".encode(),
        ("unicode_lookalikes",),
    ),
    ("dash", "a – b\n".encode(), "a - b", "a - c", "a – c\n".encode(), ("unicode_lookalikes",)),
    ("nbsp", "a\u00a0b = 1\n".encode(), "a b = 1", "a b = 2", "a\u00a0b = 2\n".encode(), ("unicode_lookalikes",)),
    (
        "ellipsis is one character for three",
        "wait… now\n".encode(),
        "wait... now",
        "wait... then",
        "wait… then\n".encode(),
        ("unicode_lookalikes",),
    ),
    (
        "inside an ellipsis",
        "wait… now\n".encode(),
        "wait... now",
        "wait.. now",
        b"wait.. now\n",
        ("unicode_lookalikes",),
    ),
    (
        "decomposed in file",
        "cafe\u0301 = 1\n".encode(),
        "caf\u00e9 = 1",
        "caf\u00e9 = 2",
        "cafe\u0301 = 2\n".encode(),
        ("unicode_lookalikes",),
    ),
    (
        "composed in file",
        "caf\u00e9 = 1\n".encode(),
        "cafe\u0301 = 1",
        "cafe\u0301 = 2",
        "caf\u00e9 = 2\n".encode(),
        ("unicode_lookalikes",),
    ),
    (
        "more indented",
        b"class A:\n    def f():\n        pass\n",
        "def f():\n    pass",
        "def f():\n    x()\n    pass",
        b"class A:\n    def f():\n        x()\n        pass\n",
        ("indentation",),
    ),
    (
        "less indented",
        b"if a:\n  b()\nc()\n",
        "    if a:\n      b()\n",
        "    if a:\n      d()\n      b()\n",
        b"if a:\n  d()\n  b()\nc()\n",
        ("indentation",),
    ),
    (
        "spaces for tabs",
        b"def f():\n\tif a:\n\t\tb()\n",
        "    if a:\n        b()",
        "    if a:\n        c()\n        b()",
        b"def f():\n\tif a:\n\t\tc()\n\t\tb()\n",
        ("indentation",),
    ),
    (
        "tabs for spaces",
        b"def f():\n  if a:\n    b()\n",
        "\tif a:\n\t\tb()",
        "\tif a:\n\t\tc()",
        b"def f():\n  if a:\n    c()\n",
        ("indentation",),
    ),
    (
        "indentation and quotes",
        "  if “a”:\n    b()\n".encode(),
        'if "a":\n  b()',
        'if "a":\n  c()',
        "  if “a”:\n    c()\n".encode(),
        ("unicode_lookalikes", "indentation"),
    ),
    (
        "line numbers in old and new",
        b"a\nfoo\nbar\n",
        "2\tfoo\n3\tbar",
        "2\tfoo\n3\tbaz",
        b"a\nfoo\nbaz\n",
        ("line_numbers",),
    ),
    ("line numbers in old only", b"a\nfoo\nbar\n", "  2→foo\n  3→bar", "foo\nbaz", b"a\nfoo\nbaz\n", ("line_numbers",)),
    ("a number that starts the new text is kept", b"a\nfoo\n", "2→foo", "2nd", b"a\n2nd\n", ("line_numbers",)),
    (
        "escaped line break",
        b"def f():\n    return 1\n",
        "def f():\\n    return 1",
        "def f():\\n    return 2",
        b"def f():\n    return 2\n",
        ("escapes",),
    ),
    (
        "escaped letter",
        "name = 'café'\n".encode(),
        "name = 'caf\\u00e9'",
        "name = 'caf\\u00e9s'",
        "name = 'cafés'\n".encode(),
        ("escapes",),
    ),
    (
        "letter, escaped in the file",
        b"name = 'caf\\u00e9'\n",
        "name = 'caf\u00e9'",
        "nom = 'caf\u00e9'",
        b"nom = 'caf\\u00e9'\n",
        ("escapes",),
    ),
    (
        "entities",
        b"if a < b && c:\n",
        "if a &lt; b &amp;&amp; c",
        "if a &lt; b &amp;&amp; d",
        b"if a < b && d:\n",
        ("html_entities",),
    ),
    ("delete leaves the empty line", b"a\nb\nc\n", "b", "", b"a\n\nc\n", ()),
    ("delete with the line", b"a\nb\nc\n", "b\n", "", b"a\nc\n", ()),
    (
        "exact wins over its loose twin",
        'x = “a”\ny = 1\nx = "a"\n'.encode(),
        'x = "a"',
        'x = "b"',
        'x = “a”\ny = 1\nx = "b"\n'.encode(),
        (),
    ),
    (
        "undecodable bytes survive",
        b"a = '\xff\xfe\x80'\nb = '\xc3\xa9'\nc = '\xc3\xa8'\nd='\xc3\xa8\xc3\xa8'\n",
        "b = 'é'",
        "b = 'è'",
        b"a = '\xff\xfe\x80'\nb = '\xc3\xa8'\nc = '\xc3\xa8'\nd='\xc3\xa8\xc3\xa8'\n",
        (),
    ),
    (
        "latin-1 detected",
        "# café\nx = 1\ny = 'été'\n".encode("latin-1"),
        "x = 1",
        "x = 'é'",
        "# café\nx = 'é'\ny = 'été'\n".encode("latin-1"),
        (),
    ),
    (
        "cookie",
        "# -*- coding: latin-1 -*-\nx = 1\n".encode("latin-1"),
        "x = 1",
        "x = 'é'",
        "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
        (),
    ),
    (
        "utf-16",
        b"\xff\xfe" + "aé\r\nb\U0001f600\r\n".encode("utf-16-le"),
        "b\U0001f600",
        "c\n",
        b"\xff\xfe" + "aé\r\nc\r\n\r\n".encode("utf-16-le"),
        None,
    ),
    (
        "utf-16 big, odd byte and half pair",
        b"\xfe\xff\xd8\x00" + "ab".encode("utf-16-be") + b"\x01",
        "ab",
        "é",
        b"\xfe\xff\xd8\x00" + "é".encode("utf-16-be") + b"\x01",
        (),
    ),
    ("utf-32", b"\xff\xfe\0\0" + "añb".encode("utf-32-le"), "b", "c", b"\xff\xfe\0\0" + "añc".encode("utf-32-le"), ()),
    ("kept trailing text of a loose match", b"x  \ny\nz\n", "x\ny", "x\ny!", b"x  \ny!\nz\n", ("trailing_whitespace",)),
]


@pytest.mark.parametrize(
    ("data", "old", "new", "after", "rules"), [row[1:] for row in DONE], ids=[row[0] for row in DONE]
)
def test_edit_is_done(data: bytes, old: str, new: str, after: bytes, rules: tuple[str, ...] | None) -> None:
    done = run(data, Replace(old, new, at="/edits/0"))
    assert done.violations == ()
    assert done.data == after
    if rules is not None:
        assert tuple(repair.rule for repair in done.repairs) == rules
    rebuilt, at = b"", 0
    for piece in done.pieces:
        rebuilt += data[at : piece.start] + piece.new
        assert data[piece.start : piece.end] == piece.old
        at = piece.end
    assert rebuilt + data[at:] == after


REFUSED = [
    # name, file, old, new, code, what the answer must name
    ("twice", b"a = 1\nb\na = 1\n", "a = 1", "a = 2", "not_unique", "1, 3"),
    ("overlapping twice", b"aaa", "aa", "b", "not_unique", "2"),
    ("loose twice", b"x \ny\nx  \ny\n", "x\ny", "z", "not_unique", "1, 3"),
    ("no-op", b"a\n", "a", "a", "no_op", ""),
    ("empty", b"a\n", "", "b", "empty_old", ""),
    ("not found", b"def total(items):\n    return sum(items)\n", "def total(item):", "x", "not_found", "line 1"),
    ("empty file", b"", "a", "b", "not_found", "empty"),
    ("blank", b"a b c\n", " ", "x", "blank_old", ""),
    ("whitespace only is exact only", b"a\n\n\n\n\nb\n", "\n\n", "x", "not_unique", ""),
    (
        "indentation with no one shift",
        b"  if a:\n      b()\n",
        "if a:\n  b()",
        "if a:\n  c()",
        "indentation_differs",
        "line",
    ),
    ("new text outside the shift", b"a:\n  b\n", "    a:\n      b\n", "    a:\n  c\n", "indentation_differs", ""),
    ("escapes in what is new", b"a\nb\n", "a\\nb", "a\\nc\\nd", "escaped_text", ""),
    ("escaped letter in what is new", "x = 'é'\n".encode(), "x = '\\u00e9'", "x = '\\u00e8'", "escaped_text", ""),
    ("numbers in what is new", b"foo\nbar\n", "1\tfoo\n2\tbar", "1\tfoo\n2\tbar\n3\tbaz", "numbered_text", ""),
    ("wrong line numbers", b"x\nfoo\n", "9\tfoo", "9\tbar", "not_found", ""),
    ("entities in what is new", b"a < b\n", "a &lt; b", "a &lt; b &amp;&amp; c", "escaped_text", ""),
    ("lone surrogate", b"a\n", "a", "\ud83d", "lone_surrogate", "d83d"),
    ("lone surrogate in old", b"a\n", "a\ud83d", "b", "lone_surrogate", "d83d"),
    ("leaked markup", b"a\n", "a", "b</newText></invoke>", "call_markup", ""),
    ("swallowed parameter", b"a\n", "a", 'b</parameter><parameter name="x">c', "call_markup", ""),
    ("no such character", "été=1\n".encode("latin-1"), "=1", "=€", "not_encodable", "20AC"),
    ("unknown encoding", "日本語テキスト".encode("shift_jis") + b"\nx=1\n", "x=1", "x=é", "unknown_encoding", ""),
    ("would-be match inside a character", "ソ=1".encode("shift_jis"), "\\=1", "b", "not_found", ""),
]


@pytest.mark.parametrize(
    ("data", "old", "new", "code", "names"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_edit_is_refused(data: bytes, old: str, new: str, code: str, names: str) -> None:
    done = run(data, Replace(old, new, at="/edits/0"))
    assert done.data is None
    assert [violation.code for violation in done.violations] == [code]
    assert done.violations[0].path == "/edits/0"
    assert names in f"{done.violations[0].message} {done.violations[0].found} {done.violations[0].hint}"


def test_all_edits_match_the_original_in_any_order() -> None:
    changes = [Replace("one", "two", at="/0"), Replace("two", "three", at="/1"), Replace("three", "one", at="/2")]
    for order in (changes, changes[::-1], [changes[1], changes[0], changes[2]]):
        assert run(b"one two three", *order).data == b"two three one"


def test_one_bad_edit_refuses_all_and_every_bad_one_is_named() -> None:
    done = run(b"a\nb\nc\n", Replace("a", "A", at="/0"), Replace("zz", "y", at="/1"), Replace("qq", "y", at="/2"))
    assert done.data is None
    assert [(v.code, v.path) for v in done.violations] == [("not_found", "/1"), ("not_found", "/2")]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ((Replace("abc", "x", at="/0"), Replace("cd", "y", at="/1")), "overlap"),
        ((Replace("abcd", "x", at="/0"), Replace("bc", "y", at="/1")), "overlap"),
        ((Replace("ab", "x", at="/0"), Replace("ab", "y", at="/1")), "duplicate"),
        ((Replace("ab", "x", at="/0"), Replace("ab", "x", True, at="/1")), "duplicate"),
        ((Insert(0, "x", at="/0"), Insert(0, "y", at="/1")), "overlap"),
    ],
)
def test_overlaps_and_duplicates_are_refused(changes: tuple[Change, ...], code: str) -> None:
    assert code in [violation.code for violation in run(b"abcd\n", *changes).violations]


def test_touching_edits_are_fine() -> None:
    assert run(b"abcd", Replace("ab", "1", at="/0"), Replace("cd", "2", at="/1")).data == b"12"


def test_every_match() -> None:
    done = run(b"x = x + x\n", Replace("x", "yy", True))
    assert (done.data, done.matches) == (b"yy = yy + yy\n", (3,))
    assert run(b"aaa", Replace("aa", "b", True)).violations[0].code == "not_unique"


@pytest.mark.parametrize(
    ("data", "line", "text", "after"),
    [
        (b"a\nb\n", 0, "x", b"x\na\nb\n"),
        (b"a\nb\n", 1, "x\n", b"a\nx\nb\n"),
        (b"a\nb\n", 2, "x\ny", b"a\nb\nx\ny\n"),
        (b"a\nb", 2, "x\n", b"a\nb\nx"),
        (b"a\r\nb\r\n", 1, "x\ny", b"a\r\nx\r\ny\r\nb\r\n"),
        (b"", 0, "x", b"x\n"),
        (b"a\r\nb", 2, "x", b"a\r\nb\r\nx"),
    ],
)
def test_insert(data: bytes, line: int, text: str, after: bytes) -> None:
    assert run(data, Insert(line, text)).data == after


@pytest.mark.parametrize("line", [-1, 3, 10**9])
def test_insert_outside_the_file_names_the_range(line: int) -> None:
    violation = run(b"a\nb\n", Insert(line, "x")).violations[0]
    assert (violation.code, violation.expected) == ("out_of_range", "0 to 2")


CHUNKS = [
    ("whole lines only", b"ab\nb\nbc\n", Lines(("b",), ("x",)), b"ab\nx\nbc\n"),
    (
        "below a line",
        b"def f():\n    x\ndef g():\n    x\n",
        Lines(("    x",), ("    y",), ("def g():",)),
        b"def f():\n    x\ndef g():\n    y\n",
    ),
    (
        "in the block only",
        b"def f():\n    x\ndef g():\n    x\n",
        Lines(("    x",), ("    y",), ("def f():",)),
        b"def f():\n    y\ndef g():\n    x\n",
    ),
    (
        "nested",
        b"class A:\n  def f():\n    x\nclass B:\n  def f():\n    x\n",
        Lines(("    x",), ("    y",), ("class B:", "  def f():")),
        b"class A:\n  def f():\n    x\nclass B:\n  def f():\n    y\n",
    ),
    ("at the end", b"x\ny\nx\n", Lines(("x",), ("z",), at_end=True), b"x\ny\nz\n"),
    ("delete lines", b"a\nb\nc\n", Lines(("b",), ()), b"a\nc\n"),
    ("delete last, no newline", b"a\nb", Lines(("b",), ()), b"a\n"),
    ("add below a line", b"import a\n\nx\n", Lines((), ("import b",), ("import a",)), b"import a\nimport b\n\nx\n"),
    ("add at the end", b"a\nb", Lines((), ("c",), at_end=True), b"a\nb\nc"),
    ("add to an empty file", b"", Lines((), ("c",)), b"c\n"),
    ("crlf", b"a\r\nb\r\n", Lines(("a", "b"), ("a", "x", "b")), b"a\r\nx\r\nb\r\n"),
    ("shifted", b"  if a:\n    b\n", Lines(("if a:", "  b"), ("if a:", "  c")), b"  if a:\n    c\n"),
    ("keeps no final newline", b"a\nb", Lines(("b",), ("c",)), b"a\nc"),
]


@pytest.mark.parametrize(("data", "change", "after"), [row[1:] for row in CHUNKS], ids=[row[0] for row in CHUNKS])
def test_lines(data: bytes, change: Lines, after: bytes) -> None:
    done = run(data, change)
    assert done.violations == ()
    assert done.data == after


@pytest.mark.parametrize(
    ("data", "change", "code"),
    [
        (b"x\ny\nx\n", Lines(("x",), ("z",)), "not_unique"),
        (b"abc\n", Lines(("b",), ("z",)), "not_found"),
        (b"a\n", Lines((), ("z",)), "no_place"),
        (b"a\n", Lines(("a",), ("z",), ("no such",)), "context_not_found"),
        (b"a\n", Lines(("a",), ("a",)), "no_op"),
        (b"a\na\nb\n", Lines((), ("z",), ("a",)), "not_unique"),
    ],
)
def test_lines_are_refused(data: bytes, change: Lines, code: str) -> None:
    assert run(data, change).violations[0].code == code
