"""Modules: what each `nn.Module` cost the host and the device, as the tree in which they call each other.

Calls of the same module from the same place are one row. Self is without the modules inside, total is with them, so
self times add up, and a row's total is its self time and the totals of the rows in it. The backward work of a module's
operators is counted for the module too, wherever it ran: in addition to the operator table, which stays as it is.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather
from ...measures.calls.call_tree import Rows
from ...measures.calls.module_calls import ModuleCalls
from ...measures.calls.module_times import ModuleCosts, ModuleTimes, module_amounts, rest_rows
from ...pictures import Tree
from ...table import ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Listed, Slices, View


class _Path(Table):
    """One row is one path of modules."""

    attribute = Column(TEXT, "Where it stands in the model, if Lightning recorded it.")
    path = Column(TEXT, "The modules around it, from the outermost, and itself.")
    parent_row = Column(ID, "Row of the module around it, counted from 0; missing if there is none.")


class _Name(Table):
    """One row is one module."""

    name = Column(TEXT, "Class of the module and its number among those of this class, as the profiler counts them.")


class Modules(_Path, ModuleCosts, _Name):
    """One row is one module, called from one place.

    `[outside modules]` is the work of operators in no module, `[unattributed]` the device time that neither a module
    nor a recorded operator launched.
    """

    key, weight = ("path",), "device_total_ns"
    picture = Tree(
        "parent_row",
        widths=("host_total_ns", "forward_device_ns", "backward_device_ns", "forward_host_ns", "backward_host_ns"),
    )


def modules(trace: Trace) -> pl.DataFrame:
    """The tree in the order of the calls, then what belongs to no module."""
    found = ModuleCalls.of(trace)
    times = ModuleTimes.of(trace, found)
    tree, order = found.tree, found.tree.preorder()
    names, paths = [found.names[node] for node in order], found.paths()
    amounts = module_amounts(times, lambda own: tree.with_inner(own)[order], lambda own: own[order])
    rows = pl.DataFrame(
        {
            "name": [name.shown for name in names],
            "calls": found.calls[order],
            **amounts,
            "attribute": [name.attribute for name in names],
            "path": [paths[node] for node in order],
            "parent_row": gather(_places(order), tree.parent[order]),
        },
        schema_overrides=Modules.schema(),
    )
    rest = pl.DataFrame([{**row, "path": row["name"]} for row in rest_rows(times)], schema=Modules.schema())
    rows = pl.concat([rows.with_columns(pl.col("parent_row").replace(NONE, None)), rest], how="diagonal")
    return Modules.of(rows.select(Modules.schema().names()))


def _places(order: Rows) -> Rows:
    """The row of each node."""
    place = np.empty(order.size, np.int32)
    place[order] = np.arange(order.size)
    return place


def events_of_row(trace: Trace, key: Key) -> Events:
    """The calls of the modules with this path."""
    found = ModuleCalls.of(trace)
    return found.events_of([path == key["path"] for path in found.paths()])


VIEW = View(
    modules,
    table=Modules,
    title="Modules",
    group="Host",
    needs="modules",
    hint="No calls of modules were recorded. Pass with_stack=True to the profiler: torch writes them with the stacks.",
    place=Listed("Tree"),
    slices=Slices(events_of_row),
)
