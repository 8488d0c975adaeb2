"""The parts of a change add up to it, also in the rounded points of the sentence."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from kinetoscope_tb.distributed.model import CALLS, FRAMES, STEPS, Summary
from kinetoscope_tb.history.recorded_run import Environment, RecordedRun, StepTotals, mean_parts
from kinetoscope_tb.history.series import Level
from kinetoscope_tb.history.shares import rounded_points, shares

NAMES = ("computation", "all_reduce", "copies", "data loading", "garbage collection", "other idle time")


def level(generator, names=NAMES):
    runs = [
        RecordedRun(
            str(nth), 0, Environment(), dict(zip(names, generator.integers(1, 10**9, len(names)).tolist(), strict=True))
        )
        for nth in range(int(generator.integers(1, 30)))
    ]
    return Level(0, tuple(runs))


@pytest.mark.parametrize("seed", range(50))
def test_shares_are_exact_for_any_parts(seed):
    generator = np.random.default_rng(seed)
    before, after = level(generator), level(generator, (*NAMES[:5], "all_gather"))
    rows = shares(before, after)
    step = [Fraction(sum(run.step_ns for run in side.runs), len(side.runs)) for side in (before, after)]
    growth = sum(row.growth for row in rows)
    assert growth == step[1] / step[0] - 1
    assert sum(rounded_points(rows)) == round(1000 * growth)
    assert {row.name for row in rows} == {*NAMES, "all_gather"}


def summary(steps, calls=()):
    rows = {name: [0] * len(steps) for name, kind in STEPS.items() if kind is pl.Int64}
    for name in rows:
        rows[name] = [step.get(name, 0) for step in steps]
    whole = {
        "step": [str(n) for n in range(len(steps))],
        **rows,
        "is_complete": [step.get("ok", True) for step in steps],
    }
    frames = {name: pl.DataFrame(schema=schema) for name, schema in FRAMES.items()}
    frames["steps"] = pl.DataFrame(whole, schema=STEPS)
    call_rows = [{"kind": kind, "step": step, "exposed_ns": ns} for kind, step, ns in calls]
    frames["calls"] = pl.DataFrame(call_rows, schema=CALLS)
    return Summary({}, **frames)


def parts(*summaries):
    totals = StepTotals()
    for window in summaries:
        totals.add(window)
    return mean_parts([totals])[0]


def test_kinds_of_communication_share_what_both_expose_and_the_rest_is_its_own_part():
    step = {"exposed_communication_ns": 100, "computation_ns": 7}
    assert parts(summary([step], [("all_reduce", 0, 60), ("all_gather", 0, 20), ("broadcast", -1, 9)])) == {
        "computation": 7, "all_gather": 20, "all_reduce": 60, "other communication": 20,
        "copies": 0, "data loading": 0, "garbage collection": 0, "other idle time": 0,
    }  # fmt: skip
    overlapping = parts(summary([step], [("all_reduce", 0, 150), ("all_gather", 0, 50)]))
    assert (overlapping["all_reduce"], overlapping["all_gather"], overlapping["other communication"]) == (75, 25, 0)


def test_data_loading_and_garbage_collection_are_parts_of_the_idle_time():
    rows = parts(summary([{"idle_ns": 10, "dataloader_ns": 8, "collecting_ns": 5}]))
    assert (rows["data loading"], rows["garbage collection"], rows["other idle time"]) == (8, 2, 0)


def test_incomplete_steps_do_not_count_and_windows_of_a_rank_count_together():
    first = summary([{"computation_ns": 10}, {"computation_ns": 99, "ok": False}])
    second = summary([{"computation_ns": 40}, {"computation_ns": 40}])
    assert parts(first, second)["computation"] == 30


def test_each_rank_counts_alike_whatever_the_number_of_its_steps():
    totals = [StepTotals(), StepTotals(), StepTotals()]
    totals[0].add(summary([{"computation_ns": 10}]))
    totals[1].add(summary([{"computation_ns": 20}] * 3))
    assert mean_parts(totals)[0]["computation"] == 15
