"""Windows on request: a request becomes a plan of all ranks, and a plan becomes the profiler's actions.

Two threads use this. The background thread looks for requests and plans once a second; the training's thread gets the
action of each step, and only reads what the other thread has stored. No step waits for a file or a network.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections import deque
from typing import TYPE_CHECKING, Protocol

from torch.profiler import ProfilerAction

from ..errors import UsageError
from .consensus import Plan, first_step, plan_from
from .request import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from .consensus import ConsensusLog

_LOG = logging.getLogger("kinetoscope")

COOLDOWN_S = 600.0
_FLOOR_NS = 50_000_000
_LEAST_STEPS = 20
_MAX_DURATIONS = 101
_REFRESH = 16


class Pace:
    """The duration of a training's steps while no profiler slows them down.

    Args:
        slow_step: A step that takes this many times the median, and 50 ms longer, is slow; None for none.
    """

    def __init__(self, slow_step: float | None = None) -> None:
        if slow_step is not None and slow_step <= 1:
            raise UsageError(f"slow_step={slow_step!r}: how many times the usual a step must take, such as 3.")
        self._slow_step = slow_step
        self._durations: deque[int] = deque(maxlen=_MAX_DURATIONS)
        self._added = 0
        self._quiet_until = 0.0
        self._usual_ns: int | None = None
        self.add_duration = self._durations.append
        """Adds a step's duration if slow steps don't matter."""
        self.profiled_ns: int | None = None
        """The duration of the last step with a profiler."""

    def median_ns(self) -> int | None:
        """The usual duration of a step; None while it is unknown."""
        return int(statistics.median(self._durations)) if self._durations else None

    def to_json(self) -> dict[str, int] | None:
        """Return the usual duration and how many steps it is the median of, for the trace; None while it is unknown."""
        median_ns = self.median_ns()
        return None if median_ns is None else {"median_ns": median_ns, "steps": len(self._durations)}

    @property
    def typical_ns(self) -> int | None:
        """The approximate duration of a step: with the profiler, if it runs in all of them."""
        return self.median_ns() or self.profiled_ns

    def is_slow(self, dur_ns: int, now_s: float) -> bool:
        """Add a step's duration; return whether it is slow. After a slow step, none is slow for `COOLDOWN_S`."""
        is_slow = self._is_outlier(dur_ns) and now_s >= self._quiet_until
        if is_slow:
            self._quiet_until = now_s + COOLDOWN_S
        self._durations.append(dur_ns)
        self._added += 1
        if self._added <= _LEAST_STEPS or not self._added % _REFRESH:
            self._usual_ns = self.median_ns()
        return is_slow

    def _is_outlier(self, dur_ns: int) -> bool:
        usual_ns = self._usual_ns
        if self._slow_step is None or usual_ns is None or self._added < _LEAST_STEPS:
            return False
        return dur_ns > self._slow_step * usual_ns and dur_ns > usual_ns + _FLOOR_NS


class JobView(Protocol):
    """The part of a Tracer that knows its place among the other processes."""

    def rank_and_size(self) -> tuple[int, int] | None:
        """Return this process's rank and the world size; None while they are unknown."""

    def current_step(self) -> int:
        """Return the number of the current step."""

    def is_selected_rank(self) -> bool:
        """Return whether this process records if a request names no ranks."""

    def logs(self) -> list[ConsensusLog]:
        """Return the logs that all ranks read; a new plan goes to the last one."""

    def take_request(self) -> Request | None:
        """Remove and return a request file for the job.

        Raises:
            UsageError: It is invalid.
            OSError: The folder can't be read.
        """


class Triggers:
    """The requests and plans of one process.

    Args:
        job: The process's place among the others.
        note: Receives each decision, as kind and value, for the journal.
        slow_step: See `Pace`.
    """

    def __init__(self, job: JobView, note: Callable[[str, object], None], slow_step: float | None = None) -> None:
        self._job, self._note = job, note
        self.pace = Pace(slow_step)
        self._requests: deque[Request] = deque(maxlen=16)
        self._plan: Plan | None = None
        self._is_running = False
        self._number = 0
        self._is_signalled = False
        self._previous = ProfilerAction.NONE
        self._follows_window = self._skips_window = False
        self.idle_until = 0
        """No action has to be asked for in the steps before this one. What needs one sets it to 0, from any thread."""

    @property
    def running_plan(self) -> Plan | None:
        """The plan whose window is open on this rank."""
        return self._plan if self._is_running else None

    # Any thread

    @property
    def is_quiet(self) -> bool:
        """Whether there is no plan, no request, and no window to leave out: the schedule alone counts."""
        return self._plan is None and not self._requests and not self._skips_window

    def request(self, request: Request) -> None:
        """Request a window. If one is planned or open, it counts for this request too."""
        self._requests.append(request)
        self.idle_until = 0

    def signal(self) -> None:
        """Request a window from a signal handler, which may only set this flag."""
        self._is_signalled = True

    # The training's thread

    def add_duration(self, dur_ns: int) -> None:
        """Add the duration of a step without a profiler."""
        if self.pace.is_slow(dur_ns, time.monotonic()):
            _LOG.info("A step took %.3f s, the usual one %.3f s.", dur_ns / 1e9, (self.pace.median_ns() or 0) / 1e9)
            self.request(Request(reason="slow_step"))

    def action(self, step: int, scheduled_action: ProfilerAction) -> ProfilerAction:
        """Return the action of `step`: the plan's if there is one, else the schedule's.

        A window of the schedule has precedence; the plan moves behind it, on all ranks alike. If the schedule's next
        window follows directly, the plan replaces it, and the schedule continues with the one after that.
        """
        before, self._previous = self._previous, scheduled_action
        if self.is_quiet:
            return scheduled_action  # as in most steps of a training
        self._follows_window = before is ProfilerAction.RECORD_AND_SAVE
        action = self._planned_action(step, scheduled_action)
        if self._skips_window and not self._is_running:
            self._skips_window = not self._follows_window and scheduled_action is not ProfilerAction.NONE
        return ProfilerAction.NONE if self._skips_window and not self._is_running else action

    def _planned_action(self, step: int, scheduled_action: ProfilerAction) -> ProfilerAction:
        if self._plan is None:
            rank_size = self._job.rank_and_size() if self._requests else None
            if rank_size is not None and rank_size[1] == 1:
                self._adopt(Plan(first_step(self._requests[0], step, None, is_alone=True), self._requests[0]))
        plan = self._plan
        if plan is None or step < plan.begin:
            return scheduled_action
        if not self._is_running:
            return self._begin(plan, step, scheduled_action)
        return self._continue(plan, step, scheduled_action)

    def _begin(self, plan: Plan, step: int, scheduled_action: ProfilerAction) -> ProfilerAction:
        rank_size = self._job.rank_and_size()
        is_for_us = rank_size is None or plan.includes_rank(rank_size[0], is_selected_rank=self._job.is_selected_rank())
        if step >= plan.end or rank_size is None or not is_for_us:
            if is_for_us:
                _LOG.warning("The request for steps %d to %d came too late.", plan.first, plan.end - 1)
                self._note("missed", plan.request.id)
            self._end()
            return scheduled_action
        if scheduled_action is not ProfilerAction.NONE and not self._follows_window:
            self._plan = plan.with_begin(step + 1)
            return scheduled_action
        self._skips_window = scheduled_action is not ProfilerAction.NONE
        self._is_running = True
        return _action(plan, step)

    def _continue(self, plan: Plan, step: int, scheduled_action: ProfilerAction) -> ProfilerAction:
        if step < plan.end:
            return _action(plan, step)
        self._end()
        return scheduled_action

    def _end(self) -> None:
        self._is_running = False
        self._plan = None

    def _adopt(self, plan: Plan) -> None:
        self._requests.clear()
        _LOG.info("Recording %d steps from step %d on: %s.", plan.request.steps, plan.first, plan.request.reason)
        self._note("plan", plan.to_json())
        self._plan = plan
        self.idle_until = 0

    # The background thread

    def poll(self) -> None:
        """Look for requests and for plans.

        Raises:
            OSError: A folder can't be read.
            RuntimeError: The store can't be read.
        """
        if self._is_signalled:
            self._is_signalled = False
            self.request(Request(reason="signal"))
        rank_size = self._job.rank_and_size()
        if rank_size is None:
            return
        self._take_request()
        if self._plan is not None:
            self._requests.clear()
        elif rank_size[1] > 1:
            self._read_logs()
            usual_ns = self.pace.typical_ns
            if self._plan is None and self._requests and usual_ns is not None:
                self._propose(self._requests[0], usual_ns / 1e9)

    def _take_request(self) -> None:
        try:
            request = self._job.take_request()
        except UsageError as error:
            _LOG.warning("A request was left out: %s", error)
            self._note("refused", str(error))
        else:
            if request is not None:
                self.request(request)

    def _read_logs(self) -> None:
        for log in self._job.logs():
            text = log.read(self._number)
            if text is not None:
                self._number += 1
                self._follow(text)
                return

    def _propose(self, request: Request, step_s: float) -> None:
        logs = self._job.logs()
        if logs:
            plan = Plan(first_step(request, self._job.current_step(), step_s, is_alone=False), request)
            text = logs[-1].propose(self._number, plan.to_text())
            self._number += 1
            self._follow(text)

    def _follow(self, text: str) -> None:
        try:
            plan = plan_from(text)
        except UsageError as error:
            _LOG.warning("A plan was left out: %s", error)
        else:
            self._adopt(plan)


def _action(plan: Plan, step: int) -> ProfilerAction:
    if step < plan.first:
        return ProfilerAction.WARMUP
    return ProfilerAction.RECORD if step < plan.end - 1 else ProfilerAction.RECORD_AND_SAVE
