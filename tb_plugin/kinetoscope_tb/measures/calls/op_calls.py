"""Calls of operators and their host and device costs, self and total.

A call that only wraps one call of the same name is one call (`is_repeat`); the inner one's own work counts for the
outer one. Device time and memory belong to the innermost operator that was open at their launch or allocation.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, category_codes, factorize, fraction, gather, map_categories, scatter_add
from ...arrays.nesting import add_up, nearest, nearest_alike
from ...names.tensor_cores import is_matrix_op
from ...table import BOOL, BYTES, COUNT, DURATION, FRACTION, TEXT, Column, Table
from ...trace.model import Trace
from ...trace.row_filters import Events, Key, calls_of_event, rows_where, values_at
from ..graphs.attribution import SOURCES, joined_sources, provenance, provenance_doc, recorded_events
from ..memory.levels import CPU, OUT_OF_MEMORY
from ..recording.contents import has_modules
from .call_tree import Rows
from .launch_outcomes import launch_outcomes

UNATTRIBUTED = "[unattributed]"
DEVICE_TIMES = ("device_self_ns", "device_total_ns", "launches", "mean_empty_queue_delay_ns")
TENSOR_CORES = ("tc_eligible", "tc_self_frac", "tc_total_frac")


PROVENANCE = provenance_doc("operator")


class OpName(Table):
    """Which operators use host and device time; `[unattributed]` is device time that no recorded operator launched."""

    name = Column(TEXT, "Name of the operator.")


class OpShapes(Table):
    """Input shapes of operators."""

    input_shapes = Column(
        TEXT, "Shapes of its inputs, one list per argument; missing if they weren't recorded.", shown_as="shapes"
    )


class OpCosts(Table):
    """Costs of operator calls."""

    calls = Column(
        COUNT,
        "Number of calls; a call that only wraps a call of the same name counts once. Replays of a graph count as "
        "calls of its operators, and take no host time.",
    )
    device_self_ns = Column(DURATION, "Device time of the kernels, copies and fills that it launched itself.")
    device_total_ns = Column(
        DURATION,
        "Device time that it and all nested operators launched. Of nested calls of the same operator only the "
        "innermost counts, so that nothing counts twice.",
    )
    launches = Column(COUNT, "Runtime and driver calls that it made itself and that launched device work.")
    mean_empty_queue_delay_ns = Column(
        DURATION,
        "Mean time from the end of such a call to the start of its work, over calls after which the stream had no "
        "other work: after other work a delay is waiting in the queue, not a loss. Work that starts before the call "
        "returns counts as 0. Missing if there is none.",
    )
    host_self_ns = Column(
        DURATION,
        "Host time in it, but not in what it calls: operators, annotations and runtime calls. A backend's annotations "
        "in it (nccl:all_reduce) are its own time, as in torch's key_averages().",
    )
    host_total_ns = Column(
        DURATION,
        "Host time from its start to its end, summed over its calls. Nested calls of the same operator each count, as "
        "in torch's key_averages(): a recursive operator's total may be longer than it was open.",
    )
    tc_eligible = Column(
        BOOL,
        "Whether any call could use tensor cores: it, or an operator in it, is a matmul, or one of its kernels uses "
        "them. Missing if none does, but the names of some of its kernels don't show it.",
    )
    tc_self_frac = Column(
        FRACTION,
        "Share of its device self time in kernels that use tensor cores, among kernels for which this is known.",
    )
    tc_total_frac = Column(
        FRACTION,
        "Share of its device total time in kernels that use tensor cores, among kernels for which this is known.",
    )
    host_self_bytes = Column(BYTES, "Host memory that it allocated minus what it released, without nested operators.")
    host_total_bytes = Column(BYTES, "Host memory that it and nested operators allocated minus what they released.")
    device_self_bytes = Column(
        BYTES, "Device memory that it allocated minus what it released, without nested operators."
    )
    device_total_bytes = Column(BYTES, "Device memory that it and nested operators allocated minus what they released.")
    provenance = Column(TEXT, PROVENANCE)


def operator_table(trace: Trace, by: list[str], host: pl.DataFrame | None = None) -> pl.DataFrame:
    """Sum calls over groups; the largest device self time, then host self time, first.

    Args:
        trace: The trace.
        by: Columns of host events that calls are grouped by.
        host: all_host_events, with columns added.

    Columns: `by` as texts, then those of OpCosts; device time and memory are null unless recorded. Device time without
    an operator has its own row.
    """
    host = trace.all_host_events if host is None else host
    calls = Calls(host, by)
    rows = pl.DataFrame(
        {
            **{name: host[name].gather(calls.first).cast(pl.String) for name in by},
            "calls": np.bincount(calls.group[calls.group >= 0], minlength=calls.first.size),
            **_device_times(trace, calls),
            **_host_times(trace, calls),
            **_memory(trace, calls),
            "provenance": _provenance(trace, calls),
        },
        schema={**dict.fromkeys(by, pl.String), **OpCosts.schema()},
    )
    unattributed_ns = int(trace.device_events.select(pl.col("dur_ns").filter(pl.col("op") < 0).sum()).item())
    if unattributed_ns:
        rest = {"name": UNATTRIBUTED, "device_self_ns": unattributed_ns, "device_total_ns": unattributed_ns}
        rows = pl.concat([rows, pl.DataFrame([rest])], how="diagonal")
    order = ["device_self_ns", "host_self_ns", *by]
    return rows.sort(order, descending=[True, True, *(False for _ in by)], nulls_last=True)


class Calls:
    """The group that each host row counts for. Sums take one column at a time, since there may be millions of rows.

    Attributes:
        group: The group of each row of all_host_events that is a call; NONE for annotations and repeats.
        own_group: The group that each host row's own time counts for: that of the call that it repeats.
        first: A row of each group.
        parent: Of each host row.
    """

    def __init__(self, host: pl.DataFrame, by: list[str]) -> None:
        self.parent = host["parent"].to_numpy()
        again = host["is_repeat"].to_numpy()
        rows = np.flatnonzero((host["kind"] == "operator").to_numpy() & ~again)
        keys = np.zeros(rows.size, np.int64)
        for name in by:
            code = category_codes(host[name])[rows] + 1
            keys = keys * (int(code.max(initial=0)) + 1) + code
        groups, group = factorize(keys)
        self.group = np.full(host.height, NONE, np.int32)
        self.group[rows] = group
        self.own_group = gather(self.group, nearest(~again, self.parent))
        self.first = np.empty(groups.size, np.int64)
        self.first[group[::-1]] = rows[::-1]
        names = category_codes(host["name"])
        self._outer = nearest_alike(self.parent, np.where(self.group >= 0, names, NONE), int(names.max(initial=0)) + 1)

    def own(self, row: NDArray[np.int32], value: NDArray[Any]) -> NDArray[np.int64]:
        """Sum of the values that belong to host rows, per group."""
        return scatter_add(gather(self.own_group, row), value, self.first.size)

    def with_inner(self, row: NDArray[np.int32], value: NDArray[Any]) -> NDArray[np.int64]:
        """The same, including the values of all rows inside each call."""
        return self.sums(add_up(self.parent, scatter_add(row, value, self.parent.size)))

    def with_inner_once(self, row: NDArray[np.int32], value: NDArray[Any]) -> NDArray[np.int64]:
        """The same; values in nested calls of the same operator count only for the innermost."""
        whole = add_up(self.parent, scatter_add(row, value, self.parent.size))
        return self.sums(whole - scatter_add(self._outer, whole, self.parent.size))

    def sums(self, value: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sum of each call's value, per group."""
        return scatter_add(self.group, value, self.first.size)


def operator_rows(trace: Trace, **values: Any) -> NDArray[np.int32]:
    """The rows of all_host_events that are calls of operators with these values.

    A repeated call is one with the call around it.
    """
    return rows_where(trace.all_host_events, kind="operator", is_repeat=False, **values)


def operator_events(trace: Trace, key: Key) -> Events:
    """The events behind a row with this key: calls of the operator, or the device work without a known operator.

    Of calls that graphs replay it is their device work.
    """
    if key["name"] == UNATTRIBUTED:
        return {"device_events": rows_where(trace.device_events, op=None)}
    return recorded_events(trace, {"host_events": operator_rows(trace, **key)})


def row_of_operator(trace: Trace, frame: str, row: int) -> Key | None:
    """The name and the shapes of an operator; of device work those of the operator that a graph replays around it."""
    if frame == "device_events" and trace.device_events["op"][row] < 0:
        return {"name": UNATTRIBUTED}
    host = trace.all_host_events
    ops = (at for of, at in calls_of_event(trace, frame, row) if of == "host_events" and host["kind"][at] == "operator")
    op = next(ops, NONE)
    while op >= 0 and host["is_repeat"][op]:
        op = host["parent"][op]
    return values_at(host, op, "name", "input_shapes") if op >= 0 else None


def _host_times(trace: Trace, calls: Calls) -> dict[str, Any]:
    host = trace.all_host_events
    return {
        "host_self_ns": scatter_add(calls.own_group, host["self_ns"].to_numpy(), calls.first.size),
        "host_total_ns": calls.sums(host["dur_ns"].to_numpy()),
    }


def _device_times(trace: Trace, calls: Calls) -> dict[str, Any]:
    """Missing, not zero, for traces without device events."""
    device = trace.device_events
    if device.is_empty():
        return dict.fromkeys((*DEVICE_TIMES, *TENSOR_CORES))
    op, dur = device["op"].to_numpy(), device["dur_ns"].to_numpy()
    uses = (device["tensor_cores"] == "yes").to_numpy()
    is_known = (device["tensor_cores"] != "unknown").to_numpy()
    eligible = scatter_add(op, uses, calls.parent.size) + map_categories(trace.all_host_events["name"], is_matrix_op)
    is_eligible, is_unknown = (
        calls.sums(add_up(calls.parent, count)) > 0
        for count in (eligible, scatter_add(op, ~is_known, calls.parent.size))
    )
    return {
        "device_self_ns": calls.own(op, dur),
        "device_total_ns": calls.with_inner_once(op, dur),
        **_launches(trace, calls),
        "tc_eligible": pl.Series(is_eligible).set(pl.Series(is_unknown & ~is_eligible), None),
        "tc_self_frac": _fractions(calls.own(op, dur * uses), calls.own(op, dur * is_known)),
        "tc_total_frac": _fractions(calls.with_inner_once(op, dur * uses), calls.with_inner_once(op, dur * is_known)),
    }


def _provenance(trace: Trace, calls: Calls) -> pl.Series:
    """How the operator of each group's device rows is known; several with commas."""
    op_source, group = provenance(trace), gather(calls.own_group, trace.device_events["op"].to_numpy())
    are_of = ((op_source == source).fill_null(value=False).to_numpy() for source in SOURCES)
    return joined_sources([scatter_add(group, is_of, calls.first.size) > 0 for is_of in are_of])


def _launches(trace: Trace, calls: Calls) -> dict[str, Any]:
    outcomes = launch_outcomes(trace)
    op = trace.launches["op"].to_numpy()
    has_work = (outcomes["device_rows"] > 0).to_numpy()
    hit_empty_queue = has_work & outcomes["hit_empty_queue"].to_numpy()
    delay = outcomes["delay_ns"].fill_null(0).to_numpy() * hit_empty_queue
    sums, counts = pl.Series(calls.own(op, delay)), pl.Series(calls.own(op, hit_empty_queue))
    mean = pl.when(counts > 0).then((sums / counts).round().fill_nan(None).cast(pl.Int64))
    return {"launches": calls.own(op, has_work), "mean_empty_queue_delay_ns": pl.select(mean).to_series()}


def _fractions(part: NDArray[np.int64], whole: NDArray[np.int64]) -> pl.Series:
    return pl.select(fraction(pl.lit(pl.Series(part)), pl.lit(pl.Series(whole)))).to_series()


def _memory(trace: Trace, calls: Calls) -> dict[str, Any]:
    """Allocated minus released memory of each kind; null if the trace has none of the kind."""
    memory = trace.memory.filter(pl.col("name") != OUT_OF_MEMORY)
    op, size = memory["op"].to_numpy(), memory["bytes"].to_numpy()
    on_host = memory["device_type"].to_numpy() == CPU
    columns: dict[str, Any] = {}
    for what, there in (("host", on_host), ("device", ~on_host)):
        is_recorded = there.any()
        columns[f"{what}_self_bytes"] = calls.own(op, size * there) if is_recorded else None
        columns[f"{what}_total_bytes"] = calls.with_inner(op, size * there) if is_recorded else None
    return columns


def module_classes(trace: Trace) -> tuple[Rows, list[str | None]]:
    """The module that each host event is in, or NONE, and the class of each module; None: a hook."""
    if not has_modules(trace):
        return np.full(trace.all_host_events.height, NONE, np.int32), []
    module = import_module(".module_calls", __package__)  # with backward passes, which need Python calls
    modules = module.ModuleCalls.of(trace)
    return modules.of_host_rows(trace)[0], [name.of_class for name in modules.names]
