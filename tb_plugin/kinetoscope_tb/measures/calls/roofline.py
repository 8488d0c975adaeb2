"""The roofline: how fast a device can do an operator's work at best.

An operator can run no faster than its FLOPs at the device's rate for matrices, nor than its bytes at the memory's
bandwidth; the larger of the two times is its roof (Williams, Waterman, Patterson: Roofline, 2009). Both rates come from
names/device_peaks.py. The device is known by the name in the trace; if it has none, by kernels that run on one
architecture only, as long as the products of that architecture are about equally fast.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ...names.device_peaks import DevicePeaks, architecture_of, architecture_peaks, device_peaks
from ...trace.model import Trace
from ..recording.device_properties import Devices
from .matrix_work import MatrixWork

NO_DEVICE_NAME = "The trace doesn't name the device."
IMPOSSIBLE = "The recorded shapes need more FLOPs than the device can do in that time."
PARTLY_READ = "It took less time than moving all its inputs would take, so it reads only a part of them."
WHICH_UNIT = "Whether its kernels use tensor cores is unknown from their names, so the applicable peak is unknown."

_MOST_FASTER = 8
"""Caches are up to so many times as fast as the memory."""
_LARGEST_CACHE = 1 << 29  # bytes: larger than that of any device
_NEAR_ROOF = 2
"""Times the roof: what shares of a cache, boosted clocks and the lowest peak of an architecture explain together."""


@dataclass(frozen=True)
class Limits:
    """What is known of a device's limits.

    Args:
        peaks: Its rates; None: unknown.
        reason: Why they are unknown.
        name: As the trace has it, or the architecture in kernel names.
        is_named: Whether the trace names the device.
        multiprocessors: How many it has, if known; of an architecture, the fewest of any product.
        compute_capability: As (9, 0), if the trace has it.
    """

    peaks: DevicePeaks | None
    reason: str = ""
    name: str = ""
    is_named: bool = True
    multiprocessors: int | None = None
    compute_capability: tuple[int, int] | None = None

    @property
    def doubt(self) -> str | None:
        """Why the limits may not be those of the device."""
        if self.peaks is None or self.is_named:
            return None
        return f"{NO_DEVICE_NAME} Its roof is that of the slowest {self.name}, as names of kernels show."

    @classmethod
    def of(cls, trace: Trace) -> dict[int, Limits]:
        """The limits of each device that ran anything."""
        devices = Devices.of(trace.meta)
        return {
            index: _limits(trace, index, devices)
            for index in sorted(trace.device_events["device"].drop_nulls().unique())
        }


def _limits(trace: Trace, index: int, devices: Devices) -> Limits:
    facts = devices.facts(index)
    if facts.name:
        peaks = device_peaks(facts.name, facts.multiprocessors, facts.memory_bytes)
        reason = "" if peaks else f"No peaks of {facts.name} are known."
        count = facts.multiprocessors or (peaks.multiprocessors if peaks else None)
        major, _, minor = (facts.compute_capability or "").partition(".")
        capability = (int(major), int(minor)) if minor else None
        return Limits(peaks, reason, facts.name, multiprocessors=count, compute_capability=capability)
    rows = trace.device_events.select("name", "device").filter(pl.col("device") == index)
    names = rows["name"].unique().cast(pl.String).drop_nulls()
    architectures = {architecture for name in names if (architecture := architecture_of(name))}
    common_peaks = architecture_peaks(architectures.pop()) if len(architectures) == 1 else None
    if common_peaks is None:
        return Limits(None, NO_DEVICE_NAME, is_named=False)
    return Limits(common_peaks, name=common_peaks.name, is_named=False, multiprocessors=common_peaks.multiprocessors)


@dataclass(frozen=True)
class Roof:
    """The limits for a call's work.

    Args:
        bytes_per_s: The device's bandwidth.
        flop_per_s: Its rate in the format of the work; None: unknown.
        number_format: The format, if it isn't that of the inputs: tf32, if floats run in it.
        bound_by: compute or memory; None: unknown.
        ns: Time of one call at the roof; None: unknown.
        reason: Why anything is unknown.
        peak_flop_per_s: The vendor's peak in the format, which what its library reaches may be far below; None:
            unknown.
    """

    bytes_per_s: float
    flop_per_s: float | None = None
    number_format: str | None = None
    bound_by: str | None = None
    ns: float | None = None
    reason: str = ""
    peak_flop_per_s: float | None = None


def roof(peaks: DevicePeaks, work: MatrixWork, *, uses_tensor_cores: bool, is_unit_unknown: bool) -> Roof:
    """The limits for a call that multiplies matrices.

    Args:
        peaks: Of the device.
        work: Of the call; its number format is known.
        uses_tensor_cores: Whether any of its kernels is known to use them.
        is_unit_unknown: Whether it is unknown of any kernel.
    """
    key = str(work.dtype)
    if f"{key}_matrix" in peaks.flop_per_s:
        if not uses_tensor_cores and is_unit_unknown:
            return Roof(peaks.bandwidth, reason=WHICH_UNIT)
        key += "_matrix" if uses_tensor_cores else ""
    rate = peaks.roof(key)
    if rate is None:
        return Roof(peaks.bandwidth, reason=f"No peak of this device in {work.dtype} is known.")
    number_format = "tf32" if key == "fp32_matrix" and peaks.has_tf32 else None
    if work.moved_bytes is None:
        return Roof(peaks.bandwidth, rate, number_format, peak_flop_per_s=peaks.flop_per_s.get(key))
    compute_ns, memory_ns = work.flop / rate * 1e9, work.moved_bytes / peaks.bandwidth * 1e9
    bound_by = "compute" if compute_ns >= memory_ns else "memory"
    roof_ns, peak = max(compute_ns, memory_ns), peaks.flop_per_s.get(key)
    return Roof(peaks.bandwidth, rate, number_format, bound_by, roof_ns, peak_flop_per_s=peak)


def with_doubts(rows: pl.DataFrame, limits: dict[int, Limits]) -> pl.DataFrame:
    """Rows with a roof say in `why_unknown` why it may not be that of their device."""
    doubts = {device: limit.doubt for device, limit in limits.items()}
    doubt = pl.col("device").replace_strict(doubts, default=None, return_dtype=pl.String)
    has_roof = pl.col("peak_bytes_per_s").is_not_null()
    return rows.with_columns(why_unknown=pl.coalesce("why_unknown", pl.when(has_roof).then(doubt)))


def why_impossible(roof_frac: float, bound_by: str | None, moved_bytes: int | None) -> str | None:
    """Why a call of so many bytes can't have come so close to its roof; None: it can."""
    if bound_by == "compute":
        return IMPOSSIBLE if roof_frac > _NEAR_ROOF else None
    is_cached = (moved_bytes or 0) <= _LARGEST_CACHE
    return PARTLY_READ if roof_frac > (_MOST_FASTER if is_cached else _NEAR_ROOF) else None
