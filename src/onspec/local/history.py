"""Agent histories for the demo, the benchmarks and the tests: a file read, a fix made, a second bug."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from onspec.contract.tool import Tool
from onspec.message import Call, Message, Result, Text

EDIT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"oldText": {"type": "string"}, "newText": {"type": "string"}},
                "required": ["oldText", "newText"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["path", "edits"],
    "additionalProperties": False,
}

FLAT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "oldText": {"type": "string"}, "newText": {"type": "string"}},
    "required": ["path", "oldText", "newText"],
    "additionalProperties": False,
}

_ONE_TEXT: dict[str, Any] = {"type": "object", "additionalProperties": False}

TOOLS: tuple[Tool, ...] = (
    Tool("read", {**_ONE_TEXT, "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    Tool("bash", {**_ONE_TEXT, "properties": {"command": {"type": "string"}}, "required": ["command"]}),
    Tool("edit", EDIT_SCHEMA),
)


FLAT_TOOLS: tuple[Tool, ...] = (*TOOLS[:2], Tool("edit", FLAT_SCHEMA))
"""The same with the flat edit tool."""


@dataclass(frozen=True, slots=True)
class Task:
    """Two bugs in one file: the first was fixed in the history, the second is to be fixed now.

    Attributes:
        path: The file.
        content: Its text.
        first: What is wrong, why, the old text and the new.
        second: The same for the second bug.
    """

    path: str
    content: str
    first: tuple[str, str, str, str]
    second: tuple[str, str, str, str]


TASKS: tuple[Task, ...] = (
    Task(
        "shop/basket.py",
        "def total(lines):\n    amount = 0\n    for line in lines:\n        amount += line.price\n    return amount\n\n"
        "def reduced(price, percent):\n    return price - price * percent\n",
        ("total() forgets how many of each were bought", "total() adds each price once, whatever the count.",
         "        amount += line.price\n", "        amount += line.price * line.count\n"),
        ("reduced(200, 10) gives -1800", "reduced() takes the percentage for a fraction; it has to be divided by 100.",
         "    return price - price * percent\n", "    return price - price * percent / 100\n"),
    ),
    Task(
        "lib/stack.js",
        "class Stack {\n  constructor() { this.items = []; }\n  push(x) { this.items.push(x); }\n"
        "  peek() { return this.items[this.items.size - 1]; }\n  pop() { return this.items.pop(); }\n}\n"
        "module.exports = Stack;\n",
        ("peek() gives undefined", "peek() uses size, arrays have length.",
         "this.items[this.items.size - 1]", "this.items[this.items.length - 1]"),
        ("pop() of an empty stack must throw", "pop() gives undefined for an empty stack; it must throw an Error.",
         "  pop() { return this.items.pop(); }\n",
         '  pop() {\n    if (!this.items.length) throw new Error("empty");\n    return this.items.pop();\n  }\n'),
    ),
    Task(
        "app/clock.py",
        "def parse(text):\n    hour, minute = text.split(\":\")\n    return int(minute), int(hour)\n\n"
        "def minutes(start, end):\n    return start - end\n",
        ("parse() swaps hour and minute", "parse() gives the parts in the wrong order.",
         "return int(minute), int(hour)", "return int(hour), int(minute)"),
        ("minutes(10, 30) is negative", "minutes() subtracts in the wrong order.",
         "    return start - end\n", "    return end - start\n"),
    ),
    Task(
        "store/cache.go",
        "package store\n\nfunc (c *Cache) Load(key string) string {\n\treturn c.data[key]\n}\n\n"
        "func (c *Cache) Save(key, value string) {\n\tc.data[key] = key\n}\n",
        ("Save keeps the key, not the value", "Save assigns key where it must assign value.",
         "\tc.data[key] = key\n", "\tc.data[key] = value\n"),
        ("Load races with Save", "Load reads the map without taking the lock.",
         "\treturn c.data[key]\n", "\tc.lock.Lock()\n\tdefer c.lock.Unlock()\n\treturn c.data[key]\n"),
    ),
    Task(
        "tools/table.py",
        "def first(rows, count):\n    return rows[1:count]\n\n"
        "def line(row):\n    return \"%s: %d\" % (row[\"name\"], row[\"value\"])\n",
        ("first(rows, 2) leaves out the first row", "first() begins at 1, it has to begin at 0.",
         "rows[1:count]", "rows[:count]"),
        ("line() cuts off fractions", "line() formats with %d, which drops what is behind the point; use %s.",
         "    return \"%s: %d\" % (row[\"name\"], row[\"value\"])\n",
         "    return \"%s: %s\" % (row[\"name\"], row[\"value\"])\n"),
    ),
)  # fmt: skip

SYSTEM = "You are a coding agent. Say in one sentence what is wrong, then call a tool."


def _edit(path: str, old: str, new: str, extra: dict[str, Any] | None, flat: bool) -> str:
    item = {"oldText": old, "newText": new, **(extra or {})}
    value = {"path": path, **item} if flat else {"path": path, "edits": [item]}
    return dumps(value)


def dumps(value: Any) -> str:
    """JSON as Python writes it, the form that models have seen most."""
    compact: str = orjson.dumps(value).decode()
    out, quoted, escaped = [], False, False
    for char in compact:
        out.append(char)
        if quoted:
            quoted, escaped = (char != '"' or escaped), (char == "\\" and not escaped)
        elif char == '"':
            quoted = True
        elif char in ",:":
            out.append(" ")
    return "".join(out)


def messages(task: Task, *, failed: bool = False, invented: bool = False, flat: bool = False) -> list[Message]:
    """The history before the second call, ending inside the assistant's turn.

    Args:
        task: Which bugs.
        failed: Whether the first edit was tried before with an invented key, and refused.
        invented: Whether the first edit that succeeded carries an invented key.
        flat: Whether the edit tool is the flat one.
    """
    about, why, old, new = task.first
    extra = {"requireUnique": True}
    path = task.path
    out = [
        Message("system", (Text(SYSTEM),)),
        Message("user", (Text(f"{about}. Fix it in {path}."),)),
        Message("assistant", (Text("I will read the file."), Call("read", dumps({"path": path})))),
        Message("tool", (Result(task.content),)),
    ]
    if failed:
        out += [
            Message("assistant", (Text(why), Call("edit", _edit(path, old, new, extra, flat)))),
            Message("tool", (Result('Error: edits/0 has an unknown key "requireUnique"', is_error=True),)),
        ]
    call = Call("edit", _edit(path, old, new, extra if invented else None, flat))
    out += [
        Message("assistant", (Text(why), call)),
        Message("tool", (Result(f"Edited {path}."),)),
        Message("user", (Text(f"{task.second[0]}. Fix it too."),)),
        Message("assistant", (Text(task.second[1] + "\n<tool_call>"),)),
    ]
    return out


def wanted(task: Task, flat: bool = False) -> str:
    """The right call, from just after `<tool_call>` to the end of the block."""
    _, _, old, new = task.second
    arguments = _edit(task.path, old, new, None, flat)
    return f'\n{{"name": "edit", "arguments": {arguments}}}\n</tool_call>'


def reading(invented: bool = False) -> list[Message]:
    """A history before a third call of the `read` tool, ending inside the assistant's turn.

    Args:
        invented: Whether the first two calls carry an invented key.
    """
    out = [Message("system", (Text(SYSTEM),))]
    extra = {"encoding": "utf-8"} if invented else {}
    for path, content in (("app/main.py", "import clock\n"), ("app/clock.py", "def now():\n    return 0\n")):
        call = Call("read", dumps({"path": path, **extra}))
        out += [
            Message("user", (Text(f"Read {path}."),)),
            Message("assistant", (Text("I will read the file."), call)),
            Message("tool", (Result(content),)),
        ]
    trigger = Text("I will read the file.\n<tool_call>")
    return [*out, Message("user", (Text("Read app/page.py."),)), Message("assistant", (trigger,))]
