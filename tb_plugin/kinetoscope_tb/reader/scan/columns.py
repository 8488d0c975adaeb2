"""Which keys of an event are read, and arrays that grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.constants import repeat_value, stores_one
from ...arrays.pages import own_pages
from .scanner import CODE, INTEGER, OBJECT, TIME, Keys, key_hash

EVENT_CODES = ("phase", "category", "name", "pid", "tid")
EVENT_KEYS = ("ph", "cat", "name", "pid", "tid")
TIMES = ("ts", "dur")


@dataclass(frozen=True)
class Arg:
    """One column of arguments.

    Args:
        column: Its name here.
        kind: CODE for texts, lists, floats and booleans, which are few and repeat; INTEGER.
        keys: Its keys in traces; they changed with kineto f720123b, d492d29e and others.
        level: 0 next to ph and ts, 1 in args, 2 in an object inside args.
    """

    column: str
    kind: int
    keys: tuple[str, ...]
    level: int = 1


ARGS = (
    Arg("id", INTEGER, ("id",), level=0),
    Arg("external_id", INTEGER, ("External id", "external id", "externalId")),
    Arg("correlation", INTEGER, ("correlation", "correlationId", "correlation_id")),
    Arg("sequence", INTEGER, ("Sequence number",)),
    Arg("fwd_thread", INTEGER, ("Fwd thread id",)),
    Arg("input_shapes", CODE, ("Input Dims", "Input dims")),
    Arg("input_types", CODE, ("Input type",)),
    Arg("concrete_inputs", CODE, ("Concrete Inputs",)),
    Arg("call_stack", CODE, ("Call stack",)),
    Arg("finished", CODE, ("finished",)),
    Arg("device", INTEGER, ("device",)),
    Arg("stream", INTEGER, ("stream",)),
    Arg("original_stream", INTEGER, ("original_stream",)),
    Arg("bytes", INTEGER, ("bytes", "size")),
    Arg("copy_kind", CODE, ("copy kind",)),
    Arg("source_kind", CODE, ("src kind",)),
    Arg("target_kind", CODE, ("dst kind",)),
    Arg("memory_kind", INTEGER, ("memory kind",)),
    Arg("grid", CODE, ("grid",)),
    Arg("block", CODE, ("block",)),
    Arg("registers_per_thread", INTEGER, ("registers per thread",)),
    Arg("shared_memory_bytes", INTEGER, ("shared memory",)),
    Arg("blocks_per_sm", CODE, ("blocks per SM",)),
    Arg("occupancy_percent", CODE, ("est. achieved occupancy %", "theoretical occupancy %")),
    Arg("occupancy_limiter", CODE, ("limitingFactors",), level=2),
    Arg("graph_id", INTEGER, ("graph id",)),
    Arg("graph_node_id", INTEGER, ("graph node id",)),
    Arg("from_device", INTEGER, ("fromDevice",)),
    Arg("to_device", INTEGER, ("toDevice",)),
    Arg("sync_kind", CODE, ("cuda_sync_kind",)),
    Arg("wait_on_stream", INTEGER, ("wait_on_stream",)),
    Arg("wait_on_event", INTEGER, ("wait_on_cuda_event_id",)),
    Arg("wait_on_record", INTEGER, ("wait_on_cuda_event_record_corr_id",)),
    Arg("event_id", INTEGER, ("event_id",)),
    Arg("collective", CODE, ("Collective name",)),
    Arg("dtype", CODE, ("dtype",)),
    Arg("in_elements", INTEGER, ("In msg nelems", "In msg size")),
    Arg("out_elements", INTEGER, ("Out msg nelems", "Out msg size")),
    Arg("in_split", CODE, ("In split size",)),
    Arg("out_split", CODE, ("Out split size",)),
    Arg("group_size", INTEGER, ("Group size",)),
    Arg("group", CODE, ("Process Group Name", "Process Group ID")),
    Arg("group_description", CODE, ("Process Group Description",)),
    Arg("group_ranks", CODE, ("Process Group Ranks",)),
    Arg("rank", INTEGER, ("Rank",)),
    Arg("source_rank", INTEGER, ("Src Rank",)),
    Arg("target_rank", INTEGER, ("Dst Rank",)),
    Arg("nth", INTEGER, ("Seq",)),
    Arg("is_asynchronous", CODE, ("Is asynchronized op",)),
    Arg("memory_device_type", INTEGER, ("Device Type",)),
    Arg("memory_device", INTEGER, ("Device Id",)),
    Arg("memory_address", INTEGER, ("Addr",)),
    Arg("memory_bytes", INTEGER, ("Bytes",)),
    Arg("total_allocated", INTEGER, ("Total Allocated",)),
    Arg("total_reserved", INTEGER, ("Total Reserved",)),
    Arg("python_id", INTEGER, ("Python id",)),
    Arg("python_parent_id", INTEGER, ("Python parent id",)),
    Arg("module_id", INTEGER, ("Python module id",)),
    Arg("label", CODE, ("name", "labels")),  # of a thread or process, in metadata rows; of a marked kernel
    Arg("merged_rank", INTEGER, ("rank",)),  # TraceFuse: of the file that the event was in,
    Arg("own_pid", CODE, ("pid_raw",)),  # and its pid there
    Arg("kernel", CODE, ("kernel",)),  # of a launch; roctracer
    Arg("task_type", CODE, ("Task Type",)),  # what runs a task of an NPU; torch_npu
)
N_COLUMNS = len(EVENT_CODES) + len(ARGS)
ARG_AT = {len(EVENT_CODES) + i: arg for i, arg in enumerate(ARGS)}


_LARGE_BYTES = 1 << 20
_HUGE_BYTES = 1 << 21
_NARROW = [(kind, int(np.iinfo(kind).max)) for kind in (np.int8, np.int16, np.int32)]


def key_table(slots: int = 256) -> Keys:
    """The keys above, in the scanner's form."""
    keys = [(key, 0, CODE, i) for i, key in enumerate(EVENT_KEYS)]
    keys += [(key, 0, TIME, i) for i, key in enumerate(TIMES)]
    keys += [("args", 0, OBJECT, 0), ("occupancy", 1, OBJECT, 0)]
    keys += [(key, arg.level, arg.kind, column) for column, arg in ARG_AT.items() for key in arg.keys]
    text = "".join(key for key, *_ in keys).encode()
    levels, kinds, columns, starts, lengths = (np.zeros(slots, np.int64) for _ in range(5))
    lengths[:] = -1
    start = 0
    for key, level, kind, column in keys:
        letters = key.encode()
        slot = key_hash(letters) % slots
        while lengths[slot] >= 0:
            slot = (slot + 1) % slots
        levels[slot], kinds[slot], columns[slot] = level, kind, column
        starts[slot], lengths[slot] = start, len(key)
        start += len(key)
    return Keys(levels, kinds, columns, starts, lengths, np.frombuffer(text, np.uint8))


class GrowingArray:
    """An array that grows, and widens its type when a value needs it. While all values are the same, it stores one."""

    def __init__(self, dtype: type[np.signedinteger[Any]] = np.int8) -> None:
        self._length = 0
        self._array: NDArray[Any] = np.empty(0, dtype)  # unused capacity is never touched
        self._is_constant = True

    def append(self, part: NDArray[Any]) -> None:
        """Copy the part to the end."""
        if not part.size:
            return
        before, length = self._length, self._length + part.size
        old, kind = self._array, self._array.dtype
        if part.dtype != kind:
            kind = np.promote_types(part.dtype, kind)
        if self._is_constant and (not before or old[0] == part[0]) and _all_equal(part):
            if not before or kind != old.dtype:
                self._array = part[:1].astype(kind)
        else:
            if self._is_constant or length > old.size or kind != old.dtype:
                self._array = _empty(old.size if length <= old.size else 4 * length, kind, before)
                self._array[:before] = old if self._is_constant else old[:before]
                self._is_constant = False
            self._array[before:length] = part
        self._length = length

    def array(self) -> NDArray[Any]:
        """What was appended; a view, which can't be written if all values are the same."""
        return repeat_value(self._array, self._length) if self._is_constant else self._array[: self._length]

    def select(self, mask: NDArray[np.bool_]) -> GrowingArray:
        """The values of a mask, as an array of its own; nothing if there is none."""
        selection = GrowingArray(self._array.dtype.type)
        if self._length:
            selection.append(self.array()[mask])
        return selection

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Drop the other values."""
        rest = self.array()[mask]
        self._array, self._length, self._is_constant = np.empty(0, rest.dtype), 0, True
        self.append(rest)


def _all_equal(values: NDArray[Any]) -> bool:
    return stores_one(values) or bool((values == values[0]).all())


def _empty(size: int, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """An array with arbitrary values, of which a number will be used at once; a large one has pages of its own."""
    if size * dtype.itemsize < _LARGE_BYTES:
        return np.empty(size, dtype)
    return own_pages((size,), dtype, huge=count * dtype.itemsize >= _HUGE_BYTES)


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """The values in the smallest signed integer type that holds them."""
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for kind, most in _NARROW:
        if -most - 1 <= low and high <= most:
            return values.astype(kind)
    return values
