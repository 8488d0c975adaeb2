"""Clocks that fell while kernels ran: planted in recordings, and for any samples as a slow loop finds them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.measures.recording.hardware_counters import HardwareCounter
from kinetoscope_tb.measures.recording.throttling import LOW, throttling
from kinetoscope_tb.reader import read
from support.build import TraceBuilder
from support.nsight import export_json

MS = 1_000_000


def recorded(clocks, busy, *, device=0, name="SM Clock (MHz)", every=MS, **others):
    """A clock sampled every ms, and kernels in some ranges of ms, each with a pause of 10 µs in a ms."""
    built = TraceBuilder().step(0, 0, len(clocks) * MS).launch(0, 1000, 1)
    for first, last in busy:
        for at in range(first, last):
            built.kernel("gemm", at * MS + 5_000, MS - 10_000, 1, device=device)
    for counter, values in {name: clocks, **others}.items():
        for nth, value in enumerate(values):
            built.event("", counter, nth * every, None, ph="C", pid=f"GPU {device} Counters", **{"": value})
    return built


def found(trace):
    return [one for one in diagnose(trace) if one.rule == "clock_throttled"]


FALLEN = [1980] * 30 + [1200] * 30 + [1980] * 40


def test_a_clock_that_falls_under_load_is_named_with_its_times():
    (one,) = found(recorded(FALLEN, [(0, 100)]).build())
    assert (one.level, one.count, one.fault) == ("note", 1, None)
    assert one.consequence.startswith(
        "The SM clock of device 0 fell from 1,980 to 1,200 MHz while kernels ran. It was below 90 % of its earlier value "
        "for 30 ms, first at 30 ms; 29.7 ms of kernel time (30 %) fell there. A limit of power or heat"
    )


def test_power_and_temperature_of_that_time_are_named():
    power, heat = ([low] * 30 + [high] * 30 + [low] * 40 for low, high in ((400, 700), (60, 88)))
    built = recorded(FALLEN, [(0, 100)], **{"Power (W)": power, "Temperature (C)": heat})
    (one,) = found(built.build())
    assert "Then, on average: power 700 W and temperature 88 C." in one.consequence


def test_the_clock_of_nsight_systems_counts(tmp_path):
    built = recorded(FALLEN, [(0, 100)], name="GPC Clock Frequency (MHz)")
    (one,), (expected,) = found(read(export_json(tmp_path / "r.sqlite", built.text()))), found(built.build())
    assert one == expected


def test_each_device_is_judged_by_its_own_kernels():
    built = recorded(FALLEN, [(0, 100)], device=1)
    for nth, value in enumerate(FALLEN):
        built.event("", "SM Clock (MHz)", nth * MS, None, ph="C", pid="GPU 0 Counters", **{"": value})
    assert ["device 1" in one.consequence for one in found(built.build())] == [True]


@pytest.mark.parametrize(
    ("clocks", "busy"),
    [
        (FALLEN, [(0, 29), (61, 100)]),  # it falls while nothing runs
        (FALLEN, []),
        ([1980] * 30 + [345] * 3 + [1200] * 2 + [1980] * 30, [(0, 30), (33, 65)]),  # it rises again once work arrives
        ([210] * 3 + [1200] * 10 + [1980] * 60, [(0, 73)]),
        ([1200] * 100, [(0, 100)]),  # low, but never higher
        ([1980] * 50 + [1200] + [1980] * 50, [(0, 101)]),  # one sample
        ([1980, 1900, 1850, 1950] * 25, [(0, 100)]),
        ([1980] * 50 + [None] * 20 + [0] * 20 + [1980] * 10, [(0, 100)]),
        ([1980] * 600 + [1200] * 5 + [1980] * 400, [(0, 1005)]),  # too short to matter
        ([1980, 1200], [(0, 2)]),
    ],
)
def test_what_proves_nothing_is_not_reported(clocks, busy):
    assert found(recorded(clocks, busy).build()) == []


def test_a_program_may_have_a_counter_of_that_name():
    built = recorded([], [(0, 100)])
    for nth, value in enumerate(FALLEN):
        built.event("", "SM Clock (MHz)", nth * MS, None, ph="C", pid=1, **{"": value})
    assert found(built.build()) == []


def test_the_clocks_of_the_recording_of_torch_2_15_rise(torch_2_15):
    assert found(read(torch_2_15 / "cuspy/cuspy_counters.json.gz")) == []


def slow(times, values, kernels):
    """The definition, sample by sample: the low samples."""

    def busy(first, last):
        return sum(max(0, min(end, last) - max(start, first)) for start, end in kernels)

    gap = np.median(np.diff(times))
    full = [b - a <= 10 * gap and busy(a, b) >= 0.9 * (b - a) for a, b in pairwise(times)]
    low, highest = set(), 0
    for i, value in enumerate(values):
        if not (0 < i < len(values) - 1 and full[i - 1] and full[i] and value > 0):
            highest = 0
            continue
        highest = max(highest, value)
        if value < LOW * highest:
            low.add(i)
    return {i for i in low if i - 1 in low or i + 1 in low}


GAPS = st.lists(st.sampled_from([1, 1, 1, 2, 30]), min_size=4, max_size=30)
CLOCKS = st.lists(st.sampled_from([1980.0, 1900.0, 1500.0, 1200.0, 0.0, float("nan")]), min_size=4, max_size=30)
KERNELS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40)), min_size=1, max_size=4)


@given(GAPS, CLOCKS, KERNELS)
def test_any_samples_give_what_the_definition_gives(gaps, values, kernels):
    size = min(len(gaps), len(values))
    times, values = np.cumsum(gaps[:size]) * MS, np.array(values[:size])
    united, last = [], 0
    for start, length in kernels:  # one behind the other, so that they are a union
        united.append((last + start * MS // 10, last + start * MS // 10 + length * MS))
        last = united[-1][1] + 1
    clock = HardwareCounter(0, "SM Clock", "MHz", times, values)
    result = throttling(clock, tuple(np.array(part) for part in zip(*united, strict=True)))
    low = slow(times.tolist(), values.tolist(), united)
    covered = (
        set() if result is None else {i for i, t in enumerate(times) if ((result.start <= t) & (t < result.end)).any()}
    )
    assert covered == low
    if result:
        assert 0 < result.kernel_ns <= result.length_ns
        assert result.lowest_mhz < LOW * result.highest_mhz
        assert 0 < result.share <= 1
