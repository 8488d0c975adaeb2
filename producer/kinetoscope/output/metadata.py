"""What a trace says about its own recording.

kineto's own way to add metadata takes values only while the profiler is warming up or recording, and destroys the file
over a quote. So all of it is put into the finished file, by `merge_events`.
"""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from .._version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..job.rank_info import RankInfo

KEY = "kinetoscope"
"""The top-level key that holds it all."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """One recording: from when the profiler began to collect until it was saved.

    Args:
        window: How many windows this process recorded before.
        step_first: The first step that it holds, counted from 0; None where nobody counted.
        step_last: The last step that it holds.
        is_last_step_whole: Whether the recording ended together with that step.
        steps_completed: How many steps the training had completed when it was saved: the span in the file's name.
        reason: Why it is there: `schedule`, or who requested it (`file`, `signal`, `slow_step`, `request`, `page`, …);
            else what ended it early: `end` of the program's `with`, `exit`, `exception: <class>`, `sigterm` and the
            like, `another profiler`.
        is_complete: Whether it ended where it was meant to.
        started_ns: Unix time when it began.
        ended_ns: Unix time when it ended.
    """

    window: int
    step_first: int | None
    step_last: int | None
    is_last_step_whole: bool
    steps_completed: int
    reason: str
    is_complete: bool
    started_ns: int | None
    ended_ns: int


@dataclass(frozen=True, kw_only=True)
class Recording:
    """All that a trace says about how it came about.

    Args:
        run: The run's name, which is its folder too.
        rank_info: The process's place in the job.
        window: Which part of the training this is.
        options: What the profiler records.
        schedule: The schedule in words or numbers; None for "everything".
        details: What else is known of the recording: `markers`, the program's name and the categories of each name in
            the trace; `counters`, the unit of each counter that has one; `step_times_ns`, number, start and end of
            each step in Unix time; `progress`; `dropped`, how many of the program's events there was no room for;
            `clock`, see `Offset`, None if it wasn't compared; `mesh`, the rank's coordinates by dimension; `ranks`, all
            that this process knows to record this window, None if all do.
    """

    run: str
    rank_info: RankInfo
    window: Window
    options: Mapping[str, Any]
    schedule: Any = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, with what is true of the whole process."""
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


def process_facts() -> dict[str, Any]:
    """Return what is true of this process, whatever it records."""
    import torch

    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "torch_version": str(torch.__version__),
        "cuda_version": torch.version.cuda,
        "python_version": platform.python_version(),
    }
