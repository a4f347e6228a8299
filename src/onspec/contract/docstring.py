"""What a docstring says about each parameter: Google, NumPy and Sphinx styles."""

from __future__ import annotations

import inspect
import re

_GOOGLE = re.compile(r"(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):\s*\Z")
_SECTION = re.compile(
    r"(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters|Attributes|Returns?|Yields?|"
    r"Raises|Except|Exceptions|Warns|Warnings?|Examples?|Notes?|References|See Also|Todo|Usage|Methods):?\s*\Z"
)
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?\s*:(?:\s+(.*)|\Z)")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?\Z")
_SPHINX = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)\Z")
_FIELD = re.compile(r":\w+(?:\s[^:]*)?:")


def parse(docstring: str | None) -> tuple[str, dict[str, str]]:
    """The text before the first section, and the description of each parameter.

    A text without sections is all description. Descriptions are joined to one line.
    """
    lines = inspect.cleandoc(docstring or "").split("\n")
    parameters: dict[str, list[str]] = {}
    intro: list[str] = []
    index, in_intro = 0, True
    while index < len(lines):
        line = lines[index]
        ruled = index + 1 < len(lines) and re.fullmatch(r"\s*-{3,}\s*", lines[index + 1]) is not None
        if ruled and _SECTION.match(line.strip()):
            in_intro = False
            wanted = _GOOGLE.match(line.strip().rstrip(":") + ":") is not None
            index = _numpy(lines, index + 2, parameters) if wanted else index + 2
        elif _GOOGLE.match(line) and not line[:1].isspace():
            in_intro = False
            index = _google(lines, index + 1, parameters)
        elif _FIELD.match(line.strip()):
            in_intro = False
            index = _sphinx(lines, index, parameters)
        else:
            in_intro = in_intro and not (line.rstrip().endswith(":") and _SECTION.match(line))
            if in_intro:
                intro.append(line)
            index += 1
    return "\n".join(intro).strip(), {name: " ".join(" ".join(text).split()) for name, text in parameters.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _google(lines: list[str], index: int, parameters: dict[str, list[str]]) -> int:
    """Entries indented under the heading; what is indented more than an entry continues it."""
    depth: int | None = None
    current: list[str] | None = None
    while index < len(lines):
        line = lines[index]
        if line.strip():
            if not line[:1].isspace():
                break
            depth = _indent(line) if depth is None else depth
            entry = _GOOGLE_ENTRY.match(line.strip()) if _indent(line) <= depth else None
            if entry:
                current = parameters.setdefault(entry[1], [])
                current.append(entry[2] or "")
            elif current is not None:
                current.append(line)
        index += 1
    return index


def _numpy(lines: list[str], index: int, parameters: dict[str, list[str]]) -> int:
    """Entries at the left margin, their text indented, up to the next ruled heading."""
    current: list[list[str]] = []
    while index < len(lines):
        line = lines[index]
        if index + 1 < len(lines) and re.fullmatch(r"\s*-{3,}\s*", lines[index + 1]) and line.strip():
            break
        if line.strip() and not line[:1].isspace():
            entry = _NUMPY_ENTRY.match(line.strip())
            names = [name.strip().lstrip("*") for name in entry[1].split(",")] if entry else []
            current = [parameters.setdefault(name, []) for name in names]
        elif line.strip():
            for text in current:
                text.append(line)
        index += 1
    return index


def _sphinx(lines: list[str], index: int, parameters: dict[str, list[str]]) -> int:
    """One field, with the indented lines that continue it."""
    found = _SPHINX.match(lines[index].strip())
    text = parameters.setdefault(found[1], []) if found else []
    if found:
        text.append(found[2])
    index += 1
    while index < len(lines) and lines[index].strip() and lines[index][:1].isspace():
        text.append(lines[index])
        index += 1
    return index
