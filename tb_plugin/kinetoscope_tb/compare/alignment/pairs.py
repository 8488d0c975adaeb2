"""Pairs of indices in two sequences, each of which may be certain or only probable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Pairs:
    """Pairs in order.

    Args:
        first: Places in the first sequence.
        second: Places in the second one.
        posterior: How probable each pair is.
    """

    first: Rows
    second: Rows
    posterior: Floats

    @classmethod
    def certain(cls, first: Rows, second: Rows) -> Pairs:
        """Pairs that are beyond doubt."""
        return cls(first, second, np.ones(first.size))

    @classmethod
    def concat(cls, parts: Sequence[Pairs]) -> Pairs:
        """The pairs of all parts, in order."""
        first, second, posterior = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("first", "second", "posterior")
        )
        order = np.lexsort((second, first))
        return cls(first[order], second[order], posterior[order])

    def shift(self, first: int, second: int) -> Pairs:
        """The same pairs in sequences that begin earlier by so many indices."""
        return Pairs(self.first + first, self.second + second, self.posterior)

    def stretches(self, sizes: tuple[int, int]) -> Iterator[tuple[slice, slice]]:
        """What lies between two pairs, where there is something on both sides; `sizes` are those of the sequences."""
        begins = (np.append(0, self.first + 1).tolist(), np.append(0, self.second + 1).tolist())
        ends = (np.append(self.first, sizes[0]).tolist(), np.append(self.second, sizes[1]).tolist())
        for first, second in zip(map(slice, begins[0], ends[0]), map(slice, begins[1], ends[1]), strict=True):
            if first.start < first.stop and second.start < second.stop:
                yield first, second
