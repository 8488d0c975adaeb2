"""A trace's metadata about its own recording.

kineto's own API for metadata accepts values only while the profiler is warming up or recording, and a quote in a value
corrupts the file. So `merge_events` inserts all of it into the finished file.
"""

from __future__ import annotations

import os
import platform
import socket
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from .._version import __version__
from ..job.cluster import current_cluster_facts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..job.rank_info import RankInfo

OUT_OF_MEMORY = "out of memory"
"""The reason of a memory snapshot that was taken because an allocation failed."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """One recording: from the start of the profiler until it was saved.

    Args:
        window: How many windows this process recorded before.
        step_first: The first step in it, counted from 0; None if the program doesn't count steps.
        step_last: The last step in it.
        is_last_step_whole: Whether the recording ended together with that step.
        steps_completed: How many steps the training had completed when it was saved: the span in the file's name.
        reason: `schedule`, or the source of the request (`file`, `signal`, `slow_step`, `request`, `page`, …); or what
            ended it early: `end` of the program's `with`, `exit`, `exception: <class>`, a signal such as `sigterm`,
            `another profiler`.
        why: What made the recorder choose these steps, as a sentence without its period; None if it didn't.
        is_complete: Whether it ended as planned.
        started_ns: Unix time when it began.
        ended_ns: Unix time when it ended.
    """

    window: int
    step_first: int | None
    step_last: int | None
    is_last_step_whole: bool
    steps_completed: int
    reason: str
    why: str | None
    is_complete: bool
    started_ns: int | None
    ended_ns: int


@dataclass(frozen=True, kw_only=True)
class RecordingFacts:
    """All metadata of a recording.

    Args:
        run: The run's name, which is also its folder.
        rank_info: The process's ranks in the job.
        window: The recorded part of the training.
        options: The profiler's options.
        schedule: The schedule as numbers or a name; None if there is none.
        details: More facts about the recording: `markers`, the program's name and the categories of each name in the
            trace; `counters`, the unit of each counter that has one; `step_times_ns`, number, start and end of each
            step in Unix time; `progress`; `double_steps`, how many batches of `steps()` had a `step()` of their own and
            were counted once; `usual_step`, `median_ns` of the last `steps` without a profiler, None if there were
            none; `dropped`, how many of the program's events were dropped; `clock`, see `Offset`, None if it wasn't
            compared; `mesh`, the rank's coordinates by dimension; `cpu`, see `CpuTimes`; `ranks`, those that record
            this window as far as this process knows, None if all do.
    """

    run: str
    rank_info: RankInfo
    window: Window
    options: Mapping[str, Any]
    schedule: Any = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, with the facts about the whole process."""
        return {
            "version": __version__,
            "run": self.run,
            **asdict(self.rank_info),
            **process_facts(),
            **asdict(self.window),
            "options": dict(self.options),
            "schedule": self.schedule,
            **self.details,
        }


def snapshot_facts(rank_and_folder: tuple[RankInfo, Path] | None, reason: str, steps_completed: int) -> dict[str, Any]:
    """Return the metadata of a memory snapshot as JSON values; without rank and run while these are unknown."""
    rank_info, folder = rank_and_folder or (None, None)
    return {
        "version": __version__,
        **({} if folder is None else {"run": folder.name}),
        **({} if rank_info is None else asdict(rank_info)),
        **process_facts(),
        "reason": reason,
        "steps_completed": steps_completed,
        "taken_ns": time.time_ns(),
    }


def process_facts() -> dict[str, Any]:
    """Return the facts about this process, independent of what it records."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "torch_version": str(torch.__version__),
        "cuda_version": torch.version.cuda,
        "python_version": platform.python_version(),
        "cluster": current_cluster_facts(),
    }
