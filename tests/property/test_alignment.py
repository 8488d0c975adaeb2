"""Steps of real recordings aligned with variants of themselves, of which it is known which work is whose."""

from pathlib import Path

import numpy as np
import pytest

from kinetoscope_tb.reader import read
from support.derived_pairs import CHANGES, Base, by_alignment
from support.real_traces import FOLDER

SAMPLES = Path(__file__).parents[2] / "samples"
RECORDINGS = [
    SAMPLES / "h100" / "training" / "rank0.25.pt.trace.json.gz",
    SAMPLES / "h100" / "server" / "rank0.25.pt.trace.json.gz",
    FOLDER / "single" / "tracelens_mi300_bert-small.json.gz",
    FOLDER / "single" / "tracelens_h100_nsfw_image_detection.json.gz",
]


@pytest.fixture(scope="module")
def bases():
    return [Base.of(read(str(path))) for path in RECORDINGS]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_most_of_the_time_is_matched_right_and_hardly_any_wrong(bases, change):
    outcomes = []
    for base in bases:
        rows = list(change(base, base.rows(), np.random.default_rng(0)))
        outcome, is_exact = by_alignment(base, rows)
        assert is_exact
        outcomes.append(outcome)
    right = [outcome.right_ns / outcome.truth_ns for outcome in outcomes]
    wrong = [outcome.wrong_ns / outcome.total_ns for outcome in outcomes]
    assert np.mean(right) >= 0.95
    assert np.mean(wrong) <= 0.01
