"""Memory against a simulated allocator that knows what belongs together."""

from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.measures.memory.allocations import FATES, alive_at, allocations
from kinetoscope_tb.measures.memory.levels import device_memories
from kinetoscope_tb.views import VIEWS
from support import oracle
from support.build import TraceBuilder
from support.examples import examples
from support.strategies import builders

few = examples(80)

requests = st.tuples(
    st.integers(0, 3),  # which address
    st.integers(1, 9),  # how much, if it is free then
    st.integers(0, 2),  # how much later than the one before: many fall on one instant
    st.integers(1, 3),  # by which thread
)


@st.composite
def histories(draw, recorded=None):
    """What an allocator did, in order: (time, thread, address, change, total), and whether that was recorded."""
    held, total, now, history = {}, draw(st.integers(0, 50)), 1, []
    for address, size, later, thread in draw(st.lists(requests, min_size=1, max_size=30)):
        change = -held.pop(address) if address in held else size
        seen = {total - change for (at, _, _, change, total), _ in history if at == now}
        now += later or len(history) == 1 or total in seen  # else the order within the instant can't be known
        if change > 0:
            held[address] = size
        total += change
        history.append(((now, thread, address, change, total), recorded is None or draw(recorded)))
    return history


def traced(history, *, has_totals=True):
    """The records thread by thread, as kineto writes them."""
    builder = TraceBuilder().op("a", 0, 99)
    for at, thread, address, change, total in sorted(history, key=lambda record: record[1]):
        totals = {"Total Allocated": total} if has_totals else {}
        builder.memory(change, at, thread=thread, address=address + 1, **totals)
    return builder.build()


def written(history, *, has_totals=True):
    return device_memories(traced(history, has_totals=has_totals))


def ends(found):
    rows = found.select("fate", "size_bytes", "allocated_ns", "released_ns").rows()
    return sorted((FATES[fate], size, taken, gone) for fate, size, taken, gone in rows)


@few
@given(histories())
def test_pairs_are_the_allocator_s_whatever_the_order_in_the_file(history):
    records = [record for record, _ in history]
    assert ends(allocations(written(records))) == sorted(oracle.lifetimes(records))


@few
@given(histories(recorded=st.booleans()))
def test_what_was_not_recorded_is_told_apart(history):
    records = [(2 * i, *record[1:]) for i, (record, is_recorded) in enumerate(history) if is_recorded]
    assert ends(allocations(written(records, has_totals=False))) == sorted(oracle.lifetimes(records))


@few
@given(histories(), st.booleans())
def test_the_peak_is_the_highest_level_and_what_is_alive_then_adds_up_to_it(history, has_totals):
    records = [(2 * i, *record[1:]) for i, (record, _) in enumerate(history)]
    (memory,) = written(records, has_totals=has_totals)
    before = records[0][4] - records[0][3] if has_totals else 0
    totals = [before, *(before + sum(r[3] for r in records[: i + 1]) for i in range(len(records)))]
    assert [memory.before_bytes, *memory.allocated_bytes] == totals
    peak = memory.peak()
    assert totals[peak + 1] == max(totals)
    assert totals.index(max(totals)) == peak + 1
    assert before + alive_at(allocations([memory]), peak)["size_bytes"].sum() == max(totals)


@few
@given(
    builders(),
    st.one_of(st.none(), st.integers(0, 90)),
    st.one_of(st.none(), st.integers(0, 90)),
    st.sampled_from(["operator", "module"]),
)
def test_what_holds_of_the_memory_of_any_trace(builder, from_ns, to_ns, by):
    trace = builder.build()
    assert_operators_have_what_a_walk_up_from_each_record_finds(trace, from_ns, to_ns)
    assert_all_views_of_memory_tell_the_same(trace, from_ns, by)
    if not VIEWS["gpus"].is_missing(trace):
        assert_activity_over_time_has_the_means_of_the_devices(trace)


def assert_operators_have_what_a_walk_up_from_each_record_finds(trace, from_ns, to_ns):
    table = VIEWS["memory_by_operator"].run(trace, from_ns=from_ns, to_ns=to_ns)
    assert sorted(table.drop("calls").rows()) == sorted(oracle.memory_by_operator(trace, from_ns, to_ns))


def assert_all_views_of_memory_tell_the_same(trace, from_ns, by):
    devices = VIEWS["memory_devices"].run(trace, from_ns=from_ns)
    alive = VIEWS["memory_peak"].run(trace, by=by, from_ns=from_ns)
    curve = VIEWS["memory_curve"].run(trace, from_ns=from_ns)
    operators = VIEWS["memory_by_operator"].run(trace, from_ns=from_ns)
    for device, peak, begin, end in devices.select(
        "device", "peak_allocated_bytes", "begin_allocated_bytes", "end_allocated_bytes"
    ).rows():
        of = pl.col("device") == device
        assert alive.filter(of)["alive_bytes"].sum() == peak
        assert curve.filter(of)["allocated_bytes"].max() == peak
        assert curve.filter(of)["allocated_bytes"].to_list()[0] == begin
        assert operators.filter(of)["self_size_increase_bytes"].sum() == end - begin


def assert_activity_over_time_has_the_means_of_the_devices(trace):
    parts = VIEWS["gpu_activity"].run(trace)
    for device, share in VIEWS["gpus"].run(trace).select("device", "utilization_frac").rows():
        rows = parts.filter(pl.col("device") == device)
        busy = (rows["utilization_frac"] * rows["dur_ns"]).sum()
        assert busy == pytest.approx((share or 0.0) * rows["dur_ns"].sum())


def bounds(rows, begin, end):
    """The lowest and the highest level that holds at some instant from begin up to end; rows are (time, level)."""
    before = [level for time, level in rows if time <= begin][-1:]
    levels = [level for time, level in rows if begin < time < end]
    return min(before + levels), max(before + levels)


@few
@given(histories(), st.integers(1, 5))
def test_a_curve_that_is_reduced_keeps_the_bounds_of_each_part(history, parts):
    trace = traced([record for record, _ in history])
    whole = VIEWS["memory_curve"].run(trace)
    with patch("kinetoscope_tb.views.memory.memory_curve.DRAWN", parts):
        reduced = VIEWS["memory_curve"].run(trace)
    levels = [table.select("time_ns", "allocated_bytes").rows() for table in (whole, reduced)]
    end = whole["time_ns"].max()
    length = -(-end // parts)
    for begin in range(0, end, length):
        assert len({bounds(rows, begin, begin + length) for rows in levels}) == 1
    marked = [table.filter(pl.col("event") == "peak").drop("first_byte").rows() for table in (whole, reduced)]
    assert marked[0] == marked[1] != []
    assert reduced.height <= 4 * parts + 6 or reduced.height == whole.height
