"""What the host spends its steps on where no device was recorded: each instant counts for one of HOST_PARTS.

An instant belongs to the first of these that applies:
* compiling: torch.compile compiles, on any thread;
* collecting: Python collects garbage, on the main thread;
* starting: the main thread starts a DataLoader's workers;
* loading: the main thread waits for a DataLoader's batch;
* communicating: a collective or a transfer is open, on any thread, and no innermost operator computes;
* operators: an outermost operator of SMALL_OP_NS or more runs, on any thread;
* breaking: a compiled frame is between its graphs, behind a graph break;
* waiting: the main thread is in a call of Python that waits: for a lock, a thread, a file;
* calling: a smaller operator runs; or none does for no more than BETWEEN_OPS_NS, as Python calls the next one, or
  for however long autograd's engine, which is C++, goes from one to the next;
* rest: nothing of these was recorded for longer than that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories
from ...arrays.intervals import Intervals, Ints, exclusive_lengths, merge, without
from ...arrays.nesting import nearest
from ...names.compiled_code import is_compilation, is_compiled_region
from ...names.python_frames import collects_garbage, describe_wait, runs_backward, starts_workers
from ...trace.model import Trace
from ...trace.row_filters import is_operator, name_mask
from .breakdown import intervals_of, loading_ranges
from .exposure import exposed_on_host
from .graph_breaks import find_graph_breaks
from .idle import Windows
from .threads import main_thread

HOST_PARTS = (
    "compiling",
    "collecting",
    "starting",
    "loading",
    "communicating",
    "operators",
    "breaking",
    "waiting",
    "calling",
    "rest",
)
SMALL_OP_NS = 20_000
"""An operator that is called for less spends most of it on being called: dispatch and autograd take 2 to 10 µs."""
BETWEEN_OPS_NS = 200_000
"""Python reaches the next operator within tens of µs; a longer time between two goes into something else."""


class HostTime(NamedTuple):
    """The parts of the steps.

    Attributes:
        thread: The main thread: a row of `threads`, or NONE if no thread ran anything.
        lengths: How long each of HOST_PARTS lasts in each step; together they are the step.
        spans: When each of HOST_PARTS but the last is active, overlaps included, and when the last one is.
        is_large: Whether each host event is an operator that counts for `operators`, or is inside one.
    """

    thread: int
    lengths: dict[str, Ints]
    spans: dict[str, Intervals]
    is_large: NDArray[np.bool_]

    @classmethod
    def of(cls, trace: Trace, windows: Windows) -> HostTime:
        """Divide the steps."""
        host, python, thread = trace.host_events, trace.python_calls, main_thread(trace)
        on_main = (host["thread"] == thread).to_numpy()
        loads, compiles = loading_ranges(trace), name_mask(host["name"], is_compilation)
        communicates = host["is_communication"].to_numpy()
        parent = host["parent"].to_numpy()
        is_op = is_operator(trace) & ~(loads | communicates)
        is_op &= nearest(compiles, parent) == NONE
        is_op &= ~name_mask(host["name"], is_compiled_region)  # it holds operators, and what lies between them
        outermost = is_op & (gather(nearest(is_op, parent), parent) == NONE)
        is_long = outermost & (host["dur_ns"] >= SMALL_OP_NS).to_numpy()
        on_python = (python["thread"] == thread).to_numpy()
        groups = [
            intervals_of(host, compiles),
            merge([_matching(python, on_python, collects_garbage), _matching(trace.others, None, collects_garbage)]),
            _matching(python, on_python, starts_workers),
            intervals_of(host, loads & on_main),
            exposed_on_host(trace),
            intervals_of(host, is_long),
            find_graph_breaks(trace).between,
            _matching(python, on_python, lambda frame: bool(describe_wait(frame))),
        ]
        small = intervals_of(host, outermost & ~is_long)
        steps = windows.start, windows.end
        between = without(merge([steps]), merge([*groups, small]))
        is_short = between[1] - between[0] <= BETWEEN_OPS_NS
        long = without((between[0][~is_short], between[1][~is_short]), _engine(python, on_python))
        groups += [merge([small, without(between, long)])]
        lengths = map(np.asarray, exclusive_lengths(groups, *steps))
        spans = [*groups, long]
        is_large = nearest(is_long, parent) != NONE
        return cls(
            thread,
            dict(zip(HOST_PARTS, lengths, strict=True)),
            dict(zip(HOST_PARTS, spans, strict=True)),
            is_large,
        )


def _engine(python: pl.DataFrame, on_python: NDArray[np.bool_]) -> Intervals:
    """When a thread is in autograd's engine, and in no function of Python that this calls."""
    runs = map_categories(python["name"], runs_backward) & on_python
    is_callee = gather(runs, python["parent"].to_numpy(), missing=False)
    return without(intervals_of(python, runs), intervals_of(python, is_callee))


def _matching(frame: pl.DataFrame, where: NDArray[np.bool_] | None, answer: Callable[[str], bool]) -> Intervals:
    is_meant = map_categories(frame["name"], answer)
    return intervals_of(frame, is_meant if where is None else is_meant & where)
