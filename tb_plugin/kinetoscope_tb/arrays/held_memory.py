"""How much memory values take: the arrays and frames that can be reached from them, each counted once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import polars as pl

_MOST_ITEMS = 1000  # of a list or a mapping; longer ones hold numbers and texts, not arrays
_DEEPEST = 8
_NO_MEMORY = (str, bytes, int, float, type(None))


@dataclass
class HeldArrays:
    """The arrays and frames that a value holds.

    Attributes:
        sizes: The bytes of each, by its `id`; of a view the array that it is a view of.
        incomplete: Objects whose cached properties aren't all there, and how many values each has so far.
    """

    sizes: dict[int, int] = field(default_factory=dict)
    incomplete: list[tuple[Any, int]] = field(default_factory=list)

    @classmethod
    def of(cls, *values: Any) -> HeldArrays:
        """What values hold, together. It is done in one call, since every answer of a server is counted."""
        arrays, ids = cls(), set[int]()
        parts = [(value, 0) for value in values]
        for value, depth in parts:  # grows meanwhile
            if isinstance(value, _NO_MEMORY) or id(value) in ids:
                continue
            ids.add(id(value))
            if isinstance(value, np.ndarray):
                owner = value
                while isinstance(owner.base, np.ndarray):
                    owner = owner.base
                if owner.base is None:  # else it is mapped from a file, or belongs to a frame
                    arrays.sizes[id(owner)] = owner.nbytes
            elif isinstance(value, (pl.DataFrame, pl.Series)):
                arrays.sizes[id(value)] = int(value.estimated_size())
            elif depth == _DEEPEST:
                continue
            elif isinstance(value, Mapping):
                parts += [(part, depth + 1) for part in list(value.values())[:_MOST_ITEMS]]
            elif isinstance(value, (list, tuple)):
                parts += [(part, depth + 1) for part in value[:_MOST_ITEMS]]
            elif hasattr(type(value), "__dataclass_fields__") and hasattr(value, "__dict__"):
                parts += [(part, depth + 1) for part in vars(value).values()]
                kind: Any = type(value)
                if not _cached_properties(kind) <= vars(value).keys():
                    arrays.incomplete.append((value, len(vars(value))))
        return arrays

    def with_cached_properties(self) -> HeldArrays | None:
        """The same, with the cached properties that are there by now; None: nothing was added."""
        if all(len(vars(value)) == count for value, count in self.incomplete):
            return None
        more = HeldArrays.of(*(value for value, _ in self.incomplete))
        return HeldArrays(self.sizes | more.sizes, more.incomplete)


@lru_cache(1000)
def _cached_properties(kind: Any) -> set[str]:
    return {name for base in kind.__mro__ for name, value in vars(base).items() if isinstance(value, cached_property)}


def bytes_of(values: Iterable[Any], apart_from: Iterable[Any] = ()) -> int:
    """Bytes of the arrays and frames in some values, without those that other values hold too."""
    others = HeldArrays.of(*apart_from).sizes
    return sum(size for array, size in HeldArrays.of(*values).sizes.items() if array not in others)
