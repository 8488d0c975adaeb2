"""Copies and fills in a sentence: for how long any runs without a kernel, which is what they can cost, and which do."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...measures.calls.copy_totals import copy_totals
from ...measures.recording.contents import has_copies
from ...measures.time.exposure import exposure
from ...measures.time.idle import Windows
from ...measures.time.idle_causes import matters, not_shown_times
from ...names.text import byte_rate, code, digits, enumeration, memory_size, percent, time, times
from ...table import Summary
from ...trace import Trace
from ...view import Lead, View

_MOST_NAMED = 2
_MOSTLY = 0.5  # of the time without a kernel


class CopiesSummary(
    Summary,
    colors={"copies": "memcpy"},
    rule="`copies`.",
    title=(
        "How long a copy or a fill runs on any device and no kernel does on any, and the name with the longest total "
        "if it makes most of that."
    ),
    evidence="How many there are, those with the largest totals, and how much is of pageable memory.",
    confidence="low: kernels ran that aren't in the recording, or may have; else high.",
    view="Id of the view that lists all.",
):
    """For how long copies and fills run while no kernel does, from the first step's start to the last one's end."""


def copies_summary(trace: Trace) -> pl.DataFrame:
    """One row."""
    windows = Windows.of(trace, per_step=False)
    hidden_ns = int(not_shown_times(trace, windows.start, windows.end).sum())
    has_all = bool((trace.device_events["kind"] == "kernel").any()) and not matters(hidden_ns, windows.length_ns)
    kernel, confidence = ("kernel", "high") if has_all else ("recorded kernel", "low")
    texts = (_title(trace, windows, kernel), _evidence(copy_totals(trace)), confidence)
    return CopiesSummary.of_row(("copies", *texts, "copies"))


def _title(trace: Trace, windows: Windows, kernel: str) -> str:
    exposed_ns, whole = _exposed_ns(trace, np.arange(trace.device_events.height), windows), windows.length_ns
    if not exposed_ns:
        return f"Copies and fills cost the steps no time of their own: in them a {kernel} runs whenever one does."
    name = copy_totals(trace)["name"][0]
    mostly = _exposed_ns(trace, _rows_without_other_copies(trace, name), windows) > _MOSTLY * exposed_ns
    part = "all" if copy_totals(trace).height == 1 else "most"
    culprit = f", {part} of it {code(name)}" if mostly else ""
    return (
        f"For {percent(exposed_ns / whole)} of the time copies or fills run and no {kernel} does: "
        f"{time(exposed_ns)} of {time(whole)}{culprit}."
    )


def _rows_without_other_copies(trace: Trace, name: str) -> NDArray[np.int64]:
    """The rows of device_events but for copies and fills with other names."""
    device = trace.device_events.select("is_communication", "kind", is_meant=pl.col("name").cast(pl.String) == name)
    is_left = device["is_communication"] | (device["kind"] == "kernel") | device["is_meant"]
    return np.flatnonzero(is_left.to_numpy())


def _exposed_ns(trace: Trace, rows: NDArray[np.int64], windows: Windows) -> int:
    """How long copies and fills among these device rows run while no kernel does."""
    return int(exposure(trace, rows.astype(np.int32), windows)["exposed copies"].sum())


def _evidence(totals: pl.DataFrame) -> str:
    total = int(totals["total_ns"].sum())
    counts = f"{_count(totals)}, {time(total)} in the recording"
    columns = totals.select("name", "total_ns", "moved_bytes", "moved_bytes_per_s").head(_MOST_NAMED)
    largest = [f"{code(name)} {time(ns)}{_amount(*amount)}" for name, ns, *amount in columns.iter_rows()]
    pageable = int(totals.filter(pl.col("is_pageable"))["total_ns"].sum())
    part = "all" if pageable == total else time(pageable)
    of_pageable = f" From or to pageable memory: {part}." if pageable else ""
    if len(largest) == 1:
        amount = _amount(*totals.select("moved_bytes", "moved_bytes_per_s").row(0))
        return f"{counts}{amount and f',{amount}'}.{of_pageable}"
    return f"{counts}. Largest totals: {enumeration(largest)}.{of_pageable}"


def _count(totals: pl.DataFrame) -> str:
    """Such as 1 copy, 3 fills, 36 copies and fills."""
    calls, is_fill = int(totals["calls"].sum()), totals["direction"].fill_null("") == "fill"
    if is_fill.all():
        return times(calls, "fill")
    return "1 copy" if calls == 1 else f"{digits(calls)} copies{' and fills' if is_fill.any() else ''}"


def _amount(moved_bytes: int | None, bytes_per_s: float | None) -> str:
    """Such as for 96.4 KiB at 10.2 GB/s."""
    size = f" for {memory_size(moved_bytes)}" if moved_bytes is not None else ""
    return f"{size}{f' at {byte_rate(bytes_per_s)}' if bytes_per_s else ''}"


VIEW = View(
    copies_summary,
    table=CopiesSummary,
    title="Copies in a sentence",
    entry="Kernels",
    place=Lead("copies"),
    within="recording",
    needs=has_copies,
    hint="No copies or fills were recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
)
