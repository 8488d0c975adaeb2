"""For any trace: every slice is drawn, once, where nothing else is; and a tile is what a slow look at all slices sees."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.measures.calls.annotation_ranges import AnnotationRanges
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.core.model import FRAMES
from kinetoscope_tb.timeline.core.pyramid import Pyramid, Rows, batch_bytes
from support.build import TraceBuilder
from support.examples import examples
from support.read_once import read_once
from support.real_traces import FOLDER, of_each_program
from support.slow_timeline import decoded, tile
from support.strategies import builders

TRACES = of_each_program("runs", "single")
KINDS = st.sampled_from(["op", "annotation", "python", "kernel", "launch"])
SLICES = st.lists(st.tuples(KINDS, st.integers(0, 60), st.integers(0, 30), st.integers(1, 3)), max_size=40)


def built(slices):
    trace = TraceBuilder()
    for number, (kind, at, dur, where) in enumerate(slices):
        if kind == "kernel":
            trace.kernel(f"k{number % 3}", at, dur, number, stream=where)
        elif kind == "launch":
            trace.launch(at, dur, number, thread=where)
        else:
            getattr(trace, kind)(f"{kind}{number % 3}", at, dur, thread=where)
    return trace.build()


@examples(100)
@given(SLICES)
def test_every_slice_of_the_trace_is_in_one_lane_alone(slices):
    trace = built(slices)
    made = timeline(trace)
    own = [number for number in range(made.size) if made.tracks[made.track_of(number)].part != "projected"]
    assert len(own) == len(slices) == sum(getattr(trace, name).height for name in FRAMES)
    assert sorted(made.event[own].tolist()) == list(range(len(own)))
    for number in own:
        frame, at = made.source_of(number)
        row = getattr(trace, frame).row(at, named=True)
        assert (row["start_ns"], row["dur_ns"]) == (made.start_ns[number], made.dur_ns[number])
        assert row["name"] == made.labels.texts[made.label[number]]
    first, end = made.pyramid.rows.first, made.start_ns + made.dur_ns
    for a, b in pairwise(first.tolist()):
        assert (made.start_ns[a + 1 : b] >= end[a : b - 1]).all()
    for number, parent in enumerate(made.parent.tolist()):
        if parent >= 0:
            assert made.row_of(parent) < made.row_of(number)
            assert made.track_of(parent) == made.track_of(number)
            assert made.start_ns[parent] <= made.start_ns[number] <= end[number] <= end[parent]


@examples(100)
@given(builders())
def test_a_projected_annotation_spans_the_work_launched_inside_on_one_stream(builder):
    trace = builder.build()
    made, ranges, device = timeline(trace), AnnotationRanges.of(trace), trace.device_events.to_dicts()
    expected = set()
    for row in range(len(device)):
        at = int(ranges.launch_range[row])
        while at >= 0:  # outwards
            expected.add((int(ranges.row[at]), device[row]["device"], device[row]["stream"]))
            at = int(ranges.parent[at])
    found = set()
    for track in (place for place, track in enumerate(made.tracks) if track.part == "projected"):
        for number in range(made.size)[made.slices_on(track)]:
            place = (made.source_of(number)[1], made.tracks[track].device, made.tracks[track].stream)
            assert place not in found
            found.add(place)
            work = [row for row in device if (row["device"], row["stream"]) == place[1:]]
            assert int(made.start_ns[number]) in {row["start_ns"] for row in work}
            end = int(made.start_ns[number] + made.dur_ns[number])
            assert end in {row["start_ns"] + row["dur_ns"] for row in work}
    assert found == expected


@st.composite
def rows_of_slices(draw):
    """Some rows of slices that don't overlap, from dense to sparse."""
    rows = []
    for scale in draw(st.lists(st.sampled_from([3, 200, 5_000, 10**7]), min_size=1, max_size=3)):
        steps = draw(st.lists(st.tuples(st.integers(0, scale), st.integers(0, scale)), max_size=60))
        at, row = 0, []
        for gap, dur in steps:
            row.append((at + gap, dur))
            at += gap + dur
        rows.append(row)
    return rows


@given(rows_of_slices(), st.integers(0, 28), st.integers(0, 6))
def test_a_tile_is_what_a_slow_look_at_all_slices_sees(rows, level, index):
    numbers = iter(range(10_000))
    numbered = [[(start, dur, next(numbers), 7) for start, dur in row] for row in rows]
    flat = [one for row in numbered for one in row]
    start, dur = (np.array([one[i] for one in flat], np.int64) for i in (0, 1))
    first = np.cumsum([0, *map(len, rows)])
    pyramid = Pyramid(Rows(start, dur, np.full(start.size, 7, np.uint32), first))
    (drawn,) = decoded(batch_bytes([pyramid.tile(0, len(rows), level, index)]))
    assert drawn == [tile(row, level, index) for row in numbered]


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_tiles_of_real_traces_stand_for_every_slice(path):
    made = timeline(read_once(path))
    first = made.pyramid.rows.first
    assert sum(track.slices for track in made.tracks) == made.size
    columns = (made.start_ns, made.dur_ns, np.arange(made.size), made.label)
    slices = list(zip(*(column.tolist() for column in columns), strict=True))
    for level in (0, 14, 20):
        for place, track in enumerate(made.tracks):
            rows = range(track.first_row, track.first_row + track.lanes)
            index = slices[made.slices_on(place).stop - 1][0] >> (level + 9)
            (drawn,) = decoded(batch_bytes([made.pyramid.tile(rows.start, rows.stop, level, index)]))
            assert drawn == [tile(slices[first[row] : first[row + 1]], level, index) for row in rows]
