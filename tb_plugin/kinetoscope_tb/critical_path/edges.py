"""The edges of the graph: which node waits for which, and the evidence for it."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32]
Codes = NDArray[np.int8]


class Kind(IntEnum):
    """Why one node waits for another."""

    SEQUENCE = 0  # a thread does one thing after the other; a row runs from its start to its end
    LAUNCH = 1  # a row begins after the call that launched it
    CALL = 2  # the same, and the row began before the call returned
    STREAM = 3  # a stream runs one row after the other
    EVENT = 4  # a stream waits for a recorded event
    WAIT_CALL = 5  # a call made the stream wait; what for is inferred from the times
    COINCIDENCE = 6  # a queued row began just after a row of another stream had ended
    SYNC = 7  # a call returns when the device has finished something
    FULL_QUEUE = 8  # a call returns when the stream's queue has room again
    FORK = 9  # a thread begins work that another one handed over
    JOIN = 10  # a thread resumes when another one has finished
    COPY_CALL = 11  # a copy began before its launching call returned, and the call may have waited for the stream too
    STEP = 12  # a step ends with the last of its parts, and begins no earlier than the previous one ended
    OVERLAP = 13  # a row begins and ends after the previous one on its stream, and overlaps it
    GRAPH = 14  # a node of a graph waits for another one: a recorded dependency
    COLLECTIVE = 15  # a thread continues when the collective that it began on another thread has ended
    WORKERS = 16  # a call returns when the workers of a DataLoader have the batch, whenever it was made


IN_CALLS = (Kind.CALL, Kind.COPY_CALL)
"""The launching thread is in the call while the row waits."""

INFERRED = (Kind.WAIT_CALL, Kind.COINCIDENCE, Kind.FULL_QUEUE, Kind.FORK, Kind.JOIN, Kind.COLLECTIVE, Kind.WORKERS)
"""Waits that aren't recorded but inferred from the times."""


REASONS = {
    Kind.SEQUENCE: "continues",
    Kind.LAUNCH: "after its launch",
    Kind.CALL: "within its launching call",
    Kind.COPY_CALL: "within its launching call",
    Kind.STREAM: "after the previous event on its stream",
    Kind.EVENT: "its stream waited for an event",
    Kind.WAIT_CALL: "a call made its stream wait for another",
    Kind.COINCIDENCE: "an event of another stream had just ended",
    Kind.SYNC: "the call waited for the device",
    Kind.FULL_QUEUE: "the stream's queue was full",
    Kind.FORK: "another thread started it",
    Kind.JOIN: "another thread had finished",
    Kind.STEP: "the step ends",
    Kind.OVERLAP: "during the previous event on its stream",
    Kind.GRAPH: "its graph makes it wait",
    Kind.COLLECTIVE: "the collective that it began had ended",
    Kind.WORKERS: "the loader's workers had the batch",
}
"""Why something could not happen earlier, in words."""


class Edges(NamedTuple):
    """A list of edges: each `successor` happens no earlier than its `predecessor`.

    Attributes:
        predecessor: Nodes, as numbers from `first_predecessor` on; NONE stands for no edge, here and in `successor`.
        successor: Nodes, as numbers from `first_successor` on.
        kind: The Kind of each edge, or of all.
    """

    predecessor: Rows
    successor: Rows
    kind: Kind | Codes
    first_predecessor: int = 0
    first_successor: int = 0
