"""What a scripted provider is to say: turns made of blocks, with the faults a wire can have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from onspec.errors import InputError

Kind = Literal["text", "thinking", "tool", "custom_tool"]
Stop = Literal["tool_use", "end_turn", "max_tokens"]


@dataclass(frozen=True, slots=True)
class Block:
    """One part of a reply.

    Attributes:
        type: What it is.
        text: Its text. For a tool, the argument text, emitted as it is: it may be broken.
        name: The tool's name.
        id: The call's id; made up where empty.
        chunk: Characters a streamed piece carries; 0 is all in one.
        signature: Of thinking.
        namespace: Of a Responses call.
    """

    type: Kind
    text: str = ""
    name: str = ""
    id: str = ""
    chunk: int = 9
    signature: str = "c2lnbmF0dXJl"
    namespace: str = ""

    def pieces(self) -> list[str]:
        """The text as streamed."""
        size = self.chunk or max(1, len(self.text))
        return [self.text[index : index + size] for index in range(0, len(self.text), size)]


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the provider.

    Attributes:
        blocks: What it says.
        stop: Why it stops; None is `tool_use` where a tool is called, else `end_turn`.
        raw: The exact bytes of the body instead of blocks.
        status: HTTP status.
        error: Body of an HTTP error.
        headers: More response headers; they replace those that are set anyhow.
        delay_ms: Waiting time before anything is sent.
        event_ms: Waiting time before each event.
        keepalives: SSE comments sent first.
        cut_after_events: The connection closes after so many events.
        cut_after_bytes: The connection closes after so many bytes of the body.
        reset: Closing means a TCP reset.
        stall: Instead of closing, nothing more is sent.
        gzip: The body is compressed.
        chunk_bytes: Bytes a network write carries; 0 is an event at a time.
    """

    blocks: tuple[Block, ...] = ()
    stop: Stop | None = None
    raw: bytes | None = None
    status: int = 200
    error: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_ms: int = 0
    event_ms: float = 0
    keepalives: int = 0
    cut_after_events: int | None = None
    cut_after_bytes: int | None = None
    reset: bool = False
    stall: bool = False
    gzip: bool = False
    chunk_bytes: int = 0

    @property
    def reason(self) -> Stop:
        """Why the reply stops."""
        return self.stop or ("tool_use" if any("tool" in block.type for block in self.blocks) else "end_turn")


@dataclass(frozen=True, slots=True)
class Script:
    """Turns in their order.

    Attributes:
        turns: One for each request.
        side_text: The answer to a request without tools (a title, a summary); it takes no turn.
        tail_text: The answer when the turns are used up.
        every: Requests without tools take a turn too.
        loop: Begin again after the last turn.
    """

    turns: tuple[Turn, ...] = ()
    side_text: str = "ok"
    tail_text: str = "All done."
    every: bool = False
    loop: bool = False


def load(path: Path, variables: Mapping[str, str] | None = None) -> Script:
    """A script from a JSON file.

    The file is `{"turns": [{"blocks": [{"type": "tool", "name": "edit", "args": "{...", "chunk": 7}], "stop": ...}]}`;
    every field of `Turn`, `Block` and `Script` may stand in it, `args`, `input`, `thinking` are other words for `text`,
    and `raw_file` names a file beside it that holds the body. `{{NAME}}` is replaced from `variables`.

    Raises:
        InputError: The file is not such a script.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except ValueError as error:
        raise InputError(f"{path}: not a script: {error}") from None
    try:
        return parse(found, variables, path.parent)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def parse(found: Any, variables: Mapping[str, str] | None = None, folder: Path = Path()) -> Script:
    """A script from its decoded form; see `load`."""
    if not isinstance(found, dict) or not isinstance(found.get("turns", []), list):
        raise InputError("a script is an object with a list of turns")
    every = found.get("advance", "tools") == "any" or bool(found.get("every"))
    turns = tuple(_turn(turn, variables or {}, folder) for turn in found.get("turns", []))
    side, tail = str(found.get("side_text", "ok")), str(found.get("tail_text", "All done."))
    return Script(turns, side, tail, every, bool(found.get("loop")))


def _turn(found: Any, variables: Mapping[str, str], folder: Path) -> Turn:
    if not isinstance(found, dict):
        raise InputError("a turn is an object")
    given = {name: value for name, value in found.items() if name not in ("blocks", "raw", "raw_file")}
    unknown = given.keys() - {item.name for item in fields(Turn)}
    if unknown:
        may = sorted({item.name for item in fields(Turn)} | {"raw_file"})
        raise InputError(f"a turn has no {', '.join(sorted(unknown))}; it may have {', '.join(may)}")
    blocks = tuple(_block(block, variables) for block in found.get("blocks", []))
    raw = found["raw"].encode() if "raw" in found else None
    if "raw_file" in found:
        raw = (folder / found["raw_file"]).read_bytes()
    return Turn(blocks=blocks, raw=raw, **given)


TEXTS = ("text", "args", "input", "thinking")
"""Words for what a block says."""


def _block(found: Any, variables: Mapping[str, str]) -> Block:
    if not isinstance(found, dict) or found.get("type") not in ("text", "thinking", "tool", "custom_tool"):
        raise InputError("a block's type is text, thinking, tool or custom_tool")
    text = next((found[word] for word in TEXTS if word in found), "")
    if not isinstance(text, str):
        text = json.dumps(text)
    for name, value in variables.items():
        text = text.replace("{{" + name + "}}", value)
    known = {item.name for item in fields(Block)} - {"type", "text"}
    unknown = found.keys() - known - {"type", *TEXTS}
    if unknown:
        raise InputError(
            f"a block has no {', '.join(sorted(unknown))}; it may have {', '.join(sorted(known | {*TEXTS}))}"
        )
    return Block(found["type"], text, **{name: value for name, value in found.items() if name in known})
