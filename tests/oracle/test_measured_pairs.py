"""What-if against the truth: a part of a step is left out, and the step was timed without it (`samples/h100_pairs`).

The graph predicts what its absence saves from the recording of the step with it. What it can't know, and misses: that
kernels of two streams share a device; that freed memory makes the device idle.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from kinetoscope_tb.advice.model import Candidate
from kinetoscope_tb.advice.savings import percents
from kinetoscope_tb.critical_path.explanation import path_explanation
from kinetoscope_tb.reader import read

FOLDER = Path(__file__).parents[2] / "samples" / "h100_pairs"
MEASURED = {row["recording"]: row for row in json.loads((FOLDER / "measured.json").read_text())}
MOST_MEDIAN_ERROR = {"device": 0.02, "short": 0.085}  # measured 2026-11-27: 0.017 and 0.078; to be lowered
LARGE = 0.2  # of the step: a saving that no prediction may miss; short steps vary by a tenth
UNKNOWN_TO_THE_GRAPH = {"device-side_stream_matmul", "short-side_stream_matmul"}


def error(recording):
    """By which share the predicted length of the step without the part is too long."""
    measured = MEASURED[recording]
    return (measured["with_ms"] - predicted_ms(recording)) / measured["without_ms"] - 1


@cache
def predicted_ms(recording):
    """What the part's absence saves of a step."""
    trace = read(FOLDER / f"{recording}.pt.trace.json.gz")
    explanation = path_explanation(trace)
    saved = explanation.what_if.saved_together(percents(extra_part(trace), explanation))
    return saved[slice(*explanation.what_if.counted_range)].mean() / 1e6


def extra_part(trace):
    """All that the part does and launches."""
    ranges = trace.host_events.filter(pl.col("name").cast(pl.String) == "extra_part")
    start = ranges["start_ns"].to_numpy()
    end, threads = start + ranges["dur_ns"].to_numpy(), tuple(ranges["thread"].unique())
    call, thread = (trace.launches[name].to_numpy() for name in ("start_ns", "thread"))
    place = np.searchsorted(start, call, "right") - 1
    is_inside = (place >= 0) & (call < end[place]) & np.isin(thread, threads)
    launch = trace.device_events["launch"].to_numpy()
    rows = np.flatnonzero((launch >= 0) & is_inside[np.maximum(launch, 0)])
    return Candidate("the part", rows=rows, spans=(start, end), threads=threads)


@pytest.mark.parametrize("size", MOST_MEDIAN_ERROR)
def test_the_step_without_a_part_is_as_long_as_predicted(size):
    recordings = [recording for recording in MEASURED if recording.startswith(size)]
    assert len(recordings) == 16
    assert np.median([abs(error(recording)) for recording in recordings]) <= MOST_MEDIAN_ERROR[size]


def test_a_large_saving_is_never_missed():
    large = {name for name, row in MEASURED.items() if row["without_ms"] < (1 - LARGE) * row["with_ms"]}
    assert len(large) >= 12
    missed = {name for name in large if predicted_ms(name) < 0.05 * MEASURED[name]["with_ms"]}
    assert missed == UNKNOWN_TO_THE_GRAPH & large
