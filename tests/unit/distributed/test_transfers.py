"""Sends and receives: matched by number or in order, alone where rows are lost, and done together by one kernel."""

import pytest

from kinetoscope_tb.diagnostics.run import diagnose_run
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.views import RUN_VIEWS
from support.build import TraceBuilder

KERNEL = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
STEPS = 3


def trace_of(rank, calls, world=2, **top):
    """A trace whose steps hold these calls: (step, kind, peer, number, elements); with a kernel each."""
    config = [{"pg_name": "pp", "pg_desc": "", "pg_size": world, "ranks": list(range(world))}]
    metadata = {"backend": "nccl", "rank": rank, "world_size": world, "pg_config": config}
    trace = TraceBuilder(distributedInfo=metadata, **top)
    for step in range(STEPS):
        trace.step(step, step * 10_000, 10_000)
    for i, (step, kind, peer, number, elements) in enumerate(calls):
        at = step * 10_000 + 1000 + 500 * i % 8000
        arguments = {"Collective name": kind, "dtype": "Float", "In msg nelems": elements, "Out msg nelems": elements}
        side = "Dst Rank" if kind == "send" else "Src Rank"
        seq = {} if number is None else {"Seq": number}
        trace.op("record_param_comms", at, 100, **arguments, **{"Process Group Name": "pp", side: peer}, **seq)
        trace.launch(at + 10, 10, i + 1)
        trace.kernel(KERNEL, at + 50, 100 + rank, i + 1, stream=20)
    return trace


def run_of(*traces):
    return Ranks("r", tuple(Member(f"rank{i}", "1", 0, summary(trace.build())) for i, trace in enumerate(traces)))


def transfers(run):
    """(step, bytes, number) of each transfer."""
    rows = run.matches.select("kind", "step", "bytes", "nth", "members").rows()
    assert {(kind, members) for kind, *_, members in rows} <= {("transfer", 2)}
    return [(step, size, nth) for _, step, size, nth, _ in rows]


def both_ways(kinds, steps=range(STEPS), is_numbered=True):
    """In each step two transfers there and one back, of a size of its own."""
    calls, number = [], 0
    for step in range(STEPS):
        for kind, size in zip(kinds, (1, 2, 3), strict=True):
            number += 1
            if step in steps:
                calls.append((step, kind, None, number if is_numbered else None, size + 10 * step))
    return calls


def ends(kinds, peer, lost=(), **more):
    calls = [(step, kind, peer, number, size) for step, kind, _, number, size in both_ways(kinds, **more)]
    return [call for i, call in enumerate(calls) if i not in lost]


SENDER, RECEIVER = ("send", "send", "recv"), ("recv", "recv", "send")


@pytest.mark.parametrize("is_numbered", [True, False])
def test_sends_meet_their_receives(is_numbered):
    run = run_of(
        trace_of(0, ends(SENDER, 1, is_numbered=is_numbered)), trace_of(1, ends(RECEIVER, 0, is_numbered=is_numbered))
    )
    sizes = [size for _, size, _ in transfers(run)]
    assert sorted(sizes) == sorted(4 * (size + 10 * step) for step in range(STEPS) for size in (1, 2, 3))
    assert RUN_VIEWS["collectives"].run(run)["operation"].unique().to_list() == ["transfer"]


def test_by_number_a_lost_send_costs_its_own_receive_alone():
    run = run_of(trace_of(0, ends(SENDER, 1, lost=(3,))), trace_of(1, ends(RECEIVER, 0)))
    assert sorted(nth for *_, nth in transfers(run)) == [1, 2, 3, 5, 6, 7, 8, 9]
    assert run.calls.filter(run.calls["match"].is_null()).select("rank", "nth").rows() == [(1, 4)]


def test_in_order_a_lost_send_costs_its_step_s_transfers_that_way():
    run = run_of(
        trace_of(0, ends(SENDER, 1, lost=(3,), is_numbered=False)), trace_of(1, ends(RECEIVER, 0, is_numbered=False))
    )
    assert len(transfers(run)) == 9 - 2


def test_numbers_that_count_other_things_on_both_ranks_are_not_trusted():
    """In a pipeline of three the middle rank does twice as many, so its numbers are others."""
    first = [(step, "send", 1, step + 1, 10 + step) for step in range(STEPS)]
    middle = [
        (step, kind, peer, 2 * step + place + 1, 10 + step)
        for step in range(STEPS)
        for place, (kind, peer) in enumerate([("recv", 0), ("send", 2)])
    ]
    last = [(step, "recv", 1, step + 1, 10 + step) for step in range(STEPS)]
    run = run_of(*(trace_of(rank, calls, world=3) for rank, calls in enumerate((first, middle, last))))
    matched = run.calls.group_by("match").agg("rank", "step_name")
    assert run.matches.height == 2 * STEPS
    assert all(len(set(steps)) == 1 and len(set(ranks)) == 2 for _, ranks, steps in matched.rows())


def coalesced(rank, peer):
    """batch_isend_irecv: a send and a receive, and one kernel at the end, which does both."""
    trace = trace_of(rank, [])
    arguments = {"dtype": "Float", "In msg nelems": 8, "Out msg nelems": 8, "Process Group Name": "pp", "Seq": 1}
    comms = "record_param_comms"
    trace.op(comms, 1000, 5, **{"Collective name": "startcoalescing", "Process Group Name": "pp"})
    trace.op(comms, 1100, 50, **arguments, **{"Collective name": "send", "Dst Rank": peer})
    trace.op(comms, 1200, 50, **arguments, **{"Collective name": "recv", "Src Rank": peer})
    trace.op(comms, 1300, 100, **{"Collective name": "endcoalescing", "Process Group Name": "pp"})
    return trace.launch(1310, 10, 7).kernel(KERNEL, 2000, 300, 7, stream=20)


def test_transfers_that_one_kernel_does_together_are_matched_and_not_taken_for_lost():
    run = run_of(coalesced(0, 1), coalesced(1, 0))
    made = run.calls.select("kind", "bytes", "dur_ns").rows()
    assert made == 2 * [("send", 32, -1), ("recv", 32, -1), ("send_recv", -1, 300)]
    assert run.matches.filter(run.matches["kind"] == "transfer").height == 2
    assert run.traffic.select("member", "peer", "bytes").rows() == [(0, 1, 32), (1, 0, 32)]
    assert "transfers_lost" not in [diagnostic.rule for diagnostic in diagnose_run(run)]


def test_the_place_in_the_mesh_is_told():
    run = run_of(
        trace_of(0, [], kinetoscope={"mesh": {"dp": 0, "tp": 1}}),
        trace_of(1, [], kinetoscope={"mesh": {"dp": "0", "tp": None}}),
    )
    assert RUN_VIEWS["topology"].run(run)["mesh"].to_list() == ["dp 0, tp 1", None]
