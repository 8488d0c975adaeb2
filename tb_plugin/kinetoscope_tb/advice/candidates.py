"""Candidates: work that could take less time.

A candidate covers delays of the dependency graph: whole classes of the path, GPU events, what threads do at some times,
or the host's waits for devices. `savings` simulates the steps without them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..arrays.intervals import Intervals


@dataclass(frozen=True)
class Candidate:
    """Work that could take less time.

    Attributes:
        words: What it is, as in: if … took 50 % less.
        classes: The classes of the path (critical_path/classes.py) that it is, whole.
        rows: The rows of device_events that it is.
        less: By which share of its time each of these rows could be shorter; None: unknown, so nothing bounds a saving.
        spans: When the threads do it; they could be shorter by the same share.
        threads: Which threads do; their rows of `threads`.
        waits: Whether it is the host's waits for devices: the host would go on without them.
    """

    words: str
    classes: tuple[str, ...] = ()
    rows: NDArray[np.integer] | None = field(default=None, repr=False)
    less: NDArray[np.float64] | float | None = 1.0
    spans: Intervals | None = field(default=None, repr=False)
    threads: NDArray[np.integer] | tuple[int, ...] = ()
    waits: bool = False


DATA_LOADING = Candidate("data loading", ("data loading",))
COMMUNICATING = Candidate("communication", ("device communication", "host communication"))
LAUNCHING = Candidate("all host code and launches", ("operator", "between operators", "runtime call", "launch latency"))
WAITING = Candidate("the host's waits for the device", waits=True)
