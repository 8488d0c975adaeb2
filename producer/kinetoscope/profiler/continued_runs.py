"""The runs that a process's profiles record into: all with one logdir are windows of one run, as with torch.

Programs make a profile per epoch, or start one several times. Each continues the run where the last one ended: the
number of its first step is that of the next one, so that no two windows have the same number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .. import process_id
from ..job.rank_info import RankInfo, current_rank_info
from ..job.run_name import Run
from ..progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from ..tracer import Tracer


@dataclass
class ContinuedRun:
    """A run that this process has begun.

    Args:
        run: The run.
        pid: The process; one that was forked from it begins its own run.
        rank_info: Its ranks; in a job that it joined meanwhile, it begins another run with the others.
    """

    run: Run
    pid: int
    rank_info: RankInfo
    last_span = -1
    """The number of the last window."""
    _progress = Progress()
    _tracer: Tracer | None = None

    def next_progress(self) -> Progress:
        """Return where the next profile continues."""
        if (
            self._tracer is not None
        ):  # nobody stopped it: it ends when the next one starts, with a window of this number
            self._progress, self.last_span = self._tracer.progress, self._tracer.completed_steps
        return replace(self._progress, batch=max(self._progress.batch, self.last_span + 1))

    def begin(self, tracer: Tracer) -> None:
        """Continue with a profile's Tracer."""
        self._tracer = tracer

    def end(self, tracer: Tracer) -> None:
        """Continue after it, and let go of what it holds; does nothing if another one has begun meanwhile."""
        if self._tracer is tracer:
            self._progress, self._tracer = tracer.progress, None


_runs: dict[Path, ContinuedRun] = {}


def continued_run(logdir: Path) -> ContinuedRun:
    """Return this process's run in a logdir; a new one if it has none."""
    here = process_id.pid, current_rank_info()
    continued_run = _runs.get(logdir)
    if continued_run is None or (continued_run.pid, continued_run.rank_info) != here:
        continued_run = _runs[logdir] = ContinuedRun(Run(None, logdir), *here)
    return continued_run
