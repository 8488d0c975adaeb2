"""Limits: what the time of each phase of a server goes to, on the device and between its work, and what bounds it."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from ...arrays.gather import NONE
from ...measures.recording.contents import has_device_iterations
from ...measures.serving.costs import families
from ...measures.serving.iterations import iteration_of, server_iterations
from ...measures.serving.limits import LEAST_KNOWN, phase_parts
from ...pictures import PartBars
from ...table import BYTE_RATE, BYTES, COUNT, DURATION, FLOP, FLOP_RATE, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Slices, Tab, View


class Limits(Table):
    """What limits tokens per second: the parts of each phase's time, which add up to it, and how near the hardware.

    Each instant counts once: for the first family of kernels that runs, in the order attention, matmuls, experts,
    normalization, sampling, other, copies, communication; else, with an idle device, for what the host does.
    """

    key, weight = ("phase", "part"), "time_ns"
    picture = PartBars("phase", "part", "mean_ns")

    phase = Column(TEXT, "Phase of the iterations, as the view Iterations has it.")
    part = Column(
        TEXT,
        "Of the busy device a family of kernels, by name: `attention`, `gemm` (matmuls), `moe` (experts), "
        "`normalization`, `sampling`, `other`; `copy` (copies and fills) that these don't hide, and `communication` "
        "that nothing else hides. Of the idle device `idle: queued` (work was queued, and waited for another stream or "
        "for no recorded reason), or what the host did while nothing was: `idle: synchronizing`, `idle: waiting` (for "
        "a request), `sampling`, `detokenizing`, `input preparation`, `scheduling`, `operators and launches` (another "
        "operator or call, launch latency and the launch of graphs, which *Idle* has apart), `other` code, "
        "`unrecorded`. `not shown`: not in the recording; the device may have run work that wasn't recorded.",
        shown_as="time part",
    )
    time_ns = Column(DURATION, "Time of the phase that goes to it, each instant counted once.")
    share_frac = Column(FRACTION, "Its share of the time of the phase.")
    roof_frac = Column(
        FRACTION,
        "The time of this work at the device's limits / the time of these kernels; missing if `known_frac` is below "
        f"{LEAST_KNOWN}. Near 1 only less work helps: fewer bytes (quantization) or a larger batch.",
    )
    bound_by = Column(
        TEXT, "`memory` or `compute`: which limit of the device is nearer for this work; missing as its share is."
    )
    mean_ns = Column(DURATION, "That time per iteration, rounded.")
    token_ns = Column(
        DURATION,
        "That time per token, rounded; missing if tokens weren't recorded.",
        adds_up=False,
        shown_as="own unit",
    )
    reason = Column(TEXT, "Of how much of it the work is known, and why not of the rest; missing if it is of all.")
    iterations = Column(
        COUNT, "Iterations of the phase; of the steady part with the stragglers, which are part of it.", adds_up=False
    )
    kernels_ns = Column(DURATION, "Sum of the kernels' durations, which may overlap; missing for idle time.")
    known_frac = Column(
        FRACTION,
        "Share of that sum in kernels whose work is known: matmuls and scaled_dot_product_attention with recorded "
        "shapes, other attention with recorded shapes and lengths of requests (annotations with details), experts "
        "whose shapes prove which weights are read (for one token, or where each token runs all), and what else "
        "*Operator efficiency* rates by its bytes. Of graphs it needs a recording of their capture. "
        "Missing for copies, fills and communication, which aren't rated.",
    )
    moved_bytes = Column(
        BYTES,
        "Bytes that these kernels must read and write at least: each input and output once, as if caches were perfect.",
    )
    model_bytes = Column(
        BYTES,
        "Of these, the weights of matmuls and experts, or the keys and values of attention (of MLA the latent cache).",
    )
    work_flop = Column(
        FLOP, "Operations of these kernels; of attention those of causal pairs, as if no layer had a window."
    )
    achieved_bytes_per_s = Column(BYTE_RATE, "These bytes / the time of these kernels.")
    achieved_flop_per_s = Column(FLOP_RATE, "These operations / the time of these kernels.")
    bandwidth_frac = Column(
        FRACTION, "Achieved bytes per second / the device's peak bandwidth; missing as the share of the roof is."
    )


def limits(trace: Trace, *, of: Literal["steady", "all"] = "steady") -> pl.DataFrame:
    """The parts of each phase, the longest phase and part first."""
    return Limits.of(phase_parts(trace, of=of).select(Limits.schema().names()))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The device work of a family in the iterations of a phase; idle time has none."""
    iterations = server_iterations(trace)
    numbers = np.flatnonzero([phase == key["phase"] for phase in iterations.frame["phase"]])
    return {"device_events": np.flatnonzero(np.isin(iterations.device, numbers) & (families(trace) == key["part"]))}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The phase and the family of device work."""
    number = iteration_of(trace, frame, row) if frame == "device_events" else NONE
    if number < 0:
        return None
    return {"phase": server_iterations(trace).frame["phase"][number], "part": families(trace)[row]}


VIEW = View(
    limits,
    table=Limits,
    title="What limits tokens per second",
    entry="Overview",
    place=Tab("Limits"),
    within="recording",
    needs=has_device_iterations,
    slices=Slices(events_of_row, row_of),
    hint="No iterations of a server with work of a GPU were recorded. docs/inference.md says how to record a server.",
    reads_captures=True,
)
