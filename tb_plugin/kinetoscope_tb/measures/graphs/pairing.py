"""Whether another recording is a capture of the graphs that a trace replays: by what it launched, not by its name.

Kernels that agree by name and order, in many rows or in most of all graphs, don't agree by chance. Where the capture
recorded no names (CUPTI), only kinds agree (kernel, copy, fill), and both must hold.
"""

from __future__ import annotations

import numpy as np

from ...trace.model import Trace
from .join import Join, Source, join_with
from .replays import replays

UNLIKE = "Its launches don't match the graphs of this recording."

_MANY = 16  # rows that agree
_MOST = 0.5  # of the rows of all graphs, each counted once


def captures_graphs_of(trace: Trace, other: Trace) -> bool:
    """Whether what another recording launched explains graphs of a trace."""
    graph_replays = replays(trace)
    if not graph_replays.launch.size:
        return False
    graph_join = join_with(trace, other)
    sizes = np.diff(graph_replays.first)[graph_replays.example]
    row_count = name_count = 0
    for number in graph_join.match[graph_replays.example].tolist():
        if number >= 0:
            rows, names = _agreement(graph_join, number)
            row_count += rows
            name_count += names
    if name_count:
        return name_count >= _MANY or name_count >= _MOST * int(sizes.sum())
    return row_count >= _MANY and row_count >= _MOST * int(sizes.sum())


def _agreement(graph_join: Join, number: int) -> tuple[int, int]:
    """(rows that a match explains, those of them whose names agree)."""
    match = graph_join.matches[number]
    source: Source = graph_join.sources[match.source]
    codes = source.codes[match.node[match.node >= 0]]
    return codes.size, int((codes >= 0).sum())
