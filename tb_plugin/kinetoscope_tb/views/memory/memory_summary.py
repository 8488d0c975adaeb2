"""Memory in a sentence: how high the peak is, which operator holds most of it, and where that was allocated."""

from __future__ import annotations

import polars as pl

from ...arrays.gather import gather, texts
from ...measures.memory.allocations import NO_ADDRESS, alive_at, allocations, askers
from ...measures.memory.holders import EARLIER, UNMATCHED, UNOWNED, UNSEEN, By, holders_after, owners
from ...measures.memory.levels import CPU, HINT, DeviceMemory, device_memories
from ...measures.python.call_stacks import Stacks
from ...measures.python.frames import SEPARATOR
from ...measures.recording.contents import has_memory
from ...names.python_frames import function_name, is_of_library
from ...names.text import enumeration, percent, time
from ...names.text import memory_size as size
from ...table import Summary
from ...trace import Trace
from ...trace.steps import step_noun
from ...view import Lead, View

_MOST_NAMED = 3
_LEAST = 0.03  # of the peak: smaller holders aren't named
_ORIGINS = {
    UNOWNED["operator"]: "was allocated by no recorded operator",
    EARLIER: "was allocated before the recording",
    UNMATCHED: "has no address in the trace, so who holds it isn't known",
    UNSEEN: "was released without a record",
}


class MemorySummary(
    Summary,
    colors={"peak": "cpu-exec"},
    rule="`peak`.",
    title="How high the peak is, and which operator holds most of it, allocated at which line.",
    evidence="The next holders, the modules, and when the peak is.",
    confidence="high.",
    view="Id of the view that lists all holders.",
):
    """The peak of the device with the highest one, the host only if no other has memory, and who holds it."""


def memory_summary(trace: Trace) -> pl.DataFrame:
    """One row; none if no memory is allocated."""
    memories = [(memory.name != "cpu", _peak_bytes(memory), memory) for memory in device_memories(trace)]
    _, most_bytes, memory = max(memories, key=lambda row: row[:2], default=(False, 0, None))
    return MemorySummary.of_row(None if memory is None or most_bytes <= 0 else _row(trace, memory, most_bytes))


def _peak_bytes(memory: DeviceMemory) -> int:
    return memory.level_before(memory.peak() + 1)


def _row(trace: Trace, memory: DeviceMemory, peak_bytes: int) -> tuple[str, ...]:
    (holder, most_bytes), *others = _holders(trace, memory, "operator")
    level = f"peaks {size(peak_bytes)} above its start" if memory.is_relative else f"peaks at {size(peak_bytes)}"
    origin = _ORIGINS.get(holder, f"was allocated by `{holder}`{_line(trace, memory, holder)}")
    part = "all" if most_bytes == peak_bytes else size(most_bytes)
    whose = "CPU memory" if memory.device_type == CPU else f"Memory of {memory.name}"
    title = f"{whose} {level}; {part} of it {origin}."
    large = [row for row in others if row[1] >= _LEAST * peak_bytes and row[0] not in _ORIGINS][:_MOST_NAMED]
    holders = enumeration([f"`{name}` {size(count)}" for name, count in large])
    evidence = [f"The next holders: {holders}."] if large else []
    modules = [row for row in _holders(trace, memory, "module") if not row[0].startswith("[")]
    if modules:
        module, in_module = modules[0]
        evidence.append(
            f"`{module}` holds the most of any module: {size(in_module)}, {percent(in_module / peak_bytes)}."
        )
    evidence += ["*By operator* lists who allocated how much in all."] if holder == UNMATCHED else []
    view = "memory_by_operator" if holder == UNMATCHED else "memory_peak"
    return "peak", title, " ".join([*evidence, _when(trace, memory)]), "high", view


def _holders(trace: Trace, memory: DeviceMemory, by: By) -> list[tuple[str, int]]:
    """Operators or modules and what they hold at the peak, the most first."""
    return holders_after(memory, owners(trace, by), by, memory.peak()).select("owner", "alive_bytes").rows()


def _line(trace: Trace, memory: DeviceMemory, operator: str) -> str:
    """Such as: at `forward (model.py:20)`, the line of the program where the operator allocated most; or empty.

    Of an operator of the backward pass it is the line of its forward operator.
    """
    pieces = allocations([memory])
    alive = alive_at(pieces.filter(pl.col("fate") != NO_ADDRESS), memory.peak())
    op = gather(trace.memory["op"].to_numpy(), alive["row"].to_numpy())
    of_operator = (texts(trace.host_events["name"], gather(askers(trace), op)) == operator).fill_null(value=False)
    stacks = Stacks.of(trace)
    rows = alive.select("size_bytes", stack=pl.Series(gather(stacks.number, op))).filter(of_operator)
    sums = rows.group_by("stack").agg(pl.col("size_bytes").sum()).sort("stack")
    frames = [_program_frame(text) for text in stacks.texts(sums["stack"].to_numpy())]
    by_frame = sums.with_columns(frame=pl.Series(frames, dtype=pl.String), is_forward=pl.col("stack") % 2 == 1)
    by_line = by_frame.drop_nulls("frame").group_by("frame", "is_forward").agg(pl.col("size_bytes").sum())
    most = by_line.sort("size_bytes", "frame", "is_forward", descending=True).rows(named=True)
    if not most:
        return ""
    at = ", whose forward ran at" if most[0]["is_forward"] else " at"
    return f"{at} `{function_name(most[0]['frame'])}`"


def _program_frame(stack: str | None) -> str | None:
    """The innermost frame that belongs to no library."""
    frames = stack.split(SEPARATOR) if stack else []
    return next((frame for frame in frames if not is_of_library(frame)), None)


def _when(trace: Trace, memory: DeviceMemory) -> str:
    """When the peak is."""
    if memory.peak() < 0:
        return "The peak was before the first record."
    at = int(memory.time_ns[memory.peak()])
    inside = trace.steps.filter((pl.col("start_ns") <= at) & (pl.col("end_ns") > at) & (pl.col("name") != "all"))
    where = f", in {step_noun(trace.steps)} {inside['name'][0]}" if inside.height else ""
    return f"The peak is at {time(at)}{where}."


VIEW = View(
    memory_summary,
    table=MemorySummary,
    title="Memory in a sentence",
    entry="Memory",
    place=Lead("memory_curve"),
    within="recording",
    needs=has_memory,
    hint=HINT,
    option="profile_memory",
)
