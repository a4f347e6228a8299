"""What providers send that stands in no documentation: it is read for what it means, or left alone."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onspec.gateway import sse
from onspec.gateway.apis import APIS
from onspec.gateway.body import mend
from onspec.gateway.contracts import ContractCache
from onspec.gateway.cut import hopeless
from onspec.gateway.leak import recover_with
from onspec.gateway.rewrite import Rewriter
from onspec.gateway.splice import Places, splice
from onspec.gateway.verdict import judge_with
from onspec.providers.script import Block
from onspec.repair.policy import Policy
from tests.gateway.rig import SCHEMAS, call, says, tools
from tests.gateway.samples import encoded
from tests.gateway.test_cut import CHOICES
from tests.gateway.test_rewrite import BROKEN, GOOD, TOOL, frames, numbers, read, safe, through

NAMES = {**SCHEMAS, "list": CHOICES}
JUNK = '{"path": "a.py", "requireUnique": true, "edits": []}'


def events(*data: dict[str, Any]) -> bytes:
    """Events that name themselves, numbered."""
    return b"".join(sse.encode({**one, "sequence_number": number}, one["type"]) for number, one in enumerate(data))


def chunks(*choices: dict[str, Any]) -> bytes:
    """Chunks of one choice each, and the end."""
    made = ({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [c]} for c in choices)
    return b"".join(map(sse.encode, made)) + b"data: [DONE]\n\n"


def piece(
    text: str, name: str | None = None, choice: int = 0, reason: str | None = None, **more: Any
) -> dict[str, Any]:
    """A piece of a call as a choice."""
    begun = {"id": f"call_{choice}", "type": "function"} if name else {}
    function = {"arguments": text, **({"name": name} if name else {})}
    delta = {"tool_calls": [{"index": 0, **begun, "function": function}], **more}
    return {"index": choice, "delta": delta, "finish_reason": reason}


def told(name: str, arguments: str, *kinds: str) -> bytes:
    """A Responses call whose arguments come in no pieces, only in these events and in the last one."""
    item = {"id": "fc", "type": "function_call", "status": "in_progress", "call_id": "c", "name": name, "arguments": ""}
    done = {**item, "status": "completed", "arguments": arguments}
    known = {
        "arguments": {
            "type": "response.function_call_arguments.done",
            "item_id": "fc",
            "output_index": 0,
            "arguments": arguments,
        },
        "item": {"type": "response.output_item.done", "output_index": 0, "item": done},
    }
    return events(
        {"type": "response.created", "response": {"id": "r", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *(known[kind] for kind in kinds),
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [done]}},
    )


@pytest.mark.parametrize("kinds", [("arguments", "item"), ("item",), ()])
@pytest.mark.parametrize(("name", "arguments"), [("edit", GOOD), ("list", '{"depth": 5}'), ("list_files", '{"a": 1}')])
def test_arguments_that_come_in_one_piece_at_the_end_are_the_arguments(
    kinds: tuple[str, ...], name: str, arguments: str
) -> None:
    """A call without pieces is not one without arguments: what conforms passes byte for byte."""
    data = told(name, arguments, *kinds)
    out, rewriter = through("responses", data, names=NAMES)
    assert out == data
    assert [live.verdict.status for live in rewriter.calls if live.verdict] == ["accepted"]


@pytest.mark.parametrize("kinds", [("arguments", "item"), ("item",), ()])
def test_arguments_that_come_in_one_piece_at_the_end_are_mended(kinds: tuple[str, ...]) -> None:
    """Every copy is the mended one, and so is what stands for the pieces."""
    out, _ = through("responses", told("edit", JUNK, *kinds))
    text, _, copies = read("responses", out)
    assert {json.dumps(json.loads(one)) for one in [*text.values(), *copies]} == {'{"path": "a.py", "edits": []}'}
    assert numbers(out) == sorted(set(numbers(out)))


@pytest.mark.parametrize("given", [json.loads(JUNK), JUNK])
def test_arguments_in_the_start_of_a_block(given: Any) -> None:
    """An Anthropic block that begins with its arguments is judged like any other."""
    start = {"type": "tool_use", "id": "t", "name": "edit"}
    data = events(
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {**start, "input": given}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    )
    out, _ = through("anthropic", data)
    assert json.loads(read("anthropic", out)[0][0]) == {"path": "a.py", "edits": []}
    good = data.replace(json.dumps(given, separators=(",", ":")).encode(), GOOD.encode())
    assert through("anthropic", good)[0] == good


def test_the_calls_of_one_choice_end_with_it_and_no_others() -> None:
    """With several choices in one stream, one that stops says nothing of the others."""
    stop = {"index": 0, "delta": {}, "finish_reason": "length"}
    data = chunks(
        piece(GOOD, "edit"),
        piece(GOOD[:15], "edit", 1),
        stop,
        piece(GOOD[15:], choice=1),
        {**stop, "index": 1, "finish_reason": "tool_calls"},
    )
    assert through("chat", data)[0] == data
    assert through("chat", data, "call")[0] == data


def test_each_choice_of_a_body_has_its_own_end() -> None:
    """A free text that was cut is told by the reason of its own choice."""
    free = {"id": "c", "type": "custom", "custom": {"name": "code_exec", "input": "rm -rf /tmp/"}}
    whole = {"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}
    cut = {"index": 1, "message": {"tool_calls": [free]}, "finish_reason": "length"}
    body = json.dumps({"choices": [whole, cut]}).encode()
    contracts = ContractCache().of({"tools": tools("chat")})
    with pytest.raises(Exception, match="cut off"):
        _run(mend(body, APIS["chat"], contracts, judge_with(safe), None))


def test_an_empty_reason_is_none() -> None:
    """Some servers write `"finish_reason": ""` where the API has null."""
    data = chunks(piece(GOOD[:9], "edit", reason=""), piece(GOOD[9:], reason=""), piece("", reason="tool_calls"))
    assert through("chat", data)[0] == data


def test_what_stands_beside_a_piece_that_is_left_out_stays() -> None:
    """A chunk with reasoning in it is not left out with the piece of the call."""
    data = chunks(
        piece('{"path": "a.py", ', "edit"),
        piece('"requireUnique": true,', reasoning_content="hm"),
        piece(' "edits": []}', reason="tool_calls"),
    )
    out, _ = through("chat", data)
    assert b'"reasoning_content":"hm"' in out
    assert json.loads(read("chat", out)[0][0, 0]) == {"path": "a.py", "edits": []}


def test_numbers_go_on_behind_an_added_event() -> None:
    """Whatever follows an added event, comments and events that nobody reads too, the numbers never go back."""
    item = {"id": "fc", "type": "function_call", "call_id": "c", "name": "list", "arguments": ""}
    done = {**item, "status": "completed", "arguments": ""}
    text = {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "x"}
    data = events(
        {"type": "response.created", "response": {"id": "r", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        text,
        {**text, "type": "response.reasoning_text.delta"},
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [done]}},
    )
    out, _ = through("responses", data, names=NAMES)
    assert b"function_call_arguments.delta" in out
    assert numbers(out) == sorted(set(numbers(out)))


@pytest.mark.parametrize("api", APIS)
def test_comments_between_held_events_pass(api: str) -> None:
    """Some providers send comments to keep the connection; they are no events, wherever they come."""
    data = encoded(api, says(call("now", ""), call("edit", BROKEN["alias"], 3), Block("text", "Done.")))
    kept = b"".join(frame.raw + b": keep\n\n" for frame in frames(data))
    out, _ = through(api, kept)
    assert out.count(b": keep\n\n") == kept.count(b": keep\n\n")
    assert out.replace(b": keep\n\n", b"") == through(api, data)[0]


@pytest.mark.parametrize("api", ["anthropic", "chat"])
def test_a_reply_that_ends_while_a_refused_call_goes_on(api: str) -> None:
    """One call makes the whole reply an error; another, refused and half sent, does not keep the error back."""
    any_tool = {"run": {"type": "object"}, "edit": TOOL.schema.document if TOOL.schema else {}}
    parts = ['{"path": "a.py", "edits": 5, ', '"x": ', "1}"]
    if api == "chat":
        made = [piece(parts[0], "edit"), piece('{"a": [1', "run", 1), piece(parts[1]), piece(parts[2])]
        data = chunks(*made, {"index": 0, "delta": {}, "finish_reason": "length"}, piece("", None, 1, "length"))
    else:
        starts = [
            {"type": "content_block_start", "index": i, "content_block": {"type": "tool_use", "id": "t", "name": n}}
            for i, n in enumerate(any_tool)
        ]
        texts = [(1, parts[0]), (0, '{"a": [1'), (1, parts[1]), (1, parts[2])]
        deltas = [
            {"type": "content_block_delta", "index": i, "delta": {"type": "input_json_delta", "partial_json": text}}
            for i, text in texts
        ]
        end = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {}}
        data = events({"type": "message_start", "message": {}}, *starts, *deltas, end, {"type": "message_stop"})
    out, rewriter = through(api, data, names=any_tool)
    assert rewriter.failed is not None
    assert b'"error"' in out


BAD: list[Any] = [None, True, 0, -1, 1.5, 10**30, "", "x", [], {}, [1], {"a": 1}, [[]], float("nan"), "\ud800"]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else []):
        yield from _places(inner, (*path, key))


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> Any:
    """A value with anything at all at one place of it, or nothing there."""
    made = copy.deepcopy(value)
    path = draw(st.sampled_from([path for path in _places(made) if path] or [()]))
    holder = made
    for part in path[:-1]:
        holder = holder[part]
    if path and draw(st.booleans()):
        del holder[path[-1]]
    elif path:
        holder[path[-1]] = draw(st.sampled_from(BAD))
    return made


@settings(max_examples=400, deadline=None)
@given(st.data(), st.sampled_from(list(APIS)), st.booleans())
def test_an_event_in_another_form_is_left_alone(data: st.DataObject, api: str, retry: bool) -> None:
    """Whatever stands anywhere in any event, nothing raises and nothing is held back for ever."""
    turn = says(Block("text", "<invoke"), call("edit", data.draw(st.sampled_from([GOOD, *BROKEN.values()])), 30))
    sent = frames(encoded(api, turn))
    which = data.draw(st.sampled_from([index for index, frame in enumerate(sent) if isinstance(frame.json(), dict)]))
    sent[which] = sse.parse(sse.encode(data.draw(damaged(sent[which].json())), sent[which].name))
    contracts = ContractCache().of({"tools": tools(api)})
    recover = recover_with(Policy.safe())
    rewriter = Rewriter(APIS[api], contracts, judge_with(safe), "value", retry, None, recover, safe)
    out = b"".join(map(rewriter.feed, sent)) + rewriter.close(False)
    for live in list(rewriter.waiting):
        APIS[api].before(rewriter.history, live.key)
        out += rewriter.settle(live, rewriter._judge(live.match, live.stream.text, None), {})
    if rewriter.missing:
        APIS[api].said(rewriter.history)
    else:
        assert not rewriter._queue


def _run(coroutine: Any) -> Any:
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


BODIES: dict[str, Any] = {
    "anthropic": {
        "content": [
            {"type": "text", "text": "a <invoke"},
            {"type": "tool_use", "id": "t", "name": "edit", "input": json.loads(JUNK)},
        ],
        "stop_reason": "tool_use",
        "usage": {"output_tokens": 1},
    },
    "chat": {
        "choices": [
            {
                "message": {
                    "content": "a <invoke",
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "edit", "arguments": JUNK}}],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"completion_tokens": 1},
    },
    "responses": {
        "output": [
            {"type": "message", "content": [{"type": "output_text", "text": "a <invoke"}]},
            {"type": "function_call", "call_id": "c", "name": "edit", "arguments": JUNK},
        ],
        "status": "completed",
        "usage": {"output_tokens": 1},
    },
}


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from(list(APIS)))
def test_a_body_in_another_form_is_left_alone(data: st.DataObject, api: str) -> None:
    """The same of a body that was not streamed, and of all that is replayed of it."""
    body = data.draw(damaged(BODIES[api]))
    contracts = ContractCache().of({"tools": tools(api)})
    recover = recover_with(Policy.safe())
    _run(mend(json.dumps(body).encode(), APIS[api], contracts, judge_with(safe), None, recover))
    APIS[api].whole(body)
    APIS[api].said_in(body)
    for whole in APIS[api].calls(body):
        APIS[api].before_in(body, whole)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_splicing_is_setting(data: st.DataObject) -> None:
    """What stands at a place afterwards is the value, and everything else is as it was, however many places."""
    leaves = st.one_of(st.none(), st.integers(), st.text(max_size=4))
    value = data.draw(
        st.recursive(leaves, lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(max_size=3), inner)))
    )
    text = json.dumps(value, indent=data.draw(st.sampled_from([None, 1])))
    edits = [
        (path, data.draw(leaves)) for path in data.draw(st.lists(st.sampled_from(list(_places(value))), max_size=4))
    ]
    expected, done = value, list[Any]()
    for path, new in edits:
        if any(path[: len(one)] == one or one[: len(path)] == path for one in done):
            return  # one place inside another
        done.append(path)
        expected = _set(expected, path, new)
    assert json.loads(splice(text.encode(), edits)) == expected


def _set(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    made = copy.copy(value)
    made[path[0]] = _set(made[path[0]], path[1:], new)
    return made


def test_a_place_that_is_not_there() -> None:
    """It is left out, not made; and the last of equal keys counts."""
    assert splice(b'{"a": [1]}', [(("b",), 1), (("a", 1), 1), (("a", "x"), 1), ((0,), 1)]) == b'{"a": [1]}'
    assert splice(b'{"a": 1, "a": 2}', [(("a",), 3)]) == b'{"a": 1, "a": 3}'
    assert Places(" 12 ").find(()) == (1, 3)


def _seconds(api: str, turn: Any, names: Any = SCHEMAS) -> float:
    data = frames(encoded(api, turn))
    contracts, recover = ContractCache().of({"tools": tools(api, names)}), recover_with(Policy.safe())
    rewriter = Rewriter(APIS[api], contracts, judge_with(safe), "value", recover=recover, policy=safe)
    started = time.process_time()
    for frame in data:
        rewriter.feed(frame)
    rewriter.close(False)
    return time.process_time() - started


MANY = {
    "calls": lambda count: says(*[call("edit", BROKEN["alias"], 0)] * count),
    "text": lambda count: says(Block("text", "a <b> " * 16 * count, chunk=8)),
    "held": lambda count: says(call("edit", '{"path": "' + "</" * 8 * count, 2)),
    "members": lambda count: says(
        call("map", '{"map": {' + ", ".join(f'"k{n}": "5"' for n in range(8 * count)) + "}}", 2000)
    ),
}
MAP = {"type": "object", "properties": {"map": {"type": "object", "additionalProperties": {"type": "integer"}}}}


@pytest.mark.parametrize("kind", MANY)
@pytest.mark.parametrize("api", APIS)
def test_time_grows_with_the_reply(api: str, kind: str) -> None:
    """Many calls, many held events, many mended members: eight times as much takes no thirty times as long."""
    names = {**SCHEMAS, "map": MAP}
    few, many = (min(_seconds(api, MANY[kind](count), names) for _ in range(2)) for count in (250, 2000))
    assert many < 30 * few


@pytest.mark.parametrize("api", APIS)
def test_text_that_waits_for_a_call_goes_on_at_any_end(api: str) -> None:
    """Markup that has begun holds nothing back where the reply breaks off, or ends without a reason."""
    sent = frames(encoded(api, says(Block("text", "see <invoke and more", chunk=4))))
    wire = APIS[api].stream()
    for frame in sent[:-1]:
        wire.read(frame)
    ends: list[list[sse.Frame]] = [[*sent[:-2], sse.parse(wire.failure("overloaded"))]]
    if api == "chat":
        ends.append([frame for frame in sent if b'"finish_reason":"' not in frame.raw])
        more = {"index": 1, "delta": {"content": " <invoke again"}, "finish_reason": None}
        ends.append([*sent[:-1], *frames(chunks(more))])
    for end in ends:
        contracts = ContractCache().of({"tools": tools(api)})
        recover = recover_with(Policy.safe())
        rewriter = Rewriter(APIS[api], contracts, judge_with(safe), "value", recover=recover, policy=safe)
        out = b"".join(map(rewriter.feed, end)) + rewriter.close(False)
        assert out == b"".join(frame.raw for frame in end)


def test_a_refused_call_stays_hopeless_when_it_is_closed() -> None:
    """Half of a surrogate pair, written as itself in a key that would go, is seen before the key goes."""
    text = '{"path": "a.py", "requireUnique": {"a": "\udc00"}, "edits": []}'
    out, rewriter = through("chat", chunks(piece(text, "edit"), piece("", reason="tool_calls")))
    assert rewriter.failed is None
    got = read("chat", out)[0][0, 0]
    assert got == text or hopeless(TOOL, json.loads(got))


def shared(calls: list[str], index: bool, size: int, reason: str = "tool_calls") -> bytes:
    """Calls of `edit` that all have one index, or none, and ids of their own; each in pieces of `size`."""
    made = []
    for number, text in enumerate(calls):
        for at in range(0, max(len(text), 1), size):
            one: dict[str, Any] = {"index": 0} if index else {}
            if at == 0:
                one |= {"id": f"call_{number}", "type": "function"}
            function = {"arguments": text[at : at + size], **({"name": "edit"} if at == 0 else {})}
            made.append({"index": 0, "delta": {"tool_calls": [{**one, "function": function}]}, "finish_reason": None})
    return chunks(*made, {"index": 0, "delta": {}, "finish_reason": reason})


def by_id(out: bytes) -> list[str]:
    """The arguments of each call, for a client that takes a new id for a new call."""
    texts: list[str] = []
    for frame in frames(out):
        event = frame.json() if frame.data and frame.data != b"[DONE]" else {}
        for choice in event.get("choices", []):
            for one in choice["delta"].get("tool_calls", []):
                if one.get("id"):
                    texts.append("")
                texts[-1] += one["function"].get("arguments") or ""
    return texts


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_calls_that_share_an_index_are_told_apart_by_their_ids(index: bool, size: int) -> None:
    """What conforms passes byte for byte; of the others each is mended in its own place."""
    data = shared([GOOD, GOOD, GOOD], index, size)
    out, rewriter = through("chat", data)
    assert out == data
    assert [live.verdict.status for live in rewriter.calls if live.verdict] == ["accepted"] * 3
    whole = '{"path": "a.py", "edits": []}'
    out, _ = through("chat", shared([GOOD, JUNK, whole[:-1], GOOD, whole[:-1]], index, size))
    assert [json.loads(text) for text in by_id(out)] == [json.loads(text) for text in (GOOD, whole, whole, GOOD, whole)]


@pytest.mark.parametrize("size", [7, 10_000])
def test_ids_made_up_for_each_piece_begin_no_call(size: int) -> None:
    """A piece that does not begin as a call does, or has no name, goes on with the one before."""
    data = shared([JUNK], True, size).decode()
    pieces = data.split('"index": 0, "function"')
    text = pieces[0]
    for number, rest in enumerate(pieces[1:]):
        text += f'"index": 0, "id": "made_{number}", "function"{rest}'
    _out, rewriter = through("chat", text.encode())
    assert len(rewriter.calls) == 1
    assert rewriter.calls[0].verdict is not None
    assert rewriter.calls[0].verdict.status == "repaired"


def test_the_last_call_that_shares_an_index_may_be_cut() -> None:
    """The limit came inside the second: the first stands, the second cannot run."""
    out, _ = through("chat", shared([GOOD, GOOD[:-9]], True, 7, "length"))
    first, second = by_id(out)
    assert first == GOOD
    assert hopeless(TOOL, json.loads(second))
