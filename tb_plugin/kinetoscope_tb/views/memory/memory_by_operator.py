"""Memory by operator: what each operator allocated and released, self and total.

Memory counts for the innermost open operator, so an operator that allocates its result through aten::empty has it in
its totals, not in its self columns. A release counts for the operator that happened to be open.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import gather, texts
from ...arrays.nesting import nearest
from ...measures.calls.op_calls import Calls, row_of_operator
from ...measures.memory.levels import HINT, DeviceMemory, OfDevice, device_memories, device_name
from ...measures.recording.contents import has_memory
from ...pictures import Bars
from ...table import BYTES, COUNT, TEXT, Column
from ...trace import Trace
from ...trace.row_filters import Events, Key, rows_where
from ...view import Slices, View

NO_OPERATOR = "[no operator]"
AMOUNTS = ("size_increase_bytes", "allocations")  # if the totals of both are 0, so are the others


class MemoryByOperator(OfDevice):
    """Which operators allocated or released memory of a device; `[no operator]` is memory outside any operator."""

    key, weight = ("device", "name"), "self_allocation_bytes"
    picture = Bars(("self_allocation_bytes",))

    name = Column(TEXT, "Name of the operator.")
    calls = Column(
        COUNT,
        "Number of calls; a call that only wraps a call of the same name counts once.",
        adds_up=False,  # an operator with memory of two devices has a row for each
    )
    size_increase_bytes = Column(BYTES, "Memory that it and nested operators allocated minus what they released.")
    self_size_increase_bytes = Column(
        BYTES, "Memory that it allocated minus what it released, without nested operators."
    )
    allocations = Column(COUNT, "Number of allocations by it and nested operators.")
    self_allocations = Column(COUNT, "Number of its allocations, without nested operators.")
    allocation_bytes = Column(BYTES, "Memory that it and nested operators allocated, regardless of releases.")
    self_allocation_bytes = Column(BYTES, "Memory that it allocated, regardless of releases, without nested operators.")


def memory_by_operator(
    trace: Trace, *, device: str | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """The most allocated memory first; in a range of time, only records in it and calls that were open in it."""
    calls = Calls(trace.host_events, ["name"])
    call_counts = _calls_within(trace, calls, from_ns, to_ns)
    names = [*texts(trace.host_events["name"], calls.first), NO_OPERATOR]
    tables = [
        pl.DataFrame(
            {"device": memory.name, "name": names, "calls": call_counts}
            | _amounts(trace, memory, calls, memory.within(from_ns, to_ns)),
            schema=MemoryByOperator.schema(),
        )
        for memory in device_memories(trace, device)
    ]
    rows = pl.concat([pl.DataFrame(schema=MemoryByOperator.schema()), *tables])
    rows = rows.filter(pl.any_horizontal(pl.col(*AMOUNTS) != 0))
    order = ["self_allocation_bytes", "size_increase_bytes"]
    return MemoryByOperator.of(rows.sort(order, descending=True, maintain_order=True))


def _calls_within(trace: Trace, calls: Calls, from_ns: int | None, to_ns: int | None) -> list[int | None]:
    """Number of calls of each group that were open in the range; None for memory outside operators."""
    start, dur = trace.host_events["start_ns"].to_numpy(), trace.host_events["dur_ns"].to_numpy()
    is_open = np.ones(start.size, bool)
    if from_ns is not None:
        is_open &= start + dur > from_ns
    if to_ns is not None:
        is_open &= start < to_ns
    return [*calls.sums(is_open.astype(np.int64)).tolist(), None]


def _amounts(trace: Trace, memory: DeviceMemory, calls: Calls, inside: slice) -> dict[str, NDArray[np.int64]]:
    """The amounts of each group, and last those outside operators."""
    op, change = trace.memory["op"].to_numpy()[memory.row[inside]], memory.change_bytes[inside]
    is_outside = gather(calls.own_group, op) < 0
    values = {
        "size_increase_bytes": change,
        "allocations": (change > 0).astype(np.int64),
        "allocation_bytes": np.maximum(change, 0),
    }
    amounts = {}
    for name, value in values.items():
        outside = value[is_outside].sum()
        amounts[name] = np.append(calls.with_inner(op, value), outside)
        amounts[f"self_{name}"] = np.append(calls.own(op, value), outside)
    return amounts


def events_of_row(trace: Trace, key: Key) -> Events:
    """The calls of the operator, regardless of the device."""
    return {"host_events": rows_where(trace.host_events, kind="operator", is_repeat=False, name=key["name"])}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The operator, and the first device that its calls have memory of."""
    name = (row_of_operator(trace, frame, row) or {}).get("name") if frame == "host_events" else None
    if name is None:
        return None
    host = trace.host_events
    is_of_name = ((host["name"] == name) & (host["kind"] == "operator")).fill_null(value=False).to_numpy()
    holder = gather(nearest(is_of_name, host["parent"].to_numpy()), trace.memory["op"].to_numpy())
    records = trace.memory.select("device_type", "device").filter(holder >= 0).head(1).rows()
    return next(({"name": name, "device": device_name(kind, max(device, 0))} for kind, device in records), None)


VIEW = View(
    memory_by_operator,
    table=MemoryByOperator,
    title="By operator",
    entry="Memory",
    needs=has_memory,
    hint=HINT,
    option="profile_memory",
    slices=Slices(events_of_row, row_of),
)
