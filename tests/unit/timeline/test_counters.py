"""Curves of memory, of busy devices and of queues, and their tiles."""

import numpy as np

from build import TraceBuilder
from kinetoscope_tb.timeline.counters import batch_bytes, counters

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
    assert counters(built.build())[0].described(0) == {
        "id": 0,
        "name": "Allocated memory",
        "kind": "bytes",
        "device": "cuda:0",
        "device_index": 0,
        "stream": None,
        "least": 100.0,
        "most": 164.0,
        "is_relative": False,
    }


def test_a_device_is_busy_while_any_kernel_runs_and_full_by_its_blocks():
    built = TraceBuilder().op("a", 0, 100).kernel("k", 10, 20, **{"blocks per SM": 0.5})
    built.kernel("k", 20, 20, stream=9, **{"blocks per SM": 0.75}).memcpy(60, 10)
    assert lines(built) == [
        ("GPU utilization", "GPU 0", None, [(0, 0), (10, 1), (40, 0)]),
        ("SM efficiency", "GPU 0", None, [(0, 0), (10, 0.5), (20, 1.0), (30, 0.75), (40, 0)]),
    ]
    assert buckets(built, 4, 8) == [[6 / 16, 1, 8 / 16, 0, 0, 0, 0, NAN]] * 3
    mean = (10 * 0 + 6 * 0.5) / 16
    assert buckets(built, 4, 1, which=1) == [[mean]] * 3


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
