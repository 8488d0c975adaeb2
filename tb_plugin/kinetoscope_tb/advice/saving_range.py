"""Within which bounds a saving lies, by what a recording of a few steps can't show.

steps      that save more or less than others: a confidence interval of the mean (Student's t, 0.9); where few longer
           steps have nearly all of it, for as many of these as were recorded, since only their number says how often
           they recur; where it grows with the steps, around its trend
recording  what it costs, where that isn't taken from the graph, may lie in what is saved: a lower bound
waits      calls that may wait for the device, though nothing recorded says so, may not wait: a lower bound
streams    kernels on a stream of their own share the device with those of other streams, which then would take less
           time: an upper bound
unrecorded what the same cause may take besides, of which nothing is recorded: an upper bound
time       the same step takes longer or less when it is timed again
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays.gather import gather
from ..arrays.intervals import Ints
from ..critical_path.classes import ON_DEVICE
from ..critical_path.explanation import Explanation, critical_stretches, share_on_device
from ..measures.recording.usual_step import timed_step
from ..trace import Trace
from .candidates import inferred_waits_ns, on_path
from .facts import Facts
from .model import Candidate
from .spread import growth

OF_DEVICES, OF_HOST = 0.03, 0.06
"""Of the critical path on devices and of the one on the host: how far a step is from itself when it is timed again.

Of the changes in `samples/h100_pairs` nine of ten lie within (`tests/oracle/test_measured_pairs.py`)."""
_QUANTILES = (6.31, 2.92, 2.35, 2.13, 2.02, 1.94, 1.89, 1.86, 1.83, 1.81, 1.80, 1.78, 1.77, 1.76, 1.75, 1.65)
"""0.95 of Student's t by degrees of freedom, from one on; the last one is that of many."""
_LONGER = 1.5
"""Times any other step: few steps that are so long do something else."""
_SLOWED = 0.5
"""Of the host's recorded time: so much may be recording, if nothing says what that costs."""


@dataclass(frozen=True)
class Change:
    """Some of the time of candidates that could be gone, all at once.

    Attributes:
        per_step: What each step saves by the simulation.
        shares: What could take less time, and how much of what it could take less is gone, 0 to 1.
    """

    per_step: Ints
    shares: tuple[tuple[Candidate, float], ...]

    @classmethod
    def of(cls, candidate: Candidate, per_step: Ints, share: float = 1.0) -> Change:
        """The change of one candidate."""
        return cls(per_step, ((candidate, share),))

    @property
    def share(self) -> float:
        """The most of any of them."""
        return max(share for _, share in self.shares)

    def sum(self, amount: Callable[[Candidate], float]) -> float:
        """An amount of all that is gone, at most: what two candidates share counts twice."""
        return sum(share * amount(candidate) for candidate, share in self.shares if share)


def saving_range(facts: Facts, change: Change, explanation: Explanation) -> tuple[int, int]:
    """The least and the most that it may save of the average step, in ns, where calls may wait for the candidate."""
    waits_ns = change.sum(lambda candidate: inferred_waits_ns(candidate, facts.trace, explanation))
    return _range(facts, change, waits_ns / facts.trace.steps.height)


def range_of_delays(facts: Facts, change: Change) -> tuple[int, int]:
    """The same where only the candidate's own delays are shorter, and all calls last as long as recorded."""
    return _range(facts, change, 0.0)


def at_most(bounds: tuple[int, int], whole: tuple[int, int]) -> tuple[int, int]:
    """The range of some of the candidates: neither end is above that of all of them."""
    return min(bounds[0], whole[0]), min(bounds[1], whole[1])


def _range(facts: Facts, change: Change, waits_ns: float) -> tuple[int, int]:
    """The range, in ns; `waits_ns` of the average step may be waits for what is gone.

    Nothing of a candidate saves nothing.
    """
    if not change.share:
        return 0, 0
    saved_ns = min(facts.mean(change.per_step), facts.usual_step_ns)
    error_ns = _error_of_mean(facts, change.per_step) + _error_ns(facts)
    less_ns = _recording_ns(facts, change, saved_ns) + waits_ns
    more_ns = change.sum(lambda candidate: _shared_ns(facts, candidate) + candidate.more_ns)
    most_ns = min(_most_ns(facts), round(saved_ns + error_ns + more_ns))
    return max(0, round(saved_ns - error_ns - less_ns)), max(saved_ns, most_ns)


def _most_ns(facts: Facts) -> int:
    """The length of the step; where devices catch up, recorded steps are shorter than the host takes for one."""
    steps = timed_step(facts.trace) if facts.has_device else None
    return max(facts.usual_step_ns, steps.host_ns if steps else 0)


def _error_of_mean(facts: Facts, per_step: Ints) -> float:
    """By how much the mean may be off, since other steps of the kind would save more or less; unknown of one step.

    Few steps that have nearly all of it, and are much longer than any other, are a kind of their own: what differs
    between kinds is no error. Nor is what grows from step to step, as do the steps.
    """
    values, lengths = (part[facts.is_counted].astype(np.float64) for part in (per_step, facts.length))
    spread, terms = facts.spread(per_step), [np.ones(values.size)]
    is_few = np.isin(np.arange(values.size), spread.steps)
    if spread.is_rare and lengths[is_few].min() >= _LONGER * lengths[~is_few].max():
        terms.append(is_few.astype(np.float64))
    elif any(growth(values)) and any(growth(lengths)):
        terms.append(np.arange(values.size, dtype=np.float64))
    free = values.size - len(terms)
    if free < 1:
        return 0.0
    fit = np.stack(terms, axis=1)
    rest = values - fit @ np.linalg.lstsq(fit, values, rcond=None)[0]
    quantile = _QUANTILES[min(free, len(_QUANTILES)) - 1]
    return float(quantile * np.sqrt((rest**2).sum() / free / values.size))


def _error_ns(facts: Facts) -> float:
    """By how much the average step is longer or shorter when it is timed again."""
    share = share_on_device(facts.trace)
    return float(facts.usual_step_ns * (OF_DEVICES * share + OF_HOST * (1 - share)))


def _recording_ns(facts: Facts, change: Change, saved_ns: int) -> float:
    """How much of what is saved may be what recording costs, as far as that isn't taken from the graph."""
    steps = timed_step(facts.trace)
    if steps is None:
        of_host = max(_share_of_host(candidate, facts.trace) for candidate, share in change.shares if share)
        return _SLOWED * of_host * saved_ns
    return 0.0 if steps.is_slowed else min(saved_ns, change.share * (facts.step_ns - steps.mean_ns(facts.step_ns)))


def _share_of_host(candidate: Candidate, trace: Trace) -> float:
    """Which part of a candidate's time on the critical path is the host's; all of it if none is on it."""
    if candidate.is_of_host:
        return 1.0
    lengths = critical_stretches(trace).lengths(on_path(candidate))
    return float(1 - lengths[list(ON_DEVICE)].sum() / lengths.sum()) if lengths.any() else 1.0


def _shared_ns(facts: Facts, candidate: Candidate) -> float:
    """How long a candidate's rows take per step on streams other than the one that has most rows of their device."""
    if candidate.rows is None or not candidate.rows.size:
        return 0.0
    rows = facts.trace.device_events.select("device", "stream", "step", "dur_ns")
    counts = rows.group_by("device", "stream").len().sort("len", "stream", descending=[True, False])
    main = counts.unique("device", keep="first", maintain_order=True)
    own = rows[candidate.rows].join(main, ["device", "stream"], "anti")
    counts_in = gather(facts.is_counted, own["step"].to_numpy(), missing=False)
    return float(candidate.mean_less * own["dur_ns"].to_numpy()[counts_in].sum() / facts.count)
