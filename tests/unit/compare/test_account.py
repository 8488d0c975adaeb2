"""What a step's time consists of adds up to it, and each row counts what its docstring says."""

from kinetoscope_tb.compare.account import account_of_typical_step
from support.build import TraceBuilder


def account(builder):
    return account_of_typical_step(builder.build())


def idle_ns(found):
    """All idle time."""
    return int((found.gaps["end_ns"] - found.gaps["start_ns"]).sum())


def work(found):
    """What each row counts, in order."""
    return dict(zip(found.rows.tolist(), found.work_ns.tolist(), strict=True))


def test_kernels_that_run_at_once_are_overlap():
    found = account(TraceBuilder().step(1, 0, 1000).kernel("a", 100, 300).kernel("b", 200, 300, stream=8))
    assert (found.length_ns, work(found), found.overlaps_ns.tolist()) == (1000, {0: 300, 1: 300}, [0, 200])
    assert idle_ns(found) == 600


def test_communication_counts_while_nothing_computes_and_copies_while_nothing_else_runs():
    trace = TraceBuilder().step(1, 0, 1000).kernel("a", 100, 300)
    trace.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 200, 400, stream=8).memcpy(500, 200, stream=9)
    found = account(trace)
    assert work(found) == {0: 300, 1: 200, 2: 100}
    assert (int(found.overlaps_ns.sum()), idle_ns(found)) == (0, 400)


def test_of_two_collectives_the_one_that_began_first_counts():
    trace = TraceBuilder().step(1, 0, 1000)
    for at, stream in ((100, 8), (200, 9), (250, 10)):
        trace.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at, 300, stream=stream)
    assert work(account(trace)) == {0: 300, 1: 100, 2: 50}


def test_rows_count_within_the_step_only():
    trace = TraceBuilder()
    for number in range(3):
        trace.step(number, 1000 * number, 1000).op("aten::mm", 1000 * number + 1, 900)
        trace.launch(1000 * number + 10, 10, number + 1).kernel("a", 1000 * number + 300, 900, number + 1)
    found = account(trace.window(0, 4000))
    assert found.length_ns == int(found.work_ns.sum()) - int(found.overlaps_ns.sum()) + idle_ns(found)


def test_the_typical_step_is_the_median():
    trace = TraceBuilder()
    for number, (at, dur) in enumerate([(0, 500), (500, 100), (600, 300)]):
        trace.step(number, at, dur).op("aten::mm", at, dur // 2)
    found = account(trace.window(0, 1000))
    assert (found.step, found.length_ns, idle_ns(found)) == ("2", 300, 0)
