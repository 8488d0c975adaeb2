"""Copies and fills whose kinds are arguments get the names that kineto gives them.

CUPTI's in-process writers (`_cupti_monitor` of torch 2.13, `_cupti` of 2.14, `_cuspy` of 2.15) call all of them
"Memcpy" and "Memset", and write the direction and the memory as arguments. kineto's names say both:
"Memcpy HtoD (Pinned -> Device)", "Memset (Device)".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.constants import frame_of

_ROUTES = ("HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
_COPIES = {str(number): name for number, name in enumerate(_ROUTES, start=1)}
"""CUpti_ActivityMemcpyKind: the writers have no name for 9, so it is a number in their files."""

_MEMORY = ("Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static")
"""CUpti_ActivityMemoryKind, in kineto's words (cupti_strings.cpp, memoryKindString)."""

_SPELT = {kind.lower().replace(" ", "_"): kind for kind in _MEMORY}


def with_kinds(
    names: pl.Series, copy: pl.Series, source: pl.Series, target: pl.Series, memory: NDArray[np.signedinteger[Any]]
) -> pl.Series:
    """The names, where "Memcpy" and "Memset" say no more, with what the arguments say.

    Args:
        names: Of kernels, copies and fills; any of these columns may have one text for all of them.
        copy: The direction of each copy, such as HtoD; null where it isn't an argument.
        source, target: The memory that it reads and writes, such as pinned.
        memory: The kind of memory that a fill writes: CUPTI's number, or NONE.
    """
    if copy.null_count() == copy.len() and (memory < 0).all():
        return names
    rows = frame_of({"name": names, "copy": copy, "source": source, "target": target, "memory": memory}, memory.size)
    name = pl.col("name").cast(pl.String)
    route = pl.col("copy").cast(pl.String).replace(_COPIES)
    ends = [pl.col(end).cast(pl.String).replace_strict(_SPELT, default="Unknown") for end in ("source", "target")]
    of_copy = pl.format("Memcpy {} ({} -> {})", route, *ends)
    of_fill = pl.format("Memset ({})", pl.col("memory").replace_strict(dict(enumerate(_MEMORY)), default="Unknown"))
    spelt = rows.select(
        pl.when((name == "Memcpy") & route.is_not_null())
        .then(of_copy)
        .when((name == "Memset") & (pl.col("memory") >= 0))
        .then(of_fill)
        .otherwise(name)
    ).to_series()
    return spelt.cast(pl.Enum(spelt.unique(maintain_order=True).drop_nulls())).alias(names.name)
