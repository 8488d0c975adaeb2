"""What holds of every trace, whatever is in it."""

import dataclasses

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.arrays.intervals import exclusive_lengths, union
from kinetoscope_tb.arrays.nesting import nest
from kinetoscope_tb.measures.time.breakdown import CATEGORIES, activities, breakdown
from kinetoscope_tb.trace import Trace
from kinetoscope_tb.views import VIEWS
from support import oracle
from support.build import TraceBuilder
from support.examples import examples
from support.strategies import builders, intervals

few = examples(60)


def pairs(items):
    return tuple(np.array([item[side] for item in items], np.int64) for side in (0, 1))


@given(st.lists(st.lists(intervals, max_size=6), min_size=1, max_size=4), st.lists(intervals, max_size=4))
def test_each_instant_counts_for_the_first_active_group(groups, windows):
    got = exclusive_lengths([pairs(group) for group in groups], *pairs(windows))
    assert [[int(part[nth]) for part in got] for nth in range(len(windows))] == [
        oracle.first_active(groups, window) for window in windows
    ]


@given(st.lists(intervals, max_size=12))
def test_a_union_is_sorted_disjoint_and_as_long_as_the_instants_it_covers(items):
    start, end = union(*pairs(items))
    assert (start < end).all()
    assert (start[1:] > end[:-1]).all()
    assert (end - start).sum() == oracle.busy(items)


@given(st.lists(intervals, max_size=30))
def test_the_parent_is_the_innermost_earlier_range_that_holds_it(items):
    items = sorted(items, key=lambda item: (item[0], -item[1]))
    start, end = pairs(items)
    parent, depth, _ = nest(np.zeros(start.size, np.int32), start, end)
    assert parent.tolist() == oracle.parents(items)
    assert all(depth[i] == (depth[p] + 1 if p >= 0 else 0) for i, p in enumerate(parent))


@few
@given(builders())
def test_what_holds_of_the_times_of_any_trace(builder):
    trace = builder.build()
    assert_the_parts_of_every_step_add_up_to_its_total(trace)
    assert_the_breakdown_counts_instant_by_instant(trace)
    assert_self_times_add_up_to_the_time_in_ranges(trace)
    for name in ("operators", "operators_by_shape"):
        assert VIEWS[name].run(trace)["device_self_ns"].sum() == trace.device_events["dur_ns"].sum()


def assert_the_parts_of_every_step_add_up_to_its_total(trace):
    table = VIEWS["steps"].run(trace)
    parts = [f"{name.lower().replace(' ', '_')}_ns" for name in CATEGORIES]
    assert table.select(pl.sum_horizontal(parts)).to_series().to_list() == table["total_ns"].to_list()
    assert table.select(pl.min_horizontal(parts)).to_series().min() >= 0


def assert_the_breakdown_counts_instant_by_instant(trace):
    active = activities(trace)
    groups = [list(zip(*(side.tolist() for side in active[name]), strict=True)) for name in CATEGORIES[:-1]]
    parts = np.array(list(breakdown(trace).values()))
    for i, (start, end) in enumerate(trace.steps.select("start_ns", "end_ns").rows()):
        assert parts[:, i].tolist() == oracle.first_active(groups, (start, end))


def assert_self_times_add_up_to_the_time_in_ranges(trace):
    for (thread,), ranges in trace.host_events.group_by("thread"):
        assert ranges["self_ns"].min() >= 0
        if "host_overlap" not in {diagnostic.rule for diagnostic in trace.diagnostics}:
            calls = trace.launches.filter(pl.col("thread") == thread)
            spent, busy = ranges["self_ns"].sum(), oracle.busy(spans_of(ranges))
            assert spent <= busy if calls.height else spent == busy


def spans_of(frame):
    return [(s, s + d) for s, d in frame.select("start_ns", "dur_ns").rows()]


@few
@given(builders(), st.randoms(use_true_random=False))
def test_the_order_of_rows_in_the_file_changes_no_number(builder, random):
    before = tables(distinct(builder).build())
    random.shuffle(builder.events)
    assert tables(builder.build()) == before


def distinct(builder: TraceBuilder) -> TraceBuilder:
    """Without rows whose order only the file decides.

    They are host ranges of one thread, and memory, with the same times, and rows of devices that begin at once.
    """
    seen = set()
    kept = []
    for event in builder.events:
        key = (event["cat"] in ("cpu_op", "user_annotation"), event["tid"], event["ts"], event.get("dur"))
        linked = event["args"].get("correlation") or event["args"].get("External id")
        link = (event["cat"] in ("cpu_op", "user_annotation"), event["cat"] in ("cuda_runtime",), linked)
        moment = ("[memory]", event["ts"]) if event["name"] == "[memory]" else None
        begin = ("[device]", event["ts"]) if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset") else None
        has_twin = (key[0] and key in seen) or (linked and any(link[:2]) and link in seen)
        if not has_twin and moment not in seen and begin not in seen:
            kept.append(event)
        seen |= {key, link, *filter(None, [moment, begin])}
    builder.events = kept
    return builder


def tables(trace: Trace) -> dict[str, list[tuple[object, ...]]]:
    moved = dataclasses.replace(trace, origin_ns=0)
    return {  # without places in the file
        name: sorted(view.run(moved).drop("first_byte", strict=False).rows(), key=str)
        for name, view in VIEWS.items()
        if not view.is_missing(trace) and name != "environment"
    }
