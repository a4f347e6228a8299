"""What a harness made of a call, told from the text of its answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from onspec.transcripts.session import ToolResult

ACCEPTED = "accepted"
ERROR = "error"
ARGUMENTS = ("schema", "unparsable", "unknown_tool", "grammar")
"""Verdicts that reject a call for what the model wrote: against the schema, no JSON, a name that no tool has, free text
against its grammar."""

OTHER = ("unknown_name", "collateral", "denied", "cut")
"""Verdicts on failures that are not about the arguments' form: a name outside a list that no schema holds, a call
cancelled because its neighbour failed, one that a person refused, one cut short by the output limit."""


@dataclass(frozen=True, slots=True)
class Row:
    """One error text of one harness.

    Attributes:
        verdict: What it means.
        start: Matches at the start of the answer only: file contents are full of such words.
        harnesses: Whose it is; () is any. Where a file's harness is not one of those in the table, all rows count.
        unflagged: Whether it is to be believed without an error flag even in formats that have one.
    """

    verdict: str
    start: re.Pattern[str]
    harnesses: tuple[str, ...] = ()
    unflagged: bool = False


def _row(verdict: str, start: str, *harnesses: str, unflagged: bool = False) -> Row:
    return Row(verdict, re.compile(start, re.DOTALL), harnesses, unflagged)


CLAUDE, PI, CODEX, OPENCODE = "claude-code", "pi", "codex", "opencode"
GEMINI, QWEN, CLINE, OPENHANDS = "gemini-cli", "qwen-code", "cline", "openhands"
MINI, COPILOT, INSPECT, SWE = "mini-swe-agent", "copilot-cli", "inspect", "swe-agent"

_TAG = r"(?:<tool_use_error>)?\s*"

ROWS: tuple[Row, ...] = (
    _row("unparsable", _TAG + r"InputValidationError: .{0,300}?could not be parsed as JSON", CLAUDE),
    _row("schema", _TAG + r"InputValidationError\b", CLAUDE),
    _row("unknown_tool", _TAG + r"(?:Error: )?No such tool available\b", CLAUDE),
    _row(
        "unknown_name",
        _TAG + r"(?:Error: )?(?:Unknown skill\b|Unknown slash command|Agent type '[^']*' not found)",
        CLAUDE,
    ),
    _row(
        "collateral",
        _TAG + r"(?:Error: )?(?:Sibling tool call errored|Cancelled: parallel tool call)",
        CLAUDE,
    ),
    _row(
        "denied",
        _TAG + r"(?:The user doesn't want to|Claude requested permissions|Permission to use)",
        CLAUDE,
    ),
    _row(
        "unknown_tool",
        r"(?:Error: )?MCP error -32602: (?:Tool|Unknown tool)\b[^\n]{0,200}?(?:not found|\Z)",
        unflagged=True,
    ),
    _row("schema", r"(?:Error: )?MCP error -32602: ", unflagged=True),
    _row(
        "schema",
        r"(?:Error: )?(?:Argument Validation Error|Input validation error|Input validation failed)\b",
        unflagged=True,
    ),
    _row("schema", r'Validation failed for tool "', PI),
    _row("unparsable", r'Invalid arguments for tool "[^"]*": (?!-)', PI),
    _row("schema", r"(?:Tool arguments must be a JSON object|\w+ tool input is invalid\.)", PI),
    _row("unknown_tool", r"Tool \S[^\n]{0,200} not found\s*\Z", PI),
    _row("cut", r".{0,80}hit the output token limit", PI),
    _row(
        "schema",
        r"failed to parse function arguments: (?:missing field|invalid type|invalid value"
        r"|unknown (?:field|variant)|duplicate field|invalid length)",
        CODEX,
    ),
    _row("unparsable", r"failed to parse function arguments: ", CODEX),
    _row("unknown_tool", r"unsupported (?:custom tool )?call: ", CODEX),
    _row(
        "grammar",
        r"(?:apply_patch verification failed: )?(?:Error: )?(?:invalid (?:hunk|patch)\b"
        r"|The (?:first|last) line of the patch must be)",
        CODEX,
        OPENCODE,
        COPILOT,
    ),
    _row("schema", r"(?:Error: )?The \S+ tool was called with invalid arguments\b", OPENCODE),
    _row(
        "unknown_tool",
        r"The arguments provided to the tool are invalid: Model tried to call unavailable tool",
        OPENCODE,
    ),
    _row("unparsable", r"The arguments provided to the tool are invalid\b", OPENCODE),
    _row("unparsable", r"Tool call arguments were malformed JSON", OPENCODE),
    _row("schema", r'Invalid arguments for tool "', OPENCODE),
    _row("schema", r"(?:offset|limit) must be (?:greater|less) than", OPENCODE),
    _row("denied", r"The user (?:has specified a rule|rejected permission)", OPENCODE),
    _row(
        "schema",
        r"(?:Error: )?(?:Invalid parameters provided\.|Invalid (?:tool )?parameters?:)",
        GEMINI,
        QWEN,
    ),
    _row("schema", r"(?:Error: )?params(?:/\S+)? (?:must|should)\b", GEMINI, QWEN),
    _row("schema", r"(?:Error: )?(?:The '\w+' parameter|Parameter \"\w+\") must\b", GEMINI, QWEN),
    _row(
        "unknown_tool",
        r'(?:Error: )?Tool "?[^"\n]{1,200}"? (?:not found|is not registered)',
        GEMINI,
        QWEN,
        COPILOT,
    ),
    _row("unparsable", r".{0,120}(?:emitted )?invalid JSON arguments", CLINE),
    _row("schema", r"(?:Error: )?(?:✖ )?Invalid input: expected\b", CLINE),
    _row("schema", r"(?:Error: )?Invalid (?:tool )?(?:input|arguments)\b", CLINE, COPILOT),
    _row(
        "unknown_tool",
        r"(?:Error: )?(?:Unknown tool|Tool [^\n]{1,100} (?:not found|does not exist))\b",
        CLINE,
        COPILOT,
        OPENHANDS,
    ),
    _row("schema", r"(?:Error: )?Tool '\w+' (?:input|arguments) (?:failed|did not)", COPILOT),
    _row("schema", r"ERROR:\s*Invalid `\w+` parameter\b", OPENHANDS),
    _row("schema", r"(?:ERROR:\s*)?Parameter [`'\"]?\w+[`'\"]? is (?:expected|required)\b", OPENHANDS),
    _row(
        "schema",
        r"(?:ERROR:\s*)?(?:Error validating|Missing required (?:argument|parameter)"
        r"|Unexpected argument)\b",
        OPENHANDS,
    ),
    _row("unparsable", r"(?:Failed to parse tool call arguments|Error parsing tool call arguments)", OPENHANDS),
    _row(
        "unknown_tool",
        r"(?:ERROR:\s*)?(?:Tool '[^']*' (?:not found|not available)|Tool \S+ is not registered"
        r"|Function \S+ (?:is )?not)",
        OPENHANDS,
    ),
    _row("unparsable", r"Tool call error:.{0,200}?Error parsing tool call arguments", MINI, SWE),
    _row("unknown_tool", r"Tool call error:.{0,200}?Unknown tool", MINI, SWE),
    _row("schema", r"Tool call error:.{0,200}?Missing '\w+' argument", MINI, SWE),
    _row("unknown_tool", r"Tool [^\n]{1,100} not found\b", INSPECT),
    _row(
        "schema",
        r"(?:Found \d+ validation errors? parsing tool input|Error parsing the following tool call"
        r"|.{0,80}is not valid under)",
        INSPECT,
    ),
)
"""The error texts of each agent. A fault found in the field is fixed by a row."""

_HARNESSES = frozenset(name for row in ROWS for name in row.harnesses)

FLAGGED = frozenset((CLAUDE, PI, OPENCODE, GEMINI, QWEN, CLINE, COPILOT, INSPECT))
"""Harnesses whose own files say of every failed result that it is an error."""

UNAVAILABLE = "Model tried to call unavailable tool"
"""Start of what OpenCode notes beside a call of a tool that does not exist; the answer itself may be cut."""

_TABLES: dict[str, tuple[tuple[Row, ...], tuple[Row, ...]]] = {}


def verdict(harness: str, result: ToolResult) -> str:
    """What `harness` made of the call that `result` answers.

    Returns:
        `accepted`, `error` (the call ran and failed, or nothing more is known), or one of `ARGUMENTS` and `OTHER`.
    """
    if harness not in _TABLES:
        name = harness.rpartition("/")[2]
        rows = tuple(row for row in ROWS if not row.harnesses or name in row.harnesses or name not in _HARNESSES)
        _TABLES[harness] = (rows, tuple(row for row in rows if row.unflagged or harness not in FLAGGED))
    flagged, unflagged = _TABLES[harness]
    text = result.content
    if result.detail is not None and result.detail.startswith(UNAVAILABLE):
        return "unknown_tool"
    for row in flagged if result.is_error else unflagged:
        if row.start.match(text):
            return row.verdict
    if not result.is_error:
        return ACCEPTED
    if result.detail and result.detail.startswith("InputValidationError"):
        return "unparsable" if "JSON parse failed" in result.detail[:80] else "schema"
    if result.detail == "type: parsing":
        return "unparsable"
    return ERROR
