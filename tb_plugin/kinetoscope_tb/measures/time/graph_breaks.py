"""Graph breaks: frames that torch.compile cut, and the time between the compiled graphs of one.

The code behind a break is a frame of its own, which Dynamo evaluates within the first one: a region in another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather
from ...arrays.intervals import Intervals, merge, without
from ...arrays.nesting import nearest
from ...names.compiled_code import is_compilation, is_compiled_graph, is_compiled_region
from ...trace.model import Trace
from ...trace.results import once_per_recording
from ...trace.row_filters import name_mask
from .breakdown import intervals_of


class GraphBreaks(NamedTuple):
    """Which regions are cut.

    Attributes:
        outer: Whether each host event is an outermost region with others within.
        inner: Whether it is a region within another.
        between: When an outer region is open, but neither a compiled graph nor compilation in it; nothing if graphs
            leave no ranges, since then all of it would be.
    """

    outer: NDArray[np.bool_]
    inner: NDArray[np.bool_]
    between: Intervals


@once_per_recording
def find_graph_breaks(trace: Trace) -> GraphBreaks:
    """Find the regions that are cut."""
    host = trace.host_events
    regions = name_mask(host["name"], is_compiled_region)
    if not regions.any():
        return GraphBreaks(regions, regions, merge([]))
    parent = host["parent"].to_numpy()
    around = gather(nearest(regions, parent), parent)
    inner = regions & (around != NONE)
    outer = np.zeros(host.height, bool)
    outer[around[inner]] = True
    outer &= around == NONE
    graphs = name_mask(host["name"], is_compiled_graph) & (nearest(outer, parent) != NONE)
    if not graphs.any():
        return GraphBreaks(outer, inner, merge([]))
    compiles = name_mask(host["name"], is_compilation)
    return GraphBreaks(outer, inner, without(intervals_of(host, outer), intervals_of(host, graphs | compiles)))
