"""Memory by category: parameters, gradients, optimizer state, activations and workspace over time, on one device.

measures/memory/categories.py has the rules. They were compared with torch's own memory timeline on four small
trainings: where both name a category, they agree on 93 to 100 % of the bytes; the rest is scratch memory of Adam.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...measures.memory.categories import CategoryLevels
from ...measures.memory.levels import NO_ADDRESSES, DeviceMemory, OfDevice, device_memories, time_range
from ...measures.recording.contents import has_memory_categories
from ...names.memory_categories import CATEGORIES
from ...pictures import Lines
from ...table import BYTES, INSTANT, Column
from ...trace import Trace
from ...view import Part, RowTime, View

CATEGORY_COLUMNS = tuple(f"{name.replace(' ', '_')}_bytes" for name in CATEGORIES)
DRAWN = 600  # parts of the time of which the last and the highest levels are drawn


class MemoryCategories(OfDevice):
    """What a device's memory was used for over time, as far as the allocating operators and lifetimes tell.

    It shows the first accelerator, unless another device is chosen. What can't be decided is unknown.
    """

    key = ("device", "time_ns")
    picture = Lines(CATEGORY_COLUMNS, ("device",), is_stacked=True)

    time_ns = Column(INSTANT, "Time of the record.")
    parameters_bytes = Column(
        BYTES,
        "Memory from before the recording, as much as the gradients that the optimizer gets: a parameter has the size "
        "of its gradient. 0 if there was less.",
    )
    gradients_bytes = Column(BYTES, "Allocated in the backward pass, and alive when the next Optimizer.step begins.")
    optimizer_state_bytes = Column(BYTES, "Allocated in an Optimizer.step, and alive when it ends.")
    activations_bytes = Column(
        BYTES,
        "Released by a backward operator, unless an operator such as aten::to made it outside modules; or allocated by "
        "a module's forward pass, and released before the next Optimizer.step ends (without one: in the same step).",
    )
    workspace_bytes = Column(
        BYTES,
        "Released by the operator that allocated it; or allocated in the backward pass and released before the next "
        "Optimizer.step; or allocated and released in an Optimizer.step.",
    )
    unknown_bytes = Column(BYTES, "All other allocated memory, such as inputs and most of what is from before.")


def memory_categories(
    trace: Trace, *, device: str | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """The levels of one device in order of time, over the same time as the curve of all memory."""
    begin, end = time_range(trace, device_memories(trace), from_ns, to_ns)
    parts = [_curve(trace, memory, begin, end) for memory in device_memories(trace, device)[:1]]
    return MemoryCategories.of(pl.concat([pl.DataFrame(schema=MemoryCategories.schema()), *parts]))


def _curve(trace: Trace, memory: DeviceMemory, begin: int, end: int) -> pl.DataFrame:
    inside = memory.within(begin, end)
    records = np.arange(inside.start, inside.stop)
    if records.size > 2 * DRAWN:
        records = _highest_and_last(records, memory.time_ns[records], memory.allocated_bytes[records])
    by_category = CategoryLevels.of(trace, memory)
    last = records[-1:] if records.size else [inside.start - 1]
    level_rows = np.concatenate([[inside.start - 1], records, last]) + 1  # 0: before the first record
    columns = dict(
        zip(CATEGORY_COLUMNS, np.vstack([by_category.before, by_category.levels])[level_rows].T, strict=True)
    )
    times = np.concatenate([[begin], memory.time_ns[records], [end]])
    return pl.DataFrame({"device": [memory.name] * level_rows.size, "time_ns": times, **columns}).unique(
        ["device", "time_ns"], keep="last", maintain_order=True
    )


def _highest_and_last(records: np.ndarray, times: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Of each part of the time the record with the highest level, and the last."""
    part = (times - times[0]) * DRAWN // max(1, int(times[-1] - times[0]) + 1)
    frame = pl.DataFrame({"part": part, "record": records, "level": levels})
    bounds = frame.group_by("part").agg(pl.col("record").last(), high=pl.col("record").get(pl.col("level").arg_max()))
    return np.unique(np.concatenate([bounds["record"].to_numpy(), bounds["high"].to_numpy()]))


VIEW = View(
    memory_categories,
    table=MemoryCategories,
    title="By category",
    entry="Memory",
    needs=has_memory_categories,
    hint=NO_ADDRESSES,
    option="profile_memory",
    place=Part("memory_curve"),
    within="moments",
    time=RowTime("time_ns"),
)
