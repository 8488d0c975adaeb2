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


@dataclass
class ContinuedRun:
    """A run that this process has begun.

    Args:
        run: The run.
        pid: The process; one that was forked from it begins its own run.
        rank_info: Its ranks; in a job that it joined meanwhile, it begins another run with the others.
        progress: Where the next profile continues.
    """

    run: Run
    pid: int
    rank_info: RankInfo
    progress: Progress

    def end_profile(self, progress: Progress, last_span: int) -> None:
        """Continue after a profile.

        Args:
            progress: The progress at its end.
            last_span: The number of its last window; -1 if there was none.
        """
        self.progress = replace(progress, batch=max(progress.batch, last_span + 1))


_runs: dict[Path, ContinuedRun] = {}


def continued_run(logdir: Path) -> ContinuedRun:
    """Return this process's run in a logdir; a new one if it has none."""
    here = process_id.pid, current_rank_info()
    known = _runs.get(logdir)
    if known is None or (known.pid, known.rank_info) != here:
        known = _runs[logdir] = ContinuedRun(Run(None, logdir), *here, Progress())
    return known
