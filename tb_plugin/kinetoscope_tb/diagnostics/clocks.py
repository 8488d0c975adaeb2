"""Whether times can be trusted: the machine's clock, and the window that was recorded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import PurePath

import polars as pl

from ..discovery.recency import moment_in
from ..names.text import time
from ..trace import Diagnostic, Trace

_FAR_NS = 10**9
_EARLIEST_YEAR, _LATEST_YEAR = 2016, 2100


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Problems with times."""
    yield from _far_events(trace)
    yield from _base_time(trace)
    if "bare_fractions" in trace.meta.fingerprint.forms:
        yield Diagnostic(
            "bare_fractions",
            1,
            "Times lack the zeros after the decimal point, as in builds of torch from March 2024 (fixed by kineto "
            "c4357a90): each time may be wrong by up to 1 µs. Record again with a released torch.",
        )


def _far_events(trace: Trace) -> Iterator[Diagnostic]:
    begin, end = trace.window
    reach = max(end - begin, _FAR_NS)
    far, first = 0, []
    for frame in (trace.host_events, trace.launches, trace.device_events, trace.python_calls, trace.memory):
        rows = frame.filter((pl.col("start_ns") < begin - reach) | (pl.col("start_ns") > end + reach))
        far += rows.height
        first += rows["offset"].head(1).to_list()
    if far:
        yield Diagnostic(
            "far_from_window",
            far,
            f"Events are far outside the {time(end - begin)} that were recorded: their clock was wrong, or they come "
            "from another recording. They stretch the time axis, and the step `all` if no steps were marked.",
            min(first),
        )


def _base_time(trace: Trace) -> Iterator[Diagnostic]:
    if "baseTimeNanoseconds" not in trace.meta.top:
        return
    year = datetime.fromtimestamp(max(trace.origin_ns, 0) / 1e9, timezone.utc).year
    if not _EARLIEST_YEAR <= year <= _LATEST_YEAR:
        source = " The date that is shown comes from the file's name." if moment_in(PurePath(trace.path).name) else ""
        yield Diagnostic(
            "clock_not_set",
            1,
            f"According to its clock the trace is from the year {year}: its date is wrong.{source} Times within it are "
            "right, and collectives that ranks have in common still align their traces; traces of ranks without any "
            "can't be aligned. Set the machine's clock.",
        )
