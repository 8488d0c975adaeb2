"""How long a rank waits in collectives that overlap in time."""

import pytest

from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.views import RUN_VIEWS
from support.build import TraceBuilder

STEPS, STEP_NS = 3, 1000


def trace_of(rank, calls):
    """A trace whose steps hold calls of gloo on threads of its own: (kind, begin, duration)."""
    group = {"pg_name": "0", "pg_desc": "", "pg_size": 2, "ranks": [0, 1]}
    trace = TraceBuilder(distributedInfo={"backend": "gloo", "rank": rank, "world_size": 2, "pg_config": [group]})
    for step in range(STEPS):
        trace.step(step, step * STEP_NS, STEP_NS)
        for thread, (kind, begin, duration) in enumerate(calls, 2):
            trace.annotation(f"gloo:{kind}", step * STEP_NS + begin, duration, thread=thread)
    return summary(trace.build())


def waits(calls, *of_others):
    """The exposed wait of rank 0 in each step, in ns."""
    members = [Member(f"rank{rank}", "1", 0, trace_of(rank, mine)) for rank, mine in enumerate([calls, *of_others])]
    rows = RUN_VIEWS["rank_steps"].run(Ranks("r", tuple(members))).filter(rank=0)
    assert (rows["exposed_wait_ns"] + rows["exposed_transfer_ns"]).equals(
        rows["exposed_communication_ns"].rename("exposed_wait_ns")
    )
    return rows["exposed_wait_ns"].to_list()


@pytest.mark.parametrize(
    ("second", "wait"),
    [
        (("broadcast", 120, 400), 400),  # its wait of 370 lies in that of the first, of 400
        (("broadcast", 300, 330), 500),  # its wait of 300 ends 100 after that of the first
        (("broadcast", 600, 180), 550),  # one after the other
    ],
)
def test_time_in_which_several_collectives_wait_counts_once(second, wait):
    kind, begin, duration = second
    others = [("broadcast", 460, 30), (kind, begin + duration - 30, 30), ("all_reduce", 900, 20)]
    assert waits([("broadcast", 100, 430), second, ("all_reduce", 900, 20)], others) == [wait] * STEPS
