"""Critical path: what made a step as long as it was, and what would make it shorter.

The path leads back from the end of a step to its start, always along the longest wait: a row waits for its launch, for
the previous row on its stream, or for another stream; the host waits for the device, for a batch, for the backward
pass. The segments of the path follow each other without a gap, so they add up to the step exactly. Work that isn't on
the path is hidden behind it: making only that faster saves nothing, unless it holds back a later step.

Savings are estimates. The same work runs in the same order. A collective includes its wait for other workers, so it
gets faster only if they come earlier too. Waits that traces don't record, of streams for events and of threads for each
other, are inferred from the times. A step is this worker's own.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from ...advice.facts import LEAST_SHARE, Facts
from ...advice.model import Candidate
from ...advice.saving_range import Change, at_most, range_of_delays
from ...arrays.gather import fraction
from ...critical_path.classes import CLASSES, ON_DEVICE, row_classes
from ...critical_path.culprits import CAUSES, PARTS, WAITING, pieces_by_name, saved_by_part
from ...critical_path.explanation import path_explanation
from ...critical_path.row_events import ALL, path_events
from ...measures.recording.contents import has_work
from ...measures.recording.lost_launches import is_no_launch_known
from ...measures.time.step_subset import counted_steps
from ...pictures import Bars
from ...table import COUNT, DURATION, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...view import Part, Slices, View


class CriticalPath(Table):
    """What the critical path consists of, by part, in all complete steps or in one; the parts add up to the steps."""

    key, weight = ("step", "part"), "path_ns"
    picture = Bars(("path_ns",))

    step = Column(TEXT, "Number of the step; `all`: all complete steps.")
    part = Column(TEXT, "Cause, as in the critical path by culprit.", shown_as="time part")
    path_ns = Column(DURATION, "Time on the path.")
    mean_ns = Column(DURATION, "The same per step.")
    path_frac = Column(FRACTION, "The same / the steps.")
    segments = Column(
        COUNT, "Number of path segments with any of it; one may have several parts and names.", adds_up=False
    )
    saved_ns = Column(
        DURATION,
        "How much shorter a step would be if all of it, on the path or not, took `percent` less time. The steps are "
        "simulated one after the other, including paths that become critical instead, so work that is partly hidden in "
        "one step counts by what it delays in later ones. On average, no step gets shorter than the host takes to "
        "launch it: half of its recorded time, or what it takes without the profiler, where the recorder timed such "
        "steps: then all of this is about these. Missing for `unexplained` and `host_sync`: a wait is shorter if "
        "what it waits for is, or if the host doesn't wait; advice says what that saves. Missing also for `not_shown`: "
        "nobody knows what ran then; and for all where no recorded call launched device work.",
        title="Saved per step",
    )
    saved_frac = Column(FRACTION, "The same / the step, without the profiler where the recorder timed such steps.")
    saved_low_ns = Column(
        DURATION,
        "The least that it may be, as in `advice`: of the steps after warm-up. Missing for one step, and where all of "
        f"it saves less than {100 * LEAST_SHARE:.0f} % of the step, since timing the same step again may change more.",
        shown_as="bound",
        adds_up=False,
    )
    saved_high_ns = Column(DURATION, "The most that it may be, as there.", shown_as="bound", adds_up=False)


def critical_path(
    trace: Trace,
    *,
    per: Literal["recording", "step"] = "recording",
    percent: Literal["50", "10", "20", "30", "75", "90", "100"] = "50",
) -> pl.DataFrame:
    """Steps in order; within each, the most time on the path first."""
    what_if = path_explanation(trace).what_if
    pieces = pieces_by_name(trace).with_columns(part=pl.col("cause").to_physical())
    sums = pieces.group_by("part", "step").agg(pl.col("dur_ns").sum(), segments=pl.col("segment").n_unique())
    path_ns, counts = (np.zeros((len(PARTS), trace.steps.height), np.int64) for _ in range(2))
    at = sums["part"].to_numpy(), sums["step"].to_numpy()
    path_ns[at], counts[at] = sums["dur_ns"].to_numpy(), sums["segments"].to_numpy()
    is_known = not is_no_launch_known(trace)
    saved_ns = saved_by_part(trace, int(percent)) if is_known else np.zeros_like(path_ns)
    groups, bounds = [(ALL, counted_steps(trace))], pl.DataFrame({"part": PARTS}).with_columns(low=None, high=None)
    if per == "step":
        groups = [(name, [step]) for step, name in enumerate(trace.steps["name"])]
    elif is_known:
        bounds = _ranges(trace, int(percent))

    def whole_ns(steps: list[int]) -> tuple[int, int]:
        return int(what_if.recorded[steps].sum()), int(what_if.lengths[steps].sum())

    frames = [
        _parts(name, whole_ns(steps), bounds, *(values[:, steps] for values in (path_ns, counts, saved_ns)))
        for name, steps in groups
    ]
    table = pl.concat(frames).select(CriticalPath.schema().names())
    no_saving = {"saved_ns": pl.lit(None, pl.Int64), "saved_frac": pl.lit(None, pl.Float64)}
    return CriticalPath.of(table if is_known else table.with_columns(**no_saving))


def _parts(
    name: str,
    whole_ns: tuple[int, int],
    bounds: pl.DataFrame,
    path_ns: np.ndarray,
    counts: np.ndarray,
    saved_ns: np.ndarray,
) -> pl.DataFrame:
    """The rows of some steps, from arrays [part, step].

    Args:
        name: Of these steps.
        whole_ns: How long they are: as recorded, and without what recording costs.
        bounds: The least and the most that each part may save.
        path_ns: Time on the path.
        counts: Segments of it.
        saved_ns: What is saved.
    """
    steps = path_ns.shape[1]
    rows = bounds.with_columns(
        path_ns=path_ns.sum(axis=1),
        segments=counts.sum(axis=1),
        saved=saved_ns.sum(axis=1),
    )
    return (
        rows.filter((pl.col("path_ns") > 0) | (pl.col("saved") > 0))
        .sort("path_ns", "saved", descending=True, maintain_order=True)
        .with_columns(saved=pl.when(~pl.col("part").is_in(WAITING)).then("saved"))
        .with_columns(
            step=pl.lit(name),
            mean_ns=(pl.col("path_ns") / steps).round().cast(pl.Int64),
            path_frac=fraction(pl.col("path_ns"), pl.lit(whole_ns[0])),
            saved_ns=(pl.col("saved") / steps).round().cast(pl.Int64),
            saved_frac=fraction(pl.col("saved"), pl.lit(whole_ns[1])),
        )
        .with_columns(
            saved_low_ns=pl.when(pl.col("low").is_not_null()).then(pl.min_horizontal("low", "saved_ns")),
            saved_high_ns=pl.when(pl.col("high").is_not_null()).then(pl.max_horizontal("high", "saved_ns")),
        )
    )


def _ranges(trace: Trace, percent: int) -> pl.DataFrame:
    """The `low` and the `high` end of what each `part` may save, in ns; null where it is a wait, or saves little."""
    facts = Facts(trace)
    saved_ns, most_saved_ns = (saved_by_part(trace, less) for less in (percent, 100))
    classes = row_classes(trace)
    rows: list[tuple[str, int | None, int | None]] = []
    for number, part in enumerate(PARTS):
        if part in WAITING or facts.mean(most_saved_ns[number]) < LEAST_SHARE * facts.usual_step_ns:
            rows.append((part, None, None))
            continue
        candidate = _candidate(part, classes)
        changes = Change.of(candidate, saved_ns[number], percent / 100), Change.of(candidate, most_saved_ns[number])
        bounds = (range_of_delays(facts, change) for change in changes)
        rows.append((part, *at_most(*bounds)))
    return pl.DataFrame(rows, schema={"part": pl.String, "low": pl.Int64, "high": pl.Int64}, orient="row")


def _candidate(part: str, classes: np.ndarray) -> Candidate:
    """The time that a part is; `classes` are those of the rows of device_events."""
    own = [number for number, cause in enumerate(CAUSES) if cause == part]
    is_of_devices = bool(own) and all(number in ON_DEVICE for number in own)
    rows = np.flatnonzero(np.isin(classes, own)) if is_of_devices else None
    return Candidate(part, tuple(CLASSES[number] for number in own), rows)


VIEW = View(
    critical_path,
    table=CriticalPath,
    title="Critical path by part",
    entry="Critical path",
    place=Part("critical_path_culprits"),
    within="recording",
    shares=path_explanation,
    needs=has_work,
    hint="The trace has no activity. Pass ProfilerActivity.CPU and the device's activity to the profiler.",
    slices=Slices(path_events, "An event may be several segments of the path."),
    shows_path=True,
)
