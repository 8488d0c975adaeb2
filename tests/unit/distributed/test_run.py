"""Runs side by side, against what is known of simulated ones and of a real one."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from kinetoscope_tb.diagnostics.run import diagnose_run
from kinetoscope_tb.discovery import list_path
from kinetoscope_tb.distributed.contents import has_calls
from kinetoscope_tb.distributed.path.paths import PARTS, Paths
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import RUN_VIEWS
from support.real_traces import FOLDER, MISSING
from support.simulated import Truth, run_of, simulated, summary_of, trace_of

MESH = (
    *((f"tp{i}", tuple(range(4 * i, 4 * i + 4))) for i in range(4)),
    *((f"dp{i}", tuple(range(i, 16, 4))) for i in range(4)),
)


def by_call(made, run, column):
    """[call, rank] of a column of the run's calls; NaN where there is none."""
    offsets = np.full(made.begin.shape, np.nan)
    numbers = {}
    for call in range(made.begin.shape[0]):
        numbers[int(made.group[call]), int(made.nth[call])] = call
    groups = {name: number for number, (name, _) in enumerate(made.groups)}
    names = run.groups["name"].to_list()
    for group, nth, rank, value in run.calls.select("group", "nth", "rank", column).rows():
        if value is not None:
            offsets[numbers[groups[names[group]], nth], rank] = value
    return offsets


def test_a_trace_that_is_written_and_read_says_what_was_simulated():
    made = simulated(Truth(ranks=4, steps=3, groups=(("tp", (0, 1)), ("tp", (2, 3)), ("dp", (0, 1, 2, 3)))))
    for rank in range(4):
        read_back, direct = summary(trace_of(made, rank).build()), summary_of(made, rank)
        columns = ["kind", "nth", "bytes", "step", "dur_ns", "exposed_ns"]
        assert read_back.calls.select(columns).equals(direct.calls.select(columns))
        assert read_back.facts["origin_ns"] + read_back.calls["start_ns"][0] == (
            direct.facts["origin_ns"] + direct.calls["start_ns"][0]
        )
        assert set(read_back.groups["ranks"]) == {"0-1" if rank < 2 else "2-3", "0-3"}
        assert read_back.steps["step"].to_list() == ["0", "1", "2"]


@pytest.mark.parametrize("is_numbered", [True, False])
def test_wait_and_transfer_are_those_that_happened(is_numbered):
    made = simulated(Truth(ranks=16, steps=5, groups=MESH, jitter_ns=0, is_numbered=is_numbered, late={(5, 2): 10**7}))
    run = run_of(made)
    assert run.matches.height == 5 * 8
    assert run.calls.filter(pl.col("wait_ns") + pl.col("transfer_ns") != pl.col("dur_ns")).is_empty()
    if is_numbered:
        waited = np.nanmax(made.begin, 1)[:, None] - made.begin
        assert np.nanmax(np.abs(by_call(made, run, "wait_ns") - waited)) <= 2  # times are rounded to 1 ns
        assert np.nanmax(np.abs(by_call(made, run, "transfer_ns") - made.transfer[:, None])) <= 2


def test_groups_of_the_same_name_and_other_ranks_are_others():
    made = simulated(Truth(ranks=4, steps=2, groups=(("tp", (0, 1)), ("tp", (2, 3)))))
    run = run_of(made)
    assert run.groups.height == 2
    assert run.matches["members"].to_list() == [2] * 4


def test_a_lost_call_without_a_number_leaves_alone_what_nobody_can_match():
    truth = Truth(ranks=4, steps=4, groups=(("0", (0, 1, 2, 3)),) * 1, is_numbered=False, lost=((2, 1, 0),))
    run = run_of(simulated(truth))
    assert run.matches.select("step", "members").rows() == [("0", 4), ("1", 3), ("2", 4), ("3", 4)]


def test_a_lost_call_with_numbers_costs_itself_alone():
    truth = Truth(ranks=4, steps=4, groups=(("0", (0, 1, 2, 3)), ("1", (0, 1, 2, 3))), lost=((2, 1, 0),))
    run = run_of(simulated(truth))
    assert sorted(run.matches["members"].to_list()) == [3] + [4] * 7


def test_recordings_of_other_steps_are_matched_where_they_overlap():
    made = simulated(Truth(ranks=2, steps=6, is_numbered=False))
    members = []
    for rank, steps in ((0, range(4)), (1, range(2, 6))):
        whole = summary_of(made, rank)
        rows = whole.calls.filter(pl.col("step").is_in(list(steps))).with_columns(pl.col("step") - steps[0])
        steps_of_window = whole.steps.filter(pl.col("step").is_in([str(step) for step in steps]))
        made_of = replace(
            whole, steps=steps_of_window, calls=rows.cast(whole.calls.schema), segments=whole.segments.clear()
        )
        members.append(Member(f"rank{rank}", "1", 0, made_of))
    run = Ranks("r", tuple(members))
    assert run.matches["step"].to_list() == ["2", "3"]


@pytest.mark.parametrize("is_numbered", [True, False])
def test_workers_of_one_rank_are_compared_with_none(is_numbered):
    made = simulated(Truth(ranks=4, steps=4, late={(3, None): 4_000_000}, is_numbered=is_numbered))
    whole = run_of(made)
    again = replace(whole.members[0], worker="again")
    run = replace(whole, members=(*whole.members, again))
    assert run.duplicates["worker"].to_list() == ["rank0", "again"]
    calls = run.calls.group_by("member").agg(matched=pl.col("match").is_not_null().any()).sort("member")
    assert calls["matched"].to_list() == [False, True, True, True, False]
    assert run.matches["members"].unique().to_list() == [3]
    judged = RUN_VIEWS["stragglers"].run(run)
    assert set(judged["worker"]) == {"rank1", "rank2", "rank3"}
    assert judged["worker"][0] == "rank3"
    diagnostics = {found.rule: found for found in diagnose_run(run)}
    assert "rank 0 (rank0, again)" in diagnostics["rank_twice"].consequence
    assert "steps_apart" not in diagnostics
    copies = replace(whole, members=(whole.members[0], again))
    (advice,) = RUN_VIEWS["run_advice"].run(copies).rows(named=True)
    assert advice["confidence"] == "cannot_tell"
    assert "More than one worker says that it is rank 0 (rank0, again)" in advice["evidence"]


def error_of(made, run):
    """How far each shift is from the truth, at the middle of the recording."""
    clocks, workers = run.clocks, run.workers
    origin = workers["origin_ns"].to_numpy() - 1_700_000_000_000_000_000
    errors = []
    for (middle, shift), rank, start in zip(
        clocks.select("middle_ns", "shift_ns").rows(), workers["rank"], origin, strict=True
    ):
        true = (start + middle - made.offset[rank]) / (1 + made.drift[rank])
        first = workers["rank"][0]
        errors.append(middle + shift - (made.local(first, np.float64(true)) - origin[0]))
    return np.abs(np.array(errors, float))


@pytest.mark.slow  # many runs
def test_clocks_are_told_within_the_stated_error():
    missed = told = 0
    for seed in range(30):
        made = simulated(
            Truth(ranks=8, steps=8, seed=seed, late={(3, None): 4_000_000}, missing=(6,), lost=((2, 1, 0),))
        )
        run = run_of(made)
        error = run.clocks["error_ns"].to_numpy()[1:]
        off = error_of(made, run)[1:]
        missed += int((off > error).sum())
        told += off.size
        assert off.max() < 20_000
        assert error.max() < 20_000
    assert missed / told < 0.02  # three standard errors, of which the spread is itself told from few ends


def test_clocks_follow_chains_of_groups_and_drifts():
    truth = Truth(ranks=16, steps=60, groups=MESH, drift=tuple(np.linspace(-4e-5, 4e-5, 16)), compute_ns=20_000_000)
    made = simulated(truth)
    run = run_of(made)
    assert (error_of(made, run)[1:] <= run.clocks["error_ns"].to_numpy()[1:] * 2).all()
    slow = run.clocks["drift"].to_numpy()
    assert np.allclose(slow, -(made.drift - made.drift[0]), atol=3e-6)


def test_clocks_follow_a_long_chain_of_pairs():
    chain = tuple((f"p{i}", (i, i + 1)) for i in range(63))
    made = simulated(Truth(ranks=64, steps=10, groups=chain, compute_ns=100_000, clocks_ns=10**9))
    run = run_of(made)
    assert run.clocks["island"].unique().to_list() == [0]
    error = run.clocks["error_ns"].to_numpy()
    assert (np.diff(error) > 0).all()  # each link adds its own
    assert (error_of(made, run)[1:] <= 1.5 * error[1:]).all()


def test_of_very_many_ends_a_part_of_each_group_tells(monkeypatch):
    made = simulated(Truth(ranks=16, steps=30, groups=MESH))
    every = run_of(made).clocks["collectives"].to_list()
    monkeypatch.setattr("kinetoscope_tb.distributed.clocks.estimate.MOST_ENDS", 320)
    run = run_of(made)
    assert every == [60] * 16
    assert run.clocks["collectives"].to_list() == [20] * 16  # 320 ends ÷ 8 groups ÷ 4 ranks = 10, of both of its groups
    assert (error_of(made, run)[1:] <= 1.5 * run.clocks["error_ns"].to_numpy()[1:]).all()


def test_ragged_ends_do_not_move_a_clock():
    made = simulated(Truth(ranks=4, steps=20, jitter_ns=500))
    made.end[3:6, 2] += 5e6
    run = run_of(made)
    assert error_of(made, run).max() < 2_000


def test_ranks_without_a_common_collective_keep_their_wall_clocks():
    made = simulated(Truth(ranks=4, steps=4, groups=(("a", (0, 1)), ("b", (2, 3)))))
    clocks = run_of(made).clocks
    assert clocks["island"].to_list() == [0, 0, 2, 2]
    origin = run_of(made).workers["origin_ns"]
    assert clocks["shift_ns"][2] == origin[2] - origin[0]


def with_clocks(made, measured, wrong=0, error_ns=40_000):
    """The run, whose recorder measured some ranks' clocks against rank 0's."""
    members = []
    for rank in range(made.truth.ranks):
        summary = summary_of(made, rank)
        if rank in measured:
            measurement = {
                "offset_ns": int(made.offset[rank] - made.offset[0]) + wrong * (rank > 0),
                "error_ns": error_ns * (rank > 0),
            }
            summary = replace(summary, facts={**summary.facts, "clock": measurement})
        members.append(Member(f"rank{rank}", "1", 0, summary))
    return Ranks("r", tuple(members))


def test_a_clock_with_a_large_error_is_a_problem_of_the_run():
    made = simulated(Truth(ranks=3, steps=4))
    sure, unsure = (with_clocks(made, {0, 1, 2}, error_ns=error_ns) for error_ns in (40_000, 99_900_000))
    assert not [found for found in diagnose_run(sure) if found.rule == "clocks_uncertain"]
    (found,) = (found for found in diagnose_run(unsure) if found.rule == "clocks_uncertain")
    assert found.count == 2
    assert "wrong by up to 99.9 ms (rank1)" in found.consequence


def test_nobody_was_last_where_a_rank_of_the_group_was_not_recorded():
    run = run_of(simulated(Truth(ranks=4, steps=4, missing=(3,), late={(1, None): 5_000_000}, jitter_ns=0)))
    assert run.calls["transfer_ns"].is_null().all()
    assert run.calls.filter(rank=0)["wait_ns"].min() > 4_000_000  # at least: for the last of those recorded
    table = RUN_VIEWS["collectives"].run(run)
    assert table["last"].is_null().all()
    assert table["first"].is_null().all()
    assert not RUN_VIEWS["communication"].run(run)["is_transfer_known"].any()


def test_what_was_measured_counts_before_what_collectives_tell():
    made = simulated(Truth(ranks=4, steps=10, clocks_ns=10**9))
    run = with_clocks(made, range(4), wrong=30_000)
    clocks = run.clocks
    assert clocks["source"].to_list() == ["measurement"] * 4
    assert np.allclose(error_of(made, run), [0, 30_000, 30_000, 30_000], atol=2)
    assert clocks["error_ns"].to_list() == [0, 40_000, 40_000, 40_000]
    # The collectives agree among themselves: three are off by 30 µs, and the median of the four is theirs.
    assert np.allclose(clocks["differs_ns"].to_numpy(), [-30_000, 0, 0, 0], atol=5_000)


def test_who_was_not_measured_is_told_beside_those_who_were():
    made = simulated(Truth(ranks=6, steps=10, groups=(("a", (0, 1, 2)), ("b", (3, 4))), clocks_ns=10**9))
    run = with_clocks(made, (1, 2, 4))
    assert run.clocks["source"].to_list() == [
        "collectives",
        *["measurement"] * 2,
        "collectives",
        "measurement",
        "wall clock",
    ]
    assert (error_of(made, run)[:5] < 20_000).all()  # 3 and 4 share no collective with the others
    alone = with_clocks(made, (1,)).clocks
    assert alone["source"].to_list() == ["reference", *["collectives"] * 2, "reference", "collectives", "wall clock"]


def test_what_is_no_measurement_is_none():
    made = simulated(Truth(ranks=2))
    wrong = [{"offset_ns": "0", "error_ns": 1}, {"offset_ns": 2**70, "error_ns": 1}]
    members = [
        Member(
            f"rank{rank}", "1", 0, replace(kept := summary_of(made, rank), facts={**kept.facts, "clock": wrong[rank]})
        )
        for rank in range(2)
    ]
    assert Ranks("r", tuple(members)).clocks["source"].to_list() == ["reference", "collectives"]


def test_a_rank_that_cannot_be_read_stops_nobody():
    made = simulated(Truth(ranks=3))
    members = [Member(f"rank{r}", "1", 0, summary_of(made, r)) for r in (0, 2)]
    run = Ranks("r", (members[0], Member("rank1", "1", 0, None, "it is broken."), members[1]))
    assert run.matches["members"].to_list() == [2] * 6
    assert run.workers["rank"].to_list() == [0, 1, 2]
    assert run.missing_ranks == []
    assert run.clocks["collectives"].to_list() == [6, 0, 6]


def test_nothing_at_all_is_a_run_too():
    run = Ranks("r", ())
    assert run.matches.is_empty()
    assert run.clocks.is_empty()
    assert run.steps.is_empty()
    assert not has_calls(run)


REAL = FOLDER / "runs" / "dlrm_8gpu_nccl"


@pytest.mark.skipif(not REAL.is_dir(), reason=MISSING)
def test_a_real_run_agrees_with_an_obvious_recomputation():
    listing = list_path(str(REAL))
    traces = [read(file.path) for file in listing.files]
    run = Ranks(
        "dlrm", tuple(Member(f.worker, f.span, 0, summary(t)) for f, t in zip(listing.files, traces, strict=True))
    )
    columns = []
    for trace in traces:
        kernels = trace.device_events.filter(pl.col("name").cast(pl.String).str.contains("nccl"))
        columns.append(kernels.sort("start_ns")["dur_ns"].to_list())
    assert {len(column) for column in columns} == {8}
    for number, durations in enumerate(zip(*columns, strict=True)):
        rows = run.calls.filter(pl.col("match") == number).sort("member")
        assert rows["dur_ns"].to_list() == list(durations)
        assert rows["transfer_ns"].to_list() == [min(durations)] * 8
        assert rows["wait_ns"].to_list() == [one - min(durations) for one in durations]
    # One machine: its wall clock is the truth, in whole microseconds.
    origin = run.workers["origin_ns"].to_numpy()
    assert np.abs(run.clocks["shift_ns"].to_numpy() - (origin - origin[0])).max() < 3_000
    assert (
        run.steps["computation_ns"]
        + run.steps["exposed_communication_ns"]
        + run.steps["exposed_copies_ns"]
        + run.steps["idle_ns"]
    ).to_list() == run.steps["total_ns"].to_list()
    paths = Paths.of(run)
    assert paths.steps["total_ns"].to_list() == [paths.segments["dur_ns"].sum()]
    each = paths.segments.unique("number", maintain_order=True)
    late = each.filter(pl.col("part") == PARTS.index("before the step"))
    begins = run.on_one_clock(run.steps, "start_ns")
    waited = begins[late["member"][0]] - begins[paths.steps["member"][0]]
    assert abs(late["segment_ns"][0] - waited) < 100_000  # clocks are told, segments are counted
