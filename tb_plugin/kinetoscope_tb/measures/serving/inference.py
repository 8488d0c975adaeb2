"""The iterations of a recording that doesn't mark them, inferred from its calls and kernels.

An iteration runs the model and then samples. So the calls of the thread that launches most device work are read in
order: calls that launch matmuls, attention, experts or a graph are *model* work, and an iteration's model work ends
where sampling follows that more model work follows. Without any sampling kernel, an iteration's first graph is one
before which inputs were copied: between the pieces of a model that is captured in pieces only attention runs. Without
copies the rarest graph is taken to be launched once per iteration. Between the model work of two iterations the border
is the longest time without a call: there the server schedules.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, map_categories
from ...names.calls import launches_graph
from ...names.kernel_families import FAMILIES, kernel_family
from ...trace.model import Trace
from ..calls.graph_launches import LaunchedRows

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_MODEL = ("attention", "gemm", "moe")


class Extents(NamedTuple):
    """Where iterations were inferred: start and end of each on its host thread."""

    thread: int
    start: Ints
    end: Ints


class _Calls(NamedTuple):
    """The calls of one thread that launched device work, in order of time."""

    row: Ints  # of launches
    start: Ints
    end: Ints
    is_model: Mask
    samples: Mask
    is_graph: Mask
    copies: Mask


def inferred_extents(trace: Trace) -> Extents | None:
    """The extents of iterations; None if nothing repeats that an iteration could be recognized by."""
    thread = _busiest_thread(trace)
    if thread == NONE:
        return None
    calls = _calls(trace, thread)
    first, last = _by_sampling(calls) if calls.samples.any() else _by_graphs(trace, calls)
    if not first.size:
        return None
    begins, ends = _borders(calls, first, last)
    return Extents(thread, calls.start[begins], calls.end[ends])


def _busiest_thread(trace: Trace) -> int:
    """The thread that launched most device rows; NONE if no launch is recorded."""
    launch = trace.device_events["launch"].to_numpy()
    threads = trace.launches["thread"].to_numpy()[launch[launch != NONE]]
    return int(np.bincount(threads).argmax()) if threads.size else NONE


def _calls(trace: Trace, thread: int) -> _Calls:
    device, launches = trace.device_events, trace.launches
    families = [FAMILIES.index(name) for name in _MODEL]
    family = map_categories(device["name"], lambda name: FAMILIES.index(kernel_family(name)), missing=NONE)
    launch = device["launch"].to_numpy()
    on_thread = launches["thread"].to_numpy() == thread
    rows = np.unique(launch[launch != NONE])
    rows = rows[on_thread[rows]]
    start, dur = (launches[name].to_numpy() for name in ("start_ns", "dur_ns"))
    rows = rows[np.argsort(start[rows], kind="stable")]
    graph = map_categories(launches["name"], launches_graph).astype(bool)[rows]
    samples = np.isin(rows, launch[family == FAMILIES.index("sampling")])
    model = np.isin(rows, launch[np.isin(family, families)]) | graph
    copies = np.isin(rows, launch[(device["kind"] == "memcpy").to_numpy()])
    return _Calls(rows.astype(np.int64), start[rows], start[rows] + dur[rows], model, samples, graph, copies)


def _by_sampling(calls: _Calls) -> tuple[Ints, Ints]:
    """The first and the last call of each iteration: model work up to the sampling after which more model work follows.

    A graph may hold both: then its sampling comes last.
    """
    at = np.arange(calls.row.size)
    order = np.concatenate([2 * at[calls.is_model], 2 * at[calls.samples] + 1])
    order.sort()
    is_sampling = order % 2 == 1
    begins = np.append(True, is_sampling[:-1]) & ~is_sampling  # the first model work after sampling
    number = np.cumsum(begins)
    has_begun = number > 0  # sampling before any model work belongs to an iteration that the recording cut off
    ends = np.append(begins[1:], True) & has_begun
    return order[begins & has_begun] // 2, order[ends] // 2


def _by_graphs(trace: Trace, calls: _Calls) -> tuple[Ints, Ints]:
    """The first and the last graph of each iteration."""
    graphs = np.flatnonzero(calls.is_graph)
    copies = np.cumsum(calls.copies)[graphs]
    is_first = np.diff(copies, prepend=0) > 0 if copies.size and copies[-1] else _rarest(trace, calls.row[graphs])
    first = graphs[is_first]
    return first, graphs[np.searchsorted(graphs, np.append(first, calls.row.size)[1:]) - 1]


def _rarest(trace: Trace, launches: Ints) -> Mask:
    """Which launches are of the graph that was launched least; of several, of the one that was launched first."""
    graph_rows = LaunchedRows.of(trace)
    graph = pl.Series("graph", graph_rows.graphs(), pl.String)
    launched_graphs = graph_rows.calls.select("launch", graph).unique("launch", keep="first", maintain_order=True)
    rows = pl.DataFrame({"launch": launches.astype(np.int32)}).join(
        launched_graphs, "launch", "left", maintain_order="left"
    )
    counts = rows.group_by("graph", maintain_order=True).len()
    fewest = counts.sort("len", maintain_order=True)["graph"][:1]
    return rows["graph"].is_in(fewest.implode()).to_numpy()


def _borders(calls: _Calls, first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """The first and last call of each iteration, with what prepares it and what follows: the longest pauses divide."""
    pauses = calls.start[1:] - calls.end[:-1]
    cuts = [a + int(pauses[a:b].argmax()) for a, b in zip(last[:-1], first[1:], strict=True)]
    early_samples = np.flatnonzero(calls.samples[: first[0]])
    begin = early_samples[-1] + int(pauses[early_samples[-1] : first[0]].argmax()) + 1 if early_samples.size else 0
    begins = np.array([begin, *(cut + 1 for cut in cuts)], np.int64)
    return begins, np.array([*cuts, calls.row.size - 1], np.int64)
