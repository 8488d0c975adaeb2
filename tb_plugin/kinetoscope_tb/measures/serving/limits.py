"""What limits a server's tokens per second: the parts of each phase's time, and how near its kernels come to the roof.

Each instant counts once: for the first family of kernels that runs, communication last, or else for what the host does
while no device of the worker runs anything.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from ...arrays.gather import fraction, gather, map_categories
from ...arrays.intervals import Ints
from ...names.calls import launches_graph
from ...names.text import percent
from ...trace.model import Trace
from ..calls.memory_work import NO_EXPERTS
from ..calls.roofline import Limits
from ..recording.contents import has_graphs
from ..recording.options import was_on
from ..time.idle_causes import NOT_SHOWN
from .attention import attention_work, has_ragged_attention, has_windows, request_lengths
from .costs import busy_families, family_times, idle_causes
from .experts import expert_work
from .iterations import Iterations, server_iterations
from .matmuls import matmul_work
from .memory_bound import MEMORY_BOUND, memory_bound_work
from .steadiness import STEADY

IDLE = "idle: "
"""The beginning of parts in which the device is idle; the rest is what the host does."""

LEAST_KNOWN = 0.5
"""Of a family's time: with less known, what bounds it is unknown."""

_ALL = 0.995  # of the kernels' time; the rest may be rounded off
_ANY = 1e-9  # of attention: kernels that rotate or write the cache count to the family, but aren't its work
_NO_CALLS = "Graphs replay these kernels: their shapes are in a recording of the capture, and none was found."
_NO_SHAPES = "Shapes weren't recorded (record_shapes=True), or the operator has no formula."
_NO_FORMULA = "Some of its operators have no recorded shapes, or no formula."
_NO_HEADS = "Its operators don't have the shapes of attention; some with a latent cache (MLA) don't."
_NO_WINDOW = (
    "Its calls for the same requests take very different times, as where some layers attend to a window, whose length "
    "isn't recorded."
)
_NO_LENGTHS = "The lengths of the requests weren't recorded; annotations with details have them."

_NOT_RATED = ("copy", "communication")

_WORK = ("flop", "moved_bytes", "model_bytes", "roof_ns", "known_ns")


def phase_parts(trace: Trace, *, of: Literal["steady", "all"]) -> pl.DataFrame:
    """The columns of the view Limits, and `batch` (the mean), the longest phase and part first."""
    iterations = server_iterations(trace)
    frames = (_parts(trace, iterations), _work(trace, iterations), _replays(trace, iterations))
    rows = pl.concat(frames, how="diagonal")
    frame = iterations.frame.select("phase", "part", "tokens", "batch", number=pl.int_range(pl.len(), dtype=pl.Int64))
    if of == "steady" and frame["part"].is_in(STEADY).any():
        frame = frame.filter(pl.col("part").is_in(STEADY))
    rows = rows.join(frame.select("number", "phase"), "number")
    sums = rows.group_by("phase", "part").agg(pl.col("time_ns", "kernels_ns", "replayed_ns", *_WORK).sum())
    phases = frame.group_by("phase").agg(
        iterations=pl.len().cast(pl.Int64),
        batch=pl.col("batch").mean(),
        tokens=pl.when(pl.col("tokens").count() == pl.len()).then(pl.col("tokens").sum()),
    )
    whole = pl.col("time_ns").sum().over("phase")
    table = sums.join(phases, "phase").filter((pl.col("time_ns") > 0) | (pl.col("kernels_ns") > 0))
    upper_bounds = ("attention",) if has_windows(trace, iterations) else ()
    table = _rates(table, _bandwidth(trace), upper_bounds).with_columns(
        whole=whole, share_frac=fraction(pl.col("time_ns"), whole), reason=_reason(trace, iterations, upper_bounds)
    )
    by = ["whole", "phase", "time_ns", "part"]
    return table.sort(by, descending=[True, False, True, False])


def _rows(part: str, **columns: Ints) -> pl.DataFrame:
    """One row per iteration."""
    number = np.arange(next(iter(columns.values())).size)
    return pl.DataFrame({"number": number, **columns}).with_columns(part=pl.lit(part))


def _parts(trace: Trace, iterations: Iterations) -> pl.DataFrame:
    """The time of each part of each iteration."""
    start, end = (iterations.frame[name].to_numpy() for name in ("start_ns", "next_ns"))
    sums = family_times(trace, iterations)
    busy = [
        _rows(family, time_ns=np.asarray(time), kernels_ns=np.asarray(sums[family]))
        for family, time in busy_families(trace, start, end).items()
    ]
    causes = idle_causes(trace, iterations)
    idle = [
        _rows(NOT_SHOWN if cause == NOT_SHOWN else f"{IDLE}{cause.replace('_', ' ')}", time_ns=time)
        for cause, time in causes.items()
    ]
    return pl.concat([*busy, *idle], how="diagonal")


def _work(trace: Trace, iterations: Iterations) -> pl.DataFrame:
    """The known work of kernels in each iteration."""
    works = {
        "gemm": matmul_work(trace, iterations),
        "attention": attention_work(trace, iterations),
        "moe": expert_work(trace, iterations),
        **memory_bound_work(trace, iterations),
    }
    return pl.concat([_rows(part, **dict(zip(_WORK, work, strict=True))) for part, work in works.items()])


def _replays(trace: Trace, iterations: Iterations) -> pl.DataFrame:
    """The time of the kernels that graphs replay, by family."""
    replays = map_categories(trace.launches["name"], launches_graph).astype(bool)
    is_replayed = gather(replays, trace.device_events["launch"].to_numpy(), missing=False)
    return pl.concat(
        _rows(name, replayed_ns=np.asarray(time)) for name, time in family_times(trace, iterations, is_replayed).items()
    )


def _bandwidth(trace: Trace) -> float | None:
    """The peak bandwidth of the worker's device, if it has one that is known."""
    limits = list(Limits.of(trace).values())
    return limits[0].peaks.bandwidth if len(limits) == 1 and limits[0].peaks else None


def _reason(trace: Trace, iterations: Iterations, upper_bounds: tuple[str, ...]) -> pl.Expr:
    """Why the work of a part isn't known, or not all of it."""
    needs_capture = has_graphs(trace) and trace.replayed is None
    by_shapes = _NO_FORMULA if was_on(trace, "record_shapes") else _NO_SHAPES
    reasons = {"moe": NO_EXPERTS, "attention": _NO_HEADS, **dict.fromkeys(("gemm", *MEMORY_BOUND), by_shapes)}
    are_whole = ["moe"]  # whatever graphs replay
    if not any(request_lengths(trace, iterations)) and (has_ragged_attention(trace) or not needs_capture):
        reasons["attention"] = _NO_LENGTHS
        are_whole.append("attention")
    part = pl.col("part")
    of_part = part.replace_strict(reasons, default=None, return_dtype=pl.String)
    is_replayed = pl.lit(needs_capture) & (pl.col("replayed_ns") > 0) & ~part.is_in(are_whole)
    is_unknown = pl.col("known_frac") < pl.when(part == "attention").then(_ANY).otherwise(_ALL)
    why = pl.when(is_replayed).then(pl.lit(_NO_CALLS)).otherwise(of_part)
    in_words = pl.concat_str(pl.col("known_frac").map_elements(_share_in_words, pl.String), why)
    is_upper_bound = part.is_in(upper_bounds) & (pl.col("known_frac") > 0)
    return pl.when(is_upper_bound).then(pl.lit(_NO_WINDOW)).when(is_unknown).then(in_words)


def _share_in_words(known_frac: float) -> str:
    """How much of a family is rated, in front of why the rest isn't; empty if nothing is."""
    if known_frac >= LEAST_KNOWN:
        return f"{percent(known_frac)} of its time is rated. "
    return f"Only {percent(known_frac)} of its time can be rated. " if known_frac else ""


def _rates(table: pl.DataFrame, bandwidth: float | None, upper_bounds: tuple[str, ...]) -> pl.DataFrame:
    """Add what is derived of the sums; what isn't known is null, and what says nothing of most of a part.

    Args:
        table: The sums of each part.
        bandwidth: The device's peak, in bytes per second; None: unknown.
        upper_bounds: Parts whose work is an upper bound, which says nothing of a roof.
    """
    has_work, roof = pl.col("known_ns") > 0, pl.col("roof_ns").cast(pl.Float64)
    is_rated = (roof > 0) & (pl.col("known_ns") >= LEAST_KNOWN * pl.col("kernels_ns"))
    is_rated &= ~pl.col("part").is_in(upper_bounds)
    has_flop = has_work & (pl.col("flop") > 0)
    seconds = pl.when(has_work).then(pl.col("known_ns") / 1e9)
    at_memory = pl.col("moved_bytes") / pl.lit(bandwidth, pl.Float64) * 1e9
    is_idle = pl.col("part").str.starts_with(IDLE) | (pl.col("part") == NOT_SHOWN)
    return table.with_columns(
        mean_ns=(pl.col("time_ns") / pl.col("iterations")).round().cast(pl.Int64),
        token_ns=fraction(pl.col("time_ns"), pl.col("tokens")).round().cast(pl.Int64),
        kernels_ns=pl.when(~is_idle).then("kernels_ns"),
        known_frac=pl.when(~is_idle & ~pl.col("part").is_in(_NOT_RATED)).then(
            fraction(pl.col("known_ns"), pl.col("kernels_ns"))
        ),
        moved_bytes=pl.when(has_work).then("moved_bytes"),
        model_bytes=pl.when(has_flop).then("model_bytes"),
        work_flop=pl.when(has_flop).then("flop"),
        achieved_bytes_per_s=pl.col("moved_bytes") / seconds,
        achieved_flop_per_s=pl.when(has_flop).then(pl.col("flop") / seconds),
        bandwidth_frac=pl.when(is_rated).then(at_memory / (seconds * 1e9)),
        roof_frac=pl.when(is_rated).then(roof / (seconds * 1e9)),
        bound_by=pl.when(is_rated).then(
            pl.when((at_memory >= 0.5 * roof) | ~has_flop).then(pl.lit("memory")).otherwise(pl.lit("compute"))
        ),
    )
