"""Curves of memory, of busy devices and of queues, and their tiles."""

import json

import numpy as np
import pytest

from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.counters.counters import batch_bytes, counters
from support.build import TraceBuilder

NAN = "-"


def lines(built):
    """Each curve in words: name, device, stream, and its changes."""
    return [
        (c.name, c.device, c.stream, list(zip(*(column.tolist() for column in c.curve), strict=True)))
        for c in counters(built.build())
    ]


def buckets(built, level, count, which=0):
    """The least, largest and last value of the first buckets of one curve."""
    tile = counters(built.build())[which].tile(level, 0)[:, :count]
    return [[NAN if np.isnan(value) else value for value in row] for row in tile.tolist()]


def device_memory(built, size, at, total, reserved):
    place = {"Device Type": 1, "Device Id": 0, "Total Allocated": total, "Total Reserved": reserved}
    return built.memory(size, at, **place)


def test_memory_has_a_curve_for_what_is_allocated_and_for_what_is_reserved():
    built = TraceBuilder().op("a", 0, 100)
    device_memory(built, 64, 10, 164, 512)
    device_memory(built, -64, 30, 100, 512)
    assert lines(built) == [
        ("Allocated memory", "cuda:0", None, [(0, 100), (10, 164), (30, 100)]),
        ("Reserved memory", "cuda:0", None, [(10, 512), (30, 512)]),
    ]
    assert counters(built.build())[0].describe(0) == {
        "id": 0,
        "name": "Allocated memory",
        "kind": "bytes",
        "device": "cuda:0",
        "device_index": 0,
        "stream": None,
        "least": 100.0,
        "most": 164.0,
        "is_relative": False,
        "unit": "",
    }


def test_the_memory_of_a_process_is_with_its_only_device_however_rocm_numbers_that():
    built = TraceBuilder().op("a", 0, 100).launch(5, 1, 1).kernel("k", 10, 20, 1, device=9)
    built.memory(64, 10, **{"Device Type": 6, "Device Id": 0, "Total Allocated": 164}).memory(16, 20, address=2)
    curves = [curve.describe(0) for curve in counters(built.build()) if curve.kind == "bytes"]
    assert [(curve["device"], curve["device_index"]) for curve in curves] == [("hip:0", 9), ("cpu", None)]
    device_memory(built, 64, 30, 164, 512)  # of two memories it isn't known
    curves = [curve.describe(0) for curve in counters(built.build()) if curve.kind == "bytes"]
    assert {(curve["device"], curve["device_index"]) for curve in curves if curve["device"] != "cpu"} == {
        *(("hip:0", 0), ("cuda:0", 0)),
    }


def test_a_device_is_busy_while_any_kernel_runs_and_full_by_its_blocks():
    built = TraceBuilder().op("a", 0, 100)
    built.launch(1, 1, 1).kernel("k", 10, 20, 1, **{"blocks per SM": 0.5})
    built.launch(3, 1, 2).kernel("k", 20, 20, 2, stream=9, **{"blocks per SM": 0.75})
    built.launch(5, 1, 3).memcpy(60, 10, 3)
    assert lines(built)[:2] == [
        ("GPU utilization", "GPU 0", None, [(0, 0), (10, 1), (40, 0)]),
        ("SM efficiency", "GPU 0", None, [(0, 0), (10, 0.5), (20, 1.0), (30, 0.75), (40, 0)]),
    ]
    assert buckets(built, 4, 8) == [[6 / 16, 1, 8 / 16, 0, 0, 0, 0, NAN]] * 3
    mean = (10 * 0 + 6 * 0.5) / 16
    assert buckets(built, 4, 1, which=1) == [[mean]] * 3


def test_a_curve_of_a_busy_device_has_a_gap_while_that_is_not_in_the_recording():
    built = TraceBuilder().step(1, 0, 100).kernel("k", 40, 30, stream=0)
    for correlation in range(1, 21):
        built = built.launch(0, 5, correlation).kernel("a", 5, 15, correlation, stream=correlation)
    (curve,) = (values for name, *_, values in lines(built) if name == "GPU utilization")
    assert [(at, value) for at, value in curve if value == value] == [(0, 0), (5, 1), (40, 0), (40, 1), (100, 0)]
    assert [at for at, value in curve if value != value] == [20, 20, 70, 70]


def test_a_device_of_which_only_launches_are_not_recorded_is_idle_between_its_work():
    built = TraceBuilder().step(1, 0, 100).kernel("a", 5, 15).kernel("b", 40, 30)
    ((*_, curve),) = lines(built)
    assert curve == [(0, 0), (5, 1), (20, 0), (40, 1), (70, 0)]


@pytest.mark.parametrize(
    ("call", "noun"), [("cudaLaunchKernel", "GPU"), ("hipLaunchKernel", "GPU"), ("runFunction - execute", "Device")]
)
def test_a_device_is_called_gpu_only_where_its_vendor_is_known_to_make_them(call, noun):
    built = TraceBuilder().launch(0, 5, 1, name=call).kernel("a", 20, 10, 1)
    assert [line[:2] for line in lines(built)] == [(f"{noun} utilization", f"{noun} 0"), ("Queue length", f"{noun} 0")]
    assert f"{noun} 0" in {track.process for track in timeline(built.build()).tracks}


def test_a_queue_counts_what_was_launched_and_has_not_begun():
    built = TraceBuilder().launch(0, 5, 1).launch(10, 5, 2).kernel("a", 20, 10, 1).kernel("b", 30, 10, 2)
    assert lines(built)[1:] == [("Queue length", "GPU 0", 7, [(-1, 0), (0, 1), (10, 2), (20, 1), (30, 0)])]


def test_a_bucket_says_the_least_the_largest_and_the_last_value():
    built = TraceBuilder().op("a", 0, 40).memory(8, 9, address=1).memory(16, 10, address=2).memory(-24, 11, address=1)
    built.memory(4, 32, address=3)
    assert buckets(built, 3, 6) == [
        [0, 0, 0, 0, 4, 4],
        [0, 24, 0, 0, 4, 4],
        [0, 0, 0, 0, 4, 4],
    ]


def test_nothing_is_known_before_a_curve_begins_and_after_the_recording():
    built = TraceBuilder().op("a", 0, 40)
    device_memory(built, 64, 20, 164, 512)
    assert buckets(built, 3, 7, which=1) == [[NAN, NAN, 512, 512, 512, 512, NAN]] * 3


def test_bytes_are_doubles_one_tile_after_the_other():
    built = TraceBuilder().op("a", 0, 40).memory(8, 9)
    (curve,) = counters(built.build())
    data = batch_bytes([curve.tile(3, 0), curve.tile(0, 0)])
    assert len(data) == 2 * 3 * 512 * 8
    numbers = np.frombuffer(data, "<f8")
    assert numbers[[0, 1, 512 + 1, 1024 + 1, 1536 + 8, 1536 + 9]].tolist() == [0, 0, 8, 8, 0, 8]


def test_a_trace_without_any_has_none():
    assert lines(TraceBuilder().op("a", 0, 10)) == []


def counters_of(*events, **units_of):
    """Curves of a file's own counters: (name, time in µs, args…)."""
    rows = [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 0, "dur": 100}]
    rows += [{"ph": "C", "name": name, "pid": 1, "tid": 1, "ts": at, "args": args} for name, at, args in events]
    units = {name: {"unit": unit} for name, unit in units_of.items()}
    text = json.dumps({"kinetoscope": {"counters": units}, "traceEvents": rows}).encode()
    return counters(read_blocks([text], path="trace.json"))


def test_counters_of_the_program_are_curves_with_units():
    curves = counters_of(
        ("net", 10, {"sent": 1000, "received": 5}),
        ("net", 20, {"sent": None, "received": 6}),
        ("cpu", 10, {"cpu": 0.5}),
        ("odd", 10, {"value": 3}),
        ("loss", 10, {"value": -2.5}),
        ("unknown", 10, {"value": None}),
        net="bytes/s", cpu="fraction", odd="x" * 99, loss="nats",
    )  # fmt: skip
    assert [(c.name, c.kind, c.unit, c.bounds, c.device) for c in curves] == [
        ("cpu", "fraction", "", (0.5, 0.5), "process 1"),
        ("loss", "number", "nats", (-2.5, -2.5), "process 1"),
        ("net · received", "bytes", "/s", (5.0, 6.0), "process 1"),
        ("net · sent", "bytes", "/s", (1000.0, 1000.0), "process 1"),
        ("odd", "number", "x" * 20, (3.0, 3.0), "process 1"),
    ]


def test_a_curve_has_a_gap_where_its_value_is_not_known():
    (curve,) = counters_of(
        ("loss", 1, {"v": 7}), ("loss", 3, {"v": None}), ("loss", 6, {"v": 5}), ("loss", 7, {"v": 6})
    )
    least, most, last = curve.tile(11, 0)[:, :4].tolist()
    # Buckets of 2048 ns: the 7 ends in the second one, the 5 begins in the third at 6000 ns.
    assert (least[0], most[0], last[0]) == (7, 7, 7)
    assert (least[1], most[1], np.isnan(last[1])) == (7, 7, True)
    assert (least[2], most[2], last[2]) == (5, 5, 5)
    assert (least[3], most[3], last[3]) == (5, 6, 6)
