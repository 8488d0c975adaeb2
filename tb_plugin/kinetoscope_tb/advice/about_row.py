"""Which advice is about a row of a view."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import gather
from ..trace import Trace
from ..trace.row_filters import Events
from .model import Advice
from .trace_advice import TraceAdvice

_LEAST = 0.5  # of the device time of a row: with less, the advice is about other work


def advice_about(
    trace: Trace, findings: TraceAdvice, events: Events, is_named: Callable[[Advice], bool]
) -> list[Advice]:
    """The advice that names a row, or that is about most of the device time behind it, the largest first.

    Args:
        trace: The trace.
        findings: All advice.
        events: The events behind the row.
        is_named: Whether the row is among those that the advice's view and filter show.
    """
    work = _device_work(trace, events)
    in_step = gather(findings.is_counted, trace.device_events["step"].to_numpy()[work], missing=False)
    work = work[in_step]
    dur = np.maximum(trace.device_events["dur_ns"].to_numpy()[work], 0)

    def is_most(mask: NDArray[np.bool_]) -> bool:
        return bool(dur.sum() > 0 and dur[mask].sum() >= _LEAST * dur.sum())

    return [claim for claim in findings.advice if is_named(claim) or is_most(_work_of(trace, claim, work))]


def _device_work(trace: Trace, events: Events) -> NDArray[np.int64]:
    """The device work among the events, and that which they launched."""
    device = trace.device_events
    parts: Sequence[NDArray[np.integer]] = [
        events.get("device_events", np.empty(0, np.int64)),
        *(
            np.flatnonzero(np.isin(device[column].to_numpy(), rows[rows >= 0]))
            for frame, column in (("host_events", "op"), ("launches", "launch"))
            if (rows := events.get(frame)) is not None
        ),
    ]
    work = np.unique(np.concatenate(parts)).astype(np.int64)
    return work[work >= 0]


def _work_of(trace: Trace, advice: Advice, work: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of this work the advice is about."""
    device = trace.device_events
    if advice.kernels is not None:
        return np.isin(work, advice.kernels)
    if advice.rule == "communication":
        return device["is_communication"].to_numpy()[work]
    if advice.rule == "copies":
        return (device["kind"] == "memcpy").to_numpy()[work]
    return np.zeros(work.size, bool)
