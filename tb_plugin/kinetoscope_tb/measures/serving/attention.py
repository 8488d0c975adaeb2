"""The work of attention in each iteration, from the lengths of its requests and the shapes of its calls.

Shapes alone don't say it: all requests of a batch are one tensor. Annotations with details have the sums of lengths
(names/iterations.py), and the operators that call attention have its heads and dimensions: inputs [queries, heads, d],
[_, heads of keys, d], [_, heads of keys, d of values].
Values smaller than the keys of one head are a part of these: the latent cache of MLA, which is read once.

FLOPs are those of both products for the pairs that causal attention computes. Bytes are the minimum: queries and
outputs once, and the keys and values of all requests once per call.

Layers whose attention reaches back over a window do less than that, and no trace says how long it is: where equal calls
of an iteration take very different times, their work is an upper bound, and no share of a roof is given.

Attention whose tensors are padded to one length, that of PyTorch's scaled_dot_product_attention, needs shapes alone.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories, scatter_add
from ...arrays.intervals import Ints
from ...arrays.nesting import nearest
from ...measures.calls.matrix_work import DTYPES, element_count, parse_list
from ...names.device_peaks import DevicePeaks
from ...names.iterations import SequenceLengths, sequence_lengths
from ...names.kernel_families import kernel_family
from ...trace.model import Trace
from ...trace.row_filters import is_operator_of_all
from ..calls.matrix_calls import each_matrix_call
from ..calls.roofline import Limits
from .iterations import Iterations
from .matmuls import work_by_shapes

_PADDED = r"^aten::_scaled_dot_product_\w*attention(?:_overrideable|_for_cpu)?$"
_MOST = 1 << 20  # heads, or numbers of a head: more is damage
_TAIL, _ALIKE = 0.1, 1.5  # equal calls, but for a tenth at either end, take as long, but for this factor


class AttentionWork(NamedTuple):
    """The work of attention in each iteration; 0 where it isn't known.

    Attributes:
        flop: Operations.
        moved_bytes: Bytes read and written at least.
        cache_bytes: Of these, keys and values.
        roof_ns: The time of that work at the device's limits; 0 where they aren't known.
        time_ns: Time of the kernels whose work this is.
    """

    flop: Ints
    moved_bytes: Ints
    cache_bytes: Ints
    roof_ns: Ints
    time_ns: Ints


class _Heads(NamedTuple):
    """Heads of queries and of keys, numbers of a head of keys and of values, format of a number, and its bytes."""

    queries: int
    keys: int
    key_size: int
    value_size: int
    dtype: str
    element: int


def attention_work(trace: Trace, iterations: Iterations) -> AttentionWork:
    """The work of attention, where both lengths and shapes were recorded."""
    size, host = iterations.frame.height, trace.all_host_events
    lengths = request_lengths(trace, iterations)
    calls, heads = _calls(trace)
    step = iteration_of(host, iterations)[calls]
    counts = np.array([number != NONE and lengths[number] is not None for number in step.tolist()], bool)
    work = np.zeros((4, size), np.int64)
    peaks = only_peaks(trace)
    for at in np.flatnonzero(counts).tolist():
        work[:, step[at]] += _work(heads[at], lengths[step[at]], peaks)
    is_known = np.zeros(host.height, bool)
    is_known[calls] = counts
    in_known = nearest(is_known, host["parent"].to_numpy()) != NONE
    calls_by_shapes = each_matrix_call(trace)
    is_apart = ~in_known[calls_by_shapes["row"].to_numpy()]
    calls_by_shapes = calls_by_shapes.filter(
        pl.Series(is_apart, dtype=pl.Boolean) & pl.col("name").cast(pl.String).str.contains(_PADDED)
    )
    padded_work = work_by_shapes(trace, iterations, calls_by_shapes, _keys_and_values)
    padded_ns = np.where(padded_work.flop > 0, _time_in(trace, iterations, calls_by_shapes["row"].to_numpy()), 0)
    time_ns = _time_in(trace, iterations, np.flatnonzero(is_known)) + padded_ns
    flop, moved_bytes, cache, roof = (own + other for own, other in zip(work, padded_work[:4], strict=True))
    return AttentionWork(flop, moved_bytes, cache, roof, time_ns)


def _time_in(trace: Trace, iterations: Iterations, calls: NDArray[np.int64]) -> Ints:
    """Time of the attention kernels that some rows of all_host_events launched, in each iteration."""
    mine = np.where(_call_of_kernels(trace, calls) != NONE, iterations.device, NONE)
    return scatter_add(mine, trace.device_events["dur_ns"].to_numpy(), iterations.frame.height)


def _call_of_kernels(trace: Trace, calls: NDArray[np.int64]) -> NDArray[np.int32]:
    """Which of some rows of all_host_events launched each device row that is an attention kernel; NONE: none did."""
    host, device = trace.all_host_events, trace.device_events
    is_call = np.zeros(host.height, bool)
    is_call[calls] = True
    call = gather(nearest(is_call, host["parent"].to_numpy()), device["op"].to_numpy())
    computes = map_categories(device["name"], _computes_attention).astype(bool)
    return np.where(computes, call, np.int32(NONE))


def has_windows(trace: Trace, iterations: Iterations) -> bool:
    """Whether some layers may have a window: equal calls of an iteration take very different times."""
    calls, heads = _calls(trace)
    step = iteration_of(trace.all_host_events, iterations)[calls]
    call_of_kernel, device = _call_of_kernels(trace, calls), trace.device_events
    call_ns = scatter_add(call_of_kernel, device["dur_ns"].to_numpy(), trace.all_host_events.height)[calls]
    frame = pl.DataFrame({"step": step, "heads": list(map(str, heads)), "call_ns": call_ns})
    shortest, longest = (pl.col("call_ns").quantile(quantile, "nearest") for quantile in (_TAIL, 1 - _TAIL))
    of_calls = frame.filter(pl.col("step") != NONE).group_by("step", "heads")
    return bool(of_calls.agg(differ=longest > _ALIKE * shortest)["differ"].any())


def _keys_and_values(_name: str, shapes: str | None) -> int:
    """The numbers in the keys and values of scaled_dot_product_attention."""
    return element_count(json.dumps(parse_list(shapes)[1:3]))


def has_ragged_attention(trace: Trace) -> bool:
    """Whether any call is of attention over requests of several lengths, which shapes alone don't say."""
    return bool(_calls(trace)[0].size)


def only_peaks(trace: Trace) -> DevicePeaks | None:
    """The limits of the device, if they are known and the worker has only one."""
    limits = list(Limits.of(trace).values())
    return limits[0].peaks if len(limits) == 1 else None


def _computes_attention(kernel: str) -> bool:
    """Whether a kernel is attention itself, and doesn't only write the cache or rotate queries and keys."""
    is_other = any(part in kernel for part in ("cache_kernel", "reshape_and_cache", "store_kvcache", "rotary", "rope"))
    return kernel_family(kernel) == "attention" and not is_other


def request_lengths(trace: Trace, iterations: Iterations) -> list[SequenceLengths | None]:
    """The lengths of each iteration's requests: of its own annotation, or of one inside it."""
    host = trace.host_events
    has = map_categories(host["name"], lambda name: sequence_lengths(name) is not None).astype(bool)
    rows = np.flatnonzero(has & (host["kind"] == "annotation").to_numpy())
    step = iteration_of(host, iterations)[rows]
    lengths: list[SequenceLengths | None] = [None] * iterations.frame.height
    for number, name in zip(step.tolist(), host["name"].gather(rows).cast(pl.String), strict=True):
        if number != NONE:
            lengths[number] = lengths[number] or sequence_lengths(name)
    return lengths


def iteration_of(host: pl.DataFrame, iterations: Iterations) -> NDArray[np.int64]:
    """The iteration in whose host interval each row begins."""
    first, last = (iterations.frame[name].to_numpy() for name in ("host_start_ns", "host_end_ns"))
    start = host["start_ns"].to_numpy()
    step = np.searchsorted(first, start, "right") - 1
    return np.where((step >= 0) & (start <= gather(last, step.astype(np.int32), NONE)), step, NONE)


def _calls(trace: Trace) -> tuple[NDArray[np.int64], list[_Heads]]:
    """The outermost operators with the shapes of attention that launch attention kernels, and their heads."""
    host, device = trace.all_host_events, trace.device_events
    codes = host.select(pl.struct("input_shapes", "input_types").rank("dense").cast(pl.Int64)).to_series()
    first = host.select("input_shapes", "input_types", code=codes).unique("code", keep="first").sort("code")
    heads = {
        row[2]: _heads(row[0], row[1])
        for row in first.cast({"input_shapes": pl.String, "input_types": pl.String}).rows()
    }
    is_attention = codes.is_in([code for code, shapes in heads.items() if shapes is not None]).to_numpy()
    is_attention &= is_operator_of_all(trace)
    parent = host["parent"].to_numpy()
    outermost = is_attention & (gather(nearest(is_attention, parent), parent) == NONE)
    attends = map_categories(device["name"], _computes_attention).astype(bool)
    launch_op = gather(nearest(outermost, parent), device["op"].to_numpy()[attends])
    calls = np.unique(launch_op[launch_op != NONE]).astype(np.int64)
    return calls, [heads[code] for code in codes.gather(calls).to_list()]  # type: ignore[misc]


@lru_cache(maxsize=4_096)
def _heads(shapes: str | None, types: str | None) -> _Heads | None:
    """The heads in the inputs of a call; None if they don't have the shapes of attention."""
    try:
        sizes, kinds = json.loads(shapes or "[]"), json.loads(types or "[]")
    except (ValueError, RecursionError):
        return None
    tensors = sizes[:3] if isinstance(sizes, list) else []
    if len(tensors) < 3 or not all(_is_heads(tensor) for tensor in tensors) or not isinstance(kinds, list):
        return None
    (_, queries, size), (_, keys, key_size), (_, values, value_size) = tensors
    dtype, element = DTYPES.get(str(kinds[1]) if len(kinds) > 1 else "", ("", 0))
    if key_size != size or keys != values or not keys or queries % keys or not element:
        return None
    return _Heads(queries, keys, key_size, value_size, dtype, element)


def _is_heads(tensor: object) -> bool:
    return (
        isinstance(tensor, list)
        and len(tensor) == 3
        and all(isinstance(number, int) and number > 0 for number in tensor)
        and max(tensor[1:]) <= _MOST
    )


def _work(heads: _Heads, lengths: SequenceLengths, peaks: DevicePeaks | None) -> tuple[int, int, int, int]:
    """FLOPs, bytes, bytes of keys and values, and time at the roof of one call."""
    both = heads.key_size + heads.value_size
    flop = 2 * heads.queries * both * lengths.pairs
    is_latent = heads.keys == 1 and heads.queries > 1 and heads.value_size < heads.key_size
    cache = lengths.keys * heads.keys * (heads.key_size if is_latent else both) * heads.element
    moved_bytes = lengths.queries * heads.queries * both * heads.element + cache
    rate = None if peaks is None else peaks.roof(heads.dtype)
    if peaks is None or rate is None:
        return flop, moved_bytes, cache, 0
    return flop, moved_bytes, cache, round(max(flop / rate, moved_bytes / peaks.bandwidth) * 1e9)
