"""Rules of every recording: every view answers, and whatever splits the same time adds up to the same total."""

import numpy as np
import polars as pl
import pytest

from kinetoscope_tb.advice.communication import communication
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.advice.model import Advice
from kinetoscope_tb.distributed.summary import summary
from kinetoscope_tb.measures.recording.contents import has_device_events
from kinetoscope_tb.measures.time.breakdown import CATEGORIES
from kinetoscope_tb.measures.time.idle_causes import CAUSES
from kinetoscope_tb.measures.time.step_subset import counted_steps
from kinetoscope_tb.pictures import parent_column
from kinetoscope_tb.views import VIEWS

RULES = []


def rule(holds):
    """One of the rules that are held against every trace."""
    RULES.append(holds)
    return holds


def lasting(frame):
    return int(frame["dur_ns"].sum())


@rule
def each_row_has_a_key_of_its_own_and_numbers(trace, tables):
    for name, table in tables.items():
        frame = VIEWS[name].table.of(table)
        assert frame.select(VIEWS[name].table.key).is_duplicated().sum() == 0, name
        assert not any(column.is_nan().any() for column in frame.select(pl.col(pl.Float64))), name


@rule
def the_parts_of_every_step_add_up(trace, tables):
    parts = tables["steps"].select(f"{name.lower().replace(' ', '_')}_ns" for name in CATEGORIES)
    assert parts.sum_horizontal().to_list() == tables["steps"]["total_ns"].to_list()
    assert min(parts.min().row(0)) >= 0


@rule
def device_time_is_whole_in_every_view_that_splits_it(trace, tables):
    work = lasting(trace.device_events)
    for name, table in tables.items():
        if "device_self_ns" in table.columns and has_device_events(trace):
            outside = 0  # of all functions
            if name == "python_functions":
                outside = tables["python_calls"].filter(kind="rest")["device_self_ns"].sum()
            assert table["device_self_ns"].sum() + outside == work, name


@rule
def kernels_and_copies_are_all_device_work(trace, tables):
    kernels = lasting(trace.kernels)
    totals = {name: table["total_ns"].sum() for name, table in tables.items() if "total_ns" in table.columns}
    for name in ("kernels", "kernels_by_op"):
        assert totals.get(name, 0) == kernels, name
    if "copies" in VIEWS:
        assert totals.get("copies", 0) + kernels == lasting(trace.device_events)


@rule
def a_total_in_a_tree_is_the_self_time_and_the_totals_right_below(trace, tables):
    for name, table in tables.items():
        parent = parent_column(VIEWS[name].table.picture)
        for column in table.columns if parent else ():
            own = column.replace("_total_", "_self_")
            if "_total_" in column and own in table.columns:
                rows = table.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
                below = rows.group_by(pl.col(parent).alias("row")).agg(pl.col(column).sum().alias("below"))
                joined = rows.join(below, "row", "left").with_columns(pl.col("below").fill_null(0))
                known = joined.filter(pl.col(column).is_not_null())
                wrong = known.filter(pl.col(column) != pl.col(own) + pl.col("below"))
                assert wrong.is_empty(), (name, column)


@rule
def the_parts_of_the_average_step_are_those_of_the_steps(trace, tables):
    table = tables["steps"]
    counted = table.filter("is_complete") if table["is_complete"].any() else table
    means = dict(tables["overview"].select("category", "mean_ns").iter_rows())
    for category, mean in means.items():
        column = "total_ns" if category == "Step" else f"{category.lower().replace(' ', '_')}_ns"
        assert mean == pytest.approx(counted[column].mean(), abs=0.501)
    assert sum(means.values()) - means["Step"] == pytest.approx(means["Step"], abs=len(means))


@rule
def shapes_split_operators(trace, tables):
    if "operators_by_shape" not in tables:  # no shapes were recorded
        return
    columns = ["calls", "device_self_ns", "device_total_ns", "host_self_ns", "host_total_ns", "host_self_bytes"]
    sums = [
        tables[name].group_by("name").agg(pl.col(columns).sum()).sort("name")
        for name in ("operators", "operators_by_shape")
    ]
    assert sums[0].equals(sums[1])


@rule
def memory_in_view_of_the_peak_is_the_peak(trace, tables):
    if "memory_devices" not in tables:
        return
    peaks = dict(
        tables["memory_devices"].drop_nulls("peak_allocated_bytes").select("device", "peak_allocated_bytes").rows()
    )
    alive = dict(tables["memory_peak"].group_by("device").agg(pl.col("alive_bytes").sum()).rows())
    assert {device: alive.get(device, 0) for device in peaks} == peaks


@rule
def what_operators_took_of_memory_is_the_difference_from_beginning_to_end(trace, tables):
    if "memory_devices" not in tables:
        return
    levels = tables["memory_devices"].select("device", pl.col("end_allocated_bytes") - pl.col("begin_allocated_bytes"))
    sizes = dict(tables["memory_by_operator"].group_by("device").agg(pl.col("self_size_increase_bytes").sum()).rows())
    for device, difference in levels.drop_nulls().iter_rows():
        assert sizes.get(device, 0) == difference


@rule
def communication_of_ranks_on_the_host_is_that_of_the_steps_and_of_the_advice(trace, tables):
    if trace.device_events.height:
        return
    facts, ranks = Facts(trace), summary(trace).steps
    assert ranks["communication_ns"].to_list() == tables["steps"]["communication_ns"].to_list()
    exposed = ranks.filter(facts.is_counted)["exposed_communication_ns"].mean()
    sizes = [row.size_ns for row in communication(facts) if isinstance(row, Advice)]
    assert all(size == pytest.approx(exposed, abs=1) for size in sizes)


@rule
def busy_and_idle_time_are_the_window_and_the_parts_are_the_whole(trace, tables):
    if not VIEWS["idle"].is_missing(trace):
        assert_parts_are_the_whole(trace, "recording")
        assert_parts_are_the_whole(trace, "step")


def assert_parts_are_the_whole(trace, per):
    exposed = VIEWS["exposed_time"].run(trace, per=per)
    parts = "computation_ns", "exposed_communication_ns", "exposed_copies_ns", "idle_ns"
    assert exposed.select(pl.sum_horizontal(parts)).to_series().equals(exposed["window_ns"], check_names=False)
    idle = VIEWS["idle"].run(trace, per=per)
    sums = {
        "window_ns": ["busy_ns", "idle_ns"],
        "idle_ns": [f"{cause.replace(' ', '_')}_ns" for cause in CAUSES],
        "host_late_ns": [name for name in idle.columns if name.startswith("late_")],
    }
    for whole, of in sums.items():
        assert idle.select(pl.sum_horizontal(of)).to_series().equals(idle[whole], check_names=False), whole
    same = "device", "step", "window_ns", "idle_ns", "exposed_communication_ns"
    assert set(idle.filter(pl.col("scope") == "device").select(same).rows()) == set(exposed.select(same).rows())


def length_of_empty_queue(launched, begun, start, end):
    """For how long of some time none of the rows was launched and hadn't begun; a sweep over their launches."""
    since, until = np.maximum(launched, start), np.minimum(begun, end)
    is_queued = since < until
    order = np.argsort(since[is_queued], kind="stable")
    queued_until = np.maximum.accumulate([start, *until[is_queued][order]])
    return int(np.maximum([*since[is_queued][order], end] - queued_until, 0).sum())


@rule
def the_host_is_late_no_longer_than_the_queue_of_the_device_is_empty(trace, tables):
    if not has_device_events(trace):
        return
    starts = trace.launches["start_ns"].to_numpy()
    events = trace.device_events.filter(pl.col("launch") >= 0)
    queues = {
        device: (starts[rows["launch"].to_numpy()], rows["start_ns"].to_numpy())
        for (device,), rows in events.partition_by("device", as_dict=True).items()
    }
    windows = trace.steps.select("name", "start_ns", "end_ns").rows()[:20]
    idle = VIEWS["idle"].run(trace, per="step").filter(scope="device")
    late = {(device, step): ns for device, step, ns in idle.select("device", "step", "host_late_ns").rows()}
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for device in trace.device_events["device"].unique():
        for step, start, end in windows:
            assert late[device, step] <= length_of_empty_queue(*queues.get(device, nothing), start, end)
    gaps = tables["gaps"].filter(pl.col("host_late_ns") > 0).head(20)
    for device, start, dur, ns in gaps.select("device", "start_ns", "dur_ns", "host_late_ns").rows():
        assert ns <= length_of_empty_queue(*queues.get(device, nothing), start, start + dur)


@rule
def the_critical_path_is_as_long_as_the_steps_however_it_is_split(trace, tables):
    if VIEWS["critical_path"].is_missing(trace):
        return
    lengths = trace.steps.select(pl.col("end_ns") - pl.col("start_ns")).to_series()
    whole = int(lengths.gather(counted_steps(trace)).sum())
    assert tables["critical_path"]["path_ns"].sum() == tables["critical_path_names"]["path_ns"].sum() == whole
    assert tables["critical_path_segments"]["dur_ns"].sum() == lengths.sum()
    assert (tables["critical_path"]["saved_ns"] >= 0).all()


@rule
def half_of_something_saves_no_more_than_all_of_it(trace, tables):
    if "critical_path" not in tables:
        return
    half, whole = tables["critical_path"], VIEWS["critical_path"].run(trace, percent="100")
    pairs = half.join(whole, on="part", how="left", validate="1:1")
    assert (pairs["saved_ns"] <= pairs["saved_ns_right"]).all()
    names, steps = tables["critical_path_names"], len(counted_steps(trace))
    estimated = names.drop_nulls("saved_ns")
    assert (names["path_ns"] <= names["whole_ns"]).all()
    assert (estimated["saved_ns"] >= 0).all()
    assert (estimated["saved_ns"] * steps <= estimated["whole_ns"] / 2 + steps).all()
