"""Steps of real recordings aligned with variants of themselves, of which it is known which work is whose."""

from pathlib import Path

import numpy as np
import pytest

from kinetoscope_tb.compare.step_difference import step_difference
from kinetoscope_tb.reader import read
from support.derived_pairs import CHANGES, COMBINATIONS, Base, by_alignment, by_names
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


def outcomes_of(bases, change):
    """How right the variants of all recordings are aligned, whose terms add up."""
    for base in bases:
        rows = list(change(base, base.rows(), np.random.default_rng(0)))
        outcome, is_exact = by_alignment(base, rows)
        assert is_exact
        yield outcome


def shares(outcomes):
    """The mean shares of the time that are matched right, and wrong."""
    right = [outcome.right_ns / outcome.truth_ns for outcome in outcomes]
    return np.mean(right), np.mean([outcome.wrong_ns / outcome.total_ns for outcome in outcomes])


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_most_of_the_time_is_matched_right_and_hardly_any_wrong(bases, change):
    right, wrong = shares(list(outcomes_of(bases, change)))
    assert right >= 0.95
    assert wrong <= 0.01


def test_several_changes_at_once_are_aligned_better_than_by_names(bases):
    outcomes = [outcome for change in COMBINATIONS for outcome in outcomes_of(bases, change)]
    right, wrong = shares(outcomes)
    assert right >= 0.9
    assert wrong <= 0.01
    by_name = [
        by_names(base, list(change(base, base.rows(), np.random.default_rng(0))))
        for change in COMBINATIONS
        for base in bases
    ]
    assert shares(by_name)[0] <= 0.5


def test_eager_and_compiled_twins_are_mostly_the_same_work():
    eager, compiled = (
        read(str(SAMPLES / "h100" / name / "rank0.25.pt.trace.json.gz")) for name in ("training", "compiled")
    )
    difference = step_difference(eager, compiled)
    assert min(difference.matched_frac) > 0.85
    names = difference.frame.filter(kind="same work").select("base_work", "new_work").rows()
    assert [new for base, new in names if base == "aten::gelu_backward"] == [
        "triton_poi_fused_gelu_gelu_backward_view_7"
    ]
    attention = "aten::_scaled_dot_product_cudnn_attention"
    assert all("attention" in new or "sdpa" in new for base, new in names if base == attention)
