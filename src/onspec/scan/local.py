"""Counts files on this machine, in one process or in several."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from itertools import chain, islice
from multiprocessing import get_context

from onspec.scan.count import FileReport
from onspec.scan.file import Options, scan_file

PEEK = 1000
"""Files that are looked at to tell whether there is enough work for several processes."""

WORTHWHILE = 64 << 20
"""Bytes from which on starting processes pays."""


def run(paths: Iterable[str], options: Options, workers: int) -> Iterator[FileReport]:
    """The reports of all files, in their order."""
    stream = iter(paths)
    if workers == 0:
        first = list(islice(stream, PEEK))
        stream = chain(first, stream)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        sizes = [_size(path) for path in first]
        workers = cores if sum(sizes) >= WORTHWHILE and len(first) > 1 else 1
    if workers == 1:
        for path in stream:
            yield scan_file(path, options)
        return
    pool = _Pool(workers)
    try:
        for path in stream:
            pool.add(path, options)
            if len(pool.waiting) >= workers * 4:
                yield pool.take(options)
        while pool.waiting:
            yield pool.take(options)
    except BaseException:
        pool.stop(False)
        raise
    pool.stop(True)


class _Pool:
    """Processes that count files, replaced where one of them dies."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._executor = self._start()
        self.waiting: deque[tuple[str, Future[FileReport]]] = deque()

    def _start(self) -> ProcessPoolExecutor:
        # The children are started afresh: a fork of a process with threads is not safe, and costs the same.
        return ProcessPoolExecutor(self._workers, mp_context=get_context("spawn"), initializer=_ignore_interrupts)

    def add(self, path: str, options: Options) -> None:
        """Hands a file to a process."""
        try:
            future = self._executor.submit(scan_file, path, options)
        except BrokenExecutor:
            self._restart(options)
            future = self._executor.submit(scan_file, path, options)
        self.waiting.append((path, future))

    def take(self, options: Options) -> FileReport:
        """The report of the file that has waited longest; where its process died, one that says so."""
        path, future = self.waiting.popleft()
        try:
            return future.result()
        except BrokenExecutor:
            self._restart(options)
            return FileReport(path, error="the process died that read it, or one of the next files")

    def _restart(self, options: Options) -> None:
        """Starts new processes, and hands them what was not done."""
        self.stop(False)
        self._executor = self._start()
        left, self.waiting = self.waiting, deque()
        for path, future in left:
            done = future.done() and not future.cancelled() and future.exception() is None
            self.waiting.append((path, future if done else self._executor.submit(scan_file, path, options)))

    def stop(self, wait: bool) -> None:
        """Ends the processes."""
        self._executor.shutdown(wait=wait, cancel_futures=True)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches every process of the terminal; only the parent answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _size(path: str) -> int:
    try:
        return 0 if "://" in path else os.stat(path).st_size
    except OSError:
        return 0
