"""Stages of a pipeline from sends and receives, their bubbles against the schedule's, and what isn't a pipeline."""

import pytest

from kinetoscope_tb.distributed.pipeline import Pipeline
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.views import RUN_VIEWS
from support.build import TraceBuilder

KERNEL = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
STEP, MOVE = 1_000_000, 100


def trace_of(rank, world, work, steps=3):
    """A rank's steps of `work`: (`compute`, begin, end), or (`send` or `recv`, peer, begin, end), all in order."""
    config = [{"pg_name": "pp", "pg_desc": "", "pg_size": world, "ranks": list(range(world))}]
    trace = TraceBuilder(distributedInfo={"backend": "nccl", "rank": rank, "world_size": world, "pg_config": config})
    number = 0
    for step in range(steps):
        at = step * STEP
        trace.step(step, at, STEP)
        for i, (kind, *peer, begin, end) in enumerate(work):
            number += 1
            host = at + 10 * i + 1
            if kind == "compute":
                trace.op("aten::mm", host, 8).launch(host + 1, 2, number)
                trace.kernel("gemm", at + begin, end - begin, number)
                continue
            side = "Dst Rank" if kind == "send" else "Src Rank"
            arguments = {"Collective name": kind, "dtype": "Float", "In msg nelems": 8, "Process Group Name": "pp"}
            trace.op("record_param_comms", host, 8, **arguments, **{side: peer[0]}).launch(host + 1, 2, number)
            trace.kernel(KERNEL, at + begin, end - begin, number, stream=20)
    return trace.build()


def gpipe(stages, micro_batches, forward=10_000, backward=20_000, chunks=1, slow=()):
    """The work of each rank in a schedule of forward passes, then backward passes, as simulated without any overhead.

    A stage posts its receive when it has nothing else to do; sends take MOVE; `slow` stages take that many times as long.
    """
    work = [[] for _ in range(stages)]
    free, arrived = [100_000] * stages, {}
    order = [
        (chunk, batch, stage) for chunk in range(chunks) for batch in range(micro_batches) for stage in range(stages)
    ]
    passes = [(forward, *place, True) for place in order] + [(backward, *place, False) for place in reversed(order)]
    for length, chunk, batch, stage, is_forward in passes:
        layer, ahead = chunk * stages + stage, 1 if is_forward else -1
        last = chunks * stages - 1 if is_forward else 0
        begin, length = free[stage], length * dict(slow).get(stage, 1)
        if (came := arrived.pop((is_forward, layer, batch), None)) is not None:
            peer = (layer - ahead) % stages
            work[stage].append(("recv", peer, begin, max(begin + MOVE, came)))
            begin = max(begin + MOVE, came)
        work[stage].append(("compute", begin, begin + length))
        free[stage] = begin + length
        if layer != last:
            work[stage].append(("send", (layer + ahead) % stages, free[stage], free[stage] + MOVE))
            free[stage] += MOVE
            arrived[is_forward, layer + ahead, batch] = free[stage]
    return work


def run_of(work):
    traces = [trace_of(rank, len(work), mine) for rank, mine in enumerate(work)]
    return Ranks("r", tuple(Member(f"rank{i}", "1", 0, summary(trace)) for i, trace in enumerate(traces)))


@pytest.mark.parametrize(("stages", "micro_batches", "chunks"), [(2, 1, 1), (2, 4, 1), (3, 2, 1), (4, 6, 1), (4, 4, 2)])
def test_stages_micro_batches_and_chunks_follow_from_sends_and_receives(stages, micro_batches, chunks):
    pipeline = run_of(gpipe(stages, micro_batches, chunks=chunks)).pipeline
    assert pipeline.stages["stage"].to_list() == list(range(stages))
    assert (pipeline.micro_batches, pipeline.chunks) == (micro_batches, chunks)
    assert pipeline.ideal_frac == (stages - 1) / (chunks * micro_batches + stages - 1)


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 2), (3, 4), (4, 8)])
def test_the_bubble_of_equal_stages_is_that_of_the_schedule(stages, micro_batches):
    """Of the time in which the pipeline runs, which is less than the step, and but for the moving of data."""
    run = run_of(gpipe(stages, micro_batches, 100_000 // micro_batches, 200_000 // micro_batches))
    rows = RUN_VIEWS["pipeline"].run(run)
    first = rows.filter(rank=0)
    runs_ns = 300_000 * (1 + (stages - 1) / micro_batches)
    assert first["bubble_ns"][0] / runs_ns == pytest.approx(first["ideal_frac"][0], rel=0.15)
    steps = RUN_VIEWS["rank_steps"].run(run)
    assert rows.select("worker", "step", "total_ns", "computation_ns").equals(
        steps.select("worker", "step", "total_ns", "computation_ns")
    )
    assert rows["bubble_ns"].to_list() == steps["wait_ns"].to_list()
    assert (rows["waits_for_ns"].fill_null(0) <= rows["bubble_ns"]).all()
    assert first["waits_for"].to_list() == [1] * 3
    assert set(rows.filter(rank=stages - 1)["waits_for"]) == {stages - 2}


def test_a_receive_that_lasts_longer_than_its_send_waits_for_the_stage_before():
    """One forward pass: the second stage waits while the first one computes."""
    first = [("compute", 10_000, 910_000), ("send", 1, 910_000, 950_000)]
    second = [("recv", 0, 5_000, 950_000), ("compute", 950_000, 990_000)]
    run = run_of([first, second])
    steps = RUN_VIEWS["rank_steps"].run(run).filter(rank=1)
    assert steps.select("wait_ns", "exposed_transfer_ns").rows() == [(905_000, 40_000)] * 3
    waits = RUN_VIEWS["rank_waits"].run(run).filter(rank=1)
    assert waits["wait_ns"].to_list() == [905_000] * 3
    (row,) = RUN_VIEWS["run_advice"].run(run).rows(named=True)
    assert (row["rule"], row["view"], row["saving_ns"]) == ("pipeline", "pipeline", 905_000)
    assert row["title"] == "Stage 1 of the pipeline waits for stage 0: a bubble of 905 µs in a step of 1 ms, 90.5 %."
    assert "2 equal stages with 1 micro-batch have bubbles of 50 %." in row["evidence"]
    idle = RUN_VIEWS["pipeline"].run(run).filter(rank=0)
    assert (idle["idle_ns"] == 60_000).all()
    assert row["evidence"].endswith("what a stage waits for: 6 % of stage 0's step.")
    assert RUN_VIEWS["stragglers"].run(run).is_empty()  # each stage has one rank
    assert "in a pipeline, two ranks of one stage" in RUN_VIEWS["stragglers"].hint


def test_receives_that_are_posted_long_before_show_the_same_stages_and_no_more_waiting_than_there_is():
    """The first stage posts the receives of both gradients before it sends any activations."""
    early = [("recv", 1, 20_000, 700_000), ("recv", 1, 30_000, 800_000)]
    first = [*early, ("send", 1, 300_000, 301_000), ("send", 1, 400_000, 401_000)]
    second = [("recv", 0, 10_000, 301_000), ("recv", 0, 301_000, 401_000), ("compute", 401_000, 600_000)]
    second += [("send", 0, 699_000, 700_000), ("send", 0, 799_000, 800_000)]
    run = run_of([first, second])
    assert (run.stages["stage"].to_list(), run.pipeline.micro_batches) == ([0, 1], 2)
    rows = RUN_VIEWS["pipeline"].run(run).filter(rank=0)
    assert rows["bubble_ns"].to_list() == [780_000] * 3


def test_the_stage_that_computes_longest_is_to_give_layers_away():
    (row,) = RUN_VIEWS["run_advice"].run(run_of(gpipe(3, 8, slow={1: 3}))).rows(named=True)
    assert row["action"] == "Move layers from stage 1, which computes longest, to the others."
    (even,) = RUN_VIEWS["run_advice"].run(run_of(gpipe(3, 8))).rows(named=True)
    assert even["action"].startswith("Use more micro-batches per step, or an interleaved schedule")


@pytest.mark.parametrize("is_even_first", [False, True])
def test_a_ring_is_no_pipeline(is_even_first):
    """As in ring attention: each rank sends to the next one and receives from the one before, in either order."""
    rings = []
    for rank in range(4):
        ends = [("send", (rank + 1) % 4, 10_000, 12_000), ("recv", (rank - 1) % 4, 12_000, 14_000)]
        if is_even_first and rank % 2:
            ends = [
                (kind, peer, begin, end) for (kind, peer, *_), (*_, begin, end) in zip(ends[::-1], ends, strict=True)
            ]
        rings.append(ends)
    run = run_of(rings)
    assert run.calls["match"].null_count() == 0
    assert run.pipeline.stages.is_empty()
    assert "pipeline" not in RUN_VIEWS["run_advice"].run(run)["rule"].to_list()


def test_runs_without_transfers_have_no_pipeline():
    pipeline = Pipeline.of(run_of([[("compute", 10, 20)]] * 2).calls)
    assert (pipeline.count, pipeline.ideal_frac) == (0, None)


@pytest.mark.parametrize(("slow", "micro_batches", "pass_ns"), [({1: 3}, 8, 10_000), ({1: 4}, 4, 15_000)])
def test_even_stages_save_what_they_take_less_not_the_bubble(slow, micro_batches, pass_ns):
    """Three stages that compute as long together still have the bubble of their schedule."""

    def length(work):
        return max(end for of_rank in work for *_, end in of_rank)

    work, even = gpipe(3, micro_batches, pass_ns, 2 * pass_ns, slow=slow), round(pass_ns * (2 + sum(slow.values())) / 3)
    (row,) = RUN_VIEWS["run_advice"].run(run_of(work)).rows(named=True)
    less = length(work) - length(gpipe(3, micro_batches, even, 2 * even))
    assert row["saving_ns"] == pytest.approx(less, rel=0.03)
    assert f"Stage {min(slow)} computes for " in row["evidence"]
