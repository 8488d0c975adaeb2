"""Steps that averages leave out since not all of them was recorded, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...names import text
from ...trace import Trace
from ...trace.steps import lacks_device_work, step_noun
from .lost_launches import silent_steps, work_launches

_MOST_LISTED = 4


@dataclass(frozen=True)
class LeftOutSteps:
    """Steps that averages leave out for one reason.

    Args:
        steps: Their numbers: rows of `steps`.
        words: Their names: `step 9`, `steps 12 to 15`.
        pronoun: `it` or `them`.
        reason: Why, as the end of a sentence that begins with these.
        remedy: How to record them whole.
    """

    steps: NDArray[np.intp]
    words: str
    pronoun: str
    reason: str
    remedy: str


def steps_without_work(trace: Trace) -> NDArray[np.bool_]:
    """Which steps averages leave out since they have no device work, or less than the steps before.

    None where no step counts: then averages are over all.
    """
    steps = trace.steps
    is_complete = steps["is_complete"].to_numpy()
    lack_work: NDArray[np.bool_] = ~is_complete & lacks_device_work(steps["device_rows"].to_numpy())
    return lack_work & is_complete.any() & (step_noun(steps) == "step")


def left_out_steps(trace: Trace) -> list[LeftOutSteps]:
    """The steps that averages leave out, by reason; an inference server's warm-up and the like aren't among them."""
    steps, lack_work = trace.steps, steps_without_work(trace)
    is_complete = steps["is_complete"].to_numpy()
    if not is_complete.any() or step_noun(steps) != "step":
        return []
    has_lone_work, launches_nothing = _has_lone_work(trace), _launches_nothing(trace)
    parts = (
        (lack_work & launches_nothing & ~has_lone_work, "{they} launched no device work that was recorded", ""),
        (
            lack_work & ~launches_nothing & ~has_lone_work,
            "device work of {them} isn't in the recording, or not all of it",
            "Let the device finish before the profiler stops, and record fewer steps at a time.",
        ),
        (
            lack_work & has_lone_work,
            "which device work is {theirs} isn't recorded",
            "Record fewer steps at a time, with the runtime calls that launch work.",
        ),
        (
            ~is_complete & ~lack_work,
            "the recording ended before {they} did",
            "Record one step more than is needed.",
        ),
    )
    return [_left_out(trace, np.flatnonzero(rows), reason, remedy) for rows, reason, remedy in parts if rows.any()]


def _launches_nothing(trace: Trace) -> NDArray[np.bool_]:
    """Which steps have no launch of work, though others have, and none that was lost: they may run on the processor."""
    step = trace.launches["step"].to_numpy()[work_launches(trace)]
    counts = np.bincount(step[step >= 0], minlength=trace.steps.height)
    launches_nothing: NDArray[np.bool_] = (counts == 0) & counts.any() & ~silent_steps(trace)
    return launches_nothing


def _has_lone_work(trace: Trace) -> NDArray[np.bool_]:
    """Whether device work that belongs to no step, since its launch isn't recorded, begins in or after each step."""
    device, start = trace.device_events, trace.steps["host_start_ns"].to_numpy()
    is_lone = ((device["launch"] == NONE) & (device["step"] == NONE)).to_numpy()
    lone = device["start_ns"].to_numpy()[is_lone]
    until = np.append(start[1:], np.iinfo(np.int64).max)
    return np.searchsorted(lone, until) > np.searchsorted(lone, start)


def _left_out(trace: Trace, rows: NDArray[np.intp], reason: str, remedy: str) -> LeftOutSteps:
    they, them, theirs = ("it", "it", "its") if rows.size == 1 else ("they", "them", "theirs")
    words = reason.format(they=they, them=them, theirs=theirs)
    return LeftOutSteps(rows, steps_in_words(trace, rows), them, words, remedy)


def steps_in_words(trace: Trace, rows: NDArray[np.intp]) -> str:
    """Some steps, at least one, by their numbers: `step 9`, `steps 3 and 7`, `steps 12 to 15`."""
    names = [trace.steps["name"][int(row)] for row in rows]
    if len(names) == 1:
        return f"step {names[0]}"
    if len(names) > 2 and rows[-1] - rows[0] == rows.size - 1:
        return f"steps {names[0]} to {names[-1]}"
    more = [f"{len(names) - _MOST_LISTED} more"] if len(names) > _MOST_LISTED else []
    return f"steps {text.enumeration([*names[:_MOST_LISTED], *more])}"
