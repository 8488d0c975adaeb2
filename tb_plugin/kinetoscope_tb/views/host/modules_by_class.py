"""Modules by class: the cost of all modules of a class together.

A module nested in another one of its class counts once in the totals. Totals of classes overlap if one calls the other,
so they don't add up; self times do.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import scatter_add
from ...measures.calls.call_tree import outermost
from ...measures.calls.module_calls import ModuleCalls
from ...measures.calls.module_times import ModuleCosts, ModuleTimes, module_amounts, rest_rows
from ...measures.graphs.attribution import recorded_events
from ...measures.recording.contents import has_modules
from ...pictures import Bars
from ...table import COUNT, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Slices, Tab, View


class _Class(Table):
    """Classes of modules."""

    name = Column(TEXT, "Class of the modules.")
    instances = Column(COUNT, "Number of modules of the class that were called.")


class ModulesByClass(ModuleCosts, _Class):
    """Which classes of modules use host and device time.

    `[outside modules]` is the work of operators outside modules, `[unattributed]` is device time that neither a module
    nor a recorded operator launched.
    """

    key, weight = ("name",), "device_self_ns"
    picture = Bars(("device_self_ns", "host_self_ns"))  # no totals: those of classes overlap


def modules_by_class(trace: Trace) -> pl.DataFrame:
    """Classes by device self time, then host self time."""
    module_calls = ModuleCalls.of(trace)
    times = ModuleTimes.of(trace, module_calls)
    tree = module_calls.tree
    names = pl.Series([name.of_class or name.label for name in module_calls.names], dtype=pl.String)
    classes = names.unique(maintain_order=True)
    class_number = {name: number for number, name in enumerate(classes)}
    group = np.array([class_number[name] for name in names], np.int32)
    is_outermost = outermost(tree.parent, tree.preorder(), group, classes.len())
    amounts = module_amounts(
        times,
        lambda own: scatter_add(group, tree.with_inner(own) * is_outermost, classes.len()),
        lambda own: scatter_add(group, own, classes.len()),
    )
    modules_of = pl.DataFrame({"group": group, "module": tree.code}).group_by("group").n_unique().sort("group")
    rows = pl.DataFrame(
        {
            "name": classes,
            "instances": modules_of["module"],
            "calls": scatter_add(group, module_calls.calls, classes.len()),
            **amounts,
        },
        schema_overrides=ModulesByClass.schema(),
    )
    rows = pl.concat([rows, pl.DataFrame(rest_rows(times), schema=ModulesByClass.schema())], how="diagonal")
    order = ["device_self_ns", "host_self_ns", "name"]
    rows = rows.sort(order, descending=[True, True, False], nulls_last=True)
    return ModulesByClass.of(rows.select(ModulesByClass.schema().names()))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The calls of the modules of this class."""
    module_calls = ModuleCalls.of(trace)
    is_so = [(name.of_class or name.label) == key["name"] for name in module_calls.names]
    return recorded_events(trace, module_calls.events_of(is_so))


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The class of a module's call."""
    module_calls = ModuleCalls.of(trace)
    node = module_calls.node_of(trace, frame, row)
    return {"name": module_calls.names[node].of_class or module_calls.names[node].label} if node >= 0 else None


VIEW = View(
    modules_by_class,
    table=ModulesByClass,
    title="Modules by class",
    entry="Modules",
    place=Tab("Classes"),
    needs=has_modules,
    hint="No calls of modules were recorded. Pass with_stack=True to the profiler: torch records them with stacks.",
    option="with_stack",
    slices=Slices(events_of_row, row_of),
    reads_captures=True,
)
