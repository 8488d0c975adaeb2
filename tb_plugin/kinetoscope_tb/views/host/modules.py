"""Modules: host and device time of each `nn.Module`, as a call tree.

Calls of the same module from the same place are one row. Self is without nested modules, total is with them, so self
times add up, and a row's total is its self time plus the totals of its children. The backward work of a module's
operators counts for the module too, wherever it ran; the operator table counts it for the backward operators.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather
from ...measures.calls.call_tree import Rows
from ...measures.calls.module_calls import ModuleCalls
from ...measures.calls.module_times import ModuleCosts, ModuleTimes, module_amounts, rest_rows
from ...measures.graphs.attribution import recorded_events
from ...measures.recording.contents import has_modules
from ...pictures import Tree
from ...table import ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Slices, Tab, View


class _Path(Table):
    """Paths of modules."""

    attribute = Column(TEXT, "Its path in the model, if Lightning recorded it.")
    path = Column(TEXT, "Path of modules from the outermost to itself.")
    parent_row = Column(ID, "Row of its parent module, counted from 0; missing at the root.")


class _Name(Table):
    """Names of modules."""

    name = Column(TEXT, "Class of the module and its number within the class, as the profiler counts them.")


class Modules(_Path, ModuleCosts, _Name):
    """Which modules use host and device time, by their place in the call tree.

    `[outside modules]` is the work of operators outside modules, `[unattributed]` is device time that neither a module
    nor a recorded operator launched.
    """

    key, weight = ("path",), "device_total_ns"
    picture = Tree(
        "parent_row",
        widths=("host_total_ns", "forward_device_ns", "backward_device_ns", "forward_host_ns", "backward_host_ns"),
        is_in_order=True,
    )


def modules(trace: Trace) -> pl.DataFrame:
    """The tree in the order of the calls, then the work outside modules."""
    module_calls = ModuleCalls.of(trace)
    times = ModuleTimes.of(trace, module_calls)
    tree, order = module_calls.tree, module_calls.tree.preorder()
    names, paths = [module_calls.names[node] for node in order], module_calls.paths()
    amounts = module_amounts(times, lambda own: tree.with_inner(own)[order], lambda own: own[order])
    rows = pl.DataFrame(
        {
            "name": [name.label for name in names],
            "calls": module_calls.calls[order],
            **amounts,
            "attribute": [name.attribute for name in names],
            "path": [paths[node] for node in order],
            "parent_row": gather(_rows_of_nodes(order), tree.parent[order]),
        },
        schema_overrides=Modules.schema(),
    )
    rest = pl.DataFrame([{**row, "path": row["name"]} for row in rest_rows(times)], schema=Modules.schema())
    rows = pl.concat([rows.with_columns(pl.col("parent_row").replace(NONE, None)), rest], how="diagonal")
    return Modules.of(rows.select(Modules.schema().names()))


def _rows_of_nodes(order: Rows) -> Rows:
    """The row of each node."""
    row = np.empty(order.size, np.int32)
    row[order] = np.arange(order.size)
    return row


def events_of_row(trace: Trace, key: Key) -> Events:
    """The calls of the modules with this path."""
    module_calls = ModuleCalls.of(trace)
    return recorded_events(trace, module_calls.events_of([path == key["path"] for path in module_calls.paths()]))


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The path of a module's call."""
    module_calls = ModuleCalls.of(trace)
    node = module_calls.node_of(trace, frame, row)
    return {"path": module_calls.paths()[node]} if node >= 0 else None


VIEW = View(
    modules,
    table=Modules,
    title="Modules",
    entry="Modules",
    place=Tab("Tree"),
    needs=has_modules,
    hint="No calls of modules were recorded. Pass with_stack=True to the profiler: torch records them with stacks.",
    option="with_stack",
    slices=Slices(events_of_row, row_of),
    reads_captures=True,
)
