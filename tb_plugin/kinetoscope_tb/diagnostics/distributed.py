"""The worker's rank, and the metadata of collectives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ..trace import Diagnostic, Trace
from ..trace.row_filters import name_mask

_CALL = "record_param_comms"


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Collectives without metadata; missing or contradictory ranks."""
    yield from _incomplete_metadata(trace)
    yield from _rank(trace)


def _incomplete_metadata(trace: Trace) -> Iterator[Diagnostic]:
    """Each call of a collective has its name, its type, its sizes and the size of its group."""
    host = trace.host_events
    calls = np.flatnonzero(name_mask(host["name"], lambda name: name == _CALL))
    complete = trace.collectives.filter(
        pl.col("name").is_not_null()
        & pl.col("dtype").is_not_null()
        & (pl.col("in_elements") >= 0)
        & (pl.col("out_elements") >= 0)
        & (pl.col("group_size") >= 0)
    )
    incomplete = calls[~np.isin(calls, complete["host_event"].to_numpy())]
    if incomplete.size:
        yield Diagnostic(
            "collectives_without_metadata",
            int(incomplete.size),
            "Calls of collectives lack their name, type, sizes or group. What else was recorded stands in for them, "
            "such as shapes of inputs; bandwidth is unknown where nothing does, and ranks can only be matched by "
            "order. Torch writes them since 2.2.",
            int(host["offset"].to_numpy()[incomplete].min()),
            "note",
        )


def _rank(trace: Trace) -> Iterator[Diagnostic]:
    """Missing or contradictory ranks."""
    rank, world = trace.meta.rank, trace.meta.world_size
    communication = int(trace.device_events["is_communication"].sum())
    communication += int(trace.host_events["is_communication"].sum())
    if rank is None and (communication or (world or 1) > 1):
        yield Diagnostic(
            "rank_unknown",
            1,
            "This worker communicates with others, but its file has no rank, so the rank comes from its name. Start "
            "the profiler after torch.distributed.init_process_group, so that it writes the rank.",
            level="note",
        )
    if rank is not None and world is not None and not 0 <= rank < world:
        yield Diagnostic(
            "rank_impossible",
            1,
            f"The file says rank {rank} of {world}, which is impossible: numbers per rank may be mixed up.",
        )
