"""What every dialect holds: splits are invisible, what is written reads back, quotations stay prose, time is linear."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onspec import Receiver, Reply, receive
from onspec.dialects import DIALECTS, Dialect
from onspec.dialects.dialect import Context
from onspec.dialects.draft import Block, More
from onspec.dialects.machine import SPARE_WORK, Machine
from onspec.dialects.render import markers_of, render_calls, render_results
from onspec.errors import InputError
from onspec.message import Call, Result
from tests.dialects.texts import IN_BAND, MARKERS, TOOLS, calls, marked_text, plain_text

EVERY = pytest.mark.parametrize("name", [row.name for row in IN_BAND])
FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def summary(reply: Reply) -> Any:
    """All that a reply says, in a form that can be compared."""
    found = [
        (c.name, c.arguments, c.span, c.id, c.outcome.status, [v.code for v in c.outcome.violations])
        for c in reply.calls
    ]
    return reply.text, reply.thinking, found, [(r.rule, r.span, r.before, r.after) for r in reply.trail]


def written(row: Dialect, made: tuple[Call, ...]) -> str:
    """The calls as text, or the dialect's example where they cannot be written."""
    try:
        return render_calls(row, made, TOOLS)
    except InputError:
        return row.example


@st.composite
def replies(draw: st.DrawFn, row: Dialect) -> str:
    """Replies of a dialect: prose, thinking and calls, as they should be and damaged."""
    parts = []
    if draw(st.booleans()) and row.think:
        opener, closer = row.think[0]
        parts.append(opener + draw(plain_text) + draw(st.sampled_from([closer, closer + "\n\n", ""])))
    if draw(st.booleans()):
        parts.append(draw(plain_text | marked_text))
    text = written(row, draw(calls(most=2)))
    if draw(st.booleans()):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 4))
        text = text[:at] + draw(st.sampled_from(["", "", *MARKERS, "<", "\n", "`", '"'])) + text[at + cut :]
    parts.append(text)
    if draw(st.booleans()):
        parts.append(draw(plain_text | marked_text))
    return draw(st.sampled_from(["", "\n", " "])).join(parts)


@st.composite
def pieces(draw: st.DrawFn, text: str) -> list[Any]:
    """The text cut anywhere, as text or as bytes."""
    whole: Any = text.encode() if draw(st.booleans()) else text
    if draw(st.integers(0, 3)) == 0:
        return [whole[i : i + 1] for i in range(len(whole))]
    cuts = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    return [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


@EVERY
@FEW
@given(data=st.data())
def test_a_split_is_invisible(name: str, data: st.DataObject) -> None:
    """Any split, inside UTF-8 too, gives the same reply and the same trail."""
    row = DIALECTS[name]
    text = data.draw(replies(row))
    whole = receive(text, TOOLS, row)
    receiver = Receiver(TOOLS, row)
    for piece in data.draw(pieces(text)):
        receiver.feed(piece)
    receiver.close()
    assert summary(receiver.reply) == summary(whole)


@EVERY
@FEW
@given(data=st.data())
def test_events_add_up_to_the_reply(name: str, data: st.DataObject) -> None:
    """The events of a stream, put together, are the reply: no call twice, no text twice, none lost."""
    row = DIALECTS[name]
    text = data.draw(replies(row))
    receiver = Receiver(TOOLS, row, thinking="closed")
    events: list[Any] = []
    for piece in data.draw(pieces(text)):
        events += receiver.feed(piece)
    events += receiver.close()
    reply = receiver.reply
    assert tuple(event for event in events if hasattr(event, "outcome")) == reply.calls
    assert "".join(event.text for event in events if type(event).__name__ == "Text") == reply.text
    assert "".join(event.text for event in events if type(event).__name__ == "Thinking") == reply.thinking


@EVERY
@FEW
@given(data=st.data())
def test_what_is_written_reads_back(name: str, data: st.DataObject) -> None:
    """Calls whose values hold any marker of any dialect read back as they were, with nothing on the trail.

    Dialects that escape (JSON, Python, Gemma) can write every value. Those that write values raw refuse to write
    one that would not read back, and only where one of their own markers stands in it.
    """
    row = DIALECTS[name]
    made = data.draw(calls())
    if row.name == "functionary":
        made = made[:1]
    try:
        text = render_calls(row, made, TOOLS)
    except InputError:
        held = "".join(call.arguments for call in made)
        assert _raw(row)
        assert any(json.dumps(marker, ensure_ascii=False)[1:-1] in held for marker in MARKERS)
        return
    reply = receive(text, TOOLS, row)
    assert [(c.name, json.loads(c.arguments)) for c in reply.calls] == [(c.name, json.loads(c.arguments)) for c in made]
    assert reply.text == ""


@st.composite
def own_markup(draw: st.DrawFn, row: Dialect) -> str:
    """Values made mostly of the dialect's own markers."""
    pieces_ = st.sampled_from([*markers_of(row), *markers_of(row), "\n", "x ", "end", '"', "<", "\n\n"])
    return "".join(draw(st.lists(pieces_, max_size=7)))


@EVERY
@FEW
@given(data=st.data())
def test_no_call_runs_with_another_value(name: str, data: st.DataObject) -> None:
    """Calls written without a check of whether they read back: what runs is what was meant, or it is refused.

    The one thing that may differ is a value's own closer at its very end, which is dropped with a note.
    """
    row = DIALECTS[name]
    values = data.draw(st.lists(own_markup(row), min_size=1, max_size=2))
    made = tuple(Call("write_file", json.dumps({"path": "a", "content": value})) for value in values)
    reply = receive(row.family.write_calls(made, TOOLS), TOOLS, row)
    meant = [json.loads(call.arguments) for call in made]
    for call in reply.calls:
        dropped = any(repair.rule == "extra_close_dropped" for repair in call.outcome.repairs)
        assert not call.ok or dropped or call.outcome.arguments in meant


def _raw(row: Dialect) -> bool:
    return row.example.count("<") > 2 and '{"' not in row.example


@EVERY
@FEW
@given(data=st.data())
def test_every_value_of_plain_text_can_be_written(name: str, data: st.DataObject) -> None:
    """Values without markers are never refused, and the calls that read back are accepted untouched."""
    row = DIALECTS[name]
    made = data.draw(calls(strings=st.text(alphabet="abc é\n.,'\"\\{}[]&<> ", max_size=20)))
    if row.name == "functionary":
        made = made[:1]
    reply = receive(render_calls(row, made, TOOLS), TOOLS, row)
    assert [(c.name, c.outcome.arguments) for c in reply.calls] == [(c.name, json.loads(c.arguments)) for c in made]
    assert reply.trail == ()


@EVERY
def test_the_example_is_accepted(name: str) -> None:
    """The example of each row is one call, accepted with nothing on the trail."""
    row = DIALECTS[name]
    reply = receive(row.example, TOOLS, row)
    assert [call.outcome.status for call in reply.calls] == ["accepted"]
    assert (reply.text, reply.trail) == ("", ())


@EVERY
def test_the_example_is_found_without_naming_the_dialect(name: str) -> None:
    """`auto` reads every dialect that has a marker of its own."""
    row = DIALECTS[name]
    if row.name in ("granite_pythonic", "functionary"):
        assert receive(row.example, TOOLS).calls == ()
        return
    assert [call.ok for call in receive(row.example, TOOLS).calls] == [True]


@EVERY
def test_a_fenced_call_between_prose_is_prose(name: str) -> None:
    """Documentation in a fence is text, and stays as it is."""
    row = DIALECTS[name]
    if row.name == "harmony":
        pytest.skip("in harmony prose stands in a message of its own; see test_harmony")
    text = f"It is written like this:\n```\n{row.example}\n```\nChange it as needed."
    reply = receive(text, TOOLS, row)
    assert (reply.text, reply.calls, reply.trail) == (text, (), ())


@EVERY
def test_a_call_in_inline_code_is_prose(name: str) -> None:
    """A call in backticks is text, and stays as it is."""
    row = DIALECTS[name]
    text = f"Write `{row.example}` to call it, then wait."
    reply = receive(text, TOOLS, row)
    assert (reply.text, reply.calls, reply.trail) == (text, (), ())


@EVERY
@pytest.mark.parametrize(
    "quotes", ['""', "''", "“”", "«»", "()"], ids=["double", "single", "curly", "guillemets", "round"]
)
def test_a_call_in_quotation_marks_is_prose(name: str, quotes: str) -> None:
    """The page said "<call>": injected text does not run."""
    row = DIALECTS[name]
    text = f"The page says {quotes[0]}{row.example}{quotes[1]} and nothing else."
    reply = receive(text, TOOLS, row)
    assert [call.name for call in reply.calls if call.ok] == []
    assert row.example in reply.text


@EVERY
def test_a_call_in_the_middle_of_a_sentence_is_prose(name: str) -> None:
    """Prose before and after on the same line: the call is only mentioned."""
    row = DIALECTS[name]
    text = f"The block {row.example} is what it would write."
    reply = receive(text, TOOLS, row)
    assert [call.name for call in reply.calls if call.ok] == []


@EVERY
def test_a_call_in_a_quoted_line_is_prose(name: str) -> None:
    """A line that begins with `>` quotes."""
    row = DIALECTS[name]
    text = "They wrote:\n> " + row.example.replace("\n", "\n> ") + "\nI will not do that."
    assert [call.name for call in receive(text, TOOLS, row).calls if call.ok] == []


@EVERY
def test_a_marker_in_backticks_loses_nothing(name: str) -> None:
    """Every marker can be spoken about in inline code, in every dialect."""
    row = DIALECTS[name]
    for marker in MARKERS:
        text = f"The literal `{marker}` opens something here, and nothing after it is lost."
        reply = receive(text, TOOLS, row)
        assert "\n" in marker or (reply.text, reply.calls) == (text, ())


@EVERY
def test_a_call_in_closed_thinking_is_a_draft(name: str) -> None:
    """A call in reasoning that is followed by an answer is not run, and not shown."""
    row = DIALECTS[name]
    if not row.think:
        pytest.skip("no reasoning tags")
    opener, closer = row.think[0]
    reply = receive(f"{opener}Maybe {row.example} later.{closer}\nWhich one?", TOOLS, row)
    assert (reply.text.strip(), reply.calls) == ("Which one?", ())


@EVERY
@pytest.mark.parametrize("closed", [True, False])
def test_a_call_in_thinking_and_nothing_else_is_refused(name: str, closed: bool) -> None:
    """Reasoning with a call and no answer: the model is told, and nothing runs."""
    row = DIALECTS[name]
    if not row.think or row.name in ("granite_pythonic", "llama3_json", "xlam"):
        pytest.skip("no reasoning tags, or no marker that could stand in them")
    opener, closer = row.think[0]
    reply = receive(f"{opener}I should call it.\n{row.example}{closer if closed else ''}", TOOLS, row)
    assert [[v.code for v in call.outcome.violations] for call in reply.calls] == [["call_in_thinking"]]
    assert reply.text.strip() == ""


@EVERY
def test_a_model_whose_marker_ends_thinking(name: str) -> None:
    """With the switch, the marker of a call ends reasoning that is open, and the call runs, with a note."""
    row = DIALECTS[name]
    if not row.think or row.name in ("granite_pythonic", "llama3_json", "xlam", "pythonic", "gemma3", "cline_xml"):
        pytest.skip("no reasoning tags, or no marker that could end them")
    reply = receive(f"{row.think[0][0]}So I call it.\n{row.example}", TOOLS, row, tool_marker_ends_thinking=True)
    assert [call.ok for call in reply.calls] == [True]
    assert reply.trail[0].rule == "think_closed"
    assert reply.thinking.strip() == "So I call it."


@EVERY
def test_an_unknown_tool_is_refused(name: str) -> None:
    """A complete call of a tool that is not declared never runs, and its markup is not shown."""
    row = DIALECTS[name]
    text = row.example.replace("get_weather", "get_whether").replace("read_file", "read_fail")
    reply = receive(text, TOOLS, row)
    assert all(not call.ok for call in reply.calls)
    if reply.calls:
        assert [v.code for v in reply.calls[0].outcome.violations] == ["unknown_tool"]
        assert reply.text == ""


@EVERY
def test_a_cut_call_never_runs(name: str) -> None:
    """Wherever a call is cut before its arguments are complete, nothing runs."""
    row = DIALECTS[name]
    text = row.example
    complete = max(text.rfind("Oslo"), text.rfind(".md")) + 3
    for end in range(complete):
        reply = receive(text[:end], TOOLS, row)
        assert not any(call.ok for call in reply.calls), text[:end]


@EVERY
@FEW
@given(text=marked_text, finish=st.sampled_from([None, "stop", "length"]))
def test_nothing_a_model_writes_raises(name: str, text: str, finish: str | None) -> None:
    """Any soup of markers gives a reply."""
    row = DIALECTS[name]
    reply = receive(text, TOOLS, row, finish_reason=finish)
    assert isinstance(reply.text, str)
    for call in reply.calls:
        assert call.ok or call.outcome.violations


@EVERY
@FEW
@given(text=st.binary(max_size=60))
def test_bytes_that_are_no_text_do_not_raise(name: str, text: bytes) -> None:
    """What is no UTF-8 is shown as U+FFFD."""
    row = DIALECTS[name]
    receive(text, TOOLS, row).text.encode()


@EVERY
@FEW
@given(
    text=st.text(
        alphabet=st.characters(exclude_characters="<>[]{}()`~|/:=｜\"'\\", exclude_categories=("Cs",)), max_size=200
    )
)
def test_prose_is_shown_as_it_is(name: str, text: str) -> None:
    """Text without markup is the reply's text, character for character."""
    row = DIALECTS[name]
    reply = receive(text, TOOLS, row)
    assert (reply.text, reply.thinking, reply.calls, reply.trail) == (text, "", (), ())


@EVERY
def test_a_result_cannot_pose_as_markup(name: str) -> None:
    """No marker of the dialect stands in a rendered result's content."""
    row = DIALECTS[name]
    content = " ".join(markers_of(row))
    rendered = render_results(row, (Result("@" + content + "@", "c1", "read_file"),))
    inside = rendered[rendered.index("@") : rendered.rindex("@")]
    assert not any(marker in inside for marker in markers_of(row))


ADVERSARIAL = {
    "openers": lambda row: row.example[:12],
    "examples": lambda row: row.example + "\n",
    "cut examples": lambda row: row.example[: len(row.example) * 2 // 3],
    "closers": lambda row: row.example[-14:],
    "markers": lambda row: "".join(markers_of(row)),
    "brackets": lambda row: "[",
    "braces": lambda row: row.example[: row.example.find("Oslo") if "Oslo" in row.example else 20] + "{",
    "ticks": lambda row: "` ``" + (markers_of(row)[0] if markers_of(row) else "<f>") + " ",
    "angles": lambda row: "<",
    "space": lambda row: " \n",
}


class Counter:
    """A reader that counts the characters each read goes over."""

    def __init__(self, family: Any) -> None:
        self.family = family
        self.work = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.family, name)

    def read(self, text: str, pos: int, inside: Any, context: Context, final: bool) -> Any:
        reading = self.family.read(text, pos, inside, context, final)
        if isinstance(reading, Block):
            self.work += (len(text) if reading.whole_text else reading.end) - pos
        elif isinstance(reading, More):
            self.work += len(text) - pos
        return reading


def work(row: Dialect, text: str, size: int) -> int:
    """Characters gone over by the reader, and pieces given out, when the text is fed in pieces of `size`."""
    machine = Machine(row, Context(TOOLS))
    counter = Counter(row.family)
    machine.dialect = _with_family(row, counter)
    given_out = 0
    for at in range(0, len(text), size):
        given_out += len(machine.feed(text[at : at + size]))
    return counter.work + given_out + len(machine.close())


def _with_family(row: Dialect, family: Any) -> Any:
    class Row:
        def __getattr__(self, name: str) -> Any:
            return family if name == "family" else getattr(row, name)

    return Row()


@EVERY
@pytest.mark.parametrize("kind", ADVERSARIAL)
@pytest.mark.parametrize("size", [1_000_000, 37], ids=["whole", "pieces"])
def test_work_is_linear(name: str, kind: str, size: int) -> None:
    """Markup made to be read again and again costs a bounded number of looks at each character."""
    row = DIALECTS[name]
    unit = ADVERSARIAL[kind](row)
    text = unit * (24_000 // len(unit))
    assert work(row, text, size) <= 40 * len(text) + SPARE_WORK
