"""Which allocation a release belongs to, what is alive when, and how high memory stood."""

import pytest

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.measures.memory.allocations import FATES, alive_at, allocations, askers
from kinetoscope_tb.measures.memory.levels import device_memories
from support.build import TraceBuilder, same

GPU = {"Device Type": 1, "Device Id": 0}


def allocations_of(builder):
    frame = allocations(device_memories(builder.build()))
    return frame.with_columns(fate=frame["fate"].map_elements(lambda fate: FATES[fate], str))


def levels(builder):
    (memory,) = device_memories(builder.build())
    return memory.before_bytes, memory.allocated_bytes.tolist(), memory.is_relative


def test_a_release_belongs_to_the_last_allocation_of_its_address():
    builder = TraceBuilder().memory(8, 1).memory(4, 2, address=2).memory(-8, 5).memory(16, 6).memory(-16, 9)
    same(
        allocations_of(builder),
        """
        device  fate      size_bytes  allocated_ns  released_ns
        cpu     released  8           0         4
        cpu     never released       4           1         -1
        cpu     released  16          5         8
        """,
    )


def test_what_is_unmatched_is_kept_and_told_apart():
    builder = TraceBuilder().memory(-8, 1).memory(4, 2).memory(6, 5).op("a", 0, 9)
    same(
        allocations_of(builder),
        """
        fate     size_bytes  allocated_ns  released_ns
        allocated earlier     8           -1        1
        address reused   4           2         5
        never released      6           5         -1
        """,
    )


def test_each_device_has_addresses_of_its_own():
    other = {"Device Type": 1, "Device Id": 1}
    builder = TraceBuilder().memory(8, 1, **GPU).memory(4, 2, **other).memory(2, 3).memory(-8, 4, **GPU).op("a", 0, 9)
    same(
        allocations_of(builder),
        """
        device  fate      size_bytes  allocated_ns  released_ns
        cuda:0  released  8           1         4
        cuda:1  never released       4           2         -1
        cpu     never released       2           3         -1
        """,
    )


@pytest.mark.parametrize(
    ("number", "name"),
    [(0, "cpu"), (1, "cuda:3"), (6, "hip:3"), (12, "xpu:3"), (20, "privateuseone:3"), (77, "type 77:3")],
)
def test_every_type_of_device_has_its_name(number, name):
    (memory,) = device_memories(TraceBuilder().memory(8, 1, **{"Device Type": number, "Device Id": 3}).build())
    assert memory.name == name


def test_a_record_in_the_form_of_a_range_is_the_same():
    row = {"Device Type": 0, "Device Id": -1, "Addr": 1}
    builder = (
        TraceBuilder()
        .event("cpu_instant_event", "[memory]", 1, 0, Bytes=8, **row)
        .event("cpu_instant_event", "[memory]", 5, 0, Bytes=-8, **row)
    )
    same(allocations_of(builder), "fate      size_bytes\nreleased  8")


def test_records_without_an_address_match_nothing_but_have_levels():
    builder = TraceBuilder().memory(8, 1, address=0).memory(-8, 5, address=0)
    same(
        allocations_of(builder),
        """
        fate    size_bytes  allocated_ns  released_ns
        no address   8           0         -1
        no address   8           -1        4
        """,
    )
    assert levels(builder) == (0, [8, 0], True)


def test_rows_of_several_threads_count_in_order_of_time():
    builder = TraceBuilder().memory(-8, 5, thread=2).memory(8, 1, thread=1)
    same(allocations_of(builder), "fate      allocated_ns  released_ns\nreleased  0         4")


def test_totals_tell_the_order_of_records_of_one_instant():
    builder = (
        TraceBuilder()
        .memory(8, 1, **{"Total Allocated": 100})
        .memory(16, 5, thread=1, **{"Total Allocated": 108})
        .memory(-8, 5, thread=2, **{"Total Allocated": 92})
    )
    assert levels(builder) == (92, [100, 92, 108], False)
    same(
        allocations_of(builder),
        """
        fate      size_bytes
        released  8
        never released       16
        """,
    )


def test_of_one_instant_the_release_of_what_is_there_comes_first():
    builder = TraceBuilder().memory(8, 1).memory(16, 5, thread=1).memory(-8, 5, thread=2).memory(-16, 7)
    assert allocations_of(builder)["fate"].to_list() == ["released", "released"]


def test_missing_and_negative_totals_follow_from_their_neighbors():
    builder = (
        TraceBuilder()
        .memory(1, 1)
        .memory(2, 2, address=2, **{"Total Allocated": 10})
        .memory(4, 3, address=3, **{"Total Allocated": -5})
        .memory(-2, 4, address=2)
    )
    assert levels(builder) == (7, [8, 10, 14, 12], False)


def test_totals_that_are_always_zero_are_none():
    builder = TraceBuilder().memory(8, 1, **{"Total Allocated": 0, "Total Reserved": 0})
    (memory,) = device_memories(builder.build())
    assert (memory.is_relative, memory.reserved_bytes.tolist()) == (True, [NONE])


def test_the_peak_is_the_first_record_after_which_the_most_was_allocated():
    builder = TraceBuilder().memory(8, 1).memory(8, 2, address=2).memory(-8, 3).memory(8, 4, address=3).memory(-8, 5)
    (memory,) = device_memories(builder.build())
    assert memory.peak() == 1
    assert memory.peak(from_ns=2) == 1  # the level that the range begins with is the one before its first record
    assert memory.peak(from_ns=3, to_ns=4) == 3
    assert memory.peak(from_ns=90) == 4


def test_the_peak_may_lie_before_the_first_record():
    (memory,) = device_memories(TraceBuilder().memory(-8, 1, **{"Total Allocated": 4}).build())
    assert (memory.peak(), memory.before_bytes) == (-1, 12)


def test_a_failed_request_takes_nothing():
    builder = TraceBuilder().memory(8, 1, **GPU).out_of_memory(1 << 40, 2).op("a", 0, 9)
    assert levels(builder) == (0, [8, 8], True)
    same(
        allocations_of(builder),
        """
        fate    size_bytes     allocated_ns
        never released     8              1
        out of memory   1099511627776  -1
        """,
    )


def test_alive_is_what_was_taken_and_neither_released_nor_retaken_by_then():
    builder = TraceBuilder().memory(1, 1).memory(2, 2, address=2).memory(-1, 3).memory(4, 4, address=2)
    frame = allocations_of(builder)
    alive = [alive_at(frame, record)["size_bytes"].to_list() for record in range(-1, 4)]
    assert alive == [[], [1], [1, 2], [2], [4]]


def test_who_asks_is_what_called_the_operator_that_only_allocates():
    trace = (
        TraceBuilder()
        .op("aten::add", 0, 50)
        .op("aten::empty_like", 10, 20)
        .op("aten::empty_strided", 12, 10)
        .op("aten::empty_like", 60, 20)
        .annotation("aten::empty_strided", 61, 18)
        .op("aten::empty", 62, 10)
        .build()
    )
    names = trace.host_events["name"].cast(str).to_list()
    rows = trace.host_events["start_ns"].to_list()
    operators = [names[row] if row != NONE else None for row in askers(trace)]
    assert dict(zip(rows, operators, strict=True)) == {
        0: "aten::add",
        10: "aten::add",
        12: "aten::add",
        60: "aten::empty_like",
        61: "aten::empty_like",
        62: "aten::empty_like",
    }
