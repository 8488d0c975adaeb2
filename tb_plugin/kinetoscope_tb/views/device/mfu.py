"""Model FLOPs utilization (MFU): the share of each device's peak that a step's matrix work reaches.

The work is that of the recorded shapes: matmuls, convolutions and attention (Chowdhery et al.: PaLM, 2022, appendix B).
It counts as it ran, so activations that are computed again count, too: with these, it is the hardware's utilization
(HFU). Work in several number formats counts against the peak of each. Kernels that multiply no matrices have no FLOPs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from ...arrays.gather import fraction
from ...measures.calls.kernel_work import KERNEL_COLUMNS, Group, KernelWork
from ...measures.calls.memory_work import NO_MODEL
from ...measures.calls.roofline import IMPOSSIBLE, NO_DEVICE_NAME, Limits
from ...measures.recording.contents import has_kernels
from ...measures.recording.usual_step import usual_step
from ...measures.time.step_subset import belongs_to_steps, counted_steps
from ...table import DURATION, FLOP, FLOP_RATE, FRACTION, ID, TEXT, Column, Table
from ...trace import Trace
from ...view import Part, View

_LEAST_KNOWN = 0.5  # of the kernel time: with less, most of the work may be missing
NO_MATRICES = "No kernel is known to multiply matrices."


class Mfu(Table):
    """Which share of each device's peak the matrix work of the complete steps reaches (MFU)."""

    key, weight = ("device",), "work_flop"

    device = Column(ID, "Index of the device.")
    mfu_frac = Column(
        FRACTION,
        "FLOPs per step / what the device could do at its peak in the length of the average step; at least that, where "
        "the FLOPs of some kernels are unknown. Missing if those of most are, if the device's peak is, or if the "
        "shapes need more than the peak.",
        title="MFU",
    )
    usual_mfu_frac = Column(
        FRACTION,
        "The same in the length of a step without the profiler, if the recorder knows that recording slows steps.",
        title="MFU without profiler",
    )
    time_of_known_work_frac = Column(
        FRACTION,
        "Share of the kernel time, without communication, in kernels whose FLOPs are known: from the recorded shapes, "
        "or because they multiply no matrices and so count as 0, even where the bytes that they move, and so their "
        "roof, aren't known. Missing if no FLOPs are known.",
        title="Time with known or no FLOPs",
    )
    work_flop = Column(FLOP, "FLOPs of matmuls, convolutions and attention per step; a multiply-add counts as two.")
    step_ns = Column(DURATION, "Mean length of the complete steps as recorded.", adds_up=False)
    peak_flop_per_s = Column(
        FLOP_RATE,
        "The vendor's dense peak; of several number formats, the mean by the time that their work takes at it.",
    )
    dtype = Column(TEXT, "Number formats of the work, that with most work first.")
    why_mfu_unknown = Column(TEXT, "Why the share of the peak is unknown.", title="Why MFU is unknown")


def mfu(trace: Trace) -> pl.DataFrame:
    """The devices by index."""
    steps = counted_steps(trace)
    of_steps = pl.Series(belongs_to_steps(trace, "device_events", steps))
    events = trace.device_events
    is_chosen = of_steps & (events["kind"] == "kernel") & ~events["is_communication"]
    work = KernelWork.of(trace, events.select(KERNEL_COLUMNS).filter(is_chosen))
    step_ns = round(float((trace.steps["end_ns"] - trace.steps["start_ns"])[steps].mean()))  # type: ignore[arg-type]
    usual = usual_step(trace)
    rows = [
        {"device": device, "step_ns": step_ns, **_of_device(groups, limits, len(steps))}
        for device, limits in work.limits.items()
        if (groups := [group for group in work.groups if group.device == device])
    ]
    frame = pl.DataFrame(rows, schema=Mfu.schema())
    seconds = pl.col("peak_flop_per_s") / 1e9
    usual_ns = pl.lit(usual.mean_ns(step_ns) if usual else None, pl.Float64)
    is_possible = pl.col("work_flop") <= pl.col("step_ns") * seconds
    reason = pl.when(~is_possible).then(pl.lit(IMPOSSIBLE))
    frame = frame.with_columns(pl.coalesce("why_mfu_unknown", reason))
    share = pl.when(pl.col("why_mfu_unknown").is_null()).then(pl.col("work_flop"))
    usual_share = pl.when(pl.col("work_flop") <= usual_ns * seconds).then(share)
    return Mfu.of(
        frame.with_columns(
            mfu_frac=fraction(share, pl.col("step_ns") * seconds),
            usual_mfu_frac=fraction(usual_share, usual_ns * seconds),
        )
    )


def _of_device(groups: Sequence[Group], limits: Limits, steps: int) -> dict[str, Any]:
    """The work of a device's kernels, how much of their time it covers, and why its share of the peak is unknown."""
    whole = sum(group.time_ns for group in groups)
    is_without_peaks = limits.peaks is None
    with_flop = [group for group in groups if group.work_flop and (group.peak_flop_per_s or is_without_peaks)]
    known_ns = sum(group.time_ns if group in with_flop else _without_matrices(group) for group in groups)
    by_format: dict[str, float] = {}
    for group in with_flop:
        by_format[str(group.number_format)] = by_format.get(str(group.number_format), 0) + _work(group)
    work, at_peak_s = sum(by_format.values()), sum(_work(group) / (group.peak_flop_per_s or 1) for group in with_flop)
    known_frac = known_ns / whole if whole else None
    return {
        "time_of_known_work_frac": known_frac if with_flop else None,
        "work_flop": work / steps if with_flop else None,
        "peak_flop_per_s": work / at_peak_s if with_flop and not is_without_peaks else None,
        "dtype": ", ".join(sorted(by_format, key=lambda name: -by_format[name])) or None,
        "why_mfu_unknown": _why_unknown(groups, limits, has_work=bool(with_flop), known_frac=known_frac or 0.0),
    }


def _work(group: Group) -> float:
    """FLOPs of all calls."""
    return float(group.calls * (group.work_flop or 0))


def _without_matrices(group: Group) -> int:
    """The time in kernels that have no FLOPs."""
    is_memory_work = group.work_bytes is not None and group.work_flop is None
    return group.time_ns if is_memory_work else group.no_matrix_ns


def _why_unknown(groups: Sequence[Group], limits: Limits, *, has_work: bool, known_frac: float) -> str | None:
    if limits.peaks is None:
        return limits.reason
    if not limits.is_named:
        return f"{NO_DEVICE_NAME} The peak is that of the slowest {limits.name}, as names of kernels show."
    rest = [group for group in groups if group.reason and not _without_matrices(group)]
    if has_work and known_frac >= _LEAST_KNOWN:
        return None
    if rest and rest[0].reason == NO_MODEL:
        return f"No model of the work of {rest[0].name} exists."
    return rest[0].reason if rest else NO_MATRICES


VIEW = View(
    mfu,
    table=Mfu,
    title="Model FLOPs utilization",
    entry="Kernels",
    place=Part("kernel_efficiency"),
    within="recording",
    needs=has_kernels,
    hint="No kernels were recorded. Pass ProfilerActivity.CUDA among the activities.",
    reads_captures=True,
)
