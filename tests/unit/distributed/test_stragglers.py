"""Who is slow, against simulated runs whose truth is known; and nobody on noise alone."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.distributed.imbalance.statistics import spread_of
from kinetoscope_tb.distributed.imbalance.step_times import step_rows
from kinetoscope_tb.distributed.imbalance.stragglers import excess, step_length, verdicts
from support.simulated import Truth, run_of, simulated

MESH = (
    *((f"tp{i}", tuple(range(4 * i, 4 * i + 4))) for i in range(4)),
    *((f"dp{i}", tuple(range(i, 16, 4))) for i in range(4)),
)


def judged(**truth):
    return verdicts(step_rows(run_of(simulated(Truth(**truth)))))


def named(frame, verdict="straggler"):
    return frame.filter(pl.col("verdict") == verdict)["member"].to_list()


@given(st.lists(st.lists(st.none() | st.integers(0, 50), min_size=3, max_size=3), min_size=2, max_size=6))
def test_excess_is_what_a_loop_over_the_others_says(rows):
    own = np.array([[np.nan if value is None else value for value in row] for row in rows], float)
    excess_ns = excess(own)
    for rank, step in np.ndindex(own.shape):
        others = [own[r, step] for r in range(len(rows)) if r != rank and not np.isnan(own[r, step])]
        if np.isnan(own[rank, step]) or not others:
            assert np.isnan(excess_ns[rank, step])
        else:
            assert excess_ns[rank, step] == own[rank, step] - np.median(others)


@pytest.mark.parametrize("ranks", [2, 3, 8, 64])
def test_a_straggler_is_named_and_nobody_else(ranks):
    frame = judged(ranks=ranks, steps=6, late={(1, None): 2_000_000})
    assert named(frame) == [1]
    row = frame.row(by_predicate=pl.col("member") == 1, named=True)
    assert row["cause"] == "computation"
    assert row["slow_steps"] == 6
    assert abs(row["cost_ns"] - 2_000_000) < 600_000
    assert set(named(frame, "waits")) | {1} == set(range(ranks))


def test_who_comes_late_because_it_waited_in_another_group_is_no_culprit():
    frame = judged(ranks=16, steps=6, groups=MESH, late={(5, None): 3_000_000})
    assert named(frame) == [5]


def test_a_slow_rank_is_named_although_others_are_missing_and_calls_are_lost():
    for is_numbered in (True, False):
        lost = tuple((7, step, 0) for step in (1, 3))
        truth = {"missing": (2, 9), "lost": lost, "late": {(12, None): 3_000_000}, "is_numbered": is_numbered}
        frame = judged(ranks=16, steps=8, groups=MESH, **truth)
        assert [f"rank{12}"] == [
            run_of(simulated(Truth(ranks=16, missing=(2, 9)))).workers["worker"][m] for m in named(frame)
        ]


def test_who_waits_for_a_rank_without_a_recording_is_no_culprit():
    """Rank 9 waits for rank 5 in dp1 and so comes late to tp2, and nobody recorded that."""
    made = simulated(Truth(ranks=16, steps=8, groups=MESH, late={(5, None): 8_000_000}, missing=(9,)))
    named = verdicts(step_rows(run_of(made))).filter(pl.col("verdict") == "straggler")
    assert named["member"].to_list() == [5]


def test_who_is_the_only_one_recorded_of_its_group_is_no_culprit():
    """Rank 3 waits for rank 5 in dp1, and rank 2, its only mate in tp1, for rank 3."""
    pairs = tuple((f"tp{i}", (2 * i, 2 * i + 1)) for i in range(4))
    groups = (*pairs, *((f"dp{i}", tuple(range(i, 8, 2))) for i in range(2)))
    made = simulated(Truth(ranks=8, steps=8, groups=groups, late={(5, None): 6_000_000}, missing=(3,)))
    run = run_of(made)
    named = verdicts(step_rows(run)).filter(pl.col("verdict") == "straggler")
    assert run.workers["rank"].gather(named["member"]).to_list() == [5]


def test_one_slow_step_is_not_a_slow_rank():
    frame = judged(ranks=8, steps=8, late={(3, 4): 20_000_000})
    assert named(frame) == []
    assert frame.filter(pl.col("verdict") == "slow at times").select("member", "slow_steps").rows() == [(3, 1)]


def test_two_steps_are_too_few_to_tell():
    assert judged(ranks=4, steps=2, late={(1, None): 5_000_000}).is_empty()


def test_steps_that_no_rank_has_two_of_are_too_few_to_tell():
    rows = step_rows(run_of(simulated(Truth(ranks=6, steps=3))))
    pair = pl.col("member") // 2
    step = pl.col("step").rank("dense").over("member") - 1
    assert verdicts(rows).height == 6
    assert verdicts(rows.filter(step == pair)).height == 0


def test_a_lost_step_leaves_the_verdicts():
    rows = step_rows(run_of(simulated(Truth(ranks=4, steps=6, late={(1, None): 2_000_000}))))
    step = pl.col("step").rank("dense").over("member") - 1
    frame = verdicts(rows.filter((pl.col("member") < 2) | (step % 3 == 0)))
    assert named(frame) == [1]
    assert frame.filter(pl.col("member") == 0)["cost_ns"].item() < 600_000


def test_the_spread_of_rows_with_gaps_is_that_of_the_values_at_hand():
    numbers = np.random.default_rng(0)
    whole = numbers.normal(100, 5, (40, 30))
    gaps = np.where(numbers.random(whole.shape) < 0.3, np.nan, whole)
    assert spread_of(whole)[0] == pytest.approx(5, rel=0.1)
    assert spread_of(gaps)[0] == pytest.approx(5, rel=0.1)
    assert spread_of(gaps)[1] < spread_of(whole)[1]
    few = np.array([[1.0, np.nan, 3.0], [np.nan, 7.0, np.nan], [2.0, np.nan, np.nan]])
    assert spread_of(few) == (np.sqrt(2), 1)
    assert spread_of(few[1:]) == (0.0, 0)


def test_what_is_less_than_two_in_a_hundred_is_no_straggler():
    assert named(judged(ranks=8, steps=50, noise=0.0001, late={(1, None): 200_000})) == []


@pytest.mark.slow
def test_noise_alone_names_somebody_in_less_than_one_run_of_twenty():
    runs = [{"ranks": 2, "steps": 4}, {"ranks": 4, "steps": 6}, {"ranks": 16, "steps": 5}]
    alarms = [
        bool(named(judged(**run, noise=noise, seed=seed)))
        for run in runs
        for noise in (0.02, 0.1)
        for seed in range(40)
    ]
    assert sum(alarms) / len(alarms) < 0.05


def test_a_delay_in_different_steps_of_different_ranks_counts_once():
    assert step_length(np.array([[80.0, 20.0, 20.0], [20.0, 80.0, 20.0]])) == 40
