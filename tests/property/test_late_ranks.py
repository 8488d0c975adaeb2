"""Mixtures of late ranks: k of n ranks are late in j of m steps, by this or that; and runs in which nobody is."""

import numpy as np
import pytest

from kinetoscope_tb.views import RUN_VIEWS
from support.simulated import Truth, run_of, simulated

CAUSES = {
    "slower kernels": ("computes ", "its device is slower"),
    "more work": ("computes ", "it has more work"),
    "data loading": ("loads data ", "is data loading"),
    "garbage collection": ("collects garbage ", "is garbage collection"),
}
SEEDS = 120
COMPUTE_NS = 10_000_000


def mixture(seed):
    """(how many steps each late rank is late in, the run): half of the runs have two ranks."""
    rng = np.random.default_rng(seed)
    ranks = int(rng.choice([2, 2, 2, 3, 4, 8]))
    steps = int(rng.integers(8, 21))
    late_ranks = rng.permutation(ranks)[: int(rng.integers(1, max(2, ranks // 2)))].tolist()
    late, often = {}, {}
    for rank in late_ranks:
        often[rank] = int(rng.integers(2, steps + 1))
        size = COMPUTE_NS * float(rng.uniform(0.25, 1.5))
        for step in rng.permutation(steps)[: often[rank]].tolist():
            late[rank, step] = int(size * float(rng.uniform(0.7, 1.3)))
    by = list(CAUSES)[seed % len(CAUSES)]
    return often, Truth(ranks, steps, COMPUTE_NS, float(rng.uniform(0.001, 0.008)), late=late, by=by, seed=seed)


def advice_of(truth):
    return RUN_VIEWS["run_advice"].run(run_of(simulated(truth))).rows(named=True)


@pytest.mark.parametrize("seeds", [range(first, SEEDS, 8) for first in range(8)])
def test_who_is_late_in_some_steps_is_named_with_how_often_and_why(seeds):
    for seed in seeds:
        often, truth = mixture(seed)
        rows = advice_of(truth)
        assert {row["filter"] for row in rows} == {f"rank{rank}" for rank in often}, (seed, often, rows)
        does, why = CAUSES[truth.by]
        for row in rows:
            count = often[int(row["filter"][4:])]
            when = "each step" if count == truth.steps else f"{count} of {truth.steps} steps"
            assert does in row["title"], (seed, row)
            assert f" longer in {when}:" in row["title"], (seed, often, row)
            assert why in row["evidence"], (seed, row)
            assert row["confidence"] == "high"


def test_nobody_is_named_in_healthy_runs():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = Truth(
            ranks=int(rng.choice([2, 2, 4, 8])),
            steps=int(rng.integers(4, 20)),
            noise=float(rng.uniform(0.002, 0.02)),
            shared=float(rng.choice([0.0, 0.2])),
            seed=seed,
        )
        (row,) = advice_of(truth)
        assert row["rule"] == "no_straggler", (seed, truth, row)


@pytest.mark.parametrize("by", CAUSES)
def test_a_late_rank_is_named_although_all_ranks_have_more_to_do_in_some_steps(by):
    late = {(1, step): 4_000_000 for step in (1, 4, 6)}
    (row,) = advice_of(Truth(ranks=2, steps=10, noise=0.002, shared=0.3, late=late, by=by, seed=5))
    assert (row["filter"], row["confidence"]) == ("rank1", "high")
    assert " longer in 3 of 10 steps:" in row["title"]
