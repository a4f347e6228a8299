"""Counting: retries, money, copies, a session's own tools, engines, and files that are anything but sessions."""

from __future__ import annotations

import gzip
import json
import os
import random
import string
import threading
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onspec.errors import InputError
from onspec.scan import scan, scan_file
from onspec.scan.count import Spent
from onspec.scan.file import Options
from onspec.scan.identities import Identities
from onspec.scan.price import Price, Prices
from onspec.scan.run import Walk
from onspec.scan.summary import interval, summary
from onspec.transcripts import document as document_module
from onspec.transcripts import source as source_module

SESSIONS = Path(__file__).parent.parent / "transcripts" / "sessions"
REJECTED = 'Validation failed for tool "edit":\n  - edits.0: must not have additional properties'


def pi_call(
    number: int, name: str, arguments: Any, answer: str, error: bool, output: int = 100, **more: Any
) -> list[Any]:
    """A call with its answer, as Pi writes them."""
    message = {
        "role": "assistant",
        "model": "claude-opus-4-8",
        "content": [{"type": "toolCall", "id": f"call{number}", "name": name, "arguments": arguments}],
        "usage": {"input": 10, "output": output, "cacheRead": 1000, "cacheWrite": 20},
        **more,
    }
    result = {
        "role": "toolResult",
        "toolCallId": f"call{number}",
        "toolName": name,
        "isError": error,
        "content": answer,
    }
    stamp = f"2026-10-{1 + number % 28:02}T10:00:00Z"
    return [
        {"type": "message", "id": f"a{number}", "parentId": f"r{number - 1}", "timestamp": stamp, "message": message},
        {"type": "message", "id": f"r{number}", "parentId": f"a{number}", "timestamp": stamp, "message": result},
    ]


def pi_session(*records: list[Any]) -> bytes:
    """A Pi session of calls."""
    header = {"type": "session", "version": 3, "id": "s", "cwd": "/w", "timestamp": "2026-10-01T10:00:00Z"}
    lines = [header, *(line for record in records for line in record)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


GOOD = {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}
BAD = {"path": "a", "edits": [{"oldText": "x", "newText": "y", "unique": True}]}


def write(path: Path, data: bytes) -> str:
    """Writes a file and gives its path."""
    path.write_bytes(data)
    return str(path)


def test_a_retry_is_found_with_what_it_cost(tmp_path: Path) -> None:
    """Two rejected calls and a good one: two lost replies, whose output and whose next input were wasted."""
    path = write(
        tmp_path / "s.jsonl",
        pi_session(
            pi_call(1, "edit", BAD, REJECTED, True, output=300),
            pi_call(2, "edit", BAD, REJECTED, True, output=200),
            pi_call(3, "edit", GOOD, "done", False),
        ),
    )
    report = scan_file(path)
    total = report.total()
    assert (total.rejected, total.retries, total.retry_calls, total.gave_up, total.failed_turns) == (2, 2, 3, 0, 2)
    assert (total.waste_output, total.waste_input, total.waste_cache_read) == (500, 20, 2000)
    assert (total.saved_output, total.saved_cache_read) == (500, 2000)
    assert [(found.fixed_by, found.fixed_after) for found in report.findings] == [("call3", 2), ("call3", 1)]


def test_a_neighbour_that_ran_is_no_waste(tmp_path: Path) -> None:
    """Of a reply with a good and a rejected call only the rejected half was lost, and its next reply was due anyway."""
    first, answer = pi_call(1, "edit", BAD, REJECTED, True, output=100)
    first["message"]["content"].append({"type": "toolCall", "id": "other", "name": "read", "arguments": {"path": "a"}})
    other = json.loads(json.dumps(answer))
    other["message"] |= {"toolCallId": "other", "toolName": "read", "isError": False, "content": "text"}
    path = write(tmp_path / "s.jsonl", pi_session([first, other, answer], pi_call(3, "edit", GOOD, "done", False)))
    total = scan_file(path).total()
    assert (total.waste_output, total.waste_input, total.failed_turns, total.retries) == (50, 0, 0, 1)


def test_a_call_that_nobody_made_good(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl",
        pi_session(pi_call(1, "edit", BAD, REJECTED, True), pi_call(2, "read", {"path": "a"}, "x", False)),
    )
    assert (scan_file(path).total().retries, scan_file(path).total().gave_up) == (0, 1)


def test_a_long_way_off_is_no_retry(tmp_path: Path) -> None:
    reads = [pi_call(number, "read", {"path": "a"}, "x", False) for number in range(2, 30)]
    path = write(
        tmp_path / "s.jsonl",
        pi_session(pi_call(1, "edit", BAD, REJECTED, True), *reads, pi_call(40, "edit", GOOD, "x", False)),
    )
    assert (scan_file(path).total().retries, scan_file(path).total().gave_up) == (0, 1)


def test_silently_accepted_keys_are_seen(tmp_path: Path) -> None:
    """A harness that drops an invented key without a word still had an off-schema call."""
    path = write(
        tmp_path / "s.jsonl",
        pi_session(*[pi_call(n, "edit", BAD if n == 4 else GOOD, "done", False) for n in range(8)]),
    )
    report = scan_file(path)
    total = report.total()
    assert (total.rejected, total.static, total.invented, total.silent, total.off_schema) == (0, 1, 1, 1, 1)
    assert next(iter(report.keys)) == ("unique", "match_option", 2, "last", False, "edit", "claude-opus-4-8")


def test_a_session_with_its_own_tool_is_not_held_against_the_known_one(tmp_path: Path) -> None:
    """Most accepted calls of `bash` have a key that Pi's own does not: it is another tool. The rejected one counts."""
    calls = [pi_call(n, "bash", {"command": "ls", "safe": True}, "ok", False) for n in range(6)]
    calls.append(pi_call(7, "bash", {"safe": True}, 'Validation failed for tool "bash":\n  - command: missing', True))
    report = scan_file(write(tmp_path / "s.jsonl", pi_session(*calls)))
    assert (report.total().off_schema, report.total().rejected, report.own_tools) == (1, 1, {"bash"})
    assert [found.tool for found in report.findings] == ["bash"]


def test_a_key_that_a_strict_agent_took_is_the_tables_fault(tmp_path: Path) -> None:
    """Claude Code refuses undeclared keys; where it took one, its tool has grown one since the table was made."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/a", "brand_new": 1}}
    base = {"sessionId": "s", "version": "9.9.9", "isSidechain": False, "timestamp": "2026-10-01T10:00:00Z"}
    lines = [
        {
            **base,
            "type": "assistant",
            "uuid": "a",
            "parentUuid": None,
            "message": {"id": "m", "role": "assistant", "content": [block]},
        },
        {
            **base,
            "type": "user",
            "uuid": "b",
            "parentUuid": "a",
            "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]},
        },
    ]
    report = scan_file(write(tmp_path / "s.jsonl", b"".join(json.dumps(line).encode() + b"\n" for line in lines)))
    assert (report.total().off_schema, report.own_tools) == (0, {"Read"})


def test_a_schema_is_inferred_from_what_was_accepted(tmp_path: Path) -> None:
    """Nothing is known of the tool, but its accepted calls all had an array: the text of one is repaired by that."""
    good = [pi_call(n, "tag", {"id": n, "labels": ["bug"]}, "ok", False) for n in range(4)]
    bad = pi_call(
        9, "tag", {"id": 9, "labels": '["bug"]'}, 'Validation failed for tool "tag":\n  - labels: array', True
    )
    report = scan_file(write(tmp_path / "s.jsonl", pi_session(*good, bad)))
    total = report.total()
    assert (total.rejected, total.static, total.inferred, total.safe_repaired) == (1, 0, 1, 1)
    assert report.findings[0].safe == "repaired (inferred)"


def test_arguments_that_a_compaction_took_are_not_judged(tmp_path: Path) -> None:
    gone = {"edits": "[Compacted history content evicted to durable cold storage]"}
    total = scan_file(write(tmp_path / "s.jsonl", pi_session(pi_call(1, "edit", gone, "done", False)))).total()
    assert (total.calls, total.off_schema, total.judged) == (1, 0, 0)


def test_leaked_markup_in_a_valid_call_is_seen(tmp_path: Path) -> None:
    leak = {"path": "a", "edits": [{"oldText": "x", "newText": "y</newText></invoke>"}]}
    total = scan_file(write(tmp_path / "s.jsonl", pi_session(pi_call(1, "edit", leak, "done", False)))).total()
    assert (total.static, total.guarded, total.off_schema, total.safe_refused) == (0, 1, 1, 1)


def test_a_lone_surrogate_in_arguments_is_seen_and_breaks_nothing(tmp_path: Path) -> None:
    odd = {"path": "a", "edits": [{"oldText": "x", "newText": "\ud83d"}]}
    total = scan_file(write(tmp_path / "s.jsonl", pi_session(pi_call(1, "edit", odd, "done", False)))).total()
    assert (total.calls, total.guarded, total.off_schema) == (1, 1, 1)


def test_since_leaves_out_what_is_older(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.jsonl", pi_session(*[pi_call(n, "read", {"path": "a"}, "x", False) for n in range(1, 11)])
    )
    moment = 1791158400.0  # 2026-10-05
    assert scan_file(path, Options(since=moment)).total().calls == 7
    os.utime(path, (moment - 1, moment - 1))
    assert scan([str(tmp_path)], since=moment).files == 0


def test_copies_of_a_session_count_once(tmp_path: Path) -> None:
    """A snapshot and its later self: the calls of both are the later one's."""
    calls = [pi_call(n, "edit", BAD, REJECTED, True) for n in range(4)]
    write(tmp_path / "a.jsonl", pi_session(*calls[:2]))
    write(tmp_path / "b.jsonl", pi_session(*calls))
    for workers in (1, 2):
        report = scan([str(tmp_path)], workers=workers)
        assert (report.total().calls, report.copies) == (4, 2)


def test_processes_change_nothing() -> None:
    one, two = (scan([str(SESSIONS)], workers=workers) for workers in (1, 2))
    for report in (one, two):
        report.seconds = 0
    assert summary(one, ("model", "tool", "harness", "day"), Prices()) == summary(
        two, ("model", "tool", "harness", "day"), Prices()
    )


def test_ray_counts_the_same_on_a_cluster_of_two_nodes(tmp_path: Path) -> None:
    """Two real nodes, each with one core, so that files are counted on both."""
    ray = pytest.importorskip("ray", reason="ray is not installed")
    for part in range(6):
        write(
            tmp_path / f"{part}.jsonl",
            pi_session(*[pi_call(part * 100 + n, "edit", BAD, REJECTED, True) for n in range(20)]),
        )
    cluster = pytest.importorskip("ray.cluster_utils").Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False)
        assert len([node for node in ray.nodes() if node["Alive"]]) == 2
        paths = [str(SESSIONS), str(tmp_path)]
        far, near = scan(paths, engine="ray"), scan(paths, workers=1)
        far.seconds = near.seconds = 0
        assert summary(far, ("model", "tool"), Prices()) == summary(near, ("model", "tool"), Prices())
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.parametrize("scheme", ["memory"])
def test_a_url_is_read_like_a_file(scheme: str) -> None:
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem(scheme)
    for name in ("pi-v3.jsonl", "codex.jsonl"):
        files.pipe(f"/sessions/{name}", (SESSIONS / name).read_bytes())
    report = scan([f"{scheme}://sessions"], workers=1)
    assert (report.files, report.total().calls) == (2, 12)
    with pytest.raises(InputError):
        scan(["nosuchscheme://x/y.jsonl"], workers=1)


# Files that are anything but sessions.


def test_compressed_files(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    plain = (SESSIONS / "codex.jsonl").read_bytes()
    for name, data in (
        ("a.jsonl.zst", zstandard.ZstdCompressor().compress(plain)),
        ("b.jsonl.gz", gzip.compress(plain)),
    ):
        assert scan_file(write(tmp_path / name, data)).total().calls == 6
        cut = scan_file(write(tmp_path / name, data[: len(data) // 2]))
        assert cut.error == ""
        assert cut.total().calls < 6


def test_a_bomb_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that expands beyond all reason ends where the limit is, with a mark."""
    zstandard = pytest.importorskip("zstandard")
    monkeypatch.setattr(source_module, "FREE_EXPANSION", 1 << 20)
    line = (SESSIONS / "codex.jsonl").read_bytes().split(b"\n")[0] + b"\n"
    endless = line + b" " * (64 << 20)
    for name, data in (
        ("a.jsonl.zst", zstandard.ZstdCompressor().compress(endless)),
        ("b.jsonl.gz", gzip.compress(endless)),
    ):
        report = scan_file(write(tmp_path / name, data))
        assert report.damage["bomb"] == 1


def test_a_bad_line_is_counted_and_no_more(tmp_path: Path) -> None:
    lines = (SESSIONS / "pi-v3.jsonl").read_bytes().split(b"\n")
    lines[4:4] = [b"{broken", b"\xff\xfe\x00", b'"text"', b"[1, 2]", b"null", b"", b"{" * 5000]
    report = scan_file(write(tmp_path / "s.jsonl", b"\n".join(lines)))
    assert report.total().calls == 6
    assert sum(report.damage.values()) == 6


def test_a_file_that_is_being_written(tmp_path: Path) -> None:
    """The last line has no end yet; it is `cut`, and nothing else is lost."""
    whole = (SESSIONS / "pi-v3.jsonl").read_bytes()
    for end in range(len(whole) - 400, len(whole), 13):
        report = scan_file(write(tmp_path / "s.jsonl", whole[:end]))
        assert set(report.damage) <= {"cut"}
        assert report.total().calls >= 5


def test_a_file_that_grows_while_it_is_read(tmp_path: Path) -> None:
    """What was there when it was opened is read; the reading ends although the writing does not."""
    path = tmp_path / "s.jsonl"
    path.write_bytes((SESSIONS / "pi-v3.jsonl").read_bytes())
    stop = threading.Event()

    def grow() -> None:
        with path.open("ab") as out:
            while not stop.is_set():
                out.write(b'{"type":"label"}\n' * 100)
                out.flush()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        time.sleep(0.01)
        assert scan_file(str(path)).total().calls == 6
    finally:
        stop.set()
        writer.join()


def test_arguments_nested_without_end(tmp_path: Path) -> None:
    """Deeper than any library writes: judged where it can be read, `too_deep` or bad where not, and nothing is lost."""
    records = [pi_call(n, "bash", {"command": "DEEP"}, "x", False) for n in range(5)]
    lines = pi_session(*records).split(b"\n")
    depths = iter((10, 300, 900, 1000, 5000))
    lines = [
        line.replace(b'"DEEP"', b"[" * depth + b"]" * depth) if b"DEEP" in line and (depth := next(depths)) else line
        for line in lines
    ]
    report = scan_file(write(tmp_path / "s.jsonl", b"\n".join(lines)))
    assert report.error == ""
    assert report.total().calls + sum(report.damage.values()) == 5
    assert report.total().calls >= 3


def test_a_line_that_would_fill_the_memory_is_not_decoded(tmp_path: Path) -> None:
    header, *rest = (SESSIONS / "pi-v3.jsonl").read_bytes().split(b"\n")
    dense = b'{"x":[' + b",".join([b"{}"] * 2_000_000) + b"]}"
    report = scan_file(write(tmp_path / "s.jsonl", b"\n".join([header, dense, *rest])))
    assert (report.total().calls, dict(report.damage)) == (6, {"too_dense": 1})


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s.jsonl")
    assert scan([str(tmp_path)], workers=1).errors == [(str(tmp_path / "s.jsonl"), "not a regular file")]


def test_a_line_without_end_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "MAX_LINE", 3 << 20)
    lines = (SESSIONS / "pi-v3.jsonl").read_bytes().split(b"\n")
    lines.insert(5, b'{"type":"message","text":"' + b"x" * (5 << 20) + b'"}')
    report = scan_file(write(tmp_path / "s.jsonl", b"\n".join(lines)))
    assert (report.total().calls, dict(report.damage)) == (6, {"too_long": 1})


def test_a_document_too_large_to_hold_is_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same counts, element by element, with strings that look like structure."""
    whole = orjson.loads((SESSIONS / "opencode-export.json").read_bytes())
    trap = {"id": "t", "type": "text", "text": '"}],[{\\"messages\\":[" \\'}
    whole["messages"][1]["parts"].insert(0, trap)
    path = write(tmp_path / "s.json", orjson.dumps(whole, option=orjson.OPT_INDENT_2))
    before = scan_file(path)
    for module in (source_module, document_module):
        monkeypatch.setattr(module, "MAX_DOCUMENT", 2000)
        monkeypatch.setattr(module, "CHUNK", 700)
    after = scan_file(path)
    assert (after.damage, after.total()) == ({}, before.total())
    assert before.total().calls == 7


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n\n",
        b"\x00" * 5000,
        bytes(range(256)) * 40,
        b"PK\x03\x04broken samples/",
        b"SQLite format 3\x00rubbish",
        b"{" * 9000,
        b"\xef\xbb\xbf",
        b"null",
        b"[]",
        b"{}",
        b"\x28\xb5\x2f\xfd\x00",
    ],
)
@pytest.mark.parametrize("name", ["s.jsonl", "s.json", "s.db", "s.eval", "s.jsonl.gz", "s.jsonl.zst", "s.traj"])
def test_a_file_that_is_no_session(tmp_path: Path, name: str, data: bytes) -> None:
    """Nothing is raised, and no call is found."""
    report = scan_file(write(tmp_path / name, data))
    assert report.total().calls == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permission_denied_is_said(tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir()
    write(locked / "s.jsonl", b"{}")
    other = write(tmp_path / "s.jsonl", b"{}")
    os.chmod(other, 0)
    os.chmod(locked, 0)
    report = scan([str(tmp_path)], workers=1)
    os.chmod(locked, 0o700)
    assert sorted(os.path.basename(path) for path, _ in report.errors) == ["locked", "s.jsonl"]


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "back").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "self.jsonl").symlink_to(tmp_path / "self.jsonl")
    write(tmp_path / "a" / "s.jsonl", (SESSIONS / "pi-v1.jsonl").read_bytes())
    report = scan([str(tmp_path)], workers=1)
    assert (report.files, len(report.errors)) == (1, 1)


def test_clocks_that_make_no_sense(tmp_path: Path) -> None:
    """Times before the epoch, after the sun, as text, as nothing: the calls count all the same."""
    stamps = [
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59+14:00",
        "yesterday",
        None,
        -5,
        1e300,
        True,
        [],
        "2026-13-45T99:99:99Z",
    ]
    records = []
    for number, stamp in enumerate(stamps):
        pair = pi_call(number, "read", {"path": "a"}, "x", False)
        for line in pair:
            line["timestamp"] = line["message"]["timestamp"] = stamp
        records.append(pair)
    report = scan_file(write(tmp_path / "s.jsonl", pi_session(*records)))
    assert report.total().calls == len(stamps)
    assert report.error == ""


def test_use_that_makes_no_sense(tmp_path: Path) -> None:
    pair = pi_call(1, "read", {"path": "a"}, "x", False)
    pair[0]["message"]["usage"] = {"input": -5, "output": "many", "cacheRead": 1e400, "cacheWrite": None}
    report = scan_file(write(tmp_path / "s.jsonl", pi_session(pair)))
    assert report.spent == {}


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(sorted(path.name for path in SESSIONS.iterdir())))
def test_no_damage_raises(tmp_path_factory: pytest.TempPathFactory, rng: random.Random, name: str) -> None:
    """Bytes flipped, taken out, doubled: whatever is left of the file, a report comes back."""
    data = bytearray((SESSIONS / name).read_bytes())
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            del data[at : at + rng.randrange(200)]
        elif kind == 2:
            data[at:at] = data[at : at + rng.randrange(500)]
        else:
            data[at:at] = rng.choice([b"\\ud800", b"null", b"{", b'"', b"1e999", b"\n", b"[]"])
        if not data:
            break
    report = scan_file(write(tmp_path_factory.mktemp("d") / name, bytes(data)))
    assert report.error == "" or "not" in report.error


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(string.printable, max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    st.data(),
    st.sampled_from(
        [
            "pi-v3.jsonl",
            "claude-code.jsonl",
            "codex.jsonl",
            "opencode-export.json",
            "gemini.json",
            "qwen.jsonl",
            "openhands-output.jsonl",
            "atif.json",
            "inspect.json",
            "nemo-gym.jsonl",
            "vendor-verifier.jsonl",
            "copilot.jsonl",
            "cline-messages.json",
            "openai-request.json",
            "mini-swe-agent.traj.json",
        ]
    ),
)
def test_no_shape_raises(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str) -> None:
    """Any value of a session replaced by any other JSON value."""
    raw = (SESSIONS / name).read_bytes()
    values = (
        [orjson.loads(raw)]
        if name.endswith(".json")
        else [json.loads(line) for line in raw.splitlines() if line.strip()]
    )
    places: list[tuple[Any, Any]] = []
    stack: list[Any] = [values]
    while stack:
        node = stack.pop()
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                stack.append(node[key])
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(JSON)
    text = "\n".join(json.dumps(value, indent=1 if name.endswith(".json") else None) for value in values)
    report = scan_file(write(tmp_path_factory.mktemp("d") / name, text.encode()))
    assert report.error == ""


def test_no_payload_and_no_secret_is_in_a_report(tmp_path: Path) -> None:
    """Secrets in arguments, in keys, in tool names, in error texts: none of them comes out."""
    secret = "sk-ant-api03-Zk3jQ9x8Lw2mV7bN4cR1"
    arguments = {
        "path": secret,
        "edits": [{"oldText": secret, "newText": secret, secret: secret, f"token_{secret}": 1}],
    }
    records = [
        pi_call(1, "edit", arguments, REJECTED + secret, True),
        pi_call(2, f"run {secret}", {"a": secret}, f"Tool run {secret} not found", True),
        pi_call(3, "edit", {secret: 1}, f'Validation failed for tool "edit": {secret}', True),
    ]
    report = scan([write(tmp_path / "s.jsonl", pi_session(*records))], workers=1)
    told = json.dumps(summary(report, ("model", "tool"), Prices()))
    assert report.total().rejected == 3
    assert secret not in told
    assert secret[10:] not in told


# Small parts.


@given(st.lists(st.integers(0, 2**64 - 1), max_size=300))
def test_identities_are_a_set(numbers: list[int]) -> None:
    known = Identities()
    seen: set[int] = set()
    for number in numbers:
        assert known.add(number) == ((number or 1) not in seen)
        seen.add(number or 1)
    assert len(known) == len(seen)
    assert all(number in known for number in numbers)
    assert sorted(known) == sorted(seen)


def test_the_interval_is_wilsons() -> None:
    """Values from the formula's author: 10 of 50 at 95 %."""
    low, high = interval(10, 50)
    assert (round(low, 4), round(high, 4)) == (0.1124, 0.3304)
    assert interval(0, 0) == (0.0, 1.0)
    assert interval(0, 10)[0] == 0.0


def test_prices() -> None:
    price = Price.parse("claude-*=5,25,0.5,6.25")
    own = Prices([price])
    tokens = Spent(1_000_000, 1_000_000, 1_000_000, 1_000_000)
    assert own.dollars("claude-x", tokens) == pytest.approx(36.75)
    assert Price.parse("m=1,2").dollars(tokens) == pytest.approx(5.0)
    for wrong in ("m", "m=", "=1,2", "m=1", "m=a,b", "m=1,2,3,4,5", "m=-1,2", "m=nan,1"):
        with pytest.raises(InputError):
            Price.parse(wrong)


def test_walk_is_sorted_and_takes_what_may_be_a_session(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "a.png", "c.jsonl.001", "d/e.traj", "notes.md", "x.eval"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, b"{}")
    found = [os.path.relpath(path, tmp_path) for path in Walk((str(tmp_path),))]
    assert found == ["a.jsonl", "b.jsonl", "c.jsonl.001", "x.eval", "d/e.traj"]
