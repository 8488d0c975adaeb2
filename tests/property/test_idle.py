"""Idle, exposed and queued time against slow re-implementations that look at one instant after the other."""

from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinetoscope_tb.arrays.downsample import corners
from kinetoscope_tb.measures.time import idle as module
from kinetoscope_tb.names.calls import synchronises
from kinetoscope_tb.names.kernels import is_data_loading, step_number
from kinetoscope_tb.views import VIEWS
from support import oracle
from support.strategies import builders

few = settings(max_examples=60, deadline=None)
SHORT = 6  # instead of QUEUED_NS: the random times are short


@pytest.fixture(autouse=True, scope="module")
def short_times():
    with patch.object(module, "QUEUED_NS", SHORT):
        yield


def device_rows(trace):
    """Device rows as dictionaries, each with when it ended and was launched, and whether its stream was told to wait."""
    launches = trace.launches["start_ns"].to_list()
    rows = [
        {**row, "end_ns": row["start_ns"] + row["dur_ns"], "queue": (row["device"], row["stream"])}
        for row in trace.device_events.rows(named=True)
    ]
    waits = [(w["device"], w["stream"], w["start_ns"]) for w in trace.syncs.rows(named=True)]
    for row in rows:
        row["launched"] = launches[row["launch"]] if row["launch"] >= 0 else None
    for queue in {row["queue"] for row in rows}:
        before = -1
        for row in sorted((r for r in rows if r["queue"] == queue and r["launch"] >= 0), key=lambda r: r["launched"]):
            row["told"] = any(w[:2] == queue and before < w[2] <= row["launched"] for w in waits)
            before = row["launched"]
    return rows


def cause_at(instant, rows, everything, first):
    """Why none of `rows` runs at an instant; `first` is when the windows begin."""
    rows = [row for row in rows if row["dur_ns"]]
    earlier = [row["end_ns"] for row in rows if row["start_ns"] <= instant]
    later = [row for row in rows if row["start_ns"] > instant]
    if not later:
        last = max((row for row in rows), key=lambda row: row["end_ns"], default=None)
        latest = [row for row in rows if last and row["end_ns"] == last["end_ns"]]
        return "host late" if latest and latest[-1]["launched"] is not None else "other"
    after = min(later, key=lambda row: row["start_ns"])
    begin = max(earlier, default=first)
    if after["launched"] is None:
        return "other"
    if after["launched"] >= begin:
        return "host late"
    if after["start_ns"] - begin <= SHORT:
        return "launch latency"
    ended = [
        row
        for row in everything
        if row["queue"] != after["queue"] and after["start_ns"] - SHORT < row["end_ns"] <= after["start_ns"]
    ]
    return "dependency" if after["told"] or ended else "other"


def host_at(trace):
    """A function that names what the launching threads do at an instant."""
    used = {trace.launches["thread"][launch] for launch in trace.device_events["launch"] if launch >= 0}
    active = {name: [] for name in module.HOST_ACTIVITIES[:-1]}
    for row in trace.host_events.rows(named=True):
        if is_data_loading(row["name"]):
            kind = "data loading"
        elif step_number(row["name"]) is not None:
            continue
        else:
            kind = row["kind"]
        active[kind].append(row)
    for row in trace.launches.rows(named=True):
        active["synchronising" if synchronises(row["name"]) else "runtime call"].append(row)
    active["python"] = trace.python_calls.rows(named=True)

    def what(instant):
        for name, rows in active.items():
            if any(r["thread"] in used and r["start_ns"] <= instant < r["start_ns"] + r["dur_ns"] for r in rows):
                return name
        return "nothing recorded"

    return what


def slow_idle(trace, windows):
    """Return {(scope, device, stream, step): counts of instants} as the view should."""
    rows = device_rows(trace)
    first = windows[0][1]
    groups = {("device", row["device"], None): [] for row in rows} | {("stream", *row["queue"]): [] for row in rows}
    for row in rows:
        groups["device", row["device"], None].append(row)
        groups[("stream", *row["queue"])].append(row)
    host = host_at(trace)
    found = {}
    for key, own in groups.items():
        for step, start, end in windows:
            counts = found[(*key, step)] = dict.fromkeys(("busy", *module.CAUSES, *module.HOST_ACTIVITIES), 0)
            for t in range(start, end):
                is_busy = any(row["start_ns"] <= t < row["end_ns"] for row in own)
                cause = "busy" if is_busy else cause_at(t, own, rows, first)
                counts[cause] += 1
                counts[host(t)] += cause == "host late"
    return found


COLUMNS = ["busy_ns", "host_late_ns", "launch_latency_ns", "dependency_ns", "other_ns"]
COLUMNS += [name for name in VIEWS["idle"].table.schema() if name.startswith("late_")]


@few
@given(builders(), st.sampled_from(["recording", "step"]))
def test_busy_time_causes_and_occupants_are_those_of_each_instant(builder, per):
    trace = builder.build()
    steps = trace.steps.select("name", "start_ns", "end_ns").rows()
    windows = steps if per == "step" else [("all", steps[0][1], steps[-1][2])]
    table = VIEWS["idle"].run(trace, per=per)
    got = {
        row[:4]: dict(zip(COLUMNS, row[4:], strict=True))
        for row in table.select(*VIEWS["idle"].table.key, *COLUMNS).rows()
    }
    expected = slow_idle(trace, windows)
    assert got == {key: dict(zip(COLUMNS, counts.values(), strict=True)) for key, counts in expected.items()}


@few
@given(builders(), st.sampled_from(["recording", "step"]))
def test_busy_time_and_the_causes_of_idle_time_add_up_to_the_window(builder, per):
    table = VIEWS["idle"].run(builder.build(), per=per)
    assert table.select(pl.sum_horizontal(COLUMNS[:5])).to_series().to_list() == table["window_ns"].to_list()
    assert table.select(pl.sum_horizontal(COLUMNS[5:])).to_series().to_list() == table["host_late_ns"].to_list()


@few
@given(builders(), st.sampled_from(["recording", "step"]))
def test_exposed_time_counts_instant_by_instant(builder, per):
    trace = builder.build()
    table = VIEWS["exposed_time"].run(trace, per=per)
    steps = trace.steps.select("name", "start_ns", "end_ns").rows()
    windows = steps if per == "step" else [("all", steps[0][1], steps[-1][2])]
    expected = []
    for device in sorted(set(trace.device_events["device"])):
        rows = [row for row in trace.device_events.rows(named=True) if row["device"] == device]
        groups = [[], [], []]
        for row in rows:
            place = 1 if row["is_communication"] else 0 if row["kind"] == "kernel" else 2
            groups[place].append((row["start_ns"], row["start_ns"] + row["dur_ns"]))
        for name, start, end in windows:
            communication = [(max(s, start), min(e, end)) for s, e in groups[1]]
            parts = oracle.first_active(groups, (start, end))
            expected.append((device, name, *parts, oracle.busy(communication)))
    columns = ["computation_ns", "exposed_communication_ns", "exposed_copies_ns", "idle_ns", "communication_ns"]
    assert table.select("device", "step", *columns).rows() == expected
    assert (table["overlap_ns"] == table["communication_ns"] - table["exposed_communication_ns"]).all()


@few
@given(builders())
def test_a_queue_holds_what_was_launched_and_has_not_begun(builder):
    trace = builder.build()
    rows = [row for row in device_rows(trace) if row["launched"] is not None]
    table = VIEWS["queue_length"].run(trace)
    for row in {row["queue"]: row for row in rows}.values():
        own = [r for r in rows if r["queue"] == row["queue"]]
        curve = table.filter(device=row["device"], stream=row["stream"])
        level = 0
        for t in range(100):
            level = dict(curve.select("at_ns", "queued").rows()).get(t, level)
            assert level == sum(r["launched"] <= t < r["start_ns"] for r in own)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-3, 9)), min_size=1, max_size=60), st.integers(4, 40))
def test_a_reduced_curve_keeps_its_ends_and_its_extremes(changes, most):
    at = pl.Series([gap for gap, _ in changes]).cum_sum().to_numpy()
    value = pl.Series([value for _, value in changes]).to_numpy()
    kept = corners(at, value, most).tolist()
    assert kept == sorted(set(kept))
    assert len(kept) <= most
    assert {0, len(changes) - 1} <= set(kept)
    assert value[kept].min() == value.min()
    assert value[kept].max() == value.max()
