"""The tables of Nsight Systems' SQLite export that are read. Each may be missing, and so may columns of later versions.

Times are nanoseconds since the session began. Names are numbers of `StringIds`. A thread is `globalTid`: 24 bits of the
process, 24 of the thread; processes have the same number without the thread.
"""

from __future__ import annotations

from dataclasses import dataclass

STRINGS = "StringIds"
KERNELS, COPIES, FILLS = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
GRAPHS, CALLS, WAITS = (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("GRAPH_TRACE", "RUNTIME", "SYNCHRONIZATION"))
RECORDS = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
RANGES = "NVTX_EVENTS"

_WORK = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")


@dataclass(frozen=True)
class Source:
    """One table of events.

    Args:
        table: Its name.
        integers: The columns that are read as integers; the time comes first.
        texts: Those that are read as texts.
    """

    table: str
    integers: tuple[str, ...]
    texts: tuple[str, ...] = ()


METRICS = Source("GPU_METRICS", ("timestamp", "typeId", "metricId", "value"))
METRIC_NAMES = "TARGET_INFO_GPU_METRICS"

SOURCES = (
    Source(RANGES, ("start", "end", "eventType", "textId", "globalTid", "endGlobalTid"), ("text",)),
    Source(CALLS, ("start", "end", "globalTid", "correlationId", "nameId")),
    Source(
        KERNELS,
        (
            *_WORK,
            "demangledName",
            "shortName",
            "graphNodeId",
            "registersPerThread",
            "staticSharedMemory",
            "dynamicSharedMemory",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
        ),
    ),
    Source(COPIES, (*_WORK, "graphNodeId", "bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId")),
    Source(FILLS, (*_WORK, "graphNodeId", "bytes", "memKind")),
    Source(GRAPHS, (*_WORK, "graphId", "graphExecId")),
    Source(WAITS, (*_WORK, "syncType", "eventId", "eventSyncId")),
    METRICS,
)
"""In the order of their offsets. New ones go to the end: caches store offsets."""

ROW_BITS = 40
"""An event's offset is its table's place in SOURCES above its row number."""

EVENTS = frozenset(source.table for source in SOURCES) - {WAITS, METRICS.table}

READ = frozenset(source.table for source in SOURCES) | {STRINGS, RECORDS}
"""Tables whose absence would be missed in the numbers."""

PUSHED_RANGES, STARTED_RANGES, MARK = (59, 70), (60, 71), 34
"""eventType of NVTX_EVENTS: ranges of a thread's stack, ranges of their own, and instants; 70 and 71 are imported."""


def is_export(tables: frozenset[str]) -> bool:
    """Whether a database with these tables is an export with events that are read."""
    return STRINGS in tables and bool(EVENTS & tables)


def place_of(offset: int) -> tuple[str, int]:
    """(the table, the row number) of an event's offset."""
    return SOURCES[offset >> ROW_BITS].table, offset & (1 << ROW_BITS) - 1
