"""Captures: which recordings say what the graphs launch, for how much of their time, and how sure that is."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE
from ...filesystem import last_part, printable
from ...measures.graphs.attribution import SOURCES
from ...measures.graphs.join import HIGH, join
from ...measures.graphs.pairing import UNLIKE
from ...measures.graphs.replayed_kernels import nodes_of
from ...measures.graphs.replays import replays
from ...measures.recording.contents import has_graphs
from ...table import COUNT, DURATION, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...view import Part, View

THIS, NOTHING = "this recording", "no capture found"
LEFT_OUT = "left out"


class GraphCaptures(Table):
    """Where the operators of replayed kernels come from: captures, eager work, or nothing."""

    key, weight = ("source", "use"), "total_ns"

    source = Column(
        TEXT,
        "The file, or this recording itself; no capture found: the rest, whose operators aren't known. Choose another "
        "file in the panel (Graph capture), or by --capture.",
    )
    use = Column(
        TEXT,
        "recorded (the capture is in this recording), capture (another recording launched the same kernels in the same "
        "order), eager (this recording ran them without a graph), or left out (the file was compared and not used).",
    )
    graphs = Column(COUNT, "Graphs that it explains; a graph that several explain counts for each.", adds_up=False)
    total_ns = Column(DURATION, "Sum of the durations of their replayed kernels, copies and fills.")
    time_frac = Column(FRACTION, "Share of that sum in all replays.")
    high_frac = Column(
        FRACTION,
        "Share of its own time with the confidence high, as in the table of kernels inside graphs.",
        title="High confidence",
    )
    reason = Column(TEXT, "Why a file was left out; missing for the others.")


def graph_captures(trace: Trace) -> pl.DataFrame:
    """Sources by the time that they explain, the longest first; then the files that were left out."""
    sources = _sources(trace)
    rows = pl.concat([sources, _left_out(trace, sources)]).sort(
        "total_ns", "source", "use", descending=[True, False, False]
    )
    return GraphCaptures.of(rows.select(GraphCaptures.schema().names()))


def _sources(trace: Trace) -> pl.DataFrame:
    graph_replays, graph_join = replays(trace), join(trace)
    node, sure = nodes_of(graph_join, graph_replays)
    ends = np.cumsum([source.sequences.nodes.height for source in graph_join.sources])
    source_index = np.where(node >= 0, np.searchsorted(ends, node, side="right"), len(graph_join.sources))
    files = [*(_file(trace, source.capture) for source in graph_join.sources), NOTHING]
    uses = [*(SOURCES[source.origin] for source in graph_join.sources), None]
    rows = pl.DataFrame(
        {
            "source": pl.Series(files, dtype=pl.String).gather(source_index),
            "use": pl.Series(uses, dtype=pl.String).gather(source_index),
            "graph": pl.Series(graph_replays.graph, dtype=pl.String).gather(graph_replays.of_rows()),
            "dur_ns": trace.device_events["dur_ns"].gather(graph_replays.rows),
            "is_high": (sure == HIGH) & (node >= 0),
        }
    )
    total = pl.col("dur_ns").sum()
    return rows.group_by("source", "use").agg(
        graphs=pl.col("graph").n_unique().cast(pl.Int64),
        total_ns=total,
        time_frac=total / max(int(rows["dur_ns"].sum()), 1),
        high_frac=pl.when(pl.col("use").first().is_not_null()).then(
            pl.col("dur_ns").filter("is_high").sum() / pl.max_horizontal(total, 1)
        ),
        reason=pl.lit(None, pl.String),
    )


def _left_out(trace: Trace, sources: pl.DataFrame) -> pl.DataFrame:
    """The files that were compared, and explain nothing."""
    files, useful_files = trace.captures, set(sources["source"])
    others = [
        (capture.path, UNLIKE) for capture in files.traces if _short_path(trace, capture.path) not in useful_files
    ]
    rows = [
        (_short_path(trace, path), LEFT_OUT, 0, 0, 0.0, None, reason)
        for path, reason in (*files.damaged, *files.unused, *others)
    ]
    return pl.DataFrame(rows, schema=sources.schema, orient="row")


def _file(trace: Trace, capture: int) -> str:
    return THIS if capture == NONE else _short_path(trace, trace.captures.traces[capture].path)


def _short_path(trace: Trace, path: str) -> str:
    """A path relative to the trace's folder where it lies below it; else its name."""
    parent = trace.path[: len(trace.path) - len(last_part(trace.path))]
    return printable(path[len(parent) :] if parent and path.startswith(parent) else last_part(path))


VIEW = View(
    graph_captures,
    table=GraphCaptures,
    title="Captures of graphs",
    entry="Kernels",
    needs=has_graphs,
    hint="No CUDA or HIP graph was launched during the recording.",
    place=Part("graphs"),
    within="recording",
    reads_captures=True,
)
