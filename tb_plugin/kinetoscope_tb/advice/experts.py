"""Mixture of experts: experts (or the ranks that hold them) that get many more tokens than others.

Token counts are known where the splits of an all-to-all were recorded, or the input shapes of the matmuls of each
expert's module. Without either there is no advice: a grouped or fused kernel doesn't say how its work is divided.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather, map_categories
from ..arrays.nesting import innermost, nearest
from ..names.text import digits
from ..trace import Trace
from ..trace.row_filters import name_mask
from .facts import Facts
from .model import Advice

_MIXTURE = re.compile(
    r"(?:\b|_|[a-z])(?:MoE|Moe|moe|Experts|experts)(?:\b|_|[A-Z])|SparseM[oO]|SwitchTransformersSparse"
)
_ALL_TO_ALL = re.compile(r"all_?to_?allv|all_?to_?all_?(?:single|base)?v?$", re.IGNORECASE)
_UNEVEN = 1.5  # times the mean: the busiest rank or expert takes half as long again
_CHANCE = 4.0  # standard deviations of a Poisson count: what routing at random hardly ever exceeds
_MOST = 0.5  # of the steps


def expert_imbalance(facts: Facts) -> Iterator[Advice]:
    """The busiest expert gets a multiple of the mean number of tokens in most steps."""
    trace = facts.trace
    names = (trace.host_events["name"], trace.python_calls["name"], trace.device_events["name"])
    if not any(name_mask(name, lambda n: bool(_MIXTURE.search(n))).any() for name in names):
        return
    for what, groups in (("ranks", _splits(trace)), ("experts", _tokens_of_experts(trace))):
        calls = groups.filter(pl.col("step").is_in(np.flatnonzero(facts.is_counted).tolist()))
        mean = pl.col("tokens").list.mean()
        uneven = calls.with_columns(mean=mean, most=pl.col("tokens").list.max()).filter(
            (pl.col("most") >= _UNEVEN * mean) & (pl.col("most") >= mean + _CHANCE * mean.sqrt())
        )
        if calls.is_empty() or uneven["step"].n_unique() < _MOST * facts.count or 2 * uneven.height < calls.height:
            continue
        yield _imbalance(facts, what, calls.height, uneven)
        return


def _imbalance(facts: Facts, what: str, count: int, uneven: pl.DataFrame) -> Advice:
    ratio = float((uneven["most"] / uneven["mean"]).median() or 0)  # type: ignore[arg-type]
    example = uneven.sort((pl.col("most") / pl.col("mean") - ratio).abs()).row(0, named=True)
    of = "all-to-alls" if what == "ranks" else "calls of a mixture"
    token_counts = ", ".join(map(str, example["tokens"][:8])) + (", …" if len(example["tokens"]) > 8 else "")
    return Advice(
        "expert_imbalance",
        f"Tokens are spread unevenly over {what}: the busiest one gets {digits(ratio)} times the mean.",
        f"In {uneven.height} of {count} {of} with recorded sizes, in {uneven['step'].n_unique()} of {facts.count} "
        f"{facts.noun}{'' if facts.count == 1 else 's'}; such as {token_counts} tokens. "
        + ("The others wait for the busiest rank." if what == "ranks" else "Small experts don't fill a device."),
        "Balance the routing (auxiliary loss, bias per expert, capacity), or spread the busiest experts over ranks.",
        None,
        "medium",
        "communication" if what == "ranks" else "operators_by_shape",
    )


_GROUPS: dict[str, pl.DataType | type[pl.DataType]] = {"step": pl.Int32, "tokens": pl.List(pl.Int64)}


def _splits(trace: Trace) -> pl.DataFrame:
    """How many rows each all-to-all sends to each rank, with its step."""
    rows = trace.collectives.filter(pl.col("in_split").is_not_null() & (pl.col("host_event") != NONE))
    if rows.is_empty():
        return pl.DataFrame(schema=_GROUPS)
    is_meant = map_categories(rows["name"], lambda name: bool(_ALL_TO_ALL.search(name)))
    rows = rows.filter(pl.Series(is_meant))
    step = gather(trace.host_events["step"].to_numpy(), rows["host_event"].to_numpy())
    tokens = [_numbers(split) for split in rows["in_split"].cast(pl.String)]
    frame = pl.DataFrame({"step": step, "tokens": tokens}, schema=_GROUPS)
    return frame.filter((pl.col("tokens").list.len() > 1) & (pl.col("tokens").list.sum() > 0))


def _numbers(split: str) -> list[int]:
    try:
        values = json.loads(split)
    except ValueError:
        return []
    return [int(v) for v in values] if isinstance(values, list) and all(isinstance(v, int) for v in values) else []


def _tokens_of_experts(trace: Trace) -> pl.DataFrame:
    """How many rows each matmul with weights of the same shape has in a call of a mixture, with its step."""
    host, python = trace.host_events, trace.python_calls
    is_matmul = name_mask(host["name"], lambda name: name in ("aten::mm", "aten::addmm"))
    rows = np.flatnonzero(is_matmul & host["input_shapes"].is_not_null().to_numpy())
    mixtures = map_categories(python["name"], _is_mixture)
    if not rows.size or not mixtures.any():
        return pl.DataFrame(schema=_GROUPS)
    call = gather(nearest(mixtures, python["parent"].to_numpy()), _python_around(trace, rows))
    shapes = [
        _matmul(name, shape) for name, shape in host.select("name", "input_shapes")[rows].cast(pl.String).iter_rows()
    ]
    frame = pl.DataFrame(
        {
            "step": host["step"].to_numpy()[rows],
            "call": call,
            "rows": [tokens for tokens, _ in shapes],
            "weight": [weight for _, weight in shapes],
        },
        schema={"step": pl.Int32, "call": pl.Int32, "rows": pl.Int64, "weight": pl.String},
    )
    inside = frame.filter((pl.col("call") != NONE) & pl.col("rows").is_not_null())
    groups = inside.group_by("step", "call", "weight", maintain_order=True).agg(tokens=pl.col("rows"))
    return groups.filter(pl.col("tokens").list.len() > 1).select("step", "tokens")


def _is_mixture(frame: str) -> bool:
    return frame.startswith("nn.Module: ") and bool(_MIXTURE.search(frame))


def _python_around(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int32]:
    """The innermost Python call around each of some host events."""
    host, python = trace.host_events, trace.python_calls
    start = python["start_ns"].to_numpy()
    end = start + python["dur_ns"].to_numpy()
    at = host["thread"].to_numpy()[rows], host["start_ns"].to_numpy()[rows]
    return np.asarray(innermost(python["thread"].to_numpy(), start, end, *at))


def _matmul(name: str, shapes: str) -> tuple[int | None, str]:
    """(Rows of the input, shape of the weight) of an aten::mm or aten::addmm."""
    try:
        sizes = json.loads(shapes)
        left, right = sizes[1:3] if name == "aten::addmm" else sizes[:2]
        return int(left[0]), str(right)
    except (ValueError, TypeError, IndexError):
        return None, ""
