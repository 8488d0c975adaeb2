"""Counters that the program recorded (phase C): each series is a curve with its unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...measures.recording.hardware_counters import device_of_counter, is_measured, name_and_unit
from ...measures.recording.vendor import device_noun
from ...trace import Trace

_LONGEST_UNIT = 20


@dataclass(frozen=True, eq=False)
class UserCounter:
    """One series.

    Args:
        counter: Its name in the program.
        series: The key of this value in the counter's arguments.
        name: Display name of both.
        process: Display name of the process or the device it belongs to.
        device: Index of that device; None for a process.
        kind: How its values are formatted.
        unit: Suffix of the values; empty for none.
        bounds: The least and the largest value.
        curve: The times of its changes, and the value from each on; NaN where it is unknown.
    """

    counter: str
    series: str
    name: str
    process: str
    device: int | None
    kind: Literal["bytes", "fraction", "number"]
    unit: str
    bounds: tuple[float, float]
    curve: tuple[NDArray[np.int64], NDArray[np.float64]]


def user_counters(trace: Trace) -> Iterator[UserCounter]:
    """Each series that has a number, by process and name."""
    frame = trace.counters
    if frame.is_empty():
        return
    units, noun = _units(trace.meta.producer), device_noun(trace)
    keys = frame.select("process", "name", "series").with_columns(pl.all().cast(pl.String).fill_null(""))
    runs = (
        keys.with_row_index()
        .group_by("process", "name", "series", maintain_order=True)
        .agg(pl.col("index").first(), pl.len())
    )
    at, value = frame["start_ns"].to_numpy(), frame["value"].to_numpy()
    for process, name, series, first, count in runs.iter_rows():
        device = device_of_counter(process)
        if device is not None and not is_measured(name):
            continue
        rows = slice(first, first + count)
        numbers = value[rows][~np.isnan(value[rows])]
        if not numbers.size:
            continue
        kind, unit = _kind(units.get(name, ""), numbers)
        words = name if series in (name, "value", "") else f"{name} · {series}"
        if device is not None:
            words, unit = name_and_unit(words)
        bounds, owner = (float(numbers.min()), float(numbers.max())), _owner(process, device, noun)
        yield UserCounter(name, series or "value", words, owner, device, kind, unit, bounds, (at[rows], value[rows]))


def _owner(process: str, device: int | None, noun: str) -> str:
    return f"process {process}" if device is None else f"{noun} {device}"


def _units(producer: Mapping[str, Any]) -> dict[str, str]:
    table = producer.get("counters")
    items = table.items() if isinstance(table, Mapping) else ()
    units = {name: about.get("unit") for name, about in items if isinstance(about, Mapping)}
    return {name: unit[:_LONGEST_UNIT] for name, unit in units.items() if isinstance(unit, str)}


def _kind(unit: str, numbers: NDArray[np.float64]) -> tuple[Literal["bytes", "fraction", "number"], str]:
    """How values of a unit are formatted: bytes with multiples, fractions as percentages, others as numbers."""
    if unit == "bytes" or unit.startswith("bytes/"):
        return "bytes", unit.removeprefix("bytes")
    if unit == "fraction" and numbers.min() >= 0 and numbers.max() <= 1:
        return "fraction", ""
    return "number", unit
