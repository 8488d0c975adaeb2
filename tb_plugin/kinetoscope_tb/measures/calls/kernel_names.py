"""Readable labels of a trace's kernels, distinct within the trace."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import polars as pl

from ...names.kernel_labels import kernel_labels
from ...trace import Trace
from ...trace.results import once_per_recording


def labels_of_kernels(*traces: Trace) -> Mapping[str, str]:
    """The label of each kernel of these traces by its full name; only of those whose label is another text."""
    names = {name for trace in traces for name in _names(trace)}
    return _labels(tuple(sorted(names)))


@once_per_recording
def _names(trace: Trace) -> list[str]:
    rows = trace.device_events.select("name", "kind").unique()
    return rows.filter(pl.col("kind") == "kernel")["name"].drop_nulls().cast(pl.String).to_list()


@lru_cache(maxsize=16)  # a report asks for each view of a trace
def _labels(names: tuple[str, ...]) -> Mapping[str, str]:
    return {name: label for name, label in kernel_labels(names).items() if label != name}
