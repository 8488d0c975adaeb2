"""The columns of a trace and their meaning.

A `Trace` is frozen: the reader fills the recorded columns, `assemble` adds the derived ones, and nothing changes
afterwards. Rules that hold in every frame:

* Times are int64 nanoseconds since `Trace.origin_ns`, the first moment that anything was recorded.
* A missing number is NONE (-1) in an integer column and NaN in a float column; a missing text is null.
* A column that points to a row of another frame holds its row index, or NONE.
* Texts are Polars enums: small integers that sort and group fast, and cast to strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.allocator import release_free_memory
from .meta import Meta
from .results import Results

EARLIEST_CLOCK_NS = 1_000_000_000_000_000_000  # September 2001: an origin before it is no Unix time
LIGHTNING = "[pl]"  # prefix of PyTorch Lightning's annotations of hooks and modules

HOST_KINDS = pl.Enum(["operator", "annotation"])
LAUNCH_KINDS = pl.Enum(["runtime", "driver"])
DEVICE_KINDS = pl.Enum(["kernel", "memcpy", "memset"])
ANSWERS = pl.Enum(["yes", "no", "unknown"])
METADATA_RULE, CALL_RULE = "collective metadata", "launched by a collective"
"""Values of `communication_rule` that don't come from the name (trace/communication.py)."""

# Where an event is in the file: the details pane reads it there.
PLACE = {"offset": pl.Int64, "length": pl.Int32}

THREADS = {"pid": pl.String, "tid": pl.String, "process": pl.String, "name": pl.String}
"""One row is one (pid, tid) pair that has rows; `process` and `name` are their names in the trace, or null."""

HOST_EVENTS = {
    "name": pl.Enum,
    "kind": HOST_KINDS,
    "thread": pl.Int32,
    "start_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "external_id": pl.Int64,
    "sequence": pl.Int64,  # autograd's sequence number
    "fwd_thread": pl.Int64,  # of a backward operator: the thread of its forward operator
    "input_shapes": pl.Enum,  # as the file spells them
    "input_types": pl.Enum,
    "concrete_inputs": pl.Enum,  # values of non-tensor inputs; only of operators that multiply matrices
    "call_stack": pl.Enum,
    "is_finished": pl.Boolean,  # false: the recording ended inside it, or its end is damaged
    **PLACE,
    # derived
    "parent": pl.Int32,  # the innermost range around this one on its thread
    "depth": pl.Int16,
    "self_ns": pl.Int64,  # without direct children and runtime calls made directly
    "is_repeat": pl.Boolean,  # the only child of a range of the same name: the same call recorded twice
    "is_communication": pl.Boolean,  # a collective or a point-to-point transfer
    "step": pl.Int32,  # index into `steps`
}
"""One row is one range on a host thread: an operator or an annotation. Order: thread, start, longest first, file."""

LAUNCHES = {
    "name": pl.Enum,
    "kind": LAUNCH_KINDS,
    "thread": pl.Int32,
    "start_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "correlation": pl.Int64,
    "external_id": pl.Int64,
    "kernel": pl.Enum,  # the kernel that it launches; ROCm's profilers record it, during a capture too
    **PLACE,
    # derived
    "host": pl.Int32,  # the innermost host event open when it began
    "op": pl.Int32,  # the innermost operator open when it began: a row of host_events
    "step": pl.Int32,  # the step whose host interval contains it
}
"""One row is one runtime or driver call on a host thread. Order: thread, start, longest first, file."""

DEVICE_EVENTS = {
    "name": pl.Enum,
    "kind": DEVICE_KINDS,
    "device": pl.Int32,
    "stream": pl.Int64,
    "lane": pl.Int64,  # the thread that the file draws it on, where that isn't its stream; else NONE
    "start_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "correlation": pl.Int64,
    "external_id": pl.Int64,
    "bytes": pl.Int64,
    "grid": pl.Enum,
    "block": pl.Enum,
    "registers_per_thread": pl.Int32,
    "shared_memory_bytes": pl.Int64,
    "blocks_per_sm": pl.Float64,
    "occupancy_frac": pl.Float64,
    "occupancy_limiter": pl.Enum,
    "collective": pl.Enum,  # name of the collective, from the metadata
    "graph_id": pl.Int64,  # of the CUDA graph whose launch it belongs to; torch 2.12 and later (kineto 1a72dcae)
    "graph_node_id": pl.Int64,  # its node there
    "mark": pl.Enum,  # name of its torch.cuda mark_kernels (torch 2.15)
    "from_device": pl.Int32,  # of a copy between devices
    "to_device": pl.Int32,
    **PLACE,
    # derived
    "launch": pl.Int32,  # the call with the same correlation: a row of launches
    "op": pl.Int32,  # the operator that launched it; in a finished trace a row of all_host_events
    "is_communication": pl.Boolean,
    "communication_rule": pl.Enum,  # the evidence that it is communication; null if it isn't
    "tensor_cores": ANSWERS,
    "step": pl.Int32,  # the step of its launch, or of its operator where no call is known
}
"""One row is one kernel, copy or fill that a device ran. Order: start, file."""

MEMORY = {
    "name": pl.Enum,  # [memory] or [OutOfMemory]; of a memory timeline: torch's category
    "thread": pl.Int32,
    "start_ns": pl.Int64,
    "device_type": pl.Int32,  # c10's number: 0 CPU, 1 CUDA, 12 XPU, 20 PrivateUse1
    "device": pl.Int32,
    "address": pl.Int64,
    "bytes": pl.Int64,  # negative: a release
    "total_allocated": pl.Int64,
    "total_reserved": pl.Int64,
    **PLACE,
    # derived
    "op": pl.Int32,  # the innermost operator open then: a row of host_events
}
"""One row is one allocation or release. Order: start, file."""

PYTHON_CALLS = {
    "name": pl.Enum,
    "thread": pl.Int32,
    "start_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "python_id": pl.Int64,
    "python_parent_id": pl.Int64,
    "module_id": pl.Int64,  # NONE: an ordinary function, else the nn.Module's number
    **PLACE,
    # derived
    "parent": pl.Int32,
    "depth": pl.Int16,
}
"""One row is one call of a Python function or nn.Module. Order: thread, start, longest first, file."""

FLOWS = {
    "category": pl.Enum,
    "phase": pl.Enum,  # s or f
    "id": pl.Int64,
    "thread": pl.Int32,
    "start_ns": pl.Int64,
    **PLACE,
}
"""One row is one end of an arrow. Order: start, file."""

SYNCS = {
    "name": pl.Enum,
    "category": pl.Enum,
    "device": pl.Int32,
    "stream": pl.Int64,
    "start_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "correlation": pl.Int64,
    "sync_kind": pl.Enum,  # Event Sync, Stream Wait Event, Stream Sync, Context Sync; null: an event was recorded
    "wait_on_stream": pl.Int64,
    "wait_on_event": pl.Int64,
    "wait_on_record": pl.Int64,  # correlation of the call that recorded the event
    "event_id": pl.Int64,
    **PLACE,
}
"""One row is one wait of or for a stream, or one recorded event; it is not device work. Order: start, file."""

COLLECTIVES = {
    "offset": pl.Int64,  # of its event in the file
    "name": pl.Enum,  # such as allreduce
    "dtype": pl.Enum,  # c10's name: Float, BFloat16
    "in_elements": pl.Int64,  # numbers, not bytes
    "out_elements": pl.Int64,
    "in_split": pl.Enum,
    "out_split": pl.Enum,
    "group_size": pl.Int64,
    "group": pl.Enum,
    "group_description": pl.Enum,
    "group_ranks": pl.Enum,  # as the file spells them; cut after 30
    "rank": pl.Int64,
    "source_rank": pl.Int64,
    "target_rank": pl.Int64,
    "nth": pl.Int64,  # number of the collective in its group; the same on all its ranks
    "is_asynchronous": pl.Enum,
    # derived
    "host_event": pl.Int32,  # its operator: a row of host_events, or NONE
    "device_event": pl.Int32,  # its kernel: a row of device_events, or NONE
}
"""One row is the metadata of one operator's or kernel's collective (kineto 8378f0d5). Order: file."""

OTHERS = {
    "name": pl.Enum,
    "category": pl.Enum,
    "phase": pl.Enum,
    "thread": pl.Int32,
    "start_ns": pl.Int64,
    "dur_ns": pl.Int64,
    **PLACE,
}
"""One row is anything else with a time: overhead, spans, device copies of annotations, unknown
categories. None of it counts as work. Order: start, file."""

COUNTERS = {
    "name": pl.Enum,
    "series": pl.Enum,
    "process": pl.Enum,  # pid of the counter
    "start_ns": pl.Int64,
    "value": pl.Float64,  # from then on; NaN: unknown
    "offset": pl.Int64,  # of its event in the file
}
"""One row is one number of an event of phase C. Order: process, name, series, start, file."""

STEPS = {
    "name": pl.String,  # N of ProfilerStep#N, or "all"; of a server the number of the iteration, from 0
    "host_start_ns": pl.Int64,
    "host_end_ns": pl.Int64,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "is_complete": pl.Boolean,  # averages cover it: recorded as a whole, and in the steady part of a server
    "device_rows": pl.Int64,  # device events launched in it
    "phase": pl.String,  # of a server's iteration, such as decode; null for ProfilerStep
    "part": pl.String,  # of a server's recording, such as steady or warm-up; null for ProfilerStep
    "batch": pl.Int64,  # requests of a server's iteration; NONE if not recorded
}
"""One row is one step; the window is [start_ns, end_ns), as trace/steps.py defines it.

Where no step was marked, the iterations of a server are the steps (measures/serving/steps.py).
"""

SNAPSHOT_ACTIONS = pl.Enum(
    [
        *("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap"),
        *("snapshot", "oom", "unknown"),
    ]
)
SNAPSHOT_STATES = pl.Enum(["active_allocated", "active_pending_free", "inactive", "unknown"])

SNAPSHOT_EVENTS = {
    "action": SNAPSHOT_ACTIONS,
    "device": pl.Int32,  # its index: the list that holds the event
    "address": pl.Int64,
    "size": pl.Int64,
    "stream": pl.Int64,
    "moment": pl.Int64,  # ns since the trace's origin; torch before 2.1 wrote none
    "stack": pl.Int32,  # of snapshot_stacks
    "device_free": pl.Int64,  # of an oom: what the device itself had free
    "pool": pl.Enum,  # `a, b`; torch 2.12 and later
    "compile_context": pl.Enum,  # frame and version of what torch.compile compiled, such as 0/0
    "user_metadata": pl.Enum,
}
"""One row is one entry of a memory snapshot's history. Order: device, file."""

SNAPSHOT_SEGMENTS = {
    "device": pl.Int32,
    "address": pl.Int64,
    "total_size": pl.Int64,
    "allocated_size": pl.Int64,
    "active_size": pl.Int64,
    "requested_size": pl.Int64,
    "stream": pl.Int64,
    "segment_type": pl.Enum,  # small or large
    "pool": pl.Enum,  # `a, b`; other than `0, 0` a private one, as of a graph's capture
    "is_expandable": pl.Boolean,
    "stack": pl.Int32,
}
"""One row is one segment that the allocator held when the snapshot was taken. Order: file."""

SNAPSHOT_BLOCKS = {
    "segment": pl.Int32,  # a row of snapshot_segments
    "address": pl.Int64,
    "size": pl.Int64,
    "requested_size": pl.Int64,
    "state": SNAPSHOT_STATES,
    "stack": pl.Int32,
}
"""One row is one block of a segment, in use or not. Order: file."""

SNAPSHOT_FRAMES = {"file": pl.Enum, "line": pl.Int64, "function": pl.Enum}
"""One row is one frame of a stack, whichever stacks have it."""

SNAPSHOT_STACKS = {"stack": pl.Int32, "frame": pl.Int32}
"""One row is one frame of one stack: its number, and the row of snapshot_frames. Order: stack, the innermost first."""

SNAPSHOT_ANNOTATIONS = {"name": pl.String, "is_start": pl.Boolean, "device": pl.Int32, "moment": pl.Int64}
"""One row is the begin or the end of a range of the program. Order: file."""

CALL_EVIDENCE = pl.Enum(["record", "time", "several", "between", "no call", "outside", "no time"])
"""How the call of an allocation is known: by the trace's own record of it, or as the only one that was open. Or why it
isn't: operators of several threads were open; too close to an operator's begin or end; no operator was open; the trace
doesn't cover the time; the event has no time."""

STEP_MOMENTS = {"step": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64}
"""One row is one step of the trace of the same time, by the moments of a snapshot."""

ALLOCATING_CALLS = {
    "operator": pl.Enum,
    "module": pl.Enum,
    "step": pl.Enum,
    "category": pl.Enum,  # by the trace's records of memory
    "evidence": CALL_EVIDENCE,  # null: no allocation
}
"""One row is one row of snapshot_events: what the trace of the same time says of it, or null; of the events that are no
allocations it says the step alone."""

COLLECTED = {
    "host_events": HOST_EVENTS,
    "launches": LAUNCHES,
    "device_events": DEVICE_EVENTS,
    "memory": MEMORY,
    "python_calls": PYTHON_CALLS,
    "flows": FLOWS,
    "syncs": SYNCS,
    "others": OTHERS,
}
"""The frames that the reader fills; `assemble` adds the columns marked `derived`."""

POINTERS = {
    "host_events": {"thread": "threads", "parent": "host_events", "step": "steps"},
    "launches": {"thread": "threads", "host": "host_events", "op": "host_events", "step": "steps"},
    "device_events": {"launch": "launches", "op": "host_events", "step": "steps"},
    "memory": {"thread": "threads", "op": "host_events"},
    "python_calls": {"thread": "threads", "parent": "python_calls"},
    "flows": {"thread": "threads"},
    "collectives": {"host_event": "host_events", "device_event": "device_events"},
    "snapshot_blocks": {"segment": "snapshot_segments"},
    "snapshot_stacks": {"frame": "snapshot_frames"},
    "others": {"thread": "threads"},
}
"""Columns of each frame with row numbers of another frame, or NONE. A parent's row comes before its children's."""


NumberKind = Literal["idle", "kernel_times", "host_times", "launches", "clock", "steps", "totals", "memory"]
"""Numbers that a fault of the recording can make wrong: when a device was idle; how long device rows last; how long
host rows last; which call launched which row; times of the host against those of devices; where steps begin and end;
how many device rows there are, and what they add up to; which allocations there are, and what they add up to."""


@dataclass(frozen=True)
class Fault:
    """Why numbers of a recording can't be trusted: something in it that can't have happened, or that is missing.

    Args:
        clause: The contradiction with its numbers, as a clause: `GPU events of 40.0 % of the launches are missing`.
        undermines: The numbers that it makes doubtful.
        remedy: How to record without it, as a sentence.
        affected_ns: How much time of the steps that count it may make wrong; None: all of it. Of recording, which
            makes the steps longer, too: by how much it changes shares of them.
        is_recording: Whether this time is what recording itself costs: several such faults are about the same time.
        cost_ns: All that recording costs these steps, if that is known.
        is_not_shown: Whether this time isn't in the recording, as the cause `not shown` of idle time says, too.
    """

    clause: str
    undermines: frozenset[NumberKind]
    remedy: str
    affected_ns: int | None = None
    is_recording: bool = False
    cost_ns: int = 0
    is_not_shown: bool = False

    @property
    def hides_an_end(self) -> bool:
        """Whether an unknown number of rows is missing, be they of the host or of devices, as in a file that is cut."""
        return self.affected_ns is None and "totals" in self.undermines


@dataclass(frozen=True)
class Diagnostic:
    """A problem of the recording or the file that affects its numbers.

    Args:
        rule: Its id, such as `truncated`.
        count: How many rows or places it affects.
        consequence: What it means for the numbers, and what to do about it, in words.
        first_offset: The first affected byte of the (decompressed) file, if it is a place in the file.
        level: note (good to know), warning (some numbers are off or missing), loss (data is gone).
        fault: What it undermines; None if verdicts can rest on the numbers as they are.
    """

    rule: str
    count: int
    consequence: str
    first_offset: int | None = None
    level: Literal["note", "warning", "loss"] = "warning"
    fault: Fault | None = None

    @property
    def undermines_steps(self) -> bool:
        """Whether any step may lack rows, as in a file that ends amid its events, which aren't in order of time."""
        return self.fault is not None and "steps" in self.fault.undermines


@dataclass(frozen=True)
class ReplayedCalls:
    """The calls of a capture that replays of its graph stand for (measures/graphs/replayed_calls.py).

    They took no host time. Those of a replay follow each other; outer ones come first.

    Args:
        host_events: The recorded rows of host_events, and the operators and annotations among these calls behind them.
        python_calls: The recorded rows of python_calls, and the modules among these calls behind them.
        recorded_op: Of each device row the operator that was open at its launch: a row of the recorded host_events.
        is_module: Of each call, whether it is the next of python_calls, a module's; else it is of host_events.
        parent: Of each call the one around it, or NONE.
        launch: Of each call, the launch of its graph: a row of launches, or NONE.
        innermost: Of each device row the innermost of these calls around its launch, or NONE.
        origin: Of each call how it is known: an index into SOURCES of measures/graphs/join.py.
    """

    host_events: pl.DataFrame
    python_calls: pl.DataFrame
    recorded_op: pl.Series
    is_module: NDArray[np.bool_]
    parent: NDArray[np.int32]
    launch: NDArray[np.int32]
    innermost: NDArray[np.int32]
    origin: NDArray[np.int8]


@dataclass(frozen=True)
class CaptureFiles:
    """What a search for the captures of a trace's graphs came to.

    Args:
        traces: Recordings of captures, or of the same work without graphs.
        node_notes: What side-car files say of nodes of graphs: node (CUDA's 64-bit number), mark, stack (one frame per
            line, the innermost first).
        unused: Files that were compared and don't fit, each with the reason.
        damaged: Files that can't be read, each with the problem.
    """

    traces: tuple[Trace, ...] = ()
    node_notes: pl.DataFrame | None = None
    unused: tuple[tuple[str, str], ...] = ()
    damaged: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class AllocatingCalls:
    """What a trace of the same process and time says of the allocations of a memory snapshot.

    Args:
        path: The trace.
        calls: ALLOCATING_CALLS.
        steps: STEP_MOMENTS.
        problem: Why the trace can't be used; empty if it can.
    """

    path: str
    calls: pl.DataFrame
    steps: pl.DataFrame
    problem: str = ""


NO_CAPTURES = CaptureFiles()
"""Nobody searched, or there is nothing to search for."""


def empty_frame(schema: Mapping[str, Any]) -> pl.DataFrame:
    """A frame without rows."""
    return pl.DataFrame(schema={name: pl.Enum([]) if kind is pl.Enum else kind for name, kind in schema.items()})


@dataclass(frozen=True)
class Trace:
    """What one worker did in one span.

    Args:
        path: The file it was read from, as the user knows it.
        origin_ns: Unix time of the origin, in nanoseconds, if the writer used that clock.
        window: Start and end of the recording, in nanoseconds since the origin.
        captures: Other recordings that say what its graphs launch: of their capture, or of the same work without
            graphs; and notes about their nodes. The cache doesn't store them with the trace.
        replayed: Calls that its graphs replay; None: none is known.
        allocating_calls: Of a memory snapshot, what a trace next to it says of its allocations; None: there is none.
        results: What was computed from it.
    """

    path: str
    origin_ns: int
    window: tuple[int, int]
    threads: pl.DataFrame
    host_events: pl.DataFrame
    launches: pl.DataFrame
    device_events: pl.DataFrame
    memory: pl.DataFrame
    python_calls: pl.DataFrame
    flows: pl.DataFrame
    syncs: pl.DataFrame
    collectives: pl.DataFrame
    others: pl.DataFrame
    counters: pl.DataFrame
    steps: pl.DataFrame
    meta: Meta
    diagnostics: tuple[Diagnostic, ...]
    snapshot_events: pl.DataFrame = field(default_factory=lambda: empty_frame(SNAPSHOT_EVENTS))
    snapshot_segments: pl.DataFrame = field(default_factory=lambda: empty_frame(SNAPSHOT_SEGMENTS))
    snapshot_blocks: pl.DataFrame = field(default_factory=lambda: empty_frame(SNAPSHOT_BLOCKS))
    snapshot_frames: pl.DataFrame = field(default_factory=lambda: empty_frame(SNAPSHOT_FRAMES))
    snapshot_stacks: pl.DataFrame = field(default_factory=lambda: empty_frame(SNAPSHOT_STACKS))
    snapshot_annotations: pl.DataFrame = field(default_factory=lambda: empty_frame(SNAPSHOT_ANNOTATIONS))
    captures: CaptureFiles = NO_CAPTURES
    replayed: ReplayedCalls | None = None
    allocating_calls: AllocatingCalls | None = None
    _recording: Trace | None = field(default=None, init=False, repr=False, compare=False)  # not of changed copies
    _whole: Trace | None = field(default=None, init=False, repr=False, compare=False)
    results: Results = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "results", Results(self))

    def release_free_memory(self) -> None:
        """Give free memory back to the system, if the trace is large: a computation of it frees as much as it keeps."""
        if self.meta.is_large:
            release_free_memory()

    @property
    def common_origin_ns(self) -> int:
        """Unix time of the origin on the run's reference clock, if known: comparable across ranks."""
        return self.origin_ns - (self.meta.clock or (0, 0))[0]

    @property
    def recording(self) -> Trace:
        """The trace as it was read, before it was joined with other recordings; the trace itself if it wasn't."""
        return self if self._recording is None else self._recording

    @property
    def whole(self) -> Trace:
        """The trace that this one is a part of, or the trace itself."""
        return self if self._whole is None else self._whole

    def as_part_of(self, trace: Trace) -> Trace:
        """The trace as a part of another one, some of whose rows it has."""
        object.__setattr__(self, "_whole", trace.whole)
        return self

    @property
    def recorded_op(self) -> pl.Series:
        """Of each device row the operator that was open at its launch (a row of host_events), or NONE.

        For a row that a graph replays it is the one around the launch of the graph, whereas `device_events.op` is the
        one that the graph's capture recorded.
        """
        return self.device_events["op"] if self.replayed is None else self.replayed.recorded_op

    @property
    def all_host_events(self) -> pl.DataFrame:
        """The rows of host_events, and behind them those that graphs replay; `op` of device_events is a row of these.

        Replayed rows take no time, have no place in the file, and aren't in the order of host_events.
        """
        return self.host_events if self.replayed is None else self.replayed.host_events

    @property
    def all_python_calls(self) -> pl.DataFrame:
        """The rows of python_calls, and behind them the calls of modules that graphs replay."""
        return self.python_calls if self.replayed is None else self.replayed.python_calls

    def with_captures(
        self, captures: CaptureFiles, op: pl.Series | None = None, calls: ReplayedCalls | None = None
    ) -> Trace:
        """The trace with the captures of its graphs, and the calls that these replay; `op` is that of device_events."""
        device = self.device_events if op is None else self.device_events.with_columns(op=op)
        return self._joined_copy(device_events=device, captures=captures, replayed=calls)

    def with_allocating_calls(self, calls: AllocatingCalls) -> Trace:
        """The snapshot with what a trace says of its allocations."""
        return self._joined_copy(allocating_calls=calls)

    def _joined_copy(self, **changes: Any) -> Trace:
        trace = replace(self, **changes)
        object.__setattr__(trace, "_recording", self.recording)
        return trace

    @property
    def ops(self) -> pl.DataFrame:
        """The host events that are operators: a copy, which may be large."""
        return self.host_events.filter(pl.col("kind") == "operator")

    @property
    def kernels(self) -> pl.DataFrame:
        """The device events that are kernels, including communication: a copy, which may be large."""
        return self.device_events.filter(pl.col("kind") == "kernel")
