"""Counts files on a Ray cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from onspec.errors import MissingExtra
from onspec.scan.count import FileReport
from onspec.scan.file import Options, scan_file

try:
    import ray
except ImportError:
    raise MissingExtra("ray", "ray") from None

IN_FLIGHT = 4
"""Tasks that wait for each worker."""


def run(paths: Iterable[str], options: Options, workers: int) -> Iterator[FileReport]:
    """The reports of all files, in their order.

    Uses the cluster that this process or `RAY_ADDRESS` is connected to, else starts one on this machine. Every node
    must be able to read the paths, and have onspec installed. A node that dies has its files counted by another.
    """
    started = not ray.is_initialized()
    if started:
        ray.init(include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        task: Any = ray.remote(num_cpus=1, max_retries=3)(scan_file)
        resources: dict[str, Any] = ray.cluster_resources()  # type: ignore[no-untyped-call]  # ray has no type for it
        width = workers or max(int(resources.get("CPU", 1)), 1)
        waiting: deque[tuple[str, Any]] = deque()
        running: set[Any] = set()
        for path in paths:
            if workers:
                while len(running) >= workers:
                    _, left = ray.wait(list(running), num_returns=1, fetch_local=False)
                    running = set(left)
            reference = task.remote(path, options)
            running.add(reference)
            waiting.append((path, reference))
            while len(waiting) >= width * IN_FLIGHT:
                yield _result(*waiting.popleft())
                running &= {one for _, one in waiting}
        while waiting:
            yield _result(*waiting.popleft())
    finally:
        if started:
            ray.shutdown()


def _result(path: str, reference: Any) -> FileReport:
    try:
        report: FileReport = ray.get(reference)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError, ray.exceptions.NodeDiedError) as error:
        return FileReport(path, error=f"the worker was lost: {type(error).__name__}")
    return report
