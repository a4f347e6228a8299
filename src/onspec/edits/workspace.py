"""A set of files that can be read and edited, and nothing outside it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_
from difflib import get_close_matches
from pathlib import Path

from onspec.audit import Repair, Violation
from onspec.edits.edit import Operation
from onspec.edits.history import DiskHistory, Entry, History, MemoryHistory, Record, entry_of
from onspec.edits.plan import FileChange, Find, Found, plan
from onspec.edits.store import LIMIT, Commit, DiskStore, MemoryStore, Store
from onspec.edits.text import Text, read
from onspec.edits.transaction import CommitError, version


@dataclass(frozen=True, slots=True)
class Content:
    """A file that was read.

    Attributes:
        path: Its path from the root, symlinks resolved.
        text: Its text.
        version: Name of its content, for `expect`.
    """

    path: str
    text: Text
    version: str


@dataclass(frozen=True, slots=True)
class Done:
    """What became of operations.

    Attributes:
        changes: What was done, or would be, file by file. Empty where there are violations.
        repairs: The looser rules that were used.
        violations: Why nothing was done.
        notes: Facts worth knowing, one sentence each.
        versions: Path -> version of the new content, for files that have one.
        undo: Id under which it can be taken back, or None where nothing was written.
    """

    changes: tuple[FileChange, ...] = ()
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Violation, ...] = ()
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] | None = None
    undo: str | None = None

    @property
    def ok(self) -> bool:
        return not self.violations


class Workspace:
    """Files under a root on disk, edited so that they are always whole.

    A commit is all or nothing, for one file or many, also when the process is killed or the machine stops: what was
    left halfway is finished or cleared away when the root is opened next. Processes that edit through a `Workspace`
    wait for one another. No path leads out of the root.

    Args:
        root: The folder.
        state: Folder for the undo history; by default one in the user's state folder (`$XDG_STATE_HOME/onspec/edits`).
            It holds old contents of edited files.
        loose: Whether looser matching rules may be tried where nothing matches exactly.
        durable: Whether a commit waits until the disk has it (`fsync`).
        patience: Seconds to wait for another process that is editing.
        limit: Largest file, in bytes, that is read.

    Raises:
        InputError: The root is not a folder that can be used.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        state: str | os.PathLike[str] | None = None,
        loose: bool = True,
        durable: bool = True,
        patience: float = 10.0,
        limit: int = LIMIT,
    ) -> None:
        store = DiskStore(root, durable, patience, limit)
        self._store: Store = store
        folder = Path(state) if state is not None else _state_folder() / _name_of(store.root.real)
        self._history: History = DiskHistory(folder)
        self.loose = loose
        self.root = store.root.real
        self.problems: Sequence[str] = store.problems

    @classmethod
    def in_memory(cls, files: Mapping[str, bytes], *, loose: bool = True) -> Workspace:
        """A workspace whose files are in memory, by path from the root. `files` is not changed."""
        self = cls.__new__(cls)
        self._store, self._history, self.loose = MemoryStore(files), MemoryHistory(), loose
        self.root, self.problems = "/", ()
        return self

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the root."""
        self._store.close()

    def read(self, path: str, encoding: str | None = None) -> Content | Violation:
        """A file, or why it cannot be read.

        Args:
            path: The file, relative to the root or absolute inside it.
            encoding: Its encoding, where it is known.
        """
        found = self._store.look(path)
        if isinstance(found, Violation):
            return found
        if found.data is None:
            return Violation("no_such_file", "", "there is no such file", hint=self._near(path))
        text = read(found.data, encoding)
        return text if isinstance(text, Violation) else Content(found.path, text, version(found.data))

    def names(self, path: str = ".") -> list[str] | Violation:
        """What is in a folder, sorted; folders end in `/`."""
        return self._store.names(path)

    def apply(
        self,
        operations: Sequence[Operation],
        *,
        dry_run: bool = False,
        seen: Mapping[str, str] | None = None,
        unseen: bool = True,
    ) -> Done:
        """Do all operations, or none.

        Args:
            operations: What to do; all are matched against the files as they are.
            dry_run: Find out what would be done, and write nothing.
            seen: Path -> version that the caller has seen; another version refuses, as an operation's `expect` does.
            unseen: Whether a file that is not in `seen` may be changed.
        """
        paths = [path for one in operations for path in (one.path, getattr(one, "to", None)) if path]
        with self._store.hold(paths) as held:
            if isinstance(held, Violation):
                return Done(violations=(held,))
            find, commit = held
            planned = plan(operations, find, loose=self.loose, seen=seen, unseen=unseen)
            if planned.violations:
                return Done(violations=tuple(self._with_hint(one, operations) for one in planned.violations))
            done = Done(planned.changes, planned.repairs, notes=planned.notes)
            if dry_run:
                return done
            return self._commit(done, commit)

    def undo(self, path: str | None = None) -> Done:
        """Take back the last edit that is in effect, of one file or of all.

        It is taken back whole, with all files it changed, and only where each is as the edit left it.
        """
        wanted = None
        if path is not None:
            found = self._store.look(path)
            if isinstance(found, Violation):
                return Done(violations=(found,))
            wanted = found.path
        for entry in self._history.entries():
            if wanted is not None and all(record.path != wanted for record in entry.files):
                continue
            with self._store.hold([record.path for record in entry.files]) as held:
                if isinstance(held, Violation):
                    return Done(violations=(held,))
                find, commit = held
                changes = _undone(entry, find)
                if changes is None:  # it never came into effect
                    self._history.drop(entry)
                    continue
                if isinstance(changes, Violation):
                    return Done(violations=(changes,))
                try:
                    commit(changes)
                except CommitError as error:
                    return Done(violations=(error.violation,))
                for record in entry.files:
                    self._store.prune(record.path, record.folders)
                self._history.drop(entry)
                versions = {one.path: version(one.after) for one in changes if one.after is not None}
                return Done(tuple(changes), versions=versions)
        return Done(violations=(Violation("nothing_to_undo", "", "there is no edit to take back"),))

    def history(self) -> list[Entry]:
        """The edits that can be taken back, the newest first."""
        return self._history.entries()

    def _commit(self, done: Done, commit: Commit) -> Done:
        versions = [None if one.after is None else version(one.after) for one in done.changes]
        entry = entry_of(done.changes, versions)
        self._history.save(entry)
        try:
            commit(done.changes)
        except CommitError as error:
            self._history.drop(entry)
            at = done.changes[error.step].at
            return Done(violations=(with_(error.violation, path=at),))
        self._history.confirm(entry)
        named = {one.path: name for one, name in zip(done.changes, versions, strict=True) if name is not None}
        return with_(done, versions=named, undo=entry.id)

    def _with_hint(self, violation: Violation, operations: Sequence[Operation]) -> Violation:
        if violation.code != "no_such_file" or violation.hint:
            return violation
        path = next((one.path for one in operations if one.at == violation.path), "")
        return with_(violation, hint=self._near(path))

    def _near(self, path: str) -> str | None:
        """The name in the same folder that differs only in letter case, or else in little."""
        folder, _, name = path.rstrip("/").rpartition("/")
        names = self._store.names(folder or ("/" if path.startswith("/") else "."))
        if isinstance(names, Violation):
            return None
        same = [one for one in names if one.casefold() == name.casefold()]
        near = same or get_close_matches(name, names[:2000], n=1, cutoff=0.7)
        return f"did you mean {folder + '/' if folder else ''}{near[0]}" if near else None


def _undone(entry: Entry, find: Find) -> list[FileChange] | Violation | None:
    """The changes that take an entry back; None where it never came into effect."""
    changes: list[FileChange] = []
    wrong: Violation | None = None
    for record in entry.files:
        found = find(record.path)
        if isinstance(found, Violation):
            return found
        if (None if found.data is None else version(found.data)) != record.after:
            message = f"{record.path} was changed since the edit; it cannot be taken back"
            wrong = wrong or Violation("changed_since", "", message)
            continue
        changes.append(FileChange(found, _before(record, found), mode=record.mode))
    if wrong and not entry.sure:
        return None
    return wrong or changes


def _before(record: Record, found: Found) -> bytes | None:
    if not record.existed:
        return None
    return record.undone(found.data) if record.pieces and found.data is not None else record.whole


def _state_folder() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(base) / "onspec" / "edits"


def _name_of(root: str) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:24]
