"""The critical path by culprit: what each step waited for, by cause, with the names of what takes most of it.

Host code outside of operators and calls has the name of the Python function or the annotation that ran. What is small
in all steps is a row for each cause.
"""

from __future__ import annotations

import polars as pl

from ...arrays.gather import fraction
from ...critical_path.culprits import WHO, path_culprits
from ...critical_path.explanation import path_explanation
from ...critical_path.row_events import ALL, culprit_events
from ...measures.recording.contents import has_work
from ...measures.time.step_subset import counted_steps
from ...pictures import PartBars
from ...table import COUNT, DURATION, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, is_equal
from ...view import Slices, Tab, View

_ALL_STEPS = -1
MOST_STEPS = 16
MOST_NAMES = 12
LEAST = 0.03  # of a step: a culprit that takes less of each step has no row


class CriticalPathCulprits(Table):
    """What the critical path of each step consists of, by cause and culprit; the rows add up to the step.

    Of more than 16 steps, the longest.
    """

    key, weight = ("step", "cause", "name", "source"), "path_ns"
    picture = PartBars(
        "step", "cause", "mean_ns", "name", "culprits", "source", is_of_steps=True, what_if="critical_path"
    )

    step = Column(TEXT, "Number of the step; `all`: all complete steps.")
    cause = Column(
        TEXT,
        "On a device: `kernel`, `communication`, `copy` (and fills), `launch` (from the call's end to the event's "
        "start), `between_kernels` (the next one was ready, and began at once), `unexplained` (an event began over "
        "20 µs after all known waits). On the host: `data` loading, `communication`, `launch` (runtime calls), "
        "`host_sync` (calls that wait for the device, copies of pageable memory to the host among them), "
        "`host_operator`, `host_python`, `host_annotation`, and `host_unrecorded`. `not_shown`: not in the "
        "recording, a device may have run work that wasn't recorded.",
        shown_as="time part",
    )
    name = Column(
        TEXT,
        "Kernel, copy, operator, runtime call, Python function or annotation; for launch latency and waits the row "
        "that waited; missing in the row of a cause's culprits that take less than 3 % of each step, or aren't among "
        "the twelve largest.",
    )
    path_ns = Column(DURATION, "Time on the path.")
    mean_ns = Column(DURATION, "The same per step.")
    path_frac = Column(FRACTION, "The same / the steps.")
    culprits = Column(COUNT, "How many culprits it stands for.", adds_up=False)
    source = Column(
        TEXT,
        "File, line and name of the innermost Python function around it that belongs to the program, not to a library; "
        "of the innermost function with a file if none does. Of code outside of operators and calls only; missing "
        "without with_stack=True.",
        shown_as="place",
    )


def critical_path_culprits(trace: Trace) -> pl.DataFrame:
    """Steps in order; within each, the causes and their culprits with most time in all steps first."""
    sums = _sums(trace)
    rows = sums.with_columns(pl.when("has_row").then(column) for column in ("name", "source"))
    table = rows.group_by("place", *WHO).agg(pl.col("path_ns").sum(), culprits=pl.len().cast(pl.Int64))
    steps = _steps(trace)
    total = pl.col("path_ns").sum()
    table = table.join(steps, "place").with_columns(
        of_cause=total.over("cause"),
        of_name=total.over(WHO),
        mean_ns=(pl.col("path_ns") / pl.col("steps")).round().cast(pl.Int64),
        path_frac=fraction(pl.col("path_ns"), pl.col("length")),
    )
    by = ["place", "of_cause", "cause", pl.col("name").is_null(), "of_name", "name", "source"]
    table = table.sort(by, descending=[False, True, False, False, True, False, False])
    return CriticalPathCulprits.of(table.select(CriticalPathCulprits.schema().names()))


def _steps(trace: Trace) -> pl.DataFrame:
    """The bars: all complete steps together, if there are several, and the longest of them, in order.

    Columns: `place` (a row of the steps, or _ALL_STEPS), `step`, `length` in ns, and `steps`: how many it stands for.
    """
    rows = pl.Series(counted_steps(trace), dtype=pl.Int32)
    frame = trace.steps[rows].select(
        place=rows, step="name", length=pl.col("end_ns") - pl.col("start_ns"), steps=pl.lit(1, pl.Int64)
    )
    longest = frame.top_k(MOST_STEPS, by="length").sort("place")
    if frame.height < 2:
        return longest
    whole = frame.select(
        place=pl.lit(_ALL_STEPS, pl.Int32),
        step=pl.lit(ALL),
        length=pl.col("length").sum(),
        steps=pl.len().cast(pl.Int64),
    )
    return pl.concat([whole, longest])


def _sums(trace: Trace) -> pl.DataFrame:
    """The time of each culprit in each bar: `place`, WHO, `path_ns`, and `has_row`: whether it has a row of its own."""
    culprits, steps = path_culprits(trace), _steps(trace)
    lengths = trace.steps.select(length=pl.col("end_ns") - pl.col("start_ns")).with_row_index("step")
    times = culprits.pieces.select("step", "culprit", "dur_ns").filter(pl.col("step").is_in(counted_steps(trace)))
    times = times.group_by("step", "culprit").agg(path_ns=pl.col("dur_ns").sum())
    share = pl.col("path_ns") / pl.col("length")
    most = times.join(lengths.cast({"step": pl.Int32}), "step").group_by("culprit").agg(share=share.max())
    largest = most.filter(pl.col("share") >= LEAST).top_k(MOST_NAMES, by=["share", -pl.col("culprit")])
    times = times.rename({"step": "place"})
    sums = pl.concat([times.with_columns(place=pl.lit(_ALL_STEPS, pl.Int32)), times])
    sums = sums.group_by("place", "culprit").agg(pl.col("path_ns").sum())
    sums = sums.join(steps.select("place"), "place", "semi").join(culprits.with_numbers(), "culprit")
    return sums.with_columns(has_row=pl.col("culprit").is_in(largest["culprit"].implode()))


def events_of_row(trace: Trace, key: Key) -> Events:
    """What runs in the pieces of a row."""
    sums, has_name = _sums(trace), key["name"] is not None
    is_of_row = is_equal(sums["cause"], key["cause"]) & (sums["has_row"] == has_name).to_numpy()
    if has_name:
        source = is_equal(sums["source"].fill_null(""), key["source"] or "")
        is_of_row &= is_equal(sums["name"], key["name"]) & source
    bars = _steps(trace)
    bar_rows = bars["place"].filter(pl.Series(is_equal(bars["step"], key["step"]))).to_list()
    steps = counted_steps(trace) if _ALL_STEPS in bar_rows else bar_rows
    return culprit_events(trace, sums["culprit"].filter(pl.Series(is_of_row)).unique(), steps)


VIEW = View(
    critical_path_culprits,
    table=CriticalPathCulprits,
    title="Critical path by culprit",
    entry="Critical path",
    place=Tab("This rank"),
    within="recording",
    shares=path_explanation,
    needs=has_work,
    hint="The trace has no activity. Pass ProfilerActivity.CPU and the device's activity to the profiler.",
    slices=Slices(events_of_row, "An event may be several segments of the path."),
    shows_path=True,
    reads_captures=True,
)
