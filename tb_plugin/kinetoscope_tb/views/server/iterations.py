"""Iterations: each pass of a server through its model, with its requests, its device work and the time to the next."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import fraction
from ...measures.recording.contents import has_iterations
from ...measures.serving.costs import busy_times, idle_times
from ...measures.serving.iterations import CONFIDENCE, iteration_of, marks, server_iterations
from ...measures.time.idle_columns import IN_ITERATIONS
from ...pictures import Bars
from ...table import COUNT, DURATION, FRACTION, ID, INSTANT, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import RowTime, Slices, View


class Iterations(Table):
    """What each iteration of a server did and cost: one pass through the model for the requests the scheduler chose."""

    key, weight = ("iteration",), "total_ns"
    picture = Bars(("total_ns",))
    whole = "all iterations, with the time from one to the next"

    iteration = Column(ID, "Number of the iteration in the recording, from 0.")
    phase = Column(
        TEXT,
        "What its requests are in: `prefill` (their prompts), `decode` (their answers), `mixed` (both), `draft` (of "
        "speculative decoding), `diffusion`, `capture` (of a graph), `idle` (no request), or `other`: not known.",
    )
    part = Column(
        TEXT,
        "`steady`; `straggler` (steady, too, but over 5 standard deviations and 20 % slower than its peers: Phases, "
        "Limits and averages count it); `warm-up`, `ramp-up` and `drain` (the server isn't warm, or has less than 80 % "
        "of its usual batch); `cut off` by the recording.",
        words={"straggler": "steady (straggler)"},
    )
    batch = Column(COUNT, "Requests in the batch, of a capture the size that was captured; missing if not recorded.")
    tokens = Column(COUNT, "Tokens that the model processes, of prompts and answers together; missing if not recorded.")
    start_ns = Column(
        INSTANT,
        "When its window begins: its own start on the host, or the end of the previous window if that is later.",
    )
    total_ns = Column(
        DURATION, "From there to the next iteration's start; of the last one to the end of its device work."
    )
    token_ns = Column(
        DURATION,
        "That time per token, rounded; at most that, if a part of it isn't in the recording. Missing if unknown.",
        adds_up=False,
        shown_as="own unit",
    )
    host_ns = Column(DURATION, "How long the host was in the iteration.")
    gap_ns = Column(
        DURATION,
        "Part of the total after its window: the host had left the iteration, and its device work had ended. Then the "
        "server samples, schedules, prepares inputs, or waits for a request.",
    )
    busy_ns = Column(DURATION, "Part of the total in which a kernel, copy or fill runs, of whatever launched it.")
    busy_frac = Column(FRACTION, "Busy / total.")
    idle = IN_ITERATIONS
    device_events = Column(COUNT, "Kernels, copies and fills launched inside it, by graphs too.")
    graph_launches = Column(COUNT, "Launches of CUDA or HIP graphs inside it.")
    name = Column(TEXT, "The annotation, or the Python function that ran it; missing if it was inferred.")
    engine = Column(TEXT, "The server that writes such names: vLLM, SGLang, ATOM, TensorRT-LLM, xDiT, or `user`.")
    confidence = Column(
        TEXT,
        "How its borders are known: `recorded` (an annotation), `high` (a Python function), `medium` (inferred from "
        "sampling, graphs and the order of kernels).",
    )


def iterations(trace: Trace) -> pl.DataFrame:
    """Iterations in order of time."""
    frame = server_iterations(trace).frame
    start, end = frame["start_ns"].to_numpy(), frame["next_ns"].to_numpy()
    total = pl.col("total_ns")
    idle = dict(zip(IN_ITERATIONS.names, idle_times(trace, start, end).values(), strict=True))
    table = frame.with_columns(
        pl.int_range(pl.len(), dtype=pl.Int64).alias("iteration"),
        total_ns=pl.Series(end - start),
        host_ns=pl.col("host_end_ns") - pl.col("host_start_ns"),
        device_events=pl.col("device_rows"),
        gap_ns=pl.col("next_ns") - pl.col("end_ns"),
        busy_ns=pl.Series(busy_times(trace, start, end)),
        confidence=pl.col("source").replace_strict(CONFIDENCE, return_dtype=pl.String),
        **{name: pl.Series(lengths) for name, lengths in idle.items()},
    ).with_columns(
        token_ns=fraction(total, pl.col("tokens")).round().cast(pl.Int64),
        busy_frac=fraction(pl.col("busy_ns"), total),
    )
    return Iterations.of(table.select(Iterations.schema().names()))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The annotation or function call of the iteration, and its device work."""
    of_server = server_iterations(trace)
    number = key["iteration"]
    events: dict[str, np.ndarray] = {
        "device_events": np.flatnonzero((of_server.device == number) & (of_server.device >= 0))
    }
    return events | marks(of_server, pl.Series(np.arange(of_server.frame.height) == number))


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The iteration that the event marks, or that launched it."""
    number = iteration_of(trace, frame, row)
    return {"iteration": number} if number >= 0 else None


VIEW = View(
    iterations,
    table=Iterations,
    title="Iterations",
    entry="Overview",
    within="moments",
    needs=has_iterations,
    hint="No iterations of a server were recorded. docs/inference.md says how to record a server.",
    slices=Slices(events_of_row, row_of),
    time=RowTime("start_ns", length="total_ns"),
)
