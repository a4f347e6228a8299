"""The words in which every foreign API is told to the gateway: what a frame or a body says about calls."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from onspec.gateway.sse import Frame
from onspec.gateway.usage import Tokens

Path = tuple[str | int, ...]
Key = Hashable
"""Tells the calls of one reply apart."""
Change = tuple[Path, Any]
"""A place in a frame and what is to stand there."""
Finish = Literal["stop", "length", "tool", "other"]


@dataclass(frozen=True, slots=True)
class Begun:
    """The reply has begun; from here on it has to end."""


@dataclass(frozen=True, slots=True)
class Start:
    """A call begins. `custom` calls carry free text instead of JSON.

    `given` are the arguments where they stand in this very frame, and no piece of them may follow.
    """

    key: Key
    name: str
    path: Path
    call_id: str | None = None
    namespace: str | None = None
    custom: bool = False
    given: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a call's arguments stands at `path` of the frame; `alone` where the frame holds nothing else."""

    key: Key
    text: str
    path: Path
    alone: bool = True


@dataclass(frozen=True, slots=True)
class Copy:
    """The frame repeats a call's whole arguments at `path`, or its name at `name_path`.

    `whole` are the changes that make the call a complete one, where the frame says that it was cut.
    """

    key: Key
    path: Path | None
    name_path: Path | None = None
    whole: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class End:
    """A call's arguments end here; `incomplete` where the wire says that they were cut.

    `given` are the whole arguments where the frame tells them; they count where no piece of them came.
    """

    key: Key
    incomplete: bool = False
    given: str = ""


@dataclass(frozen=True, slots=True)
class Prose:
    """A piece of visible text stands at `path`; `key` tells the text blocks apart."""

    key: Key
    text: str
    path: Path


@dataclass(frozen=True, slots=True)
class TextCopy:
    """The frame repeats the whole text of a block at `path`."""

    key: Key
    path: Path


@dataclass(frozen=True, slots=True)
class Stopped:
    """The reply says why it ended; all its calls have ended, or those of `keys` where several replies come at once.

    `whole` are the changes that make it a reply that ended with its calls, `name` the event's name then.
    """

    reason: Finish
    whole: tuple[Change, ...] = ()
    name: str | None = None
    keys: tuple[Key, ...] | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as reported so far, and where the object stands that reports them."""

    path: Path
    found: Tokens


@dataclass(frozen=True, slots=True)
class Closed:
    """The last event of a reply, or an error in its place: nothing has to be added."""

    failed: bool = False


Mark = Begun | Start | Delta | Copy | End | Prose | TextCopy | Stopped | Usage | Closed


@dataclass(frozen=True, slots=True)
class Whole:
    """One call in a reply that was not streamed.

    Attributes:
        name: The tool's name as written.
        arguments: The arguments: text, or a decoded object where the wire carries one.
        path: Where the arguments stand in the body.
        name_path: Where the name stands.
        last: Whether nothing stands behind it, or the wire says that it is incomplete: where the reply was cut, it was
            cut here.
        finish: Why the reply that holds it ended, where a body holds several.
    """

    name: str
    arguments: str | dict[str, Any]
    path: Path
    name_path: Path
    call_id: str | None = None
    namespace: str | None = None
    custom: bool = False
    last: bool = False
    finish: Finish | None = None


class Stream(Protocol):
    """Reads one streamed reply of one API. Has the state that the wire's own order needs, and no more.

    What a frame says in another form than the API's is not read, and never raises.

    `prose` says whether pieces of visible text are asked for; otherwise they need not be read. `called` says whether
    any call has begun, of whatever kind.
    """

    prose: bool
    called: bool

    def read(self, frame: Frame) -> tuple[Mark, ...]:
        """What the frame says about calls; nothing for what the gateway leaves alone."""

    def delta(self, key: Key, text: str) -> bytes:
        """A new event that carries `text` as the next piece of the call's arguments."""

    def call_end(self, key: Key) -> bytes:
        """A new event that says that the call is complete; nothing where the wire has none."""

    def call(self, made: str, name: str, arguments: str) -> bytes:
        """New events that make a whole call; `made` makes its id."""

    def ended_with(self, frame: Frame) -> list[Change]:
        """What else changes in the last frame once calls have been added."""

    def ending(self) -> bytes:
        """The last event of a reply that has said why it stopped, for one whose own was lost."""

    def failure(self, message: str) -> bytes:
        """The events that end a broken reply so that every reader sees an error, not a whole message."""


class Api(Protocol):
    """One foreign API."""

    name: str
    empty_means_object: bool
    """Whether a call without any text is a call with no arguments."""
    ends_calls: bool
    """Whether a stream says that a call is complete before it says why the reply ended."""
    tells_tool: bool
    """Whether a reply that ends for a call says so, whether there is one or not."""

    def stream(self) -> Stream:
        """A reader for one streamed reply."""

    def calls(self, body: Any) -> list[Whole]:
        """The calls in a decoded reply that was not streamed."""

    def called(self, body: Any) -> bool:
        """Whether that reply holds any call, of whatever kind."""

    def finish(self, body: Any) -> Finish:
        """Why that reply ended."""

    def usage(self, body: Any) -> Tokens:
        """What that reply cost."""

    def whole(self, body: Any) -> list[Change]:
        """The changes that make that reply, cut by length, one that ended with its calls."""

    def texts(self, body: Any) -> list[tuple[Path, str]]:
        """The blocks of visible text in that reply."""

    def with_calls(self, body: Any, texts: dict[Path, str], calls: list[tuple[str, str, str]]) -> list[Change]:
        """The changes that put texts in place and add calls (id, name, arguments) at the reply's end."""

    def before(self, frames: list[Frame], key: Key) -> tuple[Any, ...]:
        """What a streamed reply said before a call and must be replayed as it is, in the API's own form."""

    def before_in(self, body: Any, call: Whole) -> tuple[Any, ...]:
        """The same of a reply that was not streamed."""

    def said(self, frames: list[Frame]) -> tuple[Any, ...]:
        """All that a streamed reply without calls said and must be replayed, in the API's own form."""

    def said_in(self, body: Any) -> tuple[Any, ...]:
        """The same of a reply that was not streamed."""

    def error(self, status: int, message: str) -> bytes:
        """An error body in this API's own form."""

    def again(self, request: dict[str, Any], call: Rejected, strict: bool, pin: bool) -> dict[str, Any]:
        """The request with the rejected call in a replayable form and the feedback as its result."""

    def urged(self, request: dict[str, Any], said: tuple[Any, ...], feedback: str, pin: bool) -> dict[str, Any]:
        """The request with what was said, and the feedback as the user's next word; `pin` asks for any call."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A call that is to be asked for again.

    Attributes:
        name: The tool's name.
        call_id: The call's id, or None.
        raw: The arguments as the model wrote them.
        feedback: What the model is told.
        before: The parts of the reply that came before the call and must be replayed as they are (thinking with its
            signature, reasoning items), in the API's own form.
    """

    name: str
    call_id: str | None
    raw: str
    feedback: str
    before: tuple[Any, ...] = ()
    namespace: str | None = None
    custom: bool = False


def at(value: Any, path: Path) -> Any:
    """The value at `path`, or None."""
    for part in path:
        if isinstance(value, dict) and isinstance(part, str):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value


def plain(value: Any) -> Key:
    """What a wire tells its calls apart by, as a key; anything but a number or a name by its text."""
    return value if value is None or isinstance(value, str | int) else json.dumps(value)


def listed(value: Any) -> list[Any]:
    """A list as it is, and nothing for anything else."""
    return value if isinstance(value, list) else []


def kind_of(value: Any) -> str:
    """The type that an event, a block or an item says it is of, or ""."""
    found = at(value, ("type",))
    return found if isinstance(found, str) else ""


def replayable(raw: str) -> Any:
    """The arguments as an object that every provider takes back: as they are where they are one, else kept as text."""
    value = _loads(raw)
    return value if isinstance(value, dict) else {"INVALID_JSON": raw}


def _loads(raw: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
