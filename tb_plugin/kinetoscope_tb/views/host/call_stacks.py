"""Call stacks: the places in the program that called an operator (measures/python/call_stacks.py)."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE
from ...measures.calls.op_calls import OpCosts, OpName, operator_rows, operator_table
from ...measures.graphs.attribution import recorded_events
from ...measures.python.call_stacks import Stacks
from ...measures.recording.contents import has_stacks
from ...table import BOOL, STACK, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Detail, Slices, View

MOST_STACKS = 1000
OTHERS = "[other stacks]"


class CallStacks(Table):
    """From which call stacks operators were called.

    `[other stacks]` are those with the least time, if there are more than a thousand.
    """

    key, weight = ("name", "stack", "is_forward_stack"), "device_self_ns"

    name = OpName.name
    stack = Column(STACK, "Frames from the innermost to the outermost, one per line; missing if none were recorded.")
    is_forward_stack = Column(BOOL, "Whether the frames are those of its forward operator.")
    calls = OpCosts.calls
    device_self_ns = OpCosts.device_self_ns
    device_total_ns = OpCosts.device_total_ns
    host_self_ns = OpCosts.host_self_ns
    host_total_ns = OpCosts.host_total_ns
    host_self_bytes = OpCosts.host_self_bytes
    device_self_bytes = OpCosts.device_self_bytes


AMOUNTS = [column.name for column in CallStacks.columns[3:]]


def call_stacks(trace: Trace, *, name: str | None = None, input_shapes: str | None = None) -> pl.DataFrame:
    """Stacks by device self time, then host self time.

    Args:
        trace: The trace.
        name: One operator; all of them if not given.
        input_shapes: Only its calls with these shapes; all calls if not given.
    """
    stacks = Stacks.of(trace)
    host = trace.all_host_events.with_columns(number=stacks.number)
    rows = operator_table(trace, ["name", "input_shapes", "number"], host)
    for column, requested_value in (("name", name), ("input_shapes", input_shapes)):
        rows = rows if requested_value is None else rows.filter(pl.col(column) == requested_value)
    rows = _sums(rows, ["name", "number"])
    largest, others = rows.head(MOST_STACKS), rows.tail(-MOST_STACKS)
    number = largest["number"].cast(pl.Int32).fill_null(NONE).to_numpy()
    frames = pl.DataFrame(
        {"stack": stacks.texts(number), "is_forward_stack": [bool(n % 2) if n >= 0 else None for n in number.tolist()]},
        schema={"stack": pl.String, "is_forward_stack": pl.Boolean},
    )
    largest = _sums(
        pl.concat([largest.drop("number"), frames], how="horizontal"), ["name", "stack", "is_forward_stack"]
    )
    rest = others.select(pl.lit(OTHERS if name is None else name).alias("name"), *AMOUNTS)
    rest = _sums(rest, ["name"]).with_columns(stack=pl.lit(OTHERS))
    return CallStacks.of(pl.concat([largest, rest], how="diagonal").select(CallStacks.schema().names()))


def _sums(rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """The sums of each group; missing if all values are missing."""
    sums = [pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum()) for name in AMOUNTS]
    order = ["device_self_ns", "host_self_ns", *by]
    return rows.group_by(by).agg(sums).sort(order, descending=[True, True, *(False for _ in by)], nulls_last=True)


def events_of_row(trace: Trace, key: Key) -> Events:
    """The calls of the operator from this stack, in this direction; of replayed ones the device work."""
    rows, stacks = operator_rows(trace, name=key["name"]), Stacks.of(trace)
    number = stacks.number[rows]
    numbers = np.unique(number)
    is_so = [
        text == key["stack"] and (None if n < 0 else bool(n % 2)) == key["is_forward_stack"]
        for n, text in zip(numbers.tolist(), stacks.texts(numbers), strict=True)
    ]
    return recorded_events(trace, {"host_events": rows[np.isin(number, numbers[np.array(is_so, bool)])]})


VIEW = View(
    call_stacks,
    table=CallStacks,
    title="Call stacks",
    entry="Operators",
    place=Detail("operators", also=("operators_by_shape",)),
    needs=has_stacks,
    hint="No call stacks were recorded. Pass with_stack=True to the profiler.",
    option="with_stack",
    slices=Slices(events_of_row, "A detail of the row of its operator."),
    reads_captures=True,
)
