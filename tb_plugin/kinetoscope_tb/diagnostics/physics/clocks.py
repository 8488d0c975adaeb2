"""The device's clock against the host's: rows before their launch, drifts, jumps, and a window cut out of running work.

Profilers convert device times to the host's clock. No row starts before the call that launched it began. An idle device
starts what is launched after a delay that the hardware sets, so the shortest of several such delays is the same
throughout a recording: if it isn't, a clock drifted or jumped.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...arrays.intervals import Ints
from ...names import text
from ...trace import Diagnostic
from ...trace.model import Fault
from . import limits
from .times import Times

_AGAIN = "Record again with a newer driver and profiler library."
_RUNNING = "Let the device finish before the profiler starts, or record one step more than is needed."


def diagnose(times: Times) -> Iterator[Diagnostic]:
    """What contradicts a common clock."""
    yield from _early(times)
    rows = _into_idle_device(times)
    yield from _drift(times, rows)
    yield from _late(times, rows)
    yield from _cut(times)


def _early(times: Times) -> Iterator[Diagnostic]:
    """Torch's validator: no kernel begins before the call that launched it."""
    lead = np.where(times.is_linked, times.called - times.start, 0)
    is_early = lead > 0
    if not is_early.any():
        return
    count, most, usual = int(is_early.sum()), int(lead.max()), float(np.median(lead[is_early]))
    fact = f"GPU events begin up to {text.time(most)} (usually {text.time(usual)}) before the call that launched them"
    n_linked = int(times.is_linked.sum())
    offset = int(np.percentile(lead[times.is_linked], 99))
    if most < limits.JITTER_NS:
        meaning = "This is within the error of converting the device's clock to the host's."
    elif count > limits.SYSTEMATIC * n_linked and count > 1:
        meaning = (
            f"That many aren't chance: the device's clock is at least {text.time(offset)} behind the host's. Durations "
            "are right; gaps between host and device are wrong by that offset."
        )
    else:
        meaning = "There are only a few: single times of host or device are wrong. Durations are right."
    fault = None
    if most > limits.CLOCK_ERROR_NS:
        alone = times.within_steps(times.start[is_early], times.called[is_early])
        affected_ns = times.moved_by(offset) if count > limits.SYSTEMATIC * n_linked else alone
        fault = Fault(f"{count} of {n_linked} {fact}", frozenset({"clock", "launches"}), _AGAIN, affected_ns)
    yield Diagnostic(
        "device_before_launch",
        count,
        f"{fact}. {meaning}",
        times.first_offset(is_early),
        level="note" if most < limits.JITTER_NS else "warning",
        fault=fault,
    )


def _into_idle_device(times: Times) -> NDArray[np.int64]:
    """The first rows of launches that began when their device had ended all before, in the order of these launches."""
    before = np.full(times.start.size, np.iinfo(np.int64).max)
    for own in times.devices:
        before[own[1:]] = np.maximum.accumulate(times.end[own])[:-1]
    is_idle = times.is_linked & (before < times.called)
    is_first = np.zeros(times.start.size, bool)
    is_first[np.unique(times.launch, return_index=True)[1]] = True
    rows = np.flatnonzero(is_idle & is_first)
    return rows[np.argsort(times.called[rows], kind="stable")]


def _drift(times: Times, rows: NDArray[np.int64]) -> Iterator[Diagnostic]:
    groups = rows.size // limits.DRIFT_ROWS
    if groups < 2:
        return
    delay = (times.start - times.called)[rows[: groups * limits.DRIFT_ROWS]]
    shortest: Ints = np.partition(delay.reshape(groups, limits.DRIFT_ROWS), 2, axis=1)[:, 2]  # one row says nothing
    drift = int(shortest.max() - shortest.min())
    if drift <= limits.DRIFT_NS:
        return
    fact = (
        f"The shortest delay from a launch to an idle device changes by {text.time(drift)} within the recording, from "
        f"{text.time(int(shortest.min()))} to {text.time(int(shortest.max()))}"
    )
    yield Diagnostic(
        "clock_drifts",
        rows.size,
        f"{fact}. The hardware sets that delay, so the clocks of host and device drift or jump. Durations are right; "
        f"gaps between host and device are wrong by up to that much. {_AGAIN}",
        fault=Fault(fact, frozenset({"clock"}), _AGAIN, times.moved_by(drift)),
    )


def _late(times: Times, rows: NDArray[np.int64]) -> Iterator[Diagnostic]:
    """Launches into an idle device that all begin late: the units of times differ, or a clock is off."""
    if rows.size < limits.FEW_ROWS:
        return
    least = float(np.percentile((times.start - times.called)[rows], 5))
    if least <= limits.LATENCY_NS:
        return
    fact = f"An idle device takes at least {text.time(least)} to begin what is launched, {rows.size} times"
    yield Diagnostic(
        "launch_latency_impossible",
        rows.size,
        f"{fact}. It takes microseconds: times of host and device are in different units, or the device's clock is "
        f"ahead by that much. {_AGAIN}",
        fault=Fault(fact, frozenset({"clock", "idle", "kernel_times", "steps"}), _AGAIN),
    )


def _cut(times: Times) -> Iterator[Diagnostic]:
    """Devices whose first row begins long after its launch, though nothing ran before it."""
    first = np.array([rows[0] for rows in times.devices], np.int64)
    first = first[times.is_linked[first]]
    delay = times.start[first] - times.returned[first]
    cut = first[delay > limits.CUT_NS]
    if not cut.size:
        return
    affected_ns = times.idle_within_steps(np.full(cut.size, times.steps[0].min(initial=0)), times.start[cut])
    share = times.share(affected_ns)
    late = text.time(int(delay.max()))
    fact = f"The first GPU event begins {late} after its launch, though no earlier one was recorded"
    yield Diagnostic(
        "starts_amid_work",
        cut.size,
        f"{fact}: until then, for {text.percent(share)} of the steps, the device may have been busy with work from "
        f"before the recording. {_RUNNING}",
        int(times.trace.device_events["offset"].to_numpy()[cut].min()),
        level="warning" if share > limits.NOTICEABLE else "note",
        fault=Fault(fact, frozenset({"idle", "steps"}), _RUNNING, affected_ns, is_not_shown=True),
    )
