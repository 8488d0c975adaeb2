"""For programs that keep their own torch.profiler: our naming, metadata and atomic files as `on_trace_ready`."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import SaveError, UsageError
from .identity import Run, current_place
from .metadata import Recording, Window
from .naming import TraceName, file_name, worker_of_rank
from .recorder import options_of
from .writer import save

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.profiler import profile

_LOG = logging.getLogger("kinetoscope")


def folder(logdir: str | os.PathLike[str]) -> Path:
    """Return the logdir as a path.

    Raises:
        UsageError: It is a URL.
    """
    text = os.fspath(logdir)
    if "://" in text:
        raise UsageError(f"{text}: traces are recorded into a local folder; copy them from there.")
    return Path(text)


def trace_handler(
    logdir: str | os.PathLike[str], *, run: str | None = None, worker: str | None = None
) -> Callable[[profile], None]:
    """Return a handler for `torch.profiler.profile(on_trace_ready=…)`.

    It saves `{logdir}/{run}/{worker}.{steps}.pt.trace.json.gz`. Whatever goes wrong is logged and doesn't reach the
    training: torch crashes when its handler raises.

    Args:
        logdir: The folder that TensorBoard is given.
        run: The run's name; by default what the launcher calls the job, else the time.
        worker: What this process is called; by default its rank, `rank3`.

    Raises:
        UsageError: A name that no file can have.
    """
    target, name = folder(logdir), Run(run)
    if worker is not None:
        _checked_worker(worker)
    saved = 0

    def save_window(profiler: profile) -> None:
        nonlocal saved
        place, steps = current_place(), profiler.step_num
        window = Window(
            window=saved,
            step_first=None,
            step_last=steps - 1 if steps else None,
            is_last_step_whole=steps > 0,
            steps_completed=steps,
            reason="handler",
            is_complete=True,
            started_ns=None,
            ended_ns=time.time_ns(),
        )
        options = options_of(vars(profiler), profiler.activities)
        recording = Recording(run=name.name, place=place, window=window, options=options)
        file = file_name(TraceName(worker or worker_of_rank(place.global_rank), steps))
        try:
            save(profiler.export_chrome_trace, target / name.name / file, recording.to_json())
            saved += 1
        except SaveError as error:
            _LOG.warning("%s", error)

    return save_window


def _checked_worker(worker: str) -> None:
    try:
        TraceName(worker, 0)
    except ValueError as error:
        raise UsageError(f"worker={worker!r} can't be a part of a file's name.") from error
