"""Top kernels and operators: what takes most time in the steps, who launches it, and which module it belongs to.

Only the complete steps count, as in `overview`; without marked steps, the whole recording.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather_column
from ...measures.calls.kernel_calls import kernel_table
from ...measures.calls.op_calls import module_classes, operator_events, operator_table
from ...measures.recording.contents import has_kernels, has_modules, has_operators, has_work
from ...measures.time.step_subset import belongs_to_steps, counted_steps, rows_of_steps
from ...names.kernels import is_collective_call
from ...table import BOOL, COUNT, DURATION, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, rows_where
from ...view import Part, Slices, View

MOST_ROWS = 8
_NOTABLE = 0.005  # of the recording's device time: smaller parts don't show in three digits


class Top(Table):
    """The kernels and the operators that take most time per step: the first 8 of each."""

    key, weight = ("kind", "name"), "mean_ns"

    kind = Column(TEXT, "kernel, or operator.")
    name = Column(TEXT, "Symbol of the kernel, or name of the operator.")
    owner = Column(
        TEXT,
        "Of a kernel: the operator that launches most of its time, or the runtime call outside of any operator, such "
        "as cudaGraphLaunch. Of an operator: the class of the module that most of its time belongs to. Missing if most "
        "of it has none that was recorded.",
    )
    is_communication = Column(BOOL, "Whether it moves data between ranks.")
    other_owners = Column(COUNT, "How many other operators and calls launch it, or modules call it.")
    calls = Column(COUNT, "Number of calls in the complete steps.")
    mean_ns = Column(
        DURATION,
        "Time per complete step: of a kernel, the sum of its calls; of an operator, its device self time, or its host "
        "self time where these steps have no work on a device.",
    )
    share_frac = Column(FRACTION, "The same / that of all kernels, or of all operators.")
    measure = Column(
        TEXT,
        "What mean and share are of: kernel time, device time (copies and fills too), or host time; `launched` if code "
        "outside of the steps launched more than 0.5 % of the recording's.",
    )
    whole_ns = Column(DURATION, "Time per complete step of all kernels, or of all operators.")


def top(trace: Trace) -> pl.DataFrame:
    """Kernels, then operators, each by time."""
    numbers = counted_steps(trace)
    steps = rows_of_steps(trace, numbers)
    tables, is_kernel = [pl.DataFrame(schema=Top.schema())], pl.col("kind") == "kernel"
    if has_kernels(steps):
        rows = kernel_table(steps, [pl.col("name")]).rename({"total_ns": "time_ns"})
        measure = _measure("kernel time", trace.device_events.filter(is_kernel), steps.device_events.filter(is_kernel))
        tables.append(_first("kernel", measure, rows, _launchers(steps), len(numbers)))
    if has_operators(steps):
        side = "host" if steps.device_events.is_empty() else "device"
        rows = operator_table(steps, ["name"]).rename({f"{side}_self_ns": "time_ns"})
        is_communication = [is_collective_call(name) for name in rows["name"]]
        rows = rows.with_columns(is_communication=pl.Series(is_communication, dtype=pl.Boolean))
        measure = _measure(f"{side} time", trace.device_events, steps.device_events)
        tables.append(_first("operator", measure, rows, _modules(steps), len(numbers)))
    return Top.of(pl.concat(tables))


def _measure(name: str, whole: pl.DataFrame, in_steps: pl.DataFrame) -> str:
    """What mean and share are of; `launched` where something else launched a notable part of the recording's."""
    is_apart = int(in_steps["dur_ns"].sum()) < (1 - _NOTABLE) * int(whole["dur_ns"].sum())
    return f"{name} launched" if is_apart and in_steps.height else name


def _first(kind: str, measure: str, rows: pl.DataFrame, owners: pl.DataFrame, steps: int) -> pl.DataFrame:
    """The rows with the most time, each with the owner of most of it."""
    whole = int(rows["time_ns"].sum())
    rows = rows.filter(pl.col("time_ns") > 0)
    largest = rows.sort("time_ns", "name", descending=[True, False]).head(MOST_ROWS)
    by_time = owners.sort("spent", "owner", descending=[True, False], nulls_last=True)
    others = pl.col("owner").slice(1).drop_nulls().len().cast(pl.Int64)
    sums = by_time.group_by("name").agg(pl.col("owner").first(), other_owners=others)
    table = largest.select("name", "calls", "time_ns", "is_communication").join(
        sums, "name", how="left", maintain_order="left"
    )
    return table.with_columns(
        kind=pl.lit(kind),
        mean_ns=(pl.col("time_ns") / steps).round().cast(pl.Int64),
        share_frac=pl.col("time_ns") / whole,
        measure=pl.lit(measure),
        whole_ns=pl.lit(round(whole / steps), pl.Int64),
    ).select(Top.schema().names())


def _launchers(trace: Trace) -> pl.DataFrame:
    """How long each kernel ran for each operator, or call, that launched it; null: none was recorded."""
    columns = trace.device_events.select("kind", "name", "dur_ns", "op", "launch").filter(pl.col("kind") == "kernel")
    operator = trace.all_host_events["name"].gather(columns["op"].replace(NONE, None))
    call = trace.launches["name"].gather(columns["launch"].replace(NONE, None))
    rows = columns.select("name", "dur_ns", operator=operator, call=call)
    sums = rows.group_by("name", "operator", "call").agg(spent=pl.col("dur_ns").sum())
    texts = sums.select("spent", pl.col("name", "operator", "call").cast(pl.String))
    owners = texts.group_by("name", owner=pl.coalesce("operator", "call")).agg(pl.col("spent").sum())
    return owners.select("name", "owner", "spent")


def _modules(trace: Trace) -> pl.DataFrame:
    """How long each operator's own device work, or host time, lasted for each class of module; null: outside of any."""
    schema = {"name": pl.String, "owner": pl.String, "spent": pl.Int64}
    if not has_modules(trace):
        return pl.DataFrame(schema=schema)
    node, classes = module_classes(trace)
    host, device = trace.all_host_events, trace.device_events
    op, time_ns = device["op"].to_numpy(), device["dur_ns"].to_numpy()
    if device.is_empty():
        op, time_ns = np.arange(host.height), host["self_ns"].to_numpy()
    has_op = op != NONE
    op, time_ns = op[has_op], time_ns[has_op]
    of_module = pl.Series(classes, dtype=pl.Enum(sorted({name for name in classes if name is not None})))
    owner = gather_column(of_module, node[op])
    rows = pl.DataFrame({"name": host["name"].gather(op), "owner": owner, "spent": time_ns})
    sums = rows.group_by("name", "owner").agg(pl.col("spent").sum())
    return sums.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def events_of_row(trace: Trace, key: Key) -> Events:
    """The calls of the kernel or the operator in the complete steps; of calls that graphs replay the device work."""
    if key["kind"] == "kernel":
        events: Events = {"device_events": rows_where(trace.device_events, **key)}
    else:
        events = operator_events(trace, {"name": key["name"]})
    steps = counted_steps(trace)
    return {frame: rows[belongs_to_steps(trace, frame, steps)[rows]] for frame, rows in events.items()}


VIEW = View(
    top,
    table=Top,
    title="Top kernels and operators",
    entry="Overview",
    within="recording",
    needs=has_work,
    hint="The trace has no kernels and no operators. Pass ProfilerActivity.CPU and the device's activity.",
    place=Part("overview"),
    slices=Slices(events_of_row, "An excerpt of the kernels and operators, whose own views a slice leads to."),
    reads_captures=True,
)
