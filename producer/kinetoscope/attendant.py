"""What attends a recording and is not a part of it: its sidecar, requests to it, and signals that would end it."""

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

from . import __version__
from .errors import UsageError
from .events import COUNTER, INSTANT
from .hang import Hang
from .identity import default_store, is_distributed
from .plans import FolderBoard, StoreBoard, board_key
from .requests import WORK, taken
from .rescue import Rescue, SignalHandler, request_signal
from .sidecar import Sidecar
from .triggers import Triggers
from .unanswered import UnansweredSignals
from .watch import Task, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from .events import Event
    from .identity import Place
    from .losses import Losses
    from .plans import Board, Plan
    from .progress import Step
    from .requests import Request
    from .saving import Saving

_LOG = logging.getLogger("kinetoscope")

_count = itertools.count()

_WHY_NO_SIGNAL = "the process ignores it, or this isn't the main thread, which alone may install handlers"


class Attendant:
    """Attends one Tracer. Once made, nothing in it raises, but for what a signal's earlier handler raises.

    Args:
        saving: Knows the run's folder and the process's rank.
        losses: Takes what goes wrong.
        listens: Whether to take requests.
        signal: The signal that asks for a window, by name or number; None for none.
        rescues: Whether to save before a signal ends the process, and to keep a sidecar.
        slow_step: A step that takes so many times the usual asks for a window; None for none.
        open_markers: Returns the labels of the markers that are open now.
        began: Returns which step is under way, and when it began by the monotonic clock in ns.

    Raises:
        UsageError: A signal that can't ask for a window.
    """

    def __init__(
        self,
        saving: Saving,
        losses: Losses,
        *,
        listens: bool,
        signal: str | int | None,
        rescues: bool,
        slow_step: float | None,
        open_markers: Callable[[], list[str]],
        began: Callable[[], tuple[int, int]],
    ) -> None:
        if signal is not None and not listens:
            raise UsageError(f"signal={signal!r}: this Tracer takes no requests, it was told requests=False.")
        self._saving, self._losses, self._listens, self._rescues = saving, losses, listens, rescues
        self._has_sidecar = listens or rescues
        self._sidecar = Sidecar({"version": __version__, "listens": listens}, open_markers)
        self._triggers = Triggers(_Job(saving), self._sidecar.note, slow_step)
        self._rescue: Rescue | None = None
        self._signal = SignalHandler(None if signal is None else request_signal(signal), self._signalled)
        self._hang = Hang(self._sidecar.note, began, lambda: self._triggers.pace.median_ns)
        self._unanswered = UnansweredSignals(self._is_deaf_to)
        self._watch: Watch | None = None
        self._step_start_ns = 0
        self._took = self._triggers.pace.took if slow_step is None else self._triggers.took
        self.takers: list[Callable[[Step], None]] = [self._sidecar.take] if self._has_sidecar else []
        """What takes each complete step; at best no function of Python's, whose way through the caches is long."""
        self.told_to_end: str | None = None
        """The signal after which nothing more shall be recorded; the program ends when it sees fit."""

    def begin(self, save: Callable[[str], None]) -> None:
        """Be there from now on.

        Args:
            save: Stops the recording and saves it.
        """
        self.step_begins()
        with self._losses.kept_away("The recording isn't attended"):
            tasks = []
            if self._has_sidecar:
                tasks.append(Task("Writing the recording's sidecar", self._sidecar.write, 0.0))
                tasks.append(Task("Looking for a step that hangs", self._hang.look, 5.0))
            if self._listens:
                if self._signal.number is not None and not self._signal.install():
                    _LOG.warning("Signal %d asks for no window: %s.", self._signal.number, _WHY_NO_SIGNAL)
                tasks.append(Task("Looking for requests", self._triggers.poll, 1.0))
            if self._rescues:
                self._rescue = Rescue(save, self._tell_to_end)
                self._rescue.begin()
                self._unanswered.begin()
                tasks.append(Task("Looking for signals that nobody answers", self._unanswered.look, 0.5))
            if tasks:
                self._watch = Watch(tasks)
                self._watch.begin()
        self._open()

    def end(self, reason: str) -> None:
        """The recording is over; there is a rescue until `leave`."""
        self._signal.remove()
        if self._watch is not None:
            self._watch.end()
        self._unanswered.end()
        try:
            self.look()  # a training that ends in its first step says so, too
            self._sidecar.close(reason)
        except OSError as error:
            _LOG.debug("The recording's sidecar couldn't be closed: %s", error)

    def leave(self) -> None:
        """All is said, and signals do what they did before."""
        if self._rescue is not None:
            self._rescue.end()

    def held(self) -> AbstractContextManager[None]:
        """Keep signals away from what the block does."""
        return nullcontext() if self._rescue is None else self._rescue.held()

    def _tell_to_end(self, reason: str) -> None:
        self.told_to_end = reason

    def stepped(self, number: int, dur_ns: int, samples: int | None, tokens: int | None, *, is_idle: bool) -> None:
        """A step is complete.

        Args:
            number: Which one.
            dur_ns: How long after the one before.
            samples: How many it held, if the program says so.
            tokens: The same.
            is_idle: Whether no profiler ran in it.
        """
        start, now = self._step_start_ns, time.time_ns()
        self._step_start_ns = now
        step = ("s", number, start, now, dur_ns, samples, tokens)
        for take in self.takers:
            take(step)
        if is_idle:
            self._took(now - start)
        else:
            self._triggers.pace.profiled_ns = now - start

    def look(self) -> None:
        """Begin the sidecar if that wasn't possible before; to be called between steps now and then, and at the end."""
        if not self._sidecar.is_open:
            self._open(is_late=True)

    def step_begins(self) -> None:
        """The next step begins now, not with the end of the last one: what lies between is the recording's own time."""
        self._step_start_ns = time.time_ns()

    def action(self, step: int, scheduled: ProfilerAction) -> ProfilerAction:
        """Return what to do during `step`: what the schedule says, unless somebody asked for something else.

        A rank that isn't chosen does nothing unless it was asked by its number.
        """
        action = self._triggers.action(step, scheduled) if self._listens else scheduled
        if action is ProfilerAction.NONE or self._saving.selection.is_here or self.plan is not None:
            return action
        return ProfilerAction.NONE

    @property
    def plan(self) -> Plan | None:
        """The plan on whose behalf the profiler runs."""
        return self._triggers.running

    @property
    def reason(self) -> str:
        """Why the profiler runs, if it does."""
        plan = self.plan
        return "schedule" if plan is None else plan.request.reason

    def window_begins(self, step: int, options: Mapping[str, Any]) -> None:
        """A window begins now, with a step; `options` is what the profiler was told to record."""
        request = None if self.plan is None else self.plan.request
        self._saving.begin_window(step, options, None if request is None else request.ranks)
        self.note("recording", {"step": step, "request": None if request is None else request.id})

    def gives_way(self, step: int, *, is_recording: bool) -> None:
        """The program starts a profiler of its own in a step, in a window or in the warm-up before it."""
        if not is_recording:
            self.left_out(step, "The program started a profiler of its own before a window, which is left out.")
            return
        self._saving.reason = "another profiler"
        self._losses.note("The program started a profiler of its own inside a window, which ended there.")

    def left_out(self, step: int, problem: str) -> None:
        """A window that was to begin about a step doesn't."""
        self._losses.note(problem)
        self._saving.left_out(step, problem)
        self.note("left out", {"step": step, "problem": problem})

    def request(self, request: Request) -> None:
        """Ask for a window; any thread may.

        Raises:
            UsageError: Nobody listens.
        """
        if not self._listens:
            raise UsageError("This Tracer takes no requests: it was told requests=False.")
        self._triggers.request(request)

    def annotated(self, event: Event) -> None:
        """Take what the program says of itself. A tensor on a device isn't read for this: nobody waits for it here."""
        if not self._has_sidecar or not (self._saving.selection.is_here or self.plan is not None):
            return
        name, tid, start_ns = event.name, event.tid, event.start_ns
        if event.kind == COUNTER:
            values = event.args or {}
            numbers = {key: value if isinstance(value, int | float) else None for key, value in values.items()}
            self._sidecar.add("c", name, start_ns, numbers)
        elif event.kind == INSTANT:
            self._sidecar.add("i", name, tid, start_ns)
        else:
            self._sidecar.add("m", name, tid, start_ns, event.dur_ns)

    def note(self, kind: str, value: object) -> None:
        """Take a piece of news for those who watch the job."""
        if self._has_sidecar:
            self._sidecar.note(kind, value)

    def _is_deaf_to(self, signal: str) -> None:
        """The process was told to end and doesn't: say so, and where it stands, before it is killed."""
        self._hang.tell()
        self._saving.told_to_end(signal)

    def _signalled(self, handler: SignalHandler) -> None:
        self._triggers.signal()
        if handler.has_program_s_own:
            handler.pass_on()

    def _open(self, *, is_late: bool = False) -> None:
        """Begin the sidecar as soon as run and rank are settled."""
        settled = self._saving.settled(is_late=is_late)
        if not self._has_sidecar or settled is None:
            return
        place, folder = settled
        facts = {**_facts(place, folder), "records": self._saving.selection.is_here, "doubt": self._saving.doubt}
        self._sidecar.open(folder, place.global_rank, facts)


def _facts(place: Place, folder: Path) -> dict[str, Any]:
    return {
        "run": folder.name,
        "global_rank": place.global_rank,
        "world_size": place.world_size,
        "local_rank": place.local_rank,
        "node_rank": place.node_rank,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "tid": threading.get_native_id(),
    }


class _Job:
    """The process among the others, for its triggers."""

    def __init__(self, saving: Saving) -> None:
        self._saving = saving
        # Each process of a job makes its Tracers in the same order: the n-th of each belong together.
        self._number = next(_count)
        self._folder_board: FolderBoard | None = None
        self._store_board: StoreBoard | None = None

    def rank_and_size(self) -> tuple[int, int] | None:
        settled = self._saving.settled()
        return None if settled is None else (settled[0].global_rank, settled[0].world_size)

    def is_chosen(self) -> bool:
        return self._saving.selection.is_here

    def boards(self) -> list[Board]:
        settled = self._saving.settled()
        if settled is None:
            return []
        key = board_key(self._saving.attempt, self._number)
        if self._folder_board is None:
            self._folder_board = FolderBoard(settled[1] / WORK / "plans", key)
        if not is_distributed():
            self._store_board = None  # its server may be gone
        elif self._store_board is None:
            store = default_store()
            if store is not None:
                self._store_board = StoreBoard(store, f"kinetoscope/plan/{key}")
        return [board for board in (self._folder_board, self._store_board) if board is not None]

    def asked(self) -> Request | None:
        settled = self._saving.settled()
        if settled is None or settled[0].local_rank:
            return None  # one process of each machine looks
        return taken(settled[1])
