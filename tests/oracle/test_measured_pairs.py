"""What-if against the truth: a part of a step is left out, and the step was timed without it (`samples/h100_pairs`).

The graph predicts what its absence saves from the recording of the step with it. What it can't know, and misses: that
kernels of two streams share a device; that freed memory makes the device idle. The range of a saving has nine of ten of
the measured ones in it, also if the error that it counts on is estimated on one half of the pairs and held on the other.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

from kinetoscope_tb.advice import saving_range as saving_range_module
from kinetoscope_tb.advice.candidates import partly, percents
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.advice.model import Candidate
from kinetoscope_tb.advice.saving_range import OF_DEVICES, OF_HOST, Change, saving_range
from kinetoscope_tb.critical_path.explanation import Explanation, path_explanation, share_on_device
from kinetoscope_tb.reader import read

FOLDER = Path(__file__).parents[2] / "samples" / "h100_pairs"
MEASURED = {row["recording"]: row for row in json.loads((FOLDER / "measured.json").read_text())}
MOST_MEDIAN_ERROR = {"device": 0.02, "short": 0.085}  # measured 2026-11-28: 0.014 and 0.084; to be lowered
LARGE = 0.2  # of the step: a saving that no prediction may miss; short steps vary by a tenth
UNKNOWN_TO_THE_GRAPH = {"device-side_stream_matmul", "short-side_stream_matmul"}


def error(recording):
    """By which share the predicted length of the step without the part is too long."""
    measured = MEASURED[recording]
    return (measured["with_ms"] - predicted_ms(recording)) / measured["without_ms"] - 1


def predicted_ms(recording):
    """What the part's absence saves of a step."""
    return float(np.mean(simulated(recording).counted)) / 1e6


@dataclass(frozen=True)
class Simulated:
    """What the absence of some of a part saves of each step, and what is known of the recording."""

    facts: Facts
    part: Candidate
    explanation: Explanation
    saved: np.ndarray
    share: float

    @property
    def counted(self):
        return self.saved[slice(*self.explanation.what_if.counted_range)]

    def range_ms(self, of_devices=OF_DEVICES, of_host=OF_HOST):
        with patch.multiple(saving_range_module, OF_DEVICES=of_devices, OF_HOST=of_host):
            low_ns, high_ns = saving_range(self.facts, Change.of(self.part, self.saved, self.share), self.explanation)
        return low_ns / 1e6, high_ns / 1e6


@cache
def simulated(recording, percent=100):
    trace = read(FOLDER / f"{recording}.pt.trace.json.gz")
    part, explanation = extra_part(trace), path_explanation(trace)
    saved = explanation.what_if.saved_together(partly(percents(part, explanation), percent))
    return Simulated(Facts(trace), part, explanation, saved, percent / 100)


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


COVERAGE = 0.9
PARTS = sorted({recording.partition("-")[2] for recording in MEASURED})
HALVES = [[f"{size}-{part}" for size in MOST_MEDIAN_ERROR for part in PARTS[start::2]] for start in (0, 1)]


def saved_ms(recording):
    """What the part's absence really saves; a negative time is noise."""
    return max(0.0, MEASURED[recording]["with_ms"] - MEASURED[recording]["without_ms"])


def coverage(recordings, **errors):
    """Of how many recordings the saving lies in its range."""
    ranges = {recording: simulated(recording).range_ms(**errors) for recording in recordings}
    return np.mean([low <= saved_ms(recording) <= high for recording, (low, high) in ranges.items()])


def is_mostly_on_device(recording):
    return share_on_device(simulated(recording).facts.trace) > 0.5


def needed_error(recording):
    """The share of the step by which the range must be wider to have the saving in it."""
    low, high = simulated(recording).range_ms(0, 0)
    missing_ms = max(0.0, low - saved_ms(recording), saved_ms(recording) - high)
    return missing_ms / simulated(recording).facts.usual_step_ns * 1e6


def test_nine_of_ten_measured_savings_lie_in_their_range():
    assert coverage(MEASURED) >= COVERAGE


def test_errors_that_one_half_of_the_pairs_gives_are_enough_for_the_other_half():
    covered = []
    for known, other in (HALVES, HALVES[::-1]):
        of_devices, of_host = (
            np.quantile([needed_error(recording) for recording in known if is_mostly_on_device(recording) == kind], 0.9)
            for kind in (True, False)
        )
        covered.append(coverage(other, of_devices=of_devices, of_host=of_host))
        assert coverage(other) >= COVERAGE  # with the errors of all
    assert np.mean(covered) >= COVERAGE  # measured 2026-11-28: 0.94 and 0.88


@pytest.mark.parametrize("recording", MEASURED)
def test_a_range_holds_the_saving_and_ends_above_that_of_half_a_part(recording):
    whole, half = simulated(recording), simulated(recording, 50)
    low, high = whole.range_ms()
    assert 0 <= low <= whole.facts.mean(whole.saved) / 1e6 <= high
    assert half.range_ms()[1] <= high


def test_a_range_is_much_smaller_than_the_step():
    """A range from nothing to the whole step would have every saving in it."""
    widths = []
    for recording in MEASURED:
        low, high = simulated(recording).range_ms()
        widths.append((high - low) / simulated(recording).facts.usual_step_ns * 1e6)
    assert np.median(widths) <= 0.12  # measured 2026-11-28: 0.116
