"""Annotations by name: the ranges of each name together, wherever they are."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...measures.calls.annotation_costs import AnnotationCosts
from ...measures.calls.annotation_ranges import AnnotationRanges
from ...measures.calls.annotation_totals import annotation_totals
from ...measures.recording.contents import has_annotations
from ...pictures import RangeBars
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Slices, Tab, View


class AnnotationsByName(AnnotationCosts):
    """How long named ranges take on the host, and the GPU work launched inside them, by name.

    Ranges inside another one of their name count as ranges, but their time counts once.
    """

    key, weight = ("name",), "host_total_ns"
    picture = RangeBars("name", host="host_total_ns", busy="gpu_ns", idle="gpu_idle_ns", span="gpu_span_ns")


def annotations_by_name(trace: Trace) -> pl.DataFrame:
    """Names by host time."""
    return AnnotationsByName.of(annotation_totals(trace).select(AnnotationsByName.schema().names()))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The ranges of this name."""
    ranges = AnnotationRanges.of(trace)
    is_chosen = np.array([name.name == key["name"] for name in ranges.names] + [False])
    return {"host_events": ranges.row[is_chosen[ranges.code]]}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The name of a range."""
    ranges = AnnotationRanges.of(trace)
    number = ranges.number_of(frame, row)
    return {"name": ranges.names[ranges.code[number]].name} if number >= 0 else None


VIEW = View(
    annotations_by_name,
    table=AnnotationsByName,
    title="Annotations by name",
    entry="Annotations",
    needs=has_annotations,
    hint="No named ranges were recorded. Put torch.profiler.record_function(name) around parts of the program.",
    place=Tab("Ranges"),
    slices=Slices(events_of_row, row_of),
)
