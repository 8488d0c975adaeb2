"""From the columns of a trace to its timeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import categories_of, category_codes, factorize, gather, map_categories
from ...arrays.native import Array, Function
from ...arrays.nesting import nest
from ...measures.calls.annotation_ranges import AnnotationRanges
from ...names.kernels import is_data_loading, step_number
from ...trace import Trace
from .model import CATEGORIES, FRAMES, Labels, Part, Timeline, Track
from .pyramid import Pyramid, Rows
from .tracks import PARTS, Axes, axes, order

_lanes = Function("lanes")
_sort_by_row = Function("sort_by_row")

_CODE = {name: code for code, name in enumerate(CATEGORIES)}
_DEVICE_KINDS = {"kernel": "Kernel", "memcpy": "Memcpy", "memset": "Memset"}
_NOT_DRAWN = ("C", "s", "t", "f", "M")  # counters, arrows and names
_STOP = "Record Window End"  # kineto's mark of when the profiler stopped, which may be long after the last event


@dataclass(frozen=True)
class _Part:
    """Rows of one frame as slices, in its order.

    Args:
        key: For each row axis × number of parts + part; -1 if the row is no slice.
        category: Codes into CATEGORIES.
    """

    frame: pl.DataFrame
    key: NDArray[np.int64]
    category: NDArray[np.uint8]


_MOSTLY = 0.5  # of what was launched inside an annotation


def timeline(trace: Trace) -> Timeline:
    """Every slice of the trace, on its tracks."""
    all_axes = axes(trace)
    rows_recorded = [_parts(trace, name, all_axes) for name in FRAMES]
    firsts = np.cumsum([0, *(part.frame.height for part in rows_recorded)])
    projection = _project_annotations(trace, all_axes)
    parts = [*rows_recorded, projection]
    annotation = firsts[FRAMES.index("host_events")] + projection.frame["row"].to_numpy()
    source = np.concatenate([np.arange(firsts[-1]), annotation]).astype(np.uint32)
    event = np.flatnonzero(np.concatenate([part.key for part in parts]) >= 0).astype(np.uint32)
    start = np.maximum(_column(parts, "start_ns")[event], 0)
    dur = np.maximum(_column(parts, "dur_ns")[event], 0)
    label, labels = _labels(parts)
    tracks, track = _tracks(all_axes, np.concatenate([part.key for part in parts])[event])

    order_in = np.lexsort((-dur, start, track))
    start, dur, track, event = start[order_in], dur[order_in], track[order_in], event[order_in]
    parent, _, _ = nest(track, start, start + dur)
    lane = _lanes_of(track, start, start + dur, parent)
    tracks, row, first = _rows(tracks, track, lane)
    position, by_start = _by_row(row, first[:-1])
    parent = gather(position, parent)[by_start]
    event = event[by_start]
    rows = Rows(start[by_start], dur[by_start], label[event], first)
    end = int((start + dur).max(initial=trace.window[0]))
    window = (min(int(start.min(initial=end)), end), end)
    return Timeline(window, tuple(tracks), labels, Pyramid(rows), parent, source[event], tuple(firsts.tolist()))


def _parts(trace: Trace, name: str, all_axes: Axes) -> _Part:
    """One frame of the trace as slices."""
    frame: pl.DataFrame = getattr(trace, name)
    count = frame.height
    if name in ("device_events", "syncs"):
        axis = _of_streams(frame, all_axes)
        part = np.full(count, PARTS.index("work" if name == "device_events" else "waits"))
    else:
        axis = all_axes.of_thread[frame["thread"].to_numpy()] if count else np.empty(0, np.int32)
        part = np.full(count, PARTS.index("python" if name == "python_calls" else "calls"))
    category = _CATEGORY[name](frame)
    if name == "host_events":
        part[(frame["kind"] == "annotation").to_numpy()] = PARTS.index("annotations")
    if name == "others":
        part[:] = np.where(category == _CODE["Annotation"], PARTS.index("annotations"), PARTS.index("other"))
    key = axis.astype(np.int64) * len(PARTS) + part
    if name == "others":
        key[map_categories(frame["phase"], lambda phase: phase in _NOT_DRAWN)] = -1
        key[map_categories(frame["name"], lambda name: name == _STOP)] = -1
    return _Part(frame, key, category)


def _project_annotations(trace: Trace, all_axes: Axes) -> _Part:
    """Annotations on streams as slices: from the first to the last GPU event launched inside each of them.

    Torch writes such spans since 1.13 (`gpu_user_annotation`). Names that it wrote are left out, so that no range is
    drawn twice, but for those of which it wrote less than half: it leaves out what autograd's threads launch, thus most
    of a backward pass. Other writers' ranges and those of older recordings have no others.
    """
    spans = AnnotationRanges.of(trace).stream_spans(trace)
    frame = spans.with_columns(name=trace.host_events["name"].gather(spans["row"]))
    is_span = pl.col("category").cast(pl.String).str.to_lowercase() == "gpu_user_annotation"
    name, length = pl.col("name").cast(pl.String), pl.col("dur_ns").sum()
    of_torch = trace.others.filter(is_span).group_by(name).agg(torch_ns=length)
    lengths = frame.group_by(name).agg(length).join(of_torch, "name", how="left")
    is_left_out = pl.col("torch_ns") >= _MOSTLY * pl.col("dur_ns")
    frame = frame.filter(~name.is_in(lengths.filter(is_left_out)["name"].implode()))
    key = _of_streams(frame, all_axes) * len(PARTS) + PARTS.index("projected")
    return _Part(frame, key, _all("Annotation")(frame))


def _of_streams(frame: pl.DataFrame, all_axes: Axes) -> NDArray[np.int64]:
    table = pl.DataFrame(
        [(device, stream, axis) for (device, stream), axis in all_axes.of_stream.items()],
        schema={"device": pl.Int32, "stream": pl.Int64, "axis": pl.Int64},
        orient="row",
    )
    rows = frame.select("device", "stream").join(table, on=["device", "stream"], how="left", maintain_order="left")
    return rows["axis"].to_numpy()


def _host_category(frame: pl.DataFrame) -> NDArray[np.uint8]:
    is_annotation = (frame["kind"] == "annotation").to_numpy()
    category = np.where(is_annotation, _CODE["Annotation"], _CODE["Operator"])
    category[is_annotation & map_categories(frame["name"], lambda name: step_number(name) is not None)] = _CODE["Step"]
    category[map_categories(frame["name"], is_data_loading)] = _CODE["DataLoader"]
    category[frame["is_communication"].to_numpy()] = _CODE["Communication"]
    return category.astype(np.uint8)


def _device_category(frame: pl.DataFrame) -> NDArray[np.uint8]:
    category = map_categories(frame["kind"], lambda kind: _CODE[_DEVICE_KINDS[kind]], missing=_CODE["Other"])
    return np.where(frame["is_communication"].to_numpy(), _CODE["Communication"], category).astype(np.uint8)


def _python_category(frame: pl.DataFrame) -> NDArray[np.uint8]:
    return np.where(frame["module_id"].to_numpy() >= 0, _CODE["Module"], _CODE["Python"]).astype(np.uint8)


def _other_category(frame: pl.DataFrame) -> NDArray[np.uint8]:
    is_annotation = map_categories(frame["category"], lambda category: category.lower().endswith("user_annotation"))
    return np.where(is_annotation, _CODE["Annotation"], _CODE["Other"]).astype(np.uint8)


def _all(category: str) -> Callable[[pl.DataFrame], NDArray[np.uint8]]:
    return lambda frame: np.full(frame.height, _CODE[category], np.uint8)


_CATEGORY: dict[str, Callable[[pl.DataFrame], NDArray[np.uint8]]] = {
    "host_events": _host_category,
    "launches": _all("Runtime"),
    "device_events": _device_category,
    "python_calls": _python_category,
    "syncs": _all("Wait"),
    "others": _other_category,
}


def _column(parts: list[_Part], name: str) -> NDArray[np.int64]:
    return np.concatenate([part.frame[name].to_numpy() for part in parts])


def _labels(parts: list[_Part]) -> tuple[NDArray[np.uint32], Labels]:
    """(the label of each row of all frames, the labels); one for each pair of a name and a category."""
    codes, pairs, size = [], [], 0
    for part in parts:
        names = category_codes(part.frame["name"]).astype(np.int64) + 1
        keys, code = factorize(names * len(CATEGORIES) + part.category)
        texts = pl.concat([pl.Series([""]), categories_of(part.frame["name"])])
        text, category = texts.gather(keys // len(CATEGORIES)), (keys % len(CATEGORIES)).astype(np.uint8)
        codes.append(code + size)
        pairs.append(pl.DataFrame({"text": text, "category": category}))
        size += keys.size
    names_and_categories = pl.concat(pairs)  # a pair may be in several frames: annotations are
    labels = names_and_categories.unique(maintain_order=True).with_row_index("label")
    label = names_and_categories.join(labels, on=["text", "category"], how="left", maintain_order="left")[
        "label"
    ].to_numpy()
    return label[np.concatenate(codes)], Labels(labels["text"].to_list(), labels["category"].to_numpy())


def _tracks(all_axes: Axes, key: NDArray[np.int64]) -> tuple[list[Track], NDArray[np.int32]]:
    """(the tracks that have slices, in the order of drawing; the track of each slice)."""
    keys, index = factorize(key)
    sizes = np.bincount(index, minlength=keys.size)
    tracks = []
    for which, size in zip(keys.tolist(), sizes.tolist(), strict=True):
        part: Part = PARTS[which % len(PARTS)]
        axis = all_axes.tracks[which // len(PARTS)]
        thread = None if part == "projected" else axis.thread  # what the file says of a thread isn't about them
        tracks.append(replace(axis, part=part, thread=thread, slices=size))
    order_drawn = order(tracks, sizes)
    rank = np.empty(len(order_drawn), np.int32)
    rank[order_drawn] = np.arange(len(order_drawn), dtype=np.int32)
    return [tracks[i] for i in order_drawn], rank[index]


def _rows(
    tracks: list[Track], track: NDArray[np.int32], lane: NDArray[np.int32]
) -> tuple[list[Track], NDArray[np.int64], NDArray[np.int64]]:
    """(the tracks with their rows, the row of each slice, where each row's slices begin); sorted by track."""
    bounds = np.searchsorted(track, np.arange(len(tracks) + 1))
    with_rows, first_row = [], 0
    firsts = np.empty(len(tracks), np.int64)
    for i, each_track in enumerate(tracks):
        firsts[i] = first_row
        count = int(lane[bounds[i] : bounds[i + 1]].max()) + 1
        with_rows.append(replace(each_track, first_row=first_row, lanes=count))
        first_row += count
    row = firsts[track] + lane if track.size else np.empty(0, np.int64)
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(row, minlength=first_row))])
    return with_rows, row, first


def _lanes_of(track: Array, start: Array, end: Array, parent: Array) -> Array:
    """Return the lane of each slice, so that no two of a lane overlap.

    A slice takes the first lane below the slice around it that is free. Where all slices nest, the lane is the depth;
    a slice that begins in another and outlasts it goes to a lane further down, and nothing is dropped.

    A tree of minima (a segment tree) stores until when each lane is occupied, so a slice costs the logarithm of the
    lanes even if all slices of a track are open at once.

    Args:
        track, start, end: Of slices sorted by track, start, longest first.
        parent: The slice around each, or -1.
    """
    lane = np.empty(start.size, np.int32)
    leaves = np.array([16])
    until = np.zeros(2 * leaves[0], np.int64)  # node k: the least of nodes 2k and 2k + 1; lane i is node leaves + i
    i = 0
    while (i := _lanes(track, start, end, parent, i, leaves, until, lane)) < start.size:
        until = np.resize(until, 2 * until.size)  # all lanes are occupied: double them
    return lane


def _by_row(row: Array, first: Array) -> tuple[Array, Array]:
    """Return (the position of each slice when sorted by row, the order that sorts them); a stable counting sort.

    `first` is where each row begins.
    """
    position, order = np.empty(row.size, np.int32), np.empty(row.size, np.int32)
    _sort_by_row(row, first.copy(), position, order)
    return position, order
