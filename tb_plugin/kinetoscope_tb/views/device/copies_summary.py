"""Copies and fills in a sentence: for how long any runs without a kernel, which is what they can cost."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...measures.recording.contents import has_copies
from ...measures.time.exposure import exposure
from ...measures.time.idle import Windows
from ...names.text import enumeration, memory_size, percent, time
from ...pictures import Sentence
from ...table import PROSE, TEXT, Column, Table
from ...trace import Trace
from ...view import Lead, View
from .copies import copies

_MOST_NAMED = 2


class CopiesSummary(Table):
    """For how long copies and fills run while no kernel does, from the first step's start to the last one's end."""

    key, weight = ("rule",), None
    picture = Sentence(colors={"copies": "memcpy"}, action=None)

    rule = Column(TEXT, "`copies`.")
    title = Column(PROSE, "How long a copy or a fill runs on any device and no kernel does on any.")
    evidence = Column(PROSE, "How many there are, and those that take longest.")
    confidence = Column(TEXT, "high.")
    view = Column(TEXT, "Id of the view that lists all.")


def copies_summary(trace: Trace) -> pl.DataFrame:
    """One row."""
    windows = Windows.of(trace, per_step=False)
    every_row = np.arange(trace.device_events.height, dtype=np.int32)
    exposed = int(exposure(trace, every_row, windows)["exposed copies"].sum())
    whole = int((windows.end - windows.start).sum())
    rows = copies(trace)
    title = (
        f"For {percent(exposed / whole)} of the time copies or fills run and no kernel does: "
        f"{time(exposed)} of {time(whole)}."
        if exposed and whole
        else "Copies and fills cost no time of their own: kernels run whenever one does."
    )
    row = ("copies", title, _evidence(rows), "high", "copies")
    return CopiesSummary.of(pl.DataFrame([row], schema=CopiesSummary.schema(), orient="row"))


def _evidence(rows: pl.DataFrame) -> str:
    calls, total = int(rows["calls"].sum()), int(rows["total_ns"].sum())
    columns = rows.select("name", "total_ns", "moved_bytes").head(_MOST_NAMED)
    longest = [_in_words(*row) for row in columns.iter_rows()]
    pageable = int(rows.filter(pl.col("is_pageable"))["total_ns"].sum())
    of_pageable = f" Of that, {time(pageable)} are copies from or to pageable memory." if pageable else ""
    return f"Copies and fills: {calls}, {time(total)} in all. Longest: {enumeration(longest)}.{of_pageable}"


def _in_words(name: str, total_ns: int, moved_bytes: int | None) -> str:
    """Such as `Memcpy HtoD (Pinned -> Device)` 9.63 µs for 96.4 KiB."""
    moved = f" for {memory_size(moved_bytes)}" if moved_bytes is not None else ""
    code = name.replace("`", "'")
    return f"`{code}` {time(total_ns)}{moved}"


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
