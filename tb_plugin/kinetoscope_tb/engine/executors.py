"""Executors that read many recordings: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kinetoscope.optional_packages import optional_package

from ..errors import BadParameter
from .processes import Processes
from .summary_loader import ExecutorFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

LOCAL, DASK = "local", "dask://"
FEW = 16  # recordings for which starting processes would take longer
PATIENCE_S = 20  # timeout for a cluster
JOBS_EACH = 2  # per process or thread, so that none is idle while results are transferred


def local_executors(recordings: int, processes: int | None = None) -> ExecutorFactory:
    """Processes of this machine, one per core, or threads if there are few recordings.

    Args:
        recordings: Number of recordings to read.
        processes: Number of processes; by default one per core.
    """
    workers = processes or os.cpu_count() or 1
    if processes is None and recordings <= FEW:
        return ExecutorFactory(lambda: ThreadPoolExecutor(workers), workers)
    pool = Processes(workers)
    return ExecutorFactory(lambda: pool, workers * JOBS_EACH)


class _ClusterExecutor:
    """A cluster's executor; its workers must find the recordings under the same paths, and have Kinetoscope."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor

    def submit(self, job: Callable[[str], Any], path: str, /) -> Future[Any]:
        """The future of a job."""
        future: Future[Any] = self._executor.submit(job, path)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Accept no more jobs."""
        self._executor.shutdown(wait=wait and not cancel_futures)


@contextmanager
def executors(engine: str, recordings: int, processes: int | None = None) -> Iterator[ExecutorFactory]:
    """The executors that `engine` names: `local`, or the address of a Dask scheduler as dask://host:port.

    Raises:
        BadParameter: There is no such engine, or it doesn't answer, or what it needs isn't installed.
    """
    if engine == LOCAL:
        yield local_executors(recordings, processes)
        return
    if not engine.startswith(DASK) or not engine.removeprefix(DASK):
        raise BadParameter(
            f"--engine {engine!r} isn't possible; it is {LOCAL}, or {DASK}HOST:PORT of a Dask scheduler."
        )
    try:
        dask = optional_package("distributed", "'kinetoscope[dask]'")
    except ImportError as error:
        raise BadParameter(f"--engine {engine} needs Dask: {error}.") from error
    address = "tcp://" + engine.removeprefix(DASK)
    try:
        client = dask.Client(address, timeout=PATIENCE_S, set_as_default=False)
    except OSError as error:
        raise BadParameter(f"No Dask scheduler answers at {address} within {PATIENCE_S} s: {error}") from error
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise BadParameter(f"The Dask cluster at {address} has no workers. Start some: dask worker {address}.")
        yield ExecutorFactory(lambda: _ClusterExecutor(client.get_executor(pure=False)), threads * JOBS_EACH)
