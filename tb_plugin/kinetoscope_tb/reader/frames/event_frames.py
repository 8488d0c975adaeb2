"""Sorted rows of codes and numbers → the frames of `model.COLLECTED`, one column after the other.

A column of codes is freed as soon as its Polars column exists, so that a large trace is never in memory twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.constants import frame_of, per_value, stores_one, with_constants
from ...arrays.gather import NONE, enum_of, map_categories
from ...names.tensor_cores import is_matrix_op
from ...trace.model import DEVICE_KINDS, HOST_KINDS, LAUNCH_KINDS
from ..scan.rows import COLLECTIVES, LAYOUTS, OPEN, Rows
from ..scan.tokens import Texts, distinct_codes, float_of, leading_digits, shapes_text

Ints = NDArray[Any]

_ENUMS = {"host_events": HOST_KINDS, "launches": LAUNCH_KINDS, "device_events": DEVICE_KINDS}
_AI_CPU = ("AI_CPU", "KERNEL_AICPU")  # types of tasks of msprof
_IN_TID = -2
_MOST_BLOCKS = 2**50  # per multiprocessor: more is damage
_DEFAULT_SHARED_MEMORY = 48 * 2**10  # bytes of a block, unless its kernel asks for more (CUDA C++ Programming Guide)
_ROUTES = ("HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
_COPIES = {str(number): name for number, name in enumerate(_ROUTES, start=1)}
"""CUpti_ActivityMemcpyKind: the writers have no name for 9, so it is a number in their files."""

_MEMORY_KINDS = ("Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static")
"""CUpti_ActivityMemoryKind, in kineto's words (cupti_strings.cpp, memoryKindString)."""

_MEMORY_OF_TEXT = {kind.lower().replace(" ", "_"): kind for kind in _MEMORY_KINDS}

_NESTED = ("host_events", "launches", "python_calls")
"""In the order thread, start, longest first, file; the others in the order start, file."""


class Frame:
    """The events of one frame; each of its columns is built once.

    Args:
        name: Which frame.
        rows: Its events in the order of the file.
        texts: Of the codes.
        origin: The file's time of the time axis' zero.
        thread: Row in the threads frame of each event; empty for events of devices.
    """

    def __init__(self, name: str, rows: Rows, texts: Texts, origin: int, thread: Ints) -> None:
        self.name, self.texts = name, texts
        self._rows, self._thread = rows, thread
        self._start = rows.gather("ts") - origin
        self._order = _nested_order(thread, self._start, rows["dur"]) if name in _NESTED else _order(self._start)

    @property
    def height(self) -> int:
        """How many events there are."""
        return int(self._start.size)

    def gather(self, column: str) -> Ints:
        """The column's codes or numbers, in the order of the frame."""
        return self._in_order(self._rows.gather(column))

    def _in_order(self, values: Ints) -> Ints:
        return values if self._order is None or stores_one(values) else values[self._order]

    def thread(self) -> Ints:
        """Rows of the threads frame."""
        return self._in_order(self._thread)

    def start(self) -> Ints:
        """When each event began, in ns since the origin."""
        return self._in_order(self._start)

    def dur(self) -> NDArray[np.int64]:
        """How long each event lasts, in ns, or NONE."""
        return np.maximum(self.gather("dur").astype(np.int64), NONE)

    def has_end(self) -> NDArray[np.bool_]:
        """Whether it is known when each event ended, unless it had no range to end."""
        has_end: NDArray[np.bool_] = self._in_order(self._rows["dur"]) != OPEN
        return has_end

    def times(self) -> dict[str, Ints]:
        """Start and duration; an event without one lasts no time."""
        return {"start_ns": self.start(), "dur_ns": np.maximum(self.dur(), 0)}

    def position(self) -> dict[str, Ints]:
        """The offsets of the events in the text."""
        return {"offset": self.gather("offset").astype(np.int64), "length": self.gather("length").astype(np.int32)}

    def kind(self) -> pl.Series:
        """The kind of each event; one if all are of the same."""
        kind = self.gather("kind")
        kind = (kind[:1] if stores_one(kind) else kind) - LAYOUTS[self.name].first
        return pl.Series(kind.astype(np.uint8)).cat.to(_ENUMS[self.name])

    def text(self, column: str, spell: Callable[[str], str] = str) -> pl.Series:
        """A text of the event itself or of an argument, converted by the function; as `enum`."""
        return enum(self.gather(column), self.texts, spell)

    def integer(self, arg: str, dtype: type[np.signedinteger[Any]] = np.int64) -> Ints:
        """An integer argument; NONE where it is missing or doesn't fit."""
        limits = np.iinfo(dtype)

        def convert(values: Ints) -> Ints:
            if np.iinfo(values.dtype).max > limits.max:
                values = np.where((values < limits.min) | (values > limits.max), NONE, values)
            return values.astype(dtype)

        return per_value(convert, self.gather(arg))

    def float_arg(self, arg: str, most: float) -> NDArray[np.float64]:
        """A float argument; NaN where it is missing, isn't a number, or isn't between 0 and `most`."""
        codes = self.gather(arg)
        value_of = np.full(len(self.texts) + 1, np.nan)
        for code in distinct_codes(codes, len(self.texts)):
            if code >= 0:
                value = float_of(self.texts.tokens[code])
                value_of[code] = value if 0 <= value <= most else np.nan
        return per_value(value_of.__getitem__, codes)

    def is_false(self, arg: str) -> NDArray[np.bool_]:
        """Where the argument is false."""
        codes = self.gather(arg)
        false = [code for code in distinct_codes(codes, len(self.texts)) if (self.texts[code] or "").lower() == "false"]
        return np.isin(codes, false)

    def by_text(self, column: str, number_of: Callable[[str], int | None], missing: int) -> NDArray[np.int64]:
        """A number computed from a text of each event, once per distinct text."""
        codes = self.gather(column)
        numbers = np.full(len(self.texts) + 1, missing, np.int64)
        for code in distinct_codes(codes, len(self.texts)):
            number = number_of(self.texts[code] or "")
            if number is not None:
                numbers[code] = number
        return per_value(numbers.__getitem__, codes)


def _order(start: NDArray[np.int64]) -> Ints | None:
    """The rows in order of their start, then of the file; None if they are."""
    return np.argsort(start, kind="stable") if (start[1:] < start[:-1]).any() else None


def _nested_order(thread: Ints, start: NDArray[np.int64], dur: Ints) -> Ints | None:
    """The rows in the order thread, start, longest first, file; None if they are. The file is often nearly so."""
    order = np.argsort(thread, kind="stable") if (thread[1:] < thread[:-1]).any() else None
    if order is not None:
        thread, start, dur = thread[order], start[order], dur[order]
    follows = (start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (dur[1:] <= dur[:-1]))
    if (follows | (thread[1:] > thread[:-1])).all():
        return order
    again = np.lexsort((-dur.astype(np.int64), start, thread))
    return again if order is None else order[again]


def enum(codes: Ints, texts: Texts, spell: Callable[[str], str] = str) -> pl.Series:
    """A Polars enum of the texts that occur; null for code -1. Different tokens may stand for the same text.

    Of an array that stores one code for all rows, it is a series of length 1.
    """
    codes = codes[:1] if stores_one(codes) else codes
    number_of: dict[str, int] = {}
    numbers = np.full(len(texts) + 1, NONE, np.int32)
    for code in distinct_codes(codes, len(texts)):
        text = texts[code]
        if text is not None:
            numbers[code] = number_of.setdefault(spell(text), len(number_of))
    return enum_of(numbers[codes], list(number_of))


def frame(name: str, rows: Rows, texts: Texts, origin: int, thread: Ints) -> pl.DataFrame:
    """One frame of model.COLLECTED with its recorded columns, in its order; the arguments are those of `Frame`."""
    return _columns(Frame(name, rows, texts, origin, thread)) if rows["offset"].size else _empty_frame(name)


@cache
def _empty_frame(name: str) -> pl.DataFrame:
    """The frame of a file without such events: most small files lack most kinds."""
    return _columns(Frame(name, Rows(LAYOUTS[name]), Texts([]), 0, np.empty(0, np.int32)))


def _columns(part: Frame) -> pl.DataFrame:
    return with_constants(frame_of({**_COLUMNS[part.name](part), **part.position()}, part.height))


def _host_events(frame: Frame) -> dict[str, Any]:
    name, has_end = frame.text("name"), frame.has_end()
    return {
        "name": name,
        "kind": frame.kind(),
        "thread": frame.thread(),
        **frame.times(),
        "external_id": frame.integer("external_id"),
        "sequence": frame.integer("sequence"),
        "fwd_thread": frame.integer("fwd_thread"),
        "input_shapes": frame.text("input_shapes", shapes_text),
        "input_types": frame.text("input_types"),
        "concrete_inputs": _concrete_inputs(frame, name),
        "call_stack": frame.text("call_stack"),
        "is_finished": has_end & ~frame.is_false("finished"),
    }


def _launches(frame: Frame) -> dict[str, Any]:
    return {
        "name": frame.text("name"),
        "kind": frame.kind(),
        "thread": frame.thread(),
        **frame.times(),
        "correlation": _correlation(frame),
        "external_id": frame.integer("external_id"),
        "kernel": frame.text("kernel"),
    }


def _device_events(frame: Frame) -> dict[str, Any]:
    graph = _from_one(frame, "graph_id")
    shared_memory = frame.integer("shared_memory_bytes")
    return {
        "name": _work_names(frame),
        "kind": frame.kind(),
        **_device_and_stream(frame, graph),
        **frame.times(),
        "correlation": _correlation(frame),
        "external_id": frame.integer("external_id"),
        "bytes": frame.integer("bytes"),
        "grid": frame.text("grid"),
        "block": frame.text("block"),
        "registers_per_thread": frame.integer("registers_per_thread", np.int32),
        "shared_memory_bytes": shared_memory,
        "blocks_per_sm": frame.float_arg("blocks_per_sm", _MOST_BLOCKS),
        "occupancy_frac": _occupancy(frame, shared_memory),
        "occupancy_limiter": frame.text("occupancy_limiter"),
        "collective": frame.text("collective"),
        "graph_id": graph,
        "graph_node_id": _node_ids(graph, frame.integer("graph_node_id")),
        "mark": frame.text("label"),
        "from_device": frame.integer("from_device", np.int32),
        "to_device": frame.integer("to_device", np.int32),
    }


def _occupancy(frame: Frame, shared_memory: Ints) -> NDArray[np.float64]:
    """The estimated occupancy; NaN where Kineto couldn't estimate it.

    It asks CUDA's occupancy calculator without raising the limit of shared memory, so that no block of a kernel with
    more than the default fits, and writes 0 % for a kernel that runs.
    """
    occupancy = frame.float_arg("occupancy_percent", 100) / 100
    is_unknown = (occupancy == 0) & (shared_memory > _DEFAULT_SHARED_MEMORY)
    return np.where(is_unknown, np.nan, occupancy)


def _memory(frame: Frame) -> dict[str, Any]:
    return {
        "name": frame.text("name"),
        "thread": frame.thread(),
        "start_ns": frame.start(),
        "device_type": frame.integer("memory_device_type", np.int32),
        "device": frame.integer("memory_device", np.int32),
        "address": frame.integer("memory_address"),
        "bytes": frame.integer("memory_bytes"),
        "total_allocated": frame.integer("total_allocated"),
        "total_reserved": frame.integer("total_reserved"),
    }


def _python_calls(frame: Frame) -> dict[str, Any]:
    return {
        "name": frame.text("name"),
        "thread": frame.thread(),
        **frame.times(),
        "python_id": frame.integer("python_id"),
        "python_parent_id": frame.integer("python_parent_id"),
        "module_id": frame.integer("module_id"),
    }


def _flows(frame: Frame) -> dict[str, Any]:
    return {
        "category": frame.text("category"),
        "phase": frame.text("phase"),
        "id": frame.integer("id"),
        "thread": frame.thread(),
        "start_ns": frame.start(),
    }


def _syncs(frame: Frame) -> dict[str, Any]:
    return {
        "name": frame.text("name"),
        "category": frame.text("category"),
        **_synced_place(frame),
        **frame.times(),
        "correlation": _correlation(frame),
        "sync_kind": frame.text("sync_kind"),
        "wait_on_stream": frame.integer("wait_on_stream"),
        "wait_on_event": frame.integer("wait_on_event"),
        "wait_on_record": frame.integer("wait_on_record"),
        "event_id": frame.integer("event_id"),
    }


def collectives(rows: Rows, texts: Texts) -> pl.DataFrame:
    """The frame of collectives, in the order of the file."""
    return _collectives(rows, texts) if rows["offset"].size else _no_collectives()


@cache
def _no_collectives() -> pl.DataFrame:
    return _collectives(Rows(COLLECTIVES), Texts([]))


def _collectives(rows: Rows, texts: Texts) -> pl.DataFrame:
    def text(column: str) -> pl.Series:
        return enum(rows.gather(column), texts)

    def integer(column: str) -> Ints:
        return per_value(lambda values: values.astype(np.int64), rows.gather(column))

    offset = integer("offset")
    return frame_of(
        {
            "offset": offset,
            "name": text("collective"),
            "dtype": text("dtype"),
            "in_elements": integer("in_elements"),
            "out_elements": integer("out_elements"),
            "in_split": text("in_split"),
            "out_split": text("out_split"),
            "group_size": integer("group_size"),
            "group": text("group"),
            "group_description": text("group_description"),
            "group_ranks": text("group_ranks"),
            "rank": integer("rank"),
            "source_rank": integer("source_rank"),
            "target_rank": integer("target_rank"),
            "nth": integer("nth"),
            "is_asynchronous": text("is_asynchronous"),
        },
        offset.size,
    )


def _others(frame: Frame) -> dict[str, Any]:
    return {
        "name": frame.text("name"),
        "category": frame.text("category"),
        "phase": frame.text("phase"),
        "thread": frame.thread(),
        "start_ns": frame.start(),
        "dur_ns": frame.dur(),
    }


def _correlation(frame: Frame) -> Ints:
    """Zero links nothing: torch before 2.0 writes it for "none" (kineto b96fe094)."""
    return _from_one(frame, "correlation")


def _from_one(frame: Frame, arg: str) -> Ints:
    """A number; zero means missing."""
    return per_value(lambda values: np.where(values == 0, NONE, values), frame.integer(arg))


def _concrete_inputs(frame: Frame, name: pl.Series) -> pl.Series:
    """Stored for operators whose work follows from them; for all operators they would be many distinct texts."""
    codes = frame.gather("concrete_inputs")
    return enum(np.where(map_categories(name, is_matrix_op), codes, NONE), frame.texts)


def _work_names(frame: Frame) -> pl.Series:
    copy, source, target = (frame.text(arg) for arg in ("copy_kind", "source_kind", "target_kind"))
    names = _with_kinds(frame.text("name"), copy, source, target, frame.integer("memory_kind"))
    return _with_unit(names, frame.text("task_type"), frame.height)


def _with_kinds(
    names: pl.Series, copy: pl.Series, source: pl.Series, target: pl.Series, memory: NDArray[np.signedinteger[Any]]
) -> pl.Series:
    """The names; for copies and fills whose kinds are arguments, those that kineto gives them.

    CUPTI's in-process writers (`_cupti_monitor` of torch 2.13, `_cupti` of 2.14, `_cuspy` of 2.15) call all of them
    "Memcpy" and "Memset", and write the direction and the memory as arguments. kineto's names say both:
    "Memcpy HtoD (Pinned -> Device)", "Memset (Device)".

    Args:
        names: Of kernels, copies and fills; any of these columns may have one text for all of them.
        copy: The direction of each copy, such as HtoD; null where it isn't an argument.
        source, target: The memory that it reads and writes, such as pinned.
        memory: The kind of memory that a fill writes: CUPTI's number, or NONE.
    """
    if copy.null_count() == copy.len() and (memory < 0).all():
        return names
    rows = frame_of({"name": names, "copy": copy, "source": source, "target": target, "memory": memory}, memory.size)
    name = pl.col("name").cast(pl.String)
    route = pl.col("copy").cast(pl.String).replace(_COPIES)
    ends = [
        pl.col(end).cast(pl.String).replace_strict(_MEMORY_OF_TEXT, default="Unknown") for end in ("source", "target")
    ]
    of_copy = pl.format("Memcpy {} ({} -> {})", route, *ends)
    of_fill = pl.format(
        "Memset ({})", pl.col("memory").replace_strict(dict(enumerate(_MEMORY_KINDS)), default="Unknown")
    )
    full = rows.select(
        pl.when((name == "Memcpy") & route.is_not_null())
        .then(of_copy)
        .when((name == "Memset") & (pl.col("memory") >= 0))
        .then(of_fill)
        .otherwise(name)
    ).to_series()
    return full.cast(pl.Enum(full.unique(maintain_order=True).drop_nulls())).alias(names.name)


def _with_unit(names: pl.Series, task_type: pl.Series, height: int) -> pl.Series:
    """The names; those of an NPU's AI CPUs say so, apart from those of its AI Cores."""
    if task_type.null_count() == task_type.len():
        return names
    rows = frame_of({"name": names, "task_type": task_type}, height).with_columns(pl.all().cast(pl.String))
    is_apart = pl.col("task_type").is_in(_AI_CPU).fill_null(value=False)
    full_names = rows.select(pl.when(is_apart).then(pl.format("{} (AI_CPU)", "name")).otherwise("name")).to_series()
    return full_names.cast(pl.Enum(full_names.unique(maintain_order=True).drop_nulls())).alias("name")


def _node_ids(graph: Ints, node: Ints) -> Ints:
    """A graph's node: its graph's number and its own as 64 bits. Cuspy (torch 2.15) writes the lower 32 alone."""
    is_lower = (graph < 1 << 31) & (node >= 0) & (node < 1 << 32)
    return np.where(graph >= 0, np.where(is_lower, (graph << 32) | node, node), NONE)


def _device_and_stream(frame: Frame, graph: Ints) -> dict[str, Ints]:
    """Device and stream from the arguments, or else from pid and the number in tid: 7 or "stream 7" (torch up to 1.9).

    The autograd profiler's exporter has one pid for all devices, and the device in the tid. On work of graphs the
    argument `stream` may be a mark's (torch.cuda.graph_annotations.mark_stream), and tid the stream; if the exporter
    moved the work to a lane, `original_stream` is the stream (torch 2.15: _cuspy, _chrome_trace_export).
    """
    device, stream = frame.integer("device", np.int32), frame.integer("stream")
    original = frame.integer("original_stream")
    tid = frame.by_text("tid", leading_digits, missing=NONE)
    device = np.where(device >= 0, device, frame.by_text("pid", _device_of_pid, missing=0))
    stream = np.where((stream >= 0) & ~((graph >= 0) & (tid >= 0)), stream, tid)
    stream = np.where(original >= 0, original, stream)
    in_tid = device == _IN_TID
    device, stream = np.where(in_tid, np.maximum(stream, 0), device), np.where(in_tid, NONE, stream)
    lane = np.where((original >= 0) & (tid != stream), tid, NONE)
    return {"device": device.astype(np.int32), "stream": stream, "lane": lane}


def _synced_place(frame: Frame) -> dict[str, Ints]:
    """Device and stream of a wait; a whole context was spelt as 4294967295 up to torch 2.2 (kineto eeafa44b)."""
    device, stream = frame.integer("device", np.int32), frame.integer("stream")
    device = np.where(device >= 0, device, frame.by_text("pid", _device_of_pid, missing=NONE))
    return {"device": device.astype(np.int32), "stream": np.where(stream == 2**32 - 1, NONE, stream)}


def _device_of_pid(pid: str) -> int | None:
    if pid.endswith(" functions"):
        return _IN_TID
    return int(pid) if pid.isascii() and pid.isdigit() and len(pid) < 10 else None


_COLUMNS: Mapping[str, Callable[[Frame], dict[str, Any]]] = {
    "host_events": _host_events,
    "launches": _launches,
    "device_events": _device_events,
    "memory": _memory,
    "python_calls": _python_calls,
    "flows": _flows,
    "syncs": _syncs,
    "others": _others,
}
