"""What waits for what: one array per side, and how each of it is known."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Kind(IntEnum):
    """How it is known that something waits for something else."""

    ITSELF = 0  # a thread does one thing after the other; a row runs from its start to its end
    LAUNCH = 1  # a row begins after the call that launched it
    CALL = 2  # the same, and the row began while the call was still going on
    STREAM = 3  # a stream runs one row after the other
    EVENT = 4  # a stream was told to wait for an event, and the recording says for which
    WAIT_CALL = 5  # a stream was told to wait; for what follows from the times
    MOMENT = 6  # a row that was queued began just when one of another stream had ended
    SYNC = 7  # a call returns when the device has finished something
    FULL_QUEUE = 8  # a call returns when the stream's queue has room again
    HAND_OVER = 9  # a thread begins what another one gave it
    JOIN = 10  # a thread goes on when another one has finished
    COPY_CALL = 11  # a copy began while the call that asked for it went on, which may have waited with it
    STEP = 12  # a step ends with the last of its parts, and begins no earlier than the one before ended


IN_CALLS = (Kind.CALL, Kind.COPY_CALL)
"""The launching thread is in the call while the row waits."""

INFERRED = (Kind.WAIT_CALL, Kind.MOMENT, Kind.FULL_QUEUE, Kind.HAND_OVER, Kind.JOIN)
"""What no row of the recording says; it follows from the times."""


REASONS = {
    Kind.ITSELF: "goes on",
    Kind.LAUNCH: "after its launch",
    Kind.CALL: "within its launching call",
    Kind.COPY_CALL: "within its launching call",
    Kind.STREAM: "behind the row before it on its stream",
    Kind.EVENT: "its stream waited for an event",
    Kind.WAIT_CALL: "its stream was told to wait for another",
    Kind.MOMENT: "a row of another stream had just ended",
    Kind.SYNC: "the call waited for the device",
    Kind.FULL_QUEUE: "the stream's queue was full",
    Kind.HAND_OVER: "another thread gave it its work",
    Kind.JOIN: "another thread had finished",
    Kind.STEP: "the step ends",
}
"""Why something could not happen earlier, in words."""


@dataclass(frozen=True)
class Edges:
    """Pairs of nodes: `successor` begins no earlier than `lag` after `predecessor`."""

    predecessor: Ints
    successor: Ints
    lag: Ints
    kind: NDArray[np.int8]

    @classmethod
    def of(cls, predecessor: NDArray[Any], successor: NDArray[Any], kind: Kind | NDArray[np.int8]) -> Edges:
        """Return the pairs of which both sides are known (not negative), without lag."""
        predecessor, successor = np.asarray(predecessor, np.int64), np.asarray(successor, np.int64)
        kinds = np.broadcast_to(np.asarray(kind, np.int8), predecessor.shape)
        real = (predecessor >= 0) & (successor >= 0)
        return cls(predecessor[real], successor[real], np.zeros(int(real.sum()), np.int64), kinds[real])

    @classmethod
    def joined(cls, parts: list[Edges]) -> Edges:
        """All pairs of several."""
        columns = zip(*((p.predecessor, p.successor, p.lag, p.kind) for p in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def select(self, where: NDArray[Any]) -> Edges:
        """Only some of them, or all in another order."""
        return Edges(self.predecessor[where], self.successor[where], self.lag[where], self.kind[where])
