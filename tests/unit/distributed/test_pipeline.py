"""Stages of a pipeline from sends and receives, their bubbles against the schedule's, and what isn't a pipeline."""

import pytest

from kinetoscope_tb.distributed.pipeline import Pipeline
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.views import RUN_VIEWS
from support.build import TraceBuilder

KERNEL = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
STEP, MOVE, LAUNCH = 1_000_000, 100, 500


def trace_of(rank, world, work, steps=3, blocks=None, *, is_synced=False):
    """A rank's steps of `work`: (`compute` or `host`, begin, end), or (`send` or `recv`, peer, begin, end), in order.

    What follows `host` is launched after it. Kernels have so many blocks and inputs, if that is known. If it is
    synced, all kernels are in one stream, and the host waits for them at the end of the step.
    """
    size = {"grid": [blocks, 1, 1], "block": [256, 1, 1]} if blocks else {}
    shapes = {"Input Dims": [[blocks, 64], [64, 64]], "Input type": ["float", "float"]} if blocks else {}
    config = [{"pg_name": "pp", "pg_desc": "", "pg_size": world, "ranks": list(range(world))}]
    trace = TraceBuilder(distributedInfo={"backend": "nccl", "rank": rank, "world_size": world, "pg_config": config})
    number = 0
    for step in range(steps):
        at = step * STEP
        over = at + max(end for *_, end in work) + LAUNCH
        trace.step(step, at, over - at + LAUNCH if is_synced else STEP)
        host = at
        for kind, *peer, begin, end in work:
            number += 1
            host += 10
            if kind == "host":
                trace.python("checks.py(5): check", at + begin, end - begin - LAUNCH)
                host = at + end - LAUNCH
                continue
            if kind == "compute":
                trace.op("aten::mm", host, 8, **shapes).launch(host + 1, 2, number)
                trace.kernel("gemm", at + begin, end - begin, number, **size)
                continue
            side = "Dst Rank" if kind == "send" else "Src Rank"
            arguments = {"Collective name": kind, "dtype": "Float", "In msg nelems": 8, "Process Group Name": "pp"}
            trace.op("record_param_comms", host, 8, **arguments, **{side: peer[0]}).launch(host + 1, 2, number)
            trace.kernel(KERNEL, at + begin, end - begin, number, stream=7 if is_synced else 20)
        if is_synced:
            trace.launch(host + 10, over - host - 10, 0, name="cudaDeviceSynchronize")
    return trace.build()


def gpipe(stages, micro_batches, forward=10_000, backward=20_000, chunks=1, slow=(), group=0):
    """The work of each rank in a schedule of forward passes, then backward passes, as simulated without any overhead.

    A stage posts its receive when it has nothing else to do; sends take MOVE; `slow` stages take that many times as
    long. All chunks work on a `group` of micro-batches before the next one.
    """
    work = [[] for _ in range(stages)]
    free, arrived = [100_000] * stages, {}
    size = group or micro_batches
    order = [
        (chunk, first + nth, stage)
        for first in range(0, micro_batches, size)
        for chunk in range(chunks)
        for nth in range(size)
        for stage in range(stages)
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


def in_one_stream(stages, micro_batches, slow=(), host=(), links=()):
    """The same with 10 and 20 us per pass, where each send lasts until the receiver has all, as NCCL's in one stream.

    `slow` stages compute for so many times as long, those of `host` spend so long there after each forward pass, and
    `links` say how long a (sender, receiver) moves data, else MOVE.
    """
    work, free = [[] for _ in range(stages)], [100_000] * stages
    order = [(batch, stage) for batch in range(micro_batches) for stage in range(stages)]
    passes = [(10_000, stage, 1) for _, stage in order] + [(20_000, stage, -1) for _, stage in reversed(order)]
    for length, stage, ahead in passes:
        kinds = [("compute", round(length * dict(slow).get(stage, 1)))]
        kinds += [("host", dict(host)[stage])] if ahead > 0 and stage in dict(host) else []
        for kind, takes in kinds:
            work[stage].append((kind, free[stage], free[stage] + takes))
            free[stage] += takes
        peer = stage + ahead
        if 0 <= peer < stages:
            end = max(free[stage], free[peer]) + dict(links).get((stage, peer), MOVE)
            work[stage].append(("send", peer, free[stage], end))
            work[peer].append(("recv", stage, free[peer], end))
            free[stage] = free[peer] = end
    return work


def run_of(work, blocks=(), *, is_synced=False):
    """The run of ranks with this work; `blocks` are those of each rank's kernels, if they are known."""
    sizes = blocks or [None] * len(work)
    traces = [
        trace_of(rank, len(work), mine, blocks=sizes[rank], is_synced=is_synced) for rank, mine in enumerate(work)
    ]
    return Ranks("r", tuple(Member(f"rank{i}", "1", 0, summary(trace)) for i, trace in enumerate(traces)))


def length_of(work):
    """When the last rank is done."""
    return max(end for of_rank in work for *_, end in of_rank)


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
    assert rows["bubble_ns"].to_list() == steps["exposed_wait_ns"].to_list()
    assert (rows["waits_for_ns"].fill_null(0) <= rows["bubble_ns"]).all()
    assert first["waits_for"].to_list() == [1] * 3
    assert set(rows.filter(rank=stages - 1)["waits_for"]) == {stages - 2}


def test_a_receive_that_lasts_longer_than_its_send_waits_for_the_stage_before():
    """One forward pass: the second stage waits while the first one computes."""
    first = [("compute", 10_000, 910_000), ("send", 1, 910_000, 950_000)]
    second = [("recv", 0, 5_000, 950_000), ("compute", 950_000, 990_000)]
    run = run_of([first, second])
    steps = RUN_VIEWS["rank_steps"].run(run).filter(rank=1)
    assert steps.select("exposed_wait_ns", "exposed_transfer_ns").rows() == [(905_000, 40_000)] * 3
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
    assert rows["bubble_ns"].to_list() == [779_000] * 3  # the last 1 000 of its exposed time move the second gradient


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
    work, even = gpipe(3, micro_batches, pass_ns, 2 * pass_ns, slow=slow), round(pass_ns * (2 + sum(slow.values())) / 3)
    (row,) = RUN_VIEWS["run_advice"].run(run_of(work)).rows(named=True)
    less = length_of(work) - length_of(gpipe(3, micro_batches, even, 2 * even))
    assert row["saving_ns"] == pytest.approx(less, rel=0.03)
    assert f"Stage {min(slow)} computes for " in row["evidence"]


def advice_of(run):
    return RUN_VIEWS["run_advice"].run(run).rows(named=True)


@pytest.mark.parametrize("stages", [2, 4])
def test_a_stage_with_equal_work_that_computes_longer_has_a_slower_device(stages):
    work = in_one_stream(stages, 6, slow={1: 1.3})
    row, bubble = advice_of(run_of(work, [64] * stages, is_synced=True))
    assert (row["rule"], row["filter"], row["view"], row["confidence"]) == ("straggler", "rank1", "pipeline", "medium")
    assert row["title"].startswith("Rank 1 (stage 1) computes 54 µs longer in each step: ")
    assert row["evidence"].endswith("on inputs as large: its device is slower.")
    assert row["action"].startswith("Compare its device's clock")
    assert row["saving_ns"] == pytest.approx(length_of(work) - length_of(in_one_stream(stages, 6)), rel=0.03)
    assert bubble["action"].startswith("Begin with stage 1. Use more micro-batches")
    assert bubble["saving_ns"] == pytest.approx(180_000 * (stages - 1) / 6, rel=0.03)
    (heavy,) = advice_of(run_of(in_one_stream(stages, 6, slow={1: 1.8}), [64, 128, 64, 64][:stages], is_synced=True))
    assert heavy["action"] == "Move layers from stage 1, which computes longest, to the others."


@pytest.mark.parametrize("late", [0, 2])
def test_what_the_host_of_a_stage_takes_longer_is_no_bubble_of_the_schedule(late):
    work = in_one_stream(3, 6, host={late: 5_000})
    row, bubble = advice_of(run_of(work, is_synced=True))
    assert row["title"].startswith(f"Rank {late} (stage {late}) spends 30 µs longer on the host in each step: ")
    assert row["saving_ns"] == pytest.approx(length_of(work) - length_of(in_one_stream(3, 6)), rel=0.03)
    assert bubble["saving_ns"] == pytest.approx(180_000 * 2 / 6, rel=0.03)
    assert bubble["action"].startswith(f"Begin with stage {late}. Use more micro-batches")
    assert f" Without what stage {late} adds, " in bubble["evidence"]


def test_a_stage_that_is_idle_when_no_other_one_waits_for_it_is_not_late():
    """The last stage is done with its backward passes first; the steps of all end at once."""
    work = in_one_stream(3, 6)
    work[2].append(("host", work[2][-1][-1], work[2][-1][-1] + 40_000))
    (row,) = advice_of(run_of(work, is_synced=True))
    assert row["rule"] == "pipeline"


def test_a_late_stage_of_two_ranks_is_named_if_both_are_late():
    """Ranks 0 and 2 are the first stage of two pipelines, ranks 1 and 3 the second one."""

    def run_with(*late):
        work = []
        for first in (0, 2):
            pair = in_one_stream(2, 6, host=[(rank - first, 5_000) for rank in late if first <= rank < first + 2])
            work += [[(kind, *(peer + first for peer in rest[:-2]), *rest[-2:]) for kind, *rest in own] for own in pair]
        return run_of(work, is_synced=True)

    both, one = (advice_of(run_with(*late)) for late in ((1, 3), (1,)))
    assert run_with(1, 3).stages["stage"].to_list() == [0, 1, 0, 1]
    assert [row["rule"] for row in both] == ["straggler", "straggler", "pipeline"]
    assert both[0]["title"].startswith("Rank 1 (stage 1) ")
    assert "rank 3 is late, too, and both as fast as the others save" in both[0]["title"]
    assert [row["filter"] for row in one] == ["rank1", None]
    assert one[0]["title"].startswith("Rank 1 spends")
    assert one[1]["action"].startswith("Begin with stage 1. ")


def test_a_slow_link_between_stages_saves_what_it_takes_longer_than_others():
    work = in_one_stream(4, 6, links={(1, 2): 8_000})
    row, bubble = advice_of(run_of(work, is_synced=True))
    assert (row["rule"], row["filter"]) == ("slow_link", "rank 1 → rank 2")
    assert row["saving_ns"] == pytest.approx(length_of(work) - length_of(in_one_stream(4, 6)), rel=0.03)
    assert bubble["saving_ns"] == pytest.approx(180_000 * 3 / 6, rel=0.03)
    assert bubble["action"].startswith("Begin with the link rank 1 → rank 2. Use more micro-batches")


def test_two_stages_of_an_interleaved_schedule_have_chunks():
    run = run_of(gpipe(2, 4, chunks=2, group=2), is_synced=True)
    assert (run.pipeline.micro_batches, run.pipeline.chunks) == (4, 2)
    (row,) = advice_of(run)
    assert "2 equal stages of 2 chunks each with 4 micro-batches have bubbles of 11.1 %." in row["evidence"]
    assert row["action"] == "Use more micro-batches per step: they make the bubble smaller."


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("ssrsrs" + "srs" * 2 + "rsr" * 2 + "rsrsrr", (4, 2)),  # 1F1B of two chunks
        ("s" + "sr" * 11 + "r", (12, 1)),  # 1F1B
        ("s" * 6 + "r" * 6, (6, 1)),  # GPipe
        ("srs" + "sr" * 4 + "r", (6, 1)),  # none that is known
    ],
)
def test_the_order_of_transfers_between_two_stages_shows_chunks(order, expected):
    kinds = {"s": ("send", "recv"), "r": ("recv", "send")}
    first, second = (
        [(kinds[one][rank], 1 - rank, 10_000 * (i + 1), 10_000 * (i + 1) + MOVE) for i, one in enumerate(order)]
        for rank in range(2)
    )
    pipeline = run_of([first, second]).pipeline
    assert (pipeline.micro_batches, pipeline.chunks) == expected
