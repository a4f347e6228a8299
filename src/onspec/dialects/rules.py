"""Every leniency of the dialects, and every reason for which a call in text is not run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """One leniency.

    Attributes:
        name: As it stands on the trail.
        cls: `envelope` (what surrounds a call), `tag` (one marker), `header` (a harmony header), `body` (arguments).
        cost: How far it stands from what the dialect says; a sum of costs compares two readings.
        summary: What it does.
        example: The smallest text that needs it.
    """

    name: str
    cls: str
    cost: int
    summary: str
    example: str


_ROWS = (
    Rule(
        "wrapper_missing", "envelope", 1, "A complete call stands without its envelope.", '<invoke name="f"></invoke>'
    ),
    Rule(
        "open_tag_inferred",
        "envelope",
        2,
        "A complete call stands without its opening marker.",
        "<function=f>\n</function>",
    ),
    Rule("close_tag_added", "envelope", 1, "A closer is missing after something complete.", '<tool_call>{"name": "f"}'),
    Rule(
        "stray_lead_token_dropped",
        "envelope",
        1,
        "A lone word stood in place of the envelope.",
        'count\n<invoke name="f">',
    ),
    Rule("list_flattened", "envelope", 1, "The list of calls was nested too deeply.", '[[{"name": "f"}]]'),
    Rule("prefix_text_split", "envelope", 2, "Prose stood before a list of calls without markers.", "Now:\n[f()]"),
    Rule(
        "fence_stripped",
        "envelope",
        2,
        "The reply was one fenced call, which this model means as a call.",
        "```json\n{}\n```",
    ),
    Rule("think_closed", "envelope", 2, "The call's marker ended reasoning that was open.", "<think>hm<tool_call>"),
    Rule("orphan_marker_dropped", "envelope", 1, "A marker that belongs to nothing was hidden.", "Good.[/TOOL_CALLS]"),
    Rule("half_marker_dropped", "envelope", 1, "A marker cut at the end of the reply was hidden.", "Good.<tool_ca"),
    Rule("tag_name_fixed", "tag", 1, "A marker was misspelt; the name in it is declared.", '<court name="f">'),
    Rule("namespace_normalised", "tag", 1, "A marker lost or changed its namespace.", '<invoke name="f">'),
    Rule("close_tag_fixed", "tag", 1, "A closer was damaged.", "</parameter1>"),
    Rule("mismatched_close_tag", "tag", 2, "A value was closed by another tag's closer.", "text</body>\n</invoke>"),
    Rule("extra_close_dropped", "tag", 1, "A closer stood twice.", "</parameter>\n</parameter>"),
    Rule(
        "param_header_fixed",
        "tag",
        2,
        "An argument's opening tag was damaged; its name is declared.",
        "<parameter=n: 3",
    ),
    Rule("bracket_style", "tag", 1, "Round brackets stood for braces.", "call:f(a:1)"),
    Rule("quote_style", "tag", 1, "A string stood in other quotes than the dialect's.", 'call:f{a:"x"}'),
    Rule("separator_inferred", "tag", 1, "A separator was missing or another.", 'f{"a": 1}'),
    Rule("escaped_newlines", "tag", 1, "Newlines between the parts were written as backslash and n.", "f\\n<arg_key>"),
    Rule(
        "pairs_reordered",
        "tag",
        1,
        "All keys stood first, then as many values.",
        "<arg_key>a</arg_key><arg_key>b</arg_key>",
    ),
    Rule("duplicate_collapsed", "tag", 1, "The same argument stood twice with the same value.", "<parameter=a>1"),
    Rule(
        "recipient_moved",
        "header",
        1,
        "The tool's name stood in another place of the header.",
        "<|channel|>f<|channel|>",
    ),
    Rule("name_trimmed", "header", 1, "Something was glued to the tool's name.", "to=functions.f--commentary"),
    Rule("constrain_ignored", "header", 1, "The constraint is no data type.", "<|constrain|>commentary"),
    Rule("channel_fixed", "header", 1, "The channel was misspelt or unknown.", "<|channel|>finalx"),
    Rule("role_fixed", "header", 1, "The role was misspelt, or a channel stood in its place.", "<|start|>final"),
    Rule("header_fixed", "header", 1, "Parts of a header were doubled or glued.", "commentaryto=functions.f"),
    Rule("message_token_inferred", "header", 2, "The token between header and body was missing.", 'json{"a": 1}'),
    Rule(
        "segment_dropped",
        "header",
        1,
        "A message without a body, or not of the assistant, was dropped.",
        "<|start|>user",
    ),
    Rule("json_double_braces", "body", 1, "Every brace was doubled.", '{{"name": "f"}}'),
    Rule("json_bracket_swapped", "body", 2, "The last closer was a bracket where only a brace can stand.", '{"a": 1]'),
    Rule(
        "json_brace_added",
        "body",
        2,
        "The envelope's last brace was missing before the closer.",
        '{"name": "f"</tool_call>',
    ),
    Rule(
        "trailing_markup_dropped", "body", 1, "Something stood between the complete body and its closer.", "{}]<|call|>"
    ),
    Rule("envelope_unwrapped", "body", 1, "The arguments stood in one more object.", '{"arguments": {"a": 1}}'),
    Rule(
        "envelope_key_fixed",
        "body",
        1,
        "Name or arguments stood under another key than the dialect's.",
        '{"tool": "f"}',
    ),
    Rule("arguments_inferred", "body", 1, "Arguments were left out; they are empty.", '{"name": "f"}'),
)

RULES: dict[str, Rule] = {rule.name: rule for rule in _ROWS}

FAULTS: dict[str, str] = {
    "cut_off": "the reply ended inside this call",
    "damaged_call": "the call's markup or JSON is damaged",
    "no_name": "no tool name stands in the call",
    "no_body": "the call has no arguments that can be read",
    "no_arguments": "the arguments do not stand where this format has them",
    "nameless_parameter": "an argument has no name",
    "ambiguous_call": "the call can be read in two ways",
    "quoted_call": "the call stands in a code fence, so it may be only an example",
    "call_in_thinking": "the call stands in the reasoning and was not made after it",
    "forged_result": "a value that would be executed holds markup of a tool result",
    "undeclared_parameter": "an argument is not declared, and may be part of another",
    "too_tangled": "the markup is too tangled to be read",
    "not_permitted": "the call's markup needs repair, which the policy does not allow",
}
