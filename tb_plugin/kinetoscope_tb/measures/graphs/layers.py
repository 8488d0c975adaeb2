"""Layers of a model, inferred from the order of kernels alone: where nothing says what launched them.

The layers of a model are equal, so their kernels repeat. A period p shows as long runs in which each kernel equals the
one p places later (autocorrelation). The candidates for p are the distances between equal kernels; of those that
explain nearly as much as the best, the shortest is a layer. What a period leaves is searched again, since a model may
have layers of several kinds. A layer begins with the normalization, or else the matmul, before its attention; so first
and last layers count even where their first or last kernels differ.

All of this is a guess, and views name it as one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE, category_codes, map_categories
from ...names.kernel_families import FAMILIES, kernel_family
from ...trace.model import Trace
from ...trace.results import once_per_recording
from .replays import Ints, Replays, replays

ATTENTION, GEMM, NORMALIZATION = (FAMILIES.index(name) for name in ("attention", "gemm", "normalization"))
_LEAST_REPEATS = 3
_NEARLY = 0.95  # of the best period's coverage
_MOST_PERIODS = 64  # candidates
_MOST_KINDS = 6  # of layers
_EVEN = 0.6  # of the mean distance: the least between kernels of two layers
_MOST_LONGER = 1.5  # times a layer's length: another layer that has more kernels
_LEAST_SHARE = 0.5  # of a graph's kernels that lie in layers, or its launches are looked at together


@dataclass(frozen=True)
class Layers:
    """The layer of each device row that graphs replayed.

    Attributes:
        layer: By row of device_events: its number in one turn through the model, from 0, or NONE.
        family: Of each row, an index into FAMILIES.
    """

    layer: NDArray[np.int32]
    family: NDArray[np.int8]


@once_per_recording
def inferred_layers(trace: Trace) -> Layers:
    """The layers that the replays of graphs show."""
    graph_replays, device = replays(trace), trace.device_events
    family = map_categories(device["name"], lambda name: FAMILIES.index(kernel_family(name)), missing=NONE)
    layer = np.full(device.height, NONE, np.int32)
    codes = category_codes(device["name"]).astype(np.int64)
    alone, together = _by_form(graph_replays, codes)
    loose = np.ones(graph_replays.launch.size, bool)
    for form, members in alone.items():
        numbers = layers_of(np.frombuffer(form, np.int64), family[graph_replays.rows_of(int(members[0]))])
        if (numbers >= 0).mean() >= _LEAST_SHARE:
            layer[graph_replays.rows[graph_replays.first[members][:, None] + np.arange(numbers.size)]] = numbers
            loose[members] = False
    for turns in _turns(np.flatnonzero(loose), together):
        rows_of_turn = [np.concatenate([graph_replays.rows_of(replay) for replay in turn]) for turn in turns]
        numbers = layers_of(codes[rows_of_turn[0]], family[rows_of_turn[0]])
        for rows in rows_of_turn:
            layer[rows] = numbers
    return Layers(layer, family.astype(np.int8))


def _by_form(graph_replays: Replays, codes: Ints) -> tuple[dict[bytes, Ints], Ints]:
    """(replays by the kernels that they ran, the number of each replay's form)."""
    forms = dict[bytes, int]()
    examples = graph_replays.example.tolist()
    of_variant = [forms.setdefault(codes[graph_replays.rows_of(example)].tobytes(), len(forms)) for example in examples]
    number = np.array(of_variant, np.int64)[graph_replays.variant]
    return {form: np.flatnonzero(number == index) for form, index in forms.items()}, number


def _turns(loose: Ints, form: Ints) -> list[list[Ints]]:
    """Replays in turns through the model, by equal turns: the graph that is replayed least begins one."""
    forms = form[loose]
    counts = Counter(forms.tolist())
    if len(counts) < 2:
        return []
    rarest = min(counts, key=lambda number: (counts[number], number))
    begins = np.flatnonzero(forms == rarest)
    equal: dict[bytes, list[Ints]] = defaultdict(list)
    for turn in np.split(loose, begins):
        if turn.size:
            equal[form[turn].tobytes()].append(turn)
    return list(equal.values())


def layers_of(codes: Ints, family: Ints) -> NDArray[np.int32]:
    """The layer of each kernel of a sequence, or NONE.

    Args:
        codes: A number for the name of each.
        family: Of each, an index into FAMILIES.
    """
    start = np.full(codes.size, NONE)  # of its layer
    open_codes = codes.copy()
    for _ in range(_MOST_KINDS):
        period = _period(open_codes)
        if not period:
            break
        for first, end in _runs(open_codes, period):
            for begin, stop in _cut(first, end, period, codes, family, start):
                start[begin:stop] = begin
            open_codes[first:end] = -1 - np.arange(first, end)  # equal to nothing
    starts = np.unique(start[start >= 0])
    return np.where(start >= 0, np.searchsorted(starts, start), NONE).astype(np.int32)


def _period(codes: Ints) -> int:
    """The shortest of the periods that explain most; 0: there is none."""
    best = {period: sum(end - first for first, end in _runs(codes, period)) for period in _candidates(codes)}
    most = max(best.values(), default=0)
    return min((period for period, length in best.items() if length and length >= _NEARLY * most), default=0)


def _candidates(codes: Ints) -> list[int]:
    """Distances between a kernel and the next one of its name, the most frequent first."""
    order = np.argsort(codes, kind="stable")
    gaps = np.diff(order)[np.diff(codes[order]) == 0]
    periods, counts = np.unique(gaps, return_counts=True)
    weight = counts * periods
    most_frequent = periods[np.argsort(-weight, kind="stable")][:_MOST_PERIODS]
    return [int(period) for period in most_frequent if period * _LEAST_REPEATS <= codes.size]


def _runs(codes: Ints, period: int) -> list[tuple[int, int]]:
    """Where kernels repeat with a period at least _LEAST_REPEATS times: (first, end)."""
    same = np.concatenate([[False], codes[:-period] == codes[period:], [False]])
    edges = np.flatnonzero(np.diff(same.astype(np.int8)))
    first, end = edges[::2], edges[1::2]
    is_long = end - first >= (_LEAST_REPEATS - 1) * period
    return list(zip(first[is_long].tolist(), (end[is_long] + period).tolist(), strict=True))


def _cut(first: int, end: int, period: int, codes: Ints, family: Ints, start: Ints) -> list[tuple[int, int]]:
    """The layers of a run: (first, end) of each. At its ends less than half a layer is none."""
    cycle = slice(first, first + period)
    anchors = _anchors(codes[cycle], family[cycle])
    offsets = sorted({_beginning(anchor, family[cycle]) for anchor in anchors.tolist()}) or [0]
    if not anchors.size and (family == ATTENTION).sum() >= _LEAST_REPEATS:
        return []  # a part of a layer that repeats
    low, high = _extend(first, end, period, family, start)
    begin = first - period * ((first - low) // period + 1)
    borders = [at + offset for at in range(begin, high + period, period) for offset in offsets]
    pieces = [(max(a, low), min(b, high), b - a) for a, b in pairwise(borders)]
    layers = [(a, b) for a, b, length in pieces if b - a >= length / 2]
    if anchors.size and layers:
        code, length = int(codes[first + anchors[0]]), period // len(offsets)
        layers += _earlier(layers[0][0], code, length, codes, family, start)
    return layers


def _extend(first: int, end: int, period: int, family: Ints, start: Ints) -> tuple[int, int]:
    """Extend a run by what is before and after it of the same families: libraries choose among equal kernels."""
    low, high = first, end
    while low and start[low - 1] < 0 and family[low - 1] == family[low - 1 + period]:
        low -= 1
    while high < family.size and start[high] < 0 and family[high] == family[high - period]:
        high += 1
    return low, high


def _anchors(codes: Ints, family: Ints) -> Ints:
    """The attention kernels of one period that layers are counted by: those of a name that recurs at even distances."""
    attention = np.flatnonzero(family == ATTENTION)
    positions = [attention[codes[attention] == code] for code in np.unique(codes[attention])]
    even = [at for at in positions if np.diff(at, append=at[0] + codes.size).min() >= _EVEN * codes.size / at.size]
    return max(even, key=lambda at: (at.size, int(at[-1]))) if even else attention[-1:]


def _earlier(begin: int, anchor: int, length: int, codes: Ints, family: Ints, start: Ints) -> list[tuple[int, int]]:
    """Layers before a run that don't repeat exactly: each has its anchor about where one of equal length has it.

    Args:
        begin: Where the run's first layer begins.
        anchor: The code of its anchor.
        length: Of a layer.
        codes, family: Of all kernels.
        start: Where the layer of each kernel begins, or NONE.
    """
    layers = list[tuple[int, int]]()
    while True:
        low = max(0, begin - int(length * _MOST_LONGER))
        at = low + np.flatnonzero((codes[low:begin] == anchor) & (start[low:begin] < 0))
        if not at.size:
            return layers
        before = family[max(0, int(at[-1]) - length) : int(at[-1])]
        first = int(at[-1]) - before.size + _beginning(before.size, before)
        if begin - first < length / 2 or (start[first:begin] >= 0).any():
            return layers
        layers.append((first, begin))
        begin = first


def _beginning(anchor: int, family: Ints) -> int:
    """Where the layer of an attention kernel begins in a cycle: the normalization before the matmul that feeds it.

    Without one between that matmul and the attention before, it is the matmul.
    """
    around = np.roll(family, -anchor)[::-1]  # backwards from the attention
    gemm = np.flatnonzero(around == GEMM)
    if not gemm.size:
        return anchor % max(family.size, 1)
    further = around[gemm[0] :]
    end = np.flatnonzero(further == ATTENTION)
    norm = np.flatnonzero(further[: end[0] if end.size else further.size] == NORMALIZATION)
    return int((anchor - 1 - gemm[0] - (norm[0] if norm.size else 0)) % family.size)
