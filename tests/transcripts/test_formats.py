"""Every reader gives the same picture of the same kind of story; the sessions beside this file are made by hand."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from onspec.message import Call, Text, Thinking
from onspec.scan import scan, scan_file
from onspec.transcripts import Damage, Session, Source, Start, ToolCall, ToolResult, Turn, Unknown, detect, load
from onspec.transcripts.verdict import verdict

SESSIONS = Path(__file__).parent / "sessions"

# format, harness, calls, error answers, rejected for arguments, static violations, unparsable, invented keys
EXPECTED: dict[str, tuple[str, str, int, int, int, int, int, int]] = {
    "pi-v3.jsonl": ("pi", "pi", 6, 4, 3, 1, 1, 1),
    "pi-v1.jsonl": ("pi", "pi", 1, 0, 0, 0, 0, 0),
    "pi-fork.jsonl": ("pi", "pi", 6, 0, 0, 0, 0, 0),
    "claude-code.jsonl": ("claude-code", "claude-code", 11, 9, 6, 3, 1, 1),
    "claude-code-progress.jsonl": ("claude-code", "claude-code", 2, 1, 1, 1, 0, 1),
    "claude-code-shape.jsonl": ("claude-code", "claude-code", 1, 0, 0, 1, 0, 1),
    "claude-web.json": ("claude-code", "claude-code", 1, 0, 0, 0, 0, 0),
    "codex.jsonl": ("codex", "codex", 6, 1, 4, 2, 1, 1),
    "codex-2025.jsonl": ("codex", "codex", 1, 0, 1, 1, 0, 0),
    "opencode-export.json": ("opencode", "opencode", 7, 4, 4, 1, 2, 1),
    "opencode-run.jsonl": ("opencode", "opencode", 1, 1, 1, 1, 0, 0),
    "opencode.db": ("opencode", "opencode", 7, 4, 4, 1, 2, 1),
    "gemini.json": ("gemini-cli", "gemini-cli", 3, 2, 2, 0, 0, 0),
    "gemini.jsonl": ("gemini-cli", "gemini-cli", 4, 3, 3, 0, 0, 0),
    "qwen.jsonl": ("qwen-code", "qwen-code", 2, 1, 1, 1, 0, 1),
    "cline-messages.json": ("cline", "cline", 2, 1, 1, 0, 1, 0),
    "openhands-output.jsonl": ("openhands", "openhands", 4, 1, 2, 2, 0, 0),
    "openhands-trajectory.json": ("openhands", "openhands", 2, 1, 2, 1, 0, 0),
    "openhands-sdk.jsonl": ("openhands", "openhands", 2, 1, 1, 1, 0, 1),
    "swe-agent.traj": ("swe-agent", "swe-agent", 2, 0, 0, 0, 0, 0),
    "swe-agent-tools.traj": ("swe-agent", "swe-agent", 1, 0, 0, 0, 0, 0),
    "mini-swe-agent.traj.json": ("swe-agent", "mini-swe-agent", 1, 0, 1, 0, 0, 0),
    "atif.json": ("atif", "terminus-2", 2, 0, 0, 1, 0, 0),
    "inspect.eval": ("inspect", "inspect", 2, 1, 1, 1, 1, 0),
    "inspect.json": ("inspect", "inspect", 2, 1, 1, 1, 1, 0),
    "nemo-gym.jsonl": ("nemo-gym", "nemo-gym/openhands", 3, 0, 1, 2, 0, 0),
    "vendor-verifier.jsonl": ("vendor-verifier", "vendor-verifier", 5, 0, 0, 2, 1, 0),
    "copilot.jsonl": ("copilot-cli", "copilot-cli", 3, 1, 0, 0, 0, 0),
    "openai-messages.json": ("messages", "messages", 2, 0, 0, 0, 0, 0),
    "openai-request.json": ("messages", "messages", 2, 0, 0, 1, 0, 0),
    "openai-finetune.jsonl": ("messages", "messages", 3, 0, 0, 2, 0, 0),
    "openai-lines.jsonl": ("messages", "messages", 2, 0, 0, 0, 0, 0),
    "tau-bench.json": ("messages", "messages", 4, 0, 0, 0, 0, 0),
    "anthropic-request.json": ("messages", "messages", 2, 1, 1, 1, 0, 1),
    "anthropic-lines.jsonl": ("messages", "messages", 2, 1, 1, 0, 0, 0),
    "responses-request.json": ("messages", "messages", 1, 0, 0, 1, 0, 0),
    "cursor.jsonl": ("messages", "messages", 1, 0, 0, 0, 0, 0),
    "droid.jsonl": ("messages", "messages", 1, 1, 0, 0, 0, 0),
    "entire-compact.jsonl": ("messages", "messages", 2, 1, 0, 0, 0, 0),
}


def entries(name: str) -> list[object]:
    """All entries of one of the sessions."""
    source = Source(str(SESSIONS / name))
    found = detect(source)
    assert found is not None
    return list(found.entries(source))


def calls(name: str) -> list[ToolCall]:
    """All calls of one of the sessions."""
    return [
        part for turn in entries(name) if isinstance(turn, Turn) for part in turn.parts if isinstance(part, ToolCall)
    ]


def test_every_session_is_expected() -> None:
    assert sorted(EXPECTED) == sorted(path.name for path in SESSIONS.iterdir())


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_counts(name: str) -> None:
    """The four numbers that matter, per format."""
    report = scan_file(str(SESSIONS / name))
    total = report.total()
    harnesses = {group.harness for group in report.groups}
    found = (total.calls, total.error_results, total.rejected, total.static, total.unparsable, total.invented)
    assert (report.format, report.error, dict(report.damage)) == (EXPECTED[name][0], "", {})
    assert harnesses == {EXPECTED[name][1]}
    assert found == EXPECTED[name][2:]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_answers_belong_to_calls(name: str) -> None:
    """Every answer with an id has a call before it in the same file."""
    seen: set[str | None] = set()
    for entry in entries(name):
        if isinstance(entry, Turn):
            for part in entry.parts:
                if isinstance(part, ToolCall):
                    seen.add(part.id)
                elif isinstance(part, ToolResult) and part.call_id is not None:
                    assert part.call_id in seen


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_whole_session_has_messages(name: str) -> None:
    """A session can be had as messages, whatever its format, and nobody speaks twice in a row as a tool."""
    session = load(str(SESSIONS / name))
    messages = session.messages()
    assert isinstance(session, Session)
    assert any(isinstance(part, Call) for message in messages for part in message.parts)
    assert all(message.parts for message in messages)
    assert not any(a.role == b.role == "tool" for a, b in pairwise(messages))


def test_one_reply_on_several_lines_is_one_message_and_is_billed_once() -> None:
    messages = load(str(SESSIONS / "claude-code.jsonl")).messages()
    first = next(message for message in messages if message.role == "assistant")
    assert [type(part) for part in first.parts] == [Thinking, Text, Call]
    spent = scan_file(str(SESSIONS / "claude-code.jsonl")).spent["claude-opus-4-8"]
    assert spent == (11 * 10, 400 + 10 * 40, 11 * 1000, 11 * 5)


def test_use_after_the_reply_counts_once_though_it_is_told_twice() -> None:
    assert scan_file(str(SESSIONS / "codex.jsonl")).spent["gpt-5.5"] == (40 + 30, 50, 60 + 100, 0)


def test_thinking_keeps_its_signature() -> None:
    for name in ("pi-v3.jsonl", "claude-code.jsonl", "opencode-export.json", "cline-messages.json", "inspect.json"):
        thoughts = [
            part for turn in load(str(SESSIONS / name)).turns for part in turn.parts if isinstance(part, Thinking)
        ]
        assert thoughts
        assert thoughts[0].signature == "RXE="


def test_raw_text_survives_where_the_file_has_it() -> None:
    """The text that could not be parsed is there, as the model wrote it."""
    found = {name: [call.text for call in calls(name) if call.fault or call.text] for name in EXPECTED}
    assert found["pi-v3.jsonl"] == ['{"path": "calc.py", "edits": [{"oldT']
    assert found["claude-code.jsonl"] == ['{"file_path": "/w/a", "offset": 180, 260}']
    assert found["codex.jsonl"][0] == '{"cmd": "sed -i \'s/a - b/a + b/\' cal'
    assert found["opencode-export.json"] == ['{"command":', None]
    assert found["cline-messages.json"] == ['{"path": "a']


def test_calls_that_went_to_invalid_get_their_name_back() -> None:
    assert [call.name for call in calls("opencode-export.json")] == [
        "read",
        "edit",
        "bash",
        "ls",
        "bash",
        "bash",
        "exa_search",
    ]


def test_the_text_form_of_a_patch_is_not_broken_json() -> None:
    patches = [call for name in ("codex.jsonl", "copilot.jsonl") for call in calls(name) if call.name == "apply_patch"]
    assert [call.custom for call in patches] == [True, False, True]
    assert patches[0].raw().startswith("*** Begin Patch")


def test_repeated_ids_are_paired_in_order() -> None:
    """One id for two calls: the first answer is the first call's."""
    report = scan_file(str(SESSIONS / "tau-bench.json"))
    assert report.total().results == 4


def test_a_database_and_its_export_are_copies_of_each_other(tmp_path: Path) -> None:
    for name in ("opencode-export.json", "opencode.db"):
        shutil.copy(SESSIONS / name, tmp_path / name)
    report = scan([str(tmp_path)], workers=1)
    assert (report.total().calls, report.copies) == (7, 7)


def test_sub_agents_are_marked() -> None:
    total = scan_file(str(SESSIONS / "claude-code-progress.jsonl")).total()
    assert (total.calls, total.of_subagents) == (2, 1)


def test_a_cancelled_neighbour_and_an_unknown_skill_are_not_the_arguments_fault() -> None:
    total = scan_file(str(SESSIONS / "claude-code.jsonl")).total()
    assert (total.collateral, total.unknown_names) == (1, 1)


def test_a_lone_surrogate_survives() -> None:
    texts = [
        part.text for turn in load(str(SESSIONS / "pi-v3.jsonl")).turns for part in turn.parts if isinstance(part, Text)
    ]
    assert texts[-1] == "Done. \ud83d"


def test_unknown_records_are_kept() -> None:
    kinds = {
        entry.kind
        for name in ("codex.jsonl", "claude-code.jsonl", "pi-v3.jsonl", "gemini.jsonl")
        for entry in entries(name)
        if isinstance(entry, Unknown)
    }
    assert {"compacted", "world_state", "file-history-snapshot", "system", "compaction", "$rewindTo"} <= kinds


def test_versions_and_session_ids() -> None:
    found = {}
    for name in EXPECTED:
        for entry in entries(name):
            if isinstance(entry, Start) and entry.version:
                found[name] = (entry.version, entry.session)
    assert found["claude-code.jsonl"] == ("2.1.332", "ses-cc")
    assert found["codex.jsonl"] == ("0.171.0", "ses-cx")
    assert found["opencode.db"] == ("1.18.33", "ses_oc")
    assert found["mini-swe-agent.traj.json"][0] == "2.2.7"


def test_the_path_to_a_leaf_leaves_other_branches_out(tmp_path: Path) -> None:
    """Two answers to one question: the last one is the conversation; parallel calls of one reply stay together."""
    lines = [
        '{"type":"session","version":3,"id":"s","cwd":"/w"}',
        '{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"one"}}',
        '{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[{"type":"text","text":"dead"}]}}',
        '{"type":"message","id":"c","parentId":"a","message":{"role":"assistant","content":[{"type":"text","text":"live"}]}}',
    ]
    path = tmp_path / "branch.jsonl"
    path.write_text("\n".join(lines))
    session = load(str(path))
    assert [turn.id for turn in session.path()] == ["a", "c"]
    assert [turn.id for turn in session.path("b")] == ["a", "b"]


def test_a_cycle_in_the_tree_ends(tmp_path: Path) -> None:
    lines = [
        '{"type":"session","version":3,"id":"s","cwd":"/w"}',
        '{"type":"message","id":"a","parentId":"b","message":{"role":"user","content":"one"}}',
        '{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"two"}}',
        '{"type":"message","id":"c","parentId":"c","message":{"role":"user","content":"three"}}',
    ]
    path = tmp_path / "cycle.jsonl"
    path.write_text("\n".join(lines))
    assert [turn.id for turn in load(str(path)).path("b")] == ["a", "b"]
    assert [turn.id for turn in load(str(path)).path()] == ["c"]


def test_damage_is_no_entry_of_a_whole_file() -> None:
    assert not [entry for name in EXPECTED for entry in entries(name) if isinstance(entry, Damage)]


# harness, answer, whether it is flagged: verdict
VERDICTS = [
    ("pi", 'Validation failed for tool "edit":\n  - path: missing', True, "schema"),
    (
        "pi",
        'Invalid arguments for tool "edit": Unexpected end of JSON input\n\nReceived arguments:\n{',
        True,
        "unparsable",
    ),
    ("pi", "Tool goal_questionnaire not found", True, "unknown_tool"),
    ("pi", "Command exited with code 1\nValidation failed for tool", True, "error"),
    ("pi", 'Validation failed for tool "edit": in a file', False, "accepted"),
    ("claude-code", '<tool_use_error>InputValidationError: [\n  {\n    "code": "too_small"', True, "schema"),
    (
        "claude-code",
        "InputValidationError: Read failed due to the following issues:\nThe required parameter `p` is missing",
        True,
        "schema",
    ),
    (
        "claude-code",
        "<tool_use_error>InputValidationError: Read was called with input that could not be parsed as JSON.",
        True,
        "unparsable",
    ),
    ("claude-code", "<tool_use_error>Error: No such tool available: Task</tool_use_error>", True, "unknown_tool"),
    ("claude-code", "<tool_use_error>Unknown skill: commit</tool_use_error>", True, "unknown_name"),
    ("claude-code", "Agent type 'x' not found. Available agents: y", True, "unknown_name"),
    ("claude-code", "<tool_use_error>Sibling tool call errored</tool_use_error>", True, "collateral"),
    ("claude-code", "The user doesn't want to proceed with this tool use.", True, "denied"),
    ("claude-code", "MCP error -32602: Input validation error: Invalid arguments for tool x: []", True, "schema"),
    ("claude-code", "MCP error -32602: Tool x not found", True, "unknown_tool"),
    ("claude-code", "MCP error -32001: timed out", True, "error"),
    ("claude-code", "Argument Validation Error", True, "schema"),
    ("claude-code", "InputValidationError in a log", False, "accepted"),
    ("codex", "failed to parse function arguments: missing field `cmd` at line 1 column 10", False, "schema"),
    (
        "codex",
        'failed to parse function arguments: invalid type: string "1000", expected u64 at line 1 column 5',
        False,
        "schema",
    ),
    (
        "codex",
        "failed to parse function arguments: EOF while parsing a string at line 1 column 36",
        False,
        "unparsable",
    ),
    (
        "codex",
        "failed to parse function arguments: unexpected end of hex escape at line 1 column 9",
        False,
        "unparsable",
    ),
    ("codex", "unsupported call: shell", False, "unknown_tool"),
    ("codex", "apply_patch verification failed: invalid hunk at line 2, x", False, "grammar"),
    ("codex", "apply_patch verification failed: Failed to find expected lines in a:", False, "accepted"),
    ("codex", "Exit code: 0\nOutput:\nfailed to parse function arguments: missing field", False, "accepted"),
    ("opencode", "The bash tool was called with invalid arguments: SchemaError(Missing key", True, "schema"),
    ("opencode", "Error: The bash tool was called with invalid arguments: [", True, "schema"),
    (
        "opencode",
        "The arguments provided to the tool are invalid: Invalid input for tool x: JSON parsing failed",
        True,
        "unparsable",
    ),
    (
        "opencode",
        "The arguments provided to the tool are invalid: Model tried to call unavailable tool 'x'.",
        True,
        "unknown_tool",
    ),
    ("opencode", "offset must be greater than or equal to 1", True, "schema"),
    ("opencode", "MCP error -32602: Input validation error: x", False, "schema"),
    ("gemini-cli", "params must have required property 'x'", True, "schema"),
    ("gemini-cli", "Error: Invalid parameters provided. Reason: params/limit must be number", True, "schema"),
    ("gemini-cli", 'Tool "lst" not found. Did you mean "list"?', True, "unknown_tool"),
    ("gemini-cli", "params must have required property 'x'", False, "accepted"),
    ("qwen-code", "params/todos must be array", True, "schema"),
    ("openhands", "ERROR:\nInvalid `view_range` parameter: [1, 50].", False, "schema"),
    ("openhands", "Parameter 'command' is expected to be one of ['view'].", True, "schema"),
    ("openhands", "Error validating args {} for tool 'x'", True, "schema"),
    ("nemo-gym/openhands", "ERROR:\nInvalid `view_range` parameter: [1, 50].", False, "schema"),
    (
        "mini-swe-agent",
        "Tool call error:\n\n<error>\nError parsing tool call arguments: Unterminated string",
        False,
        "unparsable",
    ),
    ("mini-swe-agent", "Tool call error:\n\n<error>\nNo tool calls found in the response.", False, "accepted"),
    ("inspect", "Found 1 validation errors parsing tool input arguments:\n- x", True, "schema"),
    ("messages", "InputValidationError: Edit failed due to the following issue:", True, "schema"),
    ("messages", "Error: not enough balance", False, "accepted"),
]


@pytest.mark.parametrize(("harness", "text", "flagged", "expected"), VERDICTS)
def test_verdicts(harness: str, text: str, flagged: bool, expected: str) -> None:
    """Each harness's error texts, at the start of an answer only."""
    assert verdict(harness, ToolResult(text, "x", None, flagged)) == expected
    assert verdict(harness, ToolResult(f"1: {text}", "x", None, False)) == "accepted"
