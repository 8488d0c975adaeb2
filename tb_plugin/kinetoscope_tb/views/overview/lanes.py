"""Lanes: how long each thread and each stream was busy, whatever wrote the file.

A lane is a row of a trace viewer. It is the first thing to look at in a file of another program: nothing here depends
on what its events mean.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...measures.recording.vendor import device_noun
from ...table import COUNT, DURATION, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Slices, Tab, View

_OF_THREADS = ("host_events", "launches", "python_calls")
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
    busy_frac = Column(FRACTION, "Busy time / length of the recording.")
    largest_name = Column(TEXT, "The name with the largest total.")
    largest_ns = Column(DURATION, "Sum of the durations of the events of that name.")


def lanes(trace: Trace) -> pl.DataFrame:
    """The lanes, the busiest first."""
    rows = pl.concat([_on_threads(trace), _on_streams(trace)])
    length = trace.window[1] - trace.window[0]
    names = rows.group_by(*_KEY, "name").agg(pl.col("dur_ns").sum().alias("largest_ns"))
    largest = names.sort("largest_ns", "name", descending=[True, False]).group_by(_KEY, maintain_order=True).first()
    reached = pl.col("end").cum_max().shift(1).over(_KEY).fill_null(pl.col("start_ns"))
    alone = pl.col("end") - pl.max_horizontal("start_ns", reached)
    busy = (
        rows.with_columns(end=pl.col("start_ns") + pl.col("dur_ns"))
        .sort(*_KEY, "start_ns")
        .with_columns(alone=alone.clip(0))
        .group_by(_KEY)
        .agg(pl.len().cast(pl.Int64).alias("events"), pl.col("alone").sum().alias("busy_ns"))
    )
    table = busy.join(largest, on=_KEY).with_columns(
        busy_frac=pl.col("busy_ns") / length if length else pl.lit(None, pl.Float64),
        largest_name=pl.col("name"),
    )
    return Lanes.of(table.select(list(Lanes.schema())).sort("busy_ns", *_KEY, descending=[True, False, False]))


def _on_threads(trace: Trace) -> pl.DataFrame:
    threads = _threads(trace)
    names = [*_OF_THREADS, *(["others"] if trace.meta.foreign_writer is not None else [])]
    frames: list[pl.DataFrame] = [getattr(trace, name) for name in names]
    ranges = [
        frame.filter(pl.col("dur_ns") >= 0).select(
            "thread", pl.col("name").cast(pl.String), "start_ns", pl.col("dur_ns").cast(pl.Int64)
        )
        for frame in frames
    ]
    return pl.concat(ranges).join(threads, on="thread", how="left").select(*_KEY, "name", "start_ns", "dur_ns")


def _threads(trace: Trace) -> pl.DataFrame:
    """The lane of each thread, in words."""
    table = trace.threads.with_row_index("thread").with_columns(pl.col("thread").cast(pl.Int32))
    return table.select(
        "thread",
        process=_numbered("process", "process", "pid"),
        lane=_numbered("name", "thread", "tid"),
    )


def _numbered(name: str, noun: str, number: str) -> pl.Expr:
    """A name with its number, unless the name has it."""
    known = pl.col(name).fill_null(noun)
    return pl.when(known.str.contains(pl.col(number), literal=True)).then(known).otherwise(known + " " + pl.col(number))


def _on_streams(trace: Trace) -> pl.DataFrame:
    noun = device_noun(trace)
    return trace.device_events.select(
        process=pl.format("{} {}", pl.lit(noun), "device"),
        lane=pl.when(pl.col("stream") >= 0).then(pl.format("stream {}", "stream")).otherwise(pl.lit("all streams")),
        name=pl.col("name").cast(pl.String),
        start_ns="start_ns",
        dur_ns="dur_ns",
    )


def events_of_row(trace: Trace, key: Key) -> Events:
    """The events of the lane."""
    of_lane = (_threads(trace)["process"] == key["process"]) & (_threads(trace)["lane"] == key["lane"])
    threads = np.flatnonzero(of_lane.to_numpy())
    frames = [*_OF_THREADS, "others"]
    on_threads = {name: np.flatnonzero(np.isin(getattr(trace, name)["thread"].to_numpy(), threads)) for name in frames}
    streams = _on_streams(trace)
    on_stream = (streams["process"] == key["process"]) & (streams["lane"] == key["lane"])
    return {**on_threads, "device_events": np.flatnonzero(on_stream.to_numpy())}


VIEW = View(
    lanes,
    table=Lanes,
    title="Busy time by lane",
    entry="Overview",
    needs="lanes",
    hint="The trace has no events with a duration.",
    place=Tab("Lanes"),
    within="recording",
    slices=Slices(events_of_row, are_highlighted=False),
)
