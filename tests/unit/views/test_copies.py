import pytest

from kinetoscope_tb.views.device.copies import copies
from kinetoscope_tb.views.device.copies_summary import copies_summary
from support.build import TraceBuilder, same


def test_rates_are_recomputed_from_bytes_and_durations():
    trace = (
        TraceBuilder()
        .memcpy(0, 100, bytes=1000, **{"memory bandwidth (GB/s)": 77})
        .memcpy(200, 300, bytes=3000)
        .memcpy(600, 50)
        .kernel("k", 700, 9)
        .build()
    )
    same(
        copies(trace),
        """
        name                              direction  source    target  is_pageable  device  calls  moved_bytes  mean_bytes  total_ns  mean_ns  max_ns  moved_bytes_per_s
        Memcpy HtoD (Pageable -> Device)  HtoD       Pageable  Device  True         0       3      4000         2000        450       150      300     10000000000.0
        """,
    )


def test_copies_between_devices_are_told_apart_by_both_ends():
    name = "Memcpy PtoP (Device -> Device)"
    trace = (
        TraceBuilder()
        .memcpy(0, 10, name=name, fromDevice=0, toDevice=1, bytes=64)
        .memcpy(20, 5, name=name, fromDevice=1, toDevice=0, bytes=64, device=1)
        .build()
    )
    same(
        copies(trace),
        """
        direction  device  from_device  to_device  calls  total_ns
        PtoP       0       0            1          1      10
        PtoP       1       1            0          1      5
        """,
    )


def test_a_fill_has_no_source():
    same(
        copies(TraceBuilder().memset(0, 10, bytes=100).build()),
        """
        name             direction  source  target  is_pageable  moved_bytes  moved_bytes_per_s
        Memset (Device)  fill       -       -       -            100          10000000000.0
        """,
    )


def test_copies_that_last_no_time_have_no_rate():
    assert copies(TraceBuilder().memcpy(0, 0, bytes=100).build())["moved_bytes_per_s"].to_list() == [None]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Memcpy DtoH (Device -> Pinned)", ("DtoH", "Device", "Pinned", False)),
        ("Memcpy HtoD (Pagable -> Device)", ("HtoD", "Pageable", "Device", True)),
        ("Memcpy DtoD (Device -> Device)", ("DtoD", "Device", "Device", False)),
        ("Memcpy HtoD (Unknown -> Device)", ("HtoD", "Unknown", "Device", None)),
        ("Memcpy HtoD (Host -> Device)", ("HtoD", "Host", "Device", None)),
        ("CopyDeviceToHost", ("DtoH", None, None, None)),
        ("dma_request", (None, None, None, None)),
    ],
)
def test_names_tell_direction_and_ends(name, told):
    table = copies(TraceBuilder().memcpy(0, 1, name=name).build())
    assert table.select("direction", "source", "target", "is_pageable").rows() == [told]


def launched():
    """A kernel, and calls at the start that launch it and up to three copies or fills."""
    builder = TraceBuilder().op("a", 0, 1000).kernel("k", 10, 390, 1)
    for correlation in (1, 2, 3, 4):
        builder.launch(correlation, 1, correlation)
    return builder


def test_a_sentence_says_how_long_copies_run_without_a_kernel():
    trace = launched().memcpy(300, 200, 2, bytes=2048).memcpy(800, 50, 3, bytes=1024).build()
    (row,) = copies_summary(trace).rows(named=True)
    assert row["title"] == (
        "For 15 % of the time copies or fills run and no kernel does: 150 ns of 1 µs, "
        "all of it `Memcpy HtoD (Pageable -> Device)`."
    )
    assert (
        row["evidence"] == "2 copies, 250 ns in the recording, for 3 KiB at 12.3 GB/s. From or to pageable memory: all."
    )
    assert row["confidence"] == "high"


def test_copies_and_fills_are_counted_by_what_they_are():
    both = launched().memcpy(600, 200, 2, bytes=2048).memset(850, 50, 3, bytes=1024).build()
    (row,) = copies_summary(both).rows(named=True)
    assert row["title"].endswith(", most of it `Memcpy HtoD (Pageable -> Device)`.")
    assert row["evidence"] == (
        "2 copies and fills, 250 ns in the recording. Largest totals: `Memcpy HtoD (Pageable -> Device)` 200 ns for "
        "2 KiB at 10.2 GB/s and `Memset (Device)` 50 ns for 1 KiB at 20.5 GB/s. From or to pageable memory: 200 ns."
    )
    (fill,) = copies_summary(launched().memset(850, 50, 3).build()).rows(named=True)
    assert fill["evidence"].startswith("1 fill, 50 ns in the recording")


def test_copies_with_the_longest_total_are_no_culprits_while_kernels_hide_most_of_them():
    trace = launched().memcpy(100, 300, 2).memset(500, 100, 3).memcpy(700, 40, 4).build()
    (row,) = copies_summary(trace).rows(named=True)
    assert row["title"] == "For 14 % of the time copies or fills run and no kernel does: 140 ns of 1 µs."


def test_copies_that_kernels_hide_cost_nothing():
    (row,) = copies_summary(launched().memcpy(300, 50, 2).build()).rows(named=True)
    assert row["title"].startswith("Copies and fills cost the steps no time of their own")


def test_without_kernels_in_the_recording_copies_are_said_to_run_without_recorded_ones():
    (row,) = copies_summary(TraceBuilder().op("a", 0, 1000).memcpy(300, 50).build()).rows(named=True)
    assert "no recorded kernel" in row["title"]
    assert row["confidence"] == "low"
