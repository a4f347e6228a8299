"""The table of every leniency: its name, class, cost, what it changes, and an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Class = Literal["name", "reading", "shape", "keys", "scalars", "content"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One leniency.

    Attributes:
        name: Stable name, as it stands in a `Repair`.
        cls: What kind of change it is.
        cost: Weight in the search for the cheapest repair; higher is less likely to be what the model meant.
        summary: What it changes, and when.
        example: What the model wrote.
        repaired: What it becomes.
    """

    name: str
    cls: Class
    cost: int
    summary: str
    example: str
    repaired: str

    @property
    def safe(self) -> bool:
        """Whether the `safe` policy allows it: everything but changes of content."""
        return self.cls != "content"


_ROWS: tuple[tuple[Class, str, int, str, str, str], ...] = (
    ("name", "tool_name_prefix", 1, "A known namespace before a declared name is taken off.", "functions.edit", "edit"),
    ("name", "tool_name_case", 1, "The only declared name that differs in letter case is meant.", "Edit", "edit"),
    (
        "reading",
        "strip_fence",
        1,
        "A Markdown fence around the whole text is taken off.",
        '```json\n{"a": 1}\n```',
        '{"a": 1}',
    ),
    (
        "reading",
        "strip_leading_garbage",
        1,
        "Words before the one object, a byte order mark, or a leaked control token are taken off.",
        'json\n{"a": 1}',
        '{"a": 1}',
    ),
    (
        "reading",
        "strip_trailing_garbage",
        1,
        "Surplus closers, leaked closing markup or prose after the complete object are taken off; never text that "
        "could hold another member, parameter or call.",
        '{"a": 1}}</invoke>',
        '{"a": 1}',
    ),
    (
        "reading",
        "drop_leading_empty_object",
        1,
        "A `{}` placeholder before the real object goes.",
        '{}{"a": 1}',
        '{"a": 1}',
    ),
    (
        "reading",
        "collapse_identical_objects",
        1,
        "The same object written twice is one.",
        '{"a": 1}{"a": 1}',
        '{"a": 1}',
    ),
    ("reading", "trailing_comma", 1, "A surplus comma goes.", '{"a": [1, 2,],}', '{"a": [1, 2]}'),
    ("reading", "json_comment", 1, "A comment between tokens goes.", '{"a": 1 /* one */}', '{"a": 1 }'),
    (
        "reading",
        "single_quotes",
        1,
        "Single quotes as delimiters become double ones; only where the value holds no apostrophe.",
        "{'a': 'b'}",
        '{"a": "b"}',
    ),
    (
        "reading",
        "smart_quotes",
        1,
        "Typographic quotes as delimiters become straight ones; only where the value holds no quote.",
        "{“a”: “b”}",
        '{"a": "b"}',
    ),
    (
        "reading",
        "python_literals",
        1,
        "True, False and None outside strings become JSON's words.",
        '{"a": True}',
        '{"a": true}',
    ),
    ("reading", "quote_keys", 1, "A bare identifier before a colon is a key.", "{a: 1}", '{"a": 1}'),
    (
        "reading",
        "escape_control_char",
        1,
        "A raw newline, tab or other control character inside a string stands for itself.",
        '{"a": "x\ny"}',
        '{"a": "x\\ny"}',
    ),
    (
        "reading",
        "fix_invalid_escape",
        1,
        "A backslash before a character that JSON cannot escape is a backslash; refused where the same string also "
        "holds a legal letter escape, or where other languages read the escape as one character.",
        '{"a": "\\d+"}',
        '{"a": "\\\\d+"}',
    ),
    (
        "reading",
        "close_containers",
        1,
        "Missing closers are added after a complete token; never after a number, inside a string, or when the "
        "provider says that the output was cut.",
        '{"a": ["b"',
        '{"a": ["b"]}',
    ),
    (
        "reading",
        "collapse_identical_duplicate_key",
        1,
        "A key written twice with the same value is one member.",
        '{"a": 1, "a": 1}',
        '{"a": 1}',
    ),
    (
        "shape",
        "decode_stringified",
        2,
        "A string that is the JSON text of an object or array is decoded, where the schema takes no string.",
        '{"a": "[1, 2]"}',
        '{"a": [1, 2]}',
    ),
    (
        "shape",
        "decode_double_encoded",
        2,
        "Arguments that were encoded as a JSON string once too often are decoded.",
        '"{\\"a\\": 1}"',
        '{"a": 1}',
    ),
    (
        "shape",
        "wrap_single_to_array",
        3,
        "One valid item where an array is wanted becomes the array's item.",
        '{"a": {"b": 1}}',
        '{"a": [{"b": 1}]}',
    ),
    (
        "shape",
        "unwrap_single_array",
        3,
        "An array of one, where no array is wanted, becomes its item.",
        '[{"a": 1}]',
        '{"a": 1}',
    ),
    (
        "shape",
        "lift_flat_item",
        3,
        "The keys of a missing array's item, written beside it, become its one item.",
        '{"path": "p", "oldText": "a", "newText": "b"}',
        '{"path": "p", "edits": [{"oldText": "a", "newText": "b"}]}',
    ),
    (
        "shape",
        "promote_numbered_item",
        3,
        "Numbered twins of an item's keys that make a whole item become the next item.",
        '[{"oldText": "a", "newText": "b", "oldText2": "c", "newText2": "d"}]',
        '[{"oldText": "a", "newText": "b"}, {"oldText": "c", "newText": "d"}]',
    ),
    (
        "shape",
        "unwrap_envelope",
        2,
        "A known wrapper around the arguments goes.",
        '{"arguments": {"a": 1}}',
        '{"a": 1}',
    ),
    ("shape", "empty_to_object", 1, "Nothing, null or an empty string is an empty object.", "null", "{}"),
    ("shape", "drop_null_optional", 1, "null for an optional key that is not nullable goes.", '{"limit": null}', "{}"),
    (
        "shape",
        "drop_empty_optional",
        2,
        "An empty string, list or object that an optional key cannot take goes.",
        '{"limit": ""}',
        "{}",
    ),
    (
        "keys",
        "alias_key",
        2,
        "A declared alias, or a synonym seen in the wild, of a declared and absent key.",
        '{"file_path": "p"}',
        '{"path": "p"}',
    ),
    (
        "keys",
        "key_case",
        1,
        "A key that differs only in letter case and separators.",
        '{"old_text": "a"}',
        '{"oldText": "a"}',
    ),
    ("keys", "key_trim", 1, "A key with stray blanks or quotes around it.", '{"offset ": 5}', '{"offset": 5}'),
    (
        "keys",
        "drop_unknown_key",
        3,
        "A key that a closed object does not declare goes, and stays in the audit; refused where it could carry "
        "meaning for a declared key.",
        '{"oldText": "a", "newText": "b", "requireUnique": true}',
        '{"oldText": "a", "newText": "b"}',
    ),
    (
        "scalars",
        "coerce_string_to_number",
        2,
        "A string that is exactly a JSON number.",
        '{"limit": "5"}',
        '{"limit": 5}',
    ),
    (
        "scalars",
        "coerce_string_to_bool",
        2,
        "A string that is the word true or false.",
        '{"all": "false"}',
        '{"all": false}',
    ),
    ("scalars", "coerce_number_to_bool", 2, "1 or 0 where a boolean is wanted.", '{"all": 1}', '{"all": true}'),
    (
        "scalars",
        "coerce_number_to_string",
        2,
        "A number where a string is wanted keeps its digits.",
        '{"version": 1.10}',
        '{"version": "1.10"}',
    ),
    (
        "scalars",
        "coerce_bool_to_string",
        2,
        "true or false where a string is wanted becomes that word.",
        '{"clear": true}',
        '{"clear": "true"}',
    ),
    (
        "scalars",
        "enum_case",
        1,
        "The only member of an enum that differs in letter case.",
        '{"unit": "Celsius"}',
        '{"unit": "celsius"}',
    ),
    (
        "content",
        "replace_lone_surrogate",
        8,
        "Half of a surrogate pair becomes U+FFFD.",
        '{"a": "\\ud83d"}',
        '{"a": "\\ufffd"}',
    ),
    (
        "content",
        "decode_html_entities",
        8,
        "Text whose structure is entity-encoded is decoded once.",
        "{&quot;a&quot;: 1}",
        '{"a": 1}',
    ),
)

RULES: Mapping[str, Rule] = MappingProxyType(
    {name: Rule(name, cls, cost, summary, example, repaired) for cls, name, cost, summary, example, repaired in _ROWS}
)
"""Every rule by name, in the order of the table."""
