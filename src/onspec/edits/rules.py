"""The looser ways of matching: one row each. Nothing is matched loosely outside this table."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Rule:
    """One leniency.

    Attributes:
        name: Its name on the trail.
        cls: `edit` for matching, `patch` for the form of a patch.
        cost: How far it is from the letter; the search tries cheap ones first.
        summary: What it changes, in one sentence.
        example: What the model wrote, and what stands in the file.
    """

    name: str
    cls: str
    cost: int
    summary: str
    example: str


_ROWS = (
    Rule(
        "line_endings",
        "edit",
        1,
        "CRLF, LF and (in a file without LF) CR match one another; new lines take the end of the lines around them.",
        "a⏎b in a file of CRLF lines",
    ),
    Rule(
        "trailing_whitespace",
        "edit",
        2,
        "Spaces and tabs before the end of a line do not count.",
        "return x⏎ where the file has return x··⏎",
    ),
    Rule(
        "indentation",
        "edit",
        4,
        "Whole lines match where every line is indented by one and the same more, less, or tabs for spaces; "
        "new lines are shifted by the same, or the edit is refused.",
        "if a:⏎··b where the file has ····if a:⏎······b",
    ),
    Rule(
        "unicode_lookalikes",
        "edit",
        4,
        "Typographic quotes, dashes and spaces match ASCII ones, and composed letters match decomposed ones.",
        '"hi" where the file has “hi”',
    ),
    Rule(
        "escapes",
        "edit",
        8,
        'A written escape (\\n, \\t, \\", \\u00e9) in the old text matches the character it means, and \\u00e9 in the '
        "file matches the letter. An escape in text that is new is refused, never decoded.",
        "caf\\u00e9 where the file has café",
    ),
    Rule(
        "html_entities",
        "edit",
        8,
        "&lt; &gt; &amp; &quot; &#39; in the old text match what they mean. In text that is new they are refused.",
        "a &lt; b where the file has a < b",
    ),
    Rule(
        "line_numbers",
        "edit",
        8,
        "Line numbers copied from a listing in front of every old line are left out, where they are the true numbers "
        "of the lines that match. Numbers in front of lines that are new are refused.",
        "12→return x where line 12 is return x",
    ),
    Rule(
        "byte_order_mark",
        "edit",
        1,
        "A byte order mark in front of the old and new text is left out.",
        "\\ufeffimport x",
    ),
    Rule(
        "patch_wrapper",
        "patch",
        1,
        "A heredoc, a code fence or a JSON object around a patch is left out.",
        "<<'EOF' ...",
    ),
    Rule(
        "patch_marker",
        "patch",
        1,
        "A marker with stars or spaces too many is read as the marker.",
        "*** Begin Patch ***",
    ),
    Rule("patch_blank_line", "patch", 1, "An empty line inside a chunk is an empty line of context.", "⏎ for ·⏎"),
    Rule(
        "patch_range",
        "patch",
        1,
        "The line numbers of a unified diff's @@ -1,3 +1,4 @@ are not used; the lines are searched.",
        "@@ -1,3 +1,4 @@",
    ),
    Rule(
        "patch_file_header",
        "patch",
        1,
        "--- and +++ lines of a unified diff before a chunk are left out.",
        "--- a/x.py",
    ),
    Rule(
        "patch_anchor",
        "patch",
        1,
        "An @@ line that the chunk itself begins with says nothing more than the chunk.",
        "@@ def f(): followed by the context line def f():",
    ),
    Rule(
        "patch_end_note",
        "patch",
        1,
        "The note that a file has no newline at its end is left out; the end stays as it is.",
        "\\ No newline at end of file",
    ),
)

RULES = MappingProxyType({rule.name: rule for rule in _ROWS})
"""Name -> row."""

LEVELS: tuple[tuple[str, ...], ...] = (
    ("line_endings",),
    ("line_endings", "trailing_whitespace"),
    ("line_endings", "trailing_whitespace", "indentation"),
    ("line_endings", "trailing_whitespace", "unicode_lookalikes"),
    ("line_endings", "trailing_whitespace", "unicode_lookalikes", "indentation"),
    ("line_endings", "trailing_whitespace", "line_numbers"),
    ("line_endings", "trailing_whitespace", "html_entities"),
    ("line_endings", "trailing_whitespace", "escapes"),
)
"""Sets of rules, from strict to loose. Each is tried only where the ones before found nothing."""
