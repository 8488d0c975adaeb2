"""The views of memory, by hand."""

import pytest

from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.views.memory.memory_by_operator import memory_by_operator
from kinetoscope_tb.views.memory.memory_curve import memory_curve
from kinetoscope_tb.views.memory.memory_devices import memory_devices
from kinetoscope_tb.views.memory.memory_events import memory_events
from kinetoscope_tb.views.memory.memory_peak import memory_peak
from support.build import TraceBuilder, same

GPU = {"Device Type": 1, "Device Id": 0}


def on_gpu(allocated, reserved):
    return {**GPU, "Total Allocated": allocated, "Total Reserved": reserved}


def training():
    """100 bytes are there before; 8 live on, 40 are released, 100 are released, and 1000 don't fit."""
    return (
        TraceBuilder(deviceProperties=[{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 1000}])
        .window(0, 100)
        .op("aten::linear", 10, 40)
        .op("aten::empty", 12, 10)
        .memory(8, 15, address=1, **on_gpu(108, 200))
        .memory(40, 30, address=2, **on_gpu(148, 250))
        .op("aten::relu_", 60, 10)
        .memory(-40, 65, address=2, **on_gpu(108, 250))
        .memory(-100, 70, address=3, **on_gpu(8, 250))
        .op("aten::mm", 80, 10)
        .out_of_memory(1000, 85, **on_gpu(8, 250))
        .build()
    )


def test_the_curve_goes_from_level_to_level_and_marks_the_peak_and_what_failed():
    same(
        memory_curve(training()),
        """
        device  time_ns  allocated_bytes  reserved_bytes  unused_bytes  event          is_relative
        cuda:0  0        100              -               -             -              False
        cuda:0  15       108              200             92            -              False
        cuda:0  30       148              250             102           peak           False
        cuda:0  65       108              250             142           -              False
        cuda:0  70       8                250             242           -              False
        cuda:0  85       8                250             242           out of memory  False
        cuda:0  100      8                250             242           -              False
        """,
    )


def test_a_range_of_the_curve_begins_and_ends_with_the_levels_there():
    same(
        memory_curve(training(), from_ns=40, to_ns=66),
        """
        time_ns  allocated_bytes  event
        40       148              peak
        65       108              -
        66       108              -
        """,
    )


def test_a_range_without_records_is_a_level():
    assert memory_curve(training(), from_ns=90, to_ns=95)["allocated_bytes"].to_list() == [8, 8]
    assert memory_curve(training(), from_ns=2, to_ns=4)["allocated_bytes"].to_list() == [100, 100]


def test_a_curve_of_many_records_keeps_each_peak_and_each_low():
    builder = TraceBuilder().window(0, 10_000)
    for i in range(3000):
        size = 900 if i == 1500 else 10
        builder.memory(size, 3 * i, address=2).memory(-size, 3 * i + 1, address=2)
    table = memory_curve(builder.build())
    assert table.height < 2 * 3000
    peak = table.filter(table["event"] == "peak")
    assert peak.select("time_ns", "allocated_bytes").rows() == [(4500, 900)]
    assert set(table["allocated_bytes"]) == {0, 10, 900}


def test_without_totals_the_curve_is_the_change_and_says_so():
    table = memory_curve(TraceBuilder().memory(8, 1).memory(-20, 5, address=2).op("a", 0, 9).build())
    assert table["allocated_bytes"].to_list() == [0, 8, -12, -12]
    assert table["is_relative"].all()


def test_the_devices_tell_how_near_they_came_to_their_limits():
    same(
        memory_devices(training()),
        """
        device  name         memory_bytes  peak_allocated_bytes  peak_ns  peak_unused_bytes  peak_reserved_bytes  peak_reserved_frac
        cuda:0  NVIDIA H100  1000          148                   30       102                250                  0.25
        """,
    )
    same(
        memory_devices(training()),
        """
        begin_allocated_bytes  end_allocated_bytes  allocations  releases  failures  is_relative
        100                    8                    2            2         1         False
        """,
    )


def test_host_memory_has_no_size_of_a_gpu_and_nothing_reserved():
    trace = TraceBuilder(deviceProperties=[{"id": 0, "totalGlobalMem": 1000}]).memory(8, 1).build()
    table = memory_devices(trace)
    assert table.select("device", "memory_bytes", "peak_reserved_bytes", "peak_unused_bytes").rows() == [
        ("cpu", None, None, None)
    ]


def test_operators_take_and_release_themselves_and_with_those_inside():
    same(
        memory_by_operator(training()),
        """
        name           calls  size_increase_bytes  self_size_increase_bytes  allocations  self_allocations  allocation_bytes  self_allocation_bytes
        aten::linear   1      48                   40                        2            1                 48                40
        aten::empty    1      8                    8                         1            1                 8                 8
        aten::relu_    1      -40                  -40                       0            0                 0                 0
        [no operator]  -      -100                 -100                      0            0                 0                 0
        """,
    )


def test_all_calls_of_an_operator_count_also_those_that_took_nothing():
    trace = (
        TraceBuilder().op("a", 0, 9).memory(8, 1).op("a", 10, 9).op("b", 20, 9).op("a", 22, 2).op("c", 25, 2).build()
    )
    assert memory_by_operator(trace).select("name", "calls", "allocations").rows() == [("a", 3, 1)]


def test_in_a_range_the_records_in_it_and_the_calls_open_in_it_count():
    same(
        memory_by_operator(training(), from_ns=20, to_ns=66),
        """
        name          calls  size_increase_bytes  self_allocations
        aten::linear  1      40                   1
        aten::relu_   1      -40                  0
        """,
    )


def test_events_tell_who_asked_and_how_long_it_lived():
    same(
        memory_events(training()),
        """
        operator      size_bytes  allocated_ns  released_ns  lifetime_ns  outcome            allocated_in
        aten::mm      1000        85            -            -            out of memory      aten::mm
        -             100         -             70           -            allocated earlier  -
        aten::linear  40          30            65           35           released           aten::linear
        aten::linear  8           15            -            -            never released     aten::empty
        """,
    )


def test_a_release_without_an_address_names_no_requester():
    trace = TraceBuilder().op("aten::add", 0, 20).memory(64, 5, address=None).op("aten::relu_", 30, 20)
    trace = trace.memory(-64, 40, address=None).build()
    same(
        memory_events(trace),
        """
        operator   size_bytes  allocated_ns  released_ns  outcome     allocated_in
        aten::add  64          5             -            no address  aten::add
        -          64          -             40           no address  -
        """,
    )


@pytest.mark.parametrize(
    ("begin", "end", "sizes"),
    [(None, 20, [100, 8]), (66, None, [1000, 100, 8]), (40, 66, [100, 40, 8]), (86, 90, [8]), (71, 80, [8])],
)
def test_events_of_a_range_are_those_that_were_there_in_it(begin, end, sizes):
    assert memory_events(training(), from_ns=begin, to_ns=end)["size_bytes"].to_list() == sizes


def test_of_very_many_events_the_smaller_ones_are_one_row():
    builder = TraceBuilder().op("a", 0, 90_000)
    for i in range(10_002):
        builder.memory(2 if i else 1, i, address=i + 1)
    trace = builder.build()
    table = memory_events(trace)
    assert table.height == 10_000
    assert table.select("operator", "size_bytes").row(-1) == ("[3 smaller ones]", 5)
    assert memory_events(trace, rows="all").height == 10_002


def test_the_rows_of_the_peak_add_up_to_it():
    same(
        memory_peak(training()),
        """
        device  owner                             alive_bytes  alive_frac           allocations  largest_bytes
        cuda:0  [allocated before the recording]  100          0.6756756756756757   -       -
        cuda:0  aten::linear                      48           0.32432432432432434  2       40
        """,
    )


def test_the_peak_of_a_range_is_the_highest_level_in_it():
    assert memory_peak(training(), from_ns=66, to_ns=69).select("owner", "alive_bytes").rows() == [
        ("[allocated before the recording]", 100),
        ("aten::linear", 8),
    ]


def test_what_is_alive_at_the_peak_belongs_to_the_module_that_asked_for_it():
    trace = (
        TraceBuilder()
        .python("nn.Module: Net_0", 0, 50, **{"Python module id": 0, "Python id": 1})
        .python("nn.Module: Linear_0", 10, 20, **{"Python module id": 1, "Python id": 2, "Python parent id": 1})
        .op("aten::linear", 12, 10)
        .memory(8, 15)
        .op("aten::add", 35, 10)
        .memory(4, 36, address=2)
        .op("aten::mul", 60, 10)
        .memory(2, 61, address=3)
        .memory(1, 80, address=4)
        .build()
    )
    same(
        memory_peak(trace, by="module"),
        """
        owner        alive_bytes
        Linear_0     8
        Net_0        4
        [no module]  3
        """,
    )
    assert memory_peak(trace)["owner"].to_list() == ["aten::linear", "aten::add", "aten::mul", "[no operator]"]


def test_releases_without_a_record_are_seen_in_the_peak():
    trace = (
        TraceBuilder()
        .memory(8, 1, address=1, **on_gpu(8, 10))
        .memory(20, 5, address=2, **on_gpu(22, 30))  # 6 bytes went unseen
        .build()
    )
    assert memory_peak(trace).select("owner", "alive_bytes", "alive_frac").rows() == [
        ("[no operator]", 28, None),  # more than the total: no share of it
        ("[released without a record]", -6, None),
    ]


def test_without_addresses_what_is_alive_is_unknown():
    trace = TraceBuilder().memory(8, 1, address=0).memory(8, 3, address=0).memory(-8, 5, address=0).build()
    assert memory_peak(trace).rows() == [("cpu", "[records without addresses]", 16, 1.0, None, None)]


@pytest.mark.parametrize(
    "view", ["memory_curve", "memory_devices", "memory_peak", "memory_by_operator", "memory_events"]
)
def test_each_view_shows_one_device_or_all(view):
    trace = TraceBuilder().op("a", 0, 9).memory(8, 1, **GPU).memory(4, 2).build()
    assert VIEWS[view].run(trace)["device"].unique(maintain_order=True).to_list() == ["cuda:0", "cpu"]
    assert VIEWS[view].run(trace, device="cpu")["device"].unique().to_list() == ["cpu"]
    assert VIEWS[view].run(trace, device="cuda:7").is_empty()
