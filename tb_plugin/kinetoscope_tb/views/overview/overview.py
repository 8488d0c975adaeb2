"""Overview: where the time of the average step went.

Averages cover the complete steps, or all steps if none is complete (health reports that).
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...measures.time.breakdown import breakdown
from ...table import DURATION, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...view import Tab, View


class Overview(Table):
    """Where the time of the average step went, by category; the last row, `Step`, is the step itself."""

    key, weight = ("category",), "mean_ns"

    category = Column(
        TEXT,
        "Category, as the columns of Steps define it; each instant counts for the first category in this order that is "
        "active. Communication includes calls on the host; advice about communication on devices doesn't.",
    )
    mean_ns = Column(DURATION, "Mean over the complete steps, warm-up included, rounded to the nanosecond.")
    share_frac = Column(FRACTION, "Mean / the mean length of a step.")
    stdev_ns = Column(DURATION, "Standard deviation over the complete steps (n − 1); missing if there is only one.")
    min_ns = Column(DURATION, "Minimum over the complete steps.")
    max_ns = Column(DURATION, "Maximum over the complete steps.")


def overview(trace: Trace) -> pl.DataFrame:
    """The categories from the first counted to the last, then the whole step."""
    parts = breakdown(trace)
    parts["Step"] = (trace.steps["end_ns"] - trace.steps["start_ns"]).to_numpy()
    complete = trace.steps["is_complete"].to_numpy()
    is_counted = complete if complete.any() else np.ones_like(complete)
    values = np.array(list(parts.values()))[:, is_counted]
    mean = values.mean(axis=1)
    spread = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.full(mean.size, np.nan)
    whole = mean[-1]
    return Overview.of(
        pl.DataFrame(
            {
                "category": list(parts),
                "mean_ns": np.rint(mean).astype(np.int64),
                "share_frac": mean / whole if whole else np.full(mean.size, np.nan),
                "stdev_ns": pl.Series(np.rint(spread)).fill_nan(None).cast(pl.Int64),
                "min_ns": values.min(axis=1),
                "max_ns": values.max(axis=1),
            }
        ).with_columns(pl.col("share_frac").fill_nan(None))
    )


VIEW = View(overview, table=Overview, title="Overview", entry="Overview", place=Tab("Summary"), within="windows")
