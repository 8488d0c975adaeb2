"""The same quantity is the same in every view of a run, to the nanosecond, and in the views of each of its ranks."""

from functools import cache

import polars as pl
import pytest

from kinetoscope_tb.distributed.path.pace_of_others import savings_at_pace_of_others
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.views import RUN_VIEWS, VIEWS
from support.simulated import Truth, run_of, simulated, trace_of

GROUPS = (("dp", (0, 1, 2, 3)), ("tp0", (0, 1)), ("tp1", (2, 3)))
TRUTHS = {
    "even": Truth(),
    "a late rank": Truth(late={(2, None): 5_000_000}),
    "late at times": Truth(ranks=2, steps=9, late={(1, 2): 6_000_000, (1, 5): 9_000_000}, offset_ns=(0, 70_000)),
    "several groups": Truth(groups=GROUPS, late={(1, 3): 4_000_000}, seed=3),
}
runs = pytest.mark.parametrize("name", TRUTHS)


@cache
def traces(name):
    made = simulated(TRUTHS[name])
    return [trace_of(made, rank).build() for rank in range(made.truth.ranks)]


@cache
def run(name):
    return Ranks("r", tuple(Member(f"rank{i}", "1", 0, summary(trace)) for i, trace in enumerate(traces(name))))


def view(name, of, **parameters):
    return RUN_VIEWS[of].run(run(name), **parameters)


@runs
def test_steps_of_ranks_are_those_of_each_rank(name):
    ranks = view(name, "rank_steps")
    for number, trace in enumerate(traces(name)):
        own, mine = VIEWS["steps"].run(trace), ranks.filter(rank=number)
        assert mine.select("step", "total_ns", "dataloader_ns", start_ns="own_start_ns").equals(
            own.select("step", "total_ns", "dataloader_ns", "start_ns")
        )
        parts = VIEWS["exposed_time"].run(trace, per="step")
        assert mine["computation_ns"].to_list() == parts["computation_ns"].to_list()
        assert mine["overlap_ns"].to_list() == parts["overlap_ns"].to_list()


@runs
def test_waits_are_the_same_by_rank_by_collective_and_by_step(name):
    waits, collectives = view(name, "rank_waits"), view(name, "collectives")
    number = pl.col("collective").str.split(" ").list.first().cast(pl.Int64)
    by_number = waits.group_by(number=number).agg(
        total_wait_ns=pl.col("wait_ns").sum(),
        max_wait_ns=pl.col("wait_ns").max(),
        mean_wait_ns=pl.col("wait_ns").mean().round().cast(pl.Int64),
        last=pl.col("worker").filter("is_last").first(),
    )
    of_them = collectives.join(by_number, "number", "semi").sort("number")
    assert of_them.select(by_number.columns).equals(by_number.sort("number"))
    if collectives.height == by_number.height:
        by_step = waits.group_by("worker", "step").agg(exposed_wait_ns=pl.col("wait_ns").sum()).sort("worker", "step")
        assert view(name, "rank_steps").select(by_step.columns).sort("worker", "step").equals(by_step)


@runs
def test_durations_of_communication_are_transfers_and_waits(name):
    communication, collectives = view(name, "communication"), view(name, "collectives")
    kernels = [VIEWS["kernels"].run(trace).filter("is_communication")["total_ns"].sum() for trace in traces(name)]
    whole = communication["total_ns"].sum()
    assert whole == sum(kernels)
    assert whole == (collectives["transfer_ns"] * collectives["ranks"]).sum() + collectives["total_wait_ns"].sum()
    for row in communication.rows(named=True):
        assert abs(row["mean_ns"] * row["calls"] - row["total_ns"]) <= row["calls"] / 2
        assert abs(row["mean_transfer_ns"] + row["mean_wait_ns"] - row["mean_ns"]) <= 1


@runs
def test_stragglers_are_judged_by_the_times_of_ranks_and_steps(name):
    means = pl.col("without_waiting_ns", "exposed_wait_ns").mean().round().name.prefix("mean_")
    frame = view(name, "stragglers").join(
        view(name, "rank_steps").group_by("worker").agg(means), "worker", suffix="_of_steps"
    )
    for column in ("mean_without_waiting_ns", "mean_exposed_wait_ns"):
        assert (frame[column] - frame[f"{column}_of_steps"]).abs().max() <= 1
    late = frame.filter(pl.col("slow_steps") > 0)
    advice = view(name, "run_advice")
    assert set(late["worker"]) == set(advice["filter"].drop_nulls())
    for worker, cost in late.select("worker", "mean_cost_ns").rows():
        assert advice.filter(filter=worker)["saving_ns"].item() == pytest.approx(cost, rel=0.1)


@runs
def test_the_path_across_ranks_is_as_long_as_its_segments_and_the_last_rank_s_step(name):
    by_part = view(name, "path_across_ranks", per="step").group_by("step").agg(pl.col("path_ns").sum())
    by_rank = view(name, "path_across_ranks", per="step", by="rank").group_by("step").agg(pl.col("path_ns").sum())
    assert by_part.sort("step").equals(by_rank.sort("step"))
    lengths = (
        view(name, "path_by_rank").group_by("step", "worker").agg(pl.col("path_ns").sum(), pl.col("total_ns").first())
    )
    steps = view(name, "rank_steps").select("worker", "step", "total_ns")
    assert lengths.join(steps, ["worker", "step", "total_ns"], "semi").height == steps.height
    for step, path in by_part.rows():
        parts = view(name, "path_across_ranks_segments", step=step)
        assert parts["dur_ns"].sum() == path
        assert path in steps.filter(step=step)["total_ns"].to_list()
        transfers = parts.filter(pl.col("part") == "transfer")["dur_ns"].sum()
        assert lengths.filter(step=step)["path_ns"].sum() + transfers == path


@runs
def test_lags_follow_from_the_starts_of_steps_and_the_clocks(name):
    ranks = run(name)
    clocks = (
        view(name, "clocks").select("worker", "offset_ns").join(ranks.workers.select("worker", "origin_ns"), "worker")
    )
    starts = view(name, "rank_steps").join(clocks, "worker")
    common = pl.col("own_start_ns") + pl.col("origin_ns") - pl.col("offset_ns")
    lags = starts.select("worker", "step", start_lag_ns=common - common.min().over("step")).sort("worker", "step")
    paces = view(name, "pace").select("worker", "step", "start_lag_ns").sort("worker", "step")
    assert (lags["start_lag_ns"] - paces["start_lag_ns"]).abs().max() <= 1


def length_of(late, groups=(), after=None):
    """The mean length of a step whose ranks are late by so much."""
    made = simulated(Truth(late=late, groups=groups, after=after or {}, noise=0.0, jitter_ns=0))
    return (made.steps[-1, :, 1].max() - made.steps[0, :, 0].min()) / len(made.steps)


def test_ranks_as_fast_as_the_others_save_what_a_run_without_their_lateness_takes_less():
    """Rank 2 is the latest, and rank 3 is next: what rank 2 saves ends where rank 3 is waited for."""
    for seed in range(12):
        late = {(2, None): 3_000_000 + 500_000 * seed, (3, None): 1_000_000 * (seed % 3)}
        groups = GROUPS if seed % 2 else ()
        run = run_of(simulated(Truth(late=late, groups=groups, noise=0.0, jitter_ns=0)))
        even = ({key: ns for key, ns in late.items() if key[0] != 2}, {})
        lengths = [length_of(late, groups) - length_of(rest, groups) for rest in even]
        savings = savings_at_pace_of_others(run, [["rank2"], ["rank2", "rank3"]])
        assert savings == [pytest.approx(length, rel=0.02) for length in lengths], seed
        rows = RUN_VIEWS["run_advice"].run(run).filter(rule="straggler")
        assert rows["saving_ns"][0] == savings[rows.height - 1], seed


@pytest.mark.parametrize("steps", [range(6), [2, 4]], ids=["each step", "some steps"])
def test_what_a_rank_does_after_its_last_collective_is_saved_as_a_whole(steps):
    """The others wait for it in the next step: a delay is in one step of that rank, and in the next of the others."""
    after = {(2, step): 8_000_000 for step in steps}
    run = run_of(simulated(Truth(after=after, noise=0.0, jitter_ns=0)))
    longer = length_of({}, after=after) - length_of({})
    assert savings_at_pace_of_others(run, [["rank2"]]) == [pytest.approx(longer, rel=0.02)]
    (row,) = RUN_VIEWS["run_advice"].run(run).rows(named=True)
    assert row["saving_ns"] == pytest.approx(longer, rel=0.02)
    assert row["saving_frac"] == pytest.approx(longer / length_of({}, after=after), rel=0.02)
