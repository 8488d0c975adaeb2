"""For programs that keep their own torch.profiler: our naming, metadata and atomic files as `on_trace_ready`."""

from __future__ import annotations

import atexit
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .argument_checks import explain_unknown
from .error_log import ErrorLog
from .errors import UsageError
from .job.run_name import Run
from .naming import TraceName
from .output.destination import Destination
from .output.name_template import TRACE
from .output.trace_writer import TraceWriter
from .profiling.options import options_of
from .profiling.trace_export import export_trace

if TYPE_CHECKING:
    from torch.profiler import profile


def local_folder(logdir: str | os.PathLike[str]) -> Path:
    """Return the logdir as an absolute path: the process that writes there has another working directory.

    Raises:
        UsageError: It is a URL.
    """
    text = os.fspath(logdir)
    if "://" in text:
        raise UsageError(f"{text}: traces are recorded into a local folder; use remote= for copies.")
    return Path(text).absolute()


class TraceHandler:
    """Saves the windows of a `torch.profiler.profile`; `trace_handler` returns it."""

    def __init__(self, trace_writer: TraceWriter) -> None:
        self._trace_writer = trace_writer
        trace_writer.reason = "handler"
        atexit.register(self.close)

    def __call__(self, profiler: profile) -> None:
        """Save the profiler's window."""
        steps = profiler.step_num
        self._trace_writer.resolve()
        self._trace_writer.poll()
        self._trace_writer.options = options_of(vars(profiler), profiler.activities)
        self._trace_writer.save(partial(export_trace, profiler), steps, is_whole=steps > 0, is_complete=True)

    @property
    def saved_traces(self) -> tuple[Path, ...]:
        """The files written so far, oldest first."""
        self._trace_writer.poll()
        return tuple(self._trace_writer.saved)

    def close(self, timeout_s: float | None = None) -> None:
        """Wait until all traces are written, as at the end of the program.

        Args:
            timeout_s: The maximum wait, by default two minutes. A process that outlives this one writes the rest.
        """
        atexit.unregister(self.close)
        self._trace_writer.end(reason="end")
        self._trace_writer.close(timeout_s)


def refuse_trace_handler(callback: object) -> None:
    """Check that a callback of a Tracer isn't a `trace_handler`.

    Raises:
        UsageError: It is one.
    """
    if isinstance(callback, TraceHandler):
        raise UsageError("A Tracer saves its windows itself: trace_handler() is for torch.profiler.profile.")


@explain_unknown("trace_handler", {"worker_name": "worker='…'", "dir_name": "logdir='runs'", "file": "worker='…'"})
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

    It saves `{logdir}/{run}/{worker}.{steps}.pt.trace.json.gz`, which another process writes while the training
    continues. Errors are logged and don't reach the training: torch crashes if its handler raises.

    Args:
        logdir: The folder that TensorBoard reads.
        run: The run's name; by default the launcher's name of the job, else the time. If it has traces already, this
            is another attempt, `{run}.1`.
        worker: This process's name; by default its rank, `rank3`.
        use_gzip: Whether traces are compressed; their names then end in `.gz`.
        remote: The URL of a folder that mirrors the logdir.
        keep: How many of the newest traces stay in the logdir; -1 for all.
        overwrite: Record into the run's folder even if it has traces.

    Raises:
        UsageError: A name that no file can have.
    """
    destination = Destination(
        file=file_template(worker, use_gzip=use_gzip), remote=remote, keep=keep, overwrite=overwrite
    )
    target = local_folder(logdir)
    return TraceHandler(TraceWriter(Run(run, target, overwrite=overwrite), ErrorLog(), destination))


def file_template(worker: str | None, *, use_gzip: bool) -> str:
    """Return the name template of a worker's traces; by default of a rank's.

    Raises:
        UsageError: A name that no file can have.
    """
    file = TRACE if use_gzip else TRACE.removesuffix(".gz")
    if worker is None:
        return file
    try:
        TraceName(worker, 0)
    except ValueError as error:
        raise UsageError(f"worker={worker!r} can't be part of a file name.") from error
    return file.replace("rank{rank}", worker.replace("{", "{{").replace("}", "}}"))
