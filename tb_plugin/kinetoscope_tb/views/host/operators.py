"""Operators: which PyTorch operators took the host's and the device's time.

*Self* is an operator's own work, *total* includes the operators that it called. Totals of nested operators overlap, so
they don't add up; self times do. `operators_by_shape` splits each operator by the shapes of its inputs.
"""

from __future__ import annotations

import polars as pl

from ...measures.calls.op_calls import OpCosts, OpName, operator_events, operator_table, row_of_operator
from ...measures.recording.contents import has_operators
from ...pictures import Bars
from ...trace import Trace
from ...view import Slices, View


class Operators(OpCosts, OpName):
    """Which operators use host and device time; `[unattributed]` is device time that no recorded operator launched."""

    key, weight = ("name",), "device_self_ns"
    # No totals: those of nested operators overlap.
    picture = Bars(("device_self_ns", "host_self_ns"))


def operators(trace: Trace) -> pl.DataFrame:
    """Operators by device self time, then host self time."""
    return Operators.of(operator_table(trace, ["name"]))


VIEW = View(
    operators,
    table=Operators,
    title="Operators",
    entry="Operators",
    needs=has_operators,
    hint="No operators were recorded. Pass activities=[ProfilerActivity.CPU, …] to the profiler.",
    slices=Slices(operator_events, row_of_operator, category="Operator"),
    reads_captures=True,
)
