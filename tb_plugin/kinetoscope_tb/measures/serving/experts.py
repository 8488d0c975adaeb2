"""The work of mixtures of experts in each iteration, where the shapes of their calls prove it.

vLLM's and SGLang's fused experts have the inputs hidden states [tokens, hidden], gate and up projections of all experts
[experts, 2 inner, hidden], down projections [experts, hidden, inner], weights and numbers of the chosen experts
[tokens, chosen]. Which experts a batch chose isn't recorded, so the weights that it reads are known only for one token,
whose experts differ, and where each token runs all experts. Otherwise nothing is known, as for packed weights and for
ranks that hold a part of the experts.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather, map_categories, scatter_add
from ...arrays.nesting import nearest
from ...measures.calls.matrix_work import DTYPES
from ...names.kernel_families import kernel_family
from ...trace.model import Trace
from ...trace.row_filters import is_operator_of_all
from .attention import iteration_of, only_peaks
from .iterations import Iterations
from .matmuls import WorkByShapes

_FUSED = ("fused_experts", "fused_moe")
_MATRICES = 3  # of an expert: gate, up, down


class ExpertCall(NamedTuple):
    """The work of one call: operations, bytes at least, bytes of weights of these, and the format of the weights."""

    flop: int
    moved_bytes: int
    weight_bytes: int
    dtype: str


def expert_work(trace: Trace, iterations: Iterations) -> WorkByShapes:
    """The known work of the experts in each iteration."""
    host, device, size = trace.all_host_events, trace.device_events, iterations.frame.height
    is_fused = map_categories(host["name"], lambda name: any(part in name for part in _FUSED)).astype(bool)
    rows = np.flatnonzero(is_fused & is_operator_of_all(trace))
    inputs = host.select(pl.col("input_shapes", "input_types").cast(pl.String))[rows]
    calls = {row: expert_call(*texts) for row, texts in zip(rows.tolist(), inputs.rows(), strict=True)}
    step, parent, is_known = iteration_of(host, iterations), host["parent"].to_numpy(), np.zeros(host.height, bool)
    is_known[[row for row, call in calls.items() if call is not None and step[row] != NONE]] = True
    is_known &= gather(nearest(is_known, parent), parent) == NONE  # the outermost
    peaks = only_peaks(trace)
    work = np.zeros((4, size), np.int64)
    for row in np.flatnonzero(is_known).tolist():
        if (call := calls[row]) is not None:
            rate = None if peaks is None else peaks.roof(call.dtype)
            seconds = max(call.flop / rate, call.moved_bytes / peaks.bandwidth) if peaks and rate else 0
            work[:, step[row]] += (call.flop, call.moved_bytes, call.weight_bytes, round(seconds * 1e9))
    inside = gather(nearest(is_known, parent), device["op"].to_numpy()) != NONE
    is_moe = map_categories(device["name"], lambda name: kernel_family(name) == "moe").astype(bool)
    time_ns = scatter_add(np.where(inside & is_moe, iterations.device, NONE), device["dur_ns"].to_numpy(), size)
    return WorkByShapes(work[0], work[1], work[2], work[3], time_ns)


@lru_cache(maxsize=4_096)
def expert_call(shapes: str | None, types: str | None) -> ExpertCall | None:
    """The work of a call with these inputs; None if they don't prove it."""
    try:
        sizes, kinds = json.loads(shapes or "[]"), json.loads(types or "[]")
    except (ValueError, RecursionError):
        return None
    if not _are_experts(sizes) or not isinstance(kinds, list) or len(kinds) < 2:
        return None
    (tokens, hidden_size), (experts, _, _), (_, _, inner), _, (_, top_k) = sizes[:5]
    _, number = DTYPES.get(str(kinds[0]), ("", 0))
    dtype, element = DTYPES.get(str(kinds[1]), ("", 0))
    if not number or not element or (tokens != 1 and top_k < experts):
        return None
    weights = min(top_k, experts) * _MATRICES * hidden_size * inner * element
    flop = 2 * tokens * top_k * _MATRICES * hidden_size * inner
    return ExpertCall(flop, weights + 2 * tokens * hidden_size * number, weights, dtype)


def _are_experts(sizes: object) -> bool:
    """Whether inputs have the shapes of fused experts, all of which this rank holds."""
    if not isinstance(sizes, list) or len(sizes) < 5 or not all(isinstance(shape, list) for shape in sizes):
        return False
    if list(map(len, sizes[:5])) != [2, 3, 3, 2, 2] or not all(_is_size(n) for shape in sizes[:5] for n in shape):
        return False
    (tokens, hidden_size), (experts, both, width), down, weights, ids = sizes[:5]
    # a map of all experts to those of this rank
    has_map = any(len(shape) == 1 and _is_size(shape[0]) and shape[0] > experts for shape in sizes[5:])
    return (
        both % 2 == 0
        and width == hidden_size
        and down == [experts, hidden_size, both // 2]
        and weights == ids == [tokens, ids[1]]
        and ids[1] <= experts
        and not has_map
    )


def _is_size(number: object) -> bool:
    return isinstance(number, int) and 0 < number < 1 << 31
