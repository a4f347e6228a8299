"""The search for a repair: unions told apart, keys that may stay or go, brackets in doubt, and its bounds."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from onspec import Tool, check
from onspec.check import Outcome
from onspec.contract.tool import Effect

TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer"}


def of(required: tuple[str, ...] = (), closed: bool = True, **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(required)}
    return {**schema, "additionalProperties": False} if closed else schema


def many(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def judged(schema: dict[str, Any], written: Any, effect: Effect | None = None) -> Outcome:
    return check(Tool("tool", schema, effect=effect), written if isinstance(written, str) else json.dumps(written))


EDIT = of(("path", "edits"), path=TEXT, edits=many(of(("oldText", "newText"), oldText=TEXT, newText=TEXT)))
SAVE = of(("path", "content"), path=TEXT, content=TEXT)
RUN = of(("command",), command=TEXT, timeout=COUNT)
READ = of(("path",), path=TEXT, offset=COUNT, limit=COUNT)
SAVED = {"path": "a", "content": "x"}
EDITED = {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}


@pytest.mark.parametrize(
    ("schema", "call", "key", "value"),
    [
        *((EDIT, EDITED, key, value) for key, value in (("description", "why"), ("language", "py"), ("line", 3))),
        *((EDIT, EDITED, key, value) for key, value in (("source", "web"), ("mode", "replace"), ("occurrences", 1))),
        *((SAVE, SAVED, key, value) for key, value in (("context", "why"), ("mode", "w"), ("overwrite", True))),
        *((SAVE, SAVED, key, value) for key, value in (("file_type", "py"), ("encoding", "utf-8"), ("count", 1))),
        *((RUN, {"command": "ls"}, key, value) for key, value in (("description", "why"), ("dry_run", False))),
        *((READ, {"path": "a"}, key, value) for key, value in (("-n", True), ("encoding", "utf-8"), ("reason", "x"))),
        (of(("city",), city=TEXT), {"city": "Oslo"}, "cwd", "/x"),
        (of(("host",), host=TEXT), {"host": "h"}, "cost", 0),
    ],
)
def test_a_key_that_changes_nothing_goes(schema: dict[str, Any], call: dict[str, Any], key: str, value: Any) -> None:
    outcome = judged(schema, {**call, key: value})
    assert outcome.ok, outcome.feedback()
    assert outcome.arguments == call
    assert [repair.rule for repair in outcome.repairs] == ["drop_unknown_key"]
    assert outcome.repairs[0].before == value


@pytest.mark.parametrize(
    ("schema", "call", "key", "value"),
    [
        *((SAVE, SAVED, key, value) for key, value in (("append", True), ("mode", "a"), ("line", 3), ("cwd", "/x"))),
        *((RUN, {"command": "ls"}, key, value) for key, value in (("cwd", "/x"), ("dry_run", True), ("host", "h"))),
        *((READ, {"path": "a"}, key, value) for key, value in (("lines", "1-9"), ("max_results", 3), ("start", 4))),
        *((EDIT, EDITED, key, value) for key, value in (("newText", "z"), ("file", "b"), ("edit", [1]), ("cwd", "/x"))),
        (of(("title",), title=TEXT, labels=many(TEXT)), {"title": "t"}, "tags", ["x"]),
    ],
)
def test_a_key_that_may_change_something_refuses(
    schema: dict[str, Any], call: dict[str, Any], key: str, value: Any
) -> None:
    assert not judged(schema, {**call, key: value}).ok


@pytest.mark.parametrize("value", [True, 0, False])
def test_a_flag_beside_a_text_is_no_text(value: Any) -> None:
    outcome = judged(EDIT, {"path": "a", "edits": [{**EDITED["edits"][0], "newText_note": value}]})  # type: ignore[index]
    assert outcome.arguments == EDITED


@pytest.mark.parametrize(
    "written", ["null", "None", "red,blue", "red, blue", "red\nblue", "- a b\n- c d", "1. a b\n2. c d"]
)
def test_a_string_that_may_be_several_items_is_not_one(written: str) -> None:
    assert not judged(of(("tags",), tags={"anyOf": [many(TEXT), {"type": "null"}]}), {"tags": written}).ok


@pytest.mark.parametrize("written", ["red", "two words", "Fix it, then test", "https://a.example/x,y", "ls -la | wc"])
def test_a_string_that_is_one_item_is_wrapped(written: str) -> None:
    assert judged(of(("tags",), tags=many(TEXT)), {"tags": written}).arguments == {"tags": [written]}


@pytest.mark.parametrize("wrapper", ["items", "item", "list", "tags", "tag"])
def test_a_list_in_its_wrapper(wrapper: str) -> None:
    assert judged(of(("tags",), tags=many(TEXT)), {"tags": {wrapper: ["a"]}}).arguments == {"tags": ["a"]}


def test_a_list_whose_items_declare_the_wrapper_is_not_unwrapped() -> None:
    schema = of(("rows",), rows=many(of((), items=many(COUNT))))
    assert judged(schema, {"rows": {"items": [1]}}).arguments == {"rows": [{"items": [1]}]}


CLOSED_INSIDE = of(("a",), closed=False, a=of((), x=COUNT))
OPEN_INSIDE = of(("a",), closed=False, a=of((), closed=False, x=COUNT))


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        (CLOSED_INSIDE, '{"a": {"x": 1, "odd": 2}'),
        (OPEN_INSIDE, '{"a": {"x": 1, "odd": 2}'),
        (of(("a",), a=of((), closed=False, x=COUNT), b=TEXT), '{"a": {"x": 1, "b": "c"}'),
        (of(("a",), a=of((), closed=False, x=COUNT)), '{"a": {"x": 1, "a": "c"}'),
        (of(("a",), a=many(many({"enum": ["x", "o"]}))), '{"a": [["x", ["o"], ["x"]]}'),
        (of((), a=many(TEXT)), '{"a": ['),
        (of(), "{"),
    ],
)
def test_a_missing_bracket_in_doubt_refuses(schema: dict[str, Any], written: str) -> None:
    outcome = judged(schema, written)
    assert not outcome.ok
    assert outcome.violations[0].code in ("ambiguous", "cut_off")


def test_the_constant_of_an_arm_chooses_it() -> None:
    arms = [of(("kind", "size"), kind={"const": kind}, size=COUNT) for kind in ("grow", "shrink", "Grow")]
    outcome = judged(of(("op",), op={"anyOf": arms}), {"op": {"kind": "grow", "size": "3"}})
    assert outcome.arguments == {"op": {"kind": "grow", "size": 3}}
    many_arms = [of(("kind", "size"), kind={"const": f"k{number}"}, size=COUNT) for number in range(60)]
    calls = {"ops": [{"kind": "k7", "size": "3"}] * 1000}
    outcome = judged(of(("ops",), ops=many({"anyOf": many_arms})), calls)
    assert outcome.arguments == {"ops": [{"kind": "k7", "size": 3}] * 1000}


def test_a_numbered_key_of_another_arm_is_work() -> None:
    arms = {"anyOf": [of(("city",), city=TEXT), of(("zip",), zip=TEXT)]}
    assert not judged(of(("stops",), stops=many(arms)), {"stops": [{"city": "Oslo", "zip2": "0150"}]}).ok


def test_one_tool_serves_many_threads() -> None:
    tool = Tool("edit", EDIT)
    broken = json.dumps({"path": "a", "edits": json.dumps([{"old_text": "x", "newText": "y", "odd": 1}])})
    found: list[Any] = []

    def work() -> None:
        for _ in range(40):
            outcome = check(tool, broken)
            found.append((outcome.arguments == EDITED, len(outcome.repairs), check(tool, "{}").ok))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(True, 3, False)] * 320


@pytest.mark.parametrize("depth", [600, 900, 950, 970])
def test_a_deep_stack_below_raises_nothing(depth: int) -> None:
    broken = json.dumps({"path": "a", "edits": json.dumps([{"old_text": "x", "newText": "y"}])})
    tool = Tool("edit", EDIT)

    def at(left: int, then: Callable[[], Outcome]) -> Outcome:
        return then() if left == 0 else at(left - 1, then)

    outcome = at(depth - 80, lambda: check(tool, broken))
    assert outcome.ok or outcome.violations[0].code == "too_deep"


def test_a_wide_schema() -> None:
    properties = {f"prop_{number}": {"type": "integer", "description": "d" * 60} for number in range(5000)}
    tool = Tool("wide", of(("prop_1",), **properties))
    outcome = check(tool, json.dumps({f"Prop-{number}": "7" for number in range(900)}))
    assert outcome.arguments == {f"prop_{number}": 7 for number in range(900)}


BOTH = of((), a=TEXT, b=TEXT)


@pytest.mark.parametrize("written", ["{'a': '/* c */'// c'\n}", '{"a": "x"// c"\n}', "{“a”: “x”/* c” */}"])
def test_a_comment_that_holds_the_quote_before_it_may_be_text(written: str) -> None:
    outcome = judged(BOTH, written)
    assert not outcome.ok
    assert outcome.violations[0].code == "unescaped_quote"


@pytest.mark.parametrize(
    "written", ['{"a": "x" // it\'s fine\n}', '{"a": "x" /* 1 */ /* 2 */}', '{/* "b": "y" */ "a": "x", // say "x"\n}']
)
def test_any_other_comment_goes(written: str) -> None:
    assert judged(BOTH, written).arguments == {"a": "x"}


@pytest.mark.parametrize("held", ['{"name": "x", "size": 3}', {"name": "x", "size": 3}, "[broken {"])
def test_a_call_inside_an_undeclared_key_is_not_dropped(held: Any) -> None:
    assert not judged(of(("name",), name=TEXT, size=COUNT), {"name": "tool", "input": held}).ok
