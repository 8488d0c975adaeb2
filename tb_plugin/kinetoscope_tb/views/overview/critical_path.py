"""Critical path: what made a step as long as it was, and what would make it shorter.

The path leads back from the end of a step to its start, always to what was waited for longest: a row waits for its
launch, for the row before it on its stream, or for another stream; the host waits for the device, for a batch, for the
backward pass. The stretches of the path follow each other without a gap, so they add up to the step exactly. What isn't
on the path was hidden behind it: making that faster alone saves nothing.

What would be saved is reckoned within limits. The same work is done in the same order. A collective counts with its
waiting for other workers, so it gets faster only if they come sooner too. Waits that a recording doesn't tell, of
streams for events and of threads for each other, follow from the times. A step is this worker's own.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from ...arrays.gather import fraction
from ...critical_path import CLASSES, ON_DEVICE, Explanation, path_events
from ...measures.time.step_subset import counted_steps
from ...pictures import Bars
from ...table import COUNT, DURATION, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...view import Slices, View


class CriticalPath(Table):
    """One row is one part of what the path consists of, in all complete steps or in one; they add up to the steps."""

    key, weight = ("step", "part"), "path_ns"
    picture = Bars(("path_ns",))

    step = Column(TEXT, "Number of the step; `all`: all complete steps.")
    part = Column(
        TEXT,
        "On a device: computation (kernels), device communication, copy and fill; launch latency (from the call's end "
        "to the row's start); between rows (the next row was ready, and began at once); unexplained wait (a row began "
        "over 20 µs after all it is known to wait for). On the host: data loading; host communication; operator; "
        "runtime call; synchronisation (a call returns after the device has finished); between operators (Python, or "
        "waiting).",
    )
    place = Column(TEXT, "device, or host.")
    path_ns = Column(DURATION, "How much of the path is this.")
    mean_ns = Column(DURATION, "The same per step.")
    path_frac = Column(FRACTION, "The same / the steps.")
    stretches = Column(COUNT, "In how many stretches.")
    saved_ns = Column(
        DURATION,
        "How much shorter a step would be if all of it, on the path or not, took `percent` less time. Each step is "
        "recomputed, so what becomes critical instead counts. At most that share of its time on the path.",
    )
    saved_frac = Column(FRACTION, "The same / the step.")


def critical_path(
    trace: Trace,
    *,
    per: Literal["recording", "step"] = "recording",
    percent: Literal["50", "10", "20", "30", "75", "90", "100"] = "50",
) -> pl.DataFrame:
    """Steps in order; of each the part first that the path has most of."""
    explanation = Explanation.of(trace)
    what_if, path = explanation.what_if, explanation.path
    saved = np.array([what_if.saved_by_part(part, int(percent)) for part in range(len(CLASSES))])
    spent, stretches = np.zeros_like(saved), np.zeros_like(saved)
    at = path["class"].to_numpy(), path["step"].to_numpy()
    np.add.at(spent, at, (path["end_ns"] - path["start_ns"]).to_numpy())
    np.add.at(stretches, at, 1)
    saved = np.minimum(saved, spent * int(percent) // 100)  # what of a delay lies before the step can't be shortened
    groups = [("all", counted_steps(trace))]
    if per == "step":
        groups = [(name, [step]) for step, name in enumerate(trace.steps["name"])]
    found = [
        _parts(name, what_if.recorded[steps], *(values[:, steps] for values in (spent, stretches, saved)))
        for name, steps in groups
    ]
    return CriticalPath.of(pl.concat(found).select(CriticalPath.schema().names()))


def _parts(name: str, lengths: np.ndarray, spent: np.ndarray, stretches: np.ndarray, saved: np.ndarray) -> pl.DataFrame:
    """The rows of some steps, from a line per part and a column per step."""
    whole = int(lengths.sum())
    rows = pl.DataFrame(
        {
            "part": CLASSES,
            "place": ["device" if part in ON_DEVICE else "host" for part in range(len(CLASSES))],
            "path_ns": spent.sum(axis=1),
            "stretches": stretches.sum(axis=1),
            "saved": saved.sum(axis=1),
        }
    )
    return (
        rows.filter((pl.col("path_ns") > 0) | (pl.col("saved") > 0))
        .sort("path_ns", "saved", descending=True, maintain_order=True)
        .with_columns(
            step=pl.lit(name),
            mean_ns=(pl.col("path_ns") / lengths.size).round().cast(pl.Int64),
            path_frac=fraction(pl.col("path_ns"), pl.lit(whole)),
            saved_ns=(pl.col("saved") / lengths.size).round().cast(pl.Int64),
            saved_frac=fraction(pl.col("saved"), pl.lit(whole)),
        )
    )


VIEW = View(
    critical_path,
    table=CriticalPath,
    title="Critical path",
    group="Overview",
    within="recording",
    shares=Explanation.of,
    needs="work",
    hint="Nothing was recorded that ran: pass ProfilerActivity.CPU, and that of the device, among the activities.",
    slices=Slices(path_events),
    shows_path=True,
)
