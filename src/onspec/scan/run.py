"""Finds session files, has an engine count them, and puts the counts together."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from onspec.errors import InputError
from onspec.scan.count import FileReport, Finding, Group, Spent, Tally
from onspec.scan.file import Options, scan_file
from onspec.scan.identities import Identities
from onspec.transcripts.places import is_candidate, places

ENGINES = {"local": "onspec.scan.local:run", "ray": "onspec.scan.ray:run"}
"""Engines: `module:function`, loaded on use. Each takes paths and yields their reports in the same order."""

MAX_FILES = 2000
"""Files that a report lists one by one, those with the most off-schema calls; all of them count."""

MAX_FINDINGS = 500
MAX_ERRORS = 100
MAX_KEYS = 20_000
MAX_GROUPS = 100_000

Engine = Callable[[Iterable[str], Options, int], Iterator[FileReport]]


@dataclass(frozen=True, slots=True)
class FileLine:
    """One file in a report."""

    path: str
    format: str
    size: int
    tally: Tally
    own_tools: tuple[str, ...]
    schemas: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class Report:
    """Counts of many files.

    Attributes:
        paths: What was asked for.
        files: Files that are sessions.
        other: Files that were looked into and are none.
        size: Bytes of the session files.
        groups: Counts by group; see `FileReport` for this and the following.
        lines: The files one by one, at most `MAX_FILES`.
        findings: The first off-schema calls, each with its file.
        errors: Files and folders that could not be read, and why.
        interrupted: Whether the user stopped it; what was counted until then is here.
        seconds: How long it took.
    """

    paths: tuple[str, ...] = ()
    files: int = 0
    other: int = 0
    size: int = 0
    groups: dict[Group, Tally] = field(default_factory=dict)
    formats: Counter[str] = field(default_factory=Counter)
    keys: Counter[tuple[str, str, int, str, bool, str, str]] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    spent: dict[str, Spent] = field(default_factory=dict)
    damage: Counter[str] = field(default_factory=Counter)
    schemas: Counter[str] = field(default_factory=Counter)
    versions: Counter[str] = field(default_factory=Counter)
    own_tools: Counter[str] = field(default_factory=Counter)
    lines: list[FileLine] = field(default_factory=list)
    findings: list[tuple[str, Finding]] = field(default_factory=list)
    errors: list[tuple[str, str]] = field(default_factory=list)
    unknown: int = 0
    copies: int = 0
    bad_schemas: int = 0
    guessed: int = 0
    interrupted: bool = False
    seconds: float = 0.0

    def take(self, one: FileReport) -> None:
        """Adds one file's counts."""
        if one.error and len(self.errors) < MAX_ERRORS:
            self.errors.append((one.path, one.error))
        if not one.format:
            self.other += 0 if one.error else 1
            return
        self.files += 1
        self.size += one.size
        self.formats[one.format] += 1
        for group, tally in one.groups.items():
            if len(self.groups) >= MAX_GROUPS:
                group = Group(group.harness, group.model, "(others)", "")
            self.groups.setdefault(group, Tally()).add(tally)
        for place, number in one.keys.items():
            if place in self.keys or len(self.keys) < MAX_KEYS:
                self.keys[place] += number
        for name in ("rules", "codes", "damage", "schemas", "versions"):
            getattr(self, name).update(getattr(one, name))
        self.own_tools.update(one.own_tools)
        for model, spent in one.spent.items():
            self.spent[model] = self.spent.get(model, Spent()).plus(spent)
        for finding in one.findings[: MAX_FINDINGS - len(self.findings)]:
            self.findings.append((one.path, finding))
        self.unknown += one.unknown
        self.copies += one.copies
        self.bad_schemas += one.bad_schemas
        self.guessed += one.guessed
        total = one.total()
        line = FileLine(
            one.path, one.format, one.size, total, tuple(sorted(one.own_tools)), tuple(sorted(one.schemas.items()))
        )
        self.lines.append(line)
        if len(self.lines) > 2 * MAX_FILES:
            self.trim()

    def trim(self) -> None:
        """Keeps the files with the most to say, in the order of their paths."""
        self.lines.sort(key=lambda line: (-line.tally.off_schema, -line.tally.calls, line.path))
        del self.lines[MAX_FILES:]
        self.lines.sort(key=lambda line: line.path)

    def total(self) -> Tally:
        """All groups together."""
        total = Tally()
        for tally in self.groups.values():
            total.add(tally)
        return total


@dataclass(slots=True)
class Walk:
    """The files below some paths, sorted, each folder when its turn comes; what cannot be listed is in `errors`.

    A link to a folder is not followed, so that no circle of links is walked.
    """

    paths: tuple[str, ...]
    since: float | None = None
    errors: list[tuple[str, str]] = field(default_factory=list)

    def __iter__(self) -> Iterator[str]:
        for path in self.paths:
            if "://" in path:
                listing: list[str] = import_module("onspec.transcripts.fsspec").listing(path)
                yield from (url for url in listing if url == path or is_candidate(url))
            elif os.path.isdir(path):
                yield from self._folder(path)
            else:
                yield path

    def _folder(self, path: str) -> Iterator[str]:
        names: list[str] = []
        folders: list[str] = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if self._is_folder(entry):
                        folders.append(entry.name)
                    elif is_candidate(entry.name):
                        names.append(entry.name)
        except OSError as error:
            if len(self.errors) < MAX_ERRORS:
                self.errors.append((path, error.strerror or str(error)))
            return
        for name in sorted(names):
            full = os.path.join(path, name)
            if self.since is None or self._is_recent(full):
                yield full
        del names
        for folder in sorted(folders):
            yield from self._folder(os.path.join(path, folder))

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir(follow_symlinks=False)
        except OSError:
            return False

    def _is_recent(self, path: str) -> bool:
        try:
            status = os.stat(path)
        except OSError:
            return True
        return self.since is None or status.st_mtime >= self.since or not os.path.isfile(path)


def default_paths() -> tuple[str, ...]:
    """Where the agents of this machine keep their sessions.

    Raises:
        InputError: None of the known agents has any here.
    """
    found = tuple(path for _, path in places())
    if not found:
        raise InputError("no agent's session files were found in their usual places; name a file or folder")
    return found


def scan(
    paths: Iterable[str],
    *,
    since: float | None = None,
    engine: str = "local",
    workers: int = 0,
    progress: Callable[[Report], None] | None = None,
) -> Report:
    """Counts all session files at `paths`.

    Args:
        paths: Files, folders, or URLs that fsspec knows.
        since: Unix seconds; files changed and calls recorded before are left out.
        engine: One of `ENGINES`.
        workers: Processes, or Ray tasks at once; 0 takes what the machine or cluster has, and one for little work.
        progress: Called after each file with the report so far.

    Returns:
        The report. The same files give the same counts with every engine and any number of workers. Where the user
        interrupts, it is marked and has what was counted until then.

    Raises:
        InputError: A path does not exist, or the engine is unknown.
        MissingExtra: The engine's package is not installed.
    """
    given = tuple(paths)
    for path in given:
        if "://" not in path and not os.path.exists(path):
            raise InputError(f"{path}: no such file or folder")
    if engine not in ENGINES:
        raise InputError(f"no engine is named {engine!r}; there are {', '.join(ENGINES)}")
    module, attribute = ENGINES[engine].split(":")
    run: Engine = getattr(import_module(module), attribute)
    report = Report(given)
    options = Options(since)
    walk = Walk(given, since)
    known = Identities()
    begin = time.monotonic()
    reports: Any = run(walk, options, workers)
    try:
        for one in reports:
            take(report, one, options, known)
            if progress is not None:
                progress(report)
    except KeyboardInterrupt:
        report.interrupted = True
        reports.close()
    report.errors.extend(walk.errors)
    report.trim()
    report.seconds = time.monotonic() - begin
    return report


def take(report: Report, one: FileReport, options: Options, known: Identities) -> None:
    """Adds one file, without the calls that an earlier one holds already; then it is read once more."""
    if any(number in known for number in one.identities):
        one = scan_file(one.path, options, known)
    for number in one.identities:
        known.add(number)
    report.take(one)
