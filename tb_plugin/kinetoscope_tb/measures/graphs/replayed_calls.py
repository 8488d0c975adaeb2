"""Finishes a trace: joins its graphs with their captures before anyone looks at it.

A replay runs what its capture launched, so each replay stands for the operators and module calls of the capture. They
follow the recorded rows in `all_host_events` and `all_python_calls`, take no host time, and lie inside what was open
when the graph was launched. The `op` of a replayed kernel is then its operator, as for any other kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, categories_of, gather
from ...arrays.intervals import Ints
from ...arrays.nesting import innermost, nearest
from ...trace.model import CaptureFiles, ReplayedCalls, Trace
from ..calls.call_tree import Rows
from ..recording.contents import has_graphs
from .join import Join, join
from .replays import Replays, replays


def join_captures(trace: Trace, captures: CaptureFiles) -> Trace:
    """The finished trace: with its captures, and the calls that its graphs replay; without graphs the trace itself."""
    if not has_graphs(trace):
        return trace
    before = trace.with_captures(captures)
    replays_of_calls = _replayed_calls(before)
    if replays_of_calls is None:
        return before
    after = trace.with_captures(captures, *replays_of_calls)
    after.results.put(join, join(before))
    return after


def _replayed_calls(trace: Trace) -> tuple[pl.Series, ReplayedCalls] | None:
    """The operator of each device row, and the calls that graphs replay; None if none is known."""
    graph_join, graph_replays = join(trace), replays(trace)
    if not graph_join.matches:
        return None
    calls = _calls_of_sources(trace, graph_join)
    module = _module_at(trace)
    placement = _place_calls(trace, graph_join, graph_replays, calls, module >= 0)
    if not placement.source_row.size:
        return None
    is_module = calls["is_module"].to_numpy()[placement.source_row]
    host, op = _host_events(trace, calls, placement, is_module)
    return pl.Series(op, dtype=pl.Int32), ReplayedCalls(
        host,
        _python_calls(trace, calls, placement, is_module, module),
        trace.device_events["op"],
        is_module,
        placement.parent,
        placement.launch,
        placement.innermost,
        _origins(graph_join)[placement.source_row],
    )


@dataclass(frozen=True)
class _Placement:
    """The calls of all replays.

    Attributes:
        source_row: Of each, its row among the calls of all sources.
        parent: Of each, the one around it, or NONE.
        launch: Of each, the launch of its graph.
        innermost: Of each device row, the innermost call around its launch, or NONE.
    """

    source_row: Ints
    parent: Rows
    launch: Rows
    innermost: Rows


def _calls_of_sources(trace: Trace, graph_join: Join) -> pl.DataFrame:
    """The calls of all sources, one after the other, with their parents."""
    frames, first = [], 0
    for source in graph_join.sources:
        calls = source.sequences.calls
        frames.append(calls.with_columns(parent=pl.when(pl.col("parent") >= 0).then(pl.col("parent") + first)))
        first += calls.height
    calls = pl.concat(frames).with_columns(pl.col("parent").fill_null(NONE).cast(pl.Int32))
    return calls.with_columns(module_id=_module_ids(trace, calls))


def _module_ids(trace: Trace, calls: pl.DataFrame) -> pl.Series:
    """The modules' numbers: of one name it is that of this recording, since each recording has its own numbers."""
    here = trace.python_calls.filter(pl.col("module_id") >= 0).select(pl.col("name").cast(pl.String), "module_id")
    here = here.unique().filter(~pl.col("name").is_duplicated())
    both = calls.select("name", own="module_id").join(here, "name", "left", maintain_order="left")
    return both.select(pl.when(pl.col("own") < 0).then("own").otherwise(pl.coalesce("module_id", "own"))).to_series()


def _origins(graph_join: Join) -> NDArray[np.int8]:
    """Of each call of all sources, how it is known: an index into SOURCES."""
    return np.repeat(
        np.array([source.origin for source in graph_join.sources], np.int8),
        [source.sequences.calls.height for source in graph_join.sources],
    )


@dataclass(frozen=True)
class _Plan:
    """What one match adds per replay: rows of the sources' calls, their parents, and the call of each device row."""

    calls: Ints
    parent: Ints
    innermost: Ints


def _place_calls(
    trace: Trace, graph_join: Join, graph_replays: Replays, calls: pl.DataFrame, has_module: NDArray[np.bool_]
) -> _Placement:
    """The calls of each replay, by its match and by whether modules are open at its launch."""
    launch = graph_replays.launch.astype(np.int32)
    key = np.where(graph_join.match >= 0, 2 * graph_join.match + gather(has_module, launch, missing=False), NONE)
    keys, number = np.unique(key, return_inverse=True)
    offsets = np.cumsum([0, *(source.sequences.calls.height for source in graph_join.sources)])
    plans = [_plan(graph_join, int(value), offsets, calls) for value in keys.tolist()]
    sizes = np.array([plan.calls.size for plan in plans])[number]
    base = np.append(0, np.cumsum(sizes))
    at = _ranges(np.cumsum([0, *(plan.calls.size for plan in plans)])[:-1][number], sizes)
    shift = np.repeat(base[:-1], sizes)
    parent = np.concatenate([plan.parent for plan in plans])[at]
    rows = np.array([plan.innermost.size for plan in plans])
    lengths = np.diff(graph_replays.first)
    of_key = np.cumsum([0, *rows])[:-1][number]
    inner = np.full(graph_replays.rows.size, NONE)
    is_joined = np.repeat(rows[number] > 0, lengths)
    plan_row = _ranges(of_key, lengths)[is_joined]
    inner[is_joined] = np.concatenate([plan.innermost for plan in plans])[plan_row]
    inner = np.where(inner >= 0, inner + np.repeat(base[:-1], lengths), NONE)
    of_device = np.full(trace.device_events.height, NONE, np.int32)
    of_device[graph_replays.rows] = inner
    return _Placement(
        np.concatenate([plan.calls for plan in plans])[at],
        np.where(parent >= 0, parent + shift, NONE).astype(np.int32),
        np.repeat(launch, sizes),
        of_device,
    )


def _plan(graph_join: Join, key: int, offsets: Ints, calls: pl.DataFrame) -> _Plan:
    """The calls around a match's nodes; without what was open around the capture, where the replay has its own."""
    none = np.empty(0, np.int64)
    if key < 0:
        return _Plan(none, none, none)
    match, drops_modules = graph_join.matches[key // 2], bool(key % 2)
    first, nodes = int(offsets[match.source]), graph_join.sources[match.source].sequences.nodes
    call = gather(nodes["call"].to_numpy(), match.node.astype(np.int32))
    at = np.where(call >= 0, call + first, NONE).astype(np.int32)
    parent, is_outer, is_module = (calls[name].to_numpy() for name in ("parent", "is_outer", "is_module"))
    is_left_out = is_outer & (~is_module | drops_modules)
    is_needed = np.zeros(parent.size, bool)
    around = np.unique(at[at >= 0])
    while around.size:
        is_needed[around] = True
        around = np.unique(parent[around])
        around = around[around >= 0]
    is_needed &= ~is_left_out
    rows = np.flatnonzero(is_needed)
    number_of_call = np.full(parent.size, NONE, np.int32)
    number_of_call[rows] = np.arange(rows.size, dtype=np.int32)
    inside = nearest(is_needed, parent)
    return _Plan(rows, gather(number_of_call, gather(inside, parent[rows])), gather(number_of_call, gather(inside, at)))


def _ranges(start: Ints, count: Ints) -> Ints:
    """The numbers from each start on, as many as its count, one after the other."""
    before = np.cumsum(count) - count
    numbers: Ints = np.arange(int(count.sum())) + np.repeat(start - before, count)
    return numbers


def _module_at(trace: Trace) -> Rows:
    """The innermost module that is open at each call: a row of python_calls, or NONE."""
    python, launches = trace.python_calls, trace.launches
    start = python["start_ns"].to_numpy()
    columns = (python["thread"].to_numpy(), start, start + python["dur_ns"].to_numpy())
    at = innermost(*columns, launches["thread"].to_numpy(), launches["start_ns"].to_numpy())
    modules: Rows = gather(nearest((python["module_id"] >= 0).to_numpy(), python["parent"].to_numpy()), at)
    return modules


def _host_events(
    trace: Trace, calls: pl.DataFrame, placement: _Placement, is_module: NDArray[np.bool_]
) -> tuple[pl.DataFrame, Rows]:
    """(all_host_events, the operator of each device row)."""
    host, launches = trace.host_events, trace.launches
    rows = np.flatnonzero(~is_module)
    number = (host.height - 1 + np.cumsum(~is_module, dtype=np.int64)).astype(np.int32)
    around = nearest(~is_module, placement.parent)
    parent = gather(number, gather(around, placement.parent))[rows]
    launch = placement.launch[rows]
    parent = np.where(parent >= 0, parent, gather(launches["host"].to_numpy(), launch))
    names = ("name", "kind", "input_shapes", "input_types", "concrete_inputs", "call_stack", "is_repeat")
    new_rows = pl.DataFrame(
        {
            "parent": pl.Series(parent, dtype=pl.Int32),
            "thread": pl.Series(gather(launches["thread"].to_numpy(), launch), dtype=pl.Int32),
            "start_ns": pl.Series(gather(launches["start_ns"].to_numpy(), launch) + _nth(launch)),
            "step": pl.Series(gather(launches["step"].to_numpy(), launch), dtype=pl.Int32),
        }
    ).with_columns(is_finished=True, **dict.fromkeys(("dur_ns", "self_ns", "depth", "length"), 0))
    source = calls.select(*names, "is_communication")
    events = _append(host, new_rows, source, placement.source_row[rows])
    is_op = (events["kind"] == "operator").to_numpy()
    holder = nearest(is_op, events["parent"].to_numpy())
    inner = gather(gather(number, around), placement.innermost)
    op = trace.device_events["op"].to_numpy()
    return events, np.where(inner >= 0, gather(holder, inner), op).astype(np.int32)


def _nth(launch: Rows) -> Ints:
    """The number of each row among those that follow each other with the same launch."""
    first = np.flatnonzero(np.diff(launch, prepend=NONE - 1) != 0)
    return np.arange(launch.size) - np.repeat(first, np.diff(np.append(first, launch.size)))


def _python_calls(
    trace: Trace, calls: pl.DataFrame, placement: _Placement, is_module: NDArray[np.bool_], module: Rows
) -> pl.DataFrame:
    """all_python_calls; `module` is the one open at each launch."""
    python, launches = trace.python_calls, trace.launches
    rows = np.flatnonzero(is_module)
    number = (python.height - 1 + np.cumsum(is_module, dtype=np.int64)).astype(np.int32)
    parent = gather(number, gather(nearest(is_module, placement.parent), placement.parent))[rows]
    launch = placement.launch[rows]
    parent = np.where(parent >= 0, parent, gather(module, launch))
    new_rows = pl.DataFrame(
        {
            "parent": pl.Series(parent, dtype=pl.Int32),
            "thread": pl.Series(gather(launches["thread"].to_numpy(), launch), dtype=pl.Int32),
            "start_ns": pl.Series(gather(launches["start_ns"].to_numpy(), launch)),
        }
    ).with_columns(**dict.fromkeys(("dur_ns", "depth", "length"), 0))
    return _append(python, new_rows, calls.select("name", "module_id"), placement.source_row[rows])


def _append(frame: pl.DataFrame, new_rows: pl.DataFrame, source: pl.DataFrame, at: Ints) -> pl.DataFrame:
    """Append rows to a frame: their own columns, and those of the rows of `source` that they repeat.

    Columns that neither has are missing there.
    """
    height, wide, below = at.size, dict[str, pl.Series](), dict[str, pl.Series]()
    for name, column in zip(frame.columns, frame.iter_columns(), strict=True):
        if isinstance(column.dtype, pl.Enum):
            texts = source[name] if name in source.columns else pl.Series([None] * source.height, dtype=pl.String)
            wide[name], texts = _with_texts(column, texts)
            below[name] = texts.gather(at)
        elif name in source.columns:
            below[name] = source[name].cast(column.dtype).gather(at)
        else:
            values = new_rows[name] if name in new_rows.columns else pl.Series(np.full(height, NONE))
            below[name] = values.cast(column.dtype)
    return pl.concat([frame.with_columns(**wide), pl.DataFrame(below)], rechunk=True)


def _with_texts(column: pl.Series, texts: pl.Series) -> tuple[pl.Series, pl.Series]:
    """An enum column and texts as one type: the column's codes stay, new texts get the next ones."""
    if texts.null_count() == texts.len():
        return column, pl.Series([None] * texts.len(), dtype=column.dtype)
    categories = categories_of(column)
    fresh = texts.unique(maintain_order=True).drop_nulls()
    fresh = fresh.filter(~fresh.is_in(categories.implode()))
    dtype = pl.Enum(pl.concat([categories, fresh]))
    if not categories.len():
        column = pl.Series([None], dtype=dtype).new_from_index(0, column.len())
    return column.cast(dtype) if fresh.len() else column, texts.cast(dtype)
