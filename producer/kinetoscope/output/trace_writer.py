"""The training's side of saving: each window's file name, run and metadata.

Only the indispensable part runs on the training's thread: the profiler writes its raw file to the machine's own disk.
The writer process does the rest.
"""

from __future__ import annotations

import itertools
import logging
import shutil
import sys
import time
import uuid
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._version import __version__
from ..atomic_write import write_json
from ..errors import SaveError
from ..job.rank_info import RankInfo, current_rank_info, is_distributed, local_world_size
from ..job.run_attempts import DOUBT
from ..job.run_name import Run
from ..job.selection import Selection
from .commit import check_raw
from .destination import Destination
from .manifest import ENDED, KEPT, LOST, NAME, RECORDING
from .metadata import OUT_OF_MEMORY, RecordingFacts, Window, process_facts
from .name_template import format_name, rank_values, variables
from .next_command import say_next_command
from .redaction import redacted_arguments
from .spool import SNAPSHOT, Job, Spool
from .upload import object_url
from .writer_client import WriterClient

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ..error_log import ErrorLog

_LOG = logging.getLogger("kinetoscope")

CLOSE_S = 120.0
"""How long the end of a training waits for its traces; after that, the writer process continues alone."""
SIGNAL_S = 20.0
"""How long it waits when a signal ends it: launchers send SIGKILL half a minute after their first signal."""

_MOMENT_S, _SAVE_S, _END_S = 0.05, 1.0, 10.0
"""How long a step, the end of a window, and the end of a training wait, once, for a folder that doesn't answer."""

_LATE_S = 10.0
_RECOVERS = (
    "The training continues, and its recordings stay on the machine's own disk until `kinetoscope recover` writes "
    "them, with --output into another folder."
)

_MOST_LEFT_OUT = 20
_LEAST_ROOM_BYTES = 32 << 20


@dataclass(frozen=True)
class _WindowFacts:
    """What a window's metadata and names are made of; see `TraceWriter.save` and `begin_window`."""

    window: Window
    options: Mapping[str, Any]
    ranks: Collection[int] | None
    details: Mapping[str, Any]
    values: Mapping[str, Any]


class TraceWriter:
    """Saves one process's windows. Nothing in it raises except KeyboardInterrupt and the like.

    Args:
        run: The run that all processes belong to.
        error_log: Records errors.
        destination: Where traces go.
        facts: Metadata of all traces of this process: `schedule`.
        on_saved: Called with each trace's path and its entry in the manifest, on the training's thread. The trace
            exists until then, whatever `keep` is.
        selection: Which ranks record. For one that doesn't, nothing is written and no process started.
    """

    def __init__(
        self,
        run: Run,
        error_log: ErrorLog,
        destination: Destination,
        *,
        facts: Mapping[str, Any] | None = None,
        on_saved: Callable[[Path, Mapping[str, Any]], None] | None = None,
        selection: Selection | None = None,
    ) -> None:
        self.selection = selection or Selection()
        """Which ranks record."""
        self._run, self._error_log, self._facts = run, error_log, facts or {}
        self._destination, self._on_saved = destination, on_saved
        self._rank_info: RankInfo | None = None
        self._rank_and_folder: tuple[RankInfo, Path] | None = None
        self._window_start: tuple[int | None, int | None] = (None, None)
        self._window_ranks: Collection[int] | None = None
        self._has_begun = False
        self._skipped: list[dict[str, Any]] = []
        waits_for = -1 if on_saved is None else self._destination.traces_to_keep
        self._client = WriterClient(self._on_outcome, self._destination.url_prefixes, keep=waits_for)
        self._unsent: deque[tuple[Job, _WindowFacts]] = deque()
        """The windows that wait for the run's folder."""
        self._has_given_up = self._has_warned = False
        self._largest_bytes = 0
        self._files: set[str] = set()
        self._is_ended = False
        self._started_ns, self._started_s = time.time_ns(), time.monotonic()
        self._job_numbers = itertools.count()
        self.recorded = 0
        """How many windows ended."""
        self._unsaved: set[int] = set()
        self._failures = 0
        self.reason = "schedule"
        """The reason of the next window."""
        self.why: str | None = None
        """What made the recorder choose the steps of the next window; None if it didn't."""
        self.options: Mapping[str, Any] = {}
        """The profiler's options in the next window."""
        self.saved: list[Path] = []
        """The saved files, oldest first."""
        self.saved_snapshots: list[Path] = []
        """The saved memory snapshots, oldest first."""
        self.last_outcome: Mapping[str, Any] | None = None
        """The newest outcome of a window."""
        if self._destination.traces_to_keep != self._destination.keep:
            _LOG.warning("keep=0 without a remote would lose every trace: the newest one stays.")

    def resolve(self, *, is_late: bool = False, timeout_s: float = 0.0) -> None:
        """Resolve rank and run while torch.distributed is available: it may be gone when the last window is saved.

        Another thread looks at the logdir, which may be on a disk that hangs.

        Args:
            is_late: Whether to assume that a process without a group will never be in one.
            timeout_s: How long to wait for that thread; the first time, a moment at least.
        """
        if self._rank_and_folder is not None:
            return
        with self._error_log.catch("The ranks couldn't agree on a run"):
            if self._rank_info is None and is_distributed():
                self._rank_info = current_rank_info()
            if self._rank_info is None and not is_late:
                return
            if self._run.is_resolved(timeout_s if self._run.has_begun else max(timeout_s, _MOMENT_S)):
                self._rank_and_folder = (self._rank_info or current_rank_info(), self._run.logdir / self._run.name)
                self._describe(state=RECORDING)
                _LOG.debug("Recording %s into %s.", *self._rank_and_folder)
                self._warn_of_folder(self._run.problem and f"can't be written: {self._run.problem}")
            elif time.monotonic() - self._started_s > _LATE_S:
                self._warn_of_folder(f"hasn't answered for {time.monotonic() - self._started_s:.0f} s")

    def _warn_of_folder(self, problem: str) -> None:
        """Say once, when the recording begins, that no trace can be written now; empty if one can."""
        if problem and not self._has_warned and self.selection.is_selected:
            self._has_warned = True
            _LOG.warning("The logdir %s %s. %s", self._run.logdir, problem, _RECOVERS)

    def rank_and_folder(self, *, is_late: bool = False) -> tuple[RankInfo, Path] | None:
        """Return this process's ranks and the run's folder; None while they may still change or aren't resolved.

        Args:
            is_late: Whether to assume that a process without a group will never be in one.
        """
        self.resolve(is_late=is_late)
        return self._rank_and_folder

    @property
    def known_rank_and_folder(self) -> tuple[RankInfo, Path] | None:
        """The same as far as it is resolved, for other threads."""
        return self._rank_and_folder

    def settle(self) -> bool:
        """Resolve rank and run at the end of the training; return whether the run's folder answers.

        If it doesn't, the run has its name without the number of the attempt: the writer process may reach it later.
        """
        self.resolve(is_late=True, timeout_s=_END_S)
        if self._rank_and_folder is None:
            self._has_given_up = True
            self._warn_of_folder("doesn't answer")
            self._run.give_up()
            self.resolve(is_late=True)
        return not self._has_given_up

    @property
    def attempt(self) -> str:
        """The attempt's token, common to its processes; empty before it is resolved."""
        return self._run.token

    @property
    def doubt(self) -> str | None:
        """Why it isn't certain that the attempt's processes belong to one job; None if it is."""
        return None if self._run.is_certain else DOUBT

    def trace_id(self, window: str) -> str:
        """Return the same window id on all ranks, in the form of torch's own, without communication.

        Before the run is resolved, each process has a different id.

        Args:
            window: Identifies the window within this attempt, the same on all ranks: its first step.
        """
        rank_and_folder = self._rank_and_folder
        unique = uuid.uuid4() if rank_and_folder is None else uuid.uuid5(uuid.NAMESPACE_OID, f"{self.attempt}/{window}")
        return f"{unique.int:032X}"

    def begin_window(self, step: int, options: Mapping[str, Any], ranks: Collection[int] | None = None) -> None:
        """Record that a window begins.

        Args:
            step: Its first step.
            options: The profiler's options.
            ranks: The ranks that a request names; None for the selected ones.
        """
        self.options, self._window_ranks, self._has_begun = options, ranks, True
        self._window_start = (step, time.time_ns())
        if self._rank_and_folder is not None:
            with self._error_log.catch("The start of a window couldn't be reported"):
                self._describe(recording_since_step=step)

    @property
    def is_excluded(self) -> bool:
        """Whether the window began before this rank turned out not to be selected, and no request names it."""
        return self._window_ranks is None and not self.selection.is_selected

    def share(self, descriptor: int | None) -> None:
        """Let the writer process read the ring of this process's last minutes, if there is one; see `output.ring`."""
        self._client.ring = descriptor

    def note_end_signal(self, signal: str) -> None:
        """Report that the process doesn't react to a signal that should end it. Any thread may call it."""
        if self._rank_and_folder is not None:
            self._describe(reason=signal)

    def skip_window(self, step: int, problem: str) -> None:
        """Report that a window that should have begun about a step isn't recorded."""
        self._failures += 1
        self._skipped = [*self._skipped, {"step": step, "problem": problem}][-_MOST_LEFT_OUT:]
        if self._rank_and_folder is not None:
            with self._error_log.catch("A skipped window couldn't be reported"):
                self._describe()

    @property
    def is_pending(self) -> bool:
        """Whether the outcome of a window is still open."""
        return bool(self._unsent) or self._client.is_pending

    def program_events_file(self, job: Job) -> Path:
        """Return the file of the program's own events of a window that isn't a trace yet."""
        return self._client.spool.program_events_file(job.number)

    @property
    def lost_count(self) -> int:
        """How many recordings are known to be lost."""
        return self._failures + len(self._unsaved)

    def poll(self) -> None:
        """Receive the outcomes of windows; to be called periodically."""
        if self._unsent:
            self._send_windows()
        if self._client.is_pending:
            with self._error_log.catch("The outcome of a window is unknown"):
                self._client.poll()

    def save(
        self,
        export: Callable[[str], object],
        steps_completed: int,
        *,
        is_whole: bool,
        is_complete: bool,
        values: Mapping[str, Any] | None = None,
        details: Mapping[str, Any] | None = None,
        program_events: Mapping[str, Any] | None = None,
        on_exported: Callable[[Job], None] | None = None,
    ) -> None:
        """Save the window that ends now.

        Args:
            export: Writes the profiler's recording into a file.
            steps_completed: How many steps the training has completed.
            is_whole: Whether the window ends with a complete step.
            is_complete: Whether the window ends as planned.
            values: More variables for the file's name.
            details: More metadata of the trace; see `RecordingFacts`.
            program_events: From `EventLog.window_events`, with the program's top-level keys as `metadata`.
            on_exported: Called when the profiler's file is written or lost, before a trace is made of it.
        """
        self._failures += 1  # until the writer process has it, which reports its outcome
        with self._error_log.catch("A recording was lost"):
            window = self._window(steps_completed, is_whole=is_whole, is_complete=is_complete)
            job = self._job(window)
            self.resolve(is_late=True, timeout_s=0.0 if self._unsent else _SAVE_S)
            try:
                self._export(export, job, program_events)
            except (SaveError, OSError, RuntimeError, ValueError) as error:  # kineto raises RuntimeError
                job.lost = str(error)
            facts = _WindowFacts(window, self.options, self._window_ranks, details or {}, values or {})
            if self._rank_and_folder is not None:
                self._complete(job, facts, *self._rank_and_folder)
            if on_exported is not None:
                on_exported(job)
            self._unsent.append((job, facts))
            self._send_windows()

    def _job(self, window: Window) -> Job:
        """Return the job of a window, without what depends on the run."""
        self.recorded += 1
        number = self.next_job_number()
        return Job(
            number=number,
            raw=str(self._client.spool.raw_file(number)),
            folder="",
            file="",
            metadata={},
            is_partial=not window.is_complete,
            **self.job_options(),
        )

    def next_job_number(self) -> int:
        """Return the number of a new job; any thread may call this."""
        return next(self._job_numbers)

    def job_options(self) -> dict[str, Any]:
        """Return the options of jobs that are the same for all."""
        return {"overwrite": self._destination.overwrite, "keep": self._destination.traces_to_keep}

    @property
    def spool(self) -> Spool:
        """The jobs of this process.

        Raises:
            OSError: Its folder can't be created.
        """
        return self._client.spool

    def expect(self, job: Job) -> None:
        """Expect the outcome of a memory snapshot that is in the spool."""
        self._client.expect(job)

    def _complete(self, job: Job, facts: _WindowFacts, rank_info: RankInfo, folder: Path) -> None:
        """Give a job its folder, names and metadata."""
        window, ranks = facts.window, facts.ranks
        ranks = self.selection.selected_ranks(rank_info) if ranks is None else sorted(ranks)
        recording = RecordingFacts(
            run=self._run.name,
            rank_info=rank_info,
            window=window,
            options=facts.options,
            details={**facts.details, "ranks": ranks},
            **self._facts,
        )
        values = {"batch": window.steps_completed, **facts.values}
        file, remote = self.file_and_url(values)
        if file in self._files:  # the next window ended in its first step: it is the beginning of that one
            file, remote = self.file_and_url({**values, "batch": window.steps_completed + 1})
        self._files.add(file)
        job.folder, job.file, job.remote, job.metadata = str(folder), file, remote, recording.to_json()

    def _send_windows(self) -> None:
        """Send the writer process the windows that wait for the run's folder, if it is resolved."""
        self.resolve(is_late=True)
        while self._rank_and_folder is not None and self._unsent:
            job, facts = self._unsent.popleft()
            with self._error_log.catch("A recording was lost"):
                if not job.file:
                    self._complete(job, facts, *self._rank_and_folder)
                self._describe(state=RECORDING, recording_since_step=None)
                self._client.put(job)
                self._failures -= 1

    def file_and_url(self, progress: Mapping[str, Any]) -> tuple[str, str | None]:
        """Return a trace's name in the run's folder and the URL of its copy, once the run is resolved.

        Args:
            progress: The variables that depend on the training's progress.
        """
        destination, rank_info = self._destination, self._rank_info or current_rank_info()
        values = {**progress, **rank_values(rank_info, self._run.name, local_world_size())}
        file = format_name(destination.file, values).lstrip("/")
        if rank_info.world_size > 1 and "rank" not in variables(destination.file):
            head, slash, tail = file.rpartition("/")
            file = f"{head}{slash}rank{rank_info.global_rank}.{tail}"  # ranks would replace each other's files
        if destination.remote_file is not None:
            return file, format_name(destination.remote_file, values)
        if destination.remote is not None:
            return file, object_url(self._remote_folder(values), file)
        return file, None

    def _remote_folder(self, values: Mapping[str, Any]) -> str:
        return object_url(format_name(str(self._destination.remote), values), self._run.name)

    def scratch(self, largest_bytes: int) -> Path:
        """Return a folder with room for a raw file: on the machine's own disk, else next to the traces.

        Args:
            largest_bytes: The size of the largest such file so far.

        Raises:
            SaveError: Neither has room.
            OSError: The disks don't allow it.
        """
        needed_bytes = max(_LEAST_ROOM_BYTES, largest_bytes * 5 // 4)
        own_folder = self._client.spool.folder
        if shutil.disk_usage(own_folder).free >= needed_bytes:
            return own_folder
        if self._rank_and_folder is None:
            raise SaveError(
                f"{own_folder} has no room for its {needed_bytes >> 20} MiB, and the run's folder doesn't answer"
            )
        other = self._client.spool.make_in_run(self._rank_and_folder[1])
        if shutil.disk_usage(other).free >= needed_bytes:
            return other
        raise SaveError(f"neither {own_folder} nor {other} has room for its {needed_bytes >> 20} MiB")

    def _export(self, export: Callable[[str], object], job: Job, program_events: Mapping[str, Any] | None) -> None:
        raw = self.scratch(self._largest_bytes) / Path(job.raw).name
        job.raw = str(raw)
        export(job.raw)
        check_raw(raw)
        self._largest_bytes = max(self._largest_bytes, raw.stat().st_size)
        if program_events is not None:
            write_json(self._client.spool.program_events_file(job.number), program_events)

    def _describe(self, **news: Any) -> None:
        """Send the facts about this process to the writer process."""
        if not self.selection.is_selected and not self._has_begun:
            return
        rank_info = self._rank_info or current_rank_info()
        facts = {
            "ranks": self.selection.selected_ranks(rank_info),
            "folder": str(self._run.logdir / self._run.name),
            "version": __version__,
            "run": self._run.name,
            "attempt": self._run.token,
            "doubt": self.doubt,
            **asdict(rank_info),
            **process_facts(),
            **self._facts,
            "options": self.options,
            "argv": redacted_arguments(sys.argv),
            "started_ns": self._started_ns,
            "left_out": self._skipped,
            "folder_problem": self._run.problem,
        }
        if self._destination.remote is not None:
            values = rank_values(rank_info, self._run.name, local_world_size())
            facts["remote"] = object_url(self._remote_folder(values), NAME)
        self._client.describe({**facts, **news})

    def _on_outcome(self, window: Mapping[str, Any]) -> None:
        """Handle the outcome of a window or a memory snapshot."""
        problem, upload = window.get("problem"), window.get("upload") or {}
        if window.get("kind") != SNAPSHOT:
            self.last_outcome = window
        if window["state"] in (LOST, KEPT):
            self._unsaved.add(window["window"])
        else:
            self._unsaved.discard(window["window"])
        if window["state"] == LOST:
            self._error_log.note(f"A recording was lost: {window['file']} wasn't written: {problem}.")
        elif window["state"] == KEPT:
            advice = f"The raw recording stays in {window['raw']}; `kinetoscope recover` tries again."
            self._error_log.note(f"{window['file']} wasn't written: {problem}. {advice}")
        else:
            self._add_saved(Path(window["path"]), window)
            if problem:
                _LOG.warning("%s: %s.", window["path"], problem)
            if upload.get("state") == "failed":
                _LOG.warning("%s", upload["problem"])

    def _add_saved(self, path: Path, window: Mapping[str, Any]) -> None:
        if window.get("kind") == SNAPSHOT:
            self._add_saved_snapshot(path, str(window.get("reason")))
            return
        if path in self.saved:
            return
        self.saved.append(path)
        _LOG.info("Saved %s.", path)
        if self._on_saved is not None:
            with self._error_log.catch("on_saved failed"):
                self._on_saved(path, window)

    def _add_saved_snapshot(self, path: Path, reason: str) -> None:
        if path in self.saved_snapshots:
            return
        self.saved_snapshots.append(path)
        if reason == OUT_OF_MEMORY:
            _LOG.warning("An allocation failed. `kinetoscope summary %s` says why.", path)
        else:
            _LOG.info("Saved %s.", path)

    def _window(self, steps_completed: int, *, is_whole: bool, is_complete: bool) -> Window:
        first, started_ns = self._window_start
        return Window(
            window=self.recorded,
            step_first=first,
            step_last=max(first or 0, steps_completed - is_whole) if first is not None or steps_completed else None,
            is_last_step_whole=is_whole,
            steps_completed=steps_completed,
            reason=self.reason,
            why=self.why,
            is_complete=is_complete,
            started_ns=started_ns,
            ended_ns=time.time_ns(),
        )

    def end(self, **news: Any) -> None:
        """Report the end, once: there will be no more windows.

        Args:
            news: The manifest's entries about the process's end.
        """
        with self._error_log.catch("The end couldn't be reported"):
            if not self._is_ended:
                self._is_ended = True
                self.settle()
                self._send_windows()
                self._describe(state=ENDED, recording_since_step=None, **news)

    def close(self, timeout_s: float | None = None) -> None:
        """Wait for unfinished writes, at most `timeout_s`, by default `CLOSE_S` or `SIGNAL_S`."""
        self.end()
        with self._error_log.catch("Waiting for unfinished writes failed"):
            default_s = SIGNAL_S if self.reason.startswith("sig") else CLOSE_S
            left = self._client.close(default_s if timeout_s is None else timeout_s)
            if left:
                what = "1 trace is" if left == 1 else f"{left} traces are"
                _LOG.warning("%s still being written, by a process that outlives this one.", what)
            if self.saved and self._rank_and_folder is not None and self._rank_and_folder[0].global_rank == 0:
                say_next_command(len(self.saved), self._run.logdir, self._rank_and_folder[1])
