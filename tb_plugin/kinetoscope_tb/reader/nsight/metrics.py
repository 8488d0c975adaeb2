"""GPU_METRICS → the counters of each device: what `nsys profile --gpu-metrics-devices=…` samples.

A row is one value of one metric of one GPU; TARGET_INFO_GPU_METRICS names it by typeId and metricId (NVIDIA's SQLite
Export Schema Reference). A typeId's last byte is the GPU's number in the machine; values and times may be negative
(nsys2prv of the Barcelona Supercomputing Center). Shares of a peak are named "DRAM Read Bandwidth [Throughput %]",
clocks "GPC Clock Frequency [MHz]", although exports of H100 have them in Hz. A session is sampled from its start on;
samples outside of the recorded events are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...names.regex import regex
from .scan import Batch

_TEXTS = ("name", "series", "process")
_NUMBERS = {"time_ns": pl.Int64, "value": pl.Float64, "offset": pl.Int64}
_GPU = 0xFF
_MEGA = 1e6  # no clock has that many MHz
_UNIT = regex(r"(.+) \[(Throughput %|MHz)\]")
_UNITS = {"Throughput %": "%", "MHz": "MHz"}


def read_metrics(
    batches: Iterable[Batch],
    names: Mapping[tuple[int, int], str],
    device_of: Callable[[int], int | None],
    within: tuple[int, int],
    on_rows: Callable[[int], None],
) -> pl.DataFrame:
    """The samples as rows of the frame of counters, with the file's times.

    Args:
        batches: The rows of GPU_METRICS.
        names: The name of each metric, by (typeId, metricId); others are left out.
        device_of: The index of a GPU of the machine; None if the recorded processes don't use it.
        within: The times of the first and the last recorded event.
        on_rows: Called after each batch with its number of rows; it may raise.
    """
    metrics = _metrics(names, device_of)
    schema_of_texts: dict[str, Any] = {name: metrics.schema[name] for name in _TEXTS}
    frames = [pl.DataFrame(schema=schema_of_texts | _NUMBERS)]
    for batch in batches:
        time = batch["timestamp"]
        rows_within = batch.take(np.flatnonzero((time >= within[0]) & (time <= within[1])))
        if metrics.height and len(rows_within):
            frames.append(_samples(rows_within, metrics))
        on_rows(len(batch))
    return pl.concat(frames)


def _metrics(names: Mapping[tuple[int, int], str], device_of: Callable[[int], int | None]) -> pl.DataFrame:
    """The texts of each metric of a known device, with categories in order, so that rows sort as their texts do."""
    rows = [
        (*key, *_name_and_unit(name), "", f"GPU {device} Counters")
        for key, name in names.items()
        if (device := device_of(key[0] & _GPU)) is not None
    ]
    columns = {"typeId": pl.Int64, "metricId": pl.Int64, "name": pl.String, "unit": pl.String}
    metrics = pl.DataFrame(rows, columns | {"series": pl.String, "process": pl.String}, orient="row")
    categories = {name: pl.Enum(metrics[name].unique().sort()) for name in _TEXTS}
    return metrics.cast(categories)  # type: ignore[arg-type]  # Enum is a type of Polars


def _samples(batch: Batch, metrics: pl.DataFrame) -> pl.DataFrame:
    rows = pl.DataFrame(
        {name: batch[name] for name in ("typeId", "metricId")}
        | {"time_ns": batch["timestamp"], "raw": batch["value"], "offset": batch.offset}
    )
    samples = rows.join(metrics, on=["typeId", "metricId"], maintain_order="left")
    values = _values(samples["raw"].to_numpy(), (samples["unit"] == "MHz").to_numpy())
    return samples.select(*_TEXTS, "time_ns", pl.Series("value", values), "offset")


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
