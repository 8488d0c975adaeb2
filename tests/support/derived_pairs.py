"""Pairs of recordings whose alignment is known: a step of a real recording, and the same step as other code would run it.

A variant lists the rows of the base step that each of its rows does the work of, so that a match is right or wrong.
Instances of a layer that is repeated are interchangeable: a match of rows with equal signatures and neighbors is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.compare.account import account_of_typical_step
from kinetoscope_tb.compare.alignment.alignment import align
from kinetoscope_tb.compare.alignment.units import Units, units
from kinetoscope_tb.measures.graphs.alignment import align_sequences
from kinetoscope_tb.measures.graphs.layers import layers_of
from kinetoscope_tb.measures.time.step_subset import windows_of_steps
from kinetoscope_tb.trace import Trace

POINTWISE = ("cast", "layout", "elementwise", "other")


@dataclass
class Row:
    """A device row of a variant.

    Args:
        base: The row of the base that it is made from, for its columns.
        origins: The rows of the base whose work it does; empty: none.
        dur_ns: Its duration.
        name: Its kernel's name; None: as in the base.
        has_operator: Whether what launched it is known.
        order: When it was launched, as a place among the rows of the base.
        stream: None: as in the base.
        has_twice_the_batch: Whether its operator's tensors are twice as large, where they have the batch.
    """

    base: int
    origins: tuple[int, ...]
    dur_ns: int
    order: float
    name: str | None = None
    has_operator: bool = True
    stream: int | None = None
    has_twice_the_batch: bool = False


@dataclass(frozen=True)
class Base:
    """A step of a recording, alone.

    Args:
        trace: It.
        units: Its units, in order.
        family: Of each.
        roles: Of each a number; equal for interchangeable ones.
    """

    trace: Trace
    units: Units
    family: list[str]
    roles: np.ndarray

    @classmethod
    def of(cls, trace: Trace) -> Base:
        step = trace.steps["name"].to_list().index(account_of_typical_step(trace).step)
        part = windows_of_steps(trace, [step])  # variants have no launches: the order is that of the starts
        alone = replace(part, device_events=part.device_events.with_columns(launch=pl.lit(NONE, pl.Int32)))
        side = units(alone, account_of_typical_step(alone).rows)
        padded = np.pad(side.codes, 1, constant_values=-1)
        neighbors = np.lib.stride_tricks.sliding_window_view(padded, 3)
        roles = np.unique(neighbors, axis=0, return_inverse=True)[1].ravel()
        return cls(alone, side, side.signatures["family"].gather(side.codes).to_list(), roles)

    def rows(self) -> list[Row]:
        """The rows as they are."""
        durations = self.trace.device_events["dur_ns"].gather(self.units.rows).to_list()
        return [Row(place, (place,), dur, place) for place, dur in enumerate(durations)]


Change = Callable[[Base, list[Row], np.random.Generator], Iterable[Row]]


NAMES = {
    "matmul": "Cijk_Ailk_Bljk_HHS_BH_MT{}x64x32_SE",
    "attention": "attn_fwd_{}",
    "convolution": "igemm_fwd_gtcx_nhwc_{}",
    "layout": "batched_transpose_{}",
    "cast": "void at::native::unrolled_elementwise_kernel<{}>",
    "elementwise": "void at::native::unrolled_elementwise_kernel<{}>",
    "other": "custom_{}",
}
"""How another library names kernels of a family."""


def rename(base: Base, rows: list[Row], generator: np.random.Generator) -> Iterable[Row]:
    """The same work by another library: all kernels have other names."""
    offset = int(generator.integers(1000, 9000))
    for row in rows:
        form = NAMES.get(base.family[row.base])
        yield replace(row, name=form and form.format(base.units.codes[row.base] + offset))


def run_on_another_device(base: Base, rows: list[Row], generator: np.random.Generator) -> Iterable[Row]:
    """Other names, and every kind of work takes another time."""
    factor = 1.7 * np.exp(0.4 * generator.standard_normal(base.units.signatures.height))
    slower = [replace(row, dur_ns=1 + round(row.dur_ns * factor[base.units.codes[row.base]])) for row in rows]
    return rename(base, slower, generator)


def slow_down(base: Base, rows: list[Row], generator: np.random.Generator) -> Iterable[Row]:
    """One kind of work takes twice as long."""
    code = generator.choice(base.units.codes)
    return [replace(row, dur_ns=row.dur_ns * (1 + (base.units.codes[row.base] == code))) for row in rows]


def fuse(base: Base, rows: list[Row], generator: np.random.Generator) -> Iterable[Row]:
    """Pointwise work that follows pointwise work is mostly fused with it, up to four rows."""
    open_row: Row | None = None
    for row in rows:
        fits = base.family[row.base] in POINTWISE and generator.random() < 0.7
        if open_row is not None and fits and len(open_row.origins) < 4:
            both = (*open_row.origins, *row.origins)
            length = open_row.dur_ns + row.dur_ns // 2
            open_row = replace(open_row, origins=both, dur_ns=length, name="triton_fused", has_operator=False)
            continue
        if open_row is not None:
            yield open_row
        open_row = row if base.family[row.base] in POINTWISE else None
        if open_row is None:
            yield row
    if open_row is not None:
        yield open_row


def split(base: Base, rows: list[Row], generator: np.random.Generator) -> Iterable[Row]:
    """Half of the products are split: a kernel for the products, and one that sums up."""
    for row in rows:
        if base.family[row.base] == "matmul" and generator.random() < 0.5:
            yield replace(row, dur_ns=1 + row.dur_ns * 4 // 5)
            yield replace(row, dur_ns=1 + row.dur_ns // 4, name="splitKreduce_kernel", order=row.order + 0.1)
        else:
            yield row


def reorder(base: Base, rows: list[Row], generator: np.random.Generator) -> Iterable[Row]:
    """A third of the casts and copies are launched earlier, on a stream of their own."""
    for row in rows:
        if base.family[row.base] in ("cast", "copy", "layout") and generator.random() < 0.3:
            yield replace(row, order=row.order - float(generator.integers(3, 12)) - 0.5, stream=999)
        else:
            yield row


def add_a_kernel_per_layer(base: Base, rows: list[Row], generator: np.random.Generator) -> Iterable[Row]:
    """Behind each attention, or every tenth row without one, runs another kernel."""
    has_attention = "attention" in base.family
    typical = int(np.median([row.dur_ns for row in rows]))
    for place, row in enumerate(rows):
        yield row
        if base.family[row.base] == "attention" if has_attention else place % 10 == 9:
            yield replace(
                row, origins=(), dur_ns=typical, name="extra_kernel", has_operator=False, order=row.order + 0.5
            )


def _layers(base: Base) -> np.ndarray:
    """The layer of each row, or NONE."""
    families = {name: number for number, name in enumerate(("attention", "matmul"))}
    family = np.array([families.get(name, 6) for name in base.family])
    return layers_of(base.units.codes, family)


def drop_a_layer(base: Base, rows: list[Row], generator: np.random.Generator) -> Iterable[Row]:
    """A layer is missing; where there are no layers, nothing is."""
    layers = _layers(base)
    dropped = generator.integers(layers.max() + 1) if layers.max() >= 2 else NONE - 1
    return [row for row in rows if layers[row.base] != dropped]


def add_a_layer(base: Base, rows: list[Row], generator: np.random.Generator) -> Iterable[Row]:
    """A layer runs twice."""
    layers = _layers(base)
    layer = generator.integers(layers.max() + 1) if layers.max() >= 2 else NONE - 1
    again = [row for row in rows if layers[row.base] == layer]
    last = again[-1].order if again else 0.0
    copies = [replace(row, origins=(), order=last + (nth + 1) / (len(again) + 1)) for nth, row in enumerate(again)]
    return [*rows, *copies]


def double_the_batch(base: Base, rows: list[Row], generator: np.random.Generator) -> Iterable[Row]:
    """Twice the batch, which takes not quite twice the time."""
    return [replace(row, dur_ns=1 + row.dur_ns * 9 // 5, has_twice_the_batch=True) for row in rows]


def write_another_program(base: Base, rows: list[Row], generator: np.random.Generator) -> Iterable[Row]:
    """Another device and library, pointwise work fused, products split, and a layer less."""
    for change in (run_on_another_device, fuse, split, drop_a_layer):
        rows = list(change(base, rows, generator))
    return rows


def rewrite_and_reorder(base: Base, rows: list[Row], generator: np.random.Generator) -> Iterable[Row]:
    """Other names, casts and copies on a stream of their own, a further kernel in each layer, and a layer more."""
    for change in (rename, reorder, add_a_kernel_per_layer, add_a_layer):
        rows = list(change(base, rows, generator))
    return rows


CHANGES: tuple[Change, ...] = (
    rename, run_on_another_device, slow_down, fuse, split, reorder, add_a_kernel_per_layer, drop_a_layer, add_a_layer,
    double_the_batch,
)  # fmt: skip
COMBINATIONS: tuple[Change, ...] = (write_another_program, rewrite_and_reorder)


def variant(base: Base, rows: list[Row]) -> tuple[Trace, list[Row]]:
    """The recording of these rows: one after the other, as far apart as in the base; and the rows in their order."""
    rows = sorted(rows, key=lambda row: row.order)
    device, steps = base.trace.device_events, base.trace.steps
    places = base.units.rows[[row.base for row in rows]]
    own = device[places]
    gap = _gaps(base)
    dur = np.array([row.dur_ns for row in rows], np.int64)
    start = int(steps["start_ns"][0]) + np.cumsum(gap[[row.base for row in rows]] + np.append(0, dur[:-1]))
    end = int(start[-1] + dur[-1]) + 1000 if rows else int(steps["end_ns"][0])
    names = [row.name or name for row, name in zip(rows, own["name"].cast(pl.String).to_list(), strict=True)]
    has_operator = pl.Series([row.has_operator for row in rows])
    frame = own.with_columns(
        start_ns=pl.Series(start),
        dur_ns=pl.Series(dur),
        name=pl.Series(names, dtype=pl.Enum(sorted(set(names)))),
        op=pl.when(has_operator).then("op").otherwise(NONE).cast(pl.Int32),
        launch=pl.lit(NONE, pl.Int32),
        stream=pl.Series([own["stream"][nth] if row.stream is None else row.stream for nth, row in enumerate(rows)]),
    )
    steps = steps.with_columns(end_ns=pl.lit(end, pl.Int64))
    collectives = base.trace.collectives.with_columns(device_event=_moved(base, places))
    trace = replace(base.trace, device_events=frame, collectives=collectives, steps=steps)
    return (_with_twice_the_batch(base, trace) if any(row.has_twice_the_batch for row in rows) else trace), rows


def _with_twice_the_batch(base: Base, trace: Trace) -> Trace:
    """The recording with twice the batch: a size of each tensor that has it, or a multiple of it such as the tokens.

    The batch is the first size that most pointwise work has by time.
    """
    host, device = trace.host_events, base.trace.device_events[base.units.rows]
    shapes = host["input_shapes"].cast(pl.String)
    is_pointwise = pl.Series([family in POINTWISE for family in base.family])
    ops = device.filter(is_pointwise & (device["op"] >= 0) & (device["op"] < host.height))
    first = shapes.gather(ops["op"]).str.extract(r"^\[\[(\d+), ").cast(pl.Int64)
    times = pl.DataFrame({"first": first, "ns": ops["dur_ns"]}).filter(pl.col("first") > 1)
    sums = times.group_by("first").agg(pl.col("ns").sum()).sort("ns", "first", descending=True)
    if not sums.height:
        return trace
    batch, least = sums["first"][0], 0.02 * sums["ns"].sum()
    is_multiple = (pl.col("first") % batch == 0) | (batch % pl.col("first") == 0)
    sizes = sums.filter(is_multiple & (pl.col("ns") >= least))["first"].to_list()
    pattern = re.compile(rf"\[((?:\d+, )*?)({'|'.join(map(str, sizes))})((?:, \d+)*)\]")
    larger = [text and pattern.sub(lambda tensor: _with_larger_size(*tensor.groups()), text) for text in shapes]
    series = pl.Series(larger, dtype=pl.String)
    return replace(
        trace, host_events=host.with_columns(input_shapes=series.cast(pl.Enum(series.unique().drop_nulls())))
    )


def _with_larger_size(before: str, size: str, after: str) -> str:
    return f"[{before}{2 * int(size)}{after}]"


def _gaps(base: Base) -> np.ndarray:
    """What lies between each row and the one before it; 0 where they overlap."""
    device = base.trace.device_events[base.units.rows]
    end = (device["start_ns"] + device["dur_ns"]).to_numpy()
    before = np.append(base.trace.steps["start_ns"][0], np.maximum.accumulate(end)[:-1])
    return np.maximum(0, device["start_ns"].to_numpy() - before)


def _moved(base: Base, places: np.ndarray) -> pl.Series:
    """The rows of the metadata of collectives in a variant."""
    new = np.full(base.trace.device_events.height, NONE, np.int32)
    new[places[::-1]] = np.arange(places.size, dtype=np.int32)[::-1]
    rows = base.trace.collectives["device_event"].to_numpy()
    return (
        pl.Series(np.where(rows >= 0, new[rows], NONE).astype(np.int32)) if rows.size else pl.Series([], dtype=pl.Int32)
    )


@dataclass(frozen=True)
class Outcome:
    """How much of the time was matched right.

    Args:
        truth_ns: Of rows that have a counterpart.
        right_ns: Of those, matched with it.
        wrong_ns: Of all rows that are matched with others.
        total_ns: Of all rows.
    """

    truth_ns: int
    right_ns: int
    wrong_ns: int
    total_ns: int


def outcome(base: Base, rows: list[Row], first: np.ndarray, second: np.ndarray) -> Outcome:
    """How right matches are: of each unit of the base and each row of a variant the number of its match, or NONE."""
    truth = right = wrong = total = 0
    of_match: dict[int, tuple[list[int], list[int]]] = {}
    for side, numbers in enumerate((first, second)):
        for place, number in enumerate(numbers.tolist()):
            if number >= 0:
                of_match.setdefault(number, ([], []))[side].append(place)
    has_counterpart = {origin for row in rows for origin in row.origins}
    durations = base.trace.device_events["dur_ns"].gather(base.units.rows).to_list()
    for place, number in enumerate(first.tolist()):
        is_right = number >= 0 and any(_is_same(base, place, rows[other]) for other in of_match[number][1])
        truth += durations[place] * (place in has_counterpart)
        right += durations[place] * (place in has_counterpart and is_right)
        wrong += durations[place] * (number >= 0 and not is_right)
        total += durations[place]
    for place, number in enumerate(second.tolist()):
        row = rows[place]
        is_right = number >= 0 and any(_is_same(base, other, row) for other in of_match[number][0])
        truth += row.dur_ns * bool(row.origins)
        right += row.dur_ns * (bool(row.origins) and is_right)
        wrong += row.dur_ns * (number >= 0 and not is_right)
        total += row.dur_ns
    return Outcome(truth, right, wrong, total)


def _is_same(base: Base, place: int, row: Row) -> bool:
    """Whether a row of a variant does the work of a unit of the base, or of one that is interchangeable with it."""
    if row.name == "extra_kernel":
        return False
    return place in row.origins or base.roles[place] in base.roles[[*row.origins, row.base]]


def by_alignment(base: Base, rows: list[Row]) -> tuple[Outcome, bool]:
    """(How right the alignment is; whether the accounts of both add up exactly.)"""
    trace, in_order = variant(base, rows)
    account = account_of_typical_step(trace)
    side = units(trace, account.rows)
    alignment = align(base.units, side)
    second = np.full(len(in_order), NONE, np.int64)
    second[side.rows] = alignment.second
    idle_ns = int((account.gaps["end_ns"] - account.gaps["start_ns"]).sum())
    is_exact = account.length_ns == int(account.work_ns.sum() - account.overlaps_ns.sum()) + idle_ns
    return outcome(base, in_order, alignment.first, second), is_exact


def by_names(base: Base, rows: list[Row]) -> Outcome:
    """How right the longest common subsequence of the names of kernels is."""
    trace, in_order = variant(base, rows)
    both = pl.concat(
        [
            base.trace.device_events["name"].gather(base.units.rows).cast(pl.String),
            trace.device_events["name"].cast(pl.String),
        ]
    )
    codes = both.rank("dense").cast(pl.Int64).to_numpy()
    partner = align_sequences(codes[: base.units.rows.size], codes[base.units.rows.size :])
    first = np.where(partner >= 0, np.arange(partner.size), NONE)
    second = np.full(len(in_order), NONE, np.int64)
    second[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    return outcome(base, in_order, first, second)
