"""Idle, exposed and queued time against slow re-implementations that look at one instant after the other."""

from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.arrays.downsample import corners
from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.measures.time import idle as module
from kinetoscope_tb.measures.time.host_activity import HOST_ACTIVITIES
from kinetoscope_tb.measures.time.host_stack import FRAMES
from kinetoscope_tb.measures.time.idle_causes import CAUSES, gap_parts
from kinetoscope_tb.measures.time.idle_culprits import WITH_HOST, culprits
from kinetoscope_tb.measures.time.threads import main_thread
from kinetoscope_tb.names.calls import launches_graph, may_wait, synchronizes
from kinetoscope_tb.names.kernels import is_data_loading, step_number
from kinetoscope_tb.views import VIEWS
from support import oracle
from support.build import TraceBuilder
from support.examples import examples
from support.strategies import builders, lengths, times

few = examples(60)
SHORT = 6  # instead of QUEUED_NS: the random times are short


CALLS = ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaGraphLaunch"]


@st.composite
def launched(draw):
    """A random trace in which most device rows have a launch: those drawn here, among any others."""
    builder = draw(st.one_of(st.just(TraceBuilder().step(1, 0, 80)), builders()))
    for number in range(100, 100 + draw(st.integers(1, 8))):
        at, wait, call, dur = (draw(st.integers(0, most)) for most in (60, 20, 12, 10))
        thread, stream = draw(st.integers(1, 2)), draw(st.sampled_from([7, 7, 8]))
        builder.launch(at, call, number, name=draw(st.sampled_from(CALLS)), thread=thread)
        builder.kernel("k", at + wait, dur, number, device=0, stream=stream)
    for _ in range(draw(st.integers(0, 2))):
        builder.launch(draw(times), draw(lengths), 99, name="cudaDeviceSynchronize", thread=draw(st.integers(1, 2)))
    return builder


@pytest.fixture(autouse=True, scope="module")
def short_times():
    with patch.object(module, "QUEUED_NS", SHORT):
        yield


def device_rows(trace):
    """Device rows as dictionaries, each with when it ended, its launch, and whether its stream waits for an event."""
    launches = trace.launches.rows(named=True)
    rows = [
        {**row, "end_ns": row["start_ns"] + row["dur_ns"], "queue": (row["device"], row["stream"])}
        for row in trace.device_events.rows(named=True)
    ]
    waits = [(w["device"], w["stream"], w["start_ns"]) for w in trace.syncs.rows(named=True)]
    for row in rows:
        call = launches[row["launch"]] if row["launch"] >= 0 else None
        row["launched"] = call["start_ns"] if call else None
        row["returned"] = call["start_ns"] + call["dur_ns"] if call else -1
        row["is_graph"] = bool(call) and launches_graph(call["name"])
        is_plain = call and not row["is_graph"] and not may_wait(call["name"])
        row["submitted"] = row["returned"] if is_plain else row["launched"]
        row["has_event_wait"] = False
    for queue in {row["queue"] for row in rows}:
        before = -1
        for row in sorted((r for r in rows if r["queue"] == queue and r["launch"] >= 0), key=lambda r: r["launched"]):
            row["has_event_wait"] = any(w[:2] == queue and before < w[2] <= row["launched"] for w in waits)
            before = row["launched"]
    return rows


def waiting_at(trace):
    """Two functions of an instant: whether a launching thread may wait for a device, and whether all that work do."""
    used = {trace.launches["thread"][launch] for launch in trace.device_events["launch"] if launch >= 0}
    calls = [row for row in trace.launches.rows(named=True) if row["thread"] in used]
    others = [*trace.host_events.rows(named=True), *calls, *trace.python_calls.rows(named=True)]

    def active(rows, instant):
        return [row for row in rows if row["start_ns"] <= instant < row["start_ns"] + row["dur_ns"]]

    def any_may_wait(instant):
        return any(may_wait(row["name"]) for row in active(calls, instant))

    def all_wait(instant):
        waiting = [row for row in active(calls, instant) if synchronizes(row["name"])]
        working = {row["thread"] for row in active(others, instant)} & used
        is_long = [all(synchronized(row["thread"], t) for t in range(instant - SHORT, instant + 1)) for row in waiting]
        return any(is_long) and working <= {row["thread"] for row in waiting}

    def synchronized(thread, instant):
        return any(row["thread"] == thread and synchronizes(row["name"]) for row in active(calls, instant))

    return any_may_wait, all_wait


def cause_at(instant, rows, everything, window, waiting):
    """Why none of `rows` runs at an instant of a window."""
    any_may_wait, all_wait = waiting
    earlier = [row for row in rows if row["start_ns"] <= instant]
    later = [row for row in rows if row["start_ns"] > instant]
    begin = max((row["end_ns"] for row in earlier), default=window[0])
    before = max(reversed(earlier), key=lambda row: row["end_ns"], default=None)
    after = min(later, key=lambda row: row["start_ns"], default=None)
    end = after["start_ns"] if after else window[1]
    is_open = before is None or before["launched"] is None
    if after is None and is_open:
        return "not shown"
    if after and after["launched"] is None:
        return "not shown"
    if after and is_open and end > max(after["returned"], begin) + SHORT:
        return "not shown"
    known = [row for row in reversed(later) if row["launched"] is not None]
    first = min(known, key=lambda row: row["launched"], default=None)
    if first is None or instant < first["launched"]:
        return "not shown" if all_wait(instant) and instant >= begin + SHORT else "host late"
    queued = max(first["launched"], begin)
    if end - queued <= SHORT or instant < max(first["launched"], first["submitted"]) + SHORT:
        return "launch latency"
    ended = [r for r in everything if r["queue"] != after["queue"] and end - SHORT < r["end_ns"] <= end]
    if after["has_event_wait"] or ended:
        return "dependency"
    if any_may_wait(instant):
        return "blocked copy"
    return "graph launch" if after["is_graph"] and instant < after["returned"] else "unexplained"


def host_at(trace):
    """A function that names what the launching threads do at an instant."""
    used = {trace.launches["thread"][launch] for launch in trace.device_events["launch"] if launch >= 0}
    active = {name: [] for name in HOST_ACTIVITIES[:-1]}
    for row in trace.host_events.rows(named=True):
        if is_data_loading(row["name"]):
            kind = "data loading"
        elif step_number(row["name"]) is not None:
            continue
        else:
            kind = row["kind"]
        active[kind].append(row)
    for row in trace.launches.rows(named=True):
        active["synchronizing" if synchronizes(row["name"]) else "runtime call"].append(row)
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
    span = windows[0][1], windows[-1][2]
    waiting = waiting_at(trace)
    groups = {("device", row["device"], None): [] for row in rows} | {("stream", *row["queue"]): [] for row in rows}
    for row in rows:
        groups["device", row["device"], None].append(row)
        groups[("stream", *row["queue"])].append(row)
    host = host_at(trace)
    found = {}
    for key, own in groups.items():
        for step, start, end in windows:
            counts = found[(*key, step)] = dict.fromkeys(("busy", *CAUSES, *HOST_ACTIVITIES), 0)
            for t in range(start, end):
                is_busy = any(row["start_ns"] <= t < row["end_ns"] for row in own)
                cause = "busy" if is_busy else cause_at(t, own, rows, span, waiting)
                counts[cause] += 1
                counts[host(t)] += cause == "host late"
    return found


COLUMNS = ["busy_ns", *(f"{cause.replace(' ', '_')}_ns" for cause in CAUSES)]
PARTS = len(COLUMNS)
COLUMNS += [name for name in VIEWS["idle"].table.schema() if name.startswith("late_")]


@few
@given(
    launched(), st.sampled_from(["recording", "step"]), st.sampled_from(["stream", "device", "worker"]), st.booleans()
)
def test_what_holds_of_any_idle_time(builder, per, axis, each):
    trace = builder.build()
    windows = module.Windows.of(trace, per_step=each)
    parts = gap_parts(trace, axis, windows)
    assert_busy_time_causes_and_what_the_host_did_are_those_of_each_instant(trace, per)
    assert_the_host_is_late_only_while_nothing_is_queued(trace, parts)
    assert_the_parts_of_a_gap_follow_each_other_without_a_hole(module.gaps(trace, axis, windows), parts)
    assert_the_culprits_of_idle_time_add_up_to_its_causes(trace)
    assert_the_culprit_is_the_innermost_range_of_the_launching_thread_at_each_instant(trace)


def assert_busy_time_causes_and_what_the_host_did_are_those_of_each_instant(trace, per):
    steps = trace.steps.select("name", "start_ns", "end_ns").rows()
    windows = steps if per == "step" else [("all", steps[0][1], steps[-1][2])]
    table = VIEWS["idle"].run(trace, per=per)
    got = {
        row[:4]: dict(zip(COLUMNS, row[4:], strict=True))
        for row in table.select(*VIEWS["idle"].table.key, *COLUMNS).rows()
    }
    expected = slow_idle(trace, windows)
    assert got == {key: dict(zip(COLUMNS, counts.values(), strict=True)) for key, counts in expected.items()}
    assert table.select(pl.sum_horizontal(COLUMNS[:PARTS])).to_series().to_list() == table["window_ns"].to_list()
    assert table.select(pl.sum_horizontal(COLUMNS[PARTS:])).to_series().to_list() == table["host_late_ns"].to_list()


def assert_the_host_is_late_only_while_nothing_is_queued(trace, parts):
    rows = [row for row in device_rows(trace) if row["launched"] is not None]
    for part in parts.filter(cause="host late").rows(named=True):
        own = [
            row for row in rows if part["device"] in {row["device"], NONE} and part["stream"] in {row["stream"], NONE}
        ]
        assert not any(
            row["launched"] <= t < row["start_ns"] for row in own for t in range(part["start_ns"], part["end_ns"])
        )


def assert_the_parts_of_a_gap_follow_each_other_without_a_hole(gaps, parts):
    gaps = gaps.rows_by_key(["gap", "window"], named=True, unique=True)
    parts = parts.rows_by_key(["gap", "window"], named=True)
    assert gaps.keys() == parts.keys()
    for key, gap in gaps.items():
        times = [gap["start_ns"], *(part["end_ns"] for part in parts[key])]
        assert [part["start_ns"] for part in parts[key]] == times[:-1]
        assert times[-1] == gap["end_ns"]


def assert_the_culprits_of_idle_time_add_up_to_its_causes(trace):
    table = VIEWS["idle_culprits"].run(trace)
    for row in VIEWS["idle"].run(trace).filter(scope="device").rows(named=True):
        own = table.filter(device=row["device"])
        causes = dict(own.group_by("cause").agg(pl.col("total_ns").sum()).iter_rows())
        assert causes == {cause: ns for cause in CAUSES if (ns := row[f"{cause.replace(' ', '_')}_ns"])}
        late = dict(own.drop_nulls("activity").group_by("activity").agg(pl.col("total_ns").sum()).iter_rows())
        columns = dict(zip(HOST_ACTIVITIES, COLUMNS[PARTS:], strict=True))
        assert late == {activity: ns for activity, column in columns.items() if (ns := row[column])}


def assert_the_culprit_is_the_innermost_range_of_the_launching_thread_at_each_instant(trace):
    table = culprits(trace, device=None)
    main = main_thread(trace)
    for piece in table.pieces.rows(named=True):
        for at in range(piece["start_ns"], piece["end_ns"]):
            expected = slow_innermost(trace, piece, main, at)
            row = piece["stack_row"]
            got = None if row == NONE else (FRAMES[table.stack.frame[row]], table.stack.row[row])
            assert got == expected


def slow_innermost(trace, piece, main, at):
    """(frame, row) of the innermost range at an instant, of the thread that launched what follows, else of the main one."""
    if piece["cause"] not in WITH_HOST:
        return None
    launch = NONE if piece["after"] == NONE else trace.device_events["launch"][piece["after"]]
    launching = main if launch == NONE else trace.launches["thread"][launch]
    for thread in dict.fromkeys((launching, main)):
        rows = [
            (row["start_ns"], -row["dur_ns"], order, number)
            for order, frame in enumerate(FRAMES)
            for number, row in enumerate(getattr(trace, frame).rows(named=True))
            if row["thread"] == thread and row["start_ns"] <= at < row["start_ns"] + row["dur_ns"]
            if step_number(row["name"]) is None
        ]
        if rows:
            *_, order, number = max(rows)
            return FRAMES[order], number
    return None


@few
@given(builders(), st.sampled_from(["recording", "step"]))
def test_exposed_time_and_queues_count_instant_by_instant(builder, per):
    trace = builder.build()
    assert_exposed_time_counts_instant_by_instant(trace, per)
    assert_a_queue_holds_what_was_launched_and_has_not_begun(trace)


def assert_exposed_time_counts_instant_by_instant(trace, per):
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


def assert_a_queue_holds_what_was_launched_and_has_not_begun(trace):
    rows = [row for row in device_rows(trace) if row["launched"] is not None]
    table = VIEWS["queue_length"].run(trace, from_ns=0, to_ns=100)
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
