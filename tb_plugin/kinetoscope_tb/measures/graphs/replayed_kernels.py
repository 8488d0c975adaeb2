"""What each kernel that graphs replay belongs to, and how that is known: one row per node of a graph and operator."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather_column
from ...names.kernel_families import FAMILIES
from ...trace.model import Trace
from ...trace.results import once_per_trace
from ..calls.call_tree import Rows
from ..calls.module_calls import ModuleCalls
from ..recording.contents import has_graphs, has_modules
from .attribution import RECORDED, SOURCES, provenance
from .join import CONFIDENCE, LOW, Join, join
from .layers import inferred_layers
from .replays import Ints, Replays, replays

INFERRED = "inferred"
_KEY = ("graph", "position", "device", "name", "op", "input_shapes", "input_types")
_ROWS = {
    "row": pl.Int64,
    "graph": pl.Enum,
    "position": pl.Int64,
    "device": pl.Int64,
    "name": pl.Enum,
    "op": pl.Enum,
    "input_shapes": pl.Enum,
    "input_types": pl.Enum,
    "module": pl.String,
    "line": pl.String,
    "mark": pl.String,
    "layer": pl.Int64,
    "family": pl.Enum,
    "provenance": pl.Enum,
    "confidence": pl.Enum,
    "dur_ns": pl.Int64,
}
_KNOWN = pl.Enum([*SOURCES, INFERRED])


def replayed_kernels(trace: Trace) -> pl.DataFrame:
    """One row per graph, node and operator; the first replay's module and line stand for all.

    Columns: those of _KEY, module, line, mark, layer (such as `layer 17 · attention`), provenance, confidence, calls,
    total_ns.
    """
    rows = each_replayed_kernel(trace)
    texts = [name for name, kind in _ROWS.items() if kind is pl.Enum and name != "family"]
    least, most = pl.col("layer").min(), pl.col("layer").max()
    family = pl.col("family").first()
    return (
        rows.group_by(_KEY, maintain_order=True)
        .agg(
            *(pl.col(name).first() for name in ("module", "line", "mark", "provenance", "confidence")),
            pl.when(least == most)
            .then(pl.format("layer {} · {}", least, family))
            .when(least < most)
            .then(pl.format("layers {}–{} · {}", least, most, family))
            .alias("layer"),
            pl.len().cast(pl.Int64).alias("calls"),
            pl.col("dur_ns").sum().alias("total_ns"),
        )
        .with_columns(pl.col(texts).cast(pl.String))
    )


def replayed_kernel(trace: Trace, row: int) -> dict[str, str | None] | None:
    """What is known of a row of device_events that a graph replayed, as texts; None for any other row."""
    if not has_graphs(trace):
        return None
    kernel = each_replayed_kernel(trace).filter(pl.col("row") == row)
    if kernel.is_empty():
        return None
    layer = pl.format("layer {} · {}", "layer", "family").alias("layer")
    names = ("op", "input_shapes", "module", "line", "mark")
    facts: dict[str, str | None] = kernel.select(*names, layer, "provenance", "confidence").row(0, named=True)
    return facts


@once_per_trace
def each_replayed_kernel(trace: Trace) -> pl.DataFrame:
    """One row per kernel, copy or fill that a graph replayed, in the order of replays and nodes (_ROWS).

    `provenance` is one of SOURCES, `inferred` where only a layer is known, or null.
    """
    graph_replays, graph_join = replays(trace), join(trace)
    rows, device, host = graph_replays.rows, trace.device_events, trace.all_host_events
    is_joined = _is_joined(trace)[rows]
    op = np.where(is_joined, device["op"].to_numpy()[rows], NONE)
    known_op = pl.Series(op, dtype=pl.Int64).replace(NONE, None)
    of_replay = graph_replays.of_rows()
    layers = inferred_layers(trace)
    joined_rows = pl.Series(np.where(is_joined, rows, NONE)).replace(NONE, None)
    columns = {
        "row": rows,
        "graph": pl.Series(graph_replays.graph, dtype=pl.Enum(list(dict.fromkeys(graph_replays.graph)))).gather(
            of_replay
        ),
        "position": graph_replays.positions(),
        "device": device["device"].gather(rows).cast(pl.Int64),
        "name": device["name"].gather(rows),
        "op": host["name"].gather(known_op),
        **{name: host[name].gather(known_op) for name in ("input_shapes", "input_types")},
        "module": _modules(trace, rows),
        "line": _lines(graph_join, graph_replays),
        "mark": device["mark"].gather(rows).cast(pl.String),
        "layer": pl.Series(layers.layer[rows], dtype=pl.Int64).replace(NONE, None),
        "family": pl.Series(FAMILIES, dtype=pl.Enum(FAMILIES)).gather(
            pl.Series(layers.family[rows]).replace(NONE, None)
        ),
        "provenance": provenance(trace).gather(joined_rows).cast(_KNOWN),
        "confidence": _confidence(graph_join, graph_replays, is_joined),
        "dur_ns": device["dur_ns"].gather(rows),
    }
    frame = pl.DataFrame(columns)
    is_guess = pl.col("provenance").is_null() & pl.col("layer").is_not_null()
    frame = frame.with_columns(
        provenance=pl.when(is_guess).then(pl.lit(INFERRED, _KNOWN)).otherwise("provenance"),
        confidence=pl.when(is_guess).then(pl.lit(CONFIDENCE[LOW], pl.Enum(CONFIDENCE))).otherwise("confidence"),
    )
    return _with_notes(frame, trace)


def _is_joined(trace: Trace) -> NDArray[np.bool_]:
    """Whether each device row is known to be of a call that a graph replays."""
    if trace.replayed is None:
        return np.zeros(trace.device_events.height, bool)
    return trace.replayed.innermost >= 0


def _modules(trace: Trace, rows: Ints) -> pl.Series:
    """The path of the module of each row."""
    if not has_modules(trace):
        return pl.Series([None] * rows.size, dtype=pl.String)
    modules = ModuleCalls.of(trace)
    node, _ = modules.of_rows(modules.forest.rows_at_launch(trace)[rows])
    return gather_column(pl.Series(modules.paths(), dtype=pl.String), node)


def nodes_of(graph_join: Join, graph_replays: Replays) -> tuple[Rows, Ints]:
    """(the node of each row among those of all sources, or NONE; an index into CONFIDENCE)."""
    first = np.cumsum([0, *(source.sequences.nodes.height for source in graph_join.sources)])
    node, sure = np.full(graph_replays.rows.size, NONE), np.full(graph_replays.rows.size, LOW)
    for number, match in enumerate(graph_join.matches):
        at = np.where(match.node >= 0, match.node + first[match.source], NONE)
        replay = np.flatnonzero(graph_join.match == number)
        positions = graph_replays.first[replay][:, None] + np.arange(at.size)
        node[positions], sure[positions] = at, match.confidence
    return node.astype(np.int32), sure


def _lines(graph_join: Join, graph_replays: Replays) -> pl.Series:
    node, _ = nodes_of(graph_join, graph_replays)
    empty = pl.Series([], dtype=pl.String)
    lines = pl.concat([empty, *(source.sequences.nodes["line"] for source in graph_join.sources)])
    return gather_column(lines, node)


def _confidence(graph_join: Join, graph_replays: Replays, is_joined: NDArray[np.bool_]) -> pl.Series:
    """How sure the operator of each row is; null without one."""
    _, sure = nodes_of(graph_join, graph_replays)
    return pl.Series(CONFIDENCE, dtype=pl.Enum(CONFIDENCE)).gather(
        pl.Series(np.where(is_joined, sure, NONE)).replace(NONE, None)
    )


def _with_notes(frame: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """Add what side-car files say of nodes: the mark, and the innermost line of the stack."""
    notes = trace.captures.node_notes
    if notes is None or notes.is_empty():
        return frame
    node = trace.device_events["graph_node_id"].gather(frame["row"])
    node_notes = frame.select(node=node).join(notes, "node", "left", maintain_order="left")
    line = node_notes["stack"].str.split("\n").list.first()
    mark = node_notes["mark"]
    source = pl.coalesce("provenance", pl.when(line.is_not_null() | mark.is_not_null()).then(pl.lit(RECORDED, _KNOWN)))
    return frame.with_columns(
        line=pl.coalesce(pl.lit(line), "line"), mark=pl.coalesce("mark", pl.lit(mark)), provenance=source
    )
