"""What is found, for any trace: what a slow look at each slice finds; and rows of views have the slices that they count."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.measures.calls.matrix_work import FORMULAS
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.core.model import CATEGORIES
from kinetoscope_tb.timeline.core.pyramid import batch_bytes
from kinetoscope_tb.timeline.search.search import parse_find, search
from kinetoscope_tb.views import VIEWS
from support.examples import examples
from support.read_once import read_once
from support.real_traces import FOLDER, of_each_program
from support.slow_timeline import decoded, tile
from support.strategies import builders

TRACES = of_each_program("runs", "single")
UNCOUNTED = {
    "steps",
    "gpus",
    "exposed_time",
    "idle",
    "gaps",
    "graphs",
    "kernel_efficiency",
}  # or other things than slices
UNCOUNTED |= {"critical_path", "critical_path_culprits", "critical_path_names", "critical_path_segments"}
COUNTS = dict.fromkeys({view.id for view in VIEWS.values() if view.slices} - UNCOUNTED, "calls")
COUNTS |= {"launch_durations": "launching_calls", "graphs": None, "memory_events": None, "memory_by_operator": None}
ROWS = 10  # of each view that are looked at


def slices_of(trace, made, **find):
    return search(trace, made, parse_find(json.dumps(find), VIEWS), VIEWS)


def assert_rows_have_what_they_count(trace, made, view):
    table = VIEWS[view].run(trace)
    for row in table[:: max(1, table.height // ROWS)].iter_rows(named=True):
        search = slices_of(trace, made, view=view, **{name: row[name] for name in VIEWS[view].table.key})
        if view == "operator_efficiency" and row["name"] not in FORMULAS:  # a call's kernels, which may be several
            assert made.dur_ns[search.numbers].sum() == row["time_ns"]
        elif view == "graphs":
            assert search.numbers.size == round(row["launches"] * row["mean_device_events"])
        elif row.get(COUNTS[view] or "") is not None and not {"[other stacks]", "[smaller calls]"} & set(row.values()):
            assert search.numbers.size == row[COUNTS[view]]


def assert_rows_of_views_have_as_many_slices_as_they_say(trace, made):
    for view in COUNTS:
        if not VIEWS[view].is_missing(trace):
            assert_rows_have_what_they_count(trace, made, view)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_rows_of_views_of_real_traces_have_as_many_slices_as_they_say(path):
    trace = read_once(path)
    assert_rows_of_views_have_as_many_slices_as_they_say(trace, timeline(trace))


@examples(100)
@given(
    builders(),
    st.sampled_from(["mm", "a", "", "aten -mm", "re:^a", "k"]),
    st.integers(0, 90),
    st.sampled_from(CATEGORIES),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_what_holds_of_any_search(builder, words, at, category, begin, lasts):
    trace = builder.build()
    made = timeline(trace)
    assert_rows_of_views_have_as_many_slices_as_they_say(trace, made)
    assert_what_is_found_is_what_a_look_at_each_slice_finds(trace, made, words, at)
    assert_a_time_and_a_category_choose_the_slices_that_reach_into_it(trace, made, category, begin, lasts)


def assert_what_is_found_is_what_a_look_at_each_slice_finds(trace, made, words, at):
    search = slices_of(trace, made, text=words)
    names = [made.labels.texts[label] for label in made.label.tolist()]
    expected = {
        "mm": lambda name: "mm" in name,
        "a": lambda name: "a" in name,
        "": lambda name: True,
        "aten -mm": lambda name: "aten" in name and "mm" not in name,
        "re:^a": lambda name: name.startswith("a"),
        "k": lambda name: "k" in name,
    }[words]
    numbers = [number for number, name in enumerate(names) if expected(name.lower())]
    assert search.numbers.tolist() == numbers
    starts = sorted(made.start_ns[numbers].tolist())
    assert search.by_start[0].tolist() == starts
    assert search.place_after(at) == sum(start <= at for start in starts)
    assert search.place_before(at) == sum(start < at for start in starts) - 1
    assert sum(search.histogram()) == sum(count for _, count, _ in search.names()) == len(numbers)
    for level in (0, 3):
        rows = [made.pyramid.rows.first[row : row + 2].tolist() for row in range(made.pyramid.rows.first.size - 1)]
        (drawn,) = decoded(batch_bytes([search.pyramid().tile(0, len(rows), level, 0)]))
        columns = (made.start_ns, made.dur_ns, np.arange(made.size), made.label)
        slices = list(zip(*(column.tolist() for column in columns), strict=True))
        assert drawn == [tile([slices[i] for i in numbers if a <= i < b], level, 0) for a, b in rows]


def assert_a_time_and_a_category_choose_the_slices_that_reach_into_it(trace, made, category, begin, lasts):
    search = slices_of(trace, made, category=category, from_ns=begin, to_ns=begin + lasts)
    kinds = [CATEGORIES[made.labels.categories[label]] for label in made.label.tolist()]
    times = zip(kinds, made.start_ns.tolist(), made.dur_ns.tolist(), strict=True)
    inside = [
        number
        for number, (kind, start, dur) in enumerate(times)
        if kind == category and start < begin + lasts and (start + dur > begin or start >= begin)
    ]
    assert search.numbers.tolist() == inside
