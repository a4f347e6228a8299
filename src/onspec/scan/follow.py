"""What came after a rejected call: the reply that had to be made again, the call that made it good, the tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import sub

from onspec.scan.count import Spent, Tally
from onspec.transcripts.session import Usage

NOTHING = Spent()

MAX_REPLIES = 10
"""Model replies after which a later call of the same tool no longer counts as a retry."""

REMEMBERED = 256
"""Replies whose pieces may still come."""

MAX_OPEN = 4096
"""Failures that are held until the replies around them are whole."""


@dataclass(slots=True)
class Reply:
    """One model reply, whose pieces may stand on several lines.

    `guess` is an estimate of the output tokens of its calls, where the file's own count is known to be wrong.
    """

    number: int
    model: str
    usage: Spent = NOTHING
    calls: int = 0
    guess: int = 0
    failed: int = 0
    repairable: int = 0
    settled: bool = False
    after: Reply | None = None


@dataclass(slots=True)
class Failure:
    """One rejected call."""

    reply: Reply | None
    tally: Tally
    tool: str
    repairable: bool
    index: int | None
    at: int
    tries: int = 0


@dataclass(slots=True)
class Follower:
    """Follows the replies of one conversation."""

    spend: Callable[[str, Spent], None]
    mark: Callable[[int, str, int], None]
    replies: dict[str, Reply] = field(default_factory=dict)
    last: Reply | None = None
    number: int = 0
    open: dict[str, list[Failure]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    def reply(self, message_id: str | None, model: str, usage: Usage | None) -> Reply:
        """The reply that a piece belongs to; its usage counts once, however often it is written."""
        found = self.replies.get(message_id) if message_id is not None else None
        if found is None:
            self.number += 1
            found = Reply(self.number, model)
            if self.last is not None:
                self.last.after = found
            self.last = found
            if message_id is not None:
                self.replies[message_id] = found
                if len(self.replies) > REMEMBERED:
                    del self.replies[next(iter(self.replies))]
        if usage is not None:
            now = (usage.input, usage.output, usage.cache_read, usage.cache_write)
            if now != found.usage:
                self._grow(found, model, now)
        return found

    def _grow(self, reply: Reply, model: str, now: tuple[int, int, int, int]) -> None:
        """Takes in what a later piece says that the reply used; the largest counts."""
        was = reply.usage
        if was is NOTHING:
            reply.usage = more = Spent(*now)
        else:
            whole = Spent(*map(max, was, now))
            reply.usage, more = whole, Spent(*map(sub, whole, was))
        if any(more):
            self.spend(reply.model or model, more)

    def rejected(self, reply: Reply | None, tally: Tally, tool: str, repairable: bool, index: int | None) -> None:
        """A call was rejected; `index` is that of its finding."""
        for earlier in self.open.get(tool, ()):
            earlier.tries += 1
        failure = Failure(reply, tally, tool, repairable, index, self.number)
        if reply is not None:
            reply.failed += 1
            reply.repairable += repairable
        self.open.setdefault(tool, []).append(failure)
        self.failures.append(failure)
        if len(self.failures) > MAX_OPEN:
            self.settle(MAX_OPEN // 2)

    def accepted(self, tool: str, call: str) -> None:
        """A call of a tool was taken; it makes good what was rejected shortly before."""
        waiting = self.open.pop(tool, None)
        for failure in waiting or ():
            if self.number - failure.at > MAX_REPLIES:
                failure.tally.gave_up += 1
                continue
            failure.tally.retries += 1
            failure.tally.retry_calls += failure.tries + 1
            if failure.index is not None:
                self.mark(failure.index, call, failure.tries + 1)

    def end(self) -> None:
        """The conversation is over."""
        for waiting in self.open.values():
            for failure in waiting:
                failure.tally.gave_up += 1
        self.open.clear()
        self.settle(len(self.failures))
        self.replies.clear()
        self.last = None

    def settle(self, number: int) -> None:
        """Counts what the oldest failures wasted."""
        for failure in self.failures[:number]:
            if failure.reply is not None:
                _settle(failure, failure.reply)
        del self.failures[:number]


def _settle(failure: Failure, reply: Reply) -> None:
    """A failed call wasted its share of the reply; where no call of the reply was taken, the next reply's input too."""
    tally = failure.tally
    share = max(reply.usage.output, reply.guess) // max(reply.calls, 1)
    tally.waste_output += share
    if failure.repairable:
        tally.saved_output += share
    if reply.settled or reply.failed < reply.calls:
        return
    reply.settled = True
    tally.failed_turns += 1
    if reply.after is None:
        return
    again = reply.after.usage
    tally.waste_input += again.input
    tally.waste_cache_read += again.cache_read
    tally.waste_cache_write += again.cache_write
    if reply.repairable >= reply.failed:
        tally.saved_input += again.input
        tally.saved_cache_read += again.cache_read
        tally.saved_cache_write += again.cache_write
