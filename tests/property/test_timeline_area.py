"""The groups and flames of an area, for any trace and any area: what a slow look at each instant and slice says."""

from collections import Counter, defaultdict
from typing import get_args

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.measures.calls.annotation_ranges import AnnotationRanges
from kinetoscope_tb.timeline.area.counter_values import counter_values
from kinetoscope_tb.timeline.area.flame import area_flames
from kinetoscope_tb.timeline.area.groups import NO_ANNOTATION, NO_WORK, By, groups
from kinetoscope_tb.timeline.area.pivot import area
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.core.model import CATEGORIES
from kinetoscope_tb.timeline.counters.counters import Counter as Curve
from kinetoscope_tb.timeline.counters.counters import counters
from support.examples import examples
from support.read_once import read_once
from support.real_traces import FOLDER, of_each_program
from support.strategies import builders

TRACES = of_each_program("runs", "single")
RANK = ["python", "annotations", "projected", "calls", "other", "waits", "work"]
WITH_SPANS = ("name", "category")  # groups that have spans of annotations on streams
LAYER = {"waits": 1, "work": 2}


class Slowly:
    """An area, looked at slice by slice and instant by instant."""

    def __init__(self, made, begin, end, tracks):
        self.made, self.times, self.end_of_area = made, range(begin, end), end
        self.start, self.stop = made.start_ns.tolist(), (made.start_ns + made.dur_ns).tolist()
        track_of = [made.track_of(number) for number in range(made.size)]
        self.track = [made.tracks[place] for place in track_of]
        self.inside = [
            i
            for i in range(made.size)
            if track_of[i] in tracks
            and self.start[i] < end
            and (self.stop[i] > begin or (self.start[i] == self.stop[i] >= begin))
        ]
        self.inside.sort(key=self.order)
        self.parent = {i: self.around(i) for i in self.inside}
        enclosing = set(self.parent.values())
        self.covers = {i for i in enclosing - {None} if self.start[i] <= begin and self.stop[i] >= end}
        self.own = Counter()
        for at in self.times:
            owners = {}
            for i in self.inside:
                if self.start[i] <= at < self.stop[i]:
                    axis = self.axis(i)
                    owners[axis] = max(owners.get(axis, i), i, key=lambda j: (self.layer(j), self.inside.index(j)))
            self.own.update(i for i in owners.values() if not (self.is_device(i) and self.layer(i) == 0))

    def order(self, i):
        return self.start[i], self.start[i] - self.stop[i], RANK.index(self.track[i].part), i

    def axis(self, i):
        return self.track[i].device, self.track[i].stream, self.track[i].pid, self.track[i].tid

    def is_device(self, i):
        return self.track[i].stream is not None

    def layer(self, i):
        return LAYER.get(self.track[i].part, 0)

    def around(self, i):
        """The last of those before it that are open when it begins and, unless it is device work, enclose it."""
        before = [j for j in self.inside if self.order(j) < self.order(i) or (self.layer(i) and j != i)]
        candidates = [
            j
            for j in before
            if self.axis(j) == self.axis(i)
            and self.layer(j) == 0
            and self.start[j] <= self.start[i] < self.stop[j]
            and (self.layer(i) or self.stop[j] >= self.stop[i])
        ]
        return max(candidates, key=self.order, default=None)

    def is_span(self, i):
        return self.is_device(i) and self.track[i].part in ("annotations", "projected")

    def groups(self, group_of, *, has_spans=True):
        """(self, total, calls, union, mean, min, p50, p95, max) by group, device, covering."""
        members = defaultdict(list)
        for i in (i for i in self.inside if has_spans or not self.is_span(i)):
            members[(*group_of(i), self.is_device(i), i in self.covers)].append(i)
        rows = {}
        for key, numbers in members.items():
            times = [[at for at in self.times if self.start[i] <= at < self.stop[i]] for i in numbers]
            durations = sorted(self.stop[i] - self.start[i] for i in numbers)
            count = len(numbers)
            quantiles = [durations[-(-count // 2) - 1], durations[-(-95 * count // 100) - 1]]
            mean = (2 * sum(durations) + count) // (2 * count)
            union = len({at for some in times for at in some})
            own = sum(self.own[i] for i in numbers)
            rows[key] = (own, sum(map(len, times)), count, union, mean, durations[0], *quantiles, durations[-1])
        return rows

    def flames(self, *, is_device):
        """The self time of each path of names below a thread or stream."""
        paths = Counter()
        for i in self.inside:
            if self.is_device(i) == is_device:
                path, at = [], i
                while at is not None:
                    if at not in self.covers:
                        path.insert(0, label(self.made, at))
                    at = self.parent[at]
                paths[(self.axis(i), *path)] += self.own[i]
        return paths


def label(made, number):
    place = int(made.label[number])
    return made.labels.texts[place], CATEGORIES[made.labels.categories[place]]


recorded_spans = st.lists(
    st.tuples(st.sampled_from(["aten::mm", "y"]), st.integers(0, 60), st.integers(0, 25)), max_size=3
)


def with_spans(builder, spans):
    """The trace, with spans of annotations on a stream as torch records them."""
    for name, at, dur in spans:
        builder.event("gpu_user_annotation", name, at, dur, pid=0, tid=7)
    return builder.build()


def areas():
    return st.tuples(st.integers(-5, 90), st.integers(0, 90), st.sets(st.integers(0, 8)))


def chosen(made, where):
    begin, lasts, tracks = where
    return begin, begin + lasts, sorted(track for track in tracks if track < len(made.tracks))


def cells(table):
    names = ["name", "category", "process", "is_device", "is_covering"]
    amounts = [name for name in table.columns if name not in names]
    return {tuple(row[name] for name in names): tuple(row[name] for name in amounts) for row in table.to_dicts()}


@examples(100)
@given(builders(), recorded_spans, areas())
def test_what_holds_of_any_area(builder, spans, where):
    trace = with_spans(builder, spans)
    made = timeline(trace)
    where = chosen(made, where)
    slowly = Slowly(made, *where)
    assert_groups_by_name_are_what_a_look_at_each_instant_says(trace, made, where, slowly)
    assert_device_time_by_annotation_is_that_of_the_work_launched_in_it(trace, made, where, slowly)
    assert_every_grouping_has_the_same_slices_except_for_the_spans_of_annotations(trace, made, where, slowly)
    assert_flames_are_what_a_look_at_each_instant_says(made, where, slowly)
    assert_counters_have_the_values_of_each_instant(trace, where)


def assert_groups_by_name_are_what_a_look_at_each_instant_says(trace, made, where, slowly):
    by_name = area(made, groups(trace, made, "name"), *where)
    assert cells(by_name) == slowly.groups(lambda i: (label(made, i)[0] or None, label(made, i)[1], None))
    by_thread = area(made, groups(trace, made, "thread"), *where)
    thread = slowly.groups(lambda i: (slowly.track[i].name, None, slowly.track[i].process), has_spans=False)
    assert cells(by_thread) == thread


def assert_device_time_by_annotation_is_that_of_the_work_launched_in_it(trace, made, where, slowly):
    ranges = AnnotationRanges.of(trace)

    def launching(i):
        frame, row = made.source_of(i)
        if frame != "device_events" and slowly.is_device(i):
            return NO_WORK, None, None
        place = ranges.launch_range[row] if frame == "device_events" else -1
        return ranges.names[ranges.code[place]].name if place >= 0 else NO_ANNOTATION, None, None

    expected = {key: row for key, row in slowly.groups(launching, has_spans=False).items() if key[3]}
    assert cells(area(made, groups(trace, made, "annotation"), *where).filter(pl.col("is_device"))) == expected


def assert_every_grouping_has_the_same_slices_except_for_the_spans_of_annotations(trace, made, where, slowly):
    begin, end, _ = where
    in_area = [
        max(0, min(slowly.stop[i], end) - max(slowly.start[i], begin)) for i in filter(slowly.is_span, slowly.inside)
    ]
    amounts = set()
    for by in get_args(By):
        of_spans = (0, 0) if by in WITH_SPANS else (sum(in_area), len(in_area))
        table = area(made, groups(trace, made, by), *where)
        host, device = (table.filter(pl.col("is_device") == side) for side in (False, True))
        columns = ("self_ns", "total_ns", "calls")
        on_host, (own, total, calls) = (tuple(side[column].sum() for column in columns) for side in (host, device))
        amounts.add((on_host, own, total + of_spans[0], calls + of_spans[1]))
    assert len(amounts) == 1


def assert_flames_are_what_a_look_at_each_instant_says(made, where, slowly):
    for is_device in (False, True):
        boxes = area_flames(made, *where, is_device=is_device).rows(named=True)
        expected = +slowly.flames(is_device=is_device)
        assert sum(box["self_ns"] for box in boxes) == expected.total()
        assert sum(box["total_ns"] for box in boxes if box["parent"] is None) == expected.total()
        paths, found = [], Counter()
        for box in boxes:
            name = (box["name"] or "", box["kind"]) if box["kind"] else box["name"]
            paths.append((name,) if box["parent"] is None else (*paths[box["parent"]], name))
            found[paths[-1][1:]] += box["self_ns"]
            inner = sum(one["total_ns"] for one in boxes if one["parent"] == len(paths) - 1)
            assert box["total_ns"] == box["self_ns"] + inner
        without_axes = Counter()
        for path, own in expected.items():
            without_axes[path[1:]] += own
        assert +found == without_axes


def assert_counters_have_the_values_of_each_instant(trace, where):
    begin, end, _ = where
    for counter in counters(trace):
        at, value = counter.curve
        held = [value[np.searchsorted(at, t, "right") - 1] for t in range(begin, end) if at[0] <= t < counter.end]
        held = [one for one in held if np.isfinite(one)]
        values = counter_values(counter, begin, end)
        if not held:
            assert set(values.values()) == {None}
            continue
        assert values["mean"] == pytest.approx(sum(held) / len(held))
        assert (values["least"], values["most"]) == (min(held), max(held))
        assert (values["first"], values["last"]) == (held[0], held[-1])


LARGEST = float(np.finfo(np.float64).max)


@pytest.mark.parametrize(
    ("values", "mean"),
    [([1e308, 1e308, 1e308], 1e308), ([LARGEST] * 7, LARGEST), ([-LARGEST, LARGEST], 0), ([5e-324] * 3, 5e-324)],
)
def test_a_counter_of_any_finite_values_has_a_mean(values, mean):
    changes = np.arange(len(values)) * 10**9, np.array(values)
    bounds = min(values), max(values)
    counter = Curve("rate", "number", "host", None, None, bounds, len(values) * 10**9, lambda: changes)
    assert counter_values(counter, 0, counter.end)["mean"] == mean


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_areas_of_real_traces_that_touch_add_up_to_the_whole(path):
    trace = read_once(path)
    made = timeline(trace)
    first, last = made.window
    middle, tracks, by = (first + last) // 2, range(len(made.tracks)), groups(trace, made, "name")
    parts = [area(made, by, *times, tracks) for times in ((first, middle), (middle, last + 1))]
    whole = area(made, by, first, last + 1, tracks)
    for column in ("total_ns", "self_ns"):
        assert whole[column].sum() == sum(part[column].sum() for part in parts)
    assert whole["calls"].sum() == made.size
    assert whole["total_ns"].sum() == int(made.dur_ns.sum())
    assert (whole["self_ns"] >= 0).all()
    assert (whole["self_ns"] <= whole["total_ns"]).all()
    assert (whole["union_ns"] <= whole["total_ns"]).all()


def test_self_times_of_a_real_trace_are_the_time_in_which_anything_runs():
    path = next(path for path in TRACES if path.name.endswith(".gz") or path.stat().st_size > 1_000_000)
    trace = read_once(path)
    made = timeline(trace)
    whole = area(made, groups(trace, made, "category"), *made.window, range(len(made.tracks)))
    running = Counter()
    for is_device in (True, False):
        by_axis = defaultdict(list)
        for place, track in enumerate(made.tracks):
            if (track.stream is not None) == is_device and (not is_device or track.part in LAYER):
                by_axis[track.device, track.stream, track.pid, track.tid].append(made.slices_on(place))
        for places in by_axis.values():
            numbers = np.concatenate([np.arange(one.start, one.stop) for one in places])
            until = -1
            for start, dur in sorted(zip(made.start_ns[numbers].tolist(), made.dur_ns[numbers].tolist(), strict=True)):
                running[is_device] += max(0, start + dur - max(start, until))
                until = max(until, start + dur)
        assert whole.filter(is_device=is_device)["self_ns"].sum() == running[is_device]
        boxes = area_flames(made, *made.window, range(len(made.tracks)), is_device=is_device)
        assert boxes.filter(boxes["parent"].is_null())["total_ns"].sum() == running[is_device]
