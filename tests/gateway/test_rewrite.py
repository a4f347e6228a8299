"""Broken calls in a stream: only their own events change, and what the client reads is what the core decided."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onspec import Policy, Tool, check
from onspec.gateway import sse
from onspec.gateway.apis import APIS
from onspec.gateway.contracts import ContractCache
from onspec.gateway.cut import hopeless
from onspec.gateway.rewrite import Hold, Rewriter
from onspec.gateway.verdict import judge_with
from onspec.gateway.wire import Copy, Delta, Start, at
from onspec.providers import PROVIDERS
from onspec.providers.script import Block, Turn
from tests.gateway.rig import EDIT, PATHS, SCHEMAS, call, request, says, tools
from tests.gateway.samples import encoded
from tests.gateway.test_stream import texts

TOOL = Tool("edit", EDIT)
GOOD = '{"path": "a.py", "edits": [{"oldText": "x = 1", "newText": "x = \\"2\\""}]}'
BROKEN = {
    "extra_key": '{"path": "a.py", "edits": [{"oldText": "x", "newText": "y", "requireUnique": true}]}',
    "extra_key_first": '{"reason": null, "path": "a.py", "edits": [{"oldText": "x", "newText": "y"}]}',
    "stringified": '{"path": "a.py", "edits": "[{\\"oldText\\": \\"x\\", \\"newText\\": \\"y\\"}]"}',
    "alias": '{"file_path": "a.py", "edits": [{"old_string": "x", "new_string": "y"}]}',
    "no_closers": '{"path": "a.py", "edits": [{"oldText": "x", "newText": "y"',
    "fence": '```json\n{"path": "a.py", "edits": [{"oldText": "x", "newText": "y"}]}\n```',
    "trailing_comma": '{"path": "a.py", "edits": [{"oldText": "x", "newText": "y"},],}',
    "numbered": '{"path": "a.py", "edits": [{"oldText": "x", "newText": "y", "oldText2": "p", "newText2": "q"}]}',
    "twice": '{"path": "a.py", "edits": [{"oldText": "x", "newText": "y"}]}' * 2,
}


def safe(tool: Tool) -> Policy:
    """The policy of every tool."""
    return Policy.safe()


def through(
    api: str, data: bytes, hold: Hold = "value", size: int = 10**6, names: Any = SCHEMAS
) -> tuple[bytes, Rewriter]:
    """A reply sent through a rewriter in pieces of a size."""
    contracts = ContractCache().of({"tools": tools(api, names)})
    rewriter = Rewriter(APIS[api], contracts, judge_with(safe), hold, policy=safe)
    reader = sse.Reader()
    out = b""
    for index in range(0, len(data), size):
        for frame in reader.feed(data[index : index + size]):
            out += rewriter.feed(frame)
    return out + rewriter.close(False, reader.close()), rewriter


def frames(data: bytes) -> list[sse.Frame]:
    """The frames of a whole stream."""
    reader = sse.Reader()
    return reader.feed(data)


def read(api: str, data: bytes) -> tuple[dict[Any, str], dict[Any, str], list[str]]:
    """What a client reads: arguments by call, names by call, and every whole copy of the arguments."""
    wire = APIS[api].stream()
    text: dict[Any, str] = {}
    names: dict[Any, str] = {}
    copies: list[str] = []
    for frame in frames(data):
        for mark in wire.read(frame):
            if isinstance(mark, Start):
                names[mark.key], text[mark.key] = mark.name, ""
            elif isinstance(mark, Delta):
                text[mark.key] += mark.text
            elif isinstance(mark, Copy) and mark.path is not None:
                copies.append(at(frame.json(), mark.path))
    return text, names, copies


def numbers(data: bytes) -> list[int]:
    """The sequence numbers of a Responses stream."""
    return [
        event["sequence_number"]
        for frame in frames(data)
        if frame.data and (event := frame.json()) and "sequence_number" in event
    ]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("hold", ["value", "call"])
@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("chunk", [0, 1, 7])
def test_a_broken_call_arrives_mended(api: str, hold: Hold, name: str, chunk: int) -> None:
    """Whatever the wire and the cut, the client's arguments are those the core decided; neighbours are untouched."""
    outcome = check(TOOL, BROKEN[name])
    assert outcome.status == "repaired"
    turn = says(
        Block("thinking", "hm"),
        Block("text", "Now."),
        call("edit", GOOD),
        call("edit", BROKEN[name], chunk),
        call("now", "{}"),
    )
    data = encoded(api, turn)
    out, rewriter = through(api, data, hold)
    text, _, copies = read(api, out)
    good, mended, last = text.values()
    assert (good, last) == (GOOD, "{}")
    assert json.loads(mended) == outcome.arguments
    assert all(copy in (good, mended, last) for copy in copies)
    assert [live.verdict.status for live in rewriter.calls if live.verdict] == ["accepted", "repaired", "accepted"]
    kept = [
        frame.raw
        for frame in frames(data)
        if b"edit" not in frame.raw and b"partial_json" not in frame.raw and b"arguments" not in frame.raw
    ]
    if api != "responses":  # there, numbers behind an added event move up
        assert [raw for raw in kept if raw not in out] == []
    assert numbers(out) == sorted(set(numbers(out)))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("size", [1, 3, 64])
def test_the_cut_of_the_wire_is_invisible(api: str, size: int) -> None:
    """The same bytes go out however the bytes came in."""
    turn = says(Block("text", "é😀"), *(call("edit", text, 5) for text in BROKEN.values()))
    data = encoded(api, turn)
    assert through(api, data, size=size)[0] == through(api, data)[0]


@settings(max_examples=150, deadline=None)
@given(texts(), st.integers(0, 9), st.sampled_from(list(APIS)), st.sampled_from(["value", "call"]))
def test_any_call_any_wire(text: str, chunk: int, api: str, hold: Hold) -> None:
    """Accepted: the very bytes. Repaired: the core's arguments. Refused: as it came, or, cut, one that nobody runs."""
    outcome = check(TOOL, text)
    data = encoded(api, says(call("edit", text, chunk), call("now", "{}")))
    out, rewriter = through(api, data, hold)
    assert rewriter.failed is None
    read_text = next(iter(read(api, out)[0].values()))
    if outcome.status == "accepted":
        assert out == data
    elif outcome.status == "repaired":
        assert json.loads(read_text) == outcome.arguments
    elif rewriter.calls[0].verdict is not None and rewriter.calls[0].verdict.status == "refused":
        if rewriter.calls[0].tail is None:
            assert not rewriter.calls[0].verdict.cut
            assert read_text == text
        else:
            assert hopeless(TOOL, json.loads(read_text))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("written", ["functions.edit", "Edit", "mcp__files__edit"])
def test_a_name_is_mended_everywhere(api: str, written: str) -> None:
    """A prefix or another case of a declared name becomes the declared one, in every copy of it."""
    out, rewriter = through(api, encoded(api, says(call(written, GOOD))))
    assert list(read(api, out)[1].values()) == ["edit"]
    assert written.encode() not in out
    assert rewriter.calls[0].verdict is not None
    assert rewriter.calls[0].verdict.status == "repaired"


@pytest.mark.parametrize("api", APIS)
def test_a_refused_call_passes_with_a_comment(api: str) -> None:
    """An unknown tool and a call that cannot be mended go on as they came, each with one comment."""
    data = encoded(api, says(call("nothing_like_it", "{}"), call("edit", '{"path": 1, "edits": 2}')))
    out, _ = through(api, data)
    comments = [frame.raw for frame in frames(out) if frame.raw.startswith(b": onspec refused")]
    assert len(comments) == 2
    assert out.replace(comments[0], b"").replace(comments[1], b"") == data


@pytest.mark.parametrize("api", APIS)
def test_no_tools_no_say(api: str) -> None:
    """A request without tools, or a tool whose contract cannot be used: every byte passes."""
    data = encoded(api, says(call("edit", BROKEN["extra_key"])))
    assert api != "anthropic" or through(api, data, names={})[0] == data
    assert through(api, data, names={"edit": {"type": "nonsense"}})[0] == data


def test_halves_of_a_pair_in_two_deltas_are_one_character() -> None:
    """JavaScript servers cut between the halves of a surrogate pair; the call still conforms."""
    text = '{"path": "😀", "edits": []}'
    head, tail = text.split("😀")
    data = encoded("anthropic", says(call("edit", "#1#")))
    pieces = [head + "\ud83d", "\ude00" + tail]
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta"}}
    made = b"".join(
        sse.encode({**event, "delta": {**event["delta"], "partial_json": piece}}, event["type"]) for piece in pieces
    )
    parts = frames(data)
    whole = b"".join(made if b'"#1#"' in frame.raw else frame.raw for frame in parts)
    out, rewriter = through("anthropic", whole)
    assert out == whole
    assert rewriter.calls[0].verdict is not None
    assert rewriter.calls[0].verdict.status == "accepted"


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_stops_ends_in_an_error(api: str) -> None:
    """Wherever the provider's stream stops before its end, the client sees an error and no whole reply."""
    data = encoded(api, says(Block("text", "Now."), call("edit", BROKEN["extra_key"], 20)))
    parts = frames(data)
    for events, left in [(n, left) for n in range(2, len(parts)) for left in (b"", parts[n].raw[:-9])]:
        whole = b"".join(frame.raw for frame in parts[:events])
        out, rewriter = through(api, whole + left)
        last = frames(out)[-1]
        if b'"finish_reason":"tool_calls"' in whole or b"message_delta" in whole:
            assert not left or last.raw == APIS[api].stream().ending()  # whole, but for its last event
            continue
        assert rewriter.failed is not None
        assert b"error" in last.raw
        assert last.json() is not None
        assert not [end for end in (b"message_stop", b"[DONE]", b"response.completed") if end in out]


def test_two_choices_in_one_chunk() -> None:
    """One choice of a chunk has ended and the other has not: the end is seen."""
    data = encoded("chat", says(call("edit", BROKEN["no_closers"])))
    *events, last, usage, done = frames(data)
    event = last.json()
    event["choices"].append({"index": 1, "delta": {"content": "x"}, "finish_reason": None})
    out, rewriter = through("chat", b"".join(frame.raw for frame in events) + sse.encode(event) + usage.raw + done.raw)
    assert rewriter.failed is None
    assert json.loads(next(iter(read("chat", out)[0].values()))) == check(TOOL, BROKEN["no_closers"]).arguments


NAMESPACED = {
    "input": [
        {
            "type": "additional_tools",
            "role": "developer",
            "tools": [
                {
                    "type": "namespace",
                    "name": "functions",
                    "tools": [
                        {"type": "function", "name": "edit", "parameters": EDIT},
                        {
                            "type": "custom",
                            "name": "exec",
                            "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
                        },
                    ],
                }
            ],
        }
    ]
}


def test_tools_are_found_wherever_they_are_declared() -> None:
    """Top level, namespaces and an input item of additional tools; custom tools have a grammar and no schema."""
    found = ContractCache().of(NAMESPACED)
    edit, custom = found.find("edit", "functions"), found.find("exec", "functions")
    assert edit is not None
    assert edit.tool is not None
    assert edit.tool.schema is not None
    assert custom is not None
    assert custom.tool is not None
    assert custom.tool.schema is None
    assert custom.tool.grammar is not None
    assert custom.tool.grammar.syntax == "lark"
    assert found.find("edit") is not None
    built = ContractCache().of(
        {
            "tools": [
                {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
                {"type": "bash_20250124", "name": "bash"},
                {"type": "web_search_20250305", "name": "web_search"},
            ]
        }
    )
    editor = built.find("str_replace_based_edit_tool")
    assert editor is not None
    assert editor.tool is not None
    assert editor.tool.effect == "write"
    assert not editor.tool.is_valid({"command": "undo_edit", "path": "a"})
    assert built.find("web_search") is None


def test_a_custom_call_passes_untouched() -> None:
    """Free text is not JSON and is never looked at as such."""
    patch = Turn((Block("custom_tool", '*** Begin "Patch"\n{not json\n', name="apply_patch"),))
    data = encoded("responses", patch)
    assert through("responses", data)[0] == data


def test_requests_of_every_api_have_a_path() -> None:
    """The three APIs the gateway knows are those the scripted provider writes."""
    assert {name: one.path for name, one in PROVIDERS.items()} == PATHS
    assert set(PATHS) == set(APIS)
    assert all(request(api)["tools"] for api in APIS)


JUNK_THEN_TEXT = '{"path": "a.py", "requireUnique": true, "edits": [{"oldText": "x", "newText": "%s"}]}'


@pytest.mark.parametrize("api", APIS)
def test_what_follows_an_unknown_key_streams(api: str) -> None:
    """Events behind an unknown key go on as they come; those that only carried it are not sent."""
    text = JUNK_THEN_TEXT % ("some words " * 200)
    data = encoded(api, says(call("edit", text, 10)))
    contracts = ContractCache().of({"tools": tools(api)})
    rewriter = Rewriter(APIS[api], contracts, judge_with(safe), policy=safe)
    behind, out, most = 0, b"", 0
    for frame in frames(data):
        made = rewriter.feed(frame)
        behind = 0 if made else behind + 1
        most = max(most, behind)
        out += made
    assert most <= 4
    assert json.loads(next(iter(read(api, out)[0].values()))) == check(TOOL, text).arguments
    assert b"requireUnique" not in out
    assert len(frames(out)) >= len(frames(data)) - 3


@pytest.mark.parametrize("api", APIS)
def test_refused_after_something_was_left_out(api: str) -> None:
    """What was sent lacks a key already, so the call cannot pass as it came: it becomes one that nobody runs."""
    text = '{"path": "a.py", "requireUnique": true, "edits": [{"oldText": "x", "newText": "y", "newText2": "z"}]}'
    assert check(TOOL, text).status == "refused"
    out, rewriter = through(api, encoded(api, says(call("edit", text, 5), call("now", "{}"))))
    first, last = read(api, out)[0].values()
    assert rewriter.failed is None
    assert hopeless(TOOL, json.loads(first))
    assert "/edits/0/newText2" in json.loads(first)["path"]["INVALID_JSON"]
    assert last == "{}"
    assert b": onspec refused edit" in out
    held, _ = through(api, encoded(api, says(call("edit", text, 5))), "call")
    assert list(read(api, held)[0].values()) == [text]


def test_two_calls_at_once_in_turns() -> None:
    """Chat's deltas of two broken calls, in turns and in one event: each arrives mended, whatever the other does."""
    texts = [JUNK_THEN_TEXT % "one", '{"path": "b.py", "edits": "[{\\"oldText\\": \\"p\\", \\"newText\\": \\"q\\"}]"}']
    start = [
        {"index": n, "id": f"c{n}", "type": "function", "function": {"name": "edit", "arguments": ""}} for n in (0, 1)
    ]
    size = max(map(len, texts))
    pieces = [
        [
            {"index": n, "function": {"arguments": text[at : at + 3]}}
            for n, text in enumerate(texts)
            if text[at : at + 3]
        ]
        for at in range(0, size, 3)
    ]

    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return sse.encode(
            {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        )

    data = chunk({"role": "assistant"}) + b"".join(chunk({"tool_calls": calls}) for calls in (start, *pieces))
    out, _ = through("chat", data + chunk({}, "tool_calls") + b"data: [DONE]\n\n")
    found = [json.loads(text) for text in read("chat", out)[0].values()]
    assert found == [check(TOOL, text).arguments for text in texts]


@pytest.mark.parametrize("api", APIS)
def test_mended_too_late(api: str) -> None:
    """An empty list that has gone out, filled by keys behind it: nobody runs half of it, and it counts as refused."""
    schemas = {"read": {**EDIT, "required": ["edits"]}}
    text = '{"edits": [], "oldText": "x", "newText": "y"}'
    assert check(Tool("read", schemas["read"]), text).status == "repaired"
    out, rewriter = through(api, encoded(api, says(call("read", text, 5))), names=schemas)
    assert hopeless(Tool("read", schemas["read"]), json.loads(next(iter(read(api, out)[0].values()))))
    assert rewriter.calls[0].verdict is not None
    assert rewriter.calls[0].verdict.status == "refused"
    assert b": onspec refused read" in out


CLOSING = {"anthropic": "content_block_stop", "chat": "", "responses": "response.function_call_arguments.done"}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("chunk", [0, 1, 7])
@pytest.mark.parametrize("text", ["{}", GOOD, *(text for name, text in BROKEN.items() if name != "no_closers")])
def test_nothing_waits_beyond_the_closing_event(api: str, chunk: int, text: str) -> None:
    """With the event that ends a call all of it has gone on; only missing brackets wait for the reason of the stop."""
    name = "now" if text == "{}" else "edit"
    parts = frames(encoded(api, says(call(name, text, chunk))))
    rewriter = Rewriter(APIS[api], ContractCache().of({"tools": tools(api)}), judge_with(safe), policy=safe)
    out = b""
    for frame in parts:
        out += rewriter.feed(frame)
        if frame.name == CLOSING[api] if api != "chat" else b'"finish_reason":"tool_calls"' in frame.raw:
            break
    expected = {} if name == "now" else check(TOOL, text).arguments
    assert json.loads(next(iter(read(api, out)[0].values()))) == expected
    assert out.count(b"\n\n") > 2
