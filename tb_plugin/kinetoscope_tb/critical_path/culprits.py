"""Who is on the critical path: its segments, each cut where its culprit changes.

On a device the culprit is the kernel or copy, in an operator or a runtime call that one. Elsewhere on the host, and
while data loads, it is what the thread did: the innermost of its Python functions and ranges. The ranges of steps say
nothing about that, so they are never a culprit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather, number_alike
from ..arrays.intervals import union
from ..measures.time.host_stack import FRAMES, KINDS, HostStack
from ..trace import Trace
from ..trace.results import once_per_trace
from .classes import BETWEEN, CLASSES, LOADING
from .explanation import path_explanation
from .names import NAMELESS, Names, Places

Codes = NDArray[np.int8]
Rows = NDArray[np.int32]

CAUSES = (
    *("kernel", "communication", "copy", "launch", "between_kernels", "unexplained"),
    *("data", "communication", "host_operator", "launch", "host_sync", "host_unrecorded"),
)
"""The cause that each class of the path is; of code outside of operators and calls where nothing is recorded."""
_HOST_CODE = ("host_python", "host_python", "host_operator", "host_annotation", "launch")
"""The cause of code that is outside of operators and calls by torch's account, for each kind of row of the stack."""

WHO = ["cause", "name", "source"]
"""The columns that tell culprits apart."""

PIECES = {
    "segment": pl.Int64,  # a row of the path
    "step": pl.Int32,  # a row of `steps`
    "dur_ns": pl.Int64,
    "culprit": pl.Int64,  # a row of `who`
    "python_call": pl.Int32,  # the row of python_calls that runs, or NONE
    "host_event": pl.Int32,  # the row of host_events that runs, or NONE
}
"""One row is one piece of a segment with one culprit. Order: segment, time."""


@dataclass(frozen=True)
class PathCulprits:
    """The pieces of the path (PIECES) and their culprits.

    Attributes:
        pieces: The pieces; those of a segment add up to it.
        who: WHO of each culprit. The source is file, line and name of the innermost Python function around it that
            belongs to the program, or null.
    """

    pieces: pl.DataFrame
    who: pl.DataFrame


@once_per_trace
def path_culprits(trace: Trace) -> PathCulprits:
    """The culprits on the critical paths of all steps: computed at the first call and cached with the trace."""
    path = path_explanation(trace).path
    part, thread, start, end = (path[name].to_numpy() for name in ("class", "thread", "start_ns", "end_ns"))
    is_code = np.isin(part, (LOADING, BETWEEN)) & (thread != NONE)
    events, code = np.flatnonzero(~is_code), np.flatnonzero(is_code)
    stack = HostStack.of(trace, np.unique(thread[code]), union(start[code], end[code]))
    activity = stack.pieces(thread[code], start[code], end[code])
    segment = np.concatenate([events, code[activity.interval]])
    who, culprit = _culprits(trace, path[events], stack, part[code[activity.interval]], activity.row)
    no_row: Rows = np.full(events.size, NONE, np.int32)
    python, host = (np.concatenate([no_row, _rows_of(stack, frame, activity.row)]) for frame in FRAMES[:2])
    dur = np.concatenate([(end - start)[events], activity.end - activity.start])
    columns = (segment, path["step"].to_numpy()[segment], dur, culprit, python, host)
    pieces = pl.DataFrame(dict(zip(PIECES, columns, strict=True)), schema=PIECES)
    return PathCulprits(pieces.sort("segment", maintain_order=True), who)


def _culprits(
    trace: Trace, events: pl.DataFrame, stack: HostStack, part: Codes, row: Rows
) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """The culprits of segments with an event, then of pieces of host code: WHO, and the row of each there."""
    names, own = Names.of(trace), events["class"].to_numpy()
    name_of_event = names.merged_names(Places.of_path(events))
    number, descriptions = stack.descriptions(trace)
    first_event, event = number_alike((name_of_event + 1) * np.int64(len(CLASSES)) + own)
    first_code, code = number_alike((gather(number, row) + 1) * np.int64(len(CLASSES)) + part)
    of_events = pl.DataFrame(
        {
            "cause": pl.Series(CAUSES).gather(own[first_event]),
            "name": names.text(name_of_event[first_event]).fill_null(NAMELESS),
            "source": pl.Series([None] * first_event.size, dtype=pl.String),
        }
    )
    stack_row = pl.Series(gather(number, row[first_code]).astype(np.int64)).replace(NONE, None)
    of_code = _code(names, stack, descriptions.select(pl.all().gather(stack_row)), part[first_code], row[first_code])
    who = pl.concat([of_events, of_code])
    distinct = who.unique(maintain_order=True).with_row_index("culprit")
    culprit = who.join(distinct, WHO, nulls_equal=True, maintain_order="left")["culprit"].cast(pl.Int64).to_numpy()
    return distinct.select(WHO), culprit[np.concatenate([event, code + first_event.size])]


def _code(names: Names, stack: HostStack, descriptions: pl.DataFrame, part: Codes, row: Rows) -> pl.DataFrame:
    """WHO of pieces of host code, by what the thread did; annotations without the numbers of steps and iterations."""
    annotation = names.text(gather(names.merged, gather(names.event, _rows_of(stack, "host_events", row))))
    of_kind = pl.col("kind").replace_strict(KINDS, _HOST_CODE, default="host_unrecorded", return_dtype=pl.String)
    return descriptions.with_columns(annotation=annotation, is_loading=pl.Series(part == LOADING)).select(
        cause=pl.when("is_loading").then(pl.lit("data")).otherwise(of_kind),
        name=pl.coalesce("annotation", "host", pl.lit(NAMELESS)),
        source="source",
    )


def _rows_of(stack: HostStack, frame: str, row: Rows) -> Rows:
    """The rows of one of the stack's frames, or NONE."""
    is_of_frame = gather(stack.frame == FRAMES.index(frame), row, missing=False)
    return np.where(is_of_frame, gather(stack.row, row), NONE).astype(np.int32)
