"""What the slices of an area can be grouped by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE, categories_of, category_codes, gather
from ...arrays.nesting import innermost
from ...measures.calls.annotation_ranges import AnnotationRanges
from ...measures.calls.module_calls import ModuleCalls
from ...measures.calls.module_times import OUTSIDE, UNATTRIBUTED
from ...trace import Trace
from ...trace.row_filters import is_operator_of_all
from ..core.model import CATEGORIES, FRAMES, Timeline
from .slices import Ints, Rows, axes_of

By = Literal["name", "category", "thread", "operator", "module", "annotation"]

NO_OPERATOR, NO_ANNOTATION, NO_WORK = "[no operator]", "[outside annotations]", "[no device work]"


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of all slices of a timeline; compared by identity.

    Args:
        code: The group of each slice.
        names: Of each group.
        categories: Of each group, if it has one.
        processes: The process or device of each group, if it has one.
        has_spans: Whether spans of annotations on streams are in groups without work. If not they aren't counted, since
            their time is that of the work inside them.
    """

    code: NDArray[np.integer]
    names: list[str]
    categories: list[str] | None = None
    processes: list[str] | None = None
    has_spans: bool = False


def groups(trace: Trace, timeline: Timeline, by: By) -> Groups:
    """The groups of the slices."""
    return _GROUPS[by](trace, timeline)


def _by_name(_trace: Trace, timeline: Timeline) -> Groups:
    labels = timeline.labels
    categories = [CATEGORIES[i] for i in labels.categories.tolist()]
    return Groups(timeline.label, labels.texts, categories, has_spans=True)


def _by_category(_trace: Trace, timeline: Timeline) -> Groups:
    return Groups(timeline.labels.categories[timeline.label], list(CATEGORIES), has_spans=True)


def _by_thread(_trace: Trace, timeline: Timeline) -> Groups:
    tracks = timeline.tracks
    axis = np.repeat(axes_of(tracks), [track.slices for track in tracks])
    return Groups(axis, [track.name for track in tracks], processes=[track.process for track in tracks])


def _by_operator(trace: Trace, timeline: Timeline) -> Groups:
    """Operators by name: device work by the operator that launched it, runtime calls by the one around them."""
    host = trace.all_host_events
    is_op = is_operator_of_all(trace)
    names: Ints = category_codes(host["name"]).astype(np.int64)
    codes = {
        "host_events": np.where(is_op, names, NONE)[: trace.host_events.height],
        "launches": gather(names, trace.launches["op"].to_numpy()),
        "device_events": gather(names, trace.device_events["op"].to_numpy()),
    }
    texts = categories_of(host["name"]).to_list()
    return _of_frames(trace, timeline, codes, texts, NO_OPERATOR)


def _by_module(trace: Trace, timeline: Timeline) -> Groups:
    """Modules by path: of device work that which launched it, of backward work that of its forward operator."""
    modules = ModuleCalls.of(trace)
    forest = modules.forest
    codes = {}
    for frame in ("host_events", "launches", "python_calls"):
        rows = getattr(trace, frame)
        codes[frame] = modules.of_rows(forest.at(rows["thread"].to_numpy(), rows["start_ns"].to_numpy()))[0]
    of_host = modules.of_host_rows(trace)[0][: trace.host_events.height]
    codes["host_events"] = np.where(of_host != NONE, of_host, codes["host_events"])
    launch_ranges, paths = forest.rows_at_launch(trace), modules.paths()
    codes["device_events"] = np.where(launch_ranges == NONE, len(paths), modules.of_rows(launch_ranges)[0])
    return _of_frames(trace, timeline, codes, [*paths, UNATTRIBUTED], OUTSIDE)


def _by_annotation(trace: Trace, timeline: Timeline) -> Groups:
    """The innermost annotations, without the numbers of steps; of device work that in which it was launched."""
    ranges, host, python = AnnotationRanges.of(trace, with_warmup=True), trace.host_events, trace.python_calls
    number = np.full(host.height, NONE, np.int32)
    number[ranges.row] = np.arange(ranges.row.size)
    rows = np.sort(ranges.row)
    thread, start, dur = (host[name].to_numpy()[rows] for name in ("thread", "start_ns", "dur_ns"))
    around = innermost(thread, start, start + dur, python["thread"].to_numpy(), python["start_ns"].to_numpy())
    ranges_around = {
        "host_events": ranges.around_host,
        "launches": ranges.around_call,
        "device_events": ranges.launch_range,
        "python_calls": gather(number, gather(rows, around)),
    }
    codes = {frame: gather(ranges.code, of) for frame, of in ranges_around.items()}
    return _of_frames(trace, timeline, codes, [name.name for name in ranges.names], NO_ANNOTATION)


def _of_frames(
    trace: Trace, timeline: Timeline, codes: Mapping[str, Ints | Rows], names: list[str], rest: str
) -> Groups:
    """The groups by the rows of the trace's frames; what has none is in the group `rest`.

    Waits and other events on streams are no device work, so they have a group of their own: `rest` has as much
    device time as in the views.
    """
    parts = [codes.get(frame, np.full(getattr(trace, frame).height, NONE, np.int64)) for frame in FRAMES]
    code = np.concatenate(parts)[timeline.event]
    is_work = np.repeat([frame == "device_events" for frame in FRAMES], [part.size for part in parts])[timeline.event]
    on_stream = np.array([track.stream is not None for track in timeline.tracks], bool)
    is_on_stream = np.repeat(on_stream, [track.slices for track in timeline.tracks])
    unknown_code = len(names) + (is_on_stream & ~is_work)
    return Groups(np.where(code == NONE, unknown_code, code), [*names, rest, NO_WORK])


_GROUPS: dict[By, Callable[[Trace, Timeline], Groups]] = {
    "name": _by_name,
    "category": _by_category,
    "thread": _by_thread,
    "operator": _by_operator,
    "module": _by_module,
    "annotation": _by_annotation,
}
