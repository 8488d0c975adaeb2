"""Operators by the shapes of their inputs.

Shapes are as the profiler wrote them: one list per argument, an empty one for non-tensors.
"""

from __future__ import annotations

import polars as pl

from ...measures.calls.op_calls import OpCosts, OpName, OpShapes, operator_events, operator_table, row_of_operator
from ...measures.recording.contents import has_input_shapes
from ...pictures import Bars
from ...trace import Trace
from ...view import Slices, Tab, View


class OperatorsByShape(OpCosts, OpShapes, OpName):
    """Which operators use host and device time, by input shapes."""

    key, weight = ("name", "input_shapes"), "device_self_ns"
    # No totals: those of nested operators overlap.
    picture = Bars(("device_self_ns", "host_self_ns"))


def operators_by_shape(trace: Trace) -> pl.DataFrame:
    """Operators and shapes by device self time, then host self time."""
    return OperatorsByShape.of(operator_table(trace, ["name", "input_shapes"]))


VIEW = View(
    operators_by_shape,
    table=OperatorsByShape,
    title="Operators by shape",
    entry="Operators",
    place=Tab("Shapes"),
    needs=has_input_shapes,
    hint="Shapes of inputs weren't recorded. Pass record_shapes=True to the profiler.",
    option="record_shapes",
    slices=Slices(operator_events, row_of_operator, category="Operator"),
    reads_captures=True,
)
