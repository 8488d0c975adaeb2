"""The tables of random traces against slow tables of the same events."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given

from kinetoscope_tb.measures.time.idle_causes import hidden_work
from kinetoscope_tb.views import VIEWS
from support import slow_tables as slow
from support.examples import examples
from support.strategies import builders


@examples(60)
@given(builders())
def test_every_table(builder):
    trace, recording = builder.build(), slow.Recording(builder)
    assert_steps(trace, recording)
    assert_overview(trace, recording)
    assert_operators(trace, recording)
    assert_operators_by_shape(trace, recording)
    assert_op_kernels(trace, recording)
    assert_kernels(trace, recording)
    assert_kernels_by_op(trace, recording)
    assert_gpus(trace, recording)
    assert_copies(trace, recording)
    assert_launches(trace, recording)
    assert_gpu_activity(trace, recording, builder.base_ns)


def rows(frame, *columns):
    return frame.select(columns).rows()


def close(values):
    return pytest.approx(values, rel=1e-12, abs=1e-12, nan_ok=False)


def assert_steps(trace, recording):
    columns = "step", "total_ns", "kernel_ns", "memcpy_ns", "memset_ns", "communication_ns", "runtime_ns"
    table = VIEWS["steps"].run(trace)
    rest = "dataloader_ns", "cpu_exec_ns", "other_ns", "is_complete"
    assert rows(table, *columns, *rest) == slow.steps(recording)


def assert_overview(trace, recording):
    table = VIEWS["overview"].run(trace)
    theirs = slow.overview(recording)
    assert table["category"].to_list() == [row[0] for row in theirs]
    for name, column in (("mean_ns", 1), ("stdev_ns", 2), ("min_ns", 3), ("max_ns", 4)):
        exact = [row[column] for row in theirs]
        assert all(
            ours is value is None or abs(ours - value) <= 0.5 + 1e-9 + 1e-14 * value  # the sum of squares is a float
            for ours, value in zip(table[name], exact, strict=True)
        )
    whole = theirs[-1][1]
    assert table["share_frac"].to_list() == [None if not whole else close(row[1] / whole) for row in theirs]


OPERATOR = (
    "calls",
    "device_self_ns",
    "device_total_ns",
    "host_self_ns",
    "host_total_ns",
    "tc_eligible",
    "tc_self_frac",
    "tc_total_frac",
    "host_self_bytes",
    "host_total_bytes",
    "device_self_bytes",
    "device_total_bytes",
)


def assert_operators(trace, recording):
    if VIEWS["operators"].is_missing(trace):
        return
    table = VIEWS["operators"].run(trace)
    theirs = slow.operators(recording)
    ours = {row[0]: row[1:] for row in rows(table, "name", *OPERATOR)}
    lost = sum(row.dur for row in recording.device if not row.op)
    assert (ours.pop("[unattributed]")[1:3] if "[unattributed]" in ours else (0, 0)) == (lost, lost)
    assert ours == {name: tuple(close(v) if isinstance(v, float) else v for v in row) for name, row in theirs.items()}


def assert_operators_by_shape(trace, recording):
    if VIEWS["operators_by_shape"].is_missing(trace):
        return
    table = VIEWS["operators_by_shape"].run(trace)
    ours = {row[:2]: row[2:] for row in rows(table, "name", "input_shapes", "calls", "host_self_ns", "host_total_ns")}
    ours.pop(("[unattributed]", None), None)
    theirs = slow.operators(recording, key=lambda row: (row.name, shapes(row)))
    assert ours == {key: (row[0], *row[3:5]) for key, row in theirs.items()}


def launched(sequence):
    """The names of a sequence with how often each is in it."""
    parts = [part.partition(" ×") for part in (sequence or "").split(" → ") if part]
    counts = Counter()
    for name, _, times in parts:
        counts[name] += int(times or 1)
    return tuple(sorted(counts.items()))


def assert_op_kernels(trace, recording):
    ours = defaultdict(lambda: (0, 0))
    for row in VIEWS["op_kernels"].run(trace).iter_rows(named=True):
        key = row["name"], launched(row["sequence"])
        ours[key] = ours[key][0] + row["calls"], ours[key][1] + row["device_total_ns"]
    assert ours == slow.op_kernels(recording)


def shapes(row):
    value = row.arg("Input Dims")
    return None if value is None else str(value)


KERNEL = "calls", "total_ns", "max_ns", "min_ns", "mean_blocks_per_sm", "mean_occupancy_frac", "is_communication"


def percent_as_share(row):
    return tuple(close(v / (100 if i == 5 else 1)) if isinstance(v, float) else v for i, v in enumerate(row))


def assert_kernels(trace, recording):
    ours = {row[0]: row[1:] for row in rows(VIEWS["kernels"].run(trace), "name", *KERNEL)}
    theirs = slow.kernels(recording)
    assert ours == {name: percent_as_share(row) for name, row in theirs.items()}


def assert_kernels_by_op(trace, recording):
    ours = {row[:2]: row[2:] for row in rows(VIEWS["kernels_by_op"].run(trace), "name", "op", *KERNEL)}
    theirs = slow.kernels(recording, key=lambda row: (row.name, row.op.name if row.op else None))
    assert ours == {key: percent_as_share(row) for key, row in theirs.items()}


def assert_gpus(trace, recording):
    if VIEWS["gpus"].is_missing(trace):
        return
    names = "utilization_frac", "sm_efficiency_frac", "occupancy_frac", "tc_time_frac"
    ours = {row[0]: row[1:] for row in rows(VIEWS["gpus"].run(trace), "device", *names)}
    theirs = slow.gpus(recording)
    assert ours == {device: tuple(v if v is None else close(v) for v in row) for device, row in theirs.items()}


COPY = "calls", "moved_bytes", "total_ns", "max_ns", "moved_bytes_per_s"


def assert_copies(trace, recording):
    if VIEWS["copies"].is_missing(trace):
        return
    ours = {row[:2]: row[2:] for row in rows(VIEWS["copies"].run(trace), "name", "device", *COPY)}
    theirs = slow.copies(recording)
    assert ours == {key: tuple(close(v) if isinstance(v, float) else v for v in row) for key, row in theirs.items()}


LAUNCH = "calls", "total_ns", "max_ns", "launching_calls", "device_events", "device_total_ns"


def assert_launches(trace, recording):
    if VIEWS["launches"].is_missing(trace):
        return
    ours = {row[0]: row[1:] for row in rows(VIEWS["launches"].run(trace), VIEWS["launches"].table.key[0], *LAUNCH)}
    lost = [row for row in recording.device if not row.launch]
    assert ours.pop("[unattributed]", (None, None, None, None, 0, 0))[4:] == (len(lost), sum(row.dur for row in lost))
    assert ours == slow.launches(recording)


def assert_gpu_activity(trace, recording, base_ns):
    if VIEWS["gpu_activity"].is_missing(trace):
        return
    instants, origin = slow.activity(recording), trace.origin_ns - base_ns
    for device, at, dur, busy, filled in VIEWS["gpu_activity"].run(trace).rows():
        lost = {t for start, end in zip(*hidden_work(trace, device), strict=True) for t in range(start, end)}
        part = [instants[device, origin + t] for t in range(at, at + dur) if t not in lost]
        assert busy == (close(sum(b for b, _ in part) / len(part)) if part else None)
        if filled is not None:
            assert filled == close(sum(f for _, f in part) / len(part))
