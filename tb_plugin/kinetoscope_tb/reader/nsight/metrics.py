"""GPU_METRICS → the counters of each device: what `nsys profile --gpu-metrics-devices=…` samples.

A row is one value of one metric of one GPU; TARGET_INFO_GPU_METRICS names it by typeId and metricId (NVIDIA's SQLite
Export Schema Reference). A typeId's last byte is the GPU's number in the machine; values and times may be negative
(nsys2prv of the Barcelona Supercomputing Center). Shares of a peak are named "DRAM Read Bandwidth [Throughput %]",
clocks "GPC Clock Frequency [MHz]", although exports of H100 have them in Hz. A session is sampled from its start on;
samples outside of the recorded events are left out.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...filesystem import Columns
from ..scan import scanner as s
from . import schema
from .scan import Batch, batches

COLUMNS = {
    "name": pl.String,
    "series": pl.String,
    "process": pl.String,
    "time_ns": pl.Int64,
    "value": pl.Float64,
    "offset": pl.Int64,
}
_GPU = 0xFF
_MEGA = 1e6  # no clock has that many MHz
_UNIT = re.compile(r"(.+) \[(Throughput %|MHz)\]")
_UNITS = {"Throughput %": "%", "MHz": "MHz"}


def read_metrics(
    connection: sqlite3.Connection,
    tables: Columns,
    names: Mapping[tuple[int, int], str],
    device_of: Callable[[int], int | None],
    within: tuple[int, int],
    on_damage: Callable[[str, int], None],
) -> pl.DataFrame:
    """The samples as rows of the frame of counters, with the file's times.

    Args:
        connection, tables: The database.
        names: The name of each metric, by (typeId, metricId); others are left out.
        device_of: The index of a GPU of the machine; None if the recorded processes don't use it.
        within: The times of the first and the last recorded event.
        on_damage: Called as `scan.batches` does.
    """
    kinds = {key: (name, device) for key, name in names.items() if (device := device_of(key[0] & _GPU)) is not None}
    frames = [pl.DataFrame(schema=COLUMNS)]
    for batch in batches(connection, schema.METRICS, tables[schema.METRICS.table], on_damage):
        time = batch["timestamp"]
        chosen = batch.take(np.flatnonzero((time >= within[0]) & (time <= within[1])))
        if kinds and len(chosen):
            frames.append(_samples(chosen, kinds))
    return pl.concat(frames)


def _samples(batch: Batch, kinds: Mapping[tuple[int, int], tuple[str, int]]) -> pl.DataFrame:
    rows = pl.DataFrame(
        {name: batch[name] for name in ("typeId", "metricId")}
        | {"time_ns": batch["timestamp"], "value": batch["value"], "offset": batch.offset}
    )
    listed = [(*key, *_name_and_unit(name), f"GPU {device} Counters") for key, (name, device) in kinds.items()]
    known = pl.DataFrame(listed, ["typeId", "metricId", "name", "unit", "process"], orient="row")
    named = rows.join(known, on=["typeId", "metricId"], maintain_order="left").with_columns(series=pl.lit(""))
    values = _values(named["value"].to_numpy(), (named["unit"] == "MHz").to_numpy())
    return named.with_columns(value=values).select(pl.col(name).cast(dtype) for name, dtype in COLUMNS.items())


def _values(raw: NDArray[np.int64], is_clock: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Values in their unit; NaN for what no counter can be."""
    value = np.where(raw < 0, np.nan, raw.astype(np.float64))  # MISSING is negative
    return np.where(is_clock & (value >= _MEGA), value / _MEGA, value)


def _name_and_unit(metric: str) -> tuple[str, str]:
    """The name with its unit as the counters of torch have it, and the unit."""
    match = _UNIT.fullmatch(metric)
    unit = _UNITS[match[2]] if match else ""
    return (f"{match[1]} ({unit})", unit) if match else (metric, unit)


def metric_names(rows: list[tuple[Any, ...]]) -> dict[tuple[int, int], str]:
    """The name of each metric, by (typeId, metricId), from the rows of TARGET_INFO_GPU_METRICS."""
    return {
        (kind, metric): name
        for kind, metric, name in rows
        if isinstance(kind, int) and isinstance(metric, int) and isinstance(name, str) and name
    }


def device_indices(session_devices: Mapping[tuple[int, int], int], rows: list[tuple[Any, ...]]) -> dict[int, int]:
    """The index that rows have for each GPU of the machine: CUDA's in a file of one process, else the machine's.

    Args:
        session_devices: The machine's GPU by process and CUDA's index, if there are several processes.
        rows: (cudaId, gpuId) of TARGET_INFO_CUDA_DEVICE.
    """
    if session_devices:
        return {gpu: gpu for gpu in session_devices.values()}
    return {gpu: own for own, gpu in rows if isinstance(own, int) and isinstance(gpu, int)}


def first_and_last(timed: list[tuple[NDArray[np.int64], NDArray[Any]]]) -> tuple[int, int]:
    """The times of the first start and the last end of events, given the starts and durations of each kind."""
    starts = [int(ts.min()) for ts, _ in timed if ts.size]
    ends = [int((ts + np.maximum(dur, 0)).max()) for ts, dur in timed if ts.size]
    return min(starts, default=s.MISSING), max(ends, default=s.MISSING)
