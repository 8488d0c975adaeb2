"""Supervises a recording: its journal, requests, hangs, and signals that would end it."""

from __future__ import annotations

import itertools
import logging
import os
import socket
import threading
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from torch.profiler import ProfilerAction

from .._version import __version__
from ..atomic_write import replace_file
from ..errors import UsageError
from ..job.job_store import default_store
from ..job.rank_info import is_distributed
from ..journal.journal import JournalWriter
from ..output.ring import Ring, ring_file
from ..path_below import PathBelow
from ..scheduling.consensus import FolderLog, StoreLog, log_key
from ..scheduling.request import WORK, take_request
from ..scheduling.trigger import Triggers
from ..signals.background_tasks import BackgroundTasks, Task
from ..signals.hang_detector import HangDetector
from ..signals.signal_guard import SignalGuard, SignalHandler, request_signal
from ..signals.stuck_signals import StuckSignals
from .budgeted_windows import BudgetedWindows
from .hang_reports import HangReports
from .minutes_sampler import MinutesSampler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..job.rank_info import RankInfo
    from ..output.trace_writer import TraceWriter
    from ..progress import Step
    from ..scheduling.budget import Budget
    from ..scheduling.consensus import ConsensusLog, Plan
    from ..scheduling.request import Request
    from .recording import Recording

_LOG = logging.getLogger("kinetoscope")

_SAMPLE_S = 2.0
_JOURNAL_S, _SOON_S = 1.0, 0.2

_count = itertools.count()

_WHY_NO_SIGNAL = "the process ignores it, or this isn't the main thread, which alone may install handlers"


class Supervisor:
    """Supervises one Tracer. After construction nothing in it raises, except exceptions of a signal's earlier handler.

    Args:
        recording: The recording.
        accepts_requests: Whether to accept requests.
        signal: The signal that requests a window, by name or number; None for none.
        guards_signals: Whether to save before a signal ends the process, and to write a journal.
        slow_step: A step that takes this many times the usual requests a window; None for none.

    Raises:
        UsageError: A signal that can't request a window.
    """

    def __init__(
        self,
        recording: Recording,
        *,
        accepts_requests: bool,
        signal: str | int | None,
        guards_signals: bool,
        slow_step: float | None,
    ) -> None:
        if signal is not None and not accepts_requests:
            raise UsageError(f"signal={signal!r}: this Tracer accepts no requests, since it has requests=False.")
        self._trace_writer, self._error_log = recording.trace_writer, recording.error_log
        self._memory = recording.memory
        log, current_step = recording.annotations.log, recording.counter.current_step
        self._accepts_requests, self._guards_signals = accepts_requests, guards_signals
        self._has_journal = accepts_requests or guards_signals
        header = {"version": __version__, "listens": accepts_requests}
        self._journal = JournalWriter(header, log.open_names, self._has_events)
        log.listener = self._journal.take_event if self._has_journal else None
        self.triggers = Triggers(_JobView(self._trace_writer, current_step), self._journal.note, slow_step)
        """The requests for windows."""
        self._guard: SignalGuard | None = None
        self._signal = SignalHandler(None if signal is None else request_signal(signal), self._on_request_signal)
        self._ring = Ring()
        self._hang_reports = HangReports(recording, self._usual_ns, self._journal.note, self._save_ring)
        self._sampler = MinutesSampler(self._ring, log, self._is_stepping)
        self._hang_detector = HangDetector(self._hang_reports, current_step, self._usual_ns)
        self._journal_task = Task("Writing the journal", self._write_journal, _JOURNAL_S)
        self._stuck_signals = StuckSignals(self._on_stuck_signal)
        self._background: BackgroundTasks | None = None
        self._training_tid = 0
        self.step_start_ns = 0
        """When the current step began, in Unix time."""
        add_duration = self.triggers.pace.add_duration if slow_step is None else self.triggers.add_duration
        self.duration_consumers: list[Callable[[int], object]] = [add_duration]
        """The functions that get the duration of each step without a profiler; preferably implemented in C."""
        self._recording = recording
        self.budgeted_windows: BudgetedWindows | None = None
        """Requests windows within a budget; None without one."""
        self.step_consumers: list[Callable[[Step], None]] = []
        """The functions that get each complete step; preferably implemented in C, for less overhead."""
        if self._has_journal:
            self.step_consumers += [self._journal.take, self._ring.add_step]
            recording.trace_writer.share(self._ring.descriptor)
        self.end_signal: str | None = None
        """The signal after which nothing more is recorded, or why; `end_after_step` sets it."""

    def report_hangs(self, after_s: float | None) -> None:
        """Report where this rank is while a step lasts longer, in seconds; None for never. See `HangDetector`.

        Raises:
            UsageError: Not a positive number.
        """
        self._hang_detector.set_limit(after_s)

    def record_by_budget(self, budget: Budget) -> None:
        """Request windows within a budget.

        Raises:
            UsageError: The Tracer accepts no requests.
        """
        if not self._accepts_requests:
            raise UsageError("budget=…: a Tracer that chooses its windows needs requests=True.")
        self.budgeted_windows = BudgetedWindows(budget, self._recording, self.triggers.request)
        self.duration_consumers.append(self.budgeted_windows.add_duration)

    def _usual_ns(self) -> int | None:
        return self.triggers.pace.typical_ns

    def _is_stepping(self) -> bool:
        """Whether the current step lasts no longer than two usual ones."""
        usual_ns = self._usual_ns()
        return usual_ns is not None and time.time_ns() - self.step_start_ns <= 2 * usual_ns

    def begin(self, save: Callable[[str], None]) -> None:
        """Start.

        Args:
            save: Stops the recording and saves it.
        """
        self.begin_step()
        self._training_tid = threading.get_native_id()
        with self._error_log.catch("The recording isn't supervised"):
            tasks = []
            if self._has_journal:
                tasks.append(self._journal_task)
                tasks.append(Task("Sampling the machine", self._sampler.sample, _SAMPLE_S))
                if self._hang_detector.is_on:
                    tasks.append(Task("Looking for a step that hangs", self._look_for_hang, 1.0))
            if self._accepts_requests:
                if self._signal.number is not None and not self._signal.install():
                    _LOG.warning("Signal %d doesn't request a window: %s.", self._signal.number, _WHY_NO_SIGNAL)
                tasks.append(Task("Looking for requests", self.triggers.poll, 1.0))
            if self.budgeted_windows is not None:
                tasks.append(Task("Reading earlier attempts", self.budgeted_windows.read_earlier_attempts, 1.0))
            if self._memory.is_on:
                tasks.append(Task("Recording the history of allocations", self._memory.poll, 0.2))
            if self._guards_signals:
                self._guard = SignalGuard(save, self.end_after_step)
                self._guard.begin()
                self._stuck_signals.begin()
                tasks.append(Task("Looking for stuck signals", self._stuck_signals.check, 1.0))
            if tasks:
                self._background = BackgroundTasks(tasks)
                self._background.begin()
        self._open_journal()

    def _write_journal(self) -> None:
        rank_and_folder = self._trace_writer.known_rank_and_folder
        if rank_and_folder is not None and not self._journal.is_open:  # resolved by a window that is being saved
            self._open_journal_in(*rank_and_folder)
        hangs = self._hang_detector.has_reported_step  # before: a step that ends meanwhile is in the next lines
        self._journal.write()
        if not hangs:
            self._journal_task.every_s = _JOURNAL_S

    def _look_for_hang(self) -> None:
        """Report a step that hangs; from then on, the journal is to say soon that it ended after all."""
        self._hang_detector.check()
        if self._hang_detector.has_reported_step:
            self._journal_task.every_s = _SOON_S
            self._journal_task.due_s = 0.0

    def end(self, reason: str, *, is_good: bool, calls: Sequence[Sequence[Any]] = ()) -> None:
        """End the recording; signals are guarded until `uninstall`.

        Args:
            reason: Why it ends.
            is_good: Whether its last minutes are of no interest.
            calls: Where the program was, or where the exception was raised, the innermost first.
        """
        self._signal.remove()
        answers = self._background is None or self._background.end()
        self._stuck_signals.end()
        if not self._trace_writer.settle() or not answers:
            return  # the journal's folder hangs
        try:
            self.open_journal()  # also for a training that ends in its first step
            self._journal.close(reason)
            if not is_good:
                self._save_ring()
            if not is_good and self._hang_detector.is_on:
                self._hang_reports.write_end(calls)
        except OSError as error:
            _LOG.debug("The journal couldn't be closed: %s", error)

    def release(self) -> None:
        """Give back what its threads and the writer process used, once both have ended."""
        if self._has_journal:
            self.step_consumers.remove(self._ring.add_step)
        self._ring.close()

    def _save_ring(self) -> None:
        """Write the last minutes next to the journal.

        Raises:
            OSError: The run's folder doesn't allow it.
        """
        rank_and_folder, content = self._trace_writer.known_rank_and_folder, self._ring.content()
        if content and rank_and_folder is not None:
            replace_file(ring_file(rank_and_folder[1], rank_and_folder[0].global_rank), content)

    def uninstall(self) -> None:
        """Restore the signals' earlier handlers."""
        if self._guard is not None:
            self._guard.end()

    def hold_signals(self) -> AbstractContextManager[None]:
        """Defer signals until the end of the block."""
        return nullcontext() if self._guard is None else self._guard.hold()

    def end_after_step(self, reason: str) -> None:
        """Record nothing more after the current step; any thread, and a signal handler, may call this."""
        self.end_signal = reason
        self.triggers.idle_until = 0

    def idle_until(self, step: int) -> None:
        """Ask for no action of the steps before this one, unless something is requested, now or meanwhile."""
        self.triggers.idle_until = step
        if self.end_signal is not None or not self.triggers.is_quiet:
            self.triggers.idle_until = 0

    @property
    def signal_ns(self) -> int | None:
        """When a signal that should end the process came, in Unix time; None if none did, or it was handled at once."""
        return self._stuck_signals.first_ns

    def add_profiled_duration(self, dur_ns: int) -> None:
        """Add the duration of a step with a profiler."""
        self.triggers.pace.profiled_ns = dur_ns
        if self.budgeted_windows is not None:
            self.budgeted_windows.add_profiled_duration(dur_ns)

    def add_stop(self, dur_ns: int) -> None:
        """Add how long the training stood still while a window began, moved on, or ended."""
        if self.budgeted_windows is not None:
            self.budgeted_windows.add_stop(dur_ns)

    def open_journal(self) -> None:
        """Open the journal if that wasn't possible before; to be called periodically between steps, and at the end."""
        if not self._journal.is_open:
            self._open_journal(is_late=True)

    def begin_step(self) -> None:
        """Begin the next step now, not at the end of the last one: the time between is the recording's own."""
        self.step_start_ns = time.time_ns()

    def action(self, step: int, scheduled_action: ProfilerAction) -> ProfilerAction:
        """Return the action of `step`: a request's if there is one, else the schedule's.

        A rank that isn't selected does nothing unless a request names it.
        """
        action = self.triggers.action(step, scheduled_action) if self._accepts_requests else scheduled_action
        if action is ProfilerAction.NONE or self._trace_writer.selection.is_selected or self.plan is not None:
            return action
        return ProfilerAction.NONE

    @property
    def plan(self) -> Plan | None:
        """The plan for which the profiler runs."""
        return self.triggers.running_plan

    @property
    def reason(self) -> str:
        """Why the profiler runs, if it does."""
        plan = self.plan
        return "schedule" if plan is None else plan.request.reason

    @property
    def why(self) -> str | None:
        """What made the recorder choose the steps of the plan; None if it didn't."""
        plan = self.plan
        return None if plan is None else plan.request.why or None

    def begin_window(self, step: int, options: Mapping[str, Any]) -> None:
        """Record that a window begins now, with a step; `options` are the profiler's."""
        request = None if self.plan is None else self.plan.request
        self._trace_writer.begin_window(step, options, None if request is None else request.ranks)
        self.note("recording", {"step": step, "request": None if request is None else request.id})

    def on_other_profiler(self, step: int, *, is_recording: bool) -> None:
        """Record that the program starts its own profiler in a step, in a window or in the warm-up before it."""
        if not is_recording:
            self.skip_window(step, "The program started its own profiler before a window, which is left out.")
            return
        self._trace_writer.reason = "another profiler"
        self._error_log.note("The program started its own profiler inside a window, which ended there.")

    def skip_window(self, step: int, problem: str) -> None:
        """Record that a window that should begin about a step is skipped."""
        self._error_log.note(problem)
        self._trace_writer.skip_window(step, problem)
        self.note("left out", {"step": step, "problem": problem})

    def request(self, request: Request) -> None:
        """Request a window, from any thread.

        Raises:
            UsageError: The Tracer accepts no requests.
        """
        if not self._accepts_requests:
            raise UsageError("This Tracer accepts no requests: it has requests=False.")
        self.triggers.request(request)

    def _has_events(self) -> bool:
        """Whether the program's events belong in the journal: this process may record."""
        return self._trace_writer.selection.is_selected or self.plan is not None

    def note(self, kind: str, value: object) -> None:
        """Add a piece of news to the journal."""
        if self._has_journal:
            self._journal.note(kind, value)

    def _on_stuck_signal(self, signal: str) -> None:
        """Record that the process doesn't react to a signal, and where it hangs, before it is killed."""
        self._trace_writer.note_end_signal(signal)
        self._hang_detector.report_signal(signal)

    def _on_request_signal(self, handler: SignalHandler) -> None:
        self.triggers.signal()
        if handler.has_program_handler:
            handler.call_program_handler()

    def _open_journal(self, *, is_late: bool = False) -> None:
        """Open the journal as soon as run and rank are resolved."""
        rank_and_folder = self._trace_writer.rank_and_folder(is_late=is_late)
        if self._has_journal and rank_and_folder is not None:
            self._open_journal_in(*rank_and_folder)

    def _open_journal_in(self, rank_info: RankInfo, folder: Path) -> None:
        facts = {
            **_facts(rank_info, folder),
            "tid": self._training_tid,
            "records": self._trace_writer.selection.is_selected,
            "doubt": self._trace_writer.doubt,
        }
        self._journal.open(folder, rank_info.global_rank, facts)


def _facts(rank_info: RankInfo, folder: Path) -> dict[str, Any]:
    return {
        "run": folder.name,
        "global_rank": rank_info.global_rank,
        "world_size": rank_info.world_size,
        "local_rank": rank_info.local_rank,
        "node_rank": rank_info.node_rank,
        "host": socket.gethostname(),
        "pid": os.getpid(),
    }


class _JobView:
    """The process's place among the others, for its triggers."""

    def __init__(self, trace_writer: TraceWriter, current_step: Callable[[], tuple[int, int]]) -> None:
        self._trace_writer, self._current_step = trace_writer, current_step
        # Each process of a job creates its Tracers in the same order: the n-th of each belong together.
        self._number = next(_count)
        self._folder_log: FolderLog | None = None
        self._store_log: StoreLog | None = None

    def rank_and_size(self) -> tuple[int, int] | None:
        rank_and_folder = self._trace_writer.known_rank_and_folder
        return None if rank_and_folder is None else (rank_and_folder[0].global_rank, rank_and_folder[0].world_size)

    def current_step(self) -> int:
        return self._current_step()[0]

    def is_selected_rank(self) -> bool:
        return self._trace_writer.selection.is_selected

    def logs(self) -> list[ConsensusLog]:
        rank_and_folder = self._trace_writer.known_rank_and_folder
        if rank_and_folder is None:
            return []
        key = log_key(self._trace_writer.attempt, self._number)
        if self._folder_log is None:
            self._folder_log = FolderLog(PathBelow(rank_and_folder[1], WORK, "plans"), key)
        if not is_distributed():
            self._store_log = None  # its server may be gone
        elif self._store_log is None:
            store = default_store()
            if store is not None:
                self._store_log = StoreLog(store, f"kinetoscope/plan/{key}")
        return [log for log in (self._folder_log, self._store_log) if log is not None]

    def take_request(self) -> Request | None:
        rank_and_folder = self._trace_writer.known_rank_and_folder
        if rank_and_folder is None or rank_and_folder[0].local_rank:
            return None  # one process of each machine looks
        return take_request(rank_and_folder[1])
