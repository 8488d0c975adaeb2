"""Names of the nodes' own delays and of path segments: kernels, operators, calls, annotations.

Names are numbers here, equal for equal texts, since there are as many as there are nodes.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import categories_of, category_codes, gather, gather_column
from ..arrays.native import Function
from ..arrays.nesting import nearest
from ..measures.recording.server import inference_server
from ..names.annotations import annotation_name
from ..names.kernels import is_data_loading
from ..trace import Trace
from ..trace.results import once_per_trace
from ..trace.row_filters import is_operator_of_all, name_mask
from .graph import Graph
from .path import events_of_nodes

_find_names_of_places = Function("names_of_places")

Rows = NDArray[np.int32]

EVENT_COLUMNS = ("host_event", "launch", "device_event")
"""The columns of PATH that say what ran."""
NAMELESS = "nothing recorded"
"""The name of what has no name."""
UNLINKED = "launches not recorded"
"""The name of time around device work of which no call is known that launched it."""


@dataclass(frozen=True)
class EventRows:
    """The rows of events behind nodes or segments: of a host event, a call and a device event, or NONE, as in PATH."""

    event: Rows
    call: Rows
    row: Rows

    @classmethod
    def of_path(cls, path: pl.DataFrame) -> EventRows:
        """Return the events of the segments of a path."""
        return cls(*(path[column].to_numpy() for column in EVENT_COLUMNS))

    @classmethod
    def of_nodes(cls, trace: Trace, graph: Graph) -> EventRows:
        """Return the events of all nodes' own delays."""
        event, call, row, _ = events_of_nodes(trace, graph, np.arange(graph.nodes.time.size, dtype=np.int32))
        return cls(event, call, row)


@dataclass(frozen=True)
class Names:
    """The names in a trace, as numbers.

    Attributes:
        texts: The name of each number.
        merged_number: For each name the number of the name that it is merged under: those of annotations have no
            numbers of steps and of iterations.
        event: The number of each host event's name; likewise for calls and device rows.
        loader: For each host event the data loading around it, or NONE; likewise the innermost operator.
        launching_op: For each device row the operator that launched it, or NONE.
    """

    texts: pl.Series
    merged_number: Rows
    event: Rows
    call: Rows
    row: Rows
    loader: Rows
    op: Rows
    launching_op: Rows

    @classmethod
    def of(cls, trace: Trace) -> Names:
        """Return the names of a trace: computed at the first call and cached as long as the trace exists."""
        return _names(trace)

    @classmethod
    def _of(cls, trace: Trace) -> Names:
        hosts, frames = trace.all_host_events, (trace.all_host_events, trace.launches, trace.device_events)
        categories_of_frames = [categories_of(frame["name"]) for frame in frames]
        texts, number = np.unique(pl.concat(categories_of_frames).to_numpy(), return_inverse=True)
        codes: list[Rows] = []
        first = 0
        for frame, categories in zip(frames, categories_of_frames, strict=True):
            of_text = number[first : first + categories.len()].astype(np.int32)
            codes.append(gather(of_text, category_codes(frame["name"])))
            first += categories.len()
        parent = hosts["parent"].to_numpy()
        loader = nearest(name_mask(hosts["name"], is_data_loading), parent)
        op = nearest(is_operator_of_all(trace), parent)
        event, call, row = codes
        names, merged_numbers = _merge(trace, texts.tolist(), event[(hosts["kind"] == "annotation").to_numpy()])
        return cls(names, merged_numbers, event, call, row, loader, op, trace.device_events["op"].to_numpy())

    def event_names(self, events: EventRows) -> Rows:
        """Name of what runs, or of the row that waits to run; NONE where nothing was recorded."""
        numbers = np.empty(events.event.size, np.int32)
        at = events.event, events.call, events.row
        _find_names_of_places(at, self.event, self.call, self.row, self.loader, numbers)
        return numbers

    def merged_names(self, events: EventRows) -> Rows:
        """The same with the names of annotations merged over steps and iterations, as in the view of annotations."""
        numbers: Rows = gather(self.merged_number, self.event_names(events))
        return numbers

    def operators(self, events: EventRows) -> Rows:
        """Name of the innermost operator around each event, or of the one that launched the row; NONE if unknown."""
        op = np.where(events.row >= 0, gather(self.launching_op, events.row), gather(self.op, events.event))
        numbers: Rows = gather(self.event, op.astype(np.int32))
        return numbers

    def text(self, numbers: Rows) -> pl.Series:
        """The texts of some numbers; null for NONE."""
        return gather_column(self.texts, numbers)


@once_per_trace
def _names(trace: Trace) -> Names:
    return Names._of(trace)


def _merge(trace: Trace, texts: list[str], annotations: Rows) -> tuple[pl.Series, Rows]:
    """The names, with those added that names of annotations are merged under, and for each name that one's number."""
    server = inference_server(trace)
    occurs = np.zeros(len(texts) + 1, bool)  # NONE is the last one
    occurs[annotations] = True
    target, new_names = np.arange(len(texts)), dict[str, int]()
    for number in np.flatnonzero(occurs[:-1]).tolist():
        name = annotation_name(texts[number], server).name
        if name != texts[number]:
            at = bisect_left(texts, name)
            is_there = at < len(texts) and texts[at] == name
            target[number] = at if is_there else new_names.setdefault(name, len(texts) + len(new_names))
    numbers = np.append(target, np.arange(len(texts), len(texts) + len(new_names))).astype(np.int32)
    return pl.Series([*texts, *new_names], dtype=pl.String), numbers
