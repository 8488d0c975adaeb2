"""A batch of rows → events sorted into frames, through the arrays that the scanner of JSON fills.

A text becomes the JSON token that a writer of JSON would have written, so that everything behind it is shared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import category_codes
from ...names.regex import regex
from ..scan import scanner as s
from ..scan.chunk import new_out
from ..scan.columns import ARG_AT, EVENT_CODES
from ..scan.counters import CounterLines
from ..scan.rows import Part, sorted_out
from . import schema
from .scan import Batch

Ints = NDArray[np.int64]

_AT = {arg.column: at for at, arg in ARG_AT.items()}
_NO_COUNTERS = CounterLines(np.empty(0, np.int64), b"")
_PROCESS_BITS, _PROCESS, _THREAD = 24, 0xFFFFFF, 0xFFFFFF
_CORRELATION_BITS = 32
_FAR_NS = 2**62
_API_VERSION = regex(r"(_v\d+)?(_ptsz|_ptds)?$")  # cudaLaunchKernel_v7000, cuLaunchKernel_ptsz
_DRIVER = regex(r"cu[A-Z]")
_MEMORY = ("pageable", "pinned", "device", "array", "managed", "device_static", "managed_static", "unknown")
"""CUDA_MEMOPR_MEMORY_KIND: CUPTI's numbers less one, and unknown last."""
_PEERS = 10  # CUDA_MEMCPY_KIND_PTOP
_RANGE_TEXT = (
    r"(?s)^(?P<name>.*?)(?:, seq = (?P<sequence>\d{1,18}))?(?P<id>, op_id = \d+)?"
    r"(?P<sizes>, sizes = \[[\[\]0-9, -]*\])?(?:, input_op_ids = \[[()0-9, -]*\])?$"
)
_OPERATOR_NAME = r"^[A-Za-z_][\w.]*::"  # with a namespace: aten::add, autograd::engine::evaluate_function: AddBackward0
_WAIT_KINDS = ("Unknown", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")
"""CUpti_ActivitySynchronizationType, in kineto's words."""


@dataclass(frozen=True)
class Session:
    """What rows refer to.

    Args:
        name_of: The text of each number of StringIds, for the numbers given.
        processes: The place of each process, by its number within `globalTid`; new ones get the next place.
        device_of: The index of a device by (process, its CUDA index); where it is missing, the latter.
        record_of: The correlation of the call that recorded an event, by (place of the process, eventSyncId).
        end_ns: When the recording ended, or MISSING.
    """

    name_of: Callable[[Ints], Mapping[int, str]]
    processes: Mapping[int, int]
    device_of: Mapping[tuple[int, int], int]
    record_of: Mapping[tuple[int, int], int]
    end_ns: int = s.MISSING


class Events:
    """The events of one batch while they are put together."""

    def __init__(self, batch: Batch, session: Session) -> None:
        self.batch, self.session = batch, session
        self._n = len(batch)
        self._codes: dict[bytes, int] = {}
        self._columns = {name: np.full(self._n, -1, np.int64) for name in EVENT_CODES}
        self._args: dict[str, Ints] = {}
        self.end = batch.integers.get("end", np.full(self._n, s.MISSING))

    def code(self, text: str | int) -> int:
        """The code of a text or a number."""
        token = json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")
        return self._codes.setdefault(token, len(self._codes))

    def codes_of(self, values: Ints, text_of: Callable[[int], str | int | None]) -> Ints:
        """A code per number, by the function; -1 for a missing number or text."""
        distinct, index = np.unique(values, return_inverse=True)
        texts = [None if value == s.MISSING else text_of(value) for value in distinct.tolist()]
        return np.array([-1 if text is None else self.code(text) for text in texts], np.int64)[index]

    def codes_of_texts(self, texts: pl.Series) -> Ints:
        """A code per text; -1 for null."""
        distinct = texts.drop_nulls().unique(maintain_order=True)
        code = np.array([*(self.code(text) for text in distinct.to_list()), -1], np.int64)
        return code[category_codes(texts.cast(pl.Enum(distinct)))]

    def set(self, column: str, codes: Ints | int) -> None:
        """Set one of EVENT_CODES."""
        self._columns[column][:] = codes

    def set_arg(self, column: str, values: Ints) -> None:
        """Set an argument's numbers; MISSING where it has none."""
        self._args[column] = values

    def set_arg_codes(self, column: str, codes: Ints) -> None:
        """Set an argument's texts."""
        self._args[column] = np.where(codes < 0, s.MISSING, codes)

    def part(self) -> Part:
        """The events, sorted into frames."""
        out, n = new_out(), self._n
        out.state[s.EVENTS] = n
        out.codes[:, :n] = [self._columns[name] for name in EVENT_CODES]
        start = self.batch["start"]
        has_both = (start != s.MISSING) & (self.end != s.MISSING)
        dur = np.clip(self.end, -_FAR_NS, _FAR_NS - 1) - np.clip(start, -_FAR_NS, _FAR_NS - 1)  # fits 64 bits
        out.times[0, :n], out.times[1, :n] = start, np.where(has_both, dur, s.MISSING)
        out.offsets[:n], out.lengths[:n] = self.batch.offset, 1
        for column, values in self._args.items():
            rows = np.flatnonzero(values != s.MISSING)
            at = _AT[column]
            out.arg_counts[at] = rows.size
            out.arg_rows[at, : rows.size], out.arg_values[at, : rows.size] = rows, values[rows]
        return sorted_out(out, list(self._codes), 0, _NO_COUNTERS)

    def set_thread(self, thread: Ints) -> None:
        """Set process and thread from globalTid."""
        self.set("pid", self.codes_of(process_of(thread), int))
        self.set("tid", self.codes_of(np.where(thread == s.MISSING, s.MISSING, thread & _THREAD), int))

    def correlation(self, process: Ints) -> Ints:
        """Correlations that are unique in the file: CUPTI counts per process."""
        return unique_correlation(self.batch["correlationId"], process, self.session.processes)

    def device(self, column: str = "deviceId") -> Ints:
        """The index of a device: CUDA's in a file of one process, the machine's in one of several."""
        own, process = self.batch[column], process_of(self.batch["globalPid"])
        if not self.session.device_of:
            return own
        return of_pairs(process, own, lambda pair: self.session.device_of.get(pair, pair[1]))


def process_of(thread: Ints) -> Ints:
    """The process of a globalTid or globalPid."""
    return np.where(thread == s.MISSING, s.MISSING, thread >> _PROCESS_BITS & _PROCESS)


def unique_correlation(own: Ints, process: Ints, number_of: Mapping[int, int]) -> Ints:
    """A process' correlations, numbered apart from those of other processes."""
    distinct, at = np.unique(process, return_inverse=True)
    number = np.array([number_of[value] for value in distinct.tolist()], np.int64)[at]
    is_one = (own > 0) & (own < 1 << _CORRELATION_BITS)
    return np.where(is_one, own | number << _CORRELATION_BITS, s.MISSING)


def of_pairs(first: Ints, second: Ints, number_of: Callable[[tuple[int, int]], int]) -> Ints:
    """The function's value for each pair of numbers, computed once per pair that occurs."""
    pairs, at = np.unique(np.stack([first, second]), axis=1, return_inverse=True)
    return np.array([number_of((a, b)) for a, b in pairs.T.tolist()], np.int64)[at.reshape(-1)]


def part_of(batch: Batch, session: Session) -> Part:
    """The events of a batch."""
    events = Events(batch, session)
    events.set("phase", events.code("X"))
    _FILL[batch.source.table](events)
    return events.part()


def _call(events: Events) -> None:
    batch = events.batch
    events.set_thread(batch["globalTid"])
    names = _api_names(events)
    events.set("name", events.codes_of(batch["nameId"], names.get))
    runtime, driver = events.code("cuda_runtime"), events.code("cuda_driver")
    is_driver = np.isin(batch["nameId"], [number for number, name in names.items() if _DRIVER.match(name)])
    events.set("category", np.where(is_driver, driver, runtime))
    events.set_arg("correlation", events.correlation(process_of(batch["globalTid"])))


def _api_names(events: Events) -> dict[int, str]:
    """Names of the API without the version of their parameters, as kineto writes them."""
    names = events.session.name_of(np.unique(events.batch["nameId"]))
    return {number: _API_VERSION.sub("", name) for number, name in names.items()}


def _work(events: Events, category: str) -> None:
    """What kernels, copies and fills share."""
    batch = events.batch
    device, stream = events.device(), batch["streamId"]
    events.set("category", events.code(category))
    events.set("pid", events.codes_of(device, int))
    events.set("tid", events.codes_of(stream, int))
    events.set_arg("device", device)
    events.set_arg("stream", stream)
    events.set_arg("correlation", events.correlation(process_of(batch["globalPid"])))
    if "graphNodeId" in batch.integers:
        node = batch["graphNodeId"]
        is_node = node > 0
        events.set_arg("graph_node_id", np.where(is_node, node, s.MISSING))
        events.set_arg("graph_id", np.where(is_node, node >> 32, s.MISSING))


def _kernel(events: Events) -> None:
    batch = events.batch
    _work(events, "kernel")
    full, short = batch["demangledName"], batch["shortName"]
    name = np.where(full == s.MISSING, short, full)
    events.set("name", events.codes_of(name, events.session.name_of(np.unique(name)).get))
    for arg, axes in (("grid", ("gridX", "gridY", "gridZ")), ("block", ("blockX", "blockY", "blockZ"))):
        sizes = pl.DataFrame({axis: batch[axis] for axis in axes})
        size = pl.when(pl.min_horizontal(axes) >= 0).then(pl.format("[{}, {}, {}]", *axes))
        codes = events.codes_of_texts(sizes.select(size.alias("size")).to_series())
        events.set_arg_codes(arg, codes)
    registers, static, dynamic = (batch[n] for n in ("registersPerThread", "staticSharedMemory", "dynamicSharedMemory"))
    events.set_arg("registers_per_thread", registers)
    is_known = (static != s.MISSING) & (dynamic != s.MISSING)
    shared_bytes = np.where(is_known, static, 0) + np.where(is_known, dynamic, 0)
    events.set_arg("shared_memory_bytes", np.where(is_known, shared_bytes, s.MISSING))


def _copy(events: Events) -> None:
    batch = events.batch
    _work(events, "gpu_memcpy")
    events.set("name", events.code("Memcpy"))
    events.set_arg("bytes", batch["bytes"])
    events.set_arg_codes("copy_kind", events.codes_of(batch["copyKind"], int))
    for arg, column in (("source_kind", "srcKind"), ("target_kind", "dstKind")):
        kinds = events.codes_of(batch[column], lambda kind: _MEMORY[kind] if 0 <= kind < len(_MEMORY) else None)
        events.set_arg_codes(arg, kinds)
    is_between = batch["copyKind"] == _PEERS
    for arg, column in (("from_device", "srcDeviceId"), ("to_device", "dstDeviceId")):
        events.set_arg(arg, np.where(is_between, events.device(column), s.MISSING))


def _fill(events: Events) -> None:
    batch = events.batch
    _work(events, "gpu_memset")
    events.set("name", events.code("Memset"))
    events.set_arg("bytes", batch["bytes"])
    kind = batch["memKind"]
    of_cupti = np.where(kind == len(_MEMORY) - 1, 0, kind + 1)
    events.set_arg("memory_kind", np.where(kind == s.MISSING, s.MISSING, of_cupti))


def _graph(events: Events) -> None:
    """A graph that was recorded as a whole (--cuda-graph-trace=graph, the default): one row instead of its nodes."""
    batch = events.batch
    _work(events, "kernel")
    number = np.where(batch["graphId"] == s.MISSING, batch["graphExecId"], batch["graphId"])
    names = events.codes_of(number, lambda graph: f"CUDA graph {graph} (recorded as a whole)")
    events.set("name", np.where(names < 0, events.code("CUDA graph (recorded as a whole)"), names))


def _wait(events: Events) -> None:
    batch = events.batch
    kind = batch["syncType"]
    process = process_of(batch["globalPid"])
    device, stream = events.device(), batch["streamId"]
    names = events.codes_of(
        kind, lambda number: _WAIT_KINDS[number] if 0 <= number < len(_WAIT_KINDS) else _WAIT_KINDS[0]
    )
    events.set("category", events.code("cuda_sync"))
    events.set("name", names)
    events.set("pid", events.codes_of(device, int))
    events.set("tid", events.codes_of(stream, int))
    events.set_arg_codes("sync_kind", names)
    events.set_arg("device", device)
    events.set_arg("stream", stream)
    events.set_arg("correlation", events.correlation(process))
    is_of_event = (kind == 1) | (kind == 2)
    events.set_arg("wait_on_event", np.where(is_of_event, batch["eventId"], s.MISSING))
    record = of_pairs(process, batch["eventSyncId"], lambda pair: events.session.record_of.get(pair, s.MISSING))
    events.set_arg("wait_on_record", np.where(is_of_event, record, s.MISSING))


def _range(events: Events) -> None:
    batch = events.batch
    kind = batch["eventType"]
    functions, row = _functions(events)
    is_pushed, is_mark = np.isin(kind, schema.PUSHED_RANGES), kind == schema.MARK
    is_operator = functions["is_operator"].to_numpy()[row] & is_pushed
    category = np.where(is_operator, events.code("cpu_op"), events.code("user_annotation"))
    events.set("category", np.where(is_pushed | is_mark, category, events.code("nvtx_range")))
    events.set("phase", np.where(is_mark, events.code("i"), events.code("X")))
    events.set("name", events.codes_of_texts(functions["name"])[row])
    events.set_thread(batch["globalTid"])
    sequence = functions["sequence"].fill_null(s.MISSING).to_numpy()[row]
    events.set_arg("sequence", np.where(is_operator, sequence, s.MISSING))
    shapes = events.codes_of_texts(functions["shapes"])[row]
    events.set_arg_codes("input_shapes", np.where(is_operator, shapes, -1))
    is_open = (events.end == s.MISSING) & ~is_mark
    events.end = np.where(is_open, events.session.end_ns, events.end)
    events.set_arg_codes("finished", np.where(is_open, events.code("false"), -1))


def _functions(events: Events) -> tuple[pl.DataFrame, Ints]:
    """The parts of each text of the batch's ranges, and the row of each range in them; the last row has no text.

    Texts of StringIds are taken apart once, however many ranges refer to them.
    """
    number, own = events.batch["textId"], events.batch.texts["text"]
    names = events.session.name_of(np.unique(number))
    numbers = np.array(list(names), np.int64)  # in order
    at = np.searchsorted(numbers, number)
    is_named = np.isin(number, numbers)
    texts = pl.concat(
        [pl.Series(list(names.values()), dtype=pl.String), own.drop_nulls(), pl.Series([None], dtype=pl.String)]
    )
    has_own = own.is_not_null().to_numpy()
    row = np.where(has_own, numbers.size + np.cumsum(has_own) - 1, np.where(is_named, at, len(texts) - 1))
    return _recorded_functions(texts), row


def _recorded_functions(texts: pl.Series) -> pl.DataFrame:
    """The parts of each range's text: name, sequence, shapes (as JSON has them), and whether it is an operator's.

    `torch.autograd.profiler.emit_nvtx` (and `nsys profile --pytorch=autograd-nvtx`, which turns it on) pushes a range
    per RecordFunction: its name, then `, seq = N`, `, op_id = N`, `, sizes = [[4, 8], []]` and
    `, input_op_ids = [(1, 0)]`, each if it is known (getNvtxStr in torch/csrc/profiler/util.cpp). These are operators
    if torch names them so; all other ranges are annotations, whichever program wrote them.
    """
    parts = pl.DataFrame({"text": texts}).select(pl.col("text").str.extract_groups(_RANGE_TEXT)).unnest("text")
    has_inputs = pl.any_horizontal(pl.col("sequence", "sizes").is_not_null())  # record_function's ranges have none
    is_named = pl.col("id").is_not_null() & pl.col("name").str.contains(_OPERATOR_NAME)
    return parts.select(
        "name",
        pl.col("sequence").cast(pl.Int64),
        pl.col("sizes").str.strip_prefix(", sizes = ").alias("shapes"),
        (has_inputs | is_named | pl.col("name").str.starts_with("aten::")).fill_null(value=False).alias("is_operator"),
    )


_FILL: Mapping[str, Callable[[Events], None]] = {
    schema.RANGES: _range,
    schema.CALLS: _call,
    schema.KERNELS: _kernel,
    schema.COPIES: _copy,
    schema.FILLS: _fill,
    schema.GRAPHS: _graph,
    schema.WAITS: _wait,
}
