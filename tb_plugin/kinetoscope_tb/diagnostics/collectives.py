"""What must be known of a collective, as torch's validator asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ..arrays.gather import map_categories
from ..trace import Diagnostic, Trace

_CALL = "record_param_comms"


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Each call of a collective has its name, its type, its sizes and the size of its group."""
    host = trace.host_events
    calls = np.flatnonzero(map_categories(host["name"], lambda name: name == _CALL))
    known = trace.collectives.filter(
        pl.col("name").is_not_null()
        & pl.col("dtype").is_not_null()
        & (pl.col("in_elements") >= 0)
        & (pl.col("out_elements") >= 0)
        & (pl.col("group_size") >= 0)
    )
    bare = calls[~np.isin(calls, known["host_event"].to_numpy())]
    if bare.size:
        yield Diagnostic(
            "collectives_without_metadata",
            int(bare.size),
            "Calls of collectives don't say their name, type, sizes or group, so no bandwidth can be told for them and "
            "ranks can only be matched by order. Torch writes them since 2.2.",
            int(host["offset"].to_numpy()[bare].min()),
            "note",
        )
