"""GPUs: how busy each device was from the first step's start to the last step's end.

Utilisation asks whether anything ran, SM efficiency how much of the device it could occupy, occupancy how full the busy
parts were. A device can be 100 % utilised by kernels that each use one of its hundred multiprocessors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from ..intervals import capped_integral
from ..tables import BYTES, FRACTION, ID, TEXT, Column, Table
from ..trace import Trace
from ..trace.breakdown import intervals_of
from ..views import View


class Gpus(Table):
    """One row is one device that ran kernels."""

    key = ("device",)

    device = Column(ID, "Index of the device.")
    name = Column(TEXT, "Name that the driver gives it.")
    memory_bytes = Column(BYTES, "Size of its memory.", adds_up=False)
    compute_capability = Column(TEXT, "Major and minor version of its architecture.")
    utilization_frac = Column(FRACTION, "Share of the time in which at least one kernel ran.")
    sm_efficiency_frac = Column(
        FRACTION,
        "Mean over the time of the multiprocessors' share with work: blocks per SM of the running kernels, at most 1.",
    )
    occupancy_frac = Column(FRACTION, "Mean achieved occupancy of the kernels, weighted by their duration.")
    tc_time_frac = Column(
        FRACTION, "Share of kernel time in kernels known to use tensor cores, among the kernels that are known."
    )


def gpus(trace: Trace) -> pl.DataFrame:
    """The devices by index."""
    window = trace.steps["start_ns"][0], trace.steps["end_ns"][-1]
    properties = {d.get("id"): d for d in trace.meta.devices}
    rows = [
        _described(device, properties.get(device, {})) | _measured(rows, window)
        for (device,), rows in sorted(trace.kernels.group_by("device"), key=lambda group: group[0])
    ]
    return Gpus.of(pl.DataFrame(rows, schema=Gpus.schema()))


def _described(device: Any, properties: Mapping[str, Any]) -> dict[str, Any]:
    major, minor, size = (properties.get(k) for k in ("computeMajor", "computeMinor", "totalGlobalMem"))
    return {
        "device": device,
        "name": str(properties["name"]) if properties.get("name") else None,
        "memory_bytes": size if isinstance(size, int) else None,
        "compute_capability": f"{major}.{minor}" if major is not None and minor is not None else None,
    }


def _measured(kernels: pl.DataFrame, window: tuple[int, int]) -> dict[str, float | None]:
    start = np.clip(kernels["start_ns"].to_numpy(), *window)
    end = np.clip((kernels["start_ns"] + kernels["dur_ns"]).to_numpy(), *window)
    inside = (end - start).astype(float)
    length = window[1] - window[0]
    blocks, occupancy = kernels["blocks_per_sm"].to_numpy(), kernels["occupancy_frac"].to_numpy()
    uses, known = (kernels["tensor_cores"] == "yes").to_numpy(), (kernels["tensor_cores"] != "unknown").to_numpy()
    running, ending = intervals_of(kernels)
    busy = float(np.sum(np.clip(ending, *window) - np.clip(running, *window)))
    filled = capped_integral(start, end, np.nan_to_num(blocks), 1.0, window)
    return {
        "utilization_frac": _share(busy, length),
        "sm_efficiency_frac": _share(filled, length) if np.isfinite(blocks).any() else None,
        "occupancy_frac": _share(np.nansum(occupancy * inside), inside[np.isfinite(occupancy)].sum()),
        "tc_time_frac": _share(inside[uses].sum(), inside[known].sum()),
    }


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


VIEW = View(
    gpus,
    table=Gpus,
    title="GPUs",
    group="Device",
    needs="kernels",
    hint="No kernels were recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    within="windows",
)
