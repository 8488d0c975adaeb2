"""What links events, as torch's validator checks it.

Autograd's sequence numbers link a backward operator to its forward operator, waits name the event that they wait for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ..arrays.gather import NONE, category_codes, map_categories, rows_by_id
from ..names.text import time
from ..trace import Diagnostic, Trace
from ..trace.row_filters import name_mask

_BACKWARD = "autograd::engine::evaluate_function: "
_FOR_EVENTS = ("Stream Wait Event", "Event Sync")


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Sequence numbers of several operators; waits without a target, or that can't have been."""
    yield from _shared_sequences(trace)
    if trace.syncs.is_empty():
        return
    yield from _waits_for_events(trace)
    yield from _waits_for_streams(trace)


def _shared_sequences(trace: Trace) -> Iterator[Diagnostic]:
    """No two different backward operators have one sequence number.

    Each forward thread counts its own numbers.
    """
    host = trace.host_events
    is_backward = name_mask(host["name"], lambda name: name.startswith(_BACKWARD))
    rows = np.flatnonzero(is_backward & (host["sequence"].to_numpy() >= 0))
    if not rows.size:
        return
    names = category_codes(host["name"].gather(rows))
    sequence, thread, offset = (host[name].to_numpy()[rows] for name in ("sequence", "fwd_thread", "offset"))
    order = np.lexsort((names, thread, sequence))
    is_first = np.ones(rows.size, bool)
    is_first[1:] = (np.diff(sequence[order]) != 0) | (np.diff(thread[order]) != 0)
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], rows.size) - 1
    is_ambiguous = names[order[first]] != names[order[last]]
    if is_ambiguous.any():
        yield Diagnostic(
            "backward_shares_sequence",
            int(is_ambiguous.sum()),
            "Different backward operators have the same sequence number, so their forward operators are ambiguous, and "
            "their time may be shown at the wrong module. Their own times are right.",
            int(np.minimum.reduceat(offset[order], first)[is_ambiguous].min()),
        )


def _waits_for_events(trace: Trace) -> Iterator[Diagnostic]:
    """A wait for an event names the call that recorded it, and that call came earlier."""
    waits = trace.syncs.filter(pl.col("sync_kind").cast(pl.String).is_in(_FOR_EVENTS))
    without_record = waits.filter(pl.col("wait_on_record") < 0)
    if without_record.height:
        yield Diagnostic(
            "waits_without_record",
            without_record.height,
            "Waits for an event don't name the call that recorded it, so waits between streams can't be resolved. "
            "Torch before 2.12 often leaves it out (kineto f689d8ad).",
            int(without_record["offset"].min()),  # type: ignore[arg-type]  # it isn't empty
            "note",
        )
    with_record = waits.filter(
        (pl.col("wait_on_record") >= 0) & (pl.col("sync_kind").cast(pl.String) == _FOR_EVENTS[0])
    )
    launches = trace.launches
    records = map_categories(launches["name"], lambda name: "EventRecord" in name)
    correlation = np.where(records, launches["correlation"].to_numpy(), NONE)
    record = rows_by_id(correlation, with_record["wait_on_record"].to_numpy())
    at = launches["start_ns"].gather(pl.Series(record).replace(NONE, None))
    is_lost = record == NONE
    if is_lost.any():
        yield Diagnostic(
            "waits_for_lost_record",
            int(is_lost.sum()),
            "Waits name a call that recorded an event, but the call isn't in the trace, usually because it came before "
            "the recording: what they waited for is unknown.",
            int(with_record["offset"].to_numpy()[is_lost].min()),
            "note",
        )
    later = (at > with_record["start_ns"]).fill_null(value=False).to_numpy()
    if later.any():
        yield Diagnostic(
            "waits_for_later_record",
            int(later.sum()),
            "Waits name a call that recorded their event only afterwards; the previous record is meant. Torch before "
            "2.13 writes the last one (kineto 23b5bb57).",
            int(with_record["offset"].to_numpy()[later].min()),
            "note",
        )


def _waits_for_streams(trace: Trace) -> Iterator[Diagnostic]:
    """A wait for a stream doesn't begin while one of its kernels runs."""
    waits = trace.syncs.filter(pl.col("sync_kind").cast(pl.String) == "Stream Sync")
    kernels = trace.device_events.select("kind", "device", "stream", "start_ns", "dur_ns")
    kernels = kernels.filter(pl.col("kind") == "kernel").select(
        "device",
        "stream",
        pl.col("start_ns") + 1,  # only what began before the wait
        end_ns=(pl.col("start_ns") + pl.col("dur_ns")).cum_max().over("device", "stream"),
    )
    overlaps = waits.sort("start_ns").join_asof(
        kernels.sort("start_ns"), on="start_ns", by=["device", "stream"], check_sortedness=False
    )
    overlaps = overlaps.filter(pl.col("end_ns") > pl.col("start_ns"))
    if overlaps.height:
        most = int((overlaps["end_ns"] - overlaps["start_ns"]).max())  # type: ignore[arg-type]  # not empty
        yield Diagnostic(
            "sync_overlaps_kernel",
            overlaps.height,
            f"Waits for a stream begin up to {time(most)} before its last kernel has ended. The GPU events of "
            "these waits are too long; kernels and steps are right.",
            int(overlaps["offset"].min()),  # type: ignore[arg-type]
            "note",
        )
