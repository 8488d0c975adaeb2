"""How much processor time this process and each of its threads used in a window, and how long they waited for a core.

torch.profiler records the thread that started it and those of autograd. The viewer compares these times with the
threads in the file, and says how much work of other threads is missing; with the number of cores it says whether work
that is to run at the same time would find one.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from ..job.rank_info import local_world_size
from .usable_cores import container_limit, usable_cores

_TASKS = Path("/proc/self/task")
_MOST_THREADS = 512
"""Reading one takes 10 µs of the training's thread, at the begin and the end of a window."""
_MOST_LISTED, _LEAST_NS = 64, 1_000_000


class ThreadTimes(NamedTuple):
    """What the kernel counts for a thread since it started, in ns.

    Attributes:
        used_ns: It ran on a core.
        waited_ns: It could have run, but other threads had the cores, or a limit of the container held it back.
    """

    used_ns: int
    waited_ns: int


_NEW = ThreadTimes(0, 0)


class CpuTimes:
    """The processor times of one process since a window began."""

    def __init__(self) -> None:
        self._process_ns = self._began_ns = 0
        self._threads: dict[int, ThreadTimes] = {}
        self._window: dict[str, Any] | None = None
        self._limit = container_limit()

    def begin(self) -> None:
        """Begin a window."""
        self._process_ns, self._threads, self._began_ns = time.process_time_ns(), thread_times(), time.perf_counter_ns()

    def end(self) -> None:
        """End the window."""
        window_ns = time.perf_counter_ns() - self._began_ns
        in_window = {tid: _since(times, self._threads.get(tid, _NEW)) for tid, times in thread_times().items()}
        names = {thread.native_id: thread.name for thread in threading.enumerate()}
        longest = sorted(in_window, key=lambda tid: -in_window[tid].used_ns)[:_MOST_LISTED]
        self._window = None
        if in_window:
            cores = usable_cores(self._limit)
            self._window = {
                "window_ns": window_ns,
                "cores": cores.usable,
                "shared_cores": cores.shared,
                "processes": local_world_size(),
                "process_ns": time.process_time_ns() - self._process_ns,
                "threads_ns": sum(times.used_ns for times in in_window.values()),
                "threads": [
                    [tid, in_window[tid].used_ns, names.get(tid), in_window[tid].waited_ns]
                    for tid in longest
                    if in_window[tid].used_ns >= _LEAST_NS
                ],
            }

    def to_json(self) -> dict[str, Any] | None:
        """Return the last window's times as JSON values; None if this system doesn't have them.

        `window_ns`, how long it was; `cores`, how many this process may use; `shared_cores`, how many all processes
        in its container may, or on its machine; `processes`, how many of the job run on this machine, None if the
        launcher doesn't say so; `process_ns`, all threads of the process; `threads_ns`, those
        that are alive at the end; `threads`, the id, time, name and wait for a core of each that used a millisecond
        or more, the name only of Python's threads.
        """
        return self._window


def _since(now: ThreadTimes, then: ThreadTimes) -> ThreadTimes:
    return ThreadTimes(now.used_ns - then.used_ns, now.waited_ns - then.waited_ns)


def thread_times(tasks: Path = _TASKS) -> dict[int, ThreadTimes]:
    """Return the times of each thread by its native id; empty if the system doesn't have them, or too many.

    The first two numbers of `schedstat` (Linux, Documentation/scheduler/sched-stats.rst).
    """
    try:
        tids = os.listdir(tasks)  # noqa: PTH208  pathlib takes several times as long
    except OSError:
        return {}
    times: dict[int, ThreadTimes] = {}
    for tid in tids if len(tids) <= _MOST_THREADS else ():
        try:
            with open(f"{tasks}/{tid}/schedstat", "rb", buffering=0) as file:  # noqa: PTH123  as above
                used_ns, waited_ns = file.read(64).split()[:2]
            times[int(tid)] = ThreadTimes(int(used_ns), int(waited_ns))
        except (OSError, ValueError):  # it has just ended, or the kernel doesn't count
            continue
    return times


def own_threads() -> list[int]:
    """Return the native ids of the recorder's own threads."""
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("kinetoscope-")]
    return [thread.native_id for thread in threads if thread.native_id is not None]
