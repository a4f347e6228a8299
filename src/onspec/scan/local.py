"""Counts files on this machine, in one process or in several."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
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
    # The children are started afresh: a fork of a process with threads is not safe, and costs the same.
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_ignore_interrupts) as pool:
        waiting: deque[tuple[str, Future[FileReport]]] = deque()
        try:
            for path in stream:
                waiting.append((path, pool.submit(scan_file, path, options)))
                if len(waiting) >= workers * 4:
                    yield _result(*waiting.popleft())
            while waiting:
                yield _result(*waiting.popleft())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _result(path: str, future: Future[FileReport]) -> FileReport:
    try:
        return future.result()
    except MemoryError:
        return FileReport(path, error="not enough memory")


def _ignore_interrupts() -> None:
    """Ctrl-C reaches every process of the terminal; only the parent answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _size(path: str) -> int:
    try:
        return 0 if "://" in path else os.stat(path).st_size
    except OSError:
        return 0
