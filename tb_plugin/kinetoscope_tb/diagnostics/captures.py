"""What says what a trace's graphs launch, for how much of their time, or would record it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..filesystem import last_part, printable
from ..measures.graphs.join import join
from ..measures.graphs.replayed_kernels import nodes_of
from ..measures.graphs.replays import replays
from ..measures.recording.server import how_to_record_captures, inference_server
from ..names.text import percent
from ..trace import Diagnostic, Trace

_MOST_NAMED = 3  # files
_HARDLY_ANY = 0.001  # of the time


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """The share of the time in graphs whose operators are known, where captures were searched."""
    files, replay = trace.captures, replays(trace)
    yield from _damages(files.damaged)
    duration = trace.device_events["dur_ns"].gather(replay.rows).to_numpy()
    if not duration.sum():
        return
    graphs = join(trace)
    share = duration[nodes_of(graphs, replay)[0] >= 0].sum() / duration.sum()
    launches = f"{replay.launch.size} graph launches replay" if replay.launch.size > 1 else "1 graph launch replays"
    what = f"{launches} {duration.size} kernels, copies and fills"
    if share < _HARDLY_ANY:
        yield _no_explanation(trace, what, replay.rows, int(replay.launch.size))
        return
    captures = {source.capture for source in graphs.sources if source.capture >= 0}
    names = _first_of([printable(last_part(files.traces[capture].path)) for capture in sorted(captures)])
    yield Diagnostic(
        "graphs_explained",
        int(replay.launch.size),
        f"{what}. {names or 'This recording itself'} says which operators these are, for {percent(share)} of their "
        "time. Their operators, shapes and modules are from there.",
        level="note",
    )


def _no_explanation(trace: Trace, what: str, rows: NDArray[np.int64], launches: int) -> Diagnostic:
    """That nothing says which operators the replayed rows of device_events are of."""
    has_operator = bool((trace.device_events["op"].gather(rows) >= 0).any())
    so = (
        "they count for the operator that launched the graph, without shapes or modules of their own"
        if has_operator
        else "they have no operator, shape or module"
    )
    where = " The view Captures of graphs says why files next to it don't fit." if trace.captures.unused else ""
    return Diagnostic(
        "graphs_unexplained",
        launches,
        f"{what}, and no recording says which operators these are: {so}.{where} "
        f"{how_to_record_captures(inference_server(trace))}",
        level="note",
    )


def _damages(files: Sequence[tuple[str, str]]) -> Iterator[Diagnostic]:
    if files:
        problems = _first_of([f"{printable(last_part(path))} ({problem.rstrip('.')})" for path, problem in files])
        yield Diagnostic(
            "captures_damaged",
            len(files),
            f"Files next to the trace that may say what its graphs launch can't be read: {problems}. They are left "
            "out; the recording itself is whole.",
        )


def _first_of(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else "")
