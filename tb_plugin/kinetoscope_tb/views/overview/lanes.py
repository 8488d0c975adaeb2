"""Lanes: how long each thread and each stream was busy, whatever wrote the file.

A lane is a row of a trace viewer. It is the first thing to look at in a file of another program: nothing here depends
on what its events mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, group_rows, map_categories, number_alike
from ...arrays.intervals import Ints, union
from ...measures.recording.contents import has_lanes
from ...measures.recording.vendor import device_noun
from ...measures.serving.iteration_labels import labels_of_iterations
from ...table import COUNT, DURATION, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, is_equal
from ...view import Slices, Tab, View

_OF_THREADS = ("host_events", "launches", "python_calls")
_FRAMES = (*_OF_THREADS, "others")
_KEY = ("process", "lane")


class Lanes(Table):
    """How long each thread and each stream was busy, the busiest first.

    Of files by torch.profiler, it counts operators, annotations, runtime calls, Python calls and device work; of other
    programs' files, every event with a duration.
    """

    key, weight = _KEY, "busy_ns"

    process = Column(TEXT, "Process with its number, or the device.")
    lane = Column(TEXT, "Thread with its number, or the stream.")
    events = Column(COUNT, "Events with a duration.")
    busy_ns = Column(DURATION, "Time during which at least one of them runs; nested ones count once.", adds_up=False)
    recording_share_frac = Column(
        FRACTION, "Busy time / time from the first event of the recording to the end of the last."
    )
    largest_name = Column(TEXT, "The name whose events run longest; iterations of a server are one name per phase.")
    largest_ns = Column(
        DURATION, "Time during which at least one event of that name runs; nested ones count once.", adds_up=False
    )


def lanes(trace: Trace) -> pl.DataFrame:
    """The lanes, the busiest first."""
    on_threads, (streams, on_streams) = _on_threads(trace), _on_streams(trace)
    length = _length_ns(trace, [*on_threads, *on_streams])
    rows = [*_of_lanes(trace, _threads(trace), on_threads), *_of_lanes(trace, streams, on_streams)]
    table = pl.DataFrame(rows, list(Lanes.schema()), orient="row").with_columns(
        recording_share_frac=pl.col("busy_ns") / length if length else pl.lit(None, pl.Float64)
    )
    return Lanes.of(table.cast(Lanes.schema()).sort("busy_ns", *_KEY, descending=[True, False, False]))


def _length_ns(trace: Trace, parts: Sequence[pl.DataFrame]) -> int:
    """How long the recording is with the events that begin before its window, or end after it, as Python calls may."""
    ends = [(part["start_ns"].min(), (part["start_ns"] + part["dur_ns"]).max()) for part in parts if part.height]
    firsts, lasts = zip(trace.window, *ends, strict=True)
    return int(max(lasts) - min(firsts))


def _of_lanes(trace: Trace, labels: pl.DataFrame, parts: Sequence[pl.DataFrame]) -> Iterator[tuple[object, ...]]:
    """The row of each lane with events.

    Args:
        trace: The trace.
        labels: Process and lane, in words.
        parts: The events by frame: the number of their lane in `labels`, name, start and duration.
    """
    marks = labels_of_iterations(trace)
    names: dict[str, int] = {}
    events = defaultdict[int, list[NDArray[np.int64]]](list)
    for part in parts:
        code = map_categories(
            part["name"], lambda name: names.setdefault(marks.get(name, name), len(names)), missing=NONE
        )
        number, start, dur = (part[name].to_numpy() for name in ("number", "start_ns", "dur_ns"))
        rows, first = group_rows(number)
        for of_lane in np.split(rows, first[1:]) if rows.size else []:
            begin = start[of_lane]
            events[int(number[of_lane[0]])].append(np.stack([code[of_lane], begin, begin + dur[of_lane]]))
    texts = list(names)
    for number_of_lane, of_frames in events.items():
        code, start, end = np.concatenate(of_frames, axis=1)
        largest, largest_ns = _largest(code, start, end, texts)
        yield *labels.row(number_of_lane), code.size, _length(start, end), None, largest, largest_ns


def _largest(code: Ints, start: Ints, end: Ints, names: Sequence[str]) -> tuple[str | None, int]:
    """(the name whose events cover most time, how much); no name has more than the sum of their durations."""
    rows, first = group_rows((code + 1).astype(np.int32))  # a missing name has NONE
    sums = np.add.reduceat((end - start)[rows], first)
    of_names = np.split(rows, first[1:])
    largest, most = None, -1
    for at in np.argsort(-sums, kind="stable"):
        if sums[at] < most:
            break
        of_name = of_names[at]
        length, number = _length(start[of_name], end[of_name]), int(code[of_name[0]])
        name = names[number] if number != NONE else None
        if (-length, name or "") < (-most, largest or ""):
            largest, most = name, length
    return largest, most


def _length(start: Ints, end: Ints) -> int:
    """How long any of the intervals lasts."""
    starts, ends = union(start, end)
    return int((ends - starts).sum())


def _on_threads(trace: Trace) -> list[pl.DataFrame]:
    names = [*_OF_THREADS, *(["others"] if trace.meta.foreign_writer is not None else [])]
    frames: list[pl.DataFrame] = [getattr(trace, name) for name in names]
    return [_events(frame.lazy().filter(pl.col("dur_ns") >= 0), pl.col("thread")) for frame in frames]


def _events(frame: pl.LazyFrame, number: pl.Expr) -> pl.DataFrame:
    return frame.select(number.alias("number"), "name", "start_ns", pl.col("dur_ns").cast(pl.Int64)).collect()


def _threads(trace: Trace) -> pl.DataFrame:
    """The lane of each thread, in words."""
    return trace.threads.select(
        _with_number("process", "process", "pid"), _with_number("name", "thread", "tid").alias("lane")
    )


def _with_number(name: str, noun: str, number: str) -> pl.Expr:
    """A name with its number in parentheses, unless the name has it; without a name, what it is."""
    text, digits = pl.col(name), pl.col(number)
    with_number = pl.when(text.str.contains(digits, literal=True)).then(text).otherwise(text + " (" + digits + ")")
    return pl.coalesce(with_number, pl.lit(f"{noun} ") + digits)


def _streams(trace: Trace) -> tuple[pl.DataFrame, NDArray[np.int32]]:
    """(the lane of each stream, in words; the number of each event's)."""
    device, stream = (trace.device_events[name].to_numpy().astype(np.int64) for name in ("device", "stream"))
    first, number = number_alike(device << 32 | stream & 0xFFFFFFFF)
    lane = pl.when(pl.col("stream") >= 0).then(pl.format("stream {}", "stream")).otherwise(pl.lit("all streams"))
    frame = pl.DataFrame({"device": device[first], "stream": stream[first]})
    return frame.select(
        pl.format("{} {}", pl.lit(device_noun(trace)), "device").alias("process"), lane.alias("lane")
    ), number


def _on_streams(trace: Trace) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    labels, number = _streams(trace)
    return labels, [_events(trace.device_events.lazy(), pl.lit(pl.Series(number)))]


def events_of_row(trace: Trace, key: Key) -> Events:
    """The events of the lane."""
    labels, number = _streams(trace)
    threads, streams = (
        np.flatnonzero(is_equal(lane["process"], key["process"]) & is_equal(lane["lane"], key["lane"]))
        for lane in (_threads(trace), labels)
    )
    on_threads = {name: np.flatnonzero(np.isin(getattr(trace, name)["thread"].to_numpy(), threads)) for name in _FRAMES}
    return {**on_threads, "device_events": np.flatnonzero(np.isin(number, streams))}


VIEW = View(
    lanes,
    table=Lanes,
    title="Busy time by lane",
    entry="Overview",
    needs=has_lanes,
    hint="The trace has no events with a duration.",
    place=Tab("Lanes"),
    within="recording",
    slices=Slices(events_of_row, "The timeline shows the lane of a slice: its track.", are_highlighted=False),
)
