"""How much device work each function of the program launches: what only a late rank runs, or runs more often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import gather, map_categories, scatter_add
from ..arrays.nesting import add_up, innermost, nearest
from ..measures.calls.backward import forward_ops
from ..measures.calls.recursion import without_recursion
from ..measures.time.step_subset import counted_steps
from ..names.python_frames import function_name, is_of_program, without_address
from ..trace import Trace


@dataclass(frozen=True)
class DeviceWork:
    """What a function of the program launches in the average step.

    Args:
        name: The function.
        calls: How often it is called; calls within itself don't count.
        ns: Device time that it and its callees launch, and that the backward pass of its operators does; without
            communication.
    """

    name: str
    calls: float
    ns: float

    @property
    def words(self) -> str:
        """Its name as it is shown."""
        return function_name(self.name)


def device_work(trace: Trace) -> tuple[DeviceWork, ...]:
    """The functions that launch work in the counted steps, those that launch least first."""
    steps, calls, device = counted_steps(trace), trace.python_calls, trace.device_events
    if calls.is_empty() or device.is_empty():
        return ()
    rows = np.flatnonzero((device["step"].is_in(steps) & ~device["is_communication"]).to_numpy())
    is_function = map_categories(calls["name"], is_of_program)
    is_outer = np.zeros(calls.height, bool)
    is_outer[without_recursion(calls.with_row_index("row"))["row"].to_numpy()] = True
    own_ns = scatter_add(_calls_around(trace, rows), device["dur_ns"].to_numpy()[rows], calls.height)
    total_ns = add_up(calls["parent"].to_numpy(), own_ns)
    counts = is_function & is_outer & (total_ns > 0)
    sums = calls.select("name").with_columns(total_ns=pl.Series(total_ns)).filter(pl.Series(counts)).group_by("name")
    by_name = sums.agg(pl.col("total_ns").sum(), calls=pl.len()).sort("total_ns", "name")
    return tuple(
        DeviceWork(without_address(str(name)), often / len(steps), ns / len(steps))
        for name, ns, often in by_name.rows()
    )


def _calls_around(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int32]:
    """The innermost Python call around what launched each device row, or around its forward operator; NONE: unknown."""
    host, launches, calls = trace.host_events, trace.launches, trace.python_calls
    forward = forward_ops(trace)[: host.height]
    backward = nearest(forward >= 0, host["parent"].to_numpy())
    op, launch = trace.recorded_op.to_numpy()[rows], trace.device_events["launch"].to_numpy()[rows]
    origin = gather(forward, gather(backward, op))
    is_by_op = (origin >= 0) | (launch < 0)
    origin = np.where(origin >= 0, origin, op)
    thread, start = (
        np.where(is_by_op, gather(host[name].to_numpy(), origin), gather(launches[name].to_numpy(), launch))
        for name in ("thread", "start_ns")
    )
    order = np.lexsort((start, thread))
    own_thread, begin, dur = (calls[name].to_numpy() for name in ("thread", "start_ns", "dur_ns"))
    around = np.empty(rows.size, np.int32)
    around[order] = innermost(own_thread, begin, begin + dur, thread[order], start[order])
    return around
