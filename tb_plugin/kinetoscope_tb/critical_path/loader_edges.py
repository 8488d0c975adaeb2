"""Waits of the main thread for the workers of a DataLoader, which take their own time from one batch to the next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..measures.time.worker_waits import worker_waits
from ..trace import Trace
from .boundaries import HostBoundaries

Rows = NDArray[np.int32]


def loader_edges(trace: Trace, boundaries: HostBoundaries) -> tuple[Rows, Rows]:
    """Boundaries at which a wait for a batch ends, and those at which it began."""
    calls = worker_waits(trace)
    return boundaries.end[calls], boundaries.start[calls]
