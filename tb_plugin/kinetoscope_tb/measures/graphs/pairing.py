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
    found = replays(trace)
    if not found.launch.size:
        return False
    joined = join_with(trace, other)
    sizes = np.diff(found.first)[found.example]
    agreeing = named = 0
    for match in joined.match[found.example].tolist():
        if match >= 0:
            rows, of_names = _agreement(joined, match)
            agreeing += rows
            named += of_names
    if named:
        return named >= _MANY or named >= _MOST * int(sizes.sum())
    return agreeing >= _MANY and agreeing >= _MOST * int(sizes.sum())


def _agreement(joined: Join, match: int) -> tuple[int, int]:
    """(rows that a match explains, those of them whose names agree)."""
    one = joined.matches[match]
    source: Source = joined.sources[one.source]
    codes = source.codes[one.node[one.node >= 0]]
    return codes.size, int((codes >= 0).sum())
