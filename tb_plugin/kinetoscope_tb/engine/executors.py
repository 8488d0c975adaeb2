"""Executors that read many recordings: processes of this machine, or a Dask cluster."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from ..errors import BadParameter
from .summary_loader import ExecutorFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future

    from .cache.summary_entry import PackedSummary

LOCAL, DASK = "local", "dask://"
FEW = 16  # recordings that aren't worth the seconds in which processes start
PATIENCE_S = 20  # until a cluster must have answered
JOBS_EACH = 2  # per process or thread, so that none is idle while an answer travels


def local_executors(recordings: int, processes: int | None = None) -> ExecutorFactory:
    """Processes of this machine, one per core, or threads where there is little to do.

    Args:
        recordings: How many are to be read.
        processes: How many; as many as there are cores if not given.
    """
    workers = processes or os.cpu_count() or 1
    if processes is None and recordings <= FEW:
        return ExecutorFactory(lambda: ThreadPoolExecutor(workers), workers)
    return ExecutorFactory(
        lambda: ProcessPoolExecutor(workers, get_context("spawn"), _limit_polars), workers * JOBS_EACH
    )


def _limit_polars() -> None:
    """Keep Polars from starting a thread per core in each process; it looks at this when it is imported first."""
    os.environ.setdefault("POLARS_MAX_THREADS", "1")


class _ClusterExecutor:
    """A cluster's executor; its workers must find the recordings under the same paths, and have Kinetoscope."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor

    def submit(self, job: Callable[[str], PackedSummary], path: str, /) -> Future[PackedSummary]:
        """What the job will return or raise."""
        future: Future[PackedSummary] = self._executor.submit(job, path)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002
        """Take no more jobs."""
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
        from distributed import Client as Cluster
    except ImportError as error:
        raise BadParameter(f"--engine {engine} needs Dask. Install it: pip install 'kinetoscope[dask]'.") from error
    address = "tcp://" + engine.removeprefix(DASK)
    try:
        client: Any = Cluster(address, timeout=PATIENCE_S, set_as_default=False)
    except OSError as error:
        raise BadParameter(f"No Dask scheduler answers at {address} within {PATIENCE_S} s: {error}") from error
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise BadParameter(f"The Dask cluster at {address} has no workers. Start some: dask worker {address}.")
        yield ExecutorFactory(lambda: _ClusterExecutor(client.get_executor(pure=False)), threads * JOBS_EACH)
