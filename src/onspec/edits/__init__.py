"""Edits that cannot corrupt: one engine under every edit tool."""

from onspec.edits.answer import diff, told
from onspec.edits.edit import Create, Delete, Insert, Lines, Modify, Operation, Replace, Undo, View, Write
from onspec.edits.rules import RULES, Rule
from onspec.edits.workspace import Content, Done, Workspace

__all__ = [
    "RULES",
    "Content",
    "Create",
    "Delete",
    "Done",
    "Insert",
    "Lines",
    "Modify",
    "Operation",
    "Replace",
    "Rule",
    "Undo",
    "View",
    "Workspace",
    "Write",
    "diff",
    "told",
]
