"""For programs that keep their own torch.profiler: our naming, metadata and atomic files as `on_trace_ready`."""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from typing import TYPE_CHECKING

from .error_log import ErrorLog
from .errors import UsageError
from .job.run_name import Run
from .naming import TraceName
from .output.destination import Destination
from .output.name_template import TRACE
from .output.trace_writer import TraceWriter
from .profiling.options import options_of

if TYPE_CHECKING:
    from torch.profiler import profile


def local_folder(logdir: str | os.PathLike[str]) -> Path:
    """Return the logdir as an absolute path: the process that writes there has another working folder.

    Raises:
        UsageError: It is a URL.
    """
    text = os.fspath(logdir)
    if "://" in text:
        raise UsageError(f"{text}: traces are recorded into a local folder; copy them from there.")
    return Path(text).absolute()


class TraceHandler:
    """What `trace_handler` returns."""

    def __init__(self, trace_writer: TraceWriter) -> None:
        self._trace_writer = trace_writer
        trace_writer.reason = "handler"
        atexit.register(self.close)

    def __call__(self, profiler: profile) -> None:
        """Save a window of the profiler's."""
        steps = profiler.step_num
        self._trace_writer.resolve()
        self._trace_writer.poll()
        self._trace_writer.options = options_of(vars(profiler), profiler.activities)
        self._trace_writer.save(profiler.export_chrome_trace, steps, is_whole=steps > 0, is_complete=True)

    @property
    def saved_traces(self) -> tuple[Path, ...]:
        """The files that are written, oldest first."""
        self._trace_writer.poll()
        return tuple(self._trace_writer.saved)

    def close(self, timeout_s: float | None = None) -> None:
        """Wait until all is written; the end of the program does so too.

        Args:
            timeout_s: How long at most; by default two minutes. What isn't written then is written all the same.
        """
        atexit.unregister(self.close)
        self._trace_writer.end(reason="end")
        self._trace_writer.close(timeout_s)


def trace_handler(
    logdir: str | os.PathLike[str],
    *,
    run: str | None = None,
    worker: str | None = None,
    use_gzip: bool = True,
    remote: str | None = None,
    keep: int = -1,
    overwrite: bool = False,
) -> TraceHandler:
    """Return a handler for `torch.profiler.profile(on_trace_ready=…)`.

    It saves `{logdir}/{run}/{worker}.{steps}.pt.trace.json.gz`, which is written by another process while the training
    goes on. Whatever goes wrong is logged and doesn't reach the training: torch crashes when its handler raises.

    Args:
        logdir: The folder that TensorBoard is given.
        run: The run's name; by default what the launcher calls the job, else the time. Where it has traces already,
            this is another attempt, `{run}.1`.
        worker: What this process is called; by default its rank, `rank3`.
        use_gzip: Whether traces are compressed; their names end in `.gz` then.
        remote: The URL of a folder that is to be like the logdir.
        keep: How many of the newest traces stay in the logdir; -1 for all.
        overwrite: Whether to record into the run's folder even if there are traces.

    Raises:
        UsageError: A name that no file can have.
    """
    destination = Destination(
        file=file_template(worker, use_gzip=use_gzip), remote=remote, keep=keep, overwrite=overwrite
    )
    target = local_folder(logdir)
    return TraceHandler(TraceWriter(target, Run(run, target, overwrite=overwrite), ErrorLog(), {}, destination))


def file_template(worker: str | None, *, use_gzip: bool) -> str:
    """Return what the traces of a worker are called, with `template`'s variables; by default of a rank.

    Raises:
        UsageError: A name that no file can have.
    """
    file = TRACE if use_gzip else TRACE.removesuffix(".gz")
    if worker is None:
        return file
    try:
        TraceName(worker, 0)
    except ValueError as error:
        raise UsageError(f"worker={worker!r} can't be a part of a file's name.") from error
    return file.replace("rank{rank}", worker.replace("{", "{{").replace("}", "}}"))
