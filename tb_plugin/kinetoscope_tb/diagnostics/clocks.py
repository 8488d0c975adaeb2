"""Whether times can be trusted: the clocks of host and devices, and the window that they were recorded in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

import numpy as np
import polars as pl

from ..trace import Diagnostic, Trace

_JITTER_NS = 1_000  # kineto converts device clocks to the host's; less than this is its own error
_MANY = 0.1  # of the linked device rows: more than this are early because of a clock offset, not by chance
_FAR_NS = 10**9
_EARLIEST_YEAR, _LATEST_YEAR = 2016, 2100


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Problems with times."""
    yield from _early_device_rows(trace)
    yield from _far_events(trace)
    yield from _base_time(trace)
    if "bare_fractions" in trace.meta.fingerprint.forms:
        yield Diagnostic(
            "bare_fractions",
            1,
            "Times lack the zeros after the decimal point, as in builds of torch from March 2024 (fixed by kineto "
            "c4357a90): each time may be wrong by up to 1 µs. Record again with a released torch.",
        )


def _early_device_rows(trace: Trace) -> Iterator[Diagnostic]:
    """Torch's validator: no kernel begins before the call that launched it."""
    device, launches = trace.device_events, trace.launches
    linked = device.filter(pl.col("launch") >= 0)
    if linked.is_empty():
        return
    early = (launches["start_ns"].gather(linked["launch"]) - linked["start_ns"]).to_numpy()
    is_early = early > 0
    if not is_early.any():
        return
    count, most, usual = int(is_early.sum()), int(early.max()), float(np.median(early[is_early]))
    is_jitter = most < _JITTER_NS
    words = f"Device rows begin up to {_us(most)} (usually {_us(usual)}) before the call that launched them. "
    if is_jitter:
        words += "This is within the error of converting the device's clock to the host's."
    elif count > _MANY * linked.height and count > 1:
        words += (
            f"That many aren't chance: the device's clock is at least {_us(float(np.percentile(early, 99)))} behind "
            "the host's. Durations are right; gaps between host and device are wrong by that offset."
        )
    else:
        words += "There are only a few: single times of host or device are wrong. Durations are right."
    first = int(linked["offset"].to_numpy()[is_early].min())
    yield Diagnostic("device_before_launch", count, words, first, level="note" if is_jitter else "warning")


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
            f"Events are far outside the {_us(end - begin)} that were recorded: their clock was wrong, or they come "
            "from another recording. They stretch the time axis, and the step `all` if no steps were marked.",
            min(first),
        )


def _base_time(trace: Trace) -> Iterator[Diagnostic]:
    if "baseTimeNanoseconds" not in trace.meta.top:
        return
    year = datetime.fromtimestamp(max(trace.origin_ns, 0) / 1e9, timezone.utc).year
    if not _EARLIEST_YEAR <= year <= _LATEST_YEAR:
        yield Diagnostic(
            "clock_not_set",
            1,
            f"According to its clock the trace is from the year {year}. Times within it are right, but it can't be "
            "aligned with other ranks' traces, and its date is wrong. Set the machine's clock.",
        )


def _us(ns: float) -> str:
    """A time in a suitable unit."""
    return f"{ns / 1e3:.3g} µs" if ns < 1e6 else f"{ns / 1e6:.3g} ms" if ns < 1e9 else f"{ns / 1e9:.3g} s"
