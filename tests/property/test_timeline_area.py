"""The table of an area, for any trace and any area: what a slow look at each instant and slice says."""

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.reader import read
from kinetoscope_tb.timeline import CATEGORIES, timeline
from kinetoscope_tb.timeline.search.area import area
from support.real_traces import FOLDER
from support.strategies import builders

TRACES = sorted(path for kind in ("runs", "single") for path in (FOLDER / kind).rglob("*.json*"))


def slowly(made, begin, end, tracks):
    """(calls, total, self, union, mean, min, p50, p95, max) by name and category."""
    start, stop = made.start_ns.tolist(), (made.start_ns + made.dur_ns).tolist()
    inside = defaultdict(list)
    for number in range(made.size):
        is_open = start[number] < end and (stop[number] > begin or start[number] >= begin)
        if made.track_of(number) in tracks and is_open:
            label = int(made.label[number])
            inside[made.labels.texts[label], CATEGORIES[made.labels.categories[label]]].append(number)
    rows = {}
    for name, numbers in inside.items():
        instants = [range(max(start[i], begin), min(stop[i], end)) for i in numbers]
        inner = [[range(start[c], stop[c]) for c in range(made.size) if made.parent[c] == i] for i in numbers]
        alone = sum(
            not any(at in child for child in children)
            for at_times, children in zip(instants, inner, strict=True)
            for at in at_times
        )
        durations = sorted(stop[i] - start[i] for i in numbers)
        count = len(numbers)
        quantiles = [durations[-(-count // 2) - 1], durations[-(-95 * count // 100) - 1]]
        mean = (2 * sum(durations) + count) // (2 * count)
        union = len({at for times in instants for at in times})
        rows[name] = (count, sum(map(len, instants)), alone, union, mean, durations[0], *quantiles, durations[-1])
    return rows


@given(builders(), st.integers(-5, 90), st.integers(0, 90), st.sets(st.integers(0, 8)))
def test_the_table_is_what_a_look_at_each_instant_says(builder, begin, lasts, tracks):
    made = timeline(builder.build())
    tracks = {track for track in tracks if track < len(made.tracks)}
    found = area(made, begin, begin + lasts, sorted(tracks))
    assert {row[:2]: row[2:] for row in found.iter_rows()} == slowly(made, begin, begin + lasts, tracks)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_areas_of_real_traces_that_touch_add_up_to_the_whole(path):
    made = timeline(read(path))
    first, last = made.window
    middle, tracks = (first + last) // 2, range(len(made.tracks))
    parts = [area(made, *times, tracks) for times in ((first, middle), (middle, last + 1))]
    whole = area(made, first, last + 1, tracks)
    for column in ("total_ns", "self_ns"):
        assert whole[column].sum() == sum(part[column].sum() for part in parts)
    assert whole["calls"].sum() == made.size
    assert whole["total_ns"].sum() == int(made.dur_ns.sum())
    assert (whole["self_ns"] >= 0).all()
    assert (whole["union_ns"] <= whole["total_ns"]).all()
