"""What holds for every file and every set of edits."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from onspec.edits.edit import Insert, Lines, Modify, Replace
from onspec.edits.index import occurrences
from onspec.edits.patch import parse, written
from onspec.edits.replace import replace
from onspec.edits.text import Text, read
from onspec.edits.workspace import Workspace

ENCODINGS = (
    ("utf-8", b"", "abcé“日\U0001f600 \t"),
    ("utf-8", b"\xef\xbb\xbf", "abcé“日\U0001f600 \t"),
    ("utf-16-le", b"\xff\xfe", "abcé“日\U0001f600 \t"),
    ("utf-16-be", b"\xfe\xff", "abcé“日\U0001f600 \t"),
    ("utf-32-le", b"\xff\xfe\0\0", "abcé“日\U0001f600 \t"),
    ("latin-1", b"", "abcéßÿ \t"),
    ("cp1252", b"", "abcé“€ \t"),
    ("shift_jis", b"", "abc日ソ表 \t"),
    ("gb18030", b"", "abc日中\U0001f600 \t"),
    ("cp1251", b"", "abcжя \t"),
)
QUICK = settings(max_examples=300)


@st.composite
def files(draw: st.DrawFn) -> tuple[bytes, str, str, bytes]:
    """A file's bytes, its encoding, its letters, and the mark in front of it."""
    encoding, mark, letters = draw(st.sampled_from(ENCODINGS))
    line = st.text(st.sampled_from(letters), max_size=12)
    ends = draw(st.sampled_from((["\n"], ["\r\n"], ["\r"], ["\n", "\r\n"])))
    rows = draw(st.lists(st.tuples(line, st.sampled_from(ends)), max_size=12))
    text = "".join(row + end for row, end in rows) + draw(line)
    return mark + text.encode(encoding), encoding, letters, mark


@st.composite
def edited(draw: st.DrawFn) -> tuple[bytes, str, list[tuple[int, int, str]]]:
    """A file's bytes, its encoding, and parts of its text (as decoded, without mark) with new text for each."""
    data, encoding, letters, mark = draw(files())
    text = data[len(mark) :].decode(encoding)
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    cuts = [(a, b) for a, b in zip(places[::2], places[1::2], strict=False) if a < b]
    apart = [cut for n, cut in enumerate(cuts) if not n or cuts[n - 1][1] <= cut[0]]
    new = st.text(st.sampled_from(letters + "\n"), max_size=8)
    return data, encoding, [(a, b, draw(new)) for a, b in apart]


@QUICK
@given(edited())
def test_every_byte_outside_the_edits_stays(case: tuple[bytes, str, list[tuple[int, int, str]]]) -> None:
    """What is done is done at the recorded places and nowhere else; what is exact and unique is done as meant."""
    data, encoding, cuts = case
    text = read(data, encoding)
    assert isinstance(text, Text)
    plain = text.decode()
    changes = [Replace(plain[a:b], new, at=f"/{n}") for n, (a, b, new) in enumerate(cuts)]
    done = replace(text, changes)
    if done.data is None:
        assert done.violations
        return
    at, rebuilt = 0, b""
    for piece in done.pieces:
        assert data[piece.start : piece.end] == piece.old
        rebuilt += data[at : piece.start] + piece.new
        at = piece.end
    assert rebuilt + data[at:] == done.data
    again = read(done.data, encoding)
    assert isinstance(again, Text)
    exact = all(plain.count(change.old) == 1 for change in changes)
    if exact and not done.repairs:
        expected, last = "", 0
        for a, b, new in cuts:
            expected += plain[last:a] + new
            last = b
        assert again.decode() == expected + plain[last:]


@QUICK
@given(edited(), st.randoms())
def test_order_has_no_meaning(case: tuple[bytes, str, list[tuple[int, int, str]]], random: object) -> None:
    data, encoding, cuts = case
    text = read(data, encoding)
    assert isinstance(text, Text)
    plain = text.decode()
    changes = [Replace(plain[a:b], new, at=f"/{n}") for n, (a, b, new) in enumerate(cuts)]
    first = replace(text, changes)
    assert replace(text, changes[::-1]).data == first.data


@settings(max_examples=60)
@given(edited(), st.integers(0o600, 0o777))
def test_apply_then_undo_is_the_identity(case: tuple[bytes, str, list[tuple[int, int, str]]], mode: int) -> None:
    data, encoding, cuts = case
    text = read(data, encoding)
    assert isinstance(text, Text)
    plain = text.decode()
    changes = tuple(Replace(plain[a:b], new, at=f"/{n}") for n, (a, b, new) in enumerate(cuts))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        root.mkdir()
        file = root / "file"
        file.write_bytes(data)
        file.chmod(mode)
        with Workspace(root, state=Path(folder, "state"), durable=False) as workspace:
            done = workspace.apply([Modify("file", changes, encoding=encoding)])
            if done.ok:
                assert file.read_bytes() != data
                assert workspace.undo().ok
            assert file.read_bytes() == data
            assert file.stat().st_mode & 0o777 == mode
            assert os.listdir(root) == ["file"]


@settings(max_examples=150)
@given(st.binary(max_size=200), st.text(max_size=5), st.text(max_size=5))
def test_any_bytes_and_any_words(data: bytes, old: str, new: str) -> None:
    """No file and no edit raises, and no byte outside is touched."""
    text = read(data)
    if isinstance(text, Text):
        done = replace(text, [Replace(old, new), Insert(1, new, at="/1"), Lines((old,), (new,), at="/2")])
        assert done.data is None or done.data != data
        alone = replace(text, [Replace(old, new)])
        if alone.data is not None and old.encode() in data:
            (piece,) = alone.pieces
            assert alone.data[: piece.start] == data[: piece.start]
            assert alone.data[piece.start + len(piece.new) :] == data[piece.end :]


@settings(max_examples=200)
@given(st.data())
def test_occurrences_are_those_of_a_plain_search(data: st.DataObject) -> None:
    letters = data.draw(st.sampled_from((b"ab", b"abcdefgh \n", bytes(range(256)))))
    size = data.draw(st.integers(0, 6000))
    seed = data.draw(st.randoms(use_true_random=False))
    hay = bytes(seed.choice(letters) for _ in range(size))
    needles = []
    for _ in range(30):
        length = seed.choice((1, 5, 9, 11, 15, 16, 31, 32, 47, 79, 120))
        start = seed.randrange(max(1, size - length))
        needles.append(hay[start : start + length] or b"x")
    expected = [_all(hay, needle)[:50] for needle in needles]
    assert occurrences(hay, needles, 50) == expected


def _all(hay: bytes, needle: bytes) -> list[int]:
    found, at = [], hay.find(needle)
    while at >= 0:
        found.append(at)
        at = hay.find(needle, at + 1)
    return found


LINE = st.text(st.characters(blacklist_characters="\n\r", blacklist_categories=["Cs"]), max_size=10)


@QUICK
@given(st.lists(LINE, min_size=1, max_size=5), st.lists(LINE, min_size=1, max_size=5))
def test_a_patch_that_is_written_is_read_back(old: list[str], new: list[str]) -> None:
    operation = Modify("a.py", (Lines(tuple(old), tuple(new)),))
    (back,) = parse(written([operation])).operations
    assert isinstance(back, Modify)
    (chunk,) = back.changes
    assert isinstance(chunk, Lines)
    assert (chunk.old, chunk.new) == (tuple(old), tuple(new))


@QUICK
@given(st.text(st.sampled_from("*+-@ \n\tBeginEndPatchFile:UpdateAa"), max_size=200))
def test_any_text_as_a_patch_raises_nothing(text: str) -> None:
    for patch in (parse(text), parse(f"*** Begin Patch\n*** Update File: a\n{text}\n*** End Patch")):
        assert (patch.violation is None) == bool(patch.operations)
