"""A timeline comes back from its entry as it was, or not at all."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from kinetoscope_tb.engine.cache import Cache
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.core.pyramid import Pyramid
from support.build import TraceBuilder


def recorded():
    built = TraceBuilder().step(1, 0, 90_000)
    for i in range(200):
        built.op(f"op {i % 7}", i * 400, 300).kernel("k", i * 400 + 100, 250, i)
    return built.build()


def made():
    return timeline(recorded())


def columns(one):
    pyramid = one.pyramid
    arrays = {**vars(pyramid.rows), **vars(pyramid.levels), "parent": one.parent, "event": one.event}
    return {name: array for name, array in arrays.items() if array is not None}


def test_a_timeline_comes_back_as_it_was(tmp_path):
    written, cache = made(), Cache(tmp_path)
    cache.write_timeline(written, "a.pt.trace.json", "stamp")
    opened_timeline = cache.open_timeline("a.pt.trace.json", "stamp", recorded())
    assert (opened_timeline.window, opened_timeline.tracks, opened_timeline.frame_first) == (
        written.window,
        written.tracks,
        written.frame_first,
    )
    assert opened_timeline.labels.texts == written.labels.texts
    assert columns(opened_timeline).keys() == columns(written).keys()
    for name, array in columns(opened_timeline).items():
        np.testing.assert_array_equal(array, columns(written)[name], strict=True)
    tiles = [one.pyramid.tile(0, 1, 12, 0) for one in (written, opened_timeline)]
    assert tiles[0].count.tolist() == tiles[1].count.tolist()


def test_a_track_may_have_any_number(tmp_path):
    trace = TraceBuilder().op("a", 0, 30).kernel("k", 10, 10, 1, stream=(1 << 63) - 1).build()
    made, cache = timeline(trace), Cache(tmp_path)
    cache.write_timeline(made, "a.pt.trace.json", "stamp")
    assert cache.open_timeline("a.pt.trace.json", "stamp", trace).tracks == made.tracks


def test_a_timeline_outlives_its_entry(tmp_path):
    cache = Cache(tmp_path)
    cache.write_timeline(made(), "a.pt.trace.json", "stamp")
    opened_timeline = cache.open_timeline("a.pt.trace.json", "stamp", recorded())
    cache.clear()
    assert opened_timeline.pyramid.tile(0, 1, 12, 0).count.sum() == opened_timeline.slices_on(0).stop


@pytest.mark.parametrize("place", [70, 400, -400, -5])
def test_a_damaged_entry_is_made_anew(tmp_path, caplog, place):
    cache = Cache(tmp_path)
    cache.write_timeline(made(), "a.pt.trace.json", "stamp")
    (entry,) = tmp_path.iterdir()
    data = bytearray(entry.read_bytes())
    data[place] ^= 0xFF
    entry.write_bytes(data)
    with caplog.at_level(logging.INFO):
        opened_timeline = cache.open_timeline("a.pt.trace.json", "stamp", recorded())
    assert opened_timeline is None
    assert "is read again" in caplog.text


@pytest.mark.parametrize("busy", [-1, 1 << 62])
def test_an_entry_with_an_impossible_sum_is_made_anew(tmp_path, caplog, busy):
    written, cache = made(), Cache(tmp_path)
    levels = replace(written.pyramid.levels, busy_ns=np.full_like(written.pyramid.levels.busy_ns, busy))
    forged = replace(written, pyramid=Pyramid(written.pyramid.rows, levels))
    cache.write_timeline(forged, "a.pt.trace.json", "stamp")
    with caplog.at_level(logging.INFO):
        assert cache.open_timeline("a.pt.trace.json", "stamp", recorded()) is None
    assert "a duration is out of range" in caplog.text


def test_the_cache_lists_and_clears_timelines_too(tmp_path):
    cache = Cache(tmp_path)
    cache.write_timeline(made(), "a.pt.trace.json", "stamp")
    assert [entry.path for entry in cache.entries()] == ["a.pt.trace.json"]
    assert cache.clear() > 0
    assert cache.entries() == []
