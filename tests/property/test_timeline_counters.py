"""Tiles of counters, for any curve: what a slow look at each moment says."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.measures.memory.levels import device_memories
from kinetoscope_tb.measures.recording.contents import has_kernels
from kinetoscope_tb.timeline.counters.counters import Counter, counters
from kinetoscope_tb.views import VIEWS
from support.read_once import read_once
from support.real_traces import FOLDER, of_each_program

TRACES = of_each_program("runs", "single")


@st.composite
def curves(draw):
    changes = sorted(draw(st.lists(st.integers(0, 300), min_size=1, max_size=30)))
    values = draw(st.lists(st.integers(-3, 9), min_size=len(changes), max_size=len(changes)))
    kind = draw(st.sampled_from(["bytes", "fraction", "count"]))
    end = changes[-1] + draw(st.integers(0, 60))
    curve = np.array(changes), np.array(values, np.float64)
    return Counter("x", kind, "cuda:0", 0, None, (-3.0, 9.0), end, lambda: curve)


def value_at(curve, moment):
    """What holds at the end of a moment, after all changes of it."""
    begun = [value for at, value in zip(*(column.tolist() for column in curve.curve), strict=True) if at <= moment]
    return begun[-1] if begun else math.nan


def slowly(curve, edge, stop):
    """(least, largest, last) of the moments from edge up to stop that are known."""
    moments = range(edge, max(edge + 1, min(stop, curve.end)))
    held = [value for value in (value_at(curve, moment) for moment in moments) if not math.isnan(value)]
    if edge > curve.end:
        return (math.nan,) * 3
    if curve.kind == "fraction":
        last = value_at(curve, stop - 1)
        return (sum(held) / len(held) if held else last,) * 3
    changes = [v for at, v in zip(*(column.tolist() for column in curve.curve), strict=True) if edge <= at < stop]
    known = [*held[:1], *changes] if not math.isnan(value_at(curve, edge)) else changes
    if not known:
        return (math.nan,) * 3
    return min(known), max(known), value_at(curve, stop - 1)


@given(curves(), st.integers(0, 9), st.integers(0, 1))
def test_a_bucket_is_what_a_look_at_each_moment_says(curve, level, index):
    tile = curve.tile(level, index)
    begin = index * 512 << level
    for bucket in range(512):
        edge = begin + (bucket << level)
        if edge > curve.end + (1 << level):
            assert np.isnan(tile[:, bucket:]).all()
            break
        assert tile[:, bucket].tolist() == pytest.approx(slowly(curve, edge, edge + (1 << level)), nan_ok=True)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_counters_of_real_traces_agree_with_the_views(path):
    trace = read_once(path)
    curves = counters(trace)
    for curve in curves:
        at, value = curve.curve
        assert (np.diff(at) >= 0).all()
        assert curve.bounds[0] <= np.nanmin(value) <= np.nanmax(value) <= curve.bounds[1]
        level = max(0, int(curve.end).bit_length() - 9)
        tile = curve.tile(level, 0)
        assert np.nanmax(tile[1]) <= np.nanmax(value)
        if curve.kind != "fraction":
            assert (np.nanmin(tile[0]), np.nanmax(tile[1])) == (value.min(), value.max())
            assert tile[2][~np.isnan(tile[2])][-1] == value[-1]
    for memory in device_memories(trace):
        (curve,) = [c for c in curves if (c.name, c.device) == ("Allocated memory", memory.name)]
        assert curve.curve[1].max() == memory.level_before(memory.peak() + 1)
    if has_kernels(trace):
        for row in (
            VIEWS["gpu_activity"]
            .run(trace, from_ns=trace.window[0])
            .drop_nulls("utilization_frac")
            .iter_rows(named=True)
        ):
            (curve,) = [c for c in curves if c.name.endswith(" utilization") and c.index == row["device"]]
            until = int(np.searchsorted(curve.curve[0], row["time_ns"] + row["dur_ns"]))
            inside = curve.curve[0][:until] - row["time_ns"], curve.curve[1][:until]
            alone = Counter("x", "fraction", "", 0, None, (0.0, 1.0), row["dur_ns"], lambda inside=inside: inside)
            level = int(row["dur_ns"]).bit_length()
            assert alone.tile(level, 0)[0, 0] == pytest.approx(row["utilization_frac"], abs=1e-9)
