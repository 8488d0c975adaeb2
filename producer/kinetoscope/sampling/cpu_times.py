"""How much processor time this process and each of its threads used in a window.

torch.profiler records the thread that started it and those of autograd. The viewer compares these times with the
threads in the file, and says how much work of other threads is missing.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

_TASKS = Path("/proc/self/task")
_MOST_THREADS = 512
"""Reading one takes 10 µs of the training's thread, at the begin and the end of a window."""
_MOST_LISTED, _LEAST_NS = 64, 1_000_000


class CpuTimes:
    """The processor times of one process since a window began."""

    def __init__(self) -> None:
        self._process_ns = 0
        self._threads_ns: dict[int, int] = {}
        self._window: dict[str, Any] | None = None

    def begin(self) -> None:
        """Begin a window."""
        self._process_ns, self._threads_ns = time.process_time_ns(), thread_times_ns()

    def end(self) -> None:
        """End the window."""
        spent_ns = {tid: ns - self._threads_ns.get(tid, 0) for tid, ns in thread_times_ns().items()}
        names = {thread.native_id: thread.name for thread in threading.enumerate()}
        longest = sorted(spent_ns, key=lambda tid: -spent_ns[tid])[:_MOST_LISTED]
        self._window = None
        if spent_ns:
            self._window = {
                "process_ns": time.process_time_ns() - self._process_ns,
                "threads_ns": sum(spent_ns.values()),
                "threads": [[tid, spent_ns[tid], names.get(tid)] for tid in longest if spent_ns[tid] >= _LEAST_NS],
            }

    def to_json(self) -> dict[str, Any] | None:
        """Return the last window's times as JSON values; None if this system doesn't have them.

        `process_ns`, all threads of the process; `threads_ns`, those that are alive at the end; `threads`, the id, time
        and name of each that used a millisecond or more, the name only of Python's threads.
        """
        return self._window


def thread_times_ns(tasks: Path = _TASKS) -> dict[int, int]:
    """Return the processor time of each thread by its native id; empty if the system doesn't have it, or too many.

    The first number of `schedstat` (Linux, Documentation/scheduler/sched-stats.rst).
    """
    try:
        tids = os.listdir(tasks)  # noqa: PTH208  pathlib takes several times as long
    except OSError:
        return {}
    times_ns: dict[int, int] = {}
    for tid in tids if len(tids) <= _MOST_THREADS else ():
        try:
            with open(f"{tasks}/{tid}/schedstat", "rb", buffering=0) as file:  # noqa: PTH123  as above
                times_ns[int(tid)] = int(file.read(64).split()[0])
        except (OSError, ValueError, IndexError):  # it has just ended, or the kernel doesn't count
            continue
    return times_ns


def own_threads() -> list[int]:
    """Return the native ids of the recorder's own threads."""
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("kinetoscope-")]
    return [thread.native_id for thread in threads if thread.native_id is not None]
