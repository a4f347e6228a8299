"""Harmony (gpt-oss): messages with roles, channels and recipients; a call is a message to a tool."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from difflib import get_close_matches

from onspec.contract.toolset import Toolset
from onspec.dialects.dialect import Context, properties
from onspec.dialects.draft import NOT_CALL, Block, Draft, Fault, More, Note, Reading
from onspec.dialects.envelope import read_envelope
from onspec.dialects.form import Form
from onspec.dialects.scan import SPACE, json_waker, scan_json, waker
from onspec.dialects.typescript import namespace
from onspec.dialects.values import is_json
from onspec.dialects.write import arguments_of, defuse, escape_markers
from onspec.errors import InputError
from onspec.message import Call, Result

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
END, CALL, RETURN = "<|end|>", "<|call|>", "<|return|>"
TOKENS = (CONSTRAIN, CHANNEL, MESSAGE, RETURN, START, CALL, END)
CHANNELS = ("analysis", "commentary", "final")
ROLES = ("system", "developer", "user", "assistant", "tool")
TYPES = ("json", "code", "text", "python", "lark", "none")
NOBODY = frozenset({"assistant", "all", "user", "none"})

MAX_HEADER = 400
"""Longest header, in characters; what is longer is no header."""

MAX_SECTIONS = 4
"""Most channel sections of a header; what has more is no header."""

_STOP = re.compile(r"<\|(?:message|start|end|call|return)\|>")
_ENDS = re.compile(r"<\|(?:end|call|return|start)\|>")
_TO = re.compile(r"to\s*=\s*([^\s<]+)")
_CONSTRAINED = re.compile(r"<\|constrain\|>\s*([^\s<{]*)")
_GLUE = re.compile(r"[^\w]|commentary|analysis|final|json|code")
_COMPLETE = (
    r"<\|channel\|>\s*(?:analysis|commentary|final)(?=[\s<])[^<\n]{0,200}(?:<\|constrain\|>[^<\n]{0,40})?<\|message\|>"
)

_LONE = re.compile(r"<\|channel\|>[^\s<]{1,40}\s?(?:<\|constrain\|>\s?\w{0,20})?<\|message\|>")
"""A header without `<|start|>` whose channel is unknown: one word, directly behind its token."""

THINKING_END = rf"<\|(?:end|return|call)\|>|(?=<\|start\|>)|(?={_COMPLETE})"
"""Where reasoning ends: a closer, or the next message."""

HOLD = r"<\|channel\|>[^<\n]{0,200}(?:<\|constrain\|>[^<\n]{0,40})?(?:<[^<>\n]{0,12})?"
"""An unfinished header inside text."""


@dataclass(slots=True)
class Header:
    """What a header says, and the rules it took to read it.

    Attributes:
        role: One of `ROLES`; `tool` also for a tool's answer.
        channel: One of `CHANNELS`, or None where none was written, or none that is known.
        recipient: To whom the message goes, without the namespace `functions.`; None: to the user.
        content_type: The data type after `<|constrain|>` or as a bare word; None where there is none.
        rules: Rules taken.
    """

    role: str = "assistant"
    channel: str | None = None
    recipient: str | None = None
    content_type: str | None = None
    rules: list[str] = field(default_factory=list)


def read_header(header: str, context: Context) -> Header:
    """Read the text between `<|start|>` and `<|message|>`, however its parts are ordered or glued. Never raises."""
    found = Header()
    constrained = _CONSTRAINED.findall(header)
    for word in constrained:
        if word.lower() in TYPES:
            found.content_type = word.lower()
        elif word in NOBODY or not word:
            continue
        else:
            found.rules.append("constrain_ignored")
    plain = _CONSTRAINED.sub(" ", header).replace(CONSTRAIN, " ")
    role, *sections = plain.split(CHANNEL)
    targets = _TO.findall(plain)
    role_word = _TO.sub(" ", role).strip()
    _read_role(role_word, found, context)
    words: list[str] = []
    for section in sections:
        words += _TO.sub(" ", section).split()
        if re.search(r"\Sto\s*=", section):
            found.rules.append("header_fixed")
    if len(sections) > 1:
        found.rules.append("recipient_moved" if not targets else "header_fixed")
    _read_words(words, found, targets, context)
    for target in targets:
        if target in NOBODY:
            continue
        name, trimmed = _resolve(target, context)
        if found.recipient is None or context.tool(name) is not None:
            found.recipient = name
        if trimmed:
            found.rules.append("name_trimmed")
        break
    found.rules = list(dict.fromkeys(found.rules))
    return found


def _read_role(word: str, found: Header, context: Context) -> None:
    if not word or word == "assistant":
        return
    lower = word.lower()
    if lower in ROLES:
        found.role = lower
    elif lower in CHANNELS:
        found.channel = lower
        found.rules.append("role_fixed")
    elif lower.startswith("assistant"):
        channel = _channel(lower[len("assistant") :])
        found.channel = channel
        found.rules.append("role_fixed")
    elif re.match(r"(?:functions?\.|browser|python)", word) or context.tool(word) is not None:
        found.role = "tool"
    else:
        found.role = "user" if len(word.split()) == 1 else "assistant"
        found.rules.append("role_fixed")


def _read_words(words: list[str], found: Header, targets: list[str], context: Context) -> None:
    """The words of the channel sections: channel, data type, and a recipient that lost its `to=`."""
    for index, word in enumerate(words):
        lower = word.lower()
        if lower in CHANNELS:
            found.channel = lower
        elif index and lower in TYPES:
            found.content_type = found.content_type or lower
        elif not targets and found.recipient is None and context.tool(_resolve(word, context)[0]) is not None:
            found.recipient, trimmed = _resolve(word, context)
            if trimmed:
                found.rules.append("name_trimmed")
            if not index:
                found.rules.append("recipient_moved")
        elif found.channel is None and not index:
            found.channel = _channel(word)
            found.rules.append("channel_fixed")
        else:
            found.rules.append("header_fixed")


def _channel(word: str) -> str | None:
    """The channel that a misspelt word means."""
    letters = re.sub(r"[^a-z]", "", word.lower())
    for name in CHANNELS:
        if letters.startswith(name):
            return name
    near = get_close_matches(letters[:40], CHANNELS, n=1, cutoff=0.75)
    return near[0] if near else None


def _resolve(target: str, context: Context) -> tuple[str, bool]:
    """The tool's name in a recipient, and whether something glued to it was cut off."""
    name = target.removeprefix("functions.")
    if context.tool(name) is not None or context.tool(target) is not None:
        return name, False
    bare = re.sub(r"^functions?[.:]", "", target)
    best = ""
    for known in context.names:
        if len(known) > len(best) and bare.startswith(known) and _GLUE.match(bare, len(known)):
            best = known
    return (best, True) if best else (name, False)


@dataclass(frozen=True)
class Harmony:
    """Reader of a completion, writer of calls, results and tools."""

    prompt: str = "# Tools\n\n{tools}"

    @property
    def hold(self) -> str:
        return HOLD

    @property
    def firsts(self) -> str:
        return "<"

    @property
    def literals(self) -> tuple[str, ...]:
        return TOKENS

    def opener(self, names: tuple[str, ...]) -> str:
        return rf"<\|start\|>|{_COMPLETE}|<\|channel\|>"

    def orphans(self) -> str:
        return r"<\|(?:message|constrain)\|>"

    def read(self, text: str, pos: int, inside: object | None, context: Context, final: bool) -> Reading:
        begin = pos
        if text.startswith(START, pos):
            begin = pos + len(START)
        stop = _STOP.search(text, begin, begin + MAX_HEADER)
        if stop is None and not final and len(text) - begin < MAX_HEADER:
            return More(waker(_STOP, text))
        if stop is None or stop[0] != MESSAGE:
            return self._no_message(text, pos, begin, stop, context, final)
        header = read_header(text[begin : stop.start()], context)
        if begin == pos and header.channel is None and header.recipient is None and not _LONE.match(text, pos):
            return NOT_CALL
        notes = [Note(rule, pos, stop.end(), text[pos : stop.end()]) for rule in header.rules]
        return self._message(text, pos, stop.end(), header, notes, context, final)

    def _message(
        self, text: str, pos: int, body: int, header: Header, notes: list[Note], context: Context, final: bool
    ) -> Reading:
        if header.role != "assistant":
            ended = _ENDS.search(text, body)
            if ended is None and not final:
                return More(waker(_ENDS, text))
            stop = len(text) if ended is None else ended.start() if ended[0] == START else ended.end()
            return Block(stop, notes=[Note("segment_dropped", pos, stop)], whole_text=ended is None)
        if header.recipient is None:
            rules = {"channel_fixed", "role_fixed", "header_fixed", "message_token_inferred"}
            kept = [note for note in notes if note.rule in rules]
            return Block(body, notes=kept, mode="thinking" if header.channel == "analysis" else "text")
        draft = Draft(header.recipient, "{}", pos, body, notes)
        end = self._body(text, body, draft, context, final)
        if isinstance(end, More):
            return end
        draft.end = end
        return Block(end, [draft], whole_text=draft.at_end)

    def _body(self, text: str, body: int, draft: Draft, context: Context, final: bool) -> int | More:
        at = SPACE.match(text, body).end()  # type: ignore[union-attr]
        if at >= len(text) and not final:
            return More()
        if text[at : at + 1] != "{":
            ended = _ENDS.search(text, at)
            if ended is None and not final:
                return More(waker(_ENDS, text))
            stop = ended.start() if ended else len(text)
            draft.body, draft.freeform = text[body:stop], True
            if not draft.body.strip():
                draft.body, draft.freeform = "{}", False
                draft.fault = Fault("cut_off") if ended is None else Fault("no_body")
            draft.at_end = ended is None
            return stop if ended is None or ended[0] == START else ended.end()
        scan = scan_json(text, at)
        if scan.end < 0 and scan.stray < 0:
            if not final:
                return More(json_waker(scan))
            draft.body, draft.fault, draft.at_end = text[at:], Fault("cut_off"), True
            return len(text)
        stop = scan.end if scan.end >= 0 else scan.stray
        ended = _ENDS.search(text, stop)
        if ended is None and not final:
            return More(waker(_ENDS, text))
        limit = ended.start() if ended else len(text)
        if scan.end < 0 and limit != scan.stray:
            draft.fault = Fault("damaged_call")
        draft.body = self._json(text, at, stop, draft, context)
        rest = text[stop:limit].strip()
        if rest and draft.fault is None:
            draft.notes.append(Note("trailing_markup_dropped", stop, limit, rest[:200], ""))
        draft.at_end = ended is None
        return limit if ended is None or ended[0] == START else ended.end()

    @staticmethod
    def _json(text: str, at: int, stop: int, draft: Draft, context: Context) -> str:
        """The body's JSON, without the faults that are this format's own."""
        body = text[at:stop].rstrip()
        if body.endswith("]") and is_json(body[:-1] + "}"):
            draft.notes.append(Note("json_bracket_swapped", stop - 1, stop, "]", "}"))
            return body[:-1] + "}"
        declared = properties(context.tool(draft.name))
        if body.startswith('{"name"') and "name" not in declared and ('"parameters"' in body or '"arguments"' in body):
            inner = read_envelope(body, 0, len(body), arguments=("parameters", "arguments"))
            if inner.fault is None and isinstance(inner.body, str) and inner.name.endswith(draft.name):
                draft.notes.append(Note("envelope_unwrapped", at, stop, "name"))
                return inner.body
        return body

    def _no_message(
        self, text: str, pos: int, begin: int, stop: re.Match[str] | None, context: Context, final: bool
    ) -> Reading:
        """A header whose `<|message|>` never came."""
        limit = stop.start() if stop else min(len(text), begin + MAX_HEADER)
        segment = text[begin:limit]
        if segment.count(CHANNEL) > MAX_SECTIONS:
            return NOT_CALL
        brace = segment.find("{")
        if brace >= 0:
            header = read_header(segment[:brace], context)
            if header.recipient is not None and context.tool(header.recipient) is not None:
                at = begin + brace
                rules = [*header.rules, "message_token_inferred"]
                notes = [Note(rule, pos, at, text[pos:at]) for rule in rules]
                return self._message(text, pos, at, header, notes, context, final)
        header = read_header(segment, context)
        if header.recipient is not None and context.tool(header.recipient) is not None:
            ends = len(text) if stop is None else stop.start() if stop[0] == START else stop.end()
            code = "cut_off" if stop is None else "no_body"
            draft = Draft(header.recipient, "", pos, ends, fault=Fault(code), at_end=stop is None)
            return Block(ends, [draft], whole_text=stop is None)
        channel = re.compile(r"\s*(?:assistant)?\s*<\|channel\|>\s*(analysis|commentary|final)\s*").match(
            text[pos:limit] if begin == pos else segment
        )
        if channel is not None and segment[channel.end() :].strip() and CONSTRAIN not in segment:
            at = (pos if begin == pos else begin) + channel.end()
            note = Note("message_token_inferred", pos, at, text[pos:at])
            return Block(at, notes=[note], mode="thinking" if channel[1] == "analysis" else "text")
        plain = begin == pos or not re.match(rf"\s*(?:{'|'.join(ROLES)}|functions\.|\Z)", segment)
        if plain and (channel is None or segment.strip(" \n") == "") and stop is None and segment.strip(" \n"):
            return NOT_CALL
        if begin == pos and channel is None:
            return NOT_CALL
        ends = limit if stop is None or stop[0] == START else stop.end()
        if segment.strip() in ("", "assistant"):
            return Block(max(ends, begin), quiet=True, whole_text=stop is None)
        return Block(ends, notes=[Note("segment_dropped", pos, ends)], whole_text=stop is None)

    # -- writing ---------------------------------------------------------------------------------------------------

    @property
    def forms(self) -> tuple[Form, ...]:
        trigger = f"{CHANNEL}commentary to=functions."
        return (Form("harmony", trigger, call="{name}", end=CALL, repeat="one", free=True),)

    def write_calls(self, calls: tuple[Call, ...], tools: Toolset) -> str:
        return "".join(self._one(call) for call in calls)

    @staticmethod
    def _one(call: Call) -> str:
        if not re.fullmatch(r"[\w.:/-]+", call.name):
            raise InputError(f"the tool name {call.name!r} cannot be a recipient in harmony")
        body = escape_markers(arguments_of(call.name, call.arguments), TOKENS)
        return f"{START}assistant{CHANNEL}commentary to=functions.{call.name} {CONSTRAIN}json{MESSAGE}{body}{CALL}"

    def write_results(self, results: tuple[Result, ...]) -> str:
        return "".join(
            f"{START}functions.{result.name or 'tool'} to=assistant{CHANNEL}commentary{MESSAGE}"
            f"{defuse(result.content, TOKENS)}{END}"
            for result in results
        )

    def write_tools(self, tools: Toolset) -> str:
        return self.prompt.replace("{tools}", namespace("functions", tools))
