"""Faults that four agents were measured to fail on: each is executed as meant, or refused with the fix named."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from onspec import Tool, Toolset, check
from onspec.contract.known import known

OLD, NEW = "return a - b\n", "return a + b\n"
EDITS = [{"oldText": OLD, "newText": NEW}]
NESTED = {"path": "calc.py", "edits": EDITS}
FLAT = {"file_path": "/w/calc.py", "old_string": OLD, "new_string": NEW}
CAMEL = {"filePath": "/w/calc.py", "oldString": OLD, "newString": NEW}
READ = {"file_path": "/w/calc.py"}
RUN = {"cmd": "make test"}
FINDING = {"file": "a.py", "line": 3, "summary": "off by one"}


@dataclass(frozen=True, slots=True)
class Row:
    """One fault of one tool.

    Attributes:
        name: What is wrong.
        tool: Name of a known tool.
        emitted: What the model wrote.
        meant: What is executed; None where the call is refused.
        says: Texts that the feedback of a refusal holds.
        reason: The stop reason.
    """

    name: str
    tool: str
    emitted: str
    meant: dict[str, Any] | None = None
    says: tuple[str, ...] = ()
    reason: str | None = None


def _row(name: str, tool: str, emitted: Any, meant: dict[str, Any] | None = None, *says: str) -> Row:
    return Row(name, tool, emitted if isinstance(emitted, str) else json.dumps(emitted), meant, says)


def _item(**more: Any) -> dict[str, Any]:
    return {"path": "calc.py", "edits": [{**EDITS[0], **more}]}


ROWS = [
    # an invented key
    *(
        _row(f"invented {key}={value!r}", "nested/edit", _item(**{key: value}), NESTED)
        for key, value in (
            *(("requireUnique", True), ("matchCase", True), ("in_file", "calc.py"), ("cost", 0), ("type", "replace")),
            *(("unique", True), ("forceMatchCount", 1), ("closeenough", True), ("notes", None), ("children", [])),
            *(("newText_dummy", ""), ("newText_placeholder", True), ("newText_note", 0), ("oldText2", "")),
        )
    ),
    _row("invented twin holds work", "nested/edit", _item(newText2="x"), None, "/edits/0/newText2", "nearest: newText"),
    _row("open schema keeps it", "pi/edit", _item(requireUnique=True), _item(requireUnique=True)),
    *(
        _row(f"top level {key!r}", "claude-code/Edit", {**FLAT, key: value}, FLAT)
        for key, value in (("requireUnique", True), ("requireUnique", None), ("", ""))
    ),
    _row("top level encoding", "claude-code/Read", {**READ, "encoding": "utf-8"}, READ),
    _row("top level invented", "codex/exec_command", {**RUN, "requireUnique": True}, RUN),
    _row("top level open", "opencode/edit", {**CAMEL, "requireUnique": True}, {**CAMEL, "requireUnique": True}),
    # a value in the wrong shape
    _row("array as a string", "pi/edit", {"path": "calc.py", "edits": json.dumps(EDITS)}, NESTED),
    _row(
        "findings as a string",
        "claude-code/ReportFindings",
        {"findings": json.dumps([FINDING])},
        None,
        "/findings/0/",
    ),
    _row(
        "rule as a string", "codex/exec_command", {**RUN, "prefix_rule": '["make"]'}, {**RUN, "prefix_rule": ["make"]}
    ),
    _row("object for array", "pi/edit", {"path": "calc.py", "edits": EDITS[0]}, NESTED),
    _row(
        "number as a string",
        "claude-code/Bash",
        {"command": "ls", "timeout": "5000"},
        {"command": "ls", "timeout": 5000},
    ),
    _row("number as a string", "codex/exec_command", {**RUN, "yield_time_ms": "1000"}, {**RUN, "yield_time_ms": 1000}),
    _row("number as a string", "opencode/read", {"filePath": "/w/a", "limit": "2"}, {"filePath": "/w/a", "limit": 2}),
    _row("2.0 for integer", "claude-code/Read", '{"file_path": "/w/calc.py", "limit": 2.0}', {**READ, "limit": 2}),
    _row(
        "2.0 for integer",
        "codex/exec_command",
        '{"cmd": "make test", "yield_time_ms": 2.0}',
        {**RUN, "yield_time_ms": 2},
    ),
    *(
        _row(f"{word!r} for boolean", "claude-code/Edit", {**FLAT, "replace_all": word}, {**FLAT, "replace_all": value})
        for word, value in (("false", False), ("True", True), (1, True))
    ),
    _row("'yes' for boolean", "claude-code/Edit", {**FLAT, "replace_all": "yes"}, None, "/replace_all", "boolean"),
    _row("'false' for boolean", "codex/exec_command", {**RUN, "tty": "false"}, {**RUN, "tty": False}),
    _row("'false' for boolean", "opencode/edit", {**CAMEL, "replaceAll": "false"}, {**CAMEL, "replaceAll": False}),
    _row("null for optional", "claude-code/Read", {**READ, "limit": None}, READ),
    _row("null for optional", "claude-code/Edit", {**FLAT, "replace_all": None}, FLAT),
    _row("null for optional", "opencode/read", {"filePath": "/w/a", "limit": None}, {"filePath": "/w/a"}),
    _row("pair for number", "claude-code/Read", {**READ, "offset": [10, 20]}, None, "/offset", "integer"),
    _row("pair in a string", "claude-code/Read", {**READ, "offset": "[10, 20]"}, None, "/offset", "integer"),
    _row("array of one", "claude-code/Read", {**READ, "offset": [2]}, {**READ, "offset": 2}),
    _row("offset -1", "claude-code/Read", {**READ, "offset": -1}, None, "/offset", "at least 0"),
    # other names
    _row("alias", "pi/edit", {"file_path": "calc.py", "edits": [{"old_string": OLD, "new_string": NEW}]}, NESTED),
    _row("alias", "claude-code/Edit", {"path": "/w/calc.py", "old_str": OLD, "new_str": NEW}, FLAT),
    _row("alias", "claude-code/Edit", {"path": "/w/calc.py", "oldText": OLD, "newText": NEW}, FLAT),
    _row("alias", "claude-code/Bash", {"cmd": "ls"}, {"command": "ls"}),
    _row("alias", "codex/exec_command", {"command": "make test"}, RUN),
    _row("alias", "opencode/read", {"path": "/w/a"}, {"filePath": "/w/a"}),
    _row("alias", "opencode/edit", FLAT, CAMEL),
    _row("alias of nothing declared", "claude-code/Read", {**READ, "length": 5}, None, "/length", "nearest: limit"),
    _row("two names, two values", "claude-code/Read", {**READ, "path": "/w/b.py"}, None, "/path", "nearest: file_path"),
    _row("flat for nested", "nested/edit", {"path": "calc.py", **EDITS[0]}, NESTED),
    # the whole call in another wrapping
    *(
        _row("double-encoded", tool, json.dumps(json.dumps(value)), value)
        for tool, value in (
            ("pi/edit", NESTED),
            ("claude-code/Edit", FLAT),
            ("codex/exec_command", RUN),
            ("opencode/edit", CAMEL),
        )
    ),
    *(
        _row(f"wrapped in {wrapper}", tool, {wrapper: value}, value)
        for wrapper in ("input", "arguments")
        for tool, value in (
            ("pi/edit", NESTED),
            ("claude-code/Edit", FLAT),
            ("codex/exec_command", RUN),
            ("opencode/edit", CAMEL),
        )
    ),
    _row("wrapped in an array", "claude-code/Edit", [FLAT], FLAT),
    # broken text
    _row("trailing comma", "claude-code/Edit", json.dumps(FLAT)[:-1] + ",}", FLAT),
    _row("code fence", "opencode/edit", f"```json\n{json.dumps(CAMEL)}\n```", CAMEL),
    _row(
        "single quotes",
        "pi/edit",
        "{'path': 'calc.py', 'edits': [{'oldText': 'a - b', 'newText': 'a + b'}]}",
        {"path": "calc.py", "edits": [{"oldText": "a - b", "newText": "a + b"}]},
    ),
    _row("extra closer", "codex/exec_command", json.dumps(RUN) + "}", RUN),
    _row("said twice", "claude-code/Edit", json.dumps(FLAT) * 2, FLAT),
    _row("two calls", "claude-code/Read", '{"file_path": "/w/a"}{"file_path": "/w/b"}', None, "two different objects"),
    _row("trailing markup", "opencode/edit", json.dumps(CAMEL) + "</invoke>", CAMEL),
    _row("raw newline", "claude-code/Edit", json.dumps(FLAT).replace("\\n", "\n"), FLAT),
    _row("invalid escape", "claude-code/Bash", r'{"command": "grep \d+ a"}', {"command": r"grep \d+ a"}),
    _row("same key, same value", "codex/exec_command", '{"cmd": "make test", "cmd": "make test"}', RUN),
    _row(
        "same key, other value",
        "claude-code/Bash",
        '{"command": "ls", "command": "rm a"}',
        None,
        "two different values",
    ),
    _row("cut inside a string", "pi/edit", json.dumps(NESTED)[:-6], None, "cut off"),
    _row("closers missing", "pi/edit", json.dumps(NESTED)[:-3], NESTED),
    _row("closer missing", "claude-code/Edit", json.dumps(FLAT)[:-1], FLAT),
    _row("nothing", "pi/edit", "", None, "empty", "path, edits"),
    _row("nothing", "codex/exec_command", "", None, "empty", "cmd"),
    _row("nothing but braces", "opencode/edit", "{}", None, "empty", "filePath, oldString, newString"),
    # text that must not reach a file
    _row(
        "half a surrogate pair",
        "pi/edit",
        r'{"path": "a", "edits": [{"oldText": "x", "newText": "\ud83d"}]}',
        None,
        "surrogate",
    ),
    _row("half a surrogate pair", "opencode/edit", json.dumps({**CAMEL, "newString": "\ud83d"}), None, "surrogate"),
    _row(
        "leaked parameter",
        "claude-code/Edit",
        {"file_path": "/w/a", "old_string": 'x</parameter>\n<parameter name="new_string">y', "new_string": ""},
        {"file_path": "/w/a", "old_string": 'x</parameter>\n<parameter name="new_string">y', "new_string": ""},
    ),
    _row(
        "leaked closers",
        "claude-code/Edit",
        {**FLAT, "new_string": NEW + "</new_string>\n</invoke>"},
        None,
        "/new_string",
        "markup",
    ),
    _row(
        "swallowed parameter",
        "claude-code/Edit",
        {**FLAT, "new_string": NEW + '</parameter>\n<parameter name="replace_all">true'},
        None,
        "/new_string",
        "replace_all",
    ),
    Row("cut by the provider", "pi/edit", json.dumps(NESTED), None, ("whole call again",), "max_tokens"),
    Row("cut by the provider", "claude-code/Edit", json.dumps(FLAT)[:-20], None, ("whole call again",), "length"),
]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.tool}: {row.name}" for row in ROWS])
def test_the_call_is_executed_as_meant_or_refused_with_the_fix(row: Row) -> None:
    outcome = check(known(row.tool), row.emitted, finish_reason=row.reason)
    if row.meant is not None:
        assert outcome.ok, outcome.feedback()
        assert outcome.arguments == row.meant
        assert bool(outcome.repairs) == (outcome.status == "repaired")
        return
    assert not outcome.ok, outcome.arguments
    feedback = outcome.feedback()
    for text in row.says:
        assert text in feedback
    assert len(feedback) < 400


def test_the_rows_cover_each_tool_shape() -> None:
    shapes = {row.tool for row in ROWS}
    assert {"nested/edit", "pi/edit", "claude-code/Edit", "claude-code/Read", "claude-code/Bash"} < shapes
    assert {"codex/exec_command", "opencode/edit", "opencode/read"} < shapes


TOOLS = Toolset([known("pi/edit"), known("claude-code/Bash"), known("opencode/read"), Tool("apply_patch", None)])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("edit", "edit"),
        ("Edit", "edit"),
        (" edit", "edit"),
        ("functions.edit", "edit"),
        ("default_api:read", "read"),
        ("mcp__files__read", "read"),
        ("bash", "Bash"),
        ("functions.bash", "Bash"),
    ],
)
def test_a_name_in_another_spelling_finds_its_tool(written: str, meant: str) -> None:
    match = TOOLS.find(written)
    assert match.tool is not None
    assert match.tool.name == meant
    assert bool(match.repairs) == (written != meant)


@pytest.mark.parametrize(
    "written", ["", " ", "frobnicate", "editor_of_all", 'Edit" >\n<parameter name="path', "x" * 5000]
)
def test_an_unknown_name_is_answered_with_the_names(written: str) -> None:
    match = TOOLS.find(written)
    assert match.tool is None
    assert match.violation is not None
    assert match.violation.expected == "edit, Bash, read, apply_patch"


def test_a_near_name_is_answered_with_the_nearest() -> None:
    violation = TOOLS.find("aply_patch").violation
    assert violation is not None
    assert violation.hint == "apply_patch"


def test_a_free_form_tool_takes_its_text() -> None:
    patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"
    outcome = check(TOOLS["apply_patch"], patch)
    assert outcome.status == "accepted"
    assert outcome.arguments == {"input": patch}
