"""How fast and how exact the grammars are: compile and mask times on a 200k vocabulary, a probe, and sets of texts.

    python benchmarks/decoding.py [--json FILE] [--peers PYTHON] [--tools FOLDER] [--cases FOLDER]

Needs `quicktok-v1` (the o200k vocabulary, offline) besides `onspec[local]`. `--peers` names the Python of another
environment that has xgrammar and outlines-core (and quicktok-v1); their figures are taken there, on the same documents.
`--tools` adds the schemas of real tools (files as agents send them), `--cases` files with `schema` and `tests`
(`data`, `valid`), as MaskBench has them. All times are CPU time of the measuring thread.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import inspect
import json
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

EDIT: dict[str, Any] = {
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
OPEN = json.loads(json.dumps(EDIT).replace(', "additionalProperties": false', ""))
KINDS = [
    {"type": "string"},
    {"type": "integer"},
    {"type": "boolean"},
    {"enum": ["a", "b"]},
    {"type": "array", "items": {"type": "string"}},
]
LONG = inspect.getsource(argparse)[:9000] + inspect.getsource(textwrap)[:1000]

PROBE: list[tuple[dict[str, Any], str, bool]] = [
    (EDIT, json.dumps({"path": "x", "edits": [{"oldText": "a", "newText": "b"}]}), True),
    (EDIT, '{"path":"x","edits":[{"oldText":"a","newText":"b"}]}', True),
    (EDIT, json.dumps({"path": "x", "edits": [{"oldText": "a", "newText": "b"}]}, indent=2), True),
    (EDIT, json.dumps({"path": "x", "edits": [{"oldText": "a", "newText": "b"}]}, indent="\t"), True),
    (EDIT, '{"edits":[],"path":"x"}', True),
    (EDIT, '{"path":"x","edits":[{"newText":"b","oldText":"a"}]}', True),
    (EDIT, '{"path":"x","edits":[{"oldText":"a","newText":"b","requireUnique":true}]}', False),
    (EDIT, '{"path":"x","edits":[],"in_file":"y"}', False),
    (EDIT, '{"path":"x","edits":[{"oldText":"a"}]}', False),
    (EDIT, '{"path":"x","path":"y","edits":[]}', False),
    (EDIT, '{"path":"caf\\u00e9","edits":[]}', True),
    (EDIT, '{"path":"\\ud83d\\ude42","edits":[]}', True),
    (EDIT, '{"path":"\\ud83d","edits":[]}', False),
    (EDIT, '{"path":"\\u001b[0m","edits":[]}', True),
    (EDIT, '{"path":"a\\/b","edits":[]}', True),
    (EDIT, '{"path":"x\ny","edits":[]}', False),
    (EDIT, '{"path":"x\ty","edits":[]}', False),
    (EDIT, '{"path":"x\x7fy","edits":[]}', True),
    (EDIT, '{"path":"\\d","edits":[]}', False),
    (EDIT, '{"path":"x","edits":[],}', False),
    (EDIT, ' {"path":"x","edits":[]}', True),
    (EDIT, '{"path":"x","edits":[]}\n', True),
    (EDIT, "{" + "\n" * 40 + '"path":"x","edits":[]}', True),
    (OPEN, '{"path":"x","edits":[],"note":"n"}', True),
    (OPEN, '{"edits":[],"path":"x"}', True),
    (OPEN, '{"path":"x","edits":[],"n":1,"n":2}', False),
    (OPEN, '{"path":"x","edits":[],"path":1}', False),
]


def texts(path: Path | None) -> dict[str, Any]:
    """The sets of texts, from the file that the first engine wrote."""
    return json.loads(path.read_bytes()) if path is not None else {"rows": [], "traps": []}


def exactness(sets: dict[str, Any], compiled: Callable[..., Any], takes: Callable[..., bool]) -> Any:
    """How an engine judges the sets.

    Args:
        sets: Rows and traps.
        compiled: Compiles a schema, once; the second argument says whether formats count.
        takes: Whether a compiled schema takes a text: whole, or as a prefix where `whole=False`.
    """
    made: dict[str, Any] = {}

    def engine(schema: dict[str, Any], formats: bool = False) -> Any:
        key = json.dumps(schema, sort_keys=True)
        if key not in made:
            try:
                made[key] = compiled(schema, formats)
            except Exception as error:  # Engines raise what they like; a schema they refuse is counted.
                made[key] = error
        return made[key]

    counts: dict[str, list[int]] = {}
    for row in sets["rows"]:
        found = engine(row["schema"], bool(row.get("formats")))
        if isinstance(found, Exception):
            continue
        right = counts.setdefault(row["kind"], [0, 0])
        right[0] += takes(found, row["text"]) is row["valid"]
        right[1] += 1
    trapped = sum(
        not takes(found, prefix + '"', whole=False)
        for schema, prefix in sets["traps"]
        if not isinstance(found := engine(schema), Exception)
    )
    return {
        "schemas": len(made),
        "refused schemas": sum(isinstance(found, Exception) for found in made.values()),
        "right": {kind: f"{right} of {of}" for kind, (right, of) in counts.items()},
        "trapped": f"{trapped} of {len(sets['traps'])}",
    }


def tool_schemas(count: int) -> list[dict[str, Any]]:
    """Schemas of `count` tools, of five optional and required keys each."""
    return [
        {
            "type": "object",
            "properties": {f"key_{n % 7}_{i}": KINDS[(n + i) % len(KINDS)] for i in range(5)},
            "required": [f"key_{n % 7}_{i}" for i in range(2)],
            "additionalProperties": False,
        }
        for n in range(count)
    ]


def clocked(function: Callable[[], Any], rounds: int = 3) -> float:
    """Best CPU time of several calls, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.process_time_ns()
        function()
        times.append(time.process_time_ns() - start)
    return min(times) / 1e6


def spread(nanoseconds: list[int]) -> dict[str, float]:
    """Mean, median, 99th percentile and maximum, in microseconds."""
    ordered = sorted(nanoseconds)
    return {
        "mean": round(statistics.fmean(ordered) / 1e3, 2),
        "p50": round(ordered[len(ordered) // 2] / 1e3, 2),
        "p99": round(ordered[int(len(ordered) * 0.99)] / 1e3, 2),
        "max": round(ordered[-1] / 1e3, 2),
        "masks": len(ordered),
    }


def vocabulary_bytes() -> tuple[list[bytes], Any]:
    """The o200k vocabulary: bytes of each token, and its encoder."""
    encoder = importlib.import_module("quicktok").get_encoding("o200k_base")
    folder = Path(importlib.import_module("quicktok").__file__ or "").parent / "data"
    raw = (folder / "o200k.vocab").read_bytes()
    count = int.from_bytes(raw[:4], "little")
    place, ranks = 4, {}
    for _ in range(count):
        length = int.from_bytes(raw[place : place + 2], "little")
        text = raw[place + 2 : place + 2 + length]
        place += 2 + length + 4
        ranks[int.from_bytes(raw[place - 4 : place], "little")] = text
    return [ranks.get(number, b"<|unused%d|>" % number) for number in range(max(ranks) + 1)], encoder


def documents() -> dict[str, tuple[dict[str, Any], str]]:
    long_edit = {"path": "src/a.py", "edits": [{"oldText": LONG[:800], "newText": LONG}]}
    return {"edit, 2,000-token text": (EDIT, json.dumps(long_edit))}


def ours(sets: dict[str, Any]) -> dict[str, Any]:
    """Figures of this package."""
    build = importlib.import_module("onspec.grammar.build")
    exact = importlib.import_module("onspec.grammar.exact")
    engine = importlib.import_module("onspec.grammar.llguidance")
    contract = importlib.import_module("onspec.contract.tool")
    pieces, encoder = vocabulary_bytes()
    words = engine.Vocabulary.of_pieces(
        [*pieces, b"<|endoftext|>"],
        [len(pieces)],
        len(pieces),
        lambda raw: encoder.encode(raw.decode("utf-8", "replace")),
    )
    out: dict[str, Any] = {"compile ms": {}, "mask us": {}}

    def compiled(schema: dict[str, Any]) -> Any:
        words._compiled.clear()
        return words.matcher(exact.compile_exact(schema).grammar())

    compiled(EDIT)
    out["compile ms"]["edit"] = round(clocked(lambda: compiled(EDIT)), 2)
    for count in (10, 100, 500):
        tools = [contract.Tool(f"tool_{n}", schema) for n, schema in enumerate(tool_schemas(count))]

        def whole(tools: list[Any] = tools) -> Any:
            build._cache.clear()
            words._compiled.clear()
            return words.matcher(build.build(tools, "hermes_json", "required").lark)

        out["compile ms"][f"{count} tools"] = round(clocked(whole, 2), 1)
    buffer = bytearray((words.size + 31) // 32 * 4)
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    for name, (schema, text) in documents().items():
        tokens = encoder.encode(text)
        times: list[int] = []
        for _ in range(3):
            matcher = words.matcher(exact.compile_exact(schema).grammar())
            for token in tokens:
                start = time.thread_time_ns()
                matcher._inner.unsafe_compute_mask_ptr(address, len(buffer))
                times.append(time.thread_time_ns() - start)
                assert matcher.consume(token)
        out["mask us"][name] = spread(times)
    right = sum(
        engine.accepts(words, exact.compile_exact(schema).grammar(), text) is wanted for schema, text, wanted in PROBE
    )
    out["probe"] = f"{right} of {len(PROBE)}"
    small = engine.Vocabulary.of_bytes()

    def takes(lark: str, text: str, whole: bool = True) -> bool:
        matcher = small.matcher(lark)
        return matcher.consume_bytes(text.encode()) and (not whole or matcher.accepting())

    def made(schema: dict[str, Any], formats: bool) -> str:
        return str(exact.compile_exact(schema, exact.Options(formats=formats)).grammar())

    out["exactness"] = exactness(sets, made, takes)
    return out


def xgrammar(sets: dict[str, Any]) -> dict[str, Any]:
    """Figures of XGrammar, in its own environment."""
    xg = importlib.import_module("xgrammar")
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    pieces, encoder = vocabulary_bytes()
    info = xg.TokenizerInfo([*pieces, b"<|endoftext|>"], stop_token_ids=[len(pieces)])

    def compiled(schema: dict[str, Any]) -> Any:
        return xg.GrammarCompiler(info, max_threads=1, cache_enabled=False).compile_json_schema(json.dumps(schema))

    def tools(count: int) -> Any:
        tags = [
            {
                "type": "tag",
                "begin": f'<tool_call>\n{{"name": "tool_{n}", "arguments": ',
                "content": {"type": "json_schema", "json_schema": schema},
                "end": "}\n</tool_call>",
            }
            for n, schema in enumerate(tool_schemas(count))
        ]
        form = {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": tags, "at_least_one": True}
        compiler = xg.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        return compiler.compile_structural_tag({"type": "structural_tag", "format": form})

    out: dict[str, Any] = {"compile ms": {"edit": round(clocked(lambda: compiled(EDIT)), 2)}, "mask us": {}}
    for count in (10, 100):
        out["compile ms"][f"{count} tools"] = round(clocked(lambda count=count: tools(count), 1), 1)
    mask = xg.allocate_token_bitmask(1, info.vocab_size)
    for name, (schema, text) in documents().items():
        grammar, times = compiled(schema), []
        for _ in range(3):
            matcher = xg.GrammarMatcher(grammar)
            for token in encoder.encode(text):
                start = time.thread_time_ns()
                matcher.fill_next_token_bitmask(mask)
                times.append(time.thread_time_ns() - start)
                if not matcher.accept_token(token):
                    break
        out["mask us"][name] = spread(times)
    bytes_only = xg.TokenizerInfo([*(bytes([code]) for code in range(256)), b"<|endoftext|>"], stop_token_ids=[256])
    small = xg.GrammarCompiler(bytes_only, max_threads=1)

    def takes(grammar: Any, text: str, whole: bool = True) -> bool:
        matcher = xg.GrammarMatcher(grammar)
        return bool(matcher.accept_string(text) and (not whole or matcher.accept_token(256)))

    for name, kind in (("", {}), (" any_order", {"any_order": True})):

        def made(schema: dict[str, Any], formats: bool = False, kind: Any = kind) -> Any:
            return small.compile_json_schema(json.dumps(schema), **kind)

        right = sum(takes(made(schema), text) is wanted for schema, text, wanted in PROBE)
        out[f"probe{name}"] = f"{right} of {len(PROBE)}"
        out[f"exactness{name}"] = exactness(sets, made, takes)
    return out


def outlines_core(sets: dict[str, Any]) -> dict[str, Any]:
    """Figures of outlines-core, in its own environment."""
    core = importlib.import_module("outlines_core")
    schemas = importlib.import_module("outlines_core.json_schema")
    pieces, encoder = vocabulary_bytes()
    table: dict[bytes, list[int]] = {}
    for number, piece in enumerate(pieces):
        table.setdefault(piece, []).append(number)
    words = core.Vocabulary(len(pieces), table)

    def compiled(schema: dict[str, Any]) -> Any:
        return core.Index(schemas.build_regex_from_schema(json.dumps(schema)), words)

    out: dict[str, Any] = {"compile ms": {"edit": round(clocked(lambda: compiled(EDIT), 1), 1)}, "mask us": {}}
    for name, (schema, text) in documents().items():
        guide, times = core.Guide(compiled(schema)), []
        for token in encoder.encode(text):
            start = time.thread_time_ns()
            guide.get_tokens()
            times.append(time.thread_time_ns() - start)
            try:
                guide.advance(token)
            except ValueError:
                break
        out["mask us"][name] = spread(times)
    bytes_only = core.Vocabulary(256, {bytes([code]): [code] for code in range(256)})

    def made(schema: dict[str, Any], formats: bool = False) -> Any:
        return core.Index(schemas.build_regex_from_schema(json.dumps(schema)), bytes_only)

    def takes(index: Any, text: str, whole: bool = True) -> bool:
        guide = core.Guide(index)
        try:
            for code in text.encode():
                guide.advance(code)
        except ValueError:
            return False
        return not whole or guide.is_finished()

    right = sum(takes(made(schema), text) is wanted for schema, text, wanted in PROBE)
    out["probe"] = f"{right} of {len(PROBE)}"
    out["exactness"] = exactness(sets, made, takes)
    return out


ENGINES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "onspec": ours,
    "xgrammar": xgrammar,
    "outlines-core": outlines_core,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="Python of an environment that has xgrammar, outlines-core and quicktok-v1")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--engine", choices=list(ENGINES), help="measure one engine in this environment")
    parser.add_argument("--tools", type=Path, help="a folder of tool definitions")
    parser.add_argument("--cases", type=Path, help="a folder of schemas with tests")
    parser.add_argument("--sets", type=Path, help="the sets of texts, as the first engine wrote them")
    options = parser.parse_args()
    if options.engine:
        print(json.dumps(ENGINES[options.engine](texts(options.sets))))
        return
    made = importlib.import_module("decoding_sets")
    sets = {"rows": made.rows(options.tools, options.cases), "traps": made.traps()}
    found = {"onspec": ours(sets)}
    if options.peers:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sets.json"
            path.write_text(json.dumps(sets), encoding="utf-8")
            for name in ("xgrammar", "outlines-core"):
                command = [options.peers, __file__, "--engine", name, "--sets", str(path)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                lines = done.stdout.strip().splitlines()
                found[name] = (
                    json.loads(lines[-1]) if done.returncode == 0 and lines else {"failed": done.stderr[-400:]}
                )
    text = json.dumps(found, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
