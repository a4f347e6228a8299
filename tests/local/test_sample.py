"""Samples keep the grammar, fit their budget, and are weighed as they should be."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest

from onspec.check import check
from onspec.contract.tool import Tool
from onspec.errors import LimitError
from onspec.grammar.build import build
from onspec.grammar.exact import Options, compile_exact
from onspec.grammar.forms import form_of
from onspec.grammar.rules import PYTHON_SPACING
from onspec.local.chat import Chat, block_of
from onspec.local.closeout import Closeout
from onspec.local.demo import is_valid
from onspec.local.history import FLAT_TOOLS, TOOLS
from onspec.local.live import ArgumentsPiece, LiveCall
from onspec.local.pressure import Meter
from onspec.local.runtime import Runtime, softmax
from onspec.local.sample import Rejection, constrained, effective_size, free, resampled
from onspec.message import Message, Text

CHOICE = compile_exact({"enum": ["the", "then", "in", True, 7]}, Options(spacing=PYTHON_SPACING, spellings=False))


@pytest.mark.parametrize("tools", [TOOLS, FLAT_TOOLS, TOOLS[:1]], ids=["nested", "flat", "one"])
@pytest.mark.parametrize("more", [0, 1, 5, 17, 60, 150])
def test_every_constrained_call_is_valid_whatever_the_budget(fast: Runtime, tools: tuple[Tool, ...], more: int) -> None:
    """A model with random weights writes nonsense; its calls are whole all the same, fit the budget, down to the
    smallest that holds a call, and cut ones are marked and refused."""
    grammar = build(tools, "hermes_json", "required", parallel=False, thinking="none")
    assert grammar.calls is not None
    matcher = fast.vocabulary.matcher(grammar.calls)
    rng = np.random.default_rng(more)
    prompt = fast.tokenize("the call:")
    least = Closeout(1, grammar.pieces).shortest(matcher)
    assert least is not None
    cut = 0
    for _ in range(20):
        draw = constrained(fast, prompt, matcher, rng, pieces=grammar.pieces, budget=least + more)
        assert is_valid(draw.text, tools), draw.text
        assert len(draw.tokens) <= least + more
        if draw.cut:
            cut += 1
            assert draw.finish_reason == "length"
            found = block_of(draw.text)
            assert found is not None
            tool = next(tool for tool in tools if tool.name == found[0]["name"])
            written = json.dumps(found[0]["arguments"])
            assert not check(tool, written, finish_reason=draw.finish_reason).ok
    assert cut or more > 17


def test_a_budget_that_holds_no_call_is_refused(fast: Runtime) -> None:
    grammar = build(TOOLS, "hermes_json", "required", parallel=False, thinking="none")
    assert grammar.calls is not None
    matcher = fast.vocabulary.matcher(grammar.calls)
    for budget in (1, 12, 40):
        with pytest.raises(LimitError, match=r"the shortest call takes 4\d tokens"):
            constrained(fast, [5], matcher, np.random.default_rng(0), pieces=grammar.pieces, budget=budget)


def test_without_a_closeout_a_sample_may_end_in_the_middle(fast: Runtime) -> None:
    grammar = build(TOOLS, "hermes_json", "required", thinking="none")
    assert grammar.calls is not None
    matcher = fast.vocabulary.matcher(grammar.calls)
    draw = constrained(fast, fast.tokenize("x"), matcher, np.random.default_rng(0), budget=5)
    assert draw.end == "length"
    assert draw.cut


def test_forced_tokens_are_not_asked_of_the_model(fast: Runtime) -> None:
    schema = {
        "type": "object",
        "properties": {"the_only_key": {"const": "the only value"}},
        "required": ["the_only_key"],
    }
    exact = compile_exact({**schema, "additionalProperties": False}, Options("schema", PYTHON_SPACING, False))
    matcher = fast.vocabulary.matcher(exact.grammar(edges=False))
    draw = constrained(fast, fast.tokenize("x"), matcher, np.random.default_rng(0))
    assert json.loads(draw.text) == {"the_only_key": "the only value"}
    assert draw.skipped > len(draw.tokens) // 2


def _distribution(runtime: Runtime, prompt: list[int], budget: int) -> dict[bytes, float]:
    """The model's own distribution of whole values, by following every allowed token."""
    out: Counter[bytes] = Counter()

    def follow(tokens: list[int], mass: float) -> None:
        matcher = runtime.vocabulary.matcher(CHOICE.grammar(edges=False))
        assert matcher.consume_all(tokens)
        if matcher.accepting():
            out[runtime.text(tokens)] += mass
            return
        if len(tokens) == budget:
            return
        chances = softmax(runtime.prime([*prompt, *tokens]))
        for token in np.flatnonzero(matcher.mask()[: len(chances)]):
            follow([*tokens, int(token)], mass * float(chances[token]))

    follow([], 1.0)
    return dict(out)


def test_weights_estimate_the_chance_of_a_valid_value(fast: Runtime) -> None:
    """The mean importance weight is the exact probability of validity, within four standard errors."""
    prompt = fast.tokenize("in the ")
    exact = sum(_distribution(fast, prompt, 8).values())
    matcher = fast.vocabulary.matcher(CHOICE.grammar(edges=False))
    rng = np.random.default_rng(3)
    draws = [constrained(fast, prompt, matcher, rng, budget=8, skip=False) for _ in range(300)]
    weights = np.array([math.exp(draw.log_weight) for draw in draws])
    assert abs(weights.mean() - exact) < 4 * weights.std() / math.sqrt(len(weights)) + 1e-12
    assert all(draw.masses and 0 <= max(draw.masses) <= 1 for draw in draws)


def _chi_square(counts: Counter[bytes], shares: dict[bytes, float], total: int) -> tuple[float, float]:
    """Pearson's statistic, values expected fewer than five times put together, and what it exceeds once in 10,000
    times (E. B. Wilson and M. M. Hilferty's approximation, 1931)."""
    rare = [text for text, share in shares.items() if share * total < 5]
    bins = [(counts[text], share * total) for text, share in shares.items() if share * total >= 5]
    if rare:
        bins.append((sum(counts[text] for text in rare), max(sum(shares[text] for text in rare) * total, 1e-9)))
    freedom = max(len(bins) - 1, 1)
    limit = freedom * (1 - 2 / (9 * freedom) + 3.72 * math.sqrt(2 / (9 * freedom))) ** 3
    return sum((found - wanted) ** 2 / wanted for found, wanted in bins if wanted > 0.5), limit


def _apart(counts: Counter[bytes], shares: dict[bytes, float]) -> float:
    total = sum(counts.values())
    return sum(abs(counts[text] / total - share) for text, share in shares.items()) / 2


def test_faithful_samples_follow_the_model_given_validity(fast: Runtime) -> None:
    """Against the exact distribution: adaptive rejection passes a chi-square test, importance resampling comes near,
    plain masking is neither."""
    prompt = fast.tokenize("in the ")
    exact = _distribution(fast, prompt, 8)
    shares = {text: mass / sum(exact.values()) for text, mass in exact.items()}
    matcher = fast.vocabulary.matcher(CHOICE.grammar(edges=False))
    sampler = Rejection(fast, prompt, matcher, budget=8)
    faithful = sampler.draws(np.random.default_rng(5), 2000, attempts=400_000)
    assert len(faithful.draws) == faithful.effective == 2000
    assert faithful.attempts > 2000
    counts = Counter(draw.text for draw in faithful.draws)
    statistic, limit = _chi_square(counts, shares, 2000)
    assert statistic < limit
    assert _apart(counts, shares) < 0.05

    rng = np.random.default_rng(6)
    masked = [constrained(fast, prompt, matcher, rng, budget=8, skip=False) for _ in range(2000)]
    plain = Counter(draw.text for draw in masked)
    statistic, limit = _chi_square(plain, shares, 2000)
    assert statistic > limit
    again = resampled(masked, 2000, rng)
    assert 1 < again.effective < 2000
    # So few independent draws are left; their share of each value wanders accordingly.
    wander = sum(math.sqrt(share * (1 - share) / again.effective) for share in shares.values()) / 2
    drawn = Counter(draw.text for draw in again.draws)
    assert _apart(drawn, shares) < min(3 * wander + 0.02, _apart(plain, shares))


def test_resampling_prefers_heavy_draws(fast: Runtime) -> None:
    matcher = fast.vocabulary.matcher(CHOICE.grammar(edges=False))
    rng = np.random.default_rng(8)
    draws = [constrained(fast, fast.tokenize("in"), matcher, rng, budget=8, skip=False) for _ in range(60)]
    faithful = resampled(draws, 40, rng)
    assert len(faithful.draws) == 40
    assert 1 <= faithful.effective <= 60
    assert resampled([], 5, rng).draws == ()
    assert effective_size(np.ones(9)) == pytest.approx(9)
    assert effective_size(np.array([1.0, 0, 0])) == pytest.approx(1)


def test_free_samples_stop_at_their_stops(fast: Runtime) -> None:
    draw = free(fast, fast.tokenize("the"), np.random.default_rng(1), budget=200, stops=[b"e"])
    assert draw.end in ("stopped", "length")
    assert b"e" not in draw.text[:-4]
    with pytest.raises(LimitError, match="do not fit"):
        free(fast, [5] * 500, np.random.default_rng(1), budget=200)


def test_a_measured_call_adds_up(fast: Runtime) -> None:
    """Forbidden mass by cause sums to the whole, and the chances after a value sum to one."""
    meter = Meter(fast, TOOLS)
    edits = '[{"oldText": "x", "newText": "\\"y\\""}]'
    call = f'\n{{"name": "edit", "arguments": {{"path": "a", "edits": {edits}}}}}\n</tool_call>'
    pressure = meter.measure(fast.tokenize("the "), call)
    assert b"".join(position.text for position in pressure.positions) == call.encode()
    for position in pressure.positions:
        assert sum(position.causes.values()) == pytest.approx(position.forbidden, abs=1e-9)
        assert 0 <= position.forbidden <= 1 + 1e-9
    assert [chance.after for chance in pressure.keys] == [
        '"name"',
        '"path"',
        '"oldText"',
        '"newText"',
        '"edits"',
        '"arguments"',
    ]
    for chance in pressure.keys:
        total = chance.close + chance.invented + chance.declared + chance.other + chance.unknown
        assert total == pytest.approx(1, abs=1e-6)
    assert pressure.early_close[0] >= pressure.early_close[1] >= 0


def test_the_chance_of_an_invented_key_is_what_sampling_gives(fast: Runtime) -> None:
    """Byte marginalisation against 4,000 draws of what follows a closing value."""
    tool = Tool("read", {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False})
    meter = Meter(fast, [tool])
    prompt = fast.tokenize("the ")
    written = b'\n{"name": "read", "arguments": {"path": "a'
    chance = meter.key_chance(prompt, written)
    assert chance.invented + chance.close + chance.other + chance.unknown == pytest.approx(1, abs=1e-6)
    rng = np.random.default_rng(11)
    base = [*prompt, *fast.tokenize(written)]
    rows: dict[tuple[int, ...], np.ndarray] = {}
    hits = undecided = 0
    for _ in range(4000):
        path: tuple[int, ...] = ()
        while True:
            if path not in rows:
                rows[path] = softmax(fast.prime([*base, *path]))
            weights = rows[path]
            if not path:
                weights = np.where([b'"' in piece for piece in fast.pieces], weights, 0)
                weights = weights / weights.sum()
            path = (*path, int(rng.choice(len(weights), p=weights)))
            rest = fast.text(path).split(b'"', 1)[1].lstrip()
            if rest or len(path) > 4:
                break
        hits += rest[:1] == b","
        undecided += not rest
    share = hits / 4000
    assert abs(share - chance.invented) < 4 * math.sqrt(max(share, 1e-3) / 4000) + chance.unknown + undecided / 4000


def test_a_call_that_breaks_its_contract_cannot_be_measured_along(fast: Runtime) -> None:
    with pytest.raises(Exception, match="does not keep its contract"):
        Meter(fast, TOOLS).measure(fast.tokenize("x"), '{"name": "edit", "arguments": {"in_file": 1}}</tool_call>')


def test_a_chat_calls_the_tool_that_is_asked_for(fast: Runtime) -> None:
    chat = Chat(fast)
    reply = chat.reply([Message("user", (Text("hi"),))], TOOLS[:1], "read", budget=80, seed=1)
    assert [call.name for call in reply.calls] == ["read"]
    assert "path" in json.loads(reply.calls[0].arguments)
    assert reply.finish_reason in ("tool_calls", "length")
    assert reply.outcomes[0].ok == (reply.finish_reason == "tool_calls")
    plain = chat.reply([Message("user", (Text("hi"),))], (), budget=10, seed=1)
    assert plain.calls == ()


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (b'{"name": "a", "arguments": {"x": [1, "}"]}}', '{"x": [1, "}"]}'),
        (b'{"arguments": {"x": "\\"arguments\\": 1"} , "name": "a"}', '{"x": "\\"arguments\\": 1"}'),
        (b'{"name": "arguments", "arguments": {}}', "{}"),
        (b'{"name": "a"}', ""),
    ],
)
def test_arguments_are_told_byte_for_byte_as_they_come(body: bytes, wanted: str) -> None:
    live = LiveCall(form_of("hermes_json"), ["a"], 0, "call_0")
    told = [event for at in range(len(body)) for event in live.feed(body[at : at + 1])]
    assert "".join(event.text for event in told if isinstance(event, ArgumentsPiece)) == wanted
    assert live.done is bool(wanted)
